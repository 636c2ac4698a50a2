//! Every way in which a run ends, in every output with an answer: all agree with the exit code. A
//! way or a reason that is missing in the table does not compile.

mod documents;
mod outputs;
mod ways;

use outputs::{Output, shown};
use punctual_bundle::verdict::FailedPart;
use punctual_bundle::{Bundle, Exit, Reason};
use punctual_stats::summarize_bundle;
use ways::{Way, expected, make};

/// Ways that show each reason. Without a wildcard: a new reason needs a way.
fn ways_of(reason: &Reason) -> &'static [Way] {
    match reason {
        Reason::Requirement { .. } => {
            use Way::*;
            &[
                NotMet,
                Undecided,
                WithoutSeries,
                CutOffNotMet,
                Hangs,
                HangsWithin,
                TraceCutOffNotMet,
                TraceLost,
                TraceLostNotMet,
                TraceUnreadable,
                FewCyclesLost,
                CyclesLostNotMet,
            ]
        }
        Reason::Limit { .. } => &[Way::LimitViolated, Way::LimitUndecided],
        Reason::Worse(_) => &[Way::WorseThanBaseline, Way::WorseNoneAsked],
        Reason::FewRuns { required: true, .. } => &[Way::FewRuns],
        Reason::FewRuns { .. } => &[Way::FewRunsNotRequired, Way::FewRunsNoneAsked],
        Reason::Leap(_) => &[Way::Leap],
        Reason::NotHeld { .. } => &[Way::NotHeld],
        Reason::StopAbove { .. } => &[Way::StoppedAbove],
        Reason::Failed { part: FailedPart::Run, .. } => &[Way::Failed, Way::FailedNoneAsked],
        Reason::Failed { part: FailedPart::Load(_), .. } => &[Way::LoadFailed],
        Reason::Failed { part: FailedPart::Target(_), .. } => &[Way::TargetFailed],
        Reason::Unwritten { .. } => &[Way::DiskFull, Way::DiskFullNoneAsked, Way::DiskFullNotMet],
        Reason::NotAsAsked { .. } => &[
            Way::Invalid,
            Way::InvalidNoneAsked,
            Way::CyclesLost,
            Way::CyclesLostNoneAsked,
            Way::CyclesLostNotMet,
        ],
        Reason::Unreadable { .. } => &[Way::DamagedAfterMet, Way::DamagedAfterNotMet],
        Reason::LeftOut { .. } => &[Way::LeftOut, Way::LeftOutNoneAsked],
        Reason::ProgramEnded(_) => &[
            Way::ProgramDied,
            Way::ProgramDiedNoneAsked,
            Way::ProgramDiedEarly,
            Way::ProgramDiedEarlyNoneAsked,
            Way::ProgramDiedNotMet,
        ],
        Reason::EventsLost { .. } => &[Way::EventsLost],
        Reason::Interrupted { .. } => &[Way::Interrupted, Way::InterruptedNoneAsked],
        Reason::CutOff { why: None, .. } => &[Way::CutOff, Way::CutOffNoneAsked],
        Reason::CutOff { why: Some(_), .. } => &[Way::TraceCutOff, Way::TraceCutOffNoneAsked],
    }
}

fn made(way: Way, place: &std::path::Path) -> Bundle {
    let directory = place.join(format!("{way:?}"));
    make(way, &directory);
    Bundle::open(&directory).unwrap()
}

#[test]
fn every_way_of_ending_has_its_verdict_and_exit_code() {
    let place = tempfile::tempdir().unwrap();
    let mut seen: Vec<Way> = Vec::new();
    for way in Way::ALL {
        let summary = summarize_bundle(&made(way, place.path()));
        let verdict = &summary.verdict;
        assert_eq!((verdict.word, verdict.to_exit()), expected(way), "{way:?}: {verdict:?}");
        for reason in &verdict.reasons {
            seen.extend(ways_of(reason).iter().filter(|of| **of == way));
        }
        use Way::*;
        let without = [
            Met,
            NoneAsked,
            LoadDone,
            AsBaseline,
            HangsYoung,
            FewCyclesLostNoneAsked,
            TraceLostNoneAsked,
        ];
        let is_without = without.contains(&way);
        assert_eq!(verdict.reasons.is_empty(), is_without, "{way:?}: {verdict:?}");
        if !is_without {
            assert!(seen.contains(&way), "{way:?} is not of its reasons: {verdict:?}");
        }
    }
}

#[test]
fn every_output_agrees_with_the_exit_code() {
    let place = tempfile::tempdir().unwrap();
    for way in Way::ALL {
        let bundle = made(way, place.path());
        let (word, exit) = expected(way);
        for output in Output::ALL {
            let shown = shown(output, &bundle);
            assert_eq!(shown.is_well, exit == Exit::Done, "{way:?} in {output:?}: {}", shown.text);
            if let Some(of_output) = shown.word {
                assert_eq!(of_output, word.map(|word| word.json_word()), "{way:?} in {output:?}");
            }
        }
    }
}

/// A page of several bundles shows the gravest verdict, in any order.
#[test]
fn a_page_does_not_depend_on_the_order_of_its_bundles() {
    let place = tempfile::tempdir().unwrap();
    let met = made(Way::Met, place.path());
    for way in Way::ALL {
        let other = made_as(way, place.path());
        let well = expected(way).1 == Exit::Done;
        for pair in [[&met, &other], [&other, &met]] {
            let (is_well, text) = outputs::page(&pair);
            assert_eq!(is_well, well, "{way:?}: {text}");
        }
    }
}

fn made_as(way: Way, place: &std::path::Path) -> Bundle {
    let directory = place.join(format!("other-{way:?}"));
    make(way, &directory);
    Bundle::open(&directory).unwrap()
}

/// Logs have a checksum: every changed byte is detected, and *not met* stays.
#[test]
fn no_damaged_log_yields_the_verdict_met() {
    let place = tempfile::tempdir().unwrap();
    for (way, expected) in [(Way::Met, "undecided"), (Way::NotMet, "not-met")] {
        let bundle = made(way, place.path());
        let log = bundle.directory.join("phases/000/0000.log");
        let bytes = std::fs::read(&log).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            for bit in [0x01, 0x80] {
                let mut other = bytes.clone();
                other[at] ^= bit;
                std::fs::write(&log, &other).unwrap();
                let mut bundle = Bundle::open(&bundle.directory).unwrap();
                bundle.check_samples();
                let word = summarize_bundle(&bundle).verdict.word.map(|word| word.json_word());
                assert_eq!(word, Some(expected), "{way:?}: byte {at}, {bit:#x}");
            }
        }
    }
}
