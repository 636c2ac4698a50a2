//! Every way to end, by a script: the outcome, verdict and exit code, and that a reader of the
//! bundle gets the same.

use super::CHECKPOINT;
use super::scripted::{Became, BlockedDisk, Happens, SAMPLES, TICK, read, run_in, run_script};
use crate::end::EarlierRuns;
use crate::exit::Failure;
use punctual_bundle::baseline::HeldAgainst;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{Bundle, BundleWriter, Exit, Outcome, amend};
use punctual_core::{Finding, Nanos, Sample};
use std::path::Path;
use std::process::Command;

/// Runs the script in a temporary directory.
fn in_bundle<T>(what: impl FnOnce(&Path) -> T) -> T {
    let place = tempfile::tempdir().expect("a directory");
    what(&place.path().join("bundle"))
}

fn above() -> Outcome {
    let (series, limit) = ("scripted/loop".to_owned(), Some(1_500_000));
    Outcome::StoppedAbove { series, latency: 2_000_000, limit, seq: None }
}

fn load(success: bool) -> Outcome {
    let how = if success { "ended with success" } else { "failed" }.to_owned();
    Outcome::StoppedByLoad { load: "load".to_owned(), how, success }
}

/// In a complete bundle, the reason of the end is the same as in the result.
fn ends(
    script: Vec<(usize, Happens)>,
    interrupted: Option<usize>,
) -> (Became, Option<VerdictWord>, Exit) {
    in_bundle(|directory| {
        let became = run_script(directory, script, interrupted, |_| ());
        let verdict = &became.summary.as_ref().expect("it came to its end").verdict;
        assert_eq!(verdict, &read(directory).verdict, "a reader comes to another verdict");
        let (word, exit) = (verdict.word, verdict.to_exit());
        assert_eq!(became.finished, 1);
        (became, word, exit)
    })
}

#[test]
fn what_ends_it_has_one_outcome_verdict_and_exit_code() {
    use Happens::{Ends, Fails, Takes};
    let late = Takes(Nanos::from_millis(2));
    let is = Happens::Outcome;
    let completed = None;
    let cases = [
        ("its time", vec![], None, Ok(completed.clone()), VerdictWord::Met, Exit::Done, 20),
        ("its end", vec![(3, Ends)], None, Ok(completed.clone()), VerdictWord::Met, Exit::Done, 3),
        (
            "too late",
            vec![(3, late.clone())],
            None,
            Ok(None),
            VerdictWord::NotMet,
            Exit::NotMet,
            20,
        ),
        (
            "stop_above",
            vec![(3, late.clone()), (3, is(above()))],
            None,
            Ok(Some(above())),
            VerdictWord::NotMet,
            Exit::NotMet,
            3,
        ),
        (
            "a sample that does not end",
            vec![(3, Happens::Hangs)],
            None,
            Ok(None),
            VerdictWord::NotMet,
            Exit::NotMet,
            20,
        ),
        (
            "a signal while one does not end",
            vec![(3, Happens::Hangs)],
            Some(4),
            Ok(Some(Outcome::Interrupted)),
            VerdictWord::NotMet,
            Exit::NotMet,
            4,
        ),
        (
            "a sample that has just begun",
            vec![(20, Happens::Hangs)],
            None,
            Ok(None),
            VerdictWord::Met,
            Exit::Done,
            20,
        ),
        // An end in the same round hides nothing.
        (
            "stop_above at the end",
            vec![(3, is(above())), (3, Ends)],
            Some(3),
            Ok(Some(above())),
            VerdictWord::NotMet,
            Exit::NotMet,
            3,
        ),
        (
            "stop_above in the last round",
            vec![(20, is(above()))],
            None,
            Ok(Some(above())),
            VerdictWord::NotMet,
            Exit::NotMet,
            20,
        ),
        (
            "a load",
            vec![(3, is(load(true)))],
            None,
            Ok(Some(load(true))),
            VerdictWord::Met,
            Exit::Done,
            3,
        ),
        (
            "a load that failed",
            vec![(3, is(load(false)))],
            None,
            Ok(Some(load(false))),
            VerdictWord::Undecided,
            Exit::Failed,
            3,
        ),
        (
            "a failure",
            vec![(3, Fails)],
            None,
            Err("it failed".to_owned()),
            VerdictWord::Undecided,
            Exit::Failed,
            3,
        ),
        (
            "a failure after a late sample",
            vec![(2, late), (3, Fails)],
            None,
            Err("it failed".to_owned()),
            VerdictWord::NotMet,
            Exit::Failed,
            3,
        ),
        (
            "a signal",
            vec![],
            Some(3),
            Ok(Some(Outcome::Interrupted)),
            VerdictWord::Met,
            Exit::Done,
            3,
        ),
    ];
    for (case, script, interrupted, outcome, word, exit, rounds) in cases {
        let (became, is_word, is_exit) = ends(script, interrupted);
        assert_eq!(became.outcome, outcome, "{case}");
        assert_eq!((is_word, is_exit), (Some(word), exit), "{case}");
        assert_eq!(became.rounds, rounds, "{case}");
    }
}

