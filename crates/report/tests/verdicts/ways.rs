//! The ways in which a run ends, each as a bundle.

use punctual_bundle::baseline::{HeldAgainst, LeapingFigure, WorseFigure};
use punctual_bundle::evidence::{ClockEvidence, PhaseEvidence};
use punctual_bundle::intervals::LimitSummary;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, TIMER_WORKLOAD};
use punctual_bundle::recording::{Keeps, RecordingDocument};
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::verdict::{LeftOut, LeftOutKind};
use punctual_bundle::{
    Bundle, BundleWriter, Completeness, Exit, HowEnded, Outcome, PhaseMeta, ProgramEnd, RanOn,
    RecordingWriter, RunEnding, SeriesMeta, amend,
};
use punctual_core::event::{Names, Recorded, RecordedSource};
use punctual_core::{
    Clock, ClockNs, CpuSet, Fact, Losses, Missing, MonotonicNs, Nanos, Sample, SeriesData,
    SeriesShape, Unfinished,
};
use punctual_stats::summarize_bundle;
use std::path::Path;

macro_rules! ways {
    ($($way:ident => ($word:expr, $exit:ident)),* $(,)?) => {
        /// The way in which a run ended.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Way { $($way),* }

        impl Way {
            pub const ALL: [Way; [$(Way::$way),*].len()] = [$(Way::$way),*];
        }

        /// The expected result in every output.
        pub fn expected(way: Way) -> (Option<VerdictWord>, Exit) {
            match way { $(Way::$way => ($word, Exit::$exit)),* }
        }
    };
}

use VerdictWord::{Invalid, Met, NotMet, Undecided};

ways! {
    Met => (Some(Met), Done),
    NoneAsked => (None, Done),
    NotMet => (Some(NotMet), NotMet),
    Undecided => (Some(Undecided), NoEvidence),
    WithoutSeries => (Some(Undecided), NoEvidence),
    Invalid => (Some(Invalid), NoEvidence),
    InvalidNoneAsked => (None, NoEvidence),
    LimitViolated => (Some(NotMet), NotMet),
    LimitUndecided => (Some(Undecided), NoEvidence),
    StoppedAbove => (Some(NotMet), NotMet),
    AsBaseline => (Some(Met), Done),
    WorseThanBaseline => (Some(NotMet), NotMet),
    WorseNoneAsked => (Some(NotMet), NotMet),
    FewRuns => (Some(Undecided), NoEvidence),
    FewRunsNotRequired => (Some(Met), Done),
    FewRunsNoneAsked => (None, Done),
    Leap => (Some(Met), Done),
    NotHeld => (Some(Undecided), NoEvidence),
    LoadDone => (Some(Met), Done),
    LoadFailed => (Some(Undecided), Failed),
    Failed => (Some(Undecided), Failed),
    FailedNoneAsked => (None, Failed),
    TargetFailed => (Some(Undecided), Failed),
    DiskFull => (Some(Undecided), Failed),
    DiskFullNoneAsked => (None, Failed),
    DiskFullNotMet => (Some(NotMet), NotMet),
    Interrupted => (Some(Undecided), NoEvidence),
    InterruptedNoneAsked => (None, Done),
    CutOff => (Some(Undecided), NoEvidence),
    CutOffNoneAsked => (None, NoEvidence),
    CutOffNotMet => (Some(NotMet), NotMet),
    LeftOut => (Some(Undecided), NoEvidence),
    LeftOutNoneAsked => (None, Done),
    Hangs => (Some(NotMet), NotMet),
    HangsWithin => (Some(Undecided), NoEvidence),
    HangsYoung => (Some(Met), Done),
    ProgramDied => (Some(Met), Failed),
    ProgramDiedNoneAsked => (None, Failed),
    ProgramDiedEarly => (Some(Undecided), NoEvidence),
    ProgramDiedEarlyNoneAsked => (None, NoEvidence),
    ProgramDiedNotMet => (Some(NotMet), NotMet),
    CyclesLost => (Some(Invalid), NoEvidence),
    CyclesLostNoneAsked => (None, NoEvidence),
    CyclesLostNotMet => (Some(NotMet), NotMet),
    FewCyclesLost => (Some(Undecided), NoEvidence),
    FewCyclesLostNoneAsked => (None, Done),
    EventsLost => (None, NoEvidence),
    TraceCutOff => (Some(Undecided), NoEvidence),
    TraceCutOffNoneAsked => (None, NoEvidence),
    TraceCutOffNotMet => (Some(NotMet), NotMet),
    TraceLost => (Some(Undecided), NoEvidence),
    TraceLostNoneAsked => (None, Done),
    TraceLostNotMet => (Some(NotMet), NotMet),
    TraceUnreadable => (Some(Undecided), NoEvidence),
    DamagedAfterMet => (Some(Undecided), NoEvidence),
    DamagedAfterNotMet => (Some(NotMet), NotMet),
}

