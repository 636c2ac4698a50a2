use super::*;
use crate::SeriesView;
use crate::testing::{phase_meta, series_meta, series_state, summarize_phases, test_manifest};
use punctual_bundle::evidence::{
    ClockEvidence, ControllerEvidence, Deviation, IsolationEvidence, LoadEvidence, LoadProgress,
    MemoryEvidence, OtherMeasurement, PhaseEvidence, ProgramEvidence, ReadBack, SettingsEvidence,
    ThreadEvidence,
};
use punctual_bundle::meta::{ATTACHED_WORKLOAD, ENTRIES_WORKLOAD, REQUESTED_SCHEDULING};
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::Summary;
use punctual_bundle::{KernelEvidence, Outcome, RanOn, SeriesMeta};
use punctual_core::series::HDR_MAX;
use punctual_core::{Clock, CpuSet, Fact, Finding, MonotonicNs, Nanos};

/// A fully proved run with one series, and a requirement that its samples meet.
struct Case {
    manifest: Manifest,
    evidence: Fact<PhaseEvidence>,
    meta: SeriesMeta,
    state: SeriesState,
    recorded: Option<Recorded>,
    controller: Fact<ControllerEvidence>,
}

fn read_back(requested: &str) -> ReadBack {
    ReadBack {
        asked: requested.into(),
        times: 3,
        other: None,
        after: Fact::Known(requested.into()),
    }
}

fn proved() -> Case {
    let progress =
        LoadProgress { cpu_time: Nanos::SECOND, switches: 900, io_bytes: 0, processes: 2 };
    let evidence = PhaseEvidence {
        threads: vec![ThreadEvidence {
            tid: 7,
            series: vec!["cpu0".into()],
            scheduling: read_back("SCHED_FIFO 80"),
            refused: None,
            affinity: Fact::Known(read_back("0")),
            unlocked: None,
            due: Some(1_000),
            has_end: true,
            reached_end: true,
        }],
        memory: MemoryEvidence { asked: true, refused: None, locked_kib: Fact::Known(4_000) },
        clock: ClockEvidence {
            resolution: Fact::Known(Nanos(1)),
            source: Fact::Known("tsc".into()),
            source_after: Fact::Known("tsc".into()),
            stepped: None,
        },
        isolation: Fact::Known(IsolationEvidence {
            cpus: CpuSet::from_cpu(0),
            ..Default::default()
        }),
        settings: Fact::Known(SettingsEvidence::default()),
        loads: vec![LoadEvidence {
            name: "busy".into(),
            due: Nanos::SECOND,
            alive: Nanos::SECOND,
            looks: 4,
            progress: Fact::Known(progress),
            ..Default::default()
        }],
        others: Fact::Known(Vec::new()),
        throttled: Fact::Known(Vec::new()),
        ..PhaseEvidence::default()
    };
    let mut manifest = test_manifest(Some(Outcome::Completed));
    manifest.target = Some(RanOn {
        kind: "vm".into(),
        name: "6.1-rt".into(),
        started: jiff::Timestamp::UNIX_EPOCH,
        kernel: Some(KernelEvidence {
            release: Some("6.1.0-rt".into()),
            booted: Some("6.1.0-rt".into()),
            preemption: Some("full".into()),
            preemption_in_force: Some("full".into()),
        }),
        ..RanOn::default()
    });
    let mut meta = series_meta(&["max < 1ms"]);
    meta.details.insert(REQUESTED_SCHEDULING.into(), "SCHED_FIFO 80".into());
    let recorded = Some(Recorded::without_events("BPF", MonotonicNs(0)));
    Case {
        manifest,
        evidence: Fact::Known(evidence),
        meta,
        state: series_state(&[10_000; 1_000]),
        recorded,
        controller: Fact::Known(ControllerEvidence::default()),
    }
}

