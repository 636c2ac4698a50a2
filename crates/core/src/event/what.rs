//! The kinds of events, each with the tracepoint that it comes from (include/trace/events/ of the kernel).

use super::{FunctionId, Group, PointId, RecordBytes, StackId, Tid, TracepointId};
use crate::{MonotonicNs, Nanos};
use serde::{Deserialize, Serialize};

/// Why a task left its CPU: `prev_state` of sched_switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Still runnable, and preempted: the switch was the kernel's or another task's doing.
    Preempted,
    /// Still runnable, and gave the CPU up itself (sched_yield); recorders that cannot tell say [`TaskState::Preempted`].
    Yielded,
    /// Still runnable, and taken off its CPU because the quota of its group is used up, where the recorder looks for it.
    HeldBack,
    /// Waits and can be interrupted: `S`.
    Sleeping,
    /// Waits and cannot be interrupted, most often for I/O, a page or a kernel lock: `D`.
    Blocked,
    /// Waits for a lock with priority inheritance on PREEMPT_RT (TASK_RTLOCK_WAIT).
    LockWait,
    /// Stopped or traced.
    Stopped,
    /// Ended.
    Dead,
    /// Any other state.
    Other,
}

/// What a test point says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// An instant.
    Point,
    /// The beginning of something that the same name ends.
    Begin,
    /// Its end.
    End,
}

/// What a futex call does, as far as waiting is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Futex {
    /// FUTEX_WAIT and its kin.
    Wait,
    /// FUTEX_LOCK_PI and its kin.
    LockPi,
    /// FUTEX_WAKE and its kin.
    Wake,
    /// FUTEX_UNLOCK_PI.
    UnlockPi,
    /// Anything else.
    Other,
}

