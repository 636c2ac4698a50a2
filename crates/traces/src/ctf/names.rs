//! LTTng's own names of the kernel's tracepoints.

use crate::meaning::Meaning;
use crate::syscall::TracedSyscall;

/// The meaning of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum EventMeaning {
    Meaning(Meaning),
    Call(TracedSyscall),
    /// The exit of an unnamed call: LTTng before 2.6.
    ExitOfAny,
    /// A task that existed when tracing began.
    Task,
    Other,
}

/// The prefixes that lttng-modules adds to tracepoint names that lack their system.
const PREFIXES: [&str; 7] =
    ["timer_", "irq_", "power_", "kmem_", "x86_irq_vectors_", "x86_exceptions_", "lock_"];

/// The tracepoint's system, if known, its name and its meaning.
pub(super) fn identify_event(name: &str) -> (Option<String>, String, EventMeaning) {
    if let Some((system, name)) = name.split_once(':') {
        let known_meaning = Meaning::from_tracepoint(Some(system), name)
            .map_or(EventMeaning::Other, EventMeaning::Meaning);
        return (Some(system.to_owned()), name.to_owned(), known_meaning);
    }
    match name {
        "exit_syscall" => return (None, name.to_owned(), EventMeaning::ExitOfAny),
        "lttng_statedump_process_state" => return (None, name.to_owned(), EventMeaning::Task),
        _ => {}
    }
    if let Some(call) = parse_syscall_name(name) {
        let way = if call.enter { "enter" } else { "exit" };
        let shown_name = format!("sys_{way}_{}", call.name);
        return (Some("syscalls".to_owned()), shown_name, EventMeaning::Call(call));
    }
    let shorter = PREFIXES.iter().filter_map(|prefix| name.strip_prefix(prefix));
    let names = std::iter::once(name).chain(shorter);
    let found = names.filter_map(|name| Some((name, Meaning::from_tracepoint(None, name)?))).next();
    match found {
        Some((name, meaning)) => (None, name.to_owned(), EventMeaning::Meaning(meaning)),
        None => (None, name.to_owned(), EventMeaning::Other),
    }
}

/// `syscall_entry_read`, and `sys_read` before LTTng 2.6; of 32-bit programs with `compat_`.
fn parse_syscall_name(name: &str) -> Option<TracedSyscall> {
    let name = name.strip_prefix("compat_").unwrap_or(name);
    let traced_call = |name: &str, enter| Some(TracedSyscall { name: name.to_owned(), enter });
    match (name.strip_prefix("syscall_entry_"), name.strip_prefix("syscall_exit_")) {
        (Some(name), _) => traced_call(name, true),
        (_, Some(name)) => traced_call(name, false),
        _ => name.strip_prefix("sys_").and_then(|name| traced_call(name, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lttng_event_names_are_mapped_to_kernel_names() {
        let meaning = |name: &str| match identify_event(name) {
            (_, name, EventMeaning::Meaning(meaning)) => Some((name, meaning)),
            _ => None,
        };
        let expected = [
            ("sched_switch", "sched_switch", Meaning::Switch),
            ("sched:sched_waking", "sched_waking", Meaning::Waking),
            ("timer_hrtimer_start", "hrtimer_start", Meaning::HrtimerStart),
            ("timer_start", "timer_start", Meaning::TimerStart),
            ("irq_handler_entry", "irq_handler_entry", Meaning::IrqEntry),
            ("irq_softirq_exit", "softirq_exit", Meaning::SoftirqExit),
            ("x86_irq_vectors_local_timer_entry", "local_timer_entry", Meaning::VectorEntry),
            ("power_cpu_idle", "cpu_idle", Meaning::Idle),
            ("kmem_kmalloc", "kmalloc", Meaning::Kmalloc),
        ];
        for (lttng, kernel, what) in expected {
            assert_eq!(meaning(lttng), Some((kernel.to_owned(), what)), "{lttng}");
        }
        let (system, name, of) = identify_event("compat_syscall_exit_clock_nanosleep");
        assert_eq!(system.as_deref(), Some("syscalls"));
        assert_eq!(name, "sys_exit_clock_nanosleep");
        assert_eq!(
            of,
            EventMeaning::Call(TracedSyscall { name: "clock_nanosleep".to_owned(), enter: false })
        );
        assert!(matches!(
            identify_event("sys_read").2,
            EventMeaning::Call(TracedSyscall { enter: true, .. })
        ));
        assert_eq!(identify_event("net_dev_queue").2, EventMeaning::Other);
    }
}
