//! Endings and damage.

use super::*;
use crate::SeriesView;
use crate::testing::{phase_meta, series_meta, series_state, test_manifest};
use crate::{RunView, summarize_run};
use VerdictWord::{Met, NotMet, Undecided};
use punctual_bundle::verdict::{LeftOut, LeftOutKind};
use punctual_bundle::{Exit, PhaseMeta};

/// The verdict on a run of one series whose samples took 1 µs.
fn judge(manifest: &Manifest, phase: &PhaseMeta, requirement: &str, damage: &[&str]) -> Verdict {
    judge_asked(manifest, phase, &[requirement], damage)
}

fn judge_asked(
    manifest: &Manifest,
    phase: &PhaseMeta,
    requirements: &[&str],
    damage: &[&str],
) -> Verdict {
    let (meta, state) = (series_meta(requirements), series_state(&[1_000; 50]));
    let series = vec![SeriesView { meta: &meta, state: &state, account: None }];
    let phases = &[PhaseView { meta: phase, series }];
    let damage: Vec<String> = damage.iter().map(|of| (*of).to_owned()).collect();
    let plan = PlannedRequests {
        phases: ["p", "later"].map(|name| planned(name, requirements)).into(),
        ..PlannedRequests::default()
    };
    let (planned, damage) = (&plan, damage.as_slice());
    summarize_run(&RunView { manifest, planned, phases, found: &[], damage, recorded: None })
        .verdict
}

fn planned(name: &str, requirements: &[&str]) -> Unbegun {
    let requirements = requirements.iter().map(|text| (*text).to_owned()).collect();
    Unbegun { phase: name.into(), requirements }
}

fn completed() -> Manifest {
    test_manifest(Some(Outcome::Completed))
}

#[test]
fn a_bound_that_left_threads_out_leaves_a_requirement_open() {
    let left_out = LeftOut { what: LeftOutKind::Threads, bound: 512, records: 3 };
    let phase = PhaseMeta { left_out: vec![left_out], ..phase_meta() };
    let open = judge(&completed(), &phase, "max < 2us", &[]);
    assert_eq!((open.word, open.to_exit()), (Some(Undecided), Exit::NoEvidence));
    let violated = judge(&completed(), &phase, "max < 1us", &[]);
    assert_eq!((violated.word, violated.to_exit()), (Some(NotMet), Exit::NotMet));
    let none_asked = judge_asked(&completed(), &phase, &[], &[]);
    assert_eq!((none_asked.word, none_asked.to_exit()), (None, Exit::Done));
    assert_eq!(none_asked.reasons.len(), 1, "it is said all the same");
}

#[test]
fn a_requirement_that_nothing_was_measured_for_is_open() {
    let phase = PhaseMeta { without_series: vec!["servo/max < 1ms".into()], ..phase_meta() };
    let verdict = judge(&completed(), &phase, "max < 2us", &[]);
    assert_eq!((verdict.word, verdict.to_exit()), (Some(Undecided), Exit::NoEvidence));
}

#[test]
fn a_phase_that_never_began_matters_only_if_it_has_requirements() {
    let interrupted = test_manifest(Some(Outcome::Interrupted));
    let verdict = judge(&interrupted, &phase_meta(), "max < 2us", &[]);
    assert_eq!(verdict.word, Some(Undecided));
    assert_eq!(
        verdict.reasons,
        [Reason::Interrupted { unbegun: vec![planned("later", &["max < 2us"])] }]
    );
    let none_asked = judge_asked(&interrupted, &phase_meta(), &[], &[]);
    assert_eq!((none_asked.word, none_asked.to_exit()), (None, Exit::Done));
    let cut_off = judge(&test_manifest(None), &phase_meta(), "max < 2us", &[]);
    assert_eq!((cut_off.word, cut_off.to_exit()), (Some(Undecided), Exit::NoEvidence));
}

#[test]
fn the_cause_that_ended_a_run_decides_its_verdict() {
    let stopped = Outcome::StoppedAbove {
        series: "p/cpu0".into(),
        latency: 1_000,
        limit: Some(900),
        seq: Some(7),
    };
    let verdict = judge_asked(&test_manifest(Some(stopped)), &phase_meta(), &[], &[]);
    assert_eq!((verdict.word, verdict.to_exit()), (Some(NotMet), Exit::NotMet));
    let load = |success| Outcome::StoppedByLoad {
        load: "l".into(),
        how: "ended with success".into(),
        success,
    };
    let failed = judge(&test_manifest(Some(load(false))), &phase_meta(), "max < 2us", &[]);
    assert_eq!((failed.word, failed.to_exit()), (Some(Undecided), Exit::Failed));
    let done = judge_asked(&test_manifest(Some(load(true))), &phase_meta(), &[], &[]);
    assert_eq!((done.word, done.to_exit()), (None, Exit::Done));
}

/// The field case `one-series-not-met`: a state file is truncated later.
#[test]
fn later_damage_changes_only_met_verdicts() {
    let damaged = |requirement: &str| {
        let stored = judge(&completed(), &phase_meta(), requirement, &[]);
        let later = Manifest { verdict: Some(stored.clone()), ..completed() };
        // Its series is no longer readable.
        let gone = judge_asked(&later, &phase_meta(), &[], &["0002.state.json: cut off"]);
        (stored.word, gone)
    };
    let (stored, now) = damaged("max < 2us");
    assert_eq!((stored, now.word, now.to_exit()), (Some(Met), Some(Undecided), Exit::NoEvidence));
    let (stored, now) = damaged("max < 1us");
    assert_eq!((stored, now.word, now.to_exit()), (Some(NotMet), Some(NotMet), Exit::NotMet));
    let kinds: Vec<bool> =
        now.reasons.iter().map(|of| matches!(of, Reason::Unreadable { .. })).collect();
    assert_eq!(kinds, [false, true], "what is not met, and what can no longer be read");
}
