//! The meaning of the kernel's tracepoints, and the conversion of their fields to events.
//!
//! Field names are the same in all kernel versions, or have few variants (`a|b`); the position and
//! text format of fields are up to the readers of files.

use punctual_core::MonotonicNs;
use punctual_core::event::{EventKind, Futex, InterfaceName, TaskState, Tid, signal};
use std::num::NonZeroU32;

/// The encoding of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldEncoding {
    /// A decimal number in text.
    Number,
    /// A pointer, hexadecimal in text, or the name of its target.
    Pointer,
    /// The name of a task.
    Comm,
    /// Other characters.
    Text,
    /// `prev_state` of sched_switch.
    State,
    /// `8,0` in text, dev_t in records.
    Device,
}

/// A field that a meaning needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeaningSlot {
    /// Its names separated by `|`; the first existing one counts.
    pub(crate) names: &'static str,
    pub(crate) form: FieldEncoding,
}

const fn n(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::Number }
}
const fn p(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::Pointer }
}
const fn c(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::Comm }
}
const fn t(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::Text }
}
const fn s(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::State }
}
const fn d(names: &'static str) -> MeaningSlot {
    MeaningSlot { names, form: FieldEncoding::Device }
}

/// The maximum number of fields of a meaning.
pub(crate) const SLOTS: usize = 7;

/// The values of the fields of one event, in the order of [`Meaning::field_slots`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values<'a> {
    pub(crate) numbers: [Option<i64>; SLOTS],
    pub(crate) texts: [&'a [u8]; SLOTS],
    pub(crate) state: Option<TaskState>,
}

macro_rules! meanings {
    ($($meaning:ident [$($slot:expr),*] $(($($system:literal $name:literal),*))?;)*) => {
        /// The meaning of a tracepoint.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum Meaning { $($meaning,)* }

        impl Meaning {
            /// The fields that it needs.
            pub(crate) fn slots(self) -> &'static [MeaningSlot] {
                match self { $(Meaning::$meaning => const { &[$($slot),*] },)* }
            }
            fn of_table(system: Option<&str>, name: &str) -> Option<Meaning> {
                match name {
                    $($($($name if system.is_none_or(|system| system == $system) =>
                        Some(Meaning::$meaning),)*)?)*
                    _ => None,
                }
            }
        }
    };
}

