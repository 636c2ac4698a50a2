//! Evaluates stated requirements: met, not met, or undecided, never guessed.
//!
//! A lost sample may have had any latency. So each figure is known as a range: a point if
//! everything is known, wider if samples were lost, the count is too small for the percentile, or
//! the run was cut off. A requirement is met if it holds at both ends of the range, not met if it
//! fails at both, and undecided otherwise. A sample unfinished at the end of the measurement
//! ([`SeriesData::hanging_sample`]) is known by its lower bound. A percentile that the count does
//! not support is in no table ([`percentiles`]) and decides no requirement either.

use crate::Distribution;
use crate::percentiles;
use punctual_bundle::SeriesMeta;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, ENTRIES_WORKLOAD, UNCLEAR_PERIOD};
use punctual_bundle::state::{SeriesState, ThreadUsage};
use punctual_bundle::summary::{RequirementSummary, VerdictWord};
use punctual_core::{BoundComparison, Fact, Metric, Nanos, Requirement, SeriesData};
use std::ops::RangeInclusive;

/// The evidence of a series for a requirement.
#[derive(Clone, Copy)]
pub(crate) struct RequirementEvidence<'a> {
    pub meta: &'a SeriesMeta,
    pub state: &'a SeriesState,
    /// The distribution as measured.
    pub plain: &'a Distribution,
    /// The corrected distribution; `None` if it does not differ.
    pub corrected: Option<&'a Distribution>,
    /// Why samples besides the lost ones may be missing; `None` if it was measured to its end.
    pub missing: Option<&'a str>,
}

/// The reason for a run without an end.
pub(crate) const CUT_OFF: &str = "the run was cut off: what followed is unknown";

/// The range in which a figure lies.
struct Range {
    low: f64,
    high: f64,
    why: String,
}

impl Range {
    fn from_figure(figure: f64) -> Range {
        Range { low: figure, high: figure, why: String::new() }
    }
    fn from_ends(low: f64, high: f64, why: impl Into<String>) -> Range {
        Range { low, high, why: why.into() }
    }
}

/// Evaluates one requirement as written.
pub(crate) fn evaluate_requirement(
    text: &str,
    evidence: &RequirementEvidence,
) -> RequirementSummary {
    let undecided = |reason: String| RequirementSummary {
        requirement: text.to_owned(),
        verdict: VerdictWord::Undecided,
        figure: None,
        beyond: None,
        reason: Some(reason),
    };
    let requirement: Requirement = match text.parse() {
        Ok(requirement) => requirement,
        Err(error) => return undecided(format!("syntax error: {error}")),
    };
    let mut decided = match metric_range(requirement.metric, evidence) {
        Ok(range) => decide_range(text, &requirement, range),
        Err(reason) => undecided(reason),
    };
    // A lower bound may already decide.
    let data = &evidence.state.data;
    if let Some(one) =
        data.hanging_sample().filter(|one| !one.ended && Some(one.at_least) > data.max)
        && (requirement.metric, decided.verdict) == (Metric::Max, VerdictWord::NotMet)
    {
        decided.reason = Some(format!("at least {}, not ended", one.at_least.to_readable()));
    }
    RequirementSummary { beyond: count_beyond(&requirement, evidence), ..decided }
}

/// The number of samples above a bound on latencies.
fn count_beyond(requirement: &Requirement, evidence: &RequirementEvidence) -> Option<u64> {
    let is_latency = matches!(
        requirement.metric,
        Metric::Max | Metric::Percentile(_) | Metric::CorrectedPercentile(_)
    );
    let is_upper =
        matches!(requirement.comparison, BoundComparison::Less | BoundComparison::LessOrEqual);
    let bound = Nanos(requirement.bound);
    let hanging = evidence.state.data.hanging_sample().filter(|one| one.at_least > bound);
    (is_latency && is_upper)
        .then(|| evidence.plain.count_above(bound) + u64::from(hanging.is_some()))
}

