//! The page's data for its script: JSON inside `<script type="application/json">`, escaped so that
//! it cannot end the element.

use super::account;
use super::breakdown::Breakdown;
use super::curve::{BinRun, Curve};
use super::gather::{PageSeries, SeriesLine};
use super::over_time::{self, PlotSource};
use super::percentiles::PER_DECADE;
use super::recording::section::RecordingData;
use super::scale::Scale;
use super::style::CurveStyle;
use super::{PageLimits, ReportInput};
use crate::format::count_text;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, DEADLINE, is_latency};
use punctual_bundle::summary::RequirementSummary;
use punctual_core::{BoundComparison, CauseKind, Clock, ClockNs, Nanos, Requirement};
use punctual_explain::answer::thread_relevance;
use serde::Serialize;
use std::collections::BTreeSet;

/// All data. Latencies are integers in ns; times are integers in µs since the zero of their series.
#[derive(Serialize)]
pub(crate) struct EmbeddedData<'a> {
    /// Points of a percentile curve in each decade.
    per_decade: usize,
    /// The timebase of latencies for the titles of axes, unless it is the system's own.
    timebase: Option<&'static str>,
    /// The series initially shown over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    lead: Option<usize>,
    /// The main causes of explained samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<EmbeddedCause>,
    /// Required bounds of latencies, ascending.
    bounds: Vec<i64>,
    /// Deadlines of threads of programs, ascending.
    deadlines: Vec<i64>,
    /// The initial scale of the histogram.
    scale: Scale,
    /// Whether each group is initially one curve.
    merge: bool,
    /// Whether a group is never one curve.
    apart: bool,
    groups: Vec<GroupData<'a>>,
    series: Vec<EmbeddedSeries<'a>>,
    recording: RecordingData,
    account: &'a account::AccountData,
}

/// A cause, with its colour.
#[derive(Serialize)]
struct EmbeddedCause {
    words: &'static str,
    style: CurveStyle,
    #[serde(skip)]
    kind: CauseKind,
}

impl EmbeddedCause {
    /// The colour is the same as in the histogram by cause.
    fn from_kind(kind: CauseKind) -> EmbeddedCause {
        EmbeddedCause { words: kind.words(), style: account::style_of_cause(kind), kind }
    }
}

/// The main causes of all explained samples, in the order of `CauseKind`.
fn collect_causes(inputs: &[ReportInput<'_>]) -> Vec<EmbeddedCause> {
    let main_causes =
        inputs.iter().filter_map(|input| input.breakdown).flat_map(Breakdown::main_causes);
    let distinct_causes: BTreeSet<CauseKind> = main_causes.collect();
    distinct_causes.into_iter().map(EmbeddedCause::from_kind).collect()
}

#[derive(Serialize)]
struct GroupData<'a> {
    name: &'a str,
    style: CurveStyle,
    /// Percentile points of all its series together.
    #[serde(skip_serializing_if = "<[i64]>::is_empty")]
    together: &'a [i64],
    #[serde(skip_serializing_if = "<[i64]>::is_empty")]
    together_corrected: &'a [i64],
}

#[derive(Serialize)]
struct EmbeddedSeries<'a> {
    group: usize,
    short: &'a str,
    full: &'a str,
    style: CurveStyle,
    count: u64,
    max: Option<i64>,
    /// Widths and counts of bins: see [`BinRun`].
    bins: Vec<BinRun>,
    percentiles: &'a [i64],
    #[serde(skip_serializing_if = "<[i64]>::is_empty")]
    corrected: &'a [i64],
    /// Samples of the corrected view, or of the plain one if they do not differ.
    corrected_count: u64,
    time: TimeData,
    /// `[latency, time, cpu, seq, cause]` of each; the cause is an index into the causes of the
    /// page, −1 if unknown.
    worst: Vec<(i64, i64, u32, u64, i32)>,
}

#[derive(Serialize)]
struct TimeData {
    /// The source of the plot's data.
    note: String,
    /// Whether zero is the beginning of the phase (else of the series).
    since_phase: bool,
    /// The end of the phase if zero is its beginning: no period extends beyond it.
    until: Option<i64>,
    /// The width of a segment.
    width: i64,
    /// The distance from which on it counts as a gap.
    gap: i64,
    /// The beginning of each segment: the first, then distances.
    at: Vec<i64>,
    n: Vec<u64>,
    min: Vec<i64>,
    mean: Vec<i64>,
    max: Vec<i64>,
}

