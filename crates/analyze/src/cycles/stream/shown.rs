//! What a stream of events can show.

use crate::threads::Coverage;
use punctual_core::event::{Group, Names, Recorded};

/// What of the machine's events a stream has. What would be shown by others is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The switches of some threads alone: who else had a CPU is not known.
    pub some_threads: bool,
    /// Timers: when they expire, and which thread started them.
    pub timers: bool,
    pub interrupts: bool,
    pub softirqs: bool,
    /// System calls: without them a cycle begins where a thread has slept.
    pub calls: bool,
}

/// What the groups show of cycles, and what is not known without them.
const MISSING: [(Group, &str); 6] = [
    (Group::Hrtimer, "when cycles were due: each begins with its wake-up"),
    (Group::Irq, "interrupts within cycles, and what kept a CPU from a thread that was woken"),
    (Group::Softirq, "softirqs within cycles"),
    (Group::Syscall, "which system call a thread waits in, and what it calls in its cycles"),
    (Group::Fault, "page faults"),
    (Group::Block, "which waits are for a block device"),
];

impl Shown {
    /// By the groups that were recorded, of all threads or of some.
    pub fn of(groups: &[Group], some_threads: bool) -> Shown {
        let has = |group| groups.contains(&group);
        Shown {
            some_threads,
            timers: has(Group::Hrtimer),
            interrupts: has(Group::Irq) || has(Group::Vectors),
            softirqs: has(Group::Softirq),
            calls: has(Group::Syscall),
        }
    }

    /// Of a recording; `None` where it has no switches, of which all follows.
    pub fn of_recording(recorded: &Recorded, names: &Names) -> Option<Shown> {
        let some_threads = Coverage::of(recorded, names).threads.is_some();
        recorded.covers(Group::Sched).then(|| Shown::of(&recorded.groups, some_threads))
    }
}

/// What is not known of cycles without groups that were not recorded, each as `irq: …`.
pub fn missing(groups: &[Group]) -> impl Iterator<Item = (Group, &'static str)> {
    MISSING.into_iter().filter(|(group, _)| !groups.contains(group))
}