impl Case {
    fn but(change: impl FnOnce(&mut PhaseEvidence)) -> Case {
        let mut case = proved();
        if let Fact::Known(evidence) = &mut case.evidence {
            change(evidence);
        }
        case
    }
    fn with_controller(own: ControllerEvidence) -> Case {
        Case { controller: Fact::Known(own), ..proved() }
    }
    fn but_all(change: impl FnOnce(&mut Case)) -> Case {
        let mut case = proved();
        change(&mut case);
        case
    }
    fn without_requirement(mut self) -> Case {
        self.meta.requirements.clear();
        self
    }
    fn summary(&self) -> Summary {
        let mut phase = phase_meta();
        phase.evidence = self.evidence.clone();
        phase.controller = self.controller.clone();
        let views = [PhaseView {
            meta: &phase,
            series: vec![SeriesView { meta: &self.meta, state: &self.state, account: None }],
        }];
        summarize_phases(&self.manifest, &views, &[], &[], self.recorded.as_ref())
    }
    /// The words of the requirement, of the run, and of all proofs.
    fn words(&self) -> (VerdictWord, Option<VerdictWord>, ValidityWord) {
        let summary = self.summary();
        let of_requirement = summary.phases[0].series[0].requirements[0].verdict;
        (of_requirement, summary.verdict.word, summary.validity.unwrap().verdict)
    }
}

use VerdictWord::{Invalid, Met, NotMet, Undecided};

/// Two parts of a run, the first with 400 samples, the second with the other 600.
fn in_parts(first: Fact<PhaseEvidence>, change: impl FnOnce(&mut PhaseEvidence)) -> Case {
    let later = Case::but(|evidence| {
        evidence.threads[0].due = Some(600);
        change(evidence);
    });
    let evidence = PhaseEvidence::of_parts(first, later.evidence.clone(), |_| 400);
    Case { evidence, ..later }
}

/// One part does not improve the other, and one that was cut off is unknown only for itself.
#[test]
fn the_gravest_of_all_parts_counts() {
    let first = || {
        Case::but(|evidence| {
            evidence.threads[0].due = Some(1_000);
            evidence.threads[0].reached_end = false;
        })
        .evidence
    };
    assert_eq!(in_parts(first(), |_| {}).words(), (Met, Some(Met), ValidityWord::Valid));
    let wrong = |evidence: &mut PhaseEvidence| {
        evidence.threads[0].affinity = Fact::Known(ReadBack {
            other: Some(Deviation { at: Nanos::SECOND, value: "0-3".into() }),
            ..read_back("0")
        });
    };
    for first in [first(), Fact::NotAsked] {
        let (of_requirement, _, validity) = in_parts(first, wrong).words();
        assert_eq!((of_requirement, validity), (Invalid, ValidityWord::Invalid));
    }
    let lost = |evidence: &mut PhaseEvidence| evidence.threads[0].due = Some(6_000);
    assert_eq!(in_parts(first(), lost).words().2, ValidityWord::Invalid);
    let cut_off = in_parts(Fact::NotAsked, |_| {});
    assert_eq!(cut_off.words(), (Undecided, Some(Undecided), ValidityWord::Undecided));
    let proofs = cut_off.summary().validity.unwrap().proofs;
    let unknown: Vec<_> =
        proofs.iter().filter(|proof| proof.outcome == ProofOutcome::Unknown).collect();
    assert!(unknown.len() == 1 && unknown[0].why.contains("cut off"), "{unknown:?}");
}

#[test]
fn a_proved_requirement_is_met() {
    assert_eq!(proved().words(), (Met, Some(Met), ValidityWord::Valid));
    let proofs = proved().summary().validity.unwrap().proofs;
    let mut words: Vec<ProofWord> = proofs.iter().map(|proof| proof.proof).collect();
    words.sort();
    use ProofWord::*;
    let first = [Kernel, Recorder, Scheduling, Affinity, Memory, Clock, Isolation, Settings];
    let all = [&first[..], &[Load, Others, Samples, Controller]].concat();
    assert_eq!(words, all, "{proofs:?}");
}

fn other(value: &str) -> Option<Deviation> {
    Some(Deviation { at: Nanos::SECOND, value: value.into() })
}