/// What happened. Priorities are the kernel's `prio`: 0–99 real-time (99 − rt_priority), 100–139 others, −1 deadline.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the tracepoints that the variants name.
pub enum What {
    /// sched:sched_switch; `Event::tid` is the task that leaves.
    Switch { prev_prio: i16, prev_state: TaskState, next: Tid, next_prio: i16 },
    /// sched:sched_waking: somebody decided to wake `task`; `Event::tid` is the waker or who it interrupted.
    Waking { task: Tid, prio: i16, target: u16 },
    /// sched:sched_wakeup and sched_wakeup_new: `task` is now on the runqueue of CPU `target`.
    Wakeup { task: Tid, prio: i16, target: u16, new: bool },
    /// sched:sched_migrate_task.
    Migrate { task: Tid, from: u16, to: u16 },
    /// sched:sched_process_fork: `child` is born.
    Fork { child: Tid },
    /// sched:sched_process_exec.
    Exec,
    /// sched:sched_process_exit.
    Exit,
    /// sched:sched_pi_setprio: `task` inherits a priority.
    PiSetPrio { task: Tid, old: i16, new: i16 },
    /// irq:irq_handler_entry.
    IrqEntry { irq: u32 },
    /// irq:irq_handler_exit.
    IrqExit { irq: u32, handled: bool },
    /// irq_vectors:*_entry: see [`super::Names::vectors`] for the vector's name.
    VectorEntry { vector: u8 },
    /// irq_vectors:*_exit.
    VectorExit { vector: u8 },
    /// irq:softirq_raise.
    SoftirqRaise { vector: u8 },
    /// irq:softirq_entry.
    SoftirqEntry { vector: u8 },
    /// irq:softirq_exit.
    SoftirqExit { vector: u8 },
    /// ipi:ipi_send_cpu: an interrupt for another CPU was sent.
    IpiSend { target: u16 },
    /// timer:hrtimer_start: `timer` names it by its address; `expires` is the instant that was asked for, before any slack.
    HrtimerStart { timer: u64, expires: MonotonicNs },
    /// timer:hrtimer_cancel.
    HrtimerCancel { timer: u64 },
    /// timer:hrtimer_expire_entry: the handler of `timer` begins; `now` is the instant that it was judged by and `expires` when it should
    /// have begun, where the recorder reads them.
    HrtimerExpireEntry { timer: u64, now: Option<MonotonicNs>, expires: Option<MonotonicNs> },
    /// timer:hrtimer_expire_exit.
    HrtimerExpireExit { timer: u64 },
    /// timer:timer_start (the timer wheel); `expires` in jiffies.
    TimerStart { timer: u64, expires: u64 },
    /// timer:timer_expire_entry.
    TimerExpireEntry { timer: u64, function: u64 },
    /// timer:timer_expire_exit.
    TimerExpireExit { timer: u64 },
    /// raw_syscalls:sys_enter, with the first arguments.
    SyscallEnter { number: u32, args: [u64; 2] },
    /// raw_syscalls:sys_exit.
    SyscallExit { number: u32, result: i64 },
    /// A futex call that may wait or wake, from its entry: the lock's address tells who holds whom up.
    FutexEnter { op: Futex, address: u64 },
    /// The end of that call.
    FutexExit { op: Futex, result: i32 },
    /// lock:contention_begin: a lock inside the kernel is waited for; `flags` as LCB_F_* of the kernel.
    ContentionBegin { lock: u64, flags: u32 },
    /// lock:contention_end.
    ContentionEnd { lock: u64, result: i32 },
    /// exceptions:page_fault_user and page_fault_kernel.
    PageFault { address: u64, ip: u64, user: bool },
    /// kmem:mm_page_alloc. `page` tells pages apart: the frame number, or with BTF the address of its `struct page`.
    PageAlloc { order: u8, page: u64 },
    /// vmscan:mm_vmscan_direct_reclaim_begin.
    ReclaimBegin { order: u8 },
    /// vmscan:mm_vmscan_direct_reclaim_end.
    ReclaimEnd { reclaimed: u64 },
    /// kmem:kmalloc.
    Kmalloc { requested: u64, allocated: u64 },
    /// kmem:kmem_cache_alloc.
    CacheAlloc { requested: u64, allocated: u64 },
    /// block:block_rq_issue; `device` is the kernel's dev_t.
    BlockIssue { device: u32, sector: u64, bytes: u32, write: bool },
    /// block:block_rq_complete.
    BlockComplete { device: u32, sector: u64, bytes: u32, error: i32 },
    /// jbd2:jbd2_start_commit.
    JournalStart { device: u32, transaction: u64 },
    /// jbd2:jbd2_end_commit.
    JournalEnd { device: u32, transaction: u64 },
    /// mmc:mmc_request_start.
    MmcStart { opcode: u32, blocks: u32 },
    /// mmc:mmc_request_done.
    MmcDone { opcode: u32, error: i32 },
    /// workqueue:workqueue_execute_start; `function` is an address, see [`super::Names::symbols`].
    WorkStart { function: u64 },
    /// workqueue:workqueue_execute_end.
    WorkEnd { function: u64 },
    /// napi:napi_poll.
    NapiPoll { work: u32, budget: u32 },
    /// power:cpu_idle with a state: the CPU goes to sleep.
    IdleEnter { state: u32 },
    /// power:cpu_idle with PWR_EVENT_EXIT.
    IdleExit,
    /// power:cpu_frequency.
    Frequency { khz: u32 },
    /// A tracepoint that is recorded by name, with its own record: [`super::Names::tracepoints`] says how it is read.
    Tracepoint { tracepoint: TracepointId, record: RecordBytes },
    /// An interrupt came, as the event before tells, and found the task in the kernel, in this system call (`None`: in user mode, or
    /// where an exception leads from there). Told where system calls are not recorded one by one.
    Interrupted { call: Option<u32> },
    /// Of the task that was held back last on this CPU the quota holds no longer: found at a switch there.
    Released { task: Tid },
    /// A sample of what ran (kernel stack), taken by the recorder itself at this instant.
    Stack { stack: StackId },
    /// A test point of an application.
    Point { point: PointId, kind: PointKind, count: u8, values: [i64; 2] },
    /// A probed function returned (or was left by longjmp, an exception or exit): the event's instant is the end.
    Call { function: FunctionId, began: MonotonicNs, depth: u16, left: bool, argument: Option<u64> },
    /// A mark made by punctual: the end of a measured sample; `series` as numbered in its bundle.
    Sample { series: u32, due: MonotonicNs },
    /// Events are missing between `since` and this instant on this CPU (or of this thread, for test points).
    Lost { count: u64, since: MonotonicNs },
}

