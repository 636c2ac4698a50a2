//! Converts a trace to a bundle: its events as a recording, and the cycles found in its threads as
//! series, as `attach` measures them.

#[cfg(test)]
mod causes;
mod foreign;
#[cfg(test)]
mod moments;
mod nothing;
#[cfg(test)]
mod packets;
mod store;
#[cfg(test)]
mod tests;

pub use foreign::{call_paths, import_trace, is_foreign_trace};

use crate::cycles::series::SeriesPlace;
use crate::cycles::source::{CycleRecorder, EventCycles};
use crate::cycles::{self, CycleOptions, Cycles};
use crate::end::{self, Further, MeasuredRun, RunEnd};
use crate::exit::{Exit, Failure};
use crate::playback::{self, OpenedRecording};
use crate::saver::Saver;
use punctual_bundle::{Bundle, BundleWriter, Outcome, PhaseMeta};
use punctual_core::event::{Group, Names, Recorded};
use punctual_core::{Event, Finding, Missing, Severity};
use punctual_explain::cycles::stream::{
    CycleStream, ShownKinds, SyscallNumbers, missing_properties,
};
use punctual_explain::gaps::Gaps;
use punctual_explain::moments::WakeUps;
use punctual_stats::PhaseView;
use punctual_traces::NO_MACHINE;
use std::collections::BTreeMap;
use std::path::Path;

/// The phase of a bundle of this kind.
pub(crate) use crate::explanation::TRACE_PHASE as PHASE;

/// The finding of a truncated trace.
const CUT_OFF: &str = "trace-cut-off";
/// Events between two evaluations of cycles.
const ROUND: usize = 1 << 14;
/// Samples in the log of a series.
const LOGGED_SAMPLES: u64 = 1 << 20;

/// The options for the cycles of a trace.
#[derive(Default)]
pub struct TraceOptions {
    /// The name of the bundle's experiment.
    pub name: String,
    /// The origin of the trace: `trace.dat (trace-cmd 3.1.6)`.
    pub origin: String,
    /// The options of its cycles; the phase is [`PHASE`].
    pub cycles: CycleOptions,
}

/// A converted trace.
#[derive(Clone)]
pub struct Converted {
    /// The exit code of the requesting command.
    pub exit: Exit,
    /// Why there are no cycles, if none.
    pub none: Option<String>,
    /// Other moments are there: marks, or wake-ups.
    pub has_moments: bool,
    /// A line that describes the cycles of each thread.
    pub described: Vec<String>,
}

/// A trace that is being read.
pub(crate) trait TraceReader {
    /// The next event in the order of time; an error is the last.
    fn next_event(&mut self) -> Option<Result<Event, String>>;
    /// The facts about the trace, once the last event was read.
    fn trace_extent(&self) -> TraceExtent;
}

/// The extent of a trace and the names in it.
pub(crate) struct TraceExtent {
    /// The recorded extent and the losses.
    pub recorded: Recorded,
    /// The names of the numbers in its events.
    pub names: Names,
    /// How many records of each tracepoint were seen, where the trace counts by them.
    pub seen: BTreeMap<String, u64>,
}

/// Whether a path names a trace rather than a bundle: `-` is standard input.
pub fn is_trace(path: &Path) -> bool {
    path == Path::new("-") || path.is_file() || foreign::is_of_lttng(path)
}

/// Makes a bundle of a trace in `directory`, which must not exist.
pub(crate) fn convert_trace(
    directory: &Path,
    trace: &mut dyn TraceReader,
    options: TraceOptions,
) -> Result<Converted, Failure> {
    let writer = BundleWriter::create(directory, &options.name, &options.origin)
        .map_err(Failure::refused)?;
    let tracepoint_counts = store::store_events(directory, trace)?;
    let bundle = Bundle::open(directory).map_err(Failure::failed)?;
    let opened = playback::require_recording(&bundle)?;
    add_cycles(writer, &opened, options.cycles, &tracepoint_counts)
}

/// Makes a bundle of the cycles in a recording of another bundle, without its events.
pub fn cycles_of(
    bundle: &Bundle,
    directory: &Path,
    options: TraceOptions,
) -> Result<Converted, Failure> {
    let opened = playback::require_recording(bundle)?;
    let writer = BundleWriter::create(directory, &options.name, &options.origin)
        .map_err(Failure::refused)?;
    add_cycles(writer, &opened, options.cycles, &BTreeMap::new())
}

