//! Bounds that runs like those before exceed with a stated probability.
//!
//! Of n + 1 runs in an order that is chance, the newest is above the k-th highest of the others
//! with probability k/(n + 1) at most, whatever their distribution. Rarer ones than 1/(n + 1) need
//! a model: logarithms that are normally distributed, as far as a test of Anderson and Darling
//! (D'Agostino and Stephens, Goodness-of-fit techniques, 1986, table 4.7) sees nothing against it,
//! and the upper 95 % limit of their quantile (the one-sided tolerance bound; Natrella,
//! Experimental Statistics, 1963, chapter 2-1.4).

use super::{LevelStep, RunFigures, find_levels};
use crate::dispersion::mean_and_variance;
use crate::probability::{normal_cdf, normal_upper};
use punctual_bundle::baseline::{BoundModel, ProposedBound};
use punctual_core::{BoundComparison, Metric, NamedSeries, Nanos, Requirement};

/// A bound needs at least two runs: what one run did says nothing about the next.
const MIN_RUNS: usize = 2;
/// The runs that a model needs, and how many times rarer than they can be it goes.
const MODEL_RUNS: usize = 20;
const MODEL_REACH: f64 = 10.0;
/// Anderson and Darling's statistic that one in ten normal samples exceeds.
const NOT_NORMAL: f64 = 0.631;
/// The confidence in a bound by a model.
const CONFIDENCE: f64 = 0.95;
/// A worse run, and within how many such runs it is noticed.
pub(crate) const WORSE: f64 = 1.3;
pub(crate) const WITHIN: i32 = 3;
/// The share of cases in which the stated smallest worsening is noticed.
const NOTICED: f64 = 0.98;
/// Words of figures and their metric in a requirement.
const METRICS: [(&str, Metric); 4] = [
    (" missed periods", Metric::Skipped),
    (" median", Metric::Percentile(50.0)),
    (" p99", Metric::Percentile(99.0)),
    (" p99.9", Metric::Percentile(99.9)),
];

/// A bound for each kind of figure of each measure, by the runs of its newest level, or by those
/// before a worse one. `rate`: the asked probability of a false alarm, else the smallest that these
/// runs can bear.
pub(crate) fn propose_bounds(
    figures: &[RunFigures],
    worse: &[LevelStep],
    rate: Option<f64>,
) -> Vec<ProposedBound> {
    let mut groups: Vec<(String, Metric, Vec<usize>)> = Vec::new();
    for (place, figure) in figures.iter().enumerate() {
        let Some((of, metric)) = METRICS.iter().find_map(|(word, metric)| {
            Some((measure_of(figure.name.strip_suffix(word)?), *metric))
        }) else {
            continue;
        };
        match groups.iter_mut().find(|(name, other, _)| *name == of && *other == metric) {
            Some((_, _, places)) => places.push(place),
            None => groups.push((of, metric, vec![place])),
        }
    }
    let bound = |(place, metric, places): (String, Metric, Vec<usize>)| {
        let since = worse.iter().filter(|step| places.contains(&step.figure));
        let since = since.map(|step| step.at).min();
        let together = highest_of_series(figures, &places);
        let is_main = places.iter().any(|of| figures[*of].is_main);
        let values = like_now(&together, since);
        let bound = of_values(&values, metric, rate)?;
        let require = format!("{}{}", series_of(&place), bound.require);
        Some(ProposedBound { place, require, is_main, before_change: since.is_some(), ..bound })
    };
    groups.into_iter().filter_map(bound).collect()
}