/// Requirements that the samples, which took 10 µs each, meet, do not meet, or do not decide.
const MET: &str = "max < 1ms";
const NOT_MET: &str = "max < 1us";
const OPEN: &str = "faults == 0";

fn requirement(way: Way) -> Option<&'static str> {
    match way {
        Way::Undecided => Some(OPEN),
        Way::NotMet
        | Way::DiskFullNotMet
        | Way::CutOffNotMet
        | Way::ProgramDiedNotMet
        | Way::CyclesLostNotMet
        | Way::TraceCutOffNotMet
        | Way::TraceLostNotMet
        | Way::DamagedAfterNotMet => Some(NOT_MET),
        Way::NoneAsked
        | Way::InvalidNoneAsked
        | Way::LimitViolated
        | Way::LimitUndecided
        | Way::StoppedAbove
        | Way::AsBaseline
        | Way::WorseNoneAsked
        | Way::FewRunsNoneAsked
        | Way::FailedNoneAsked
        | Way::DiskFullNoneAsked
        | Way::InterruptedNoneAsked
        | Way::CutOffNoneAsked
        | Way::LeftOutNoneAsked
        | Way::ProgramDiedNoneAsked
        | Way::ProgramDiedEarlyNoneAsked
        | Way::CyclesLostNoneAsked
        | Way::FewCyclesLostNoneAsked
        | Way::TraceCutOffNoneAsked
        | Way::TraceLostNoneAsked
        | Way::EventsLost => None,
        _ => Some(MET),
    }
}

fn outcome(way: Way) -> Option<Outcome> {
    let load = |success, how: &str| Outcome::StoppedByLoad {
        load: "busy".into(),
        how: how.into(),
        success,
    };
    Some(match way {
        Way::StoppedAbove => Outcome::StoppedAbove {
            series: "main/cpu0".into(),
            latency: 10_000,
            limit: Some(5_000),
            seq: Some(3),
        },
        Way::LoadDone => load(true, "ended with success"),
        Way::LoadFailed => load(false, "was killed by signal 9"),
        Way::Failed | Way::FailedNoneAsked => Outcome::Failed { why: "a thread is stuck".into() },
        Way::DiskFull | Way::DiskFullNoneAsked | Way::DiskFullNotMet => {
            Outcome::Failed { why: FULL.into() }
        }
        Way::Interrupted | Way::InterruptedNoneAsked => Outcome::Interrupted,
        Way::CutOff | Way::CutOffNoneAsked | Way::CutOffNotMet => return None,
        Way::TraceCutOff | Way::TraceCutOffNoneAsked | Way::TraceCutOffNotMet => {
            Outcome::CutOff { why: BREAKS_OFF.into() }
        }
        _ => Outcome::Completed,
    })
}

const FULL: &str = "cannot write 0000.log: No space left on device";

const BREAKS_OFF: &str = "its last line has no end";

/// The missing part of a trace.
fn missing(way: Way) -> Option<Missing> {
    Some(match way {
        Way::TraceCutOff | Way::TraceCutOffNoneAsked | Way::TraceCutOffNotMet => {
            Missing::End { why: BREAKS_OFF.into() }
        }
        Way::TraceLost | Way::TraceLostNoneAsked | Way::TraceLostNotMet => {
            Missing::Lost { count: 500, at_least: false }
        }
        Way::TraceUnreadable => Missing::Unreadable { count: 3 },
        _ => return None,
    })
}