#[test]
fn a_signal_ends_the_run_in_its_round() {
    for round in 1..20 {
        let (became, ..) = ends(vec![], Some(round));
        assert_eq!(became.outcome, Ok(Some(Outcome::Interrupted)), "round {round}");
        assert_eq!(became.rounds, round);
    }
    let (became, word, exit) = ends(vec![], Some(20));
    assert_eq!((became.outcome, word, exit), (Ok(None), Some(VerdictWord::Met), Exit::Done));
}

#[test]
fn a_killed_run_keeps_its_last_checkpoint_and_is_never_met() {
    let a_checkpoint = (CHECKPOINT.ns() / TICK.ns()) as usize;
    for round in 1..=20 {
        in_bundle(|directory| {
            let became = run_script(directory, vec![(round, Happens::Killed)], None, |_| ());
            assert!(became.summary.is_none());
            let summary = read(directory);
            assert_eq!(summary.verdict.word, Some(VerdictWord::Undecided), "round {round}");
            assert_eq!(summary.verdict.to_exit(), Exit::NoEvidence, "round {round}");
            let saved = (round - 1) / a_checkpoint * a_checkpoint;
            assert_eq!(became.checkpoints.last().copied().unwrap_or(0), saved);
            let count = summary.phases[0].series[0].count;
            assert_eq!(count, saved as u64 * SAMPLES, "killed in round {round}");
        });
    }
}

#[test]
fn a_violation_before_the_last_checkpoint_survives_a_kill() {
    for (late, word) in [(9, VerdictWord::NotMet), (10, VerdictWord::Undecided)] {
        in_bundle(|directory| {
            let late = (late, Happens::Takes(Nanos::from_millis(2)));
            run_script(directory, vec![late, (15, Happens::Killed)], None, |_| ());
            assert_eq!(read(directory).verdict.word, Some(word));
        });
    }
}

#[test]
fn a_run_that_cannot_be_written_fails_and_is_never_met() {
    for round in 1..=20 {
        in_bundle(|directory| {
            let became = run_script(directory, vec![(round, Happens::Unwritable)], None, |_| ());
            let verdict = became.summary.expect("an end").verdict;
            assert_eq!(verdict.word, Some(VerdictWord::Undecided), "round {round}");
            assert_eq!(verdict.to_exit(), Exit::Failed, "round {round}");
        });
    }
}

#[test]
fn a_killed_run_keeps_the_lower_bound_of_an_unfinished_sample() {
    in_bundle(|directory| {
        run_script(directory, vec![(3, Happens::Hangs), (15, Happens::Killed)], None, |_| ());
        let summary = read(directory);
        assert_eq!(summary.verdict.word, Some(VerdictWord::NotMet));
        let one = summary.phases[0].series[0].unfinished.expect("it is kept");
        assert_eq!(one.at_least, TICK * 6, "the checkpoint is of round 9");
    });
}

/// A mounted file system in memory with this many pages, until it is dropped.
struct Small<'a>(&'a Path);

impl Small<'_> {
    fn of(place: &Path, pages: usize) -> Option<Small<'_>> {
        let options = format!("size={}k", 4 * pages);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]);
        mount.arg(place).status().is_ok_and(|status| status.success()).then_some(Small(place))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// On disks of each size up to the one that has room for everything, so at each write: either it
/// reports a failure, and the readable part is not *met*; or nothing is missing.
#[test]
fn a_full_disk_at_any_write_fails_the_run_and_is_never_met() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut refused, mut failed) = (0, 0);
    for pages in 1..200 {
        let Some(_small) = Small::of(place.path(), pages) else {
            println!("SKIPPED: mounting a file system in memory needs root");
            return;
        };
        let directory = place.path().join("bundle");
        let Ok(writer) = BundleWriter::create(&directory, "scripted", "run") else {
            refused += 1;
            continue;
        };
        let became = run_in(writer, vec![], None, |_| ());
        let verdict = became.summary.expect("an end").verdict;
        let of_reader = read(&directory);
        if verdict.to_exit() == Exit::Done {
            assert_eq!(of_reader.verdict.word, Some(VerdictWord::Met), "{pages} pages");
            assert_eq!(of_reader.phases[0].series[0].count, 20 * SAMPLES, "{pages} pages");
            assert!(refused > 0 && failed > 3, "{refused} refused, {failed} failed");
            return;
        }
        failed += 1;
        assert_eq!(verdict.to_exit(), Exit::Failed, "{pages} pages");
        assert_ne!(of_reader.verdict.word, Some(VerdictWord::Met), "{pages} pages");
    }
    panic!("200 pages do not suffice");
}

