//! The page's data on the series: read once, for any size of the page.

use super::ReportInput;
use super::curve::Curve;
use super::of_cpu::OfCpu;
use super::over_time::{PlotSource, phase_start};
use super::style::CurveStyle;
use super::text;
use super::{MAX_SERIES, percentiles};
use crate::naming::{BundleIdentity, distinct_names};
use punctual_bundle::summary::{RequirementSummary, SeriesSummary, VerdictWord};
use punctual_bundle::{Phase, Series, Timebase};
use punctual_core::{ClockNs, Nanos, Sample};
use punctual_stats::{Distribution, Timeline};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Buckets of time in the finest page.
pub const BUCKETS: usize = 1_000;

/// All series of all bundles, in groups.
pub struct PageSeries<'a> {
    /// A group is a phase of a bundle.
    pub groups: Vec<PhaseGroup>,
    /// The series, in order of their groups.
    pub lines: Vec<SeriesLine<'a>>,
    /// The label of each bundle, no two alike.
    pub labels: Vec<String>,
    /// The number of series omitted from the plots because there were too many.
    pub left_out: usize,
    /// The timebase of their latencies.
    pub timebase: Timebase,
    /// Whether the series of a group must not be merged into one curve.
    pub apart: bool,
}

/// A phase of a bundle.
pub struct PhaseGroup {
    /// The part of its name that distinguishes it from others.
    pub name: String,
    /// The index of its bundle among the inputs.
    pub bundle: usize,
    /// The style of its merged curve.
    pub style: CurveStyle,
    /// The percentile curve of all its series together; empty if there is only one.
    pub together: Vec<i64>,
    /// The same corrected for coordinated omission; empty if it does not differ.
    pub together_corrected: Vec<i64>,
}

pub struct SeriesLine<'a> {
    /// The index of its group.
    pub group: usize,
    /// Its name in the group.
    pub short: String,
    /// A name that distinguishes it from all others.
    pub full: String,
    /// How its curves are drawn.
    pub style: CurveStyle,
    pub phase: &'a Phase,
    pub series: &'a Series,
    pub summary: &'a SeriesSummary,
    pub curve: Curve,
    pub percentiles: Vec<i64>,
    /// The same corrected for coordinated omission; empty if it does not differ.
    pub corrected: Vec<i64>,
    pub timeline: Timeline,
    pub source: PlotSource,
    /// Why samples over time are missing.
    pub trouble: Option<String>,
    /// Its samples by the CPU on which they ended, if there are several and the log holds every
    /// sample.
    pub cpus: Vec<OfCpu>,
    /// Time zero on its clock: the beginning of the phase, or of the series if the clocks differ.
    pub zero: ClockNs,
    /// Whether zero is the beginning of the phase.
    pub since_phase: bool,
}

impl PageSeries<'_> {
    /// Keeps so many series: those with an open requirement first, then those with the largest
    /// maxima. The curves of all series of a group together stay.
    pub(crate) fn keep_series(&mut self, keep: usize) {
        let met = |of: &RequirementSummary| of.verdict == VerdictWord::Met;
        let rank = |line: &SeriesLine<'_>| {
            (line.summary.requirements.iter().all(met), Reverse(line.summary.max))
        };
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|place| rank(&self.lines[*place]));
        let kept: BTreeSet<usize> = order.into_iter().take(keep).collect();
        self.left_out += self.lines.len() - kept.len();
        let mut places = 0..;
        self.lines.retain(|_| places.next().is_some_and(|place| kept.contains(&place)));
    }
}

impl SeriesLine<'_> {
    /// The worst samples, the longest first.
    pub fn worst_samples(&self) -> &[Sample] {
        &self.series.state.data.worst
    }

    /// The due time of a sample, since zero.
    pub(crate) fn time_since_zero(&self, due: ClockNs) -> Nanos {
        due - self.zero
    }

    /// The due time of a sample, in UTC.
    pub(crate) fn to_utc(&self, due: ClockNs) -> Option<jiff::Timestamp> {
        let since = jiff::SignedDuration::from_nanos(self.time_since_zero(due).ns());
        self.since_phase.then(|| self.phase.meta.started.checked_add(since).ok())?
    }
}

pub(crate) fn gather_series<'a>(inputs: &'a [ReportInput<'a>]) -> PageSeries<'a> {
    let identities: Vec<BundleIdentity> = inputs.iter().map(ReportInput::bundle_identity).collect();
    let labels: Vec<String> =
        distinct_names(&identities).iter().map(|name| text::format_name(name)).collect();
    let naming = Naming::from_inputs(inputs);
    let (mut groups, mut lines, mut left_out) = (Vec::new(), Vec::new(), 0);
    for (place, input) in inputs.iter().enumerate() {
        for (number, phase) in input.bundle.phases.iter().enumerate() {
            let name = naming.group_name(&labels[place], &phase.meta.name);
            let group = groups.len();
            let first = lines.len();
            for (k, series) in phase.series.iter().enumerate() {
                let Some(summary) =
                    summary_of(input, number, k, &phase.meta.name, &series.meta.name)
                else {
                    continue;
                };
                if lines.len() < MAX_SERIES {
                    lines.push(gather_line(group, &name, &naming, phase, series, summary));
                } else {
                    left_out += 1;
                }
            }
            let (together, together_corrected) = combine_percentiles(&lines[first..]);
            groups.push(PhaseGroup {
                name,
                bundle: place,
                style: CurveStyle::from_curve_index(group),
                together,
                together_corrected,
            });
        }
    }
    set_styles(&mut lines, groups.len());
    let timebase = Timebase::common_timebase(inputs.iter().map(|input| input.bundle.timebase()));
    PageSeries { groups, lines, labels, left_out, timebase, apart: false }
}

/// Assigns a hue to each series or, if several groups have several series, to each group.
fn set_styles(lines: &mut [SeriesLine<'_>], groups: usize) {
    let by_group = groups > 1 && lines.len() > groups;
    let mut number = 0;
    for group in lines.chunk_by_mut(|a, b| a.group == b.group) {
        let group_size = group.len();
        for (k, line) in group.iter_mut().enumerate() {
            line.style = if by_group {
                CurveStyle::in_group(line.group, k, group_size)
            } else {
                CurveStyle::from_curve_index(number)
            };
            number += 1;
        }
    }
}

/// The figures of a series: those at the same index if the names agree, else by name.
fn summary_of<'a>(
    input: &ReportInput<'a>,
    phase: usize,
    series: usize,
    phase_name: &str,
    name: &str,
) -> Option<&'a SeriesSummary> {
    let phases = &input.summary.phases;
    let phase = phases
        .get(phase)
        .filter(|p| p.name == phase_name)
        .or_else(|| phases.iter().find(|p| p.name == phase_name))?;
    phase
        .series
        .get(series)
        .filter(|s| s.name == name)
        .or_else(|| phase.series.iter().find(|s| s.name == name))
}

