//! A series against its partner: every figure with its interval, the tests, and the conclusions.

use super::extreme::Extremes;
use super::gate::{DifferenceGate, GateKind};
use super::quantile::{self, Interval, Quantile, difference_interval, estimate_spreads};
use super::run::SideRuns;
use super::whole;
use crate::percentiles;
use punctual_bundle::comparison::{
    Basis, Difference, MetricComparison, RatioInterval, SeriesComparison, SideFigures,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Metric;

/// One minus the confidence of an interval, and the family-wise error rate of a comparison.
pub const ERROR: f64 = 0.05;
/// The figures of every comparison.
pub const METRICS: [Metric; 5] = [
    Metric::Percentile(50.0),
    Metric::Percentile(99.0),
    Metric::Percentile(99.9),
    Metric::Percentile(99.99),
    Metric::Max,
];
/// The maximum factor of data that is suggested.
const MORE_DATA_MAX: f64 = 1_000.0;

/// A series on both sides.
#[derive(Debug)]
pub struct SeriesPair {
    pub a: SideRuns,
    pub b: SideRuns,
}

/// The source of a figure's difference.
enum DifferenceSource<'a> {
    Quantiles(Quantile<'a>, Quantile<'a>),
    Extremes(Extremes<'a>),
}

impl DifferenceSource<'_> {
    /// Why a test has no result.
    fn undecidable_reason(&self) -> Option<&'static str> {
        match self {
            DifferenceSource::Extremes(Extremes::Single(_)) => {
                Some("one maximum on each side has no interval")
            }
            DifferenceSource::Extremes(extremes) if !extremes.can_decide(ERROR) => {
                Some("too few samples are known to test it")
            }
            _ => None,
        }
    }
    fn shown_values(&self) -> [f64; 2] {
        match self {
            DifferenceSource::Quantiles(a, b) => [a.value, b.value],
            DifferenceSource::Extremes(extremes) => extremes.shown_values(),
        }
    }
    fn difference_interval(&self, error: f64, step: f64) -> Interval {
        match self {
            DifferenceSource::Quantiles(a, b) => difference_interval(a, b, error),
            DifferenceSource::Extremes(extremes) => extremes.difference_interval(error),
        }
        .widen_by(step)
    }
    /// The interval of `b / a`, wider by the clock's resolution in `b`; `None` if no ratio exists.
    fn ratio_interval(&self, error: f64, step: f64) -> Option<Interval> {
        let Interval { low, high } = match self {
            DifferenceSource::Quantiles(a, b) => quantile::ratio_interval(a, b, error),
            DifferenceSource::Extremes(extremes) => extremes.ratio_interval(error),
        }?;
        let [_, b] = self.shown_values();
        Some(Interval { low: low * ((b - step) / b).max(0.0), high: high * ((b + step) / b) })
    }
}

impl SeriesPair {
    fn clock_resolution(&self) -> i64 {
        self.a.coarsest_step().max(self.b.coarsest_step())
    }

    /// Whether the figures include the samples hidden by missed periods.
    fn is_corrected(&self) -> bool {
        self.a.measured.is_some() || self.b.measured.is_some()
    }

    /// How the dependence between samples can be taken into account.
    fn dependence_basis(&self) -> Basis {
        if self.a.runs.len() + self.b.runs.len() > 2 {
            Basis::Runs
        } else if [&self.a, &self.b]
            .iter()
            .all(|side| side.runs.iter().all(|run| run.shows_order()))
        {
            Basis::Blocks
        } else {
            Basis::Unknown
        }
    }

