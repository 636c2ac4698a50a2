//! The tracepoints of each group, with the programs that record them.

use crate::request::{Backend, Request};
use crate::wire::layout as wire;
use punctual_core::event::{Group, NamedTracepoint};

#[derive(Clone, Copy, Debug)]
pub(crate) struct TracepointTable {
    pub(crate) group: Group,
    /// Its system under events/ of tracefs.
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    /// Programs of `bpf/events.bpf.c`: the first one accepted by this kernel counts.
    pub(crate) programs: &'static [&'static str],
    /// The kind of its records on the wire.
    pub(crate) kind: u8,
}

impl TracepointTable {
    /// `sched:sched_switch`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }
}

const fn table_entry(
    group: Group,
    system: &'static str,
    name: &'static str,
    programs: &'static [&'static str],
    kind: u64,
) -> TracepointTable {
    TracepointTable { group, system, name, programs, kind: kind as u8 }
}

/// The group that records a tracepoint anyway.
pub fn group_of(named: &NamedTracepoint) -> Option<Group> {
    let same = |other: &&TracepointTable| other.system == named.group && other.name == named.name;
    ALL.iter().find(same).map(|tracepoint| tracepoint.group)
}

/// The tracepoints of groups, each with its system and its name under events/ of tracefs.
pub fn names_of_tracepoints(
    groups: &[Group],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    of_groups(groups).map(|tracepoint| (tracepoint.system, tracepoint.name))
}

pub(crate) fn of_groups(groups: &[Group]) -> impl Iterator<Item = &'static TracepointTable> {
    ALL.iter().filter(|tracepoint| groups.contains(&tracepoint.group))
}

/// Whether the flight recorder keeps it. Each event costs some 200 instructions, many of them in
/// the measured wake-up (docs/reference/account.md). No explanation needs the start of a timer if
/// the record of its expiry has the due time; its cancellation, which the kernel also reports for
/// each expiry (debug_deactivate in kernel/time/hrtimer.c); the end of its handler, as the
/// interrupt ends; or the raising of a softirq before it ran.
pub(crate) fn explains_latency(
    tracepoint: &TracepointTable,
    request: &Request,
    backend: Backend,
) -> bool {
    match u64::from(tracepoint.kind) {
        wire::HRTIMER_CANCEL | wire::HRTIMER_EXIT | wire::SOFTIRQ_RAISE => false,
        wire::HRTIMER_START => backend != Backend::Btf,
        wire::WAKING => !request.timers_only,
        _ => true,
    }
}

/// Those with names: recorded with any group.
pub(crate) const NAMING: &[TracepointTable] = &[
    table_entry(Sched, "task", "task_newtask", &["new_task"], wire::NAME),
    table_entry(Sched, "task", "task_rename", &["renamed"], wire::NAME),
];

use Group::*;

/// All of them; one with different names in different kernels is listed several times.
const VECTOR_ENTRY: &[&str] = &["vector_entry", "vector_entry_before_5_15"];

