//! The levels of a whole history in retrospect: the changes of each figure, either way.

use super::scan::{best_division, refine_division};
use super::{FALSE_ALARMS, RunFigures, SEED};
use crate::{Random, median_of_sorted};
use std::ops::Range;

/// Runs between two changes of one figure.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FigureLevel {
    /// The indices of its runs.
    pub runs: Range<usize>,
    /// The median of the figure over them; `None` if no run has it.
    pub median: Option<f64>,
}

/// The minimum number of runs of a level: two similar ones are not yet a level.
const SHORTEST: usize = 3;
/// The evidence that a division must exceed to be tested.
const NO_NEWS: f64 = 2.2;

/// The levels of each figure in order. The history is divided where its scores differ most, and
/// each part again, as long as random orders divide as well in at most 1 % of cases, over all
/// figures (binary segmentation, Scott and Knott, 1974).
pub(crate) fn find_levels(figures: &[RunFigures]) -> Vec<Vec<FigureLevel>> {
    let chance = FALSE_ALARMS / figures.len().max(1) as f64;
    let divided = figures.iter().map(|figure| {
        let mut random = Random::from_seed(SEED);
        let mut begins = vec![0];
        divide_history(figure, 0..figure.values.len(), chance, &mut begins, &mut random);
        begins.sort_unstable();
        let ends = begins.iter().skip(1).copied().chain([figure.values.len()]);
        begins.iter().zip(ends).map(|(from, to)| figure_level(figure, *from..to)).collect()
    });
    divided.collect()
}

fn divide_history(
    figure: &RunFigures,
    runs: Range<usize>,
    chance: f64,
    begins: &mut Vec<usize>,
    random: &mut Random,
) {
    let mut values = figure.values[runs.clone()].to_vec();
    let Some((at, size)) = best_division(&values, SHORTEST).filter(|(_, size)| *size > NO_NEWS)
    else {
        return;
    };
    // As many orders as show that the probability is small enough, and no more than show that it is
    // not.
    let order_count = (3.0 / chance).ceil() as usize;
    let allowed = (chance * order_count as f64) as usize;
    let mut as_large = 0;
    for _ in 0..order_count {
        shuffle_values(&mut values, random);
        as_large += usize::from(best_division(&values, SHORTEST).is_some_and(|(_, of)| of >= size));
        if as_large > allowed {
            return;
        }
    }
    let at = refine_division(&figure.values[runs.clone()], at, SHORTEST);
    begins.push(runs.start + at);
    divide_history(figure, runs.start..runs.start + at, chance, begins, random);
    divide_history(figure, runs.start + at..runs.end, chance, begins, random);
}

fn shuffle_values(values: &mut [Option<f64>], random: &mut Random) {
    for place in (1..values.len()).rev() {
        values.swap(place, random.next_below(place + 1));
    }
}

/// The level of these runs.
pub(crate) fn figure_level(figure: &RunFigures, runs: Range<usize>) -> FigureLevel {
    let mut sorted_values = figure.known_values(runs.clone());
    sorted_values.sort_by(f64::total_cmp);
    FigureLevel { runs, median: median_of_sorted(&sorted_values) }
}