meanings! {
    Switch [c("prev_comm"), n("prev_pid|prev_tid"), n("prev_prio"), s("prev_state"), c("next_comm"),
        n("next_pid|next_tid"), n("next_prio")] ("sched" "sched_switch", "ftrace" "context_switch");
    Waking [c("comm"), n("pid|tid"), n("prio"), n("target_cpu")] ("sched" "sched_waking");
    Wakeup [c("comm"), n("pid|tid|next_pid"), n("prio|next_prio"), n("target_cpu|next_cpu")]
        ("sched" "sched_wakeup", "ftrace" "wakeup");
    WakeupNew [c("comm"), n("pid|tid"), n("prio"), n("target_cpu")] ("sched" "sched_wakeup_new");
    Migrate [c("comm"), n("pid|tid"), n("orig_cpu"), n("dest_cpu")] ("sched" "sched_migrate_task");
    Fork [c("child_comm"), n("child_pid|child_tid")] ("sched" "sched_process_fork");
    Exec [n("pid|tid")] ("sched" "sched_process_exec");
    Exit [c("comm"), n("pid|tid")] ("sched" "sched_process_exit");
    PiSetPrio [c("comm"), n("pid|tid"), n("oldprio"), n("newprio")] ("sched" "sched_pi_setprio");
    Signal [n("sig"), c("comm"), n("pid")] ("signal" "signal_generate");
    IrqEntry [n("irq"), t("name")] ("irq" "irq_handler_entry");
    IrqExit [n("irq"), n("ret")] ("irq" "irq_handler_exit");
    VectorEntry [n("vector")];
    VectorExit [n("vector")];
    SoftirqRaise [n("vec")] ("irq" "softirq_raise");
    SoftirqEntry [n("vec")] ("irq" "softirq_entry");
    SoftirqExit [n("vec")] ("irq" "softirq_exit");
    IpiSend [n("cpu")] ("ipi" "ipi_send_cpu");
    HrtimerStart [p("hrtimer"), n("softexpires|expires"), n("expires")] ("timer" "hrtimer_start");
    HrtimerCancel [p("hrtimer")] ("timer" "hrtimer_cancel");
    HrtimerEntry [p("hrtimer"), n("now")] ("timer" "hrtimer_expire_entry");
    HrtimerExit [p("hrtimer")] ("timer" "hrtimer_expire_exit");
    TimerStart [p("timer"), n("expires")] ("timer" "timer_start");
    TimerEntry [p("timer"), p("function")] ("timer" "timer_expire_entry");
    TimerExit [p("timer")] ("timer" "timer_expire_exit");
    SyscallEnter [n("id"), n("args[0]"), n("args[1]")] ("raw_syscalls" "sys_enter");
    SyscallExit [n("id"), n("ret")] ("raw_syscalls" "sys_exit");
    ContentionBegin [p("lock_addr"), n("flags")] ("lock" "contention_begin");
    ContentionEnd [p("lock_addr"), n("ret")] ("lock" "contention_end");
    FaultUser [p("address"), p("ip")] ("exceptions" "page_fault_user");
    FaultKernel [p("address"), p("ip")] ("exceptions" "page_fault_kernel");
    PageAlloc [n("order"), p("pfn|page")] ("kmem" "mm_page_alloc");
    ReclaimBegin [n("order")] ("vmscan" "mm_vmscan_direct_reclaim_begin");
    ReclaimEnd [n("nr_reclaimed")] ("vmscan" "mm_vmscan_direct_reclaim_end");
    Kmalloc [n("bytes_req"), n("bytes_alloc"), p("ptr")] ("kmem" "kmalloc");
    CacheAlloc [n("bytes_req"), n("bytes_alloc"), p("ptr")] ("kmem" "kmem_cache_alloc");
    Kfree [p("ptr")] ("kmem" "kfree");
    CacheFree [p("ptr")] ("kmem" "kmem_cache_free");
    BlockIssue [d("dev"), n("sector"), n("bytes"), t("rwbs")] ("block" "block_rq_issue");
    BlockComplete [d("dev"), n("sector"), n("nr_sector"), n("error|errors")]
        ("block" "block_rq_complete");
    JournalStart [d("dev"), n("transaction")] ("jbd2" "jbd2_start_commit");
    JournalEnd [d("dev"), n("transaction")] ("jbd2" "jbd2_end_commit");
    MmcStart [n("cmd_opcode"), n("blocks")] ("mmc" "mmc_request_start");
    MmcDone [n("cmd_opcode"), n("cmd_err")] ("mmc" "mmc_request_done");
    WorkStart [p("function")] ("workqueue" "workqueue_execute_start");
    WorkEnd [p("function")] ("workqueue" "workqueue_execute_end");
    NapiPoll [n("work"), n("budget")] ("napi" "napi_poll");
    Packet [n("len"), t("name|dev")] ("net" "netif_receive_skb");
    Socket [n("family"), n("protocol")] ("sock" "sk_data_ready");
    Idle [n("state")] ("power" "cpu_idle");
    Frequency [n("state")] ("power" "cpu_frequency");
    NewTask [n("pid|tid"), c("comm")] ("task" "task_newtask");
    Rename [n("pid|tid"), c("newcomm")] ("task" "task_rename");
    Print [t("buf")] ("ftrace" "print", "ftrace" "tracing_mark_write");
    NmiNoise [n("start"), n("duration")] ("osnoise" "nmi_noise");
    IrqNoise [n("vector"), t("desc"), n("start"), n("duration")] ("osnoise" "irq_noise");
    SoftirqNoise [n("vector"), n("start"), n("duration")] ("osnoise" "softirq_noise");
    ThreadNoise [c("comm"), n("pid|tid"), n("start"), n("duration")] ("osnoise" "thread_noise");
    SampleThreshold [n("start"), n("duration"), n("interference")] ("osnoise" "sample_threshold");
}

