//! The evidence for a new level, over all figures and all numbers of newest runs.

use super::bursts::burst_factor;
use super::{DETECTION_RUNS, MIN_RUNS, RunFigures};
use crate::Random;
use crate::probability::{normal_cdf, normal_upper};
use std::ops::Range;

/// Numbers of newest runs that may be a new level, each with its share of the false alarm rate
/// (Genovese, Roeder and Wasserman, "False discovery control with p-value weighting", 2006): most
/// is spent on detecting a level within five runs, the rest on remembering it.
const WINDOWS: [(usize, f64); 12] = [
    (1, 1.0),
    (2, 3.0),
    (3, 6.0),
    (4, 6.0),
    (5, 10.0),
    (7, 1.0),
    (10, 1.0),
    (15, 1.0),
    (25, 1.0),
    (40, 1.0),
    (65, 1.0),
    (100, 1.0),
];
/// The same for a requested figure relative to another one.
const OF_MAIN: f64 = 6.0;
/// The minimum number of orders as extreme for their share to be known well enough.
const KNOWN_FROM: usize = 5;
/// The evidence below which nothing is detected: one of twelve runs by chance.
const NO_NEWS: f64 = 2.5;

/// The evidence for a new level of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LevelEvidence {
    pub figure: usize,
    /// The logarithm of its share of the false alarm rate over its own probability.
    pub news: f64,
}

/// The scores of all runs.
pub(crate) struct Scored {
    /// For each figure, the scores of the runs, with mean 0 and standard deviation 1; all 0 if
    /// every run has the same value. A run without the figure has score 0.
    scores: Vec<Vec<f64>>,
    windows: Vec<usize>,
    runs: usize,
    /// For each figure and window, the factor by which bursts widen its sum.
    bursts: Vec<f64>,
    /// For each figure and window, the logarithm of its share of the false alarm rate.
    parts: Vec<f64>,
}

/// The statistics of the same runs in random orders.
pub struct Orders {
    parts: Vec<f64>,
    /// For each figure and window, the sizes of all orders, ascending.
    sizes: Vec<Vec<f64>>,
    /// The largest of each order over all figures and windows, ascending.
    largest: Vec<f64>,
}

impl Scored {
    pub(crate) fn from_figures(figures: &[RunFigures]) -> Scored {
        let runs = figures.iter().map(|figure| figure.values.len()).max().unwrap_or(0);
        let scores: Vec<Vec<f64>> =
            figures.iter().map(|figure| normal_scores(&figure.values)).collect();
        let watched = usable_windows(runs);
        let parts = (0..figures.len())
            .flat_map(|place| log_window_shares(figures, place, &watched))
            .collect();
        let windows: Vec<usize> = watched.iter().map(|(window, _)| *window).collect();
        // The newest runs may be a new level: bursts are estimated from earlier ones.
        let old = |window: usize| runs.saturating_sub(window.max(DETECTION_RUNS));
        let of_figure = |figure: &RunFigures| -> Vec<f64> {
            let before = |window: usize| &figure.values[..old(window).min(figure.values.len())];
            windows.iter().map(|window| burst_factor(before(*window), *window)).collect()
        };
        let bursts = figures.iter().flat_map(of_figure).collect();
        Scored { bursts, scores, windows, runs, parts }
    }

    /// The sum of the newest scores over its standard deviation in random orders, for each figure
    /// and window.
    fn visit_sizes(&self, order: impl Fn(usize) -> usize, mut each: impl FnMut(usize, f64)) {
        let mut cell = 0;
        for scores in &self.scores {
            let (mut sum, mut taken) = (0.0, 0);
            for window in &self.windows {
                while taken < *window {
                    taken += 1;
                    sum += scores[order(self.runs - taken)];
                }
                each(cell, sum / deviation_of_sum(*window, self.runs));
                cell += 1;
            }
        }
    }

    /// The observed sizes, reduced by the effect of bursts, which random orders do not have.
    fn observed_sizes(&self) -> Vec<f64> {
        let mut sizes = vec![0.0; self.scores.len() * self.windows.len()];
        self.visit_sizes(|run| run, |cell, size| sizes[cell] = size / self.bursts[cell]);
        sizes
    }

    /// Whether there is no evidence for any change.
    pub(crate) fn is_quiet(&self) -> bool {
        let news = |(size, part): (&f64, &f64)| part - of_size(*size);
        self.observed_sizes().iter().zip(&self.parts).all(|both| news(both) < NO_NEWS)
    }

