//! Continues a run in its bundle after an interruption, a power failure or kill -9.

use crate::exit::Failure;
use crate::messages::display_path;
use crate::request::Loaded;
use punctual_bundle::manifest::PartGap;
use punctual_bundle::reader::{FIRST_LATER, PARTS, part_directory};
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, Manifest, Member, Outcome, Series, amend, writer};
use punctual_core::{Losses, Nanos};
use punctual_plan::{Length, Plan};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of parts of a bundle: one for each time that it was cut off.
const MAX_PARTS: usize = 1_000;
/// The minimum length of the rest of a run.
const SHORTEST: Nanos = Nanos::from_millis(100);

/// The part of a bundle that is measured now.
pub struct Continuation {
    pub bundle: PathBuf,
    /// Since when nothing was measured.
    pub gap: PartGap,
    /// Held as long as this lives: excludes others that would continue it.
    _lock: File,
}

impl Continuation {
    /// Prepares a plan to continue in this bundle, if it exists: its output is a new part, and its
    /// length the rest. Otherwise its output is the bundle. Nothing is written; the leftovers of a
    /// run killed before its first file are removed. `loaded`: the experiment; attaching to a
    /// program has none.
    pub fn prepare_plan(
        bundle: &Path,
        plan: &mut Plan,
        loaded: Option<&Loaded>,
    ) -> Result<Option<Continuation>, Failure> {
        bundle.clone_into(&mut plan.output);
        if !bundle.exists() || writer::remove_unbegun(bundle) {
            return Ok(None);
        }
        let refused = |why: String| Failure::refused(format!("{}: {why}", display_path(bundle)));
        let lock = lock_bundle(bundle).map_err(refused)?;
        let opened = Bundle::open(bundle).map_err(Failure::refused)?;
        check_continuable(&opened, plan, loaded).map_err(refused)?;
        shorten_plan(plan, &opened).map_err(refused)?;
        let existing_parts = opened.member(PARTS).list_entries("").map_err(Failure::refused)?;
        plan.output = (FIRST_LATER..MAX_PARTS)
            .map(|number| part_directory(bundle, number))
            .find(|part| !existing_parts.iter().any(|member| member.path() == part))
            .ok_or_else(|| refused(format!("it was continued {MAX_PARTS} times")))?;
        let from = measured_until(parts_of(&opened)).unwrap_or(opened.manifest.created);
        let gap = PartGap { from, to: jiff::Timestamp::now().max(from) };
        Ok(Some(Continuation { bundle: bundle.to_owned(), gap, _lock: lock }))
    }

    /// Creates the directory of its part as measuring starts.
    pub fn create_part_directory(&self) -> Result<(), Failure> {
        Member::from_root(&self.bundle).join(PARTS).create_directory().map_err(Failure::failed)
    }

    /// Computes the figures and the verdict over all parts, after its end.
    pub(crate) fn summarize_parts(&self) -> Result<Summary, Failure> {
        let bundle = Bundle::open(&self.bundle).map_err(Failure::failed)?;
        let mut summary = punctual_stats::summarize_bundle(&bundle);
        let code = summary.verdict.exit_code(bundle.manifest.command);
        summary.ending.iter_mut().for_each(|ending| ending.exit_code = code);
        amend::renew_summary(&self.bundle, &summary).map_err(Failure::failed)?;
        Ok(summary)
    }
}

/// Excludes others that would write or continue it.
fn lock_bundle(bundle: &Path) -> Result<File, String> {
    writer::lock_bundle(bundle).map_err(|why| match why.kind() {
        io::ErrorKind::WouldBlock => {
            "its run has not ended: end it before continuing it".to_owned()
        }
        _ => format!("cannot lock it: {why}"),
    })
}

/// Whether the run ended early: interrupted, or because something failed.
fn can_go_on(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Interrupted => true,
        outcome => outcome.is_failure(),
    }
}