/// Writes the bundle of a run that ends this way.
pub fn make(way: Way, directory: &Path) {
    let created = "2026-11-21T08:00:00Z".parse().unwrap();
    let mut writer = BundleWriter::create_at(directory, "ways", "run", created).unwrap();
    if way == Way::EventsLost {
        record(directory);
    } else {
        writer.write_plan(&plan(way)).unwrap();
        measure(way, &writer);
    }
    if way == Way::TargetFailed {
        writer.set_target(target(created)).unwrap();
    }
    let limit = |verdict, violations| LimitSummary {
        limit: "< 1us".into(),
        verdict,
        violations,
        reason: None,
    };
    match way {
        Way::LimitViolated => writer.set_limits(vec![("a->b".into(), limit(NotMet, 3))]),
        Way::LimitUndecided => writer.set_limits(vec![("a->b".into(), limit(Undecided, 0))]),
        Way::DiskFull | Way::DiskFullNoneAsked | Way::DiskFullNotMet => {
            writer.add_unwritten([FULL.to_owned()]);
        }
        _ => {}
    }
    writer.write_findings(&[]).unwrap();
    let Some(outcome) = outcome(way) else { return };
    let mut ending = RunEnding { at: created, outcome, exit_code: 0 };
    let held = baseline(way, created);
    writer.set_ending(ending.clone());
    let mut bundle = Bundle::open(directory).unwrap();
    bundle.manifest = writer.manifest().clone();
    bundle.completeness = Completeness::Whole;
    let mut summary = summarize_bundle(&bundle);
    ending.exit_code = summary.verdict.to_exit() as u8;
    summary.ending = Some(ending.clone());
    writer.finish(&summary, ending).unwrap();
    if let Some(held) = held {
        let bundle = amend::hold_against(directory, held).unwrap();
        amend::renew_summary(directory, &summarize_bundle(&bundle)).unwrap();
    }
    if matches!(way, Way::DamagedAfterMet | Way::DamagedAfterNotMet) {
        std::fs::write(directory.join("phases/000/0000.state.json"), "{").unwrap();
    }
}

/// The comparison with earlier runs.
fn baseline(way: Way, created: jiff::Timestamp) -> Option<HeldAgainst> {
    let worse = WorseFigure {
        figure: "main/cpu0 p99".into(),
        before: 10_000.0,
        now: 20_000.0,
        by: 2.0,
        interval: [1.9, 2.1],
        is_time: true,
        is_difference: false,
        since: created,
        runs: 3,
        changed: vec!["kernel: 6.12.1 -> 6.12.2".into()],
    };
    let held = HeldAgainst { runs: 30, ..HeldAgainst::default() };
    match way {
        Way::AsBaseline => Some(held),
        Way::WorseThanBaseline | Way::WorseNoneAsked => {
            Some(HeldAgainst { worse: vec![worse], ..held })
        }
        Way::NotHeld => Some(HeldAgainst { not_held: Some("it was interrupted".into()), ..held }),
        Way::FewRuns => Some(HeldAgainst { runs: 4, missing: 8, required: true, ..held }),
        Way::FewRunsNotRequired | Way::FewRunsNoneAsked => {
            Some(HeldAgainst { runs: 4, missing: 8, ..held })
        }
        Way::Leap => Some(HeldAgainst { leaps: vec![leap()], ..held }),
        _ => None,
    }
}

fn leap() -> LeapingFigure {
    LeapingFigure {
        figure: "main/cpu0 p99".into(),
        runs: 30,
        before: 10_000.0,
        by: 46.0,
        is_time: true,
        is_difference: false,
        more: 1,
    }
}

/// One phase, and a second one if the run does not reach it.
fn plan(way: Way) -> String {
    let require = requirement(way).map_or(String::new(), |text| format!("require = [{text:?}]\n"));
    let later = match way {
        Way::Interrupted | Way::InterruptedNoneAsked | Way::CutOff => {
            "[[phase]]\nname = \"later\"\n"
        }
        _ => "",
    };
    format!("[[measure]]\nname = \"t\"\n{require}[[phase]]\nname = \"main\"\n{later}")
}