    /// Draws orders of the runs; the figures of a run stay together.
    pub(crate) fn draw_orders(&self, count: usize, random: &mut Random) -> Orders {
        let cells = self.scores.len() * self.windows.len();
        let mut drawn = vec![Vec::with_capacity(count); cells];
        let mut order: Vec<usize> = (0..self.runs).collect();
        for _ in 0..count {
            random.choose_first(&mut order, self.runs);
            self.visit_sizes(|run| order[run], |cell, size| drawn[cell].push(size));
        }
        let mut orders = Orders {
            parts: self.parts.clone(),
            sizes: drawn.clone(),
            largest: vec![f64::NEG_INFINITY; count],
        };
        orders.sizes.iter_mut().for_each(|sizes| sizes.sort_by(f64::total_cmp));
        for (cell, sizes) in drawn.iter().enumerate() {
            for (place, size) in sizes.iter().enumerate() {
                let news = orders.news_by(cell, *size);
                orders.largest[place] = orders.largest[place].max(news);
            }
        }
        orders.largest.sort_by(f64::total_cmp);
        orders
    }

    /// For each figure the window with most evidence.
    pub fn find_evidence(&self, orders: &Orders) -> Vec<LevelEvidence> {
        let observed = self.observed_sizes();
        let of_figure = |figure: usize| {
            let cells = figure * self.windows.len()..(figure + 1) * self.windows.len();
            let news = cells.map(|cell| orders.news_by(cell, observed[cell]));
            Some(LevelEvidence { figure, news: news.reduce(f64::max)? })
        };
        (0..self.scores.len()).filter_map(of_figure).collect()
    }
}

/// The factors by which bursts in these runs widen the sum of each window.
pub(crate) fn burst_factors(values: &[Option<f64>]) -> Vec<f64> {
    WINDOWS.iter().map(|(window, _)| burst_factor(values, *window)).collect()
}

fn usable_windows(runs: usize) -> Vec<(usize, f64)> {
    WINDOWS.iter().copied().filter(|(window, _)| window + MIN_RUNS <= runs).collect()
}

/// The logarithms of the shares of one figure's windows.
fn log_window_shares(figures: &[RunFigures], place: usize, windows: &[(usize, f64)]) -> Vec<f64> {
    let total_share = windows.iter().map(|one| one.1).sum::<f64>();
    let own_share = figure_share(figures, place);
    windows.iter().map(|(_, part)| (part * own_share / total_share).ln()).collect()
}

/// The share of one figure.
pub(crate) fn figure_share(figures: &[RunFigures], place: usize) -> f64 {
    let weight_of = |figure: &RunFigures| if figure.is_main { OF_MAIN } else { 1.0 };
    weight_of(&figures[place]) / figures.iter().map(weight_of).sum::<f64>()
}

/// The maximum evidence in these runs for one of the figures, by the normal distribution. `bursts`
/// are those of the windows, at least as many as these runs have.
pub(crate) fn news_of(
    figures: &[RunFigures],
    place: usize,
    values: &[Option<f64>],
    bursts: &[f64],
) -> f64 {
    let watched = usable_windows(values.len());
    let scores = normal_scores(values);
    let sizes = watched.iter().zip(bursts).map(|((window, _), burst)| {
        let sum: f64 = scores[values.len() - window..].iter().sum();
        sum / deviation_of_sum(*window, values.len()) / burst
    });
    let news = sizes
        .zip(log_window_shares(figures, place, &watched))
        .map(|(size, part)| part - of_size(size));
    news.fold(f64::NEG_INFINITY, f64::max)
}

impl Orders {
    /// The share of the orders with as much evidence for anything.
    pub(crate) fn chance_of_evidence(&self, news: f64) -> f64 {
        let above = self.largest.len() - self.largest.partition_point(|other| *other < news - 1e-9);
        // The observed order is one of them.
        (above + 1) as f64 / (self.largest.len() + 1) as f64
    }

    /// The evidence that random orders reach with at most this probability.
    pub(crate) fn needed_evidence(&self, chance: f64) -> f64 {
        let place = ((1.0 - chance) * self.largest.len() as f64).floor() as usize;
        self.largest.get(place).copied().unwrap_or(f64::INFINITY)
    }

    /// The evidence of a size for its figure and window: by the normal distribution, as for sums of
    /// many scores; less if more orders reach it, as with a count that is nearly always 0.
    fn news_by(&self, cell: usize, size: f64) -> f64 {
        let sizes = &self.sizes[cell];
        let above = sizes.len() - sizes.partition_point(|other| *other < size - 1e-9);
        let drawn = ((above as f64 + 1.0) / (sizes.len() as f64 + 1.0)).ln();
        let by_size = of_size(size);
        self.parts[cell] - if above < KNOWN_FROM { by_size } else { by_size.max(drawn) }
    }
}

/// The logarithm of the probability that a normal variable exceeds this.
fn of_size(size: f64) -> f64 {
    normal_cdf(-size).max(f64::MIN_POSITIVE).ln()
}