/// Checks that it is a run of this experiment that did not reach its end.
fn check_continuable(bundle: &Bundle, plan: &Plan, loaded: Option<&Loaded>) -> Result<(), String> {
    let origin = if loaded.is_some() { "run" } else { "attach" };
    if bundle.manifest.origin != origin {
        return Err(format!(
            "it is of `{}`: only bundles of `punctual {origin}` can be continued",
            bundle.manifest.origin
        ));
    }
    match &bundle.manifest.ending {
        None => {}
        Some(ending) if can_go_on(&ending.outcome) => {}
        Some(ending) => return Err(format!("its run ended: {}", ending.outcome)),
    }
    if let Some(loaded) = loaded {
        let kept = bundle.member(loaded.kept_as()).read();
        if kept.ok().as_ref() != Some(&loaded.bytes) {
            return Err("it is of another experiment: the file has changed since".to_owned());
        }
    } else if bundle.manifest.experiment != plan.name {
        return Err(format!("it is of another program: `{}`", bundle.manifest.experiment));
    }
    let text = bundle.plan_text().map_err(|why| why.to_string())?.unwrap_or_default();
    let plan_lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("output = "));
        lines.map(str::to_owned).collect()
    };
    let (then, now) = (plan_lines(&text), plan_lines(&plan.to_toml()));
    let differs = then.iter().zip(&now).find(|(then, now)| then != now);
    match differs {
        Some((then, now)) => Err(format!("its plan was another: `{then}`, and now `{now}`")),
        None if then.len() != now.len() => Err("its plan was another".to_owned()),
        None if plan.phases.len() > 1 => Err("only a run of one phase is continued".to_owned()),
        None => Ok(()),
    }
}

/// Removes the measured part from the plan.
fn shorten_plan(plan: &mut Plan, bundle: &Bundle) -> Result<(), String> {
    let Some(phase) = plan.phases.first_mut() else { return Ok(()) };
    let series: Vec<_> = bundle.all_series().map(|(_, series)| series).collect();
    let mut is_left = false;
    for measure in &mut phase.measures {
        let measured_count = |count: fn(&Losses) -> u64| {
            let count = |series: &&Series| count(&series.state.data.losses);
            let measure_counts: Vec<_> =
                series.iter().map(|of| (of.meta.measure.as_str(), count(of))).collect();
            least_count(&measure_counts, &measure.name, measure.threads.len())
        };
        let (left, length) = match measure.length {
            Length::UntilInterrupted => (true, Length::UntilInterrupted),
            Length::Samples(samples) => {
                let left = samples.saturating_sub(measured_count(|losses| losses.recorded));
                // A thread cannot be asked for zero samples.
                (left > 0, Length::Samples(left.max(1)))
            }
            Length::Duration(duration) => {
                let Some(period) = measure.workload.sample_period() else {
                    let reason = "without a period the measured time is unknown: only `forever` \
                               and timers can be continued";
                    return Err(reason.to_owned());
                };
                let periods = i64::try_from(measured_count(|losses| losses.expected_count()))
                    .unwrap_or(i64::MAX);
                let left = duration - Nanos(period.ns().saturating_mul(periods));
                (left > Nanos::ZERO, Length::Duration(left.max(SHORTEST)))
            }
        };
        (is_left, measure.length) = (is_left || left, length);
    }
    if !is_left {
        return Err("all of it is measured".to_owned());
    }
    let longest = phase.measures.iter().filter_map(|measure| match measure.length {
        Length::Duration(duration) => Some(duration),
        _ => None,
    });
    phase.duration = phase.duration.and(longest.max());
    Ok(())
}

/// How much of a measure was measured, by the counts of all series with their measures: of several
/// threads, the one that measured least.
fn least_count(counts: &[(&str, u64)], measure: &str, threads: usize) -> u64 {
    let own_counts = || counts.iter().filter(|(of, _)| *of == measure).map(|(_, count)| *count);
    // A thread killed before its first checkpoint has no series.
    if own_counts().count() < threads { 0 } else { own_counts().min().unwrap_or(0) }
}

/// The times that show until when a part measured.
#[derive(Clone, Copy, Default)]
struct PartTimes {
    ended: Option<jiff::Timestamp>,
    /// The last save of its statistics.
    saved: Option<jiff::Timestamp>,
    /// The start of the unmeasured time before it.
    gap: Option<jiff::Timestamp>,
}

