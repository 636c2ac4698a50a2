//! Published results beside those of a run: the same figure here, and whether the trend is
//! reproduced.
//!
//! A figure of one run has the interval of its samples: for a percentile the order statistics at
//! binomial ranks (Conover, "Practical Nonparametric Statistics", section 3.2), for a mean that of
//! the normal distribution. Both assume independent samples and are too narrow with bursts. They do
//! not include differences between runs: labs repeat runs for that.

use crate::Distribution;
use crate::probability::rank_at;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::{
    Compared, FigureReading, PhaseSummary, PublishedSummary, ResultSummary, SeriesSummary,
};
use punctual_core::published::{Relation, Right};
use punctual_core::{Metric, PublishedResult, PublishedResults, PublishedShape, Term};

/// The probability beyond each end of an interval, and its normal quantile.
const TAIL: f64 = 0.025;
const DEVIATIONS: f64 = 1.96;

/// A run: its phases, and the samples of a series by rank, by the indices of its phase and itself.
struct PublishedRun<'a> {
    phases: &'a [PhaseSummary],
    distribution: &'a dyn Fn(usize, usize) -> Option<Distribution>,
}

/// Compares published figures with those of a run.
pub(crate) fn compare_published(
    published: &PublishedResults,
    phases: &[PhaseSummary],
    distribution: &dyn Fn(usize, usize) -> Option<Distribution>,
) -> PublishedSummary {
    let run = PublishedRun { phases, distribution };
    let results = published.results.iter().map(|result| run.summarize_result(result)).collect();
    PublishedSummary { source: published.source.clone(), results }
}