#[test]
fn a_run_is_invalid_if_any_proof_fails() {
    type Change = fn(&mut PhaseEvidence);
    let changes: [(&str, Change); 22] = [
        ("SCHED_FIFO 80 was requested, it ran as SCHED_OTHER", |e| {
            e.threads[0].scheduling.other = other("SCHED_OTHER")
        }),
        ("at the end it ran as SCHED_RR 5", |e| {
            e.threads[0].scheduling.after = Fact::Known("SCHED_RR 5".into())
        }),
        ("was refused (EPERM)", |e| e.threads[0].refused = Some("EPERM".into())),
        ("it was allowed on CPU 0-1", |e| {
            e.threads[0].affinity = Fact::Known(ReadBack { other: other("0-1"), ..read_back("0") })
        }),
        ("memory could not be locked: ENOMEM", |e| e.memory.refused = Some("ENOMEM".into())),
        ("memory could not be locked: EAGAIN", |e| e.threads[0].unlocked = Some("EAGAIN".into())),
        ("no memory was locked", |e| e.memory.locked_kib = Fact::Known(0)),
        ("replaced the clock source tsc by hpet", |e| {
            e.clock.source_after = Fact::Known("hpet".into())
        }),
        ("no clock source better than its tick", |e| {
            e.clock.source = Fact::Known("refined-jiffies".into())
        }),
        ("no high-resolution timers", |e| e.clock.resolution = Fact::Known(Nanos(4_000_000))),
        ("the wall clock was set by", |e| e.clock.stepped = Some(Nanos::SECOND)),
        ("it ran for 40 % of its time: it was killed by signal 9", |e| {
            e.loads[0].alive = Nanos::from_millis(400);
            e.loads[0].ended = Some("was killed by signal 9".into());
        }),
        ("it idled: in 4 of 4 polls", |e| e.loads[0].idle_looks = 4),
        ("it ran for 60 % of its time: it was stopped from 0.2 s to 0.6 s", |e| {
            e.loads[0].stopped = vec![(Nanos::from_millis(200), Nanos::from_millis(600))];
        }),
        ("it never ran", |e| (e.loads[0].alive, e.loads[0].looks) = (Nanos::ZERO, 0)),
        ("was not as requested: cpuset.cpus.partition is member", |e| {
            if let Fact::Known(isolation) = &mut e.isolation {
                isolation.missing_before.push("cpuset.cpus.partition is member".into());
            }
        }),
        ("did not last: cpuset.cpus.partition is member", |e| {
            if let Fact::Known(isolation) = &mut e.isolation {
                isolation.missing_after.push("cpuset.cpus.partition is member".into());
            }
        }),
        ("a fixed setting did not last: scaling_max_freq holds 600000", |e| {
            if let Fact::Known(settings) = &mut e.settings {
                settings.missing_after.push("scaling_max_freq holds 600000".into());
            }
        }),
        ("1000 of 5000 samples that were due", |e| e.threads[0].due = Some(5_000)),
        ("punctual (process 9) also measured on CPU 0", |e| {
            e.others = Fact::Known(vec![OtherMeasurement { pid: 9, cpus: CpuSet::from_cpu(0) }]);
        }),
        ("at the end it was allowed on CPU 1", |e| {
            e.threads[0].affinity =
                Fact::Known(ReadBack { after: Fact::Known("1".into()), ..read_back("0") });
        }),
        ("no clock source better", |e| e.clock.source = Fact::Known("jiffies".into())),
    ];
    for (why, change) in changes {
        let case = Case::but(change);
        assert_eq!(case.words(), (Invalid, Some(Invalid), ValidityWord::Invalid), "{why}");
        let summary = case.summary();
        let text = summary.phases[0].series[0].requirements[0].reason.clone().unwrap();
        assert!(text.contains(why), "{why} is not in {text}");
        let (not_met, _) = (case.meta.requirements.clone(), ());
        let mut worse = case;
        worse.meta.requirements = vec!["max < 1us".into()];
        let expected = if why.contains("were due") { NotMet } else { Invalid };
        assert_eq!(worse.words().0, expected, "{not_met:?}: {why}");
    }
}

