//! Findings about failed measurements and writes.

use punctual_bundle::BundleError;
use punctual_core::format;
use punctual_core::{Finding, Nanos, Severity};
use punctual_record::StartError;

/// A thread whose cycles cannot be passed to the kernel.
pub(crate) fn not_selected(phase: &str, name: &str, why: &StartError) -> Finding {
    let message = "every wait of this thread is recorded, not only its cycles";
    Finding::new("cycle-not-selected", Severity::Note, format!("{phase}/{name}"), message)
        .with_evidence(why.to_string())
}

/// The time of a thread after its loop.
pub(crate) fn left_over(subject: &str, span: Nanos) -> Finding {
    let message = format!("the last {}, until exit, are in no cycle", span.to_readable());
    Finding::new("time-in-no-cycle", Severity::Note, subject, message).with_remedy(
        "work of a thread after its loop is not measured: measure it in the program itself",
    )
}

const PERIOD_UNCLEAR: &str = "period-unclear";

/// The thread waits as described, and any of these waits may begin its cycles.
pub(crate) fn period_unclear(subject: &str, waits: &str) -> Finding {
    let message = format!("this thread {waits}: which one is its period?");
    let finding = Finding::new(PERIOD_UNCLEAR, Severity::Bad, subject, message);
    finding.with_remedy(
        "requirements on it are undecided: name the kind of its cycles (--cycle) where the waits \
         differ in that, or measure from test points in the program",
    )
}

/// Waits of which it is not known whether they ended a cycle.
pub(crate) fn odd_waits(subject: &str, wait: &str, count: u64) -> Finding {
    let message = format!(
        "{} in {wait} came too early for its period, or for another time: whether a cycle ended \
         there is not known, and these cycles are not counted",
        format::count_with_noun(count, "wait")
    );
    Finding::new(PERIOD_UNCLEAR, Severity::Warning, subject, message)
        .with_remedy("measure from test points in the program")
}

/// An undecided requirement on a thread of this name.
pub(crate) fn without_thread(phase: &str, name: &str) -> Finding {
    let message = format!("no thread {name:?} with cycles was seen: its requirement is undecided");
    Finding::new("requirement-without-thread", Severity::Bad, phase, message)
        .with_remedy("name the thread as its series are named: the part before the slash")
}

/// A failed write.
pub(crate) fn incomplete_bundle(phase: &str, why: &BundleError) -> Finding {
    let message = "the bundle is incomplete: not everything could be written";
    Finding::new("bundle-incomplete", Severity::Bad, phase, message)
        .with_evidence(why.to_string())
        .with_remedy(
            "the figures shown at the end are whole; run again with --output on a file system \
             with room",
        )
}

/// Parts missing in the longest cycles.
pub fn not_shown(phase: &str, refused: u64, stacks: u64) -> Vec<Finding> {
    let note = |id, message: String| Finding::new(id, Severity::Note, phase, message);
    let refused = (refused > 0).then(|| {
        let message = format!(
            "{} within cycles not recorded, to leave room for the cycles: preemptions, sleeps and \
             functions of the longest cycles may be missing",
            format::count_with_noun(refused, "instant")
        );
        note("moments-not-recorded", message)
    });
    let stacks = (stacks > 0).then(|| {
        let message = format!(
            "{} not kept: the kernel's places for them were taken",
            format::count_with_noun(stacks, "user stack")
        );
        note("user-stacks-lost", message)
    });
    refused.into_iter().chain(stacks).collect()
}

/// Events that the kernel does not show.
pub(crate) fn hidden_idle_events(phase: &str, switches: u64) -> Option<Finding> {
    let message = format!(
        "{} to threads not seen: this kernel shows no events of an idle CPU; the time before the \
         first event that is seen is not attributed, or all of it is exit from idle, an upper \
         bound; a task that was seen last on that CPU is named as likely",
        format::count_with_noun(switches, "switch event")
    );
    (switches > 0).then(|| Finding::new("idle-events-hidden", Severity::Note, phase, message))
}

pub(crate) fn not_seen(phase: &str, lost: u64, unseen: u64, left_out: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if lost > 0 {
        let message = format!(
            "{} of cycles were lost: the kernel's buffers were full",
            format::count_with_noun(lost, "record")
        );
        let finding = Finding::new("cycles-lost", Severity::Warning, phase, message);
        findings.push(finding.with_remedy(
            "name the kind of cycle (--cycle) or the thread (--thread), so that less is recorded",
        ));
    }
    if unseen > 0 {
        let message = format!(
            "{} not seen: the same BPF program ran on that CPU",
            format::count_with_noun(unseen, "event")
        );
        findings.push(Finding::new("events-unseen", Severity::Note, phase, message));
    }
    if left_out > 0 {
        let message = format!(
            "{} of further threads are not shown",
            format::count_with_noun(left_out, "record")
        );
        let finding = Finding::new("threads-left-out", Severity::Warning, phase, message);
        findings.push(finding.with_remedy("name the threads: --thread"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_switches_are_a_finding_only_if_there_are_any() {
        assert_eq!(hidden_idle_events("a", 0), None);
        let found = hidden_idle_events("a", 3).expect("some were hidden");
        assert_eq!((found.id.as_str(), found.severity), ("idle-events-hidden", Severity::Note));
    }

    #[test]
    fn missing_details_of_the_longest_cycles_are_findings() {
        assert!(not_shown("a", 0, 0).is_empty());
        let both = not_shown("a", 3, 1);
        let ids: Vec<_> = both.iter().map(|finding| finding.message.as_str()).collect();
        assert!(ids[0].starts_with("3 instants within cycles not recorded"), "{ids:?}");
        assert!(ids[1].starts_with("1 user stack not kept"), "{ids:?}");
        assert_eq!(not_shown("a", 0, 1).len(), 1);
    }
}