/// The interrupt vectors of x86 (arch/x86/include/asm/trace/irq_vectors.h), whose entries and exits
/// have the same format.
const VECTORS: [&str; 11] = [
    "local_timer",
    "spurious_apic",
    "error_apic",
    "x86_platform_ipi",
    "irq_work",
    "reschedule",
    "call_function",
    "call_function_single",
    "threshold_apic",
    "deferred_error_apic",
    "thermal_apic",
];

/// The vector of a tracepoint such as `local_timer_entry`.
pub(crate) fn vector_name(tracepoint: &str) -> Option<&'static str> {
    let name = tracepoint.strip_suffix("_entry").or_else(|| tracepoint.strip_suffix("_exit"))?;
    VECTORS.iter().find(|vector| **vector == name).copied()
}

impl Meaning {
    /// The meaning of a tracepoint; without its system, by name alone.
    pub(crate) fn from_tracepoint(system: Option<&str>, name: &str) -> Option<Meaning> {
        if system.is_none_or(|system| system == "irq_vectors") && vector_name(name).is_some() {
            let entry = name.ends_with("_entry");
            return Some(if entry { Meaning::VectorEntry } else { Meaning::VectorExit });
        }
        Meaning::of_table(system, name)
    }

    /// Whether some of its complete records produce no event.
    pub(crate) fn is_event_at_times(self) -> bool {
        matches!(self, Meaning::Signal | Meaning::NewTask | Meaning::Rename) || self.is_mark()
    }

    /// Whether its records are about moments ([`crate::marks::MomentMarks`]).
    pub(crate) fn is_mark(self) -> bool {
        self == Meaning::Print || self.is_of_osnoise()
    }

    pub(crate) fn is_of_osnoise(self) -> bool {
        matches!(
            self,
            Meaning::NmiNoise
                | Meaning::IrqNoise
                | Meaning::SoftirqNoise
                | Meaning::ThreadNoise
                | Meaning::SampleThreshold
        )
    }