impl PublishedRun<'_> {
    fn summarize_result(&self, result: &PublishedResult) -> ResultSummary {
        let measured_here = result.here.as_ref().map(|text| self.read(text));
        let shape = result.shape.as_ref().map(|text| self.decide_trend(text));
        let unknown = measured_here.as_ref().and_then(|here| here.as_ref().err().cloned());
        let (decided, unshaped) = match shape {
            Some(Ok(decided)) => (Some(decided), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let (reproduced, compared) = decided.unzip();
        ResultSummary {
            what: result.what.clone(),
            published: result.value.clone(),
            here: measured_here.and_then(Result::ok),
            shape: result.shape.clone(),
            reproduced: reproduced.flatten(),
            compared,
            reason: unshaped.or(unknown),
        }
    }

    fn read(&self, text: &str) -> Result<FigureReading, String> {
        let term: Term = text.parse().map_err(|why| format!("syntax error: {why}"))?;
        self.read_term(&term)
    }

    /// Whether a trend is reproduced, and the figures that show it: of an order the first two that
    /// contradict it, else the first that leave it undecided, else its last.
    fn decide_trend(&self, text: &str) -> Result<(Option<bool>, Compared), String> {
        let shapes =
            PublishedShape::parse_chain(text).map_err(|why| format!("syntax error: {why}"))?;
        let outcomes: Vec<_> =
            shapes.iter().map(|shape| self.compare_pair(shape)).collect::<Result<_, _>>()?;
        let first = |outcome| outcomes.iter().find(|(holds, _)| *holds == outcome);
        let decisive = first(Some(false)).or_else(|| first(None)).or(outcomes.last());
        decisive.cloned().ok_or_else(|| "no relation".to_owned())
    }

    /// Whether two figures have their relation. Undecided if the interval of their difference
    /// contains 0.
    fn compare_pair(&self, shape: &PublishedShape) -> Result<(Option<bool>, Compared), String> {
        let left = self.read_term(&shape.left)?;
        let (factor, right, of_right) = match &shape.right {
            Right::Number(number) => (1.0, *number, Some([*number, *number])),
            Right::Times(factor, term) => {
                let right = self.read_term(term)?;
                (*factor, right.value, right.interval)
            }
        };
        let interval = Option::zip(left.interval, of_right).map(|(of_left, of_right)| {
            difference_interval(
                left.value,
                of_left,
                factor * right,
                of_right.map(|end| factor * end),
            )
        });
        let holds = shape.relation.is_satisfied(left.value, factor * right);
        let is_open = shape.relation != Relation::About
            && interval.is_some_and(|[low, high]| low <= 0.0 && high >= 0.0);
        let relation = shape.relation.sign_text().to_owned();
        let compared =
            Compared { left: left.value, relation, factor, right, unit: left.unit, interval };
        Ok(((!is_open).then_some(holds), compared))
    }

    /// The value of a figure, or why there is none.
    fn read_term(&self, term: &Term) -> Result<FigureReading, String> {
        // A name may itself contain an `@`.
        let whole = self.find_figure(&term.of, None, term);
        match term.of.rsplit_once('@') {
            Some((of, phase)) if whole.is_err() => self.find_figure(of, Some(phase), term),
            _ => whole,
        }
    }

    fn find_figure(
        &self,
        of: &str,
        phase: Option<&str>,
        term: &Term,
    ) -> Result<FigureReading, String> {
        let phases = self.phases.iter().enumerate();
        let holding = phases.filter(|(_, p)| {
            phase.is_none_or(|phase| p.name == phase)
                && p.series.iter().any(|series| matches_series(of, &series.name))
        });
        let holding: Vec<(usize, &PhaseSummary)> = holding.collect();
        let (place, phase) = match holding.as_slice() {
            [] => return Err(format!("{of} was not measured")),
            [phase] => *phase,
            several => {
                let names: Vec<&str> =
                    several.iter().map(|(_, phase)| phase.name.as_str()).collect();
                return Err(format!(
                    "{of} was measured in {}: name one, like `{of}@{}: …`",
                    names.join(", "),
                    names[0]
                ));
            }
        };
        let stated = phase.measures.iter().filter(|measure| measure.name == of);
        if let Some(reading) = stated.flat_map(|measure| stated_figure(measure, term)).next() {
            return Ok(reading);
        }
        let series: Vec<(usize, &SeriesSummary)> = phase
            .series
            .iter()
            .enumerate()
            .filter(|(_, one)| matches_series(of, &one.name))
            .collect();
        self.of_series(place, &series, term)
    }
}

/// The interval of `a − b` from those of both (Zou and Donner 2008, as in [`crate::compare`]).
fn difference_interval(
    a: f64,
    [a_low, a_high]: [f64; 2],
    b: f64,
    [b_low, b_high]: [f64; 2],
) -> [f64; 2] {
    let seen_difference = a - b;
    [
        seen_difference - (a - a_low).hypot(b_high - b),
        seen_difference + (a_high - a).hypot(b - b_low),
    ]
}

/// Whether the pattern names the series or a parent of it; `*` matches any part.
fn matches_series(pattern: &str, series: &str) -> bool {
    let mut parts = series.split('/');
    pattern
        .split('/')
        .all(|requested| parts.next().is_some_and(|part| requested == "*" || requested == part))
}

fn stated_figure(measure: &MeasureMeta, term: &Term) -> Option<FigureReading> {
    let figure = measure.notes.figures.iter().find(|figure| figure.name == term.figure)?;
    let (value, unit) = (figure.value, figure.unit.clone());
    value.is_finite().then(|| FigureReading {
        of: term.to_string(),
        value,
        unit,
        count: figure.count,
        series: 1,
        interval: figure.interval,
    })
}

impl PublishedRun<'_> {
    /// A figure of series of one phase, with its interval if it is of a single series.
    fn of_series(
        &self,
        phase: usize,
        series: &[(usize, &SeriesSummary)],
        term: &Term,
    ) -> Result<FigureReading, String> {
        let metric: Metric = term.figure.parse().map_err(|_| {
            format!("`{}` is neither a figure of a series nor one of the workload", term.figure)
        })?;
        let measured: Vec<(usize, &SeriesSummary)> =
            series.iter().copied().filter(|(_, series)| series.count > 0).collect();
        let measured_series: Vec<&SeriesSummary> =
            measured.iter().map(|(_, series)| *series).collect();
        let mut reading = pool_series(&measured_series, metric, term)?;
        if let [(place, series)] = measured.as_slice() {
            let distribution = || (self.distribution)(phase, *place);
            reading.interval = figure_interval(series, metric, distribution);
        }
        Ok(reading)
    }
}

