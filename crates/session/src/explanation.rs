//! Explains the worst samples of a bundle with the events around them: from the windows that the
//! flight recorder kept, or from a recording of the whole run.

mod intervals;
mod moments;
mod recording;
mod request;
mod windows;

use crate::exit::Failure;
use crate::playback;
pub(crate) use moments::TRACE_PHASE;
pub use moments::requested_threads;
use punctual_bundle::Bundle;
use punctual_bundle::summary::{SeriesSummary, Summary};
use punctual_core::{CpuSet, Event};
use punctual_explain::answer::{Deciding, find_deciding, is_same_thread, stand_ins};
use punctual_explain::explain::{LatencyInterval, explain_sample};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_explain::{Explained, Explanations};
use request::is_called;
pub use request::{TraceInstant, Wanted};

/// Explains the requested samples of a bundle.
///
/// # Errors
/// The bundle has no events to explain samples with, or no such series: the request was wrong.
pub fn explain_samples(bundle: &Bundle, wanted: &Wanted) -> Result<Explanations, Failure> {
    let known_series: Vec<(&str, &str)> =
        bundle.all_series().map(|(phase, series)| (phase, series.meta.name.as_str())).collect();
    if let Some(name) = wanted
        .series
        .iter()
        .find(|name| !known_series.iter().any(|(phase, series)| is_called(name, phase, series)))
    {
        let known_names: Vec<&str> = known_series.iter().map(|(_, series)| *series).collect();
        return Err(Failure::refused(format!(
            "there is no series `{name}`; known are {}",
            known_names.join(", ")
        )));
    }
    // A recording without a measurement has no samples, but may have long pairs, scopes and calls.
    let has_samples = bundle.windows.is_some() || bundle.all_series().next().is_some();
    if bundle.windows.is_none() || !wanted.pairs.is_empty() {
        playback::check_readable(bundle)?;
    }
    let is_trace = bundle.phases.iter().any(|phase| phase.meta.name == TRACE_PHASE);
    let moments = match is_trace || wanted.at.is_some() {
        true => of_moments(bundle, wanted)?,
        false => None,
    };
    let is_of_moments = moments.is_some();
    let mut explanations = match wanted.pairs.is_empty() {
        true if is_of_moments => moments.ok_or_else(|| no_events(bundle))?,
        true if has_samples => windows::explain_windows(bundle, wanted)
            .or_else(|| recording::explain_worst(bundle, wanted))
            .ok_or_else(|| no_events(bundle))?,
        true if bundle.recording.is_none() => return Err(no_events(bundle)),
        _ => intervals::explain_intervals(bundle, wanted)?,
    };
    let is_of_intervals = !has_samples && wanted.pairs.is_empty();
    if explanations.samples.is_empty() && is_of_intervals {
        return Err(Failure::refused(no_interval(bundle)));
    }
    let takes_cycles = is_trace && has_samples && !is_of_moments && wanted.pairs.is_empty();
    let moment_findings =
        (takes_cycles && wanted.series.is_empty()).then(|| moments::beside_cycles(bundle));
    explanations.findings.extend(moment_findings.flatten());
    let contradiction = explanations.contradiction_finding();
    explanations.findings.extend(contradiction);
    Ok(explanations)
}

/// Explains the moments of a recording that come before its cycles, or where it has none; `None`
/// where it has no moments, or others are to be explained.
pub fn of_moments(bundle: &Bundle, wanted: &Wanted) -> Result<Option<Explanations>, Failure> {
    if bundle.windows.is_some() || !wanted.pairs.is_empty() || !wanted.series.is_empty() {
        return Ok(None);
    }
    moments::explain_moments(bundle, wanted, bundle.all_series().next().is_some())
}

/// Whether to look for cycles because nothing else can be explained: in a recording without
/// samples, with no pair requested.
pub fn may_have_cycles(bundle: &Bundle, wanted: &Wanted) -> bool {
    wanted.pairs.is_empty() && bundle.recording.is_some() && bundle.all_series().next().is_none()
}

/// Explains the cycles found in the recording of a bundle (`traces::cycles_of`), which are series
/// of another one, with their findings.
pub fn of_cycles(
    found: &Bundle,
    recording: &Bundle,
    wanted: &Wanted,
) -> Result<Explanations, Failure> {
    let mut explanations =
        recording::explain_by(found, recording, wanted).ok_or_else(|| no_events(recording))?;
    explanations.findings.extend(found.findings.iter().cloned());
    explanations.findings.extend(moments::beside_cycles(recording));
    let contradiction = explanations.contradiction_finding();
    explanations.findings.extend(contradiction);
    Ok(explanations)
}

fn no_events(bundle: &Bundle) -> Failure {
    Failure::refused(format!(
        "{} has no events that explain samples: neither windows nor a recording.\nMeasure \
         again with `punctual run --explain` or `punctual measure --explain` (or an [explain] \
         section) to keep the events around the worst samples; `--trace` records everything",
        bundle.directory.display()
    ))
}

fn no_interval(bundle: &Bundle) -> String {
    format!(
        "{} holds no interval to explain: no test point and no probed function occurs twice in \
         the recording.\nName any two events with --pair 'A->B' (see `punctual pairs --help`), or \
         record test points or probed functions",
        bundle.directory.display()
    )
}

/// The number of recorded samples to explain for an answer.
const WORST: usize = 20;