/// The place of a measure: that of a series without the thread's own name.
fn measure_of(series: &str) -> String {
    let is_thread = |name: &str| {
        let number = name.strip_prefix("cpu").unwrap_or(name);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    match series.rsplit_once('/') {
        Some((measure, thread)) if measure.contains('/') && is_thread(thread) => measure.to_owned(),
        _ => series.to_owned(),
    }
}

/// What is before the figure of a requirement: `servo/response `, where the measure has several
/// kinds of series.
fn series_of(place: &str) -> String {
    let series_path = place.split_once('/').map_or(place, |(_, own)| own);
    let kind = series_path.rsplit_once('/').map(|(_, kind)| NamedSeries::from_word(kind));
    kind.flatten().map_or_else(String::new, |_| format!("{series_path} "))
}

/// A figure of several series, whose requirement is met if all meet it: the highest in each run. A
/// run that lacks one is not used.
fn highest_of_series(figures: &[RunFigures], places: &[usize]) -> RunFigures {
    let first = &figures[places[0]];
    let highest = |run: usize| {
        let mut run_values = places.iter().map(|place| figures[*place].values[run]);
        run_values.try_fold(f64::NEG_INFINITY, |most, value| {
            Some(most.max(value.filter(|value| value.is_finite())?))
        })
    };
    let values = (0..first.values.len()).map(highest).collect();
    RunFigures { values, ..first.clone() }
}

/// The values of runs that later ones may be like: of the newest level, or before a worse one.
fn like_now(figure: &RunFigures, worse_since: Option<usize>) -> Vec<f64> {
    let end = worse_since.unwrap_or(figure.values.len());
    let before = RunFigures { values: figure.values[..end].to_vec(), ..figure.clone() };
    let levels = find_levels(std::slice::from_ref(&before));
    let newest = levels.first().and_then(|levels| levels.last());
    before.known_values(newest.map_or(0..end, |level| level.runs.clone()))
}

/// The bound that these runs bear. `None` of fewer than two.
pub(crate) fn of_values(
    values: &[f64],
    metric: Metric,
    rate: Option<f64>,
) -> Option<ProposedBound> {
    let n = values.len();
    if n < MIN_RUNS {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let smallest_rate = 1.0 / (n + 1) as f64;
    let requested_rate = rate.unwrap_or(smallest_rate);
    let modelled =
        (requested_rate < smallest_rate).then(|| by_model(values, requested_rate)).flatten();
    let modelled = modelled.filter(|_| metric.is_time());
    let rank = ((requested_rate * (n + 1) as f64 + 1e-9) as usize).clamp(1, n);
    let (bound, false_alarms) = match modelled {
        Some(bound) => (bound, requested_rate),
        None => (sorted[rank - 1], rank as f64 * smallest_rate),
    };
    let requirement = match metric.is_time() {
        true => round_bound_up(bound).map(|bound| (BoundComparison::Less, bound)),
        false => Some((BoundComparison::LessOrEqual, bound.max(0.0).ceil() as i64)),
    };
    let (comparison, bound) = requirement?;
    let exceeds = |value: f64| !comparison.is_satisfied(value, bound as f64);
    let worse = |by: f64| values.iter().filter(|value| exceeds(**value * by)).count();
    let chance_within_runs =
        |count: usize| 1.0 - (1.0 - count as f64 / (n + 1) as f64).powi(WITHIN);
    // The smallest factor at which enough of the runs are beyond the bound.
    let enough = (1..=n).find(|count| chance_within_runs(*count) >= NOTICED);
    let surely = enough.map(|count| bound as f64 / sorted[count - 1]);
    Some(ProposedBound {
        require: format_requirement(metric, comparison, bound),
        runs: n as u64,
        false_alarms,
        model: modelled.map(|_| BoundModel::LogNormal),
        needed: (rate.is_some()
            && modelled.is_none()
            && requested_rate < smallest_rate * (1.0 - 1e-9))
            .then(|| (1.0 / requested_rate - 1.0).ceil() as u64),
        noticed: metric.is_time().then(|| chance_within_runs(worse(WORSE))),
        surely: surely.filter(|by| metric.is_time() && by.is_finite() && *by > 0.0),
        ..ProposedBound::default()
    })
}

/// A requirement as a person writes it: its own words have ns.
fn format_requirement(metric: Metric, comparison: BoundComparison, bound: i64) -> String {
    let exact = Requirement { metric, comparison, bound }.to_string();
    let readable = Nanos(bound).to_readable().replace(' ', "");
    match exact.strip_suffix(&Nanos(bound).to_string()).filter(|_| metric.is_time()) {
        Some(before) => format!("{before}{readable}"),
        None => exact,
    }
}

/// The next bound above a time in ns that has three digits.
fn round_bound_up(ns: f64) -> Option<i64> {
    if !(0.0..9e15).contains(&ns) {
        return None;
    }
    let ns = ns.floor() as i64;
    let step = 10_i64.pow(ns.max(1).ilog10().saturating_sub(2));
    Some((ns / step + 1) * step)
}

/// The upper limit of the quantile that is exceeded with this probability, if the model fits.
fn by_model(values: &[f64], rate: f64) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < MODEL_RUNS || rate * n * MODEL_REACH < 1.0 || values.iter().any(|v| *v <= 0.0)
    {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (mean, variance) = mean_and_variance(&logs)?;
    let deviation = variance.sqrt();
    if deviation <= 0.0 || anderson_darling(&logs, mean, deviation) > NOT_NORMAL {
        return None;
    }
    let (z, c) = (normal_upper(rate), normal_upper(1.0 - CONFIDENCE));
    let a = 1.0 - c * c / (2.0 * (n - 1.0));
    let b = z * z - c * c / n;
    let factor = (z + (z * z - a * b).sqrt()) / a;
    Some((mean + factor * deviation).exp()).filter(|bound| bound.is_finite())
}

/// The statistic for a normal distribution whose mean and deviation were estimated.
fn anderson_darling(values: &[f64], mean: f64, deviation: f64) -> f64 {
    let mut scores: Vec<f64> = values.iter().map(|value| (value - mean) / deviation).collect();
    scores.sort_by(f64::total_cmp);
    let n = scores.len();
    let log = |z: f64| normal_cdf(z).max(f64::MIN_POSITIVE).ln();
    let terms = (0..n)
        .map(|place| (2 * place + 1) as f64 * (log(scores[place]) + log(-scores[n - 1 - place])));
    let n = n as f64;
    let squared = -n - terms.sum::<f64>() / n;
    squared * (1.0 + 0.75 / n + 2.25 / (n * n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, values: impl IntoIterator<Item = f64>) -> RunFigures {
        let values = values.into_iter().map(Some).collect();
        let is_time = !name.ends_with("periods");
        RunFigures { name: name.to_owned(), values, is_time, is_main: name.ends_with("p99") }
    }

    fn spread(count: usize, from: f64) -> impl Iterator<Item = f64> {
        (0..count).map(move |run| from + ((run * 17) % 31) as f64 * 100.0)
    }

    #[test]
    fn a_bound_is_above_all_runs_and_a_requirement() {
        let figures = [
            figure("main/servo/cpu0 p99", spread(42, 40_000.0)),
            figure("main/servo/cpu1 p99", spread(42, 50_000.0)),
            figure("main/servo/cpu0 missed periods", [0.0; 42]),
            figure("main/servo/cpu0 late samples", [0.0; 42]),
        ];
        let found = propose_bounds(&figures, &[], None);
        let lines: Vec<&str> = found.iter().map(|one| one.require.as_str()).collect();
        assert_eq!(lines, ["p99 < 53.1us", "skipped <= 0"], "{found:?}");
        assert_eq!((found[0].place.as_str(), found[0].runs), ("main/servo", 42));
        assert!((found[0].false_alarms - 1.0 / 43.0).abs() < 1e-12, "{found:?}");
        // 30 % above 50 µs are beyond 53.1 µs in every run.
        assert!(found[0].noticed.is_some_and(|of| of > 0.999), "{found:?}");
        assert!(found[0].surely.is_some_and(|by| (1.0..1.07).contains(&by)), "{found:?}");
    }

    #[test]
    fn one_run_bears_no_bound_and_few_no_rare_alarm() {
        assert_eq!(of_values(&[4e4], Metric::Percentile(99.0), None), None);
        assert!(propose_bounds(&[figure("main/servo p99", [4e4])], &[], None).is_empty());
        // Two clusters are not normal: no model, and the number of runs that could bear it.
        let two: Vec<f64> = (0..42).map(|run| if run % 2 == 0 { 4e4 } else { 9e4 }).collect();
        let found = of_values(&two, Metric::Percentile(99.0), Some(0.001)).expect("a bound");
        assert_eq!((found.needed, found.model), (Some(999), None));
        assert!((found.false_alarms - 1.0 / 43.0).abs() < 1e-12, "{found:?}");
        let many: Vec<f64> = (0..999).map(f64::from).map(|of| of + 1e4).collect();
        let found = of_values(&many, Metric::Percentile(99.0), Some(0.001)).expect("a bound");
        assert_eq!((found.needed, found.require.as_str()), (None, "p99 < 11us"));
    }

    #[test]
    fn a_more_frequent_alarm_takes_a_lower_bound() {
        let runs: Vec<f64> = (1..=99).map(|run| f64::from(run) * 1_000.0).collect();
        let found = of_values(&runs, Metric::Percentile(99.0), Some(0.05)).expect("a bound");
        // The fifth highest of 99.
        assert_eq!(found.require, "p99 < 95.1us");
        assert!((found.false_alarms - 0.05).abs() < 1e-12, "{found:?}");
    }

    /// The factors are those of the tables for 95 % confidence (Natrella, table A-7: n = 40, 99 %:
    /// 2.941; the approximation is within 1 %).
    #[test]
    fn a_model_bounds_the_quantile_of_normal_logarithms() {
        let quantile = |run: i32| normal_upper(1.0 - (f64::from(run) + 0.5) / 40.0);
        let runs: Vec<f64> = (0..40).map(|run| (10.0 + 0.1 * quantile(run)).exp()).collect();
        let bound = by_model(&runs, 0.01).expect("normal").ln();
        let logs: Vec<f64> = runs.iter().map(|value| value.ln()).collect();
        let (mean, variance) = mean_and_variance(&logs).expect("moments");
        let factor = (bound - mean) / variance.sqrt();
        assert!((factor / 2.941 - 1.0).abs() < 0.01, "{factor}");
        let found = of_values(&runs, Metric::Percentile(99.0), Some(0.004)).expect("a bound");
        assert_eq!((found.model, found.needed), (Some(BoundModel::LogNormal), None));
        // Too rare for 40 runs.
        let found = of_values(&runs, Metric::Percentile(99.0), Some(0.001)).expect("a bound");
        assert_eq!((found.model, found.needed), (None, Some(999)));
    }

    #[test]
    fn a_bound_is_by_the_runs_of_one_level() {
        let lower = spread(30, 80_000.0).chain(spread(20, 40_000.0));
        let figures = [figure("main/servo p99", lower)];
        assert_eq!(propose_bounds(&figures, &[], None)[0].runs, 20);
        let worse = figure("main/servo p99", spread(30, 40_000.0).chain(spread(8, 60_000.0)));
        let shift = super::super::level_shift(&worse, 30, 38);
        let step = LevelStep { figure: 0, at: 30, shift };
        let found = propose_bounds(&[worse], &[step], None);
        assert_eq!((found[0].runs, found[0].before_change), (30, true));
    }

    #[test]
    fn places_without_threads_are_those_of_measures() {
        let places = ["main/timer/cpu3", "main/timer/12", "main/timer", "main/cpu3", "a/b/c"];
        let measures = ["main/timer", "main/timer", "main/timer", "main/cpu3", "a/b/c"];
        assert_eq!(places.map(measure_of), measures);
        assert_eq!(series_of("main/servo/response"), "servo/response ");
        assert_eq!((series_of("main/timer"), series_of("main/response")), Default::default());
    }
}