/// Compares a range with the bound.
fn decide_range(text: &str, requirement: &Requirement, range: Range) -> RequirementSummary {
    let Requirement { comparison, bound, .. } = *requirement;
    let bound = bound as f64;
    let at_ends =
        (comparison.is_satisfied(range.low, bound), comparison.is_satisfied(range.high, bound));
    let verdict = match at_ends {
        // Equality at one end of a wide range decides nothing, but a bound outside of it does.
        _ if comparison == BoundComparison::Equal && range.low < range.high => {
            if bound < range.low || bound > range.high {
                VerdictWord::NotMet
            } else {
                VerdictWord::Undecided
            }
        }
        (true, true) => VerdictWord::Met,
        (false, false) => VerdictWord::NotMet,
        _ => VerdictWord::Undecided,
    };
    // The deciding end: the worse one if met, the better one if not.
    let upper = matches!(
        comparison,
        BoundComparison::Less | BoundComparison::LessOrEqual | BoundComparison::Equal
    );
    let deciding = if upper == (verdict == VerdictWord::Met) { range.high } else { range.low };
    let (figure, reason) = match verdict {
        VerdictWord::Undecided if range.why.is_empty() => (
            None,
            Some(format!(
                "it lies between {} and {} ns, the resolution of the histogram",
                range.low, range.high
            )),
        ),
        VerdictWord::Undecided => (None, Some(range.why)),
        // Both ends in one bucket of the histogram: the percentile is its upper end, as everywhere.
        _ if range.why.is_empty() => (Some(range.high), None),
        _ => (Some(deciding), Some(format!("decided although {}", range.why))),
    };
    RequirementSummary {
        requirement: text.to_owned(),
        verdict,
        figure: figure.filter(|f| f.is_finite()),
        beyond: None,
        reason,
    }
}

/// No interruption of the CPU, as far as known.
fn nothing_came(metric: Metric, evidence: &RequirementEvidence) -> Range {
    let lost = at_least(evidence.state.data.losses.dropped, evidence);
    match metric {
        Metric::Lost => lost,
        _ if lost.high > 0.0 => Range::from_ends(0.0, f64::INFINITY, "entries were lost"),
        _ => Range::from_figure(0.0),
    }
}

/// The range of the metric, or why it is unknown.
fn metric_range(metric: Metric, evidence: &RequirementEvidence) -> Result<Range, String> {
    let losses = &evidence.state.data.losses;
    if let Some(why) = evidence.meta.details.get(UNCLEAR_PERIOD) {
        return Err(why.clone());
    }
    if metric == Metric::Count {
        return Ok(at_least(losses.recorded, evidence));
    }
    if !evidence.meta.has_requested_scheduling() {
        return Err(format!(
            "it ran as {}, not with the requested real-time scheduling",
            evidence.meta.scheduling
        ));
    }
    if losses.recorded == 0 && evidence.meta.workload == ENTRIES_WORKLOAD {
        return Ok(nothing_came(metric, evidence));
    }
    if losses.recorded == 0 && evidence.state.data.hanging_sample().is_none() {
        return Err("nothing was measured".into());
    }
    match metric {
        Metric::Count => Ok(at_least(losses.recorded, evidence)),
        Metric::Overruns | Metric::Skipped | Metric::Lost if !evidence.meta.are_losses_known() => {
            Err(format!("the record has no {metric}"))
        }
        Metric::Overruns => count_overruns(evidence.meta, &evidence.state.data)
            .map(|range| range_of_count(range, evidence))
            .ok_or_else(|| "the record does not distinguish overruns".to_owned()),
        Metric::Skipped => {
            let most_skipped = losses.skipped.saturating_add(releases_passed(&evidence.state.data));
            // A program may catch up on them.
            let is_attached = evidence.meta.workload == ATTACHED_WORKLOAD;
            Ok(range_of_count(
                if is_attached { losses.skipped } else { most_skipped }..=most_skipped,
                evidence,
            ))
        }
        Metric::Lost => Ok(at_least(losses.dropped, evidence)),
        Metric::Faults => usage_range(evidence, |u| u.minor_faults.saturating_add(u.major_faults)),
        Metric::Switches => usage_range(evidence, |u| u.involuntary_switches),
        Metric::Percentile(p) => percentile_range(p, evidence.plain, evidence),
        Metric::CorrectedPercentile(p) => {
            percentile_range(p, evidence.corrected.unwrap_or(evidence.plain), evidence)
        }
        Metric::Min | Metric::Mean | Metric::Max | Metric::Stddev => moment_range(metric, evidence),
    }
}

/// The overruns of a series. A workload has no cycle for a release that passed, so each is a
/// skipped one. Of the releases that passed during an unfinished cycle, the first is an overrun,
/// and the others will be unless a cycle catches up. `None` if the record of a program does not
/// distinguish the two.
pub(crate) fn count_overruns(meta: &SeriesMeta, data: &SeriesData) -> Option<RangeInclusive<u64>> {
    let (losses, passed) = (&data.losses, releases_passed(data));
    match meta.workload == ATTACHED_WORKLOAD {
        true => {
            losses.overruns.map(|of| of.saturating_add(passed.min(1))..=of.saturating_add(passed))
        }
        false => {
            let overrun_count = losses.overruns.unwrap_or(losses.skipped).saturating_add(passed);
            Some(overrun_count..=overrun_count)
        }
    }
}