/// The interval of a figure of one series; `None` if its samples do not bound it.
fn figure_interval(
    series: &SeriesSummary,
    metric: Metric,
    distribution: impl Fn() -> Option<Distribution>,
) -> Option<[f64; 2]> {
    match metric {
        Metric::Percentile(p) => of_percentile(&distribution()?, p),
        Metric::Mean => {
            let error = series.stddev? / (series.count as f64).sqrt() * DEVIATIONS;
            series.mean.map(|mean| [mean - error, mean + error])
        }
        _ => None,
    }
}

/// The samples at binomial ranks.
fn of_percentile(distribution: &Distribution, percentile: f64) -> Option<[f64; 2]> {
    let n = distribution.count();
    let at_rank_from_top = |probability| rank_at(n as f64, 1.0 - percentile / 100.0, probability);
    let at = |rank: u64| distribution.at_rank((n + 1).checked_sub(rank)?);
    let high = Some(at_rank_from_top(TAIL).floor() as u64).filter(|rank| *rank > 0).and_then(at)?;
    let low =
        Some(at_rank_from_top(1.0 - TAIL).ceil() as u64).filter(|rank| *rank <= n).and_then(at)?;
    Some([low.0.ns() as f64, high.1.ns() as f64])
}

/// A figure of several series: the smallest minimum, the largest maximum, the mean of all samples,
/// the sum of counts, the median otherwise.
fn pool_series(
    measured: &[&SeriesSummary],
    metric: Metric,
    term: &Term,
) -> Result<FigureReading, String> {
    if measured.is_empty() {
        return Err(format!("{} was not measured", term.of));
    }
    let values: Option<Vec<f64>> =
        measured.iter().map(|series| figure_of_series(series, metric)).collect();
    let mut values =
        values.ok_or_else(|| format!("too few samples of {} for {metric}", term.of))?;
    let count: u64 = measured.iter().map(|series| series.count).sum();
    let value = match metric {
        Metric::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Metric::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Metric::Mean => {
            let sum: f64 =
                values.iter().zip(measured).map(|(mean, series)| mean * series.count as f64).sum();
            sum / count as f64
        }
        metric if !metric.is_time() => values.iter().sum(),
        _ => {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        }
    };
    let unit = if metric.is_time() { "ns" } else { "count" };
    Ok(FigureReading {
        of: term.to_string(),
        value,
        unit: unit.to_owned(),
        count: Some(count),
        series: measured.len(),
        interval: None,
    })
}

fn figure_of_series(series: &SeriesSummary, metric: Metric) -> Option<f64> {
    let usage = || series.usage.known_value();
    let to_float = |n: i64| n as f64;
    match metric {
        Metric::Min => series.min.map(to_float),
        Metric::Max => series.max.map(to_float),
        Metric::Mean => series.mean,
        Metric::Stddev => series.stddev,
        Metric::Percentile(p) => match p {
            50.0 => series.median.map(to_float),
            p => series
                .percentiles
                .get(&crate::percentiles::percentile_key(p))
                .copied()
                .map(to_float),
        },
        Metric::CorrectedPercentile(p) => {
            let corrected = series.corrected.as_ref()?;
            corrected.percentiles.get(&crate::percentiles::percentile_key(p)).copied().map(to_float)
        }
        Metric::Count => Some(series.count as f64),
        Metric::Overruns => series.overruns.map(|n| n as f64),
        Metric::Skipped => series.skipped.map(|n| n as f64),
        Metric::Lost => series.lost.map(|n| n as f64),
        Metric::Faults => usage().map(|u| u.minor_faults.saturating_add(u.major_faults) as f64),
        Metric::Switches => usage().map(|u| u.involuntary_switches as f64),
    }
}

#[cfg(test)]
mod tests;
