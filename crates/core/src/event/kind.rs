//! The kinds of events, each with its tracepoint (include/trace/events/ of the kernel).

use super::{
    CpuContext, FunctionId, Group, InterfaceName, PointId, RecordBytes, StackId, Tid, TracepointId,
};
use crate::MonotonicNs;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Why a task left its CPU: `prev_state` of sched_switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Still runnable, and preempted by the kernel or another task.
    Preempted,
    /// Still runnable, and gave up the CPU itself (sched_yield). Recorders that cannot distinguish
    /// this report [`TaskState::Preempted`].
    Yielded,
    /// Still runnable, and throttled by the exhausted quota of its group, if the recorder reads it.
    Throttled,
    /// Waits interruptibly: `S`.
    Sleeping,
    /// Waits uninterruptibly, mostly for I/O, a page or a kernel lock: `D`.
    Blocked,
    /// Waits for a lock with priority inheritance on PREEMPT_RT (TASK_RTLOCK_WAIT).
    LockWait,
    /// Stopped or traced; or frozen with its control group, if the recorder reads that.
    Stopped,
    Dead,
    Other,
}

/// The recorded signals (include/uapi/asm-generic/signal.h).
pub mod signal {
    /// SIGCONT: continues a stopped process.
    pub const CONTINUE: u8 = 18;
    /// SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU: stop a process.
    pub const STOP: std::ops::RangeInclusive<u8> = 19..=22;
}

/// The kind of a test point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    Point,
    /// The start of a scope, which an end of the same name closes.
    Begin,
    /// The end of the scope begun with the same name.
    End,
}

/// The role of a futex call with respect to waiting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Futex {
    Wait,
    LockPi,
    Wake,
    UnlockPi,
    Other,
}