impl<'a> EmbeddedData<'a> {
    /// The data for a page of this size.
    pub(crate) fn from_page(
        inputs: &[ReportInput<'_>],
        content: &'a PageSeries<'a>,
        curves: &[Curve],
        scale: Scale,
        size: &PageLimits,
        recording: RecordingData,
        account: &'a account::AccountData,
    ) -> EmbeddedData<'a> {
        let groups = content.groups.iter().map(|g| GroupData {
            name: &g.name,
            style: g.style,
            together: &g.together,
            together_corrected: &g.together_corrected,
        });
        let causes = collect_causes(inputs);
        let series = content.lines.iter().zip(curves).map(|(line, curve)| {
            let bundle = content.groups.get(line.group).map(|group| group.bundle);
            let breakdown = bundle.and_then(|bundle| inputs.get(bundle)?.breakdown);
            let cause = |due: ClockNs| {
                let meta = &line.series.meta;
                // Events use this clock.
                let breakdown = breakdown.filter(|_| meta.clock == Clock::Monotonic)?;
                let kind = breakdown.cause_of(&line.phase.meta.name, &meta.name, due.ns())?;
                causes.iter().position(|cause| cause.kind == kind)
            };
            embed_series(line, curve, size, &cause)
        });
        EmbeddedData {
            per_decade: PER_DECADE,
            timebase: content.timebase.unit_prefix(),
            lead: lead_series(content),
            series: series.collect(),
            causes,
            bounds: required_bounds(content),
            deadlines: response_deadlines(content),
            scale,
            merge: has_too_many_curves(content),
            apart: content.apart,
            groups: groups.collect(),
            recording,
            account,
        }
    }

    /// JSON text for a script element. In HTML such an element ends only at `</script`, and `<!--`
    /// changes how it is parsed (HTML standard, 4.12.1.3): without `<`, neither can occur. `&`, `>`
    /// and the two line separators are escaped too, so that the text is also safe in XML and as
    /// JavaScript.
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(escape_json(&serde_json::to_string(self)?))
    }
}

/// The series with the longest latency among the most relevant threads.
fn lead_series(content: &PageSeries<'_>) -> Option<usize> {
    let lines = content.lines.iter().enumerate();
    let latencies = lines.filter(|(_, line)| is_latency(&line.series.meta.workload, &line.short));
    let longest =
        latencies.max_by_key(|(_, line)| (thread_relevance(line.summary), line.summary.max));
    longest.map(|(place, _)| place)
}

/// More lines than this would hide the curves.
const MAX_BOUNDS: usize = 4;

/// The required upper bounds of latencies.
fn required_bounds(content: &PageSeries<'_>) -> Vec<i64> {
    let all_requirements = content.lines.iter().flat_map(|line| &line.summary.requirements);
    let bound = |held: &RequirementSummary| {
        let Requirement { metric, comparison, bound } = held.requirement.parse().ok()?;
        let is_upper = matches!(comparison, BoundComparison::Less | BoundComparison::LessOrEqual);
        (is_upper && metric.is_time() && bound > 0).then_some(bound)
    };
    lowest_bounds(all_requirements.filter_map(bound).collect())
}

/// The deadlines of the responses of programs.
fn response_deadlines(content: &PageSeries<'_>) -> Vec<i64> {
    let deadline = |line: &SeriesLine<'_>| {
        let meta = Some(&line.series.meta).filter(|meta| meta.workload == ATTACHED_WORKLOAD)?;
        let deadline: Nanos = meta.details.get(DEADLINE)?.parse().ok()?;
        Some(deadline.ns()).filter(|ns| *ns > 0)
    };
    lowest_bounds(content.lines.iter().filter_map(deadline).collect())
}

pub(crate) fn latency_limits(content: &PageSeries<'_>) -> Vec<i64> {
    lowest_bounds([required_bounds(content), response_deadlines(content)].concat())
}