/// A run of 10 s whose disk takes nothing for 8 s, with room for this many samples that wait.
fn on_blocked_disk(room: u64, script: Vec<(usize, Happens)>) -> (Became, Summary, u64) {
    in_bundle(|directory| {
        let became = run_script(directory, script, None, |source| {
            source.ends = Some(100);
            let (saver, disk) = BlockedDisk::new(80, room as usize * size_of::<Sample>());
            (source.saver, source.disk) = (saver, Some(disk));
        });
        let bundle = Bundle::open(directory).expect("it opens");
        let (_, series) = bundle.all_series().next().expect("a series");
        let logged = series.load_log().expect("a log").samples.len() as u64;
        assert!(logged >= series.state.samples_kept, "a checkpoint states what is not there");
        (became, read(directory), logged)
    })
}

#[test]
fn a_disk_that_takes_nothing_for_eight_seconds_costs_nothing_and_delays_no_round() {
    let (became, summary, logged) = on_blocked_disk(8_000, vec![]);
    assert_eq!((became.rounds, became.checkpoints.len(), became.views), (100, 11, 20));
    assert_eq!((became.outcome, summary.verdict.to_exit()), (Ok(None), Exit::Done));
    let series = &summary.phases[0].series[0];
    assert_eq!((series.count, logged, series.lost), (100 * SAMPLES, 100 * SAMPLES, Some(0)));
    assert!(!summary.findings.iter().any(|finding| finding.id == "samples-not-saved"));
}

#[test]
fn samples_that_find_no_room_to_wait_are_counted_and_reported() {
    let (became, summary, logged) = on_blocked_disk(3_000, vec![]);
    assert_eq!((became.rounds, became.outcome), (100, Ok(None)));
    assert_eq!(summary.verdict.to_exit(), Exit::Done, "the figures include all");
    assert_eq!(summary.phases[0].series[0].count, 100 * SAMPLES);
    let is_it = |finding: &&Finding| finding.id == "samples-not-saved";
    let finding = summary.findings.iter().find(is_it).expect("it is reported");
    let unsaved = 100 * SAMPLES - logged;
    assert!(logged > 2_000 && unsaved > 6_000, "{logged}");
    let evidence = finding.evidence.as_deref().expect("the number");
    assert!(evidence.replace(',', "").contains(&unsaved.to_string()), "{evidence}: {unsaved}");
    assert!(!summary.findings.iter().any(|finding| finding.id == "samples-not-kept"));
}

#[test]
fn a_run_killed_after_its_disk_took_nothing_opens_with_what_was_written_since() {
    let (became, summary, logged) = on_blocked_disk(8_000, vec![(85, Happens::Killed)]);
    assert!(became.summary.is_none());
    assert_eq!(summary.verdict.word, Some(VerdictWord::Undecided));
    let count = summary.phases[0].series[0].count;
    assert_eq!((count, logged), (81 * SAMPLES, 81 * SAMPLES), "the checkpoint of round 81");
}

#[test]
fn what_is_refused_is_finished_without_a_round() {
    in_bundle(|directory| {
        let became = run_script(directory, vec![], None, |source| source.refused = true);
        assert_eq!(became.outcome, Err("refused".to_owned()));
        assert_eq!((became.rounds, became.finished), (0, 1));
    });
}

#[test]
fn a_source_that_ended_is_measured_for_the_requested_duration() {
    in_bundle(|directory| {
        let ends: Vec<_> = (3..=20).map(|round| (round, Happens::Ends)).collect();
        let became = run_script(directory, ends, None, |source| {
            source.schedule.at_least = Some(Nanos::SECOND);
            source.ends = None;
        });
        assert_eq!((became.outcome, became.rounds), (Ok(None), 10));
    });
}

#[test]
fn without_a_refresh_interval_no_views_are_drawn() {
    in_bundle(|directory| {
        let became = run_script(directory, vec![], None, |_| ());
        assert_eq!((became.views, became.checkpoints), (4, vec![9, 18]));
    });
    in_bundle(|directory| {
        let became = run_script(directory, vec![], None, |source| source.schedule.refresh = None);
        assert_eq!(became.views, 0);
    });
}

/// Requires earlier runs, and has none.
struct TooFew;

impl EarlierRuns for TooFew {
    fn compare_bundle(&self, bundle: &Path) -> Result<Summary, Failure> {
        let held = HeldAgainst { missing: 12, required: true, ..HeldAgainst::default() };
        let bundle = amend::hold_against(bundle, held).map_err(Failure::failed)?;
        Ok(punctual_stats::summarize_bundle(&bundle))
    }
}

/// Metrics are written with the verdict: it must not be the one before the comparison.
#[test]
fn metrics_contain_the_verdict_after_the_baseline_comparison() {
    in_bundle(|directory| {
        let became = run_script(directory, vec![], None, |source| {
            source.further.baseline = Some(Box::new(TooFew));
        });
        let verdict = became.concluded.expect("it was concluded");
        assert_eq!(Some(&verdict), became.summary.as_ref().map(|summary| &summary.verdict));
        assert_eq!(verdict, read(directory).verdict, "a reader comes to another verdict");
        assert_eq!(verdict.word, Some(VerdictWord::Undecided));
    });
}
