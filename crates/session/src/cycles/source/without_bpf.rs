//! The limits of cycles from events instead of BPF programs.

use punctual_core::event::Group;
use punctual_core::{Finding, Severity};
use punctual_explain::cycles::stream::missing_properties;
use punctual_record::StartError;

const LOST: &str = "holders of locks are known by who woke alone; the time of page faults that do \
                    not sleep is the thread's own; steal, user stacks and SCHED_DEADLINE periods \
                    are not known";

/// The finding with the recorded groups; `refused`: why BPF programs failed, if they were tried.
pub(crate) fn tracefs_finding(groups: &[Group], refused: Option<&StartError>) -> Finding {
    let not_recorded: String = missing_properties(groups)
        .map(|(group, what)| format!("; no {} events: {what}", group.word()))
        .collect();
    let lost = format!("{LOST}{not_recorded}");
    let Some(refused) = refused else {
        let message = format!("cycles are measured through tracefs, as requested: {lost}");
        return Finding::new("cycles-without-bpf", Severity::Note, "attach", message);
    };
    let message = format!("cycles are measured through tracefs, without BPF ({refused}): {lost}");
    Finding::new("cycles-without-bpf", Severity::Warning, "attach", message)
        .remedy_by(refused.joined_remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_event_groups_are_a_warning_unless_requested() {
        let all = [
            Group::Sched,
            Group::Irq,
            Group::Softirq,
            Group::Hrtimer,
            Group::Syscall,
            Group::Fault,
            Group::Block,
        ];
        let requested = tracefs_finding(&all, None);
        assert_eq!(requested.severity, Severity::Note);
        assert!(!requested.message.contains("events:"), "{}", requested.message);
        let refused = StartError::Backend {
            backend: "BPF",
            why: "no BTF".to_owned(),
            remedy: Some("use another kernel".to_owned()),
        };
        let fallen_back = tracefs_finding(&all[..5], Some(&refused));
        assert_eq!(fallen_back.severity, Severity::Warning);
        let said = &fallen_back.message;
        assert!(
            said.contains(": no BTF; use another kernel)")
                && said.contains("no fault events: page faults"),
            "{said}"
        );
        assert!(said.contains("no block events"), "{said}");
        assert_eq!(fallen_back.remedy.as_deref(), Some("use another kernel"));
        let unknown = tracefs_finding(&all, Some(&StartError::Request("odd".to_owned())));
        assert_eq!((requested.remedy, unknown.remedy), (None, None), "nothing is known to help");
    }
}