    /// The slots of the task's id, and of the name that belongs to it.
    pub(crate) fn named_tasks(self) -> &'static [(usize, usize)] {
        match self {
            Meaning::Switch => &[(1, 0), (5, 4)],
            Meaning::Waking
            | Meaning::Wakeup
            | Meaning::WakeupNew
            | Meaning::Migrate
            | Meaning::Fork
            | Meaning::Exit
            | Meaning::PiSetPrio
            | Meaning::ThreadNoise => &[(1, 0)],
            Meaning::NewTask | Meaning::Rename => &[(0, 1)],
            _ => &[],
        }
    }

    /// The event; `None` if a field is missing that it needs to be true, and for records without an
    /// event. Instants of timers are as in the file.
    pub(crate) fn to_event(self, v: &Values<'_>) -> Option<EventKind> {
        let n = |slot: usize| v.numbers[slot];
        let address = |slot: usize| n(slot).map(|number| number as u64);
        let word = |slot: usize| n(slot).and_then(|number| u32::try_from(number).ok());
        let flags = |slot: usize| n(slot).map(|number| number as u32);
        let prio = |slot: usize| n(slot).and_then(|number| i16::try_from(number).ok());
        let task = |slot: usize| n(slot).and_then(to_tid);
        let cpu = |slot: usize| n(slot).and_then(|number| u16::try_from(number).ok());
        let small = |slot: usize| n(slot).and_then(|number| u8::try_from(number).ok());
        let instant = |slot: usize| n(slot).map(MonotonicNs);
        let error = |slot: usize| n(slot).map(|number| number as i32);
        Some(match self {
            Meaning::Switch => EventKind::Switch {
                prev_prio: prio(2)?,
                prev_state: v.state.unwrap_or(TaskState::Other),
                next: task(5)?,
                next_prio: prio(6)?,
            },
            Meaning::Waking => {
                EventKind::Waking { task: task(1)?, prio: prio(2)?, target: cpu(3)? }
            }
            Meaning::Wakeup | Meaning::WakeupNew => EventKind::Wakeup {
                task: task(1)?,
                prio: prio(2)?,
                target: cpu(3)?,
                new: self == Meaning::WakeupNew,
            },
            Meaning::Migrate => EventKind::Migrate { task: task(1)?, from: cpu(2)?, to: cpu(3)? },
            Meaning::Fork => EventKind::Fork { child: task(1)? },
            Meaning::Exec => EventKind::Exec,
            Meaning::Exit => EventKind::Exit,
            Meaning::PiSetPrio => {
                EventKind::PiSetPrio { task: task(1)?, old: prio(2)?, new: prio(3)? }
            }
            Meaning::Signal => {
                let stops =
                    |number: &u8| *number == signal::CONTINUE || signal::STOP.contains(number);
                EventKind::Signal { task: task(2)?, signal: small(0).filter(stops)? }
            }
            Meaning::IrqEntry => EventKind::IrqEntry { irq: word(0)? },
            Meaning::IrqExit => EventKind::IrqExit { irq: word(0)?, handled: n(1)? != 0 },
            Meaning::VectorEntry => EventKind::VectorEntry { vector: small(0)? },
            Meaning::VectorExit => EventKind::VectorExit { vector: small(0)? },
            Meaning::SoftirqRaise => EventKind::SoftirqRaise { vector: small(0)? },
            Meaning::SoftirqEntry => EventKind::SoftirqEntry { vector: small(0)? },
            Meaning::SoftirqExit => EventKind::SoftirqExit { vector: small(0)? },
            Meaning::IpiSend => EventKind::IpiSend { target: cpu(0)? },
            Meaning::HrtimerStart => {
                let expires = instant(1)?;
                let slack = n(2).map_or(0, |hard| hard.saturating_sub(expires.0));
                let slack = NonZeroU32::new(slack.clamp(0, u32::MAX.into()) as u32);
                EventKind::HrtimerStart { timer: address(0)?, expires, slack }
            }
            Meaning::HrtimerCancel => EventKind::HrtimerCancel { timer: address(0)? },
            Meaning::HrtimerEntry => {
                let (timer, now) = (address(0)?, instant(1));
                EventKind::HrtimerExpireEntry { timer, now, expires: None, slack: None }
            }
            Meaning::HrtimerExit => EventKind::HrtimerExpireExit { timer: address(0)? },
            Meaning::TimerStart => {
                EventKind::TimerStart { timer: address(0)?, expires: address(1)? }
            }
            Meaning::TimerEntry => {
                EventKind::TimerExpireEntry { timer: address(0)?, function: address(1)? }
            }
            Meaning::TimerExit => EventKind::TimerExpireExit { timer: address(0)? },
            Meaning::SyscallEnter => EventKind::SyscallEnter {
                number: word(0)?,
                args: [address(1).unwrap_or(0), address(2).unwrap_or(0)],
            },
            Meaning::SyscallExit => EventKind::SyscallExit { number: word(0)?, result: n(1)? },
            Meaning::ContentionBegin => {
                EventKind::ContentionBegin { lock: address(0)?, flags: flags(1)? }
            }
            Meaning::ContentionEnd => {
                EventKind::ContentionEnd { lock: address(0)?, result: error(1)? }
            }
            Meaning::FaultUser | Meaning::FaultKernel => EventKind::PageFault {
                address: address(0)?,
                ip: address(1)?,
                user: self == Meaning::FaultUser,
            },
            Meaning::PageAlloc => EventKind::PageAlloc { order: small(0)?, page: address(1)? },
            Meaning::ReclaimBegin => EventKind::ReclaimBegin { order: small(0)? },
            Meaning::ReclaimEnd => EventKind::ReclaimEnd { reclaimed: address(0)? },
            Meaning::Kmalloc => {
                let object = address(2).unwrap_or(0);
                EventKind::Kmalloc { requested: address(0)?, allocated: address(1)?, object }
            }
            Meaning::CacheAlloc => {
                let object = address(2).unwrap_or(0);
                EventKind::CacheAlloc { requested: address(0)?, allocated: address(1)?, object }
            }
            Meaning::Kfree => EventKind::Kfree { object: address(0).unwrap_or(0) },
            Meaning::CacheFree => EventKind::CacheFree { object: address(0).unwrap_or(0) },
            Meaning::BlockIssue => EventKind::BlockIssue {
                device: flags(0)?,
                sector: address(1)?,
                bytes: flags(2)?,
                write: v.texts[3].contains(&b'W'),
            },
            Meaning::BlockComplete => EventKind::BlockComplete {
                device: flags(0)?,
                sector: address(1)?,
                bytes: flags(2)?.saturating_mul(512),
                error: error(3)?,
            },
            Meaning::JournalStart => {
                EventKind::JournalStart { device: flags(0)?, transaction: flags(1)?.into() }
            }
            Meaning::JournalEnd => {
                EventKind::JournalEnd { device: flags(0)?, transaction: flags(1)?.into() }
            }
            Meaning::MmcStart => EventKind::MmcStart { opcode: flags(0)?, blocks: flags(1)? },
            Meaning::MmcDone => EventKind::MmcDone { opcode: flags(0)?, error: error(1)? },
            Meaning::WorkStart => EventKind::WorkStart { function: address(0)? },
            Meaning::WorkEnd => EventKind::WorkEnd { function: address(0)? },
            Meaning::NapiPoll => EventKind::NapiPoll { work: flags(0)?, budget: flags(1)? },
            Meaning::Packet => {
                let name = v.texts[1];
                let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
                let device = InterfaceName::from_bytes(&name[..end]);
                EventKind::PacketReceived { device, bytes: flags(0)? }
            }
            Meaning::Socket => EventKind::SocketReady {
                family: u16::try_from(n(0)?).ok()?,
                protocol: u16::try_from(n(1)?).ok()?,
            },
            // PWR_EVENT_EXIT is -1, as an unsigned number of 32 or 64 bits.
            Meaning::Idle if flags(0)? == u32::MAX => EventKind::IdleExit,
            Meaning::Idle => EventKind::IdleEnter { state: flags(0)? },
            Meaning::Frequency => EventKind::Frequency { khz: flags(0)? },
            Meaning::NewTask
            | Meaning::Rename
            | Meaning::Print
            | Meaning::NmiNoise
            | Meaning::IrqNoise
            | Meaning::SoftirqNoise
            | Meaning::ThreadNoise
            | Meaning::SampleThreshold => return None,
        })
    }
}