#[test]
fn unavailable_evidence_makes_a_run_undecided() {
    type Change = fn(&mut PhaseEvidence);
    let changes: [Change; 8] = [
        |e| e.threads[0].scheduling.after = Fact::Unavailable("ESRCH".into()),
        |e| e.threads[0].affinity = Fact::Unavailable("ESRCH".into()),
        |e| e.memory.locked_kib = Fact::Unavailable("no /proc".into()),
        |e| e.clock.source = Fact::Unavailable("no /sys".into()),
        |e| e.isolation = Fact::Unavailable("no journal".into()),
        |e| e.loads[0].progress = Fact::Unavailable("hidepid".into()),
        |e| e.others = Fact::Unavailable("no /proc/net/unix".into()),
        |e| e.threads[0].reached_end = false,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut case = Case::but(change);
        assert_eq!(case.words(), (Undecided, Some(Undecided), ValidityWord::Undecided), "{number}");
        case.meta.requirements = vec!["max < 1us".into()];
        assert_eq!(case.words().0, NotMet, "what was seen stays: {number}");
    }
}

fn has(case: &Case, id: &str) -> bool {
    case.summary().findings.iter().any(|finding| finding.id == id)
}

#[test]
fn a_short_stop_of_a_load_is_reported_but_not_invalid() {
    let mut case = Case::but(|e| {
        e.loads[0].stopped = vec![(Nanos::from_millis(200), Nanos::from_millis(250))];
    });
    case.meta.requirements = vec!["max < 1ms".into()];
    assert_eq!(case.words().0, Met);
    assert!(has(&case, "load-stopped") && !has(&proved(), "load-stopped"));
}

/// A run of 5 s takes 152 s, as punctual itself does not run.
#[test]
fn a_delayed_controller_makes_a_run_invalid_only_if_samples_were_lost() {
    let seconds = Nanos::from_secs;
    let own = |asked: Option<i64>, lasted, delayed| ControllerEvidence {
        asked: asked.map(seconds),
        lasted: seconds(lasted),
        delayed: seconds(delayed),
        longest: seconds(delayed),
        ..ControllerEvidence::default()
    };
    for asked in [Some(5), None] {
        let complete = Case::with_controller(own(asked, 152, 147));
        assert_eq!(complete.words().0, Met, "nothing was lost");
        assert!(has(&complete, "controller-delayed"));
    }
    let mut starved = Case::with_controller(own(Some(5), 152, 147));
    starved.state.data.losses.dropped = 1;
    assert_eq!(starved.words(), (Invalid, Some(Invalid), ValidityWord::Invalid));
    let text = starved.summary().phases[0].series[0].requirements[0].reason.clone().unwrap();
    assert!(text.contains("punctual itself did not run for 147 s"), "{text}");
    assert!(has(&starved, "controller-delayed"));
    starved.meta.requirements = vec!["max < 1us".into()];
    assert_eq!(starved.words().1, Some(NotMet));
    // A slow machine: a fifth of a second hides nothing.
    let mut short = own(Some(1), 1, 0);
    (short.lasted, short.delayed) = (Nanos::from_millis(1_203), Nanos::from_millis(214));
    assert_eq!(Case::with_controller(short).words().0, Met);
    // The phase lasted longer for another reason, or all rounds were on time.
    for quiet in [own(Some(5), 20, 0), own(Some(5), 6, 0), own(Some(5), 5, 0)] {
        let case = Case::with_controller(quiet);
        assert!(case.words().0 == Met && !has(&case, "controller-delayed"));
    }
}

#[test]
fn a_delay_of_the_controller_names_its_measured_reason_alone() {
    let seconds = Nanos::from_secs;
    let reason = |waited: Option<i64>, blocked: i64| {
        let (delayed, longest) = (seconds(8), seconds(8));
        let (waited, blocked) = (waited.map(seconds), seconds(blocked));
        let own = ControllerEvidence {
            delayed,
            longest,
            waited,
            blocked,
            ..ControllerEvidence::default()
        };
        let findings = Case::with_controller(own).summary().findings;
        let is_it = |finding: &&Finding| finding.id == "controller-delayed";
        findings.iter().find(is_it).expect("the finding").message.clone()
    };
    let cases = [
        (Some(7), 0, "other tasks had its CPUs"),
        (Some(1), 6, "its own system calls were blocked"),
        (Some(1), 1, "the reason is not known"),
        (None, 0, "the reason is not known"),
    ];
    for (waited, blocked, text) in cases {
        assert!(reason(waited, blocked).ends_with(text), "{waited:?} {blocked}");
    }
}