/// The content of an event. Priorities are the kernel's `prio`: 0–99 real-time (99 − rt_priority),
/// 100–139 others, −1 deadline.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the tracepoints that the variants name.
pub enum EventKind {
    /// sched:sched_switch; `Event::tid` is the leaving task.
    Switch {
        prev_prio: i16,
        prev_state: TaskState,
        next: Tid,
        next_prio: i16,
    },
    /// sched:sched_waking: the wake-up of `task` begins; `Event::tid` is the waker or the
    /// interrupted task.
    Waking {
        task: Tid,
        prio: i16,
        target: u16,
    },
    /// sched:sched_wakeup and sched_wakeup_new: `task` is now on the runqueue of CPU `target`.
    Wakeup {
        task: Tid,
        prio: i16,
        target: u16,
        new: bool,
    },
    Migrate {
        task: Tid,
        from: u16,
        to: u16,
    },
    /// sched:sched_process_fork: `child` is new.
    Fork {
        child: Tid,
    },
    Exec,
    Exit,
    /// sched:sched_pi_setprio: `task` inherits a priority.
    PiSetPrio {
        task: Tid,
        old: i16,
        new: i16,
    },
    /// signal:signal_generate of a signal that stops or continues a process ([`signal`]):
    /// `Event::tid` sends it to the thread `task`, or to its whole process.
    Signal {
        task: Tid,
        signal: u8,
    },
    IrqEntry {
        irq: u32,
    },
    IrqExit {
        irq: u32,
        handled: bool,
    },
    /// irq_vectors:*_entry: see [`super::Names::vectors`] for the vector's name.
    VectorEntry {
        vector: u8,
    },
    VectorExit {
        vector: u8,
    },
    SoftirqRaise {
        vector: u8,
    },
    SoftirqEntry {
        vector: u8,
    },
    SoftirqExit {
        vector: u8,
    },
    /// ipi:ipi_send_cpu: an interrupt was sent to another CPU.
    IpiSend {
        target: u16,
    },
    /// timer:hrtimer_start: `timer` is its address and `expires` the requested instant. The kernel
    /// may defer the expiry by `slack` ns (4.29 s at most); `None`: not at all, or unknown.
    HrtimerStart {
        timer: u64,
        expires: MonotonicNs,
        slack: Option<NonZeroU32>,
    },
    HrtimerCancel {
        timer: u64,
    },
    /// timer:hrtimer_expire_entry: the handler of `timer` begins; `now` is the instant used by the
    /// kernel and `expires` the programmed one, if the recorder reads them; `slack` as in
    /// [`EventKind::HrtimerStart`].
    HrtimerExpireEntry {
        timer: u64,
        now: Option<MonotonicNs>,
        expires: Option<MonotonicNs>,
        slack: Option<NonZeroU32>,
    },
    HrtimerExpireExit {
        timer: u64,
    },
    /// timer:timer_start (the timer wheel); `expires` in jiffies.
    TimerStart {
        timer: u64,
        expires: u64,
    },
    TimerExpireEntry {
        timer: u64,
        function: u64,
    },
    TimerExpireExit {
        timer: u64,
    },
    /// raw_syscalls:sys_enter, with the first arguments.
    SyscallEnter {
        number: u32,
        args: [u64; 2],
    },
    SyscallExit {
        number: u32,
        result: i64,
    },
    /// A futex call that may wait or wake, at its entry: the address identifies the lock.
    FutexEnter {
        op: Futex,
        address: u64,
    },
    /// The end of that call.
    FutexExit {
        op: Futex,
        result: i32,
    },
    /// lock:contention_begin: a wait for a lock inside the kernel; `flags` as the kernel's LCB_F_*.
    ContentionBegin {
        lock: u64,
        flags: u32,
    },
    ContentionEnd {
        lock: u64,
        result: i32,
    },
    PageFault {
        address: u64,
        ip: u64,
        user: bool,
    },
    /// kmem:mm_page_alloc. `page` is the frame number, or with BTF the address of the `struct
    /// page`.
    PageAlloc {
        order: u8,
        page: u64,
    },
    ReclaimBegin {
        order: u8,
    },
    ReclaimEnd {
        reclaimed: u64,
    },
    /// kmem:kmalloc. `object` is its address, or what stands for it; 0: unknown.
    Kmalloc {
        requested: u64,
        allocated: u64,
        object: u64,
    },
    /// kmem:kmem_cache_alloc; `object` as for kmalloc.
    CacheAlloc {
        requested: u64,
        allocated: u64,
        object: u64,
    },
    /// kmem:kfree.
    Kfree {
        object: u64,
    },
    /// kmem:kmem_cache_free.
    CacheFree {
        object: u64,
    },
    /// block:block_rq_issue; `device` is the kernel's dev_t.
    BlockIssue {
        device: u32,
        sector: u64,
        bytes: u32,
        write: bool,
    },
    BlockComplete {
        device: u32,
        sector: u64,
        bytes: u32,
        error: i32,
    },
    /// jbd2:jbd2_start_commit.
    JournalStart {
        device: u32,
        transaction: u64,
    },
    /// jbd2:jbd2_end_commit.
    JournalEnd {
        device: u32,
        transaction: u64,
    },
    MmcStart {
        opcode: u32,
        blocks: u32,
    },
    MmcDone {
        opcode: u32,
        error: i32,
    },
    /// workqueue:workqueue_execute_start; `function` is an address, see [`super::Names::symbols`].
    WorkStart {
        function: u64,
    },
    WorkEnd {
        function: u64,
    },
    NapiPoll {
        work: u32,
        budget: u32,
    },
    /// net:netif_receive_skb: a packet received by this device is passed up the protocol stack.
    PacketReceived {
        device: InterfaceName,
        bytes: u32,
    },
    /// sock:sk_data_ready: data was queued at a socket (AF_… and IPPROTO_…), whose waiters are
    /// woken next.
    SocketReady {
        family: u16,
        protocol: u16,
    },
    /// power:cpu_idle with a state: the CPU enters idle.
    IdleEnter {
        state: u32,
    },
    IdleExit,
    Frequency {
        khz: u32,
    },
    /// A tracepoint recorded by name, with its own record. [`super::Names::tracepoints`] has the
    /// format.
    Tracepoint {
        tracepoint: TracepointId,
        record: RecordBytes,
    },
    /// The interrupt of the previous event met the task in the kernel, in this system call (`None`:
    /// in user mode, or in an exception from there). Recorded if system calls are not.
    Interrupted {
        call: Option<u32>,
    },
    /// The last throttled task of this CPU is unthrottled: detected at a switch there.
    Unthrottled {
        task: Tid,
    },
    /// The CPU state in the header of the previous record, or of one of which only the header is
    /// read. Recorded if it is evidence: interrupts were enabled, or the CPU was switching.
    Context {
        context: CpuContext,
        /// The kernel function named by the record, or its tracepoint ([`super::Names::symbols`];
        /// 0: none).
        site: u64,
        /// Whether it is where interrupts are disabled or enabled (preemptirq:irq_disable,
        /// irq_enable).
        section: bool,
    },
    /// A kernel stack of the running task, taken by the recorder at this instant.
    Stack {
        stack: StackId,
    },
    /// A test point of an application.
    Point {
        point: PointId,
        kind: PointKind,
        count: u8,
        values: [i64; 2],
    },
    /// A probed function ended, at the event's instant.
    Call {
        function: FunctionId,
        began: MonotonicNs,
        depth: u16,
        /// Whether it was left by longjmp, an exception or exit instead of a return.
        left: bool,
        argument: Option<u64>,
    },
    /// A mark made by punctual: the end of a measured sample; `series` as numbered in its bundle.
    Sample {
        series: u32,
        due: MonotonicNs,
    },
    /// Events are missing between `since` and this instant on this CPU (or of this thread, for test
    /// points).
    Lost {
        count: u64,
        since: MonotonicNs,
    },
}