/// The lowest bounds, without duplicates, ascending.
fn lowest_bounds(mut bounds: Vec<i64>) -> Vec<i64> {
    bounds.sort_unstable();
    bounds.dedup();
    bounds.truncate(MAX_BOUNDS);
    bounds
}

/// Whether there are too many curves to distinguish.
pub(crate) fn has_too_many_curves(content: &PageSeries<'_>) -> bool {
    !content.apart && content.lines.len() > 16 && content.groups.len() < content.lines.len()
}

/// Escapes characters that can occur only inside JSON strings, where `\u` is valid.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

fn embed_series<'a>(
    line: &'a SeriesLine<'a>,
    curve: &Curve,
    size: &PageLimits,
    cause: &dyn Fn(ClockNs) -> Option<usize>,
) -> EmbeddedSeries<'a> {
    let data = &line.series.state.data;
    let micros = |ns: i64| ns.div_euclid(1_000);
    let worst = line.worst_samples().iter().take(size.worst);
    EmbeddedSeries {
        group: line.group,
        short: &line.short,
        full: &line.full,
        style: line.style,
        count: data.sample_count(),
        max: data.max.map(|max| max.ns()),
        bins: curve.to_runs(),
        percentiles: &line.percentiles,
        corrected: &line.corrected,
        corrected_count: data.corrected.as_ref().map_or(data.sample_count(), |hdr| hdr.len()),
        time: embed_timeline(line, size),
        worst: worst
            .map(|s| {
                let cause = cause(s.due).map_or(-1, |cause| cause as i32);
                (s.latency().ns(), micros(line.time_since_zero(s.due).ns()), s.cpu, s.seq, cause)
            })
            .collect(),
    }
}

fn embed_timeline(line: &SeriesLine<'_>, size: &PageLimits) -> TimeData {
    let shown_timeline = over_time::reduce_timeline(&line.timeline, size.buckets);
    let micros = |ns: i64| ns.div_euclid(1_000);
    let mut last = 0;
    let at = shown_timeline.buckets.iter().map(|bucket| {
        let at = micros(line.time_since_zero(bucket.start).ns());
        let step = at.saturating_sub(last);
        last = at;
        step
    });
    // Windows cover one second, however finely the plot is divided.
    let width = shown_timeline.width.ns().max(if line.source == PlotSource::Windows {
        1_000_000_000
    } else {
        0
    });
    let period = line.series.meta.period.map_or(0, |period| period.ns());
    TimeData {
        note: source_note(line),
        since_phase: line.since_phase,
        until: line.phase.meta.duration.filter(|_| line.since_phase).map(|span| micros(span.ns())),
        width: micros(width),
        gap: micros(width.max(period).saturating_mul(5) / 2).max(1),
        at: at.collect(),
        n: shown_timeline.buckets.iter().map(|b| b.count).collect(),
        min: shown_timeline.buckets.iter().map(|b| b.min.ns()).collect(),
        mean: shown_timeline.buckets.iter().map(|b| b.mean.round() as i64).collect(),
        max: shown_timeline.buckets.iter().map(|b| b.max.ns()).collect(),
    }
}

/// The source of the data of the plot over time, as a sentence.
fn source_note(line: &SeriesLine<'_>) -> String {
    let recorded = line.series.state.data.sample_count();
    if let Some(trouble) = &line.trouble {
        return format!("Samples over time cannot be read: {}", super::text::format_name(trouble));
    }
    match line.source {
        PlotSource::Samples => format!("From all {} samples.", count_text(recorded)),
        PlotSource::Windows => {
            format!(
                "From one-second windows over all {} samples; the log does not hold every sample.",
                count_text(recorded)
            )
        }
        PlotSource::FirstSamples(kept) => {
            format!(
                "From the first {} of {} samples; the rest is not in the log.",
                count_text(kept),
                count_text(recorded)
            )
        }
        PlotSource::Nothing => "No samples with times are in the log.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::escape_json;

    #[test]
    fn embedded_json_cannot_end_the_script_element() {
        let hostile = serde_json::json!({"name": "</script><!--<script>\u{2028}&amp;]]>"});
        let text = escape_json(&hostile.to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), hostile);
    }
}