fn measure(way: Way, writer: &BundleWriter) {
    let requirements: Vec<String> = requirement(way).into_iter().map(str::to_owned).collect();
    let mut phase = PhaseMeta::new("main", writer.manifest().created);
    phase.duration = Some(Nanos::SECOND);
    phase.missing = missing(way).into_iter().collect();
    match way {
        Way::Invalid | Way::InvalidNoneAsked => {
            let clock = ClockEvidence { stepped: Some(Nanos::SECOND), ..Default::default() };
            phase.evidence = Fact::Known(PhaseEvidence { clock, ..PhaseEvidence::default() });
        }
        Way::LeftOut | Way::LeftOutNoneAsked => {
            phase.left_out = vec![LeftOut { what: LeftOutKind::Threads, bound: 512, records: 9 }];
        }
        Way::ProgramDied | Way::ProgramDiedNoneAsked | Way::ProgramDiedNotMet => {
            phase.ended = vec![program_end(HowEnded::Status(3), None)];
        }
        Way::ProgramDiedEarly | Way::ProgramDiedEarlyNoneAsked => {
            phase.ended = vec![program_end(HowEnded::Signal(11), Some(Nanos::from_secs(10)))];
        }
        Way::WithoutSeries => phase.without_series = vec!["servo/response max < 1ms".into()],
        _ => {}
    }
    writer.write_phase(0, &phase).unwrap();
    let lost = lost_cycles(way);
    let meta = SeriesMeta {
        name: "cpu0".into(),
        measure: "t".into(),
        workload: if lost.is_some() { ATTACHED_WORKLOAD } else { TIMER_WORKLOAD }.into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(0),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(Nanos::MILLI),
        tid: None,
        requirements,
        details: Default::default(),
    };
    let mut series = writer.begin_series(0, 0, &meta, 100).unwrap();
    let shape = SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: meta.period };
    let mut data = SeriesData::new(shape);
    for seq in 0..20 {
        let due = seq * 1_000_000;
        let sample =
            Sample { seq: seq as u64, due: ClockNs(due), woke: ClockNs(due + 10_000), cpu: 0 };
        data.record_sample(&sample, 0);
        series.append_samples(&[sample]).unwrap();
    }
    let hangs = match way {
        Way::Hangs => Some(1_602_000_000),
        Way::HangsWithin => Some(500_000),
        Way::HangsYoung => Some(9_000),
        _ => None,
    };
    data.unfinished = hangs.map(Nanos).map(|lasted| Unfinished {
        due: ClockNs(20_000_000),
        at_least: lasted,
        lasted,
        passed: 0,
        ended: false,
    });
    if let Some((lost, skipped)) = lost {
        data.losses = Losses { skipped, dropped: lost, lost_records: lost, ..data.losses };
    }
    let usage = Fact::NotAsked;
    let (samples_kept, log_bytes) = (series.kept_count(), series.log_bytes());
    series.finish(&SeriesState { data, usage, digest: None, samples_kept, log_bytes }).unwrap();
}

/// The cycles of a program that a full buffer lost, and its skipped releases.
fn lost_cycles(way: Way) -> Option<(u64, u64)> {
    match way {
        Way::CyclesLost | Way::CyclesLostNoneAsked | Way::CyclesLostNotMet => Some((500, 0)),
        Way::FewCyclesLost | Way::FewCyclesLostNoneAsked => Some((1, 1_000)),
        _ => None,
    }
}

fn program_end(how: HowEnded, asked: Option<Nanos>) -> ProgramEnd {
    let (program, ran) = ("loop".to_owned(), Nanos::from_millis(1_200));
    ProgramEnd { program, how, ran, asked, out_of_memory: false }
}

fn target(started: jiff::Timestamp) -> RanOn {
    let failed = Some("the connection was lost".into());
    RanOn { failed, ..RanOn::new("ssh", "board", started) }
}

/// Only a recording, of which a tenth is missing.
fn record(directory: &Path) {
    let mut recorded = Recorded::without_events("BPF", MonotonicNs(0));
    let name = "cpu 0".to_owned();
    recorded.sources = vec![RecordedSource { name, cpu: Some(0), recorded: 90, lost: 10, torn: 0 }];
    let document = RecordingDocument::new(Keeps::All, recorded, Names::default());
    RecordingWriter::create(directory, &document).unwrap().finish(&document).unwrap();
}
