//! The groups in which kernel events are switched on and off.

use serde::{Deserialize, Serialize};

macro_rules! groups {
    ($($(#[doc = $doc:literal])+ $variant:ident $word:literal,)*) => {
        /// A group of kernel events that is recorded completely or not at all.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub enum Group { $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)* }

        impl Group {
            /// Every group, in the order of documentation.
            pub const ALL: &'static [Group] = &[$(Group::$variant,)*];
            /// Its name on command lines and in files.
            pub fn word(self) -> &'static str {
                match self { $(Group::$variant => $word,)* }
            }
            /// Its content in a sentence, taken from the doc comment of the variant.
            pub fn explanation(self) -> &'static str {
                match self { $(Group::$variant => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

groups! {
    /// Switches, wake-ups, migrations, inherited priorities, signals that stop, and fork, exec
    /// and exit, which carry names.
    Sched "sched",
    /// Handlers of device interrupts.
    Irq "irq",
    /// Interrupt vectors of the CPU itself: local timer, reschedule, calls, where the architecture
    /// has such tracepoints.
    Vectors "vectors",
    /// Softirqs: raised, begun, ended.
    Softirq "softirq",
    /// Interrupts sent to other CPUs.
    Ipi "ipi",
    /// High-resolution timers: started, cancelled, expired.
    Hrtimer "hrtimer",
    /// The timer wheel.
    Timer "timer",
    /// System calls, entry and exit.
    Syscall "syscall",
    /// Futex calls that wait or wake.
    Futex "futex",
    /// Contended locks inside the kernel.
    Lock "lock",
    /// Page faults.
    Fault "fault",
    /// Pages allocated, and direct reclaim.
    Page "page",
    /// kmalloc and slab allocations, and what is freed.
    Kmalloc "kmalloc",
    /// Requests to block devices.
    Block "block",
    /// Commits of the ext4 journal.
    Jbd2 "jbd2",
    /// Requests to MMC and SD cards, where that module is loaded.
    Mmc "mmc",
    /// Workqueue items.
    Workqueue "workqueue",
    /// The way of a network packet: received by a device, queued at a socket, polls of devices.
    Napi "napi",
    /// Idle states entered and left.
    Idle "idle",
    /// Changes of the CPU's frequency.
    Frequency "frequency",
}

impl Group {
    /// The default groups: the running tasks, and their interruptions.
    pub const USUAL: [Group; 5] =
        [Group::Sched, Group::Irq, Group::Vectors, Group::Softirq, Group::Ipi];

    /// The group with this name in experiment files and options.
    pub fn from_word(word: &str) -> Option<Group> {
        Group::ALL.iter().copied().find(|group| group.word() == word)
    }
}
