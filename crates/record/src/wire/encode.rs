//! From events to bytes: what user space adds to a recording, and what other recorders bring.

use super::layout::{self as wire, Header};
use punctual_core::event::{Event, EventKind, Futex, PointKind, RecordBytes, TaskState};

/// Appends the event as a record that [`super::decode`] reads back.
pub fn encode(event: &Event, to: &mut Vec<u8>) {
    let mut payload = [0; PAYLOAD];
    let (kind, size) = fill(&event.what, &mut payload);
    let words = (size / super::WORD) as u8;
    let header =
        Header { ns: event.at.0 as u64, tid: event.tid.0, kind: kind as u8, words, cpu: event.cpu };
    let mut bytes = [0; Header::SIZE];
    header.write(&mut bytes);
    to.extend_from_slice(&bytes);
    to.extend_from_slice(&payload[..size]);
}

/// No payload of an event is longer.
const PAYLOAD: usize = wire::Tracepoint::SIZE;

macro_rules! put {
    ($payload:expr, $kind:ident, $structure:ident { $($fields:tt)* }) => {{
        let mut bytes = [0; wire::$structure::SIZE];
        wire::$structure { $($fields)* }.write(&mut bytes);
        $payload[..bytes.len()].copy_from_slice(&bytes);
        (wire::$kind, bytes.len())
    }};
}

fn prio(prio: i16) -> u8 {
    prio.saturating_add(1).clamp(0, 255) as u8
}