/// A thread's id. Idle tasks are 0; some tools write -1 for an ended thread.
pub(crate) fn to_tid(number: i64) -> Option<Tid> {
    u32::try_from(number).ok().filter(|tid| *tid <= i32::MAX as u32).map(Tid)
}

/// include/uapi/linux/futex.h, without the flags FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
pub(crate) fn futex_kind(op: u64) -> Futex {
    match op & !(128 | 256) {
        0 | 9 | 11 => Futex::Wait,
        1 | 3 | 4 | 5 | 10 | 12 => Futex::Wake,
        6 | 13 => Futex::LockPi,
        7 => Futex::UnlockPi,
        _ => Futex::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_missing_makes_no_event() {
        let mut values = Values::default();
        assert_eq!(Meaning::Switch.to_event(&values), None);
        values.numbers = [None, Some(1), Some(120), None, None, Some(7), Some(19)];
        values.state = Some(TaskState::Sleeping);
        let next = Tid(7);
        let prev_state = TaskState::Sleeping;
        let switch = EventKind::Switch { prev_prio: 120, prev_state, next, next_prio: 19 };
        assert_eq!(Meaning::Switch.to_event(&values), Some(switch));
        values.numbers[5] = Some(-1);
        assert_eq!(Meaning::Switch.to_event(&values), None);
    }

    #[test]
    fn names_without_a_system_do() {
        assert_eq!(Meaning::from_tracepoint(None, "timer_start"), Some(Meaning::TimerStart));
        assert_eq!(Meaning::from_tracepoint(Some("other"), "timer_start"), None);
        assert_eq!(
            Meaning::from_tracepoint(Some("irq_vectors"), "reschedule_exit"),
            Some(Meaning::VectorExit)
        );
        assert_eq!(Meaning::from_tracepoint(Some("irq"), "irq_work_entry"), None);
    }
}