/// For the sum of `count` of `of` scores, drawn without replacement (Cochran, Sampling Techniques,
/// 2.3).
fn deviation_of_sum(count: usize, of: usize) -> f64 {
    let (count, of) = (count as f64, of as f64);
    (count * (of - count) / of).sqrt()
}

/// The normal scores of values (van der Waerden, 1952): sums of few are about as likely to be large
/// as sums of many, unlike with ranks.
pub(crate) fn normal_scores(values: &[Option<f64>]) -> Vec<f64> {
    let finite = |(run, value): (usize, &Option<f64>)| {
        value.filter(|value| value.is_finite()).map(|value| (value, run))
    };
    let mut sorted_values: Vec<(f64, usize)> =
        values.iter().enumerate().filter_map(finite).collect();
    sorted_values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut scores = vec![0.0; values.len()];
    let mut begin = 0;
    while begin < sorted_values.len() {
        let end = begin
            + sorted_values[begin..]
                .iter()
                .take_while(|(v, _)| *v == sorted_values[begin].0)
                .count();
        // Equal values share the mean of their scores.
        let score = |rank: usize| {
            normal_upper(1.0 - (rank as f64 + 1.0) / (sorted_values.len() as f64 + 1.0))
        };
        let tied_score = (begin..end).map(score).sum::<f64>() / (end - begin) as f64;
        sorted_values[begin..end].iter().for_each(|(_, run)| scores[*run] = tied_score);
        begin = end;
    }
    let squares: f64 = scores.iter().map(|score| score * score).sum();
    // If all are equal, the rest of the sum of their scores is rounding.
    if squares > 1e-9 {
        let deviation = (squares / (values.len() as f64 - 1.0)).sqrt();
        scores.iter_mut().for_each(|score| *score /= deviation);
    } else {
        scores.fill(0.0);
    }
    scores
}

/// The evidence for the values from index `at` on being above those before.
pub(crate) fn evidence_above(values: &[Option<f64>], at: usize) -> f64 {
    let scores = normal_scores(values);
    let inside = 0 < at && at < values.len();
    match inside {
        true => {
            scores[at..].iter().sum::<f64>() / deviation_of_sum(values.len() - at, values.len())
        }
        false => 0.0,
    }
}

/// The most likely start of a detected level: near the index from which the scores are farthest
/// above those before, the one that minimises the distances from the medians of both.
pub(crate) fn find_level_start(values: &[Option<f64>]) -> usize {
    let scores = normal_scores(values);
    let (mut sum, mut best) = (0.0, (values.len(), f64::NEG_INFINITY));
    for at in (MIN_RUNS..values.len()).rev() {
        sum += scores[at];
        let size = sum / deviation_of_sum(values.len() - at, values.len());
        if size > best.1 {
            best = (at, size);
        }
    }
    nearest_division(values, best.0, MIN_RUNS..values.len())
}

/// The index near `to`, within a range, that minimises the distances from the medians of both
/// sides.
fn nearest_division(values: &[Option<f64>], to: usize, within: Range<usize>) -> usize {
    let near =
        to.saturating_sub(DETECTION_RUNS).max(within.start)..(to + DETECTION_RUNS).min(within.end);
    let distances =
        |at: usize| distance_from_median(&values[..at]) + distance_from_median(&values[at..]);
    near.min_by(|a, b| distances(*a).total_cmp(&distances(*b))).unwrap_or(to)
}

/// The sum of the distances from the median.
fn distance_from_median(values: &[Option<f64>]) -> f64 {
    let mut sorted_values: Vec<f64> =
        values.iter().copied().flatten().filter(|v| v.is_finite()).collect();
    sorted_values.sort_by(f64::total_cmp);
    let Some(median) = sorted_values.get(sorted_values.len() / 2).copied() else { return 0.0 };
    sorted_values.iter().map(|value| (value - median).abs()).sum()
}

/// The index at which a history divides best, in either direction, into parts of at least `least`.
pub(crate) fn best_division(values: &[Option<f64>], least: usize) -> Option<(usize, f64)> {
    let scores = normal_scores(values);
    let (mut sum, mut best) = (0.0, None::<(usize, f64)>);
    for at in (least..values.len()).rev() {
        sum += scores[at];
        let size = (sum / deviation_of_sum(values.len() - at, values.len())).abs();
        let is_long = values.len() - at >= least;
        if is_long && best.is_none_or(|(_, other)| size > other) {
            best = Some((at, size));
        }
    }
    best
}

/// The most likely position of a detected division.
pub(crate) fn refine_division(values: &[Option<f64>], at: usize, least: usize) -> usize {
    nearest_division(values, at, least..(values.len() + 1).saturating_sub(least))
}
