//! The limits of a recorder, as findings.

use crate::start_error::StartError;
use crate::tracepoints::TracepointTable;
use punctual_core::event::Group;
use punctual_core::{Finding, Severity};

/// The unavailable tracepoints of a group, with reasons.
#[derive(Default)]
pub(super) struct MissingTracepoints {
    these: Vec<(String, String)>,
    first: Option<String>,
}

impl MissingTracepoints {
    pub(super) fn add(&mut self, tracepoint: &TracepointTable, why: String) {
        self.first.get_or_insert_with(|| why.clone());
        self.these.push((tracepoint.full_name(), why));
    }

    /// The very first reason.
    pub(super) fn first_reason(&self) -> String {
        self.first.clone().unwrap_or_else(|| "nothing was requested".to_owned())
    }

    /// A finding about the group, of which `any` tracepoint was available; clears the list for the
    /// next one.
    pub(super) fn take_finding(&mut self, group: Group, any: bool) -> Option<Finding> {
        let missing = std::mem::take(&mut self.these);
        // Vectors have many kinds, and every kernel lacks some.
        if missing.is_empty() || any && group == Group::Vectors {
            return None;
        }
        let (names, mut why): (Vec<String>, Vec<String>) = missing.into_iter().unzip();
        why.dedup();
        let message = match any {
            true => format!(
                "some events of group {} are not recorded: {}",
                group.word(),
                names.join(", ")
            ),
            false => format!("the group {} is not recorded", group.word()),
        };
        let severity = match group {
            // Of a driver and a file system, without which such events do not occur.
            Group::Mmc | Group::Jbd2 if !any => Severity::Note,
            _ if any => Severity::Advice,
            _ => Severity::Warning,
        };
        Some(
            Finding::new("events-unavailable", severity, "recorder", message)
                .with_evidence(why.join("; ")),
        )
    }
}

/// Events without a program run.
pub(super) fn missed_events_finding(name: &str, count: u64) -> Finding {
    let message = format!(
        "{count} events of {name} are missing: they interrupted the same BPF program on that CPU"
    );
    Finding::new("events-missed", Severity::Warning, "recorder", message)
        .with_evidence("bpf_prog_info.recursion_misses")
}

/// Events dropped by the kernel's trace buffer.
pub(super) fn dropped_events_finding(count: u64) -> Finding {
    let message =
        format!("{count} events are missing: the kernel's trace buffer did not take them");
    Finding::new("events-missed", Severity::Warning, "recorder", message)
        .with_evidence("`dropped events` of per_cpu/cpu*/stats")
}

/// tracefs cannot distinguish threads from children.
pub(super) fn recorded_children_finding() -> Finding {
    let message = "events of child processes are recorded too: tracefs cannot distinguish them \
                   from new threads";
    Finding::new("children-recorded", Severity::Note, "recorder", message)
}

/// Addresses whose names the kernel hides.
pub(super) fn hidden_symbols_finding(why: String) -> Finding {
    let finding = Finding::new(
        "symbols-hidden",
        Severity::Note,
        "recorder",
        "kernel functions are shown as addresses",
    );
    finding.with_evidence(why).with_remedy("run as root, with kernel.kptr_restrict below 2")
}

/// A better backend that does not work here.
pub(super) fn fallback_finding(why: &StartError) -> Finding {
    let message = "kernel events are recorded with higher overhead than necessary";
    let finding = Finding::new("recorder-fallback", Severity::Advice, "recorder", message)
        .with_evidence(why.to_string());
    match why {
        StartError::Backend { remedy: Some(remedy), .. } => finding.with_remedy(remedy.clone()),
        _ => finding,
    }
}