#[test]
fn a_run_on_another_kernel_than_requested_is_invalid() {
    let with = |change: fn(&mut KernelEvidence)| {
        Case::but_all(|case| {
            change(case.manifest.target.as_mut().unwrap().kernel.as_mut().unwrap())
        })
        .words()
    };
    let invalid = (Invalid, Some(Invalid), ValidityWord::Invalid);
    assert_eq!(with(|kernel| kernel.booted = Some("6.12".into())), invalid);
    assert_eq!(with(|kernel| kernel.preemption_in_force = Some("none".into())), invalid);
    assert_eq!(with(|kernel| kernel.booted = None).1, Some(Undecided));
}

#[test]
fn lost_samples_make_a_run_undecided_or_invalid_if_many() {
    let lost = |n, requirement: &str| {
        Case::but_all(|case| {
            case.state.data.losses.dropped = n;
            case.meta.requirements = vec![requirement.into()];
        })
        .words()
    };
    assert_eq!(lost(1, "max < 1ms"), (Undecided, Some(Undecided), ValidityWord::Undecided));
    assert_eq!(lost(1, "count > 5").0, Undecided);
    assert_eq!(lost(500, "max < 1ms"), (Invalid, Some(Invalid), ValidityWord::Invalid));
    assert_eq!(
        lost(500, "max < 1us"),
        (NotMet, Some(NotMet), ValidityWord::Invalid),
        "a violation that was seen stays one"
    );
}

/// Of those whose release is not known, nothing was lost: however many, they are undecided.
#[test]
fn lost_cycles_of_a_program_count_as_lost_samples_do() {
    let words = |lost, unknown, requirement: &str| {
        let mut case = Case { evidence: Fact::NotAsked, ..proved() };
        case.meta.workload = ATTACHED_WORKLOAD.into();
        case.meta.requirements = vec![requirement.into()];
        case.state.data.losses.dropped = lost + unknown;
        case.state.data.losses.lost_records = lost;
        let ids: Vec<String> = case.summary().findings.into_iter().map(|one| one.id).collect();
        let is_found = |id: &str| ids.iter().any(|of| of == id);
        assert_eq!(is_found("samples-lost"), lost > 0);
        assert_eq!(is_found("releases-not-known"), unknown > 0);
        case.words()
    };
    let undecided = (Undecided, Some(Undecided), ValidityWord::Undecided);
    assert_eq!(words(1, 0, "max < 1ms"), undecided);
    assert_eq!(words(500, 0, "max < 1ms"), (Invalid, Some(Invalid), ValidityWord::Invalid));
    assert_eq!(words(500, 7, "max < 1us"), (NotMet, Some(NotMet), ValidityWord::Invalid));
    assert_eq!(words(0, 500, "max < 1ms"), undecided);
}

#[test]
fn lost_recording_events_leave_validity_undecided_but_requirements_decided() {
    let case = Case::but_all(|case| {
        let source = punctual_core::event::RecordedSource {
            name: "cpu 0".into(),
            cpu: Some(0),
            recorded: 9,
            lost: 4,
            torn: 0,
        };
        case.recorded.as_mut().unwrap().sources.push(source);
    });
    assert_eq!(case.words(), (Met, Some(Met), ValidityWord::Undecided));
}

#[test]
fn an_interrupted_run_is_undecided_unless_it_has_no_end() {
    let interrupted = |has_end| {
        let mut case = Case::but(|e| {
            (e.threads[0].reached_end, e.threads[0].has_end) = (false, has_end);
            e.threads[0].due = None;
        });
        case.manifest.ending.as_mut().unwrap().outcome = Outcome::Interrupted;
        case.words().1
    };
    assert_eq!(interrupted(true), Some(Undecided));
    assert_eq!(interrupted(false), Some(Met));
}

