//! The information that a stream of events can provide.

use crate::threads::Coverage;
use punctual_core::event::{Group, Names, Recorded};

/// The kinds of events in a stream. Anything that only other kinds show is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownKinds {
    /// Only switches of some threads: other tasks on a CPU are unknown.
    pub some_threads: bool,
    /// Timers: their expiries, and the threads that started them.
    pub timers: bool,
    pub interrupts: bool,
    pub softirqs: bool,
    /// System calls: without them a cycle begins after a sleep of the thread.
    pub calls: bool,
}

/// The properties of cycles that are unknown without a group.
const MISSING: [(Group, &str); 6] = [
    (Group::Hrtimer, "when cycles were due: each begins with its wake-up"),
    (Group::Irq, "interrupts within cycles, and what kept a CPU from a thread that was woken"),
    (Group::Softirq, "softirqs within cycles"),
    (Group::Syscall, "which system call a thread waits in, and what it calls in its cycles"),
    (Group::Fault, "page faults"),
    (Group::Block, "which waits are for a block device"),
];

impl ShownKinds {
    /// By the recorded groups, for all threads or some.
    pub fn from_groups(groups: &[Group], some_threads: bool) -> ShownKinds {
        let has = |group| groups.contains(&group);
        ShownKinds {
            some_threads,
            timers: has(Group::Hrtimer),
            interrupts: has(Group::Irq) || has(Group::Vectors),
            softirqs: has(Group::Softirq),
            calls: has(Group::Syscall),
        }
    }

    /// For a recording; `None` without switches, which everything depends on.
    pub fn of_recording(recorded: &Recorded, names: &Names) -> Option<ShownKinds> {
        let some_threads = Coverage::from_recording(recorded, names).threads.is_some();
        recorded
            .has_group(Group::Sched)
            .then(|| ShownKinds::from_groups(&recorded.groups, some_threads))
    }
}

/// The properties of cycles that are unknown for lack of groups, each as `irq: …`.
pub fn missing_properties(groups: &[Group]) -> impl Iterator<Item = (Group, &'static str)> {
    MISSING.into_iter().filter(|(group, _)| !groups.contains(group))
}