#[rustfmt::skip] // A table.
pub(crate) const ALL: &[TracepointTable] = &[
    table_entry(Sched, "sched", "sched_switch", &["switched", "switched_before_5_18"],
        wire::SWITCH),
    table_entry(Sched, "sched", "sched_waking", &["waking"], wire::WAKING),
    table_entry(Sched, "sched", "sched_wakeup", &["wakeup"], wire::WAKEUP),
    table_entry(Sched, "sched", "sched_wakeup_new", &["wakeup_new"], wire::WAKEUP_NEW),
    table_entry(Sched, "sched", "sched_migrate_task", &["migrate"], wire::MIGRATE),
    table_entry(Sched, "sched", "sched_process_fork", &["forked"], wire::FORK),
    table_entry(Sched, "sched", "sched_process_exec", &["execed"], wire::EXEC),
    table_entry(Sched, "sched", "sched_process_exit", &["exited"], wire::EXIT),
    table_entry(Sched, "sched", "sched_pi_setprio", &["pi_setprio"], wire::PI_SETPRIO),
    table_entry(Sched, "signal", "signal_generate", &["signalled"], wire::SIGNAL),
    table_entry(Irq, "irq", "irq_handler_entry", &["irq_entry", "irq_entry_before_5_15"],
        wire::IRQ_ENTRY),
    table_entry(Irq, "irq", "irq_handler_exit", &["irq_exit"], wire::IRQ_EXIT),
    table_entry(Vectors, "irq_vectors", "local_timer_entry", VECTOR_ENTRY, wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "local_timer_exit", &["vector_exit"], wire::VECTOR_EXIT),
    table_entry(Vectors, "irq_vectors", "reschedule_entry", VECTOR_ENTRY, wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "reschedule_exit", &["vector_exit"], wire::VECTOR_EXIT),
    table_entry(Vectors, "irq_vectors", "call_function_entry", VECTOR_ENTRY, wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "call_function_exit", &["vector_exit"], wire::VECTOR_EXIT),
    table_entry(Vectors, "irq_vectors", "call_function_single_entry", VECTOR_ENTRY,
        wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "call_function_single_exit", &["vector_exit"],
        wire::VECTOR_EXIT),
    table_entry(Vectors, "irq_vectors", "irq_work_entry", VECTOR_ENTRY, wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "irq_work_exit", &["vector_exit"], wire::VECTOR_EXIT),
    table_entry(Vectors, "irq_vectors", "thermal_apic_entry", VECTOR_ENTRY, wire::VECTOR_ENTRY),
    table_entry(Vectors, "irq_vectors", "thermal_apic_exit", &["vector_exit"], wire::VECTOR_EXIT),
    table_entry(Softirq, "irq", "softirq_raise", &["softirq_raise"], wire::SOFTIRQ_RAISE),
    table_entry(Softirq, "irq", "softirq_entry", &["softirq_entry"], wire::SOFTIRQ_ENTRY),
    table_entry(Softirq, "irq", "softirq_exit", &["softirq_exit"], wire::SOFTIRQ_EXIT),
    table_entry(Ipi, "ipi", "ipi_send_cpu", &["ipi_send"], wire::IPI_SEND),
    table_entry(Hrtimer, "timer", "hrtimer_start", &["hrtimer_start"], wire::HRTIMER_START),
    table_entry(Hrtimer, "timer", "hrtimer_cancel", &["hrtimer_cancel"], wire::HRTIMER_CANCEL),
    table_entry(Hrtimer, "timer", "hrtimer_expire_entry", &["hrtimer_entry"], wire::HRTIMER_ENTRY),
    table_entry(Hrtimer, "timer", "hrtimer_expire_exit", &["hrtimer_exit"], wire::HRTIMER_EXIT),
    table_entry(Timer, "timer", "timer_start", &["timer_start"], wire::TIMER_START),
    table_entry(Timer, "timer", "timer_expire_entry", &["timer_entry"], wire::TIMER_ENTRY),
    table_entry(Timer, "timer", "timer_expire_exit", &["timer_exit"], wire::TIMER_EXIT),
    table_entry(Syscall, "raw_syscalls", "sys_enter", &["syscall_enter"], wire::SYSCALL_ENTER),
    table_entry(Syscall, "raw_syscalls", "sys_exit", &["syscall_exit"], wire::SYSCALL_EXIT),
    table_entry(Futex, "raw_syscalls", "sys_enter", &["syscall_enter"], wire::FUTEX_ENTER),
    table_entry(Futex, "raw_syscalls", "sys_exit", &["syscall_exit"], wire::FUTEX_EXIT),
    table_entry(Lock, "lock", "contention_begin", &["contention_begin"], wire::CONTENTION_BEGIN),
    table_entry(Lock, "lock", "contention_end", &["contention_end"], wire::CONTENTION_END),
    table_entry(Fault, "exceptions", "page_fault_user", &["page_fault_user"], wire::PAGE_FAULT),
    table_entry(Fault, "exceptions", "page_fault_kernel", &["page_fault_kernel"], wire::PAGE_FAULT),
    table_entry(Page, "kmem", "mm_page_alloc", &["page_alloc"], wire::PAGE_ALLOC),
    table_entry(Page, "vmscan", "mm_vmscan_direct_reclaim_begin", &["reclaim_begin"],
        wire::RECLAIM_BEGIN),
    table_entry(Page, "vmscan", "mm_vmscan_direct_reclaim_end", &["reclaim_end"],
        wire::RECLAIM_END),
    table_entry(Kmalloc, "kmem", "kmalloc", &["kmalloc"], wire::KMALLOC_OBJECT),
    table_entry(Kmalloc, "kmem", "kmem_cache_alloc", &["cache_alloc"], wire::CACHE_ALLOC_OBJECT),
    table_entry(Kmalloc, "kmem", "kfree", &["kfree"], wire::KFREE),
    table_entry(Kmalloc, "kmem", "kmem_cache_free", &["cache_free"], wire::CACHE_FREE),
    table_entry(Block, "block", "block_rq_issue", &["block_issue"], wire::BLOCK_ISSUE),
    table_entry(Block, "block", "block_rq_complete", &["block_complete"], wire::BLOCK_COMPLETE),
    table_entry(Jbd2, "jbd2", "jbd2_start_commit", &["journal_start"], wire::JOURNAL_START),
    table_entry(Jbd2, "jbd2", "jbd2_end_commit", &["journal_end"], wire::JOURNAL_END),
    table_entry(Mmc, "mmc", "mmc_request_start", &["mmc_start"], wire::MMC_START),
    table_entry(Mmc, "mmc", "mmc_request_done", &["mmc_done"], wire::MMC_DONE),
    table_entry(Workqueue, "workqueue", "workqueue_execute_start", &["work_start"],
        wire::WORK_START),
    table_entry(Workqueue, "workqueue", "workqueue_execute_end", &["work_end"], wire::WORK_END),
    table_entry(Napi, "napi", "napi_poll", &["napi_poll"], wire::NAPI_POLL),
    table_entry(Napi, "net", "netif_receive_skb", &["packet_received"], wire::PACKET),
    table_entry(Napi, "sock", "sk_data_ready", &["socket_ready"], wire::SOCKET),
    table_entry(Idle, "power", "cpu_idle", &["idle"], wire::IDLE),
    table_entry(Frequency, "power", "cpu_frequency", &["frequency"], wire::FREQUENCY),
];