#[test]
fn missing_privileges_are_invalid_only_if_real_time_is_required() {
    let lacking = |e: &mut PhaseEvidence| {
        (e.threads[0].refused, e.memory.refused) = (Some("EPERM".into()), Some("EPERM".into()))
    };
    let free = Case::but(lacking).without_requirement().summary();
    assert_eq!((free.verdict.word, free.validity.unwrap().verdict), (None, ValidityWord::Valid));
    let insists = Case::but(|e| {
        lacking(e);
        e.real_time_required = true;
    });
    assert_eq!(
        insists.without_requirement().summary().validity.unwrap().verdict,
        ValidityWord::Invalid
    );
}

#[test]
fn a_load_that_ended_as_planned_does_not_affect_the_verdict() {
    let done = Case::but(|e| {
        (e.loads[0].alive, e.loads[0].done) = (Nanos::from_millis(1), true);
        e.loads[0].ended = Some("ended with success".into());
    });
    assert_eq!(done.words().1, Some(Met));
    let later =
        Case::but(|e| e.loads[0] = LoadEvidence { name: "later".into(), ..Default::default() });
    assert_eq!(later.words().1, Some(Met), "it was not due to start before the end");
}

#[test]
fn a_program_not_measured_to_its_end_leaves_the_run_undecided() {
    let of = |change: fn(&mut ProgramEvidence)| {
        let mut program = ProgramEvidence {
            name: "program".into(),
            series: vec!["cpu0".into()],
            has_end: true,
            reached_end: true,
            ..Default::default()
        };
        change(&mut program);
        Case::but(|e| {
            e.threads.clear();
            e.programs = vec![program];
        })
    };
    assert_eq!(of(|_| {}).words(), (Met, Some(Met), ValidityWord::Valid));
    let open = (Undecided, Some(Undecided), ValidityWord::Undecided);
    assert_eq!(of(|program| program.lost = 3).words(), open);
    let early = |program: &mut ProgramEvidence| {
        (program.reached_end, program.ended) = (false, Some("ended with status 9".into()));
    };
    assert_eq!(of(early).words(), open);
    let mut worse = of(early);
    worse.meta.requirements = vec!["max < 1us".into()];
    assert_eq!(worse.words().0, NotMet, "what was seen stays");
    assert_eq!(of(|program| program.reached_end = false).words(), open);
    // CPUs are not asked for properties of threads.
    let mut entries = of(|_| {});
    entries.meta.workload = ENTRIES_WORKLOAD.into();
    assert_eq!(entries.words(), (Met, Some(Met), ValidityWord::Valid));
    let mut cut = of(|entries| entries.reached_end = false);
    cut.meta.workload = ENTRIES_WORKLOAD.into();
    assert_eq!(cut.words(), open);
    // A program without a series: the only series belongs to another one.
    let nothing = of(|program| program.series.clear());
    assert_eq!(nothing.words().1, Some(Invalid));
}

#[test]
fn a_bundle_without_evidence_is_judged_by_its_metadata() {
    let mut old = Case { evidence: Fact::NotAsked, ..proved() };
    old.manifest.target = None;
    old.recorded = None;
    assert_eq!(old.words(), (Met, Some(Met), ValidityWord::NotRecorded));
    old.meta.real_time = false;
    old.meta.scheduling = "SCHED_OTHER".into();
    assert_eq!(old.words(), (Invalid, Some(Invalid), ValidityWord::Invalid), "it says so itself");
    let unavailable = Case { evidence: Fact::Unavailable("no memory".into()), ..proved() };
    assert_eq!(unavailable.words().1, Some(Undecided));
}

