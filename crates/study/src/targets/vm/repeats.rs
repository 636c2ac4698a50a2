//! Repeats the same machine: every sample must be the same, or the divergence is reported.

use super::super::remote::RemoteRun;
use super::machine::ReadyMachine;
use super::progress::VmProgress;
use super::trouble::guest_trouble;
use punctual_bundle::{Bundle, amend};
use punctual_core::{Finding, Severity};
use punctual_lab::{GuestResult, LabError};
use punctual_session::exit::{Exit, Failure};
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::display_path;
use punctual_stats::divergence::first_divergence;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A run, and the directory of its results.
pub(crate) struct Repeat {
    pub result: GuestResult,
    pub place: PathBuf,
}

/// Runs the machine this many times, one per CPU concurrently: virtual time is not affected.
pub(crate) fn run_repeats(
    machine: &ReadyMachine,
    repeats: u32,
    exact: bool,
    place: &Path,
    progress: &VmProgress,
    interrupts: &SignalRequests,
) -> Result<Vec<Repeat>, Failure> {
    let next = AtomicU32::new(0);
    let one = |repeat: u32| -> Result<Repeat, LabError> {
        let place = place.join(repeat.to_string());
        fs::create_dir(&place).map_err(|source| LabError::Io {
            action: "create",
            path: place.clone(),
            source,
        })?;
        let result = machine.run_guest(&place, exact, &mut |seen| {
            progress.update_machine(repeat, seen, interrupts)
        });
        progress.on_machine_end(repeat);
        Ok(Repeat { result: result?, place })
    };
    let run_next_repeats = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed))
            .take_while(|n| *n < repeats);
        let wanted = |repeat: &u32| *repeat == 0 || !interrupts.end_requested();
        numbers.filter(wanted).map(|repeat| (repeat, one(repeat))).collect::<Vec<_>>()
    };
    let at_a_time = thread::available_parallelism().map_or(1, usize::from).min(repeats as usize);
    let mut done: Vec<(u32, Result<Repeat, LabError>)> = thread::scope(|scope| {
        // QEMU dies with the thread that started it, so each thread lives as long as its machine.
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(run_next_repeats)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(repeat, _)| *repeat);
    done.into_iter().map(|(_, result)| result.map_err(|why| Failure::of_lab(&why))).collect()
}

/// Compares the others with the first, whose bundle is at the run's output, and writes the result
/// into it. The bundle of a differing run is kept beside it.
pub(crate) fn compare_repeats(
    remote: &RemoteRun,
    runs: &[Repeat],
    exit: Exit,
) -> Result<Exit, Failure> {
    let first = Bundle::open(&remote.output).map_err(Failure::failed)?;
    let digest = |bundle: &Bundle| punctual_stats::summarize_bundle(bundle).digest;
    let first_digest = digest(&first);
    let mut digests = vec![first_digest.clone().unwrap_or_default()];
    let mut differences = Vec::new();
    for (number, run) in runs.iter().enumerate().skip(1).map(|(place, run)| (place + 1, run)) {
        let repeat_bundle = run.place.join("bundle");
        let other_bundle = Bundle::open(&repeat_bundle);
        digests.push(other_bundle.as_ref().ok().and_then(&digest).unwrap_or_default());
        let difference = match (&other_bundle, guest_trouble(&run.result)) {
            (_, Some(trouble)) => trouble,
            (Err(why), None) => why.to_string(),
            (Ok(other), None) if first_digest.is_some() && digest(other) == first_digest => {
                continue;
            }
            (Ok(other), None) => match first_divergence(&first, other).map_err(Failure::failed)? {
                Some(divergence) => divergence.to_string(),
                None => "there are no measurements to compare".to_owned(),
            },
        };
        let kept = other_bundle
            .is_ok()
            .then(|| keep_bundle(remote, number, &repeat_bundle))
            .transpose()?;
        let kept =
            kept.map(|path| format!(" (its bundle: {})", display_path(&path))).unwrap_or_default();
        differences.push(format!("repeat {number} differs from the first: {difference}{kept}"));
    }
    add_findings(remote, first, digests, &differences)?;
    match differences.as_slice() {
        [] => Ok(exit),
        some => {
            remote.messages.report_error(&punctual_core::format::escape_unsafe(&some.join("; ")));
            Ok(Exit::Failed)
        }
    }
}

/// A path beside the first one's, with its name and the number.
fn keep_bundle(remote: &RemoteRun, number: usize, came: &Path) -> Result<PathBuf, Failure> {
    let mut name = remote.output.clone().into_os_string();
    name.push(format!(".repeat-{number}"));
    let path = PathBuf::from(name);
    let moved = fs::rename(came, &path);
    moved.map_err(|why| Failure::failed(format!("cannot keep {}: {why}", display_path(&path))))?;
    Ok(path)
}

fn add_findings(
    remote: &RemoteRun,
    first: Bundle,
    digests: Vec<String>,
    differences: &[String],
) -> Result<(), Failure> {
    let finding = |difference: &String| {
        Finding::new("repeats-differ", Severity::Bad, "system", "repeats in virtual time differ")
            .with_evidence(difference.clone())
            .with_remedy(
                "something that is not counted in instructions influenced the machine; \
                 docs/notes/virtual-time.md lists known causes",
            )
    };
    let findings: Vec<Finding> = differences.iter().map(finding).collect();
    let Some(target) = first.manifest.target.clone() else { return Ok(()) };
    let target = punctual_bundle::RanOn { repeats: digests, ..target };
    let bundle =
        amend::amend_bundle(&remote.output, target, &findings, None).map_err(Failure::failed)?;
    amend::renew_summary(&remote.output, &punctual_stats::summarize_bundle(&bundle))
        .map_err(Failure::failed)
}