fn gather_line<'a>(
    group: usize,
    group_name: &str,
    naming: &Naming,
    phase: &'a Phase,
    series: &'a Series,
    summary: &'a SeriesSummary,
) -> SeriesLine<'a> {
    let data = &series.state.data;
    let OverTime { timeline, source, trouble, cpus } = over_time(series);
    let first = timeline
        .buckets
        .first()
        .map(|b| b.start)
        .or(data.worst.iter().map(|s| s.due).min())
        .unwrap_or_default();
    let zero = phase_start(&phase.meta, &series.meta, first);
    let short = text::format_name(&series.meta.name);
    SeriesLine {
        group,
        full: naming.full_name(group_name, &short),
        short,
        style: CurveStyle::from_curve_index(0),
        phase,
        series,
        summary,
        curve: Curve::from_data(data),
        percentiles: percentiles::percentile_points(&Distribution::from_series(data)),
        corrected: Distribution::from_corrected(data)
            .map(|d| percentiles::percentile_points(&d))
            .unwrap_or_default(),
        timeline,
        source,
        trouble,
        cpus,
        zero: zero.unwrap_or(first),
        since_phase: zero.is_some(),
    }
}

/// The data in the log of a series.
#[derive(Default)]
struct OverTime {
    timeline: Timeline,
    source: PlotSource,
    trouble: Option<String>,
    cpus: Vec<OfCpu>,
}

fn over_time(series: &Series) -> OverTime {
    let log = match series.load_log() {
        Ok(log) => log,
        Err(error) => return OverTime { trouble: Some(error.to_string()), ..OverTime::default() },
    };
    let (kept, recorded) = (log.samples.len() as u64, series.state.data.losses.recorded);
    let complete = kept >= recorded;
    let source = match (kept, log.windows.is_empty()) {
        (0, true) => PlotSource::Nothing,
        _ if complete => PlotSource::Samples,
        (kept, true) => PlotSource::FirstSamples(kept),
        _ => PlotSource::Windows,
    };
    let resolution = series.state.data.exact.resolution.ns();
    let cpus = if complete { OfCpu::split_by_cpu(&log.samples, resolution) } else { Vec::new() };
    OverTime { timeline: Timeline::from_log(&log, complete, BUCKETS), source, trouble: None, cpus }
}

/// The percentile curves of several series combined: plain, and corrected if any of them is.
fn combine_percentiles(lines: &[SeriesLine<'_>]) -> (Vec<i64>, Vec<i64>) {
    if lines.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let data = || lines.iter().map(|line| &line.series.state.data);
    let plain: Vec<Distribution> = data().map(Distribution::from_series).collect();
    let corrected: Vec<Option<Distribution>> = data().map(Distribution::from_corrected).collect();
    let differs = corrected.iter().any(Option::is_some);
    let corrected =
        corrected.iter().zip(&plain).map(|(corrected, plain)| corrected.as_ref().unwrap_or(plain));
    let corrected = if differs {
        percentiles::merged_points(&corrected.collect::<Vec<_>>())
    } else {
        Vec::new()
    };
    (percentiles::merged_points(&plain.iter().collect::<Vec<_>>()), corrected)
}

/// The parts of a name that distinguish series in this report; others would only lengthen legends.
struct Naming {
    bundle: bool,
    phase: bool,
    series: bool,
    group: bool,
}

impl Naming {
    fn from_inputs(inputs: &[ReportInput<'_>]) -> Naming {
        let phases = || inputs.iter().flat_map(|input| &input.bundle.phases);
        let phase_names: BTreeSet<&str> = phases().map(|phase| phase.meta.name.as_str()).collect();
        let series_names: BTreeSet<&str> =
            phases().flat_map(|p| &p.series).map(|s| s.meta.name.as_str()).collect();
        let groups = phases().count();
        Naming {
            bundle: inputs.len() > 1,
            phase: phase_names.len() > 1 || inputs.len() == 1,
            series: series_names.len() > 1 || groups < 2,
            group: groups > 1,
        }
    }

    fn group_name(&self, label: &str, phase: &str) -> String {
        let phase = text::format_name(phase);
        match (self.bundle, self.phase) {
            (true, true) => format!("{label} · {phase}"),
            (true, false) => label.to_owned(),
            _ => phase,
        }
    }

    fn full_name(&self, group: &str, series: &str) -> String {
        match (self.group, self.series) {
            (true, true) => format!("{group} · {series}"),
            (true, false) => group.to_owned(),
            (false, _) => series.to_owned(),
        }
    }
}