/// Finds the threads with cycles, fills their series, and ends the bundle.
fn add_cycles(
    writer: BundleWriter,
    opened: &OpenedRecording<'_>,
    mut options: CycleOptions,
    seen: &BTreeMap<String, u64>,
) -> Result<Converted, Failure> {
    options.phase = PHASE.to_owned();
    let (recorded, names) = (&opened.recorded, opened.names());
    let mut phase = PhaseMeta {
        started_monotonic: recorded.began.ns(),
        duration: Some(recorded.ended - recorded.began),
        missing: recorded.missing_parts(),
        ..PhaseMeta::new(PHASE, jiff::Timestamp::now())
    };
    writer.write_phase(0, &phase).map_err(Failure::failed)?;
    let mut findings = coverage_findings(recorded);
    let gaps = if recorded.lost_count() > 0 {
        Gaps::from_events(opened.events())
    } else {
        Gaps::default()
    };
    let recorded_kinds = ShownKinds::of_recording(recorded, names);
    let mut wakeups = WakeUps::default();
    // Without switches nothing is known of any thread.
    let events = recorded_kinds.is_some().then(|| opened.events()).into_iter().flatten();
    let shown_kinds = recorded_kinds.unwrap_or_else(|| ShownKinds::from_groups(&[], false));
    let stream = CycleStream::new(SyscallNumbers::from_names(&names.syscalls), shown_kinds, gaps);
    let source = CycleRecorder::of_recording(EventCycles::new(stream, Some(names)), Vec::new());
    let mut cycles = Cycles::of_recording(options, source, names.syscalls.clone());
    let mut next = 0;
    let mut place = SeriesPlace {
        phase: writer.phase_place(0),
        saver: &Saver::on_caller(),
        next: &mut next,
        taken: &[],
        keep: LOGGED_SAMPLES,
        forever: false,
    };
    for (number, event) in events.enumerate() {
        cycles.push_event(&event);
        wakeups.push(&event);
        if number % ROUND == ROUND - 1 {
            cycles.drain(false, &mut place);
        }
    }
    cycles.drain(true, &mut place);
    findings.extend(cycles.finish());
    phase.measures = cycles.measure_metas().collect();
    phase.without_series = cycles.without_series();
    phase.left_out = cycles.left_out().into_iter().collect();
    writer.write_phase(0, &phase).map_err(Failure::failed)?;
    let has_moments = wakeups.count > 0 || !recorded.moments.is_empty();
    let no_cycles = cycles.nothing_found(None).map(|_| {
        nothing::explain_nothing(recorded, seen, &cycles.seen_instead(), remedy_of_calls(recorded))
    });
    findings.extend(no_cycles.as_ref().map(nothing::Nothing::to_finding));
    let no_cycles_text = no_cycles.map(|none| none.to_string());
    let unwritten = cycles.write_errors();
    findings.extend(unwritten.iter().map(|why| cycles::incomplete_bundle(&phase.name, why)));
    let unwritten = unwritten.iter().map(ToString::to_string).collect();
    let breaks_off = phase.missing.iter().find_map(|missing| match missing {
        Missing::End { why } => Some(Outcome::CutOff { why: why.clone() }),
        _ => None,
    });
    let is_said = recorded.findings.iter().any(|finding| finding.id == CUT_OFF);
    if let Some(Outcome::CutOff { why }) = breaks_off.as_ref().filter(|_| !is_said) {
        let message = format!("it breaks off: {why}");
        findings.push(Finding::new(CUT_OFF, Severity::Bad, PHASE, message));
    }
    let outcome = breaks_off.unwrap_or(Outcome::Completed);
    let views = [PhaseView { meta: &phase, series: cycles.series_views().collect() }];
    let measured = MeasuredRun { phases: &views, found: &findings, recorded: None, unwritten };
    let RunEnd { exit, trouble, .. } =
        end::end_bundle(writer, outcome, measured, &Further::default(), |_| Ok(()));
    if let Some(trouble) = trouble {
        return Err(trouble.of_result(exit));
    }
    let described = cycles.thread_descriptions().into_iter().chain(cycles.describe_missed());
    let described = described.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    Ok(Converted { exit, none: no_cycles_text, has_moments, described: described.collect() })
}

/// How to add the names of a trace's system calls, if only those are missing.
fn remedy_of_calls(recorded: &Recorded) -> Option<&str> {
    let nameless = recorded.findings.iter().find(|finding| finding.id == NO_MACHINE);
    nameless.and_then(|finding| finding.remedy.as_deref())
}

/// The limits on cycles that follow from the recording.
fn coverage_findings(recorded: &Recorded) -> Vec<Finding> {
    if !recorded.has_group(Group::Sched) {
        let message = "it has no switches of tasks: nothing is known of any thread";
        let finding = Finding::new("trace-without-switches", Severity::Bad, PHASE, message);
        return vec![finding.with_remedy("record as `punctual recipe` prints it")];
    }
    let of_calls = remedy_of_calls(recorded);
    let missing: Vec<String> = missing_properties(&recorded.groups)
        .map(|(group, what)| match of_calls {
            Some(_) if group == Group::Syscall => format!("no names of system calls: {what}"),
            _ => format!("no {} events: {what}", group.word()),
        })
        .collect();
    let never_recorded = "steal, user stacks, holders of locks without priority inheritance other \
                  than by who woke, and releases before a wait began are not in a recording";
    let finding = match missing.is_empty() {
        true => Finding::new("trace-limits", Severity::Note, PHASE, never_recorded),
        false => {
            let message = format!("not known of its cycles: {}", missing.join("; "));
            Finding::new("trace-limits", Severity::Warning, PHASE, message)
                .with_evidence(never_recorded)
                .with_remedy(of_calls.unwrap_or("record as `punctual recipe` prints it"))
        }
    };
    vec![finding]
}
