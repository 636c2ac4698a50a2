//! Findings about what could not be measured or written.

use punctual_bundle::BundleError;
use punctual_core::{Finding, Severity};
use punctual_record::StartError;
use punctual_report::format;

/// A thread whose cycles cannot be passed to the kernel.
pub fn not_selected(phase: &str, name: &str, why: &StartError) -> Finding {
    let message = "every wait of this thread is recorded, not only its cycles";
    Finding::new("cycle-not-selected", Severity::Note, format!("{phase}/{name}"), message)
        .evidence(why.to_string())
}

/// A requirement on a thread of this name is open.
pub fn without_thread(phase: &str, name: &str) -> Finding {
    let message = format!("no thread {name:?} with cycles was seen: its requirement is undecided");
    Finding::new("requirement-without-thread", Severity::Bad, phase, message)
        .remedy("name the thread as its series are named: the part before the slash")
}

/// What could not be written.
pub fn incomplete(phase: &str, why: &BundleError) -> Finding {
    let message = "the bundle is incomplete: not everything could be written";
    Finding::new("bundle-incomplete", Severity::Bad, phase, message)
        .evidence(why.to_string())
        .remedy(
            "the figures shown at the end are whole; run again with --output on a file system \
             with room",
        )
}

/// What was not seen.
pub fn not_seen(phase: &str, lost: u64, unseen: u64, left_out: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if lost > 0 {
        let message = format!(
            "{} of cycles were lost: the kernel's buffers were full",
            format::counted(lost, "record")
        );
        let finding = Finding::new("cycles-lost", Severity::Warning, phase, message);
        findings.push(finding.remedy(
            "name the kind of cycle (--cycle) or the thread (--thread), so that less is recorded",
        ));
    }
    if unseen > 0 {
        let message = format!(
            "{} not seen: the same BPF program ran on that CPU",
            format::counted(unseen, "event")
        );
        findings.push(Finding::new("events-unseen", Severity::Note, phase, message));
    }
    if left_out > 0 {
        let message =
            format!("{} of further threads are left out", format::counted(left_out, "record"));
        let finding = Finding::new("threads-left-out", Severity::Warning, phase, message);
        findings.push(finding.remedy("name the threads: --thread"));
    }
    findings
}
