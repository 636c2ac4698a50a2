//! Runs far outside of everything before them: the evidence of one, and the number that decides.
//!
//! Without any model of the figures, the newest of n + 1 runs is the highest with a probability of
//! 1/(n + 1), and the newest k of n + k are the k highest with k! n!/(n + k)!. They decide if that
//! is within the share of the false alarm rate for leaps.

use super::{FALSE_ALARMS, MIN_RUNS, OF_LEAPS, RunFigures, scan};

/// A figure whose newest runs are outside of everything before, by more than any two consecutive
/// runs differed.
#[derive(Clone, PartialEq, Debug)]
pub struct Leap {
    /// The index of the figure.
    pub figure: usize,
    /// The number of earlier runs, and their median.
    pub before: usize,
    pub median: f64,
    /// The newest run over that median, or minus it if no ratio exists.
    pub by: f64,
    pub is_ratio: bool,
    /// How many more such runs decide.
    pub more: usize,
}

/// The figures that leapt: the deciding ones as pairs of index and start, and the others.
pub(crate) fn find_leaps(figures: &[RunFigures]) -> (Vec<(usize, usize)>, Vec<Leap>) {
    let (mut decide, mut leaps) = (Vec::new(), Vec::new());
    for (place, figure) in figures.iter().enumerate() {
        let Some((mut leap, newest)) = find_leap(figure, place) else { continue };
        let needed = runs_to_decide(leap.before, scan::figure_share(figures, place));
        leap.more = needed.saturating_sub(newest);
        match leap.more {
            0 => decide.push((place, figure.values.len() - newest)),
            _ => leaps.push(leap),
        }
    }
    (decide, leaps)
}

/// The number of consecutive runs that decide after `before` runs, for a figure with this share of
/// the false alarm rate.
pub(crate) fn runs_to_decide(before: usize, part: f64) -> usize {
    let is_rare =
        |newest: &usize| chance_of_highest(before, *newest) <= FALSE_ALARMS * OF_LEAPS * part;
    (2..=MIN_RUNS).find(is_rare).unwrap_or(MIN_RUNS)
}

/// The probability that the newest of these runs are the highest, in an order that is chance.
pub(crate) fn chance_of_highest(before: usize, newest: usize) -> f64 {
    (1..=newest).map(|of| of as f64 / (before + of) as f64).product()
}

/// The leap of a figure, and the number of consecutive runs with it.
fn find_leap(figure: &RunFigures, place: usize) -> Option<(Leap, usize)> {
    let known_values: Vec<(usize, f64)> = figure
        .values
        .iter()
        .enumerate()
        .filter_map(|(run, value)| Some((run, (*value)?)))
        .collect();
    let values: Vec<f64> = known_values.iter().map(|(_, value)| *value).collect();
    let is_whole = figure.values.len() >= MIN_RUNS && figure.values.last()?.is_some();
    for newest in (1..=MIN_RUNS).filter(|_| is_whole) {
        let count = values.len().checked_sub(newest).filter(|count| *count >= MIN_RUNS)?;
        let (before, after) = values.split_at(count);
        // Consecutive runs: none between them lacks the figure.
        if figure.values.len() - known_values[count].0 != newest {
            return None;
        }
        let is_ratio = figure.is_time && super::effect::have_ratios(before, after);
        let far = |from: f64, to: f64| if is_ratio { to / from } else { to - from };
        let highest = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = after.iter().copied().fold(f64::INFINITY, f64::min);
        let neighbours =
            before.windows(2).map(|pair| far(pair[0].min(pair[1]), pair[0].max(pair[1])));
        if lowest > highest && far(highest, lowest) > neighbours.fold(0.0, f64::max) {
            let median = super::effect::median(before);
            let leap_size = far(median, *after.last()?);
            return Some((
                Leap { figure: place, before: count, median, by: leap_size, is_ratio, more: 0 },
                newest,
            ));
        }
    }
    None
}