/// Until when the last of these ordered parts measured; one that saved nothing measured nothing.
fn measured_until(parts: Vec<PartTimes>) -> Option<jiff::Timestamp> {
    parts.into_iter().rev().find_map(|part| part.ended.or(part.saved).or(part.gap))
}

fn parts_of(bundle: &Bundle) -> Vec<PartTimes> {
    let part_times = |directory: &PathBuf| {
        let inside = directory.strip_prefix(&bundle.directory).unwrap_or(Path::new(""));
        let part = Member::from_root(&bundle.directory).join(inside);
        let manifest = part.join("bundle.json").read_json::<Manifest>().ok();
        let gap = manifest.as_ref().and_then(|of| of.gaps.first()).map(|gap| gap.from);
        let ended = manifest.and_then(|of| of.ending).map(|ending| ending.at);
        PartTimes { ended, saved: last_saved(&part), gap }
    };
    [&bundle.directory].into_iter().chain(&bundle.parts).map(part_times).collect()
}

/// When statistics of a part were last saved.
fn last_saved(part: &Member) -> Option<jiff::Timestamp> {
    let phases = part.join("phases").list_entries("").ok()?;
    let files = phases.iter().flat_map(|phase| {
        let files_ending_in = |ending| phase.list_entries(ending).unwrap_or_default();
        [files_ending_in(".checkpoint"), files_ending_in(".state.json")].concat()
    });
    let saved = |file: Member| file.open().ok()?.metadata().ok()?.modified().ok();
    jiff::Timestamp::try_from(files.filter_map(saved).max()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_a_checkpoint_does_not_extend_the_measured_time() {
        let at = |second| jiff::Timestamp::from_second(second).ok();
        let first = PartTimes { saved: at(10), ..PartTimes::default() };
        let killed = PartTimes { gap: at(10), ..PartTimes::default() };
        assert_eq!(measured_until(vec![first, killed]), at(10));
        assert_eq!(measured_until(vec![first, PartTimes::default()]), at(10));
        let saved = PartTimes { saved: at(30), ..killed };
        assert_eq!(measured_until(vec![first, saved]), at(30));
        let ended = PartTimes { ended: at(31), ..saved };
        assert_eq!(measured_until(vec![first, ended]), at(31));
        assert_eq!(measured_until(vec![PartTimes::default()]), None);
    }

    #[test]
    fn the_slowest_thread_of_a_measure_determines_its_sample_count() {
        let counts = [("fast", 900), ("slow", 90), ("fast", 700)];
        assert_eq!(least_count(&counts, "fast", 2), 700);
        assert_eq!(least_count(&counts, "slow", 1), 90);
        assert_eq!(least_count(&counts, "slow", 2), 0, "one of its threads saved nothing");
        assert_eq!(least_count(&counts, "other", 1), 0);
    }

    #[test]
    fn only_runs_that_ended_early_can_be_continued() {
        let load =
            |success| Outcome::StoppedByLoad { load: "make".into(), how: "ended".into(), success };
        assert!(can_go_on(&Outcome::Interrupted) && can_go_on(&load(false)));
        assert!(can_go_on(&Outcome::Failed { why: "no space".into() }));
        let series = "main/timer".into();
        let above = Outcome::StoppedAbove { series, latency: 1, limit: None, seq: None };
        assert!(![Outcome::Completed, load(true), above].iter().any(can_go_on));
    }

    /// Parts that another user put there as a link are not followed.
    #[test]
    fn a_symbolic_link_is_refused_as_directory_of_parts() {
        let place = tempfile::tempdir().expect("a directory");
        let (bundle, elsewhere) = (place.path().join("b"), place.path().join("elsewhere"));
        std::fs::create_dir(&bundle).expect("a directory");
        std::fs::create_dir(&elsewhere).expect("a directory");
        std::os::unix::fs::symlink(&elsewhere, bundle.join(PARTS)).expect("a link");
        let gap = PartGap { from: jiff::Timestamp::UNIX_EPOCH, to: jiff::Timestamp::UNIX_EPOCH };
        let _lock = File::open(&bundle).expect("opened");
        let continuation = Continuation { bundle, gap, _lock };
        assert!(continuation.create_part_directory().is_err());
    }
}
