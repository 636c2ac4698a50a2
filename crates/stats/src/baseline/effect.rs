//! The distance of one level from another, and the smallest step that a history can show.

use super::scan::{Scored, burst_factors, evidence_above, news_of};
use super::{DETECTION_RUNS, MIN_RUNS, OF_LEVELS, ORDERS, RunFigures, SEED};
use crate::probability::{normal_cdf, normal_upper};
use crate::{Random, median_of_sorted};

/// The distance of a new level from the previous one, with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LevelShift {
    /// The median of the previous level.
    pub before: f64,
    /// The median of the new level.
    pub now: f64,
    /// The new over the old level for times, else the new minus the old one: the median over all
    /// pairs of a run of each (Hodges and Lehmann, 1963).
    pub by: f64,
    /// Whether it is a ratio: none exists from a level of 0.
    pub is_ratio: bool,
    /// Its 95 % interval, from the order of the same pairs (Moses, 1953); with too few runs for
    /// one, the range of the pairs.
    pub interval: [f64; 2],
}

/// The required probability of detecting the smallest step.
const NOTICED: f64 = 0.98;
/// The number of histories of five further runs drawn for it.
const DRAWS: usize = 100;
/// The number of bisections in the search for the smallest step.
const HALVINGS: usize = 32;

/// The shift from the runs before `at` to those from `at` to `end`.
pub(crate) fn level_shift(figure: &RunFigures, at: usize, end: usize) -> LevelShift {
    shift_between(&figure.known_values(0..at), &figure.known_values(at..end), figure.is_time)
}

/// Whether all of these have a ratio to those before: there is none from 0, and JSON has no number
/// for one beyond all numbers.
pub(crate) fn have_ratios(before: &[f64], now: &[f64]) -> bool {
    before.iter().all(|a| *a > 0.0 && now.iter().all(|b| (b / a).is_finite()))
}

/// The shift from one level to another.
pub(crate) fn shift_between(before: &[f64], now: &[f64], is_time: bool) -> LevelShift {
    let is_ratio = is_time && have_ratios(before, now);
    let pair_shift =
        |a: f64, b: f64| if is_ratio { b / a } else { (b - a).clamp(f64::MIN, f64::MAX) };
    let mut pairs: Vec<f64> =
        before.iter().flat_map(|a| now.iter().map(move |b| pair_shift(*a, *b))).collect();
    pairs.retain(|pair| pair.is_finite());
    pairs.sort_by(f64::total_cmp);
    let (n, m) = (before.len() as f64, now.len() as f64);
    let reach = normal_upper(0.025) * (n * m * (n + m + 1.0) / 12.0).sqrt();
    let lower_rank = (n * m / 2.0 - reach).floor().max(0.0) as usize;
    let last = pairs.len().saturating_sub(1);
    let end = |place: usize| pairs.get(place.min(last)).copied().unwrap_or(f64::NAN);
    let interval = [end(lower_rank), end(last - lower_rank.min(last))];
    LevelShift {
        before: median(before),
        now: median(now),
        by: median_of_sorted(&pairs).unwrap_or(f64::NAN),
        is_ratio,
        interval,
    }
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted).unwrap_or(f64::NAN)
}

/// The probability of scores as high as those of `now` if both are of one level.
pub(crate) fn chance_of_above(before: &[f64], now: &[f64]) -> f64 {
    let joined_values: Vec<Option<f64>> = before.iter().chain(now).copied().map(Some).collect();
    1.0 - normal_cdf(evidence_above(&joined_values, before.len()))
}

/// The smallest step of one figure that this history can show: the step by which all of the next
/// five runs must be worse so that it is detected within them in 98 % of cases, as a factor or a
/// difference. `None` with too few runs, or if no step is. The further runs are drawn from the
/// history itself.
pub(crate) fn smallest_step(figures: &[RunFigures], place: usize) -> Option<f64> {
    let figure = figures.get(place)?;
    let finite_values: Vec<f64> =
        figure.values.iter().copied().flatten().filter(|value| value.is_finite()).collect();
    if finite_values.len() < MIN_RUNS || figure.values.len() < MIN_RUNS {
        return None;
    }
    let mut random = Random::from_seed(SEED);
    let bursts = burst_factors(&figure.values);
    let needed =
        Scored::from_figures(figures).draw_orders(ORDERS, &mut random).needed_evidence(OF_LEVELS);
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| {
            (0..DETECTION_RUNS)
                .map(|_| finite_values[random.next_below(finite_values.len())])
                .collect()
        })
        .collect();
    let notices = |draw: &Vec<f64>, step: f64| {
        let mut values: Vec<Option<f64>> = finite_values.iter().copied().map(Some).collect();
        draw.iter().any(|next| {
            values.push(Some(if figure.is_time { next * step } else { next + step }));
            news_of(figures, place, &values, &bursts) >= needed
        })
    };
    let is_shown = |step: f64| {
        let noticed = draws.iter().filter(|draw| notices(draw, step)).count();
        noticed as f64 >= NOTICED * DRAWS as f64
    };
    let (none, most) = if figure.is_time { (1.0, 1e3) } else { (0.0, 1e9) };
    if !is_shown(most) {
        return None;
    }
    let (mut low, mut high): (f64, f64) = (none, most);
    for _ in 0..HALVINGS {
        let middle = if figure.is_time { (low * high).sqrt() } else { (low + high) / 2.0 };
        if is_shown(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}