#[test]
fn a_failed_proof_of_one_series_does_not_affect_another() {
    let proof = |proof, subject: &str| Proof {
        proof,
        subject: subject.into(),
        outcome: ProofOutcome::Fails,
        why: String::new(),
    };
    let of = |word, subject: &str| {
        Validity { proofs: vec![proof(word, subject)] }.gate_verdict(Met, "p", "cpu0").verdict
    };
    assert_eq!(of(ProofWord::Affinity, "p/cpu0"), Invalid);
    assert_eq!(of(ProofWord::Affinity, "p/cpu1"), Met);
    assert_eq!(of(ProofWord::Affinity, "q/cpu0"), Met);
    assert_eq!(of(ProofWord::Load, "p/busy"), Invalid);
    assert_eq!(of(ProofWord::Load, "q/busy"), Met);
    assert_eq!(of(ProofWord::Clock, "p"), Invalid);
    assert_eq!(of(ProofWord::Kernel, RUN), Invalid);
    assert_eq!(VerdictWord::gravest_verdict([Invalid, NotMet, Undecided, Met]), Some(NotMet));
    assert_eq!(VerdictWord::gravest_verdict([Met, Invalid, Undecided]), Some(Invalid));
}

#[test]
fn series_with_a_failed_proof_are_not_compared() {
    let of = |proof, subject: &str, outcome| Validity {
        proofs: vec![Proof { proof, subject: subject.into(), outcome, why: String::new() }],
    };
    let against = |proof, subject, outcome| {
        let validity = of(proof, subject, outcome);
        validity.proofs_against_comparing().any(|proof| concerns_series(proof, "p", "cpu0"))
    };
    use ProofOutcome::{Fails, Holds, NotRecorded, Unknown, Waived};
    for (outcome, is_against) in
        [(Fails, true), (Unknown, true), (Waived, true), (Holds, false), (NotRecorded, false)]
    {
        assert_eq!(against(ProofWord::Affinity, "p/cpu0", outcome), is_against, "{outcome:?}");
        assert!(!against(ProofWord::Affinity, "p/cpu1", outcome), "it is about another series");
        assert!(!against(ProofWord::Recorder, RUN, outcome), "samples do not need events");
    }
    let gated = |proof| of(proof, RUN, Fails).gate_recording(Met).verdict;
    assert_eq!(gated(ProofWord::Clock), Invalid);
    // Each limit on intervals reports its missing events itself.
    assert_eq!([ProofWord::Recorder, ProofWord::Samples].map(gated), [Met, Met]);
}

#[test]
fn impossible_latencies_make_the_run_invalid() {
    let longest = |max: i64| {
        let case = Case::but_all(|case| {
            case.state.data.max = Some(Nanos(max));
            case.meta.requirements = vec!["count > 5".into()];
        });
        case.words().2
    };
    let most = i64::try_from(HDR_MAX).unwrap_or(i64::MAX);
    assert_eq!(longest(most), ValidityWord::Valid);
    assert_eq!(longest(most + 1), ValidityWord::Invalid);
    let early = |clock, below| {
        let case = Case::but_all(|case| {
            case.meta.clock = clock;
            case.state.data.exact.below = below;
        });
        case.words().2
    };
    assert_eq!(early(Clock::Realtime, 1), ValidityWord::Invalid);
    assert_eq!(early(Clock::Realtime, 0), ValidityWord::Valid);
    // With a clock that cannot be set, an early sample is not a fault of the clock.
    assert_eq!(early(Clock::Monotonic, 1), ValidityWord::Valid);
}

#[test]
fn each_failed_proof_is_one_finding() {
    let ids = |case: &Case| -> Vec<String> {
        case.summary().findings.into_iter().map(|finding| finding.id).collect()
    };
    assert_eq!(ids(&proved()), Vec::<String>::new());
    assert_eq!(ids(&Case::but(|e| e.loads[0].idle_looks = 4)), ["load-not-working"]);
    assert_eq!(ids(&Case::but(|e| e.loads[0].starved_looks = 3)), ["load-starved"]);
    assert!(ids(&Case::but(|e| e.loads[0].starved_looks = 2)).is_empty());
    assert!(
        ids(&Case::but(|e| (e.loads[0].idle_looks, e.loads[0].may_rest) = (4, true))).is_empty()
    );
    assert_eq!(
        ids(&Case::but(|e| e.threads[0].scheduling.other = other("SCHED_OTHER"))),
        ["scheduling-changed"]
    );
    assert_eq!(
        ids(&Case::but(|e| e.throttled = Fact::Known(vec!["CPU 0 was too hot".into()]))),
        ["throttled"]
    );
}
