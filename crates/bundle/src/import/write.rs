//! Writes the imported data as a bundle.

use super::recorded::{ImportedFile, Thread};
use super::{ImportOptions, Tool};
use crate::manifest::{Outcome, RunEnding};
use crate::meta::{
    MeasureMeta, PhaseMeta, REQUESTED_SCHEDULING, SOURCE_RESOLUTION, SeriesMeta, UNKNOWN_LOSSES,
    UNKNOWN_SCHEDULING,
};
use crate::state::SeriesState;
use crate::summary::Summary;
use crate::{Bundle, BundleError, BundleWriter, Completeness};
use punctual_core::{CpuSet, Fact, Finding, Nanos, Notes, Policy, Severity};
use std::collections::BTreeMap;
use std::path::Path;

const PHASE: &str = "imported";

/// Writes the bundle and ends it.
pub fn write(
    recorded: &ImportedFile,
    directory: &Path,
    options: &ImportOptions,
    summarize: fn(&Bundle) -> Summary,
) -> Result<Summary, BundleError> {
    let (started, ended) =
        recorded.times.unwrap_or_else(|| (jiff::Timestamp::now(), jiff::Timestamp::now()));
    let source = recorded.source;
    let writer =
        BundleWriter::create_at(directory, &options.name, &format!("import: {source}"), started)?;
    let length = ended.as_nanosecond() - started.as_nanosecond();
    let phase = PhaseMeta {
        duration: recorded.times.and(i64::try_from(length).ok()).map(Nanos).or(recorded.duration),
        delayed_by: recorded.delayed_by.clone(),
        measures: measure_meta(recorded).into_iter().collect(),
        ..PhaseMeta::new(PHASE, started)
    };
    writer.write_phase(0, &phase)?;
    for (index, thread) in recorded.threads.iter().enumerate() {
        let mut series =
            writer.begin_series(0, index, &series_meta(recorded, thread, options), 0)?;
        let state = SeriesState {
            data: thread.to_series_data(recorded.unit, recorded.step),
            usage: Fact::Unavailable(format!("{} does not state it", recorded.tool.name())),
            digest: None,
            samples_kept: 0,
            log_bytes: series.log_bytes(),
        };
        series.finish(&state)?;
    }
    let mut findings = recorded.file_findings(PHASE);
    findings.push(import_finding(recorded, source));
    writer.write_findings(&findings)?;
    let mut ending = RunEnding { at: ended, outcome: run_outcome(recorded), exit_code: 0 };
    let mut bundle = Bundle::open(directory)?;
    bundle.manifest.ending = Some(ending.clone());
    bundle.completeness = Completeness::Whole;
    let mut summary = summarize(&bundle);
    if !options.asked.requirements.is_empty() {
        ending.exit_code = summary.verdict.to_exit() as u8;
        summary.ending = Some(ending.clone());
    }
    writer.finish(&summary, ending)?;
    Ok(summary)
}

/// The further figures of the tool, as the notes of one measure.
fn measure_meta(recorded: &ImportedFile) -> Option<MeasureMeta> {
    let notes = recorded.notes.clone();
    (notes != Notes::default()).then(|| MeasureMeta {
        name: recorded.tool.name().to_owned(),
        workload: recorded.tool.workload_kind().to_owned(),
        parameters: BTreeMap::new(),
        series: recorded.threads.iter().map(Thread::series_name).collect(),
        notes,
    })
}

fn series_meta(recorded: &ImportedFile, thread: &Thread, options: &ImportOptions) -> SeriesMeta {
    let mut details = recorded.details.clone();
    details.insert("source".into(), recorded.source.into());
    details.extend(thread.details.clone());
    if thread.overruns.is_none() {
        details.insert(UNKNOWN_LOSSES.into(), "unknown".into());
    }
    details.insert(SOURCE_RESOLUTION.into(), recorded.bin_width().to_string());
    let (scheduling, real_time) = stated_scheduling(recorded.tool, thread);
    // A tool fails if its request is refused: the stated scheduling is the requested one, real-time
    // or not.
    if scheduling != UNKNOWN_SCHEDULING {
        details.insert(REQUESTED_SCHEDULING.into(), scheduling.clone());
    }
    SeriesMeta {
        name: thread.series_name(),
        measure: String::new(),
        workload: recorded.tool.workload_kind().into(),
        clock: recorded.clock,
        cpus: thread.cpu.map(|cpu| CpuSet::from_cpu(cpu as usize)).unwrap_or_default(),
        scheduling,
        real_time,
        period: thread.interval.map(|us| Nanos::MICRO * us as i64),
        tid: thread.tid,
        requirements: options.asked.requirements.iter().map(ToString::to_string).collect(),
        details,
    }
}

/// Without a policy the tools create FIFO threads if a priority is given, and fail without
/// permission. Without a histogram, later threads of cyclictest have lower priorities than the one
/// given, so only the policy is stated.
fn stated_scheduling(tool: Tool, thread: &Thread) -> (String, bool) {
    let policy = match (&thread.policy, thread.priority) {
        _ if tool == Tool::Cyclicdeadline => Some(Policy::Deadline),
        (Some(word), _) => Policy::from_word(word),
        (None, Some(0)) => Some(Policy::Other),
        (None, Some(_)) => Some(Policy::Fifo),
        (None, None) => None,
    };
    policy.map_or((UNKNOWN_SCHEDULING.to_owned(), false), |policy| {
        (policy.to_string(), policy.is_real_time())
    })
}

fn run_outcome(recorded: &ImportedFile) -> Outcome {
    match (&recorded.stopped, recorded.failed) {
        (Some((thread, latency)), _) => {
            let (series, latency) = (format!("{PHASE}/{thread}"), latency.ns());
            Outcome::StoppedAbove { series, latency, limit: None, seq: None }
        }
        (None, Some(code)) => {
            Outcome::Failed { why: format!("{} ended with exit code {code}", recorded.tool.name()) }
        }
        (None, None) => Outcome::Completed,
    }
}

fn import_finding(recorded: &ImportedFile, source: &str) -> Finding {
    let unit = recorded.bin_width();
    let time = if recorded.times.is_some() {
        ""
    } else {
        "; when it ran is not stated: the times are those of the import"
    };
    let absent = match recorded.threads.iter().all(|thread| thread.overruns.is_some()) {
        true => "single samples and standard deviation",
        false => "single samples, standard deviation, overruns and losses",
    };
    let message = format!("these figures were imported: {absent} are not known");
    Finding::new("imported", Severity::Note, "run", message)
        .with_evidence(format!("{source}; latencies are cut down to whole {unit}{time}"))
        .with_remedy("measure with punctual where those matter")
}