impl EventKind {
    /// Its name: that of its tracepoint, if it has one of its own.
    pub fn event_name(&self) -> &'static str {
        self.name_and_group().0
    }
    /// The group that it is recorded with; `None` for events not from the kernel.
    pub fn group(&self) -> Option<Group> {
        self.name_and_group().1
    }
    fn name_and_group(&self) -> (&'static str, Option<Group>) {
        match self {
            EventKind::Switch { .. } => ("sched_switch", Some(Group::Sched)),
            EventKind::Waking { .. } => ("sched_waking", Some(Group::Sched)),
            EventKind::Wakeup { .. } => ("sched_wakeup", Some(Group::Sched)),
            EventKind::Migrate { .. } => ("sched_migrate_task", Some(Group::Sched)),
            EventKind::Fork { .. } => ("sched_process_fork", Some(Group::Sched)),
            EventKind::Exec => ("sched_process_exec", Some(Group::Sched)),
            EventKind::Exit => ("sched_process_exit", Some(Group::Sched)),
            EventKind::PiSetPrio { .. } => ("sched_pi_setprio", Some(Group::Sched)),
            EventKind::Signal { .. } => ("signal_generate", Some(Group::Sched)),
            EventKind::IrqEntry { .. } => ("irq_handler_entry", Some(Group::Irq)),
            EventKind::IrqExit { .. } => ("irq_handler_exit", Some(Group::Irq)),
            EventKind::VectorEntry { .. } => ("vector_entry", Some(Group::Vectors)),
            EventKind::VectorExit { .. } => ("vector_exit", Some(Group::Vectors)),
            EventKind::SoftirqRaise { .. } => ("softirq_raise", Some(Group::Softirq)),
            EventKind::SoftirqEntry { .. } => ("softirq_entry", Some(Group::Softirq)),
            EventKind::SoftirqExit { .. } => ("softirq_exit", Some(Group::Softirq)),
            EventKind::IpiSend { .. } => ("ipi_send_cpu", Some(Group::Ipi)),
            EventKind::HrtimerStart { .. } => ("hrtimer_start", Some(Group::Hrtimer)),
            EventKind::HrtimerCancel { .. } => ("hrtimer_cancel", Some(Group::Hrtimer)),
            EventKind::HrtimerExpireEntry { .. } => ("hrtimer_expire_entry", Some(Group::Hrtimer)),
            EventKind::HrtimerExpireExit { .. } => ("hrtimer_expire_exit", Some(Group::Hrtimer)),
            EventKind::TimerStart { .. } => ("timer_start", Some(Group::Timer)),
            EventKind::TimerExpireEntry { .. } => ("timer_expire_entry", Some(Group::Timer)),
            EventKind::TimerExpireExit { .. } => ("timer_expire_exit", Some(Group::Timer)),
            EventKind::SyscallEnter { .. } => ("sys_enter", Some(Group::Syscall)),
            EventKind::SyscallExit { .. } => ("sys_exit", Some(Group::Syscall)),
            EventKind::FutexEnter { .. } => ("futex_enter", Some(Group::Futex)),
            EventKind::FutexExit { .. } => ("futex_exit", Some(Group::Futex)),
            EventKind::ContentionBegin { .. } => ("contention_begin", Some(Group::Lock)),
            EventKind::ContentionEnd { .. } => ("contention_end", Some(Group::Lock)),
            EventKind::PageFault { .. } => ("page_fault", Some(Group::Fault)),
            EventKind::PageAlloc { .. } => ("mm_page_alloc", Some(Group::Page)),
            EventKind::ReclaimBegin { .. } => ("mm_vmscan_direct_reclaim_begin", Some(Group::Page)),
            EventKind::ReclaimEnd { .. } => ("mm_vmscan_direct_reclaim_end", Some(Group::Page)),
            EventKind::Kmalloc { .. } => ("kmalloc", Some(Group::Kmalloc)),
            EventKind::CacheAlloc { .. } => ("kmem_cache_alloc", Some(Group::Kmalloc)),
            EventKind::Kfree { .. } => ("kfree", Some(Group::Kmalloc)),
            EventKind::CacheFree { .. } => ("kmem_cache_free", Some(Group::Kmalloc)),
            EventKind::BlockIssue { .. } => ("block_rq_issue", Some(Group::Block)),
            EventKind::BlockComplete { .. } => ("block_rq_complete", Some(Group::Block)),
            EventKind::JournalStart { .. } => ("jbd2_start_commit", Some(Group::Jbd2)),
            EventKind::JournalEnd { .. } => ("jbd2_end_commit", Some(Group::Jbd2)),
            EventKind::MmcStart { .. } => ("mmc_request_start", Some(Group::Mmc)),
            EventKind::MmcDone { .. } => ("mmc_request_done", Some(Group::Mmc)),
            EventKind::WorkStart { .. } => ("workqueue_execute_start", Some(Group::Workqueue)),
            EventKind::WorkEnd { .. } => ("workqueue_execute_end", Some(Group::Workqueue)),
            EventKind::NapiPoll { .. } => ("napi_poll", Some(Group::Napi)),
            EventKind::PacketReceived { .. } => ("netif_receive_skb", Some(Group::Napi)),
            EventKind::SocketReady { .. } => ("sk_data_ready", Some(Group::Napi)),
            EventKind::IdleEnter { .. } => ("cpu_idle", Some(Group::Idle)),
            EventKind::IdleExit => ("cpu_idle_exit", Some(Group::Idle)),
            EventKind::Frequency { .. } => ("cpu_frequency", Some(Group::Frequency)),
            EventKind::Tracepoint { .. } => ("tracepoint", None),
            EventKind::Interrupted { .. } => ("interrupted", None),
            EventKind::Unthrottled { .. } => ("unthrottled", None),
            EventKind::Context { .. } => ("context", None),
            EventKind::Stack { .. } => ("stack", None),
            EventKind::Point { .. } => ("point", None),
            EventKind::Call { .. } => ("call", None),
            EventKind::Sample { .. } => ("sample", None),
            EventKind::Lost { .. } => ("lost", None),
        }
    }
}