#[rustfmt::skip] // A table.
fn fill(what: &EventKind, p: &mut [u8; PAYLOAD]) -> (u64, usize) {
    match *what {
        EventKind::Switch { prev_prio, prev_state, next, next_prio } => put!(p, SWITCH, Switch { next: next.0, prev_prio: prio(prev_prio), next_prio: prio(next_prio), prev_state: task_state(prev_state) }),
        EventKind::Waking { task, prio: level, target } => put!(p, WAKING, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        EventKind::Wakeup { task, prio: level, target, new: false } => put!(p, WAKEUP, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        EventKind::Wakeup { task, prio: level, target, new: true } => put!(p, WAKEUP_NEW, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        EventKind::Migrate { task, from, to } => put!(p, MIGRATE, Migrate { task: task.0, from, to }),
        EventKind::Fork { child } => put!(p, FORK, Fork { child: child.0, spare: 0 }),
        EventKind::Exec => (wire::EXEC, 0),
        EventKind::Exit => (wire::EXIT, 0),
        EventKind::PiSetPrio { task, old, new } => put!(p, PI_SETPRIO, Pi { task: task.0, old: prio(old), new: prio(new), spare: 0 }),
        EventKind::IrqEntry { irq } => put!(p, IRQ_ENTRY, Irq { irq, handled: 0 }),
        EventKind::IrqExit { irq, handled } => put!(p, IRQ_EXIT, Irq { irq, handled: handled.into() }),
        EventKind::VectorEntry { vector } => put!(p, VECTOR_ENTRY, Number { number: vector.into(), spare: 0 }),
        EventKind::VectorExit { vector } => put!(p, VECTOR_EXIT, Number { number: vector.into(), spare: 0 }),
        EventKind::SoftirqRaise { vector } => put!(p, SOFTIRQ_RAISE, Number { number: vector.into(), spare: 0 }),
        EventKind::SoftirqEntry { vector } => put!(p, SOFTIRQ_ENTRY, Number { number: vector.into(), spare: 0 }),
        EventKind::SoftirqExit { vector } => put!(p, SOFTIRQ_EXIT, Number { number: vector.into(), spare: 0 }),
        EventKind::IpiSend { target } => put!(p, IPI_SEND, Number { number: target.into(), spare: 0 }),
        EventKind::HrtimerStart { timer, expires } => put!(p, HRTIMER_START, HrtimerStart { timer, expires: expires.0 as u64 }),
        EventKind::HrtimerCancel { timer } => put!(p, HRTIMER_CANCEL, Address { address: timer }),
        EventKind::HrtimerExpireEntry { timer, now, expires } => put!(p, HRTIMER_ENTRY, HrtimerEntry { timer, now: now.map_or(0, |at| at.0 as u64), expires: expires.map_or(0, |at| at.0 as u64) }),
        EventKind::HrtimerExpireExit { timer } => put!(p, HRTIMER_EXIT, Address { address: timer }),
        EventKind::TimerStart { timer, expires } => put!(p, TIMER_START, Timer { timer, value: expires }),
        EventKind::TimerExpireEntry { timer, function } => put!(p, TIMER_ENTRY, Timer { timer, value: function }),
        EventKind::TimerExpireExit { timer } => put!(p, TIMER_EXIT, Address { address: timer }),
        EventKind::SyscallEnter { number, args: [first, second] } => put!(p, SYSCALL_ENTER, SyscallEnter { number, spare: 0, first, second }),
        EventKind::SyscallExit { number, result } => put!(p, SYSCALL_EXIT, SyscallExit { number, spare: 0, result }),
        EventKind::FutexEnter { op, address } => put!(p, FUTEX_ENTER, FutexEnter { address, op: futex(op), spare: 0 }),
        EventKind::FutexExit { op, result } => put!(p, FUTEX_EXIT, FutexExit { op: futex(op), result }),
        EventKind::ContentionBegin { lock, flags } => put!(p, CONTENTION_BEGIN, Contention { lock, value: flags as i32, spare: 0 }),
        EventKind::ContentionEnd { lock, result } => put!(p, CONTENTION_END, Contention { lock, value: result, spare: 0 }),
        EventKind::PageFault { address, ip, user } => put!(p, PAGE_FAULT, PageFault { address, ip, user: user.into(), spare: 0 }),
        EventKind::PageAlloc { order, page } => put!(p, PAGE_ALLOC, PageAlloc { page, order: order.into(), spare: 0 }),
        EventKind::ReclaimBegin { order } => put!(p, RECLAIM_BEGIN, Number { number: order.into(), spare: 0 }),
        EventKind::ReclaimEnd { reclaimed } => put!(p, RECLAIM_END, Address { address: reclaimed }),
        EventKind::Kmalloc { requested, allocated } => put!(p, KMALLOC, Kmalloc { requested, allocated }),
        EventKind::CacheAlloc { requested, allocated } => put!(p, CACHE_ALLOC, Kmalloc { requested, allocated }),
        EventKind::BlockIssue { device, sector, bytes, write } => put!(p, BLOCK_ISSUE, Block { sector, device, bytes, value: write.into(), spare: 0 }),
        EventKind::BlockComplete { device, sector, bytes, error } => put!(p, BLOCK_COMPLETE, Block { sector, device, bytes, value: error, spare: 0 }),
        // The kernel's tid_t is 32 bits wide.
        EventKind::JournalStart { device, transaction } => put!(p, JOURNAL_START, Journal { device, transaction: transaction as u32 }),
        EventKind::JournalEnd { device, transaction } => put!(p, JOURNAL_END, Journal { device, transaction: transaction as u32 }),
        EventKind::MmcStart { opcode, blocks } => put!(p, MMC_START, Mmc { opcode, value: blocks as i32 }),
        EventKind::MmcDone { opcode, error } => put!(p, MMC_DONE, Mmc { opcode, value: error }),
        EventKind::WorkStart { function } => put!(p, WORK_START, Address { address: function }),
        EventKind::WorkEnd { function } => put!(p, WORK_END, Address { address: function }),
        EventKind::NapiPoll { work, budget } => put!(p, NAPI_POLL, Napi { work, budget }),
        EventKind::IdleEnter { state } => put!(p, IDLE, Number { number: state, spare: 0 }),
        EventKind::IdleExit => put!(p, IDLE, Number { number: u32::MAX, spare: 0 }),
        EventKind::Frequency { khz } => put!(p, FREQUENCY, Number { number: khz, spare: 0 }),
        EventKind::Tracepoint { tracepoint, record } => put!(p, TRACEPOINT, Tracepoint { tracepoint: tracepoint.0, bytes: record.bytes().len() as u32, record: padded(record.bytes()) }),
        EventKind::Interrupted { call } => put!(p, INTERRUPTED, Interrupted { call: call.unwrap_or(wire::NO_CALL as u32), spare: 0 }),
        EventKind::Unthrottled { task } => put!(p, RELEASED, Fork { child: task.0, spare: 0 }),
        EventKind::Stack { stack } => put!(p, STACK, Number { number: stack.0, spare: 0 }),
        EventKind::Point { point, kind, count, values: [first, second] } => put!(p, POINT, Point { point: point.0, kind: point_kind(kind), count, spare: 0, first, second }),
        EventKind::Call { function, began, depth, left, argument } => put!(p, CALL, Call { began: began.0 as u64, function: function.0, depth, left: left.into(), has_argument: argument.is_some().into(), argument: argument.unwrap_or(0) }),
        EventKind::Sample { series, due } => put!(p, SAMPLE, Sample { due: due.0 as u64, series, spare: 0 }),
        EventKind::Lost { count, since } => put!(p, LOST, Lost { count, since: since.0 as u64 }),
    }
}

fn padded(bytes: &[u8]) -> [u8; RecordBytes::MOST] {
    let mut all = [0; RecordBytes::MOST];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

fn point_kind(kind: PointKind) -> u8 {
    match kind {
        PointKind::Point => 0,
        PointKind::Begin => 1,
        PointKind::End => 2,
    }
}

/// One bit of the kernel's that stands for each state; see `decode`.
fn task_state(state: TaskState) -> u16 {
    match state {
        TaskState::Preempted | TaskState::Yielded => 0,
        TaskState::Throttled => wire::HELD_BACK as u16,
        TaskState::Sleeping => 0x1,
        TaskState::Blocked => 0x2,
        TaskState::LockWait => 0x1000,
        TaskState::Stopped => 0x4,
        TaskState::Dead => 0x80,
        TaskState::Other => 0x40,
    }
}

fn futex(op: Futex) -> u32 {
    match op {
        Futex::Wait => 0,
        Futex::Wake => 1,
        Futex::LockPi => 6,
        Futex::UnlockPi => 7,
        Futex::Other => 2,
    }
}
