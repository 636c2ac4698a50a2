//! Published results beside those of a run: the same figure here, and whether the shape came out.

use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::{
    Compared, PhaseSummary, PublishedSummary, Reading, ResultSummary, SeriesSummary,
};
use punctual_core::published::Right;
use punctual_core::{Metric, Published, PublishedResult, Shape, Term};

/// Compares published figures with those of a run.
pub fn compare(published: &Published, phases: &[PhaseSummary]) -> PublishedSummary {
    let results = published.results.iter().map(|result| of(result, phases)).collect();
    PublishedSummary { source: published.source.clone(), results }
}

fn of(result: &PublishedResult, phases: &[PhaseSummary]) -> ResultSummary {
    let here = result.here.as_ref().map(|text| read(text, phases));
    let shape = result.shape.as_ref().map(|text| decide(text, phases));
    let unknown = here.as_ref().and_then(|here| here.as_ref().err().cloned());
    let (decided, unshaped) = match shape {
        Some(Ok(decided)) => (Some(decided), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let (reproduced, compared) = decided.unzip();
    ResultSummary {
        what: result.what.clone(),
        published: result.value.clone(),
        here: here.and_then(Result::ok),
        shape: result.shape.clone(),
        reproduced,
        compared,
        reason: unshaped.or(unknown),
    }
}

fn read(text: &str, phases: &[PhaseSummary]) -> Result<Reading, String> {
    let term: Term = text.parse().map_err(|why| format!("syntax error: {why}"))?;
    reading(&term, phases)
}

/// Whether a trend is reproduced, and the figures that show it.
fn decide(text: &str, phases: &[PhaseSummary]) -> Result<(bool, Compared), String> {
    let shape: Shape = text.parse().map_err(|why| format!("syntax error: {why}"))?;
    let left = reading(&shape.left, phases)?;
    let (factor, right) = match &shape.right {
        Right::Number(number) => (1.0, *number),
        Right::Times(factor, term) => (*factor, reading(term, phases)?.value),
    };
    let holds = shape.relation.holds(left.value, factor * right);
    let relation = shape.relation.sign().to_owned();
    Ok((holds, Compared { left: left.value, relation, factor, right, unit: left.unit }))
}

/// The value of a figure, or why there is none.
fn reading(term: &Term, phases: &[PhaseSummary]) -> Result<Reading, String> {
    // A name may hold an `@` itself.
    let whole = found(&term.of, None, term, phases);
    match term.of.rsplit_once('@') {
        Some((of, phase)) if whole.is_err() => found(of, Some(phase), term, phases),
        _ => whole,
    }
}

fn found(
    of: &str,
    phase: Option<&str>,
    term: &Term,
    phases: &[PhaseSummary],
) -> Result<Reading, String> {
    let phases: Vec<&PhaseSummary> =
        phases.iter().filter(|p| phase.is_none_or(|phase| p.name == phase)).collect();
    let holding =
        phases.iter().filter(|phase| phase.series.iter().any(|series| matches(of, &series.name)));
    let holding: Vec<&&PhaseSummary> = holding.collect();
    let phase = match holding.as_slice() {
        [] => return Err(format!("{of} was not measured")),
        [phase] => phase,
        several => {
            let names: Vec<&str> = several.iter().map(|phase| phase.name.as_str()).collect();
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
    let series: Vec<&SeriesSummary> =
        phase.series.iter().filter(|series| matches(of, &series.name)).collect();
    of_series(&series, term)
}

/// Whether the pattern names the series or what stands above it; `*` stands for any part.
fn matches(pattern: &str, series: &str) -> bool {
    let mut parts = series.split('/');
    pattern
        .split('/')
        .all(|requested| parts.next().is_some_and(|part| requested == "*" || requested == part))
}

fn stated_figure(measure: &MeasureMeta, term: &Term) -> Option<Reading> {
    let figure = measure.notes.figures.iter().find(|figure| figure.name == term.figure)?;
    let (value, unit) = (figure.value, figure.unit.clone());
    value.is_finite().then(|| Reading {
        of: term.to_string(),
        value,
        unit,
        count: figure.count,
        series: 1,
    })
}

/// A figure of several series: the least of minima, the largest of maxima, the mean of all samples,
/// the sum of counts, the median of whatever else.
fn of_series(series: &[&SeriesSummary], term: &Term) -> Result<Reading, String> {
    let metric: Metric = term.figure.parse().map_err(|_| {
        format!("`{}` is neither a figure of a series nor one of the workload", term.figure)
    })?;
    let measured: Vec<&&SeriesSummary> = series.iter().filter(|series| series.count > 0).collect();
    if measured.is_empty() {
        return Err(format!("{} was not measured", term.of));
    }
    let values: Option<Vec<f64>> = measured.iter().map(|series| figure(series, metric)).collect();
    let mut values =
        values.ok_or_else(|| format!("too few samples of {} for {metric}", term.of))?;
    let count: u64 = measured.iter().map(|series| series.count).sum();
    let value = match metric {
        Metric::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Metric::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Metric::Mean => {
            let sum: f64 =
                values.iter().zip(&measured).map(|(mean, series)| mean * series.count as f64).sum();
            sum / count as f64
        }
        metric if !metric.is_time() => values.iter().sum(),
        _ => {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        }
    };
    let unit = if metric.is_time() { "ns" } else { "count" };
    Ok(Reading {
        of: term.to_string(),
        value,
        unit: unit.to_owned(),
        count: Some(count),
        series: measured.len(),
    })
}

fn figure(series: &SeriesSummary, metric: Metric) -> Option<f64> {
    let usage = || series.usage.known();
    let of = |n: i64| n as f64;
    match metric {
        Metric::Min => series.min.map(of),
        Metric::Max => series.max.map(of),
        Metric::Mean => series.mean,
        Metric::Stddev => series.stddev,
        Metric::Percentile(p) => match p {
            50.0 => series.median.map(of),
            p => series.percentiles.get(&crate::percentiles::key(p)).copied().map(of),
        },
        Metric::CorrectedPercentile(p) => {
            let corrected = series.corrected.as_ref()?;
            corrected.percentiles.get(&crate::percentiles::key(p)).copied().map(of)
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