impl What {
    /// What it is called: its tracepoint's name where it has one of its own.
    pub fn name(&self) -> &'static str {
        self.kind().0
    }
    /// The group that it is recorded with; `None` for what is no event of the kernel.
    pub fn group(&self) -> Option<Group> {
        self.kind().1
    }
    fn kind(&self) -> (&'static str, Option<Group>) {
        match self {
            What::Switch { .. } => ("sched_switch", Some(Group::Sched)),
            What::Waking { .. } => ("sched_waking", Some(Group::Sched)),
            What::Wakeup { .. } => ("sched_wakeup", Some(Group::Sched)),
            What::Migrate { .. } => ("sched_migrate_task", Some(Group::Sched)),
            What::Fork { .. } => ("sched_process_fork", Some(Group::Sched)),
            What::Exec => ("sched_process_exec", Some(Group::Sched)),
            What::Exit => ("sched_process_exit", Some(Group::Sched)),
            What::PiSetPrio { .. } => ("sched_pi_setprio", Some(Group::Sched)),
            What::IrqEntry { .. } => ("irq_handler_entry", Some(Group::Irq)),
            What::IrqExit { .. } => ("irq_handler_exit", Some(Group::Irq)),
            What::VectorEntry { .. } => ("vector_entry", Some(Group::Vectors)),
            What::VectorExit { .. } => ("vector_exit", Some(Group::Vectors)),
            What::SoftirqRaise { .. } => ("softirq_raise", Some(Group::Softirq)),
            What::SoftirqEntry { .. } => ("softirq_entry", Some(Group::Softirq)),
            What::SoftirqExit { .. } => ("softirq_exit", Some(Group::Softirq)),
            What::IpiSend { .. } => ("ipi_send_cpu", Some(Group::Ipi)),
            What::HrtimerStart { .. } => ("hrtimer_start", Some(Group::Hrtimer)),
            What::HrtimerCancel { .. } => ("hrtimer_cancel", Some(Group::Hrtimer)),
            What::HrtimerExpireEntry { .. } => ("hrtimer_expire_entry", Some(Group::Hrtimer)),
            What::HrtimerExpireExit { .. } => ("hrtimer_expire_exit", Some(Group::Hrtimer)),
            What::TimerStart { .. } => ("timer_start", Some(Group::Timer)),
            What::TimerExpireEntry { .. } => ("timer_expire_entry", Some(Group::Timer)),
            What::TimerExpireExit { .. } => ("timer_expire_exit", Some(Group::Timer)),
            What::SyscallEnter { .. } => ("sys_enter", Some(Group::Syscall)),
            What::SyscallExit { .. } => ("sys_exit", Some(Group::Syscall)),
            What::FutexEnter { .. } => ("futex_enter", Some(Group::Futex)),
            What::FutexExit { .. } => ("futex_exit", Some(Group::Futex)),
            What::ContentionBegin { .. } => ("contention_begin", Some(Group::Lock)),
            What::ContentionEnd { .. } => ("contention_end", Some(Group::Lock)),
            What::PageFault { .. } => ("page_fault", Some(Group::Fault)),
            What::PageAlloc { .. } => ("mm_page_alloc", Some(Group::Page)),
            What::ReclaimBegin { .. } => ("mm_vmscan_direct_reclaim_begin", Some(Group::Page)),
            What::ReclaimEnd { .. } => ("mm_vmscan_direct_reclaim_end", Some(Group::Page)),
            What::Kmalloc { .. } => ("kmalloc", Some(Group::Kmalloc)),
            What::CacheAlloc { .. } => ("kmem_cache_alloc", Some(Group::Kmalloc)),
            What::BlockIssue { .. } => ("block_rq_issue", Some(Group::Block)),
            What::BlockComplete { .. } => ("block_rq_complete", Some(Group::Block)),
            What::JournalStart { .. } => ("jbd2_start_commit", Some(Group::Jbd2)),
            What::JournalEnd { .. } => ("jbd2_end_commit", Some(Group::Jbd2)),
            What::MmcStart { .. } => ("mmc_request_start", Some(Group::Mmc)),
            What::MmcDone { .. } => ("mmc_request_done", Some(Group::Mmc)),
            What::WorkStart { .. } => ("workqueue_execute_start", Some(Group::Workqueue)),
            What::WorkEnd { .. } => ("workqueue_execute_end", Some(Group::Workqueue)),
            What::NapiPoll { .. } => ("napi_poll", Some(Group::Napi)),
            What::IdleEnter { .. } => ("cpu_idle", Some(Group::Idle)),
            What::IdleExit => ("cpu_idle_exit", Some(Group::Idle)),
            What::Frequency { .. } => ("cpu_frequency", Some(Group::Frequency)),
            What::Tracepoint { .. } => ("tracepoint", None),
            What::Interrupted { .. } => ("interrupted", None),
            What::Released { .. } => ("released", None),
            What::Stack { .. } => ("stack", None),
            What::Point { .. } => ("point", None),
            What::Call { .. } => ("call", None),
            What::Sample { .. } => ("sample", None),
            What::Lost { .. } => ("lost", None),
        }
    }
    /// How late `woke` was, for a sample's mark at `end`.
    pub fn sample_latency(&self, end: MonotonicNs) -> Option<Nanos> {
        match self {
            What::Sample { due, .. } => Some(Nanos(end.0.saturating_sub(due.0))),
            _ => None,
        }
    }
}