/// Explains the late samples of the thread whose figure decided, for the answer of a run, or the
/// moments that a trace marks; without
/// windows for it, those of others that can substitute it. `None` if no events were recorded, or no
/// figure decided.
pub fn of_answer(bundle: &Bundle, summary: &Summary) -> Option<Explanations> {
    let deciding = find_deciding(summary)?;
    if let Some(marked) = moments::explain_marked(bundle) {
        return Some(marked);
    }
    let Deciding { phase, series, .. } = deciding;
    let full = |series: &SeriesSummary| format!("{}/{}", phase.name, series.name);
    let Some(windows) = &bundle.windows else {
        bundle.recording.as_ref()?;
        let (series, worst) = (vec![full(series)], Some(WORST));
        return explain_samples(bundle, &Wanted { series, worst, ..Wanted::default() }).ok();
    };
    let has_windows = |series: &&SeriesSummary| {
        let mut heads = windows.windows.iter().map(|window| &window.head);
        heads.any(|head| head.phase == phase.name && head.series == series.name)
    };
    let own_series = phase.series.iter().filter(|one| is_same_thread(one, series));
    let mut names: Vec<String> = own_series.filter(has_windows).map(full).collect();
    if names.is_empty() {
        names = stand_ins(&deciding).filter(has_windows).map(full).collect();
    }
    if names.is_empty() {
        return None;
    }
    explain_samples(bundle, &Wanted { series: names, ..Wanted::default() }).ok()
}

/// Explains a sample by the events around it, in the order of time. `gaps`: the recording's losses.
pub(crate) fn explain_window(
    phase: &str,
    series: &str,
    late: LatencyInterval,
    events: Vec<Event>,
    left_out: CpuSet,
    coverage: &Coverage,
) -> Explained {
    let gaps = Gaps::from_events(events.iter().copied());
    let explanation = explain_sample(late, &events, coverage, &gaps);
    Explained { phase: phase.to_owned(), series: series.to_owned(), explanation, events, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Event, EventKind, MonotonicNs};
    use punctual_explain::Explained;
    use punctual_explain::explain::Cause;
    use std::path::{Path, PathBuf};

    /// The bundles whose samples events explain.
    /// The recorded bundles; those of causes, whose large files are compressed, in `place`.
    fn bundles(place: &Path) -> Vec<PathBuf> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        unpack(&fixtures.join("causes"), place);
        let causes = place.read_dir().expect("a directory").flatten();
        let of_causes = causes.map(|cause| cause.path().join("bundle"));
        let others = ["explained", "recorded"];
        let others = others.map(|name| fixtures.join("bundles").join(name));
        of_causes.filter(|path| path.exists()).chain(others).collect()
    }

    fn unpack(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a directory");
        for entry in from.read_dir().expect("a directory").flatten() {
            let (path, to) = (entry.path(), to.join(entry.file_name()));
            if path.is_dir() {
                unpack(&path, &to);
            } else if path.extension().is_some_and(|extension| extension == "gz") {
                let file = std::fs::File::open(&path).expect("a file");
                let mut to = std::fs::File::create(to.with_extension("")).expect("a file");
                let mut unpacked = flate2::read::GzDecoder::new(file);
                std::io::copy(&mut unpacked, &mut to).expect("a compressed file");
            } else {
                std::fs::copy(&path, to).expect("a file");
            }
        }
    }

    /// Stretches between two events of its thread that follow one another on one CPU.
    fn covered(sample: &Explained) -> Vec<(MonotonicNs, MonotonicNs)> {
        let tid = sample.explanation.interval.tid;
        let mut open: Option<&Event> = None;
        let mut found = Vec::new();
        for event in sample.events.iter().filter(|event| event.cpu != Event::NO_CPU) {
            let begin = open.filter(|begin| begin.cpu == event.cpu && event.tid == tid);
            found.extend(begin.map(|begin| (begin.at, event.at)));
            open = match event.what {
                EventKind::Lost { .. } | EventKind::Switch { .. } if event.tid == tid => None,
                EventKind::Lost { .. } => open.filter(|begin| begin.cpu != event.cpu),
                EventKind::SyscallEnter { .. } | EventKind::SyscallExit { .. }
                    if event.tid == tid =>
                {
                    Some(event)
                }
                _ => open.filter(|begin| begin.cpu != event.cpu || event.tid == tid),
            };
        }
        found
    }

    #[test]
    fn time_covered_by_events_of_recorded_samples_is_attributed() {
        let (mut samples, place) = (0, tempfile::tempdir().expect("a directory"));
        for path in bundles(place.path()) {
            let bundle = Bundle::open(&path).expect("a bundle");
            let all = explain_samples(&bundle, &Wanted::default()).expect("events");
            for sample in &all.samples {
                samples += 1;
                assert!(sample.adds_up(), "{}: {:?}", path.display(), sample.explanation);
                let parts = sample.explanation.parts.iter();
                for part in parts.filter(|part| part.cause == Cause::Unknown) {
                    let covers = |(from, to): &(MonotonicNs, MonotonicNs)| {
                        (*from).max(part.from) < (*to).min(part.to)
                    };
                    let wrong = covered(sample).into_iter().find(covers);
                    assert_eq!(wrong, None, "{}: {part:?}", path.display());
                }
            }
        }
        assert!(samples > 100, "{samples} samples");
    }
}