fn releases_passed(data: &SeriesData) -> u64 {
    data.hanging_sample().map_or(0, |one| one.passed)
}

/// Why figures over all samples are incomplete; `None` if they are not.
fn missing_reason(evidence: &RequirementEvidence) -> Option<String> {
    let data = &evidence.state.data;
    if let Some(why) = evidence.missing {
        return Some(why.to_owned());
    }
    if let Some(one) = data.hanging_sample().filter(|one| !one.ended) {
        return Some(format!(
            "the last one had lasted {} at the end, and not ended: how long it takes is unknown",
            one.lasted.to_readable()
        ));
    }
    let dropped = data.losses.dropped;
    (dropped > 0).then(|| format!("{dropped} samples were lost: any of them may violate it"))
}

/// The range of a count that only grows during a run.
fn at_least(count: u64, evidence: &RequirementEvidence) -> Range {
    range_of_count(count..=count, evidence)
}

/// The same for a count that is not known exactly.
fn range_of_count(count: RangeInclusive<u64>, evidence: &RequirementEvidence) -> Range {
    let (low, high) = (*count.start() as f64, *count.end() as f64);
    match evidence.missing {
        Some(why) => Range::from_ends(low, f64::INFINITY, why),
        None if low == high => Range::from_figure(low),
        None => Range::from_ends(low, high, missing_reason(evidence).unwrap_or_default()),
    }
}

fn usage_range(
    evidence: &RequirementEvidence,
    count: impl Fn(&ThreadUsage) -> u64,
) -> Result<Range, String> {
    match &evidence.state.usage {
        Fact::Known(usage) => Ok(at_least(count(usage), evidence)),
        Fact::Unavailable(why) => Err(format!("the kernel's count is unavailable: {why}")),
        Fact::NotAsked => Err("the kernel's count for the measuring thread was not taken".into()),
    }
}

fn moment_range(metric: Metric, evidence: &RequirementEvidence) -> Result<Range, String> {
    let data = &evidence.state.data;
    let nanos = |n: Option<Nanos>| n.map(|n| n.ns() as f64);
    let figure = match metric {
        Metric::Min => nanos(data.min),
        Metric::Max => nanos(data.longest_latency()),
        Metric::Mean => data.mean(),
        _ => data.stddev(),
    };
    let no_figure = || match data.hanging_sample() {
        Some(_) => missing_reason(evidence).unwrap_or_default(),
        None => format!("the record has no {metric}"),
    };
    let figure = figure.ok_or_else(no_figure)?;
    let Some(why) = missing_reason(evidence) else { return Ok(Range::from_figure(figure)) };
    let (low, high) = match metric {
        Metric::Min if data.losses.dropped == 0 && evidence.missing.is_none() => {
            let hanging =
                data.hanging_sample().map_or(f64::INFINITY, |one| one.at_least.ns() as f64);
            (figure.min(hanging), figure)
        }
        Metric::Max => (figure, f64::INFINITY),
        Metric::Min => (f64::NEG_INFINITY, figure),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Ok(Range::from_ends(low, high, why))
}

fn percentile_range(
    percentile: f64,
    of: &Distribution,
    evidence: &RequirementEvidence,
) -> Result<Range, String> {
    let data = &evidence.state.data;
    // As many samples as existed, including those added by the correction.
    let hanging = data.hanging_sample().map_or(0, |_| 1);
    let (n, dropped) = (of.count(), data.losses.dropped.saturating_add(hanging));
    if n == 0 && hanging == 0 {
        return Err("only minimum, mean and maximum were recorded, no distribution".into());
    }
    if let Some(why) = evidence.missing {
        return Ok(Range::from_ends(f64::NEG_INFINITY, f64::INFINITY, why));
    }
    let needed = percentiles::samples_needed(percentile);
    if data.sample_count() < needed {
        return Err(format!(
            "p{percentile} needs {needed} samples and there are {}",
            data.sample_count()
        ));
    }
    let rank = percentiles::percentile_rank(percentile, n.saturating_add(dropped));
    // The lost samples may all have been shorter than any other, or all longer.
    let low = rank.checked_sub(dropped).filter(|rank| *rank > 0).and_then(|rank| of.at_rank(rank));
    let low = low.map_or(f64::NEG_INFINITY, |(low, _)| low.ns() as f64);
    let high = of.at_rank(rank).map_or(f64::INFINITY, |(_, high)| high.ns() as f64);
    Ok(Range::from_ends(low, high, missing_reason(evidence).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