    /// The difference of a figure, or why the data are not sufficient.
    fn find_difference(&self, metric: Metric) -> Result<DifferenceSource<'_>, String> {
        let Metric::Percentile(percentile) = metric else {
            return Extremes::from_sides(&self.a, &self.b)
                .map(DifferenceSource::Extremes)
                .ok_or_else(|| "no maximum is known".to_owned());
        };
        if self.a.count() == 0 || self.b.count() == 0 {
            let side = if self.a.count() == 0 { "the first side" } else { "the other side" };
            return Err(format!("{side} has no distribution of samples"));
        }
        let (needed, has) = (
            percentiles::samples_needed(percentile),
            self.a.measured_count().min(self.b.measured_count()),
        );
        if has < needed {
            return Err(format!("it needs {needed} samples on each side and one side has {has}"));
        }
        let [of_a, of_b] = estimate_spreads(&self.a, &self.b, percentile);
        let quantiles = Quantile::from_side(&self.a, percentile, of_a)
            .zip(Quantile::from_side(&self.b, percentile, of_b));
        quantiles
            .map(|(a, b)| DifferenceSource::Quantiles(a, b))
            .ok_or_else(|| "there is no such rank".to_owned())
    }

    fn compare_metric(&self, metric: Metric) -> MetricComparison {
        let mut row = MetricComparison {
            metric: metric.to_string(),
            a: None,
            b: None,
            difference: None,
            low: None,
            high: None,
            relative: None,
            ratio: None,
            measured: None,
            p: None,
            p_adjusted: None,
            verdict: Difference::Unsupported,
            more_data: None,
            reason: None,
        };
        let source = match self.find_difference(metric) {
            Ok(known) => known,
            Err(why) => return MetricComparison { reason: Some(why), ..row },
        };
        let step = self.clock_resolution() as f64;
        let [a, b] = source.shown_values();
        let interval = source.difference_interval(ERROR, step);
        let finite = |end: f64| end.is_finite().then_some(end);
        (row.a, row.b, row.difference) = (Some(a), Some(b), Some(b - a));
        (row.low, row.high) = (finite(interval.low), finite(interval.high));
        row.relative = (a > 0.0).then(|| (b - a) / a);
        if a > 0.0 && b > 0.0 {
            let bounds = source.ratio_interval(ERROR, step).unwrap_or(Interval::UNBOUNDED);
            let low = Some(bounds.low).filter(|low| low.is_finite() && *low > 0.0);
            row.ratio = Some(RatioInterval { at: b / a, low, high: finite(bounds.high) });
        }
        if let Metric::Percentile(percentile) = metric {
            let measured_value =
                |side: &SideRuns, value: f64| side.measured_at(percentile).unwrap_or(value);
            row.measured = self
                .is_corrected()
                .then(|| [measured_value(&self.a, a), measured_value(&self.b, b)]);
        }
        if let Some(why) = source.undecidable_reason() {
            return MetricComparison { reason: Some(why.to_owned()), ..row };
        }
        row.p = Some(p_value(|error| source.difference_interval(error, step)));
        row.verdict = Difference::NoSignificantDifference;
        let excludes_zero = interval.low > 0.0 || interval.high < 0.0;
        row.more_data = if excludes_zero { None } else { more_data(&source, interval, step) };
        row
    }

    /// The comparison without the results over all tests, which [`super::multiple`] adds.
    pub fn compare_series(&self, side: usize, series: &str, partner: &str) -> SeriesComparison {
        let basis = self.dependence_basis();
        let [of_a, of_b] = estimate_spreads(&self.a, &self.b, 50.0);
        SeriesComparison {
            side,
            series: series.to_owned(),
            partner: partner.to_owned(),
            a: side_figures(&self.a, of_a.factor, basis),
            b: side_figures(&self.b, of_b.factor, basis),
            basis,
            corrected: self.is_corrected(),
            metrics: METRICS.iter().map(|metric| self.compare_metric(*metric)).collect(),
            distribution: whole::test_distribution(&self.a, &self.b, ERROR),
            superiority: whole::estimate_superiority(&self.a, &self.b),
            resolution: self.clock_resolution(),
        }
    }

    /// The outcome of a requirement on the difference: verdict, the deciding end of the interval,
    /// the margin in ns, and the reason.
    pub(crate) fn judge_gate(
        &self,
        gate: &DifferenceGate,
        among: usize,
    ) -> (VerdictWord, Option<f64>, Option<f64>, String) {
        let source = match self.find_difference(gate.metric) {
            Ok(known) => known,
            Err(why) => return (VerdictWord::Undecided, None, None, why),
        };
        let margin = gate.margin.margin_in_ns(source.shown_values()[0]);
        if let Some(why) = source.undecidable_reason() {
            let advice = format!("{why}: give several runs for each side");
            return (VerdictWord::Undecided, None, Some(margin), advice);
        }
        // A difference of the clock's resolution is no evidence of a regression, and does not rule
        // one out.
        let step = self.clock_resolution() as f64;
        let (verdict, bound, why) = gate
            .judge_interval(margin, among, ERROR, |error| source.difference_interval(error, step));
        // The true interval is wider: *not shown* remains so, *shown* is no longer certain.
        let sure = self.dependence_basis() != Basis::Unknown
            || (gate.kind, verdict) == (GateKind::FailIfWorse, VerdictWord::Met);
        if sure {
            return (verdict, bound, Some(margin), why);
        }
        let advice =
            "the dependence between samples is unknown: give several runs for each side".to_owned();
        (VerdictWord::Undecided, None, Some(margin), advice)
    }
}

fn side_figures(side: &SideRuns, factor: f64, basis: Basis) -> SideFigures {
    let sum = |f: fn(&super::run::ComparedRun) -> u64| {
        side.runs.iter().map(f).fold(0u64, u64::saturating_add)
    };
    SideFigures {
        runs: side.runs.len(),
        count: sum(|run| run.count),
        lost: sum(|run| run.lost),
        overruns: sum(|run| run.overruns),
        duration: side.measured_duration(),
        effective: (basis != Basis::Unknown && side.count() > 0)
            .then(|| side.count() as f64 / factor),
        curve: side.ladder.tail_curve(),
    }
}

/// The smallest error at which the interval excludes 0: a test by inversion. 1 without a
/// difference.
fn p_value(interval: impl Fn(f64) -> Interval) -> f64 {
    let holds = |error: f64| {
        let Interval { low, high } = interval(error);
        low <= 0.0 && high >= 0.0
    };
    let (mut low, mut high) = (1e-12f64.ln(), 0.0);
    if !holds(1e-12) {
        return 1e-12;
    }
    if holds(1.0) {
        return 1.0;
    }
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if holds(f64::exp(middle)) { low = middle } else { high = middle }
    }
    high.exp()
}

/// The factor of data that would make it significant: intervals shrink with the root of the data.
fn more_data(known: &DifferenceSource, interval: Interval, step: f64) -> Option<f64> {
    let [a, b] = known.shown_values();
    let seen_difference = b - a;
    let times = match known {
        DifferenceSource::Extremes(extremes) => extremes.more_data(ERROR)?,
        DifferenceSource::Quantiles(..) => {
            let reach = if seen_difference > 0.0 {
                seen_difference - interval.low
            } else {
                interval.high - seen_difference
            } - step;
            let excess = seen_difference.abs() - step;
            if excess <= 0.0 || !reach.is_finite() {
                return None;
            }
            (reach / excess).powi(2)
        }
    };
    (times > 1.0 && times <= MORE_DATA_MAX).then_some(times)
}
