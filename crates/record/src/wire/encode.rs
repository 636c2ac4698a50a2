//! From events to bytes: what user space adds to a recording, and what other recorders bring.

use super::layout::{self as wire, Header};
use punctual_core::event::{Event, Futex, PointKind, RecordBytes, TaskState, What};

/// Appends the event as a record that [`super::decode`] reads back.
pub fn encode(event: &Event, to: &mut Vec<u8>) {
    let mut payload = [0; PAYLOAD];
    let (kind, size) = fill(&event.what, &mut payload);
    let words = (size / super::WORD) as u8;
    let header = Header { ns: event.at.0 as u64, tid: event.tid.0, kind: kind as u8, words, cpu: event.cpu };
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
fn fill(what: &What, p: &mut [u8; PAYLOAD]) -> (u64, usize) {
    match *what {
        What::Switch { prev_prio, prev_state, next, next_prio } => put!(p, SWITCH, Switch { next: next.0, prev_prio: prio(prev_prio), next_prio: prio(next_prio), prev_state: task_state(prev_state) }),
        What::Waking { task, prio: level, target } => put!(p, WAKING, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        What::Wakeup { task, prio: level, target, new: false } => put!(p, WAKEUP, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        What::Wakeup { task, prio: level, target, new: true } => put!(p, WAKEUP_NEW, Wake { task: task.0, target, prio: prio(level), spare: 0 }),
        What::Migrate { task, from, to } => put!(p, MIGRATE, Migrate { task: task.0, from, to }),
        What::Fork { child } => put!(p, FORK, Fork { child: child.0, spare: 0 }),
        What::Exec => (wire::EXEC, 0),
        What::Exit => (wire::EXIT, 0),
        What::PiSetPrio { task, old, new } => put!(p, PI_SETPRIO, Pi { task: task.0, old: prio(old), new: prio(new), spare: 0 }),
        What::IrqEntry { irq } => put!(p, IRQ_ENTRY, Irq { irq, handled: 0 }),
        What::IrqExit { irq, handled } => put!(p, IRQ_EXIT, Irq { irq, handled: handled.into() }),
        What::VectorEntry { vector } => put!(p, VECTOR_ENTRY, Number { number: vector.into(), spare: 0 }),
        What::VectorExit { vector } => put!(p, VECTOR_EXIT, Number { number: vector.into(), spare: 0 }),
        What::SoftirqRaise { vector } => put!(p, SOFTIRQ_RAISE, Number { number: vector.into(), spare: 0 }),
        What::SoftirqEntry { vector } => put!(p, SOFTIRQ_ENTRY, Number { number: vector.into(), spare: 0 }),
        What::SoftirqExit { vector } => put!(p, SOFTIRQ_EXIT, Number { number: vector.into(), spare: 0 }),
        What::IpiSend { target } => put!(p, IPI_SEND, Number { number: target.into(), spare: 0 }),
        What::HrtimerStart { timer, expires } => put!(p, HRTIMER_START, HrtimerStart { timer, expires: expires.0 as u64 }),
        What::HrtimerCancel { timer } => put!(p, HRTIMER_CANCEL, Address { address: timer }),
        What::HrtimerExpireEntry { timer, now, expires } => put!(p, HRTIMER_ENTRY, HrtimerEntry { timer, now: now.map_or(0, |at| at.0 as u64), expires: expires.map_or(0, |at| at.0 as u64) }),
        What::HrtimerExpireExit { timer } => put!(p, HRTIMER_EXIT, Address { address: timer }),
        What::TimerStart { timer, expires } => put!(p, TIMER_START, Timer { timer, value: expires }),
        What::TimerExpireEntry { timer, function } => put!(p, TIMER_ENTRY, Timer { timer, value: function }),
        What::TimerExpireExit { timer } => put!(p, TIMER_EXIT, Address { address: timer }),
        What::SyscallEnter { number, args: [first, second] } => put!(p, SYSCALL_ENTER, SyscallEnter { number, spare: 0, first, second }),
        What::SyscallExit { number, result } => put!(p, SYSCALL_EXIT, SyscallExit { number, spare: 0, result }),
        What::FutexEnter { op, address } => put!(p, FUTEX_ENTER, FutexEnter { address, op: futex(op), spare: 0 }),
        What::FutexExit { op, result } => put!(p, FUTEX_EXIT, FutexExit { op: futex(op), result }),
        What::ContentionBegin { lock, flags } => put!(p, CONTENTION_BEGIN, Contention { lock, value: flags as i32, spare: 0 }),
        What::ContentionEnd { lock, result } => put!(p, CONTENTION_END, Contention { lock, value: result, spare: 0 }),
        What::PageFault { address, ip, user } => put!(p, PAGE_FAULT, PageFault { address, ip, user: user.into(), spare: 0 }),
        What::PageAlloc { order, page } => put!(p, PAGE_ALLOC, PageAlloc { page, order: order.into(), spare: 0 }),
        What::ReclaimBegin { order } => put!(p, RECLAIM_BEGIN, Number { number: order.into(), spare: 0 }),
        What::ReclaimEnd { reclaimed } => put!(p, RECLAIM_END, Address { address: reclaimed }),
        What::Kmalloc { requested, allocated } => put!(p, KMALLOC, Kmalloc { requested, allocated }),
        What::CacheAlloc { requested, allocated } => put!(p, CACHE_ALLOC, Kmalloc { requested, allocated }),
        What::BlockIssue { device, sector, bytes, write } => put!(p, BLOCK_ISSUE, Block { sector, device, bytes, value: write.into(), spare: 0 }),
        What::BlockComplete { device, sector, bytes, error } => put!(p, BLOCK_COMPLETE, Block { sector, device, bytes, value: error, spare: 0 }),
        // The kernel's tid_t is 32 bits wide.
        What::JournalStart { device, transaction } => put!(p, JOURNAL_START, Journal { device, transaction: transaction as u32 }),
        What::JournalEnd { device, transaction } => put!(p, JOURNAL_END, Journal { device, transaction: transaction as u32 }),
        What::MmcStart { opcode, blocks } => put!(p, MMC_START, Mmc { opcode, value: blocks as i32 }),
        What::MmcDone { opcode, error } => put!(p, MMC_DONE, Mmc { opcode, value: error }),
        What::WorkStart { function } => put!(p, WORK_START, Address { address: function }),
        What::WorkEnd { function } => put!(p, WORK_END, Address { address: function }),
        What::NapiPoll { work, budget } => put!(p, NAPI_POLL, Napi { work, budget }),
        What::IdleEnter { state } => put!(p, IDLE, Number { number: state, spare: 0 }),
        What::IdleExit => put!(p, IDLE, Number { number: u32::MAX, spare: 0 }),
        What::Frequency { khz } => put!(p, FREQUENCY, Number { number: khz, spare: 0 }),
        What::Tracepoint { tracepoint, record } => put!(p, TRACEPOINT, Tracepoint { tracepoint: tracepoint.0, bytes: record.bytes().len() as u32, record: padded(record.bytes()) }),
        What::Interrupted { call } => put!(p, INTERRUPTED, Interrupted { call: call.unwrap_or(wire::NO_CALL as u32), spare: 0 }),
        What::Released { task } => put!(p, RELEASED, Fork { child: task.0, spare: 0 }),
        What::Stack { stack } => put!(p, STACK, Number { number: stack.0, spare: 0 }),
        What::Point { point, kind, count, values: [first, second] } => put!(p, POINT, Point { point: point.0, kind: point_kind(kind), count, spare: 0, first, second }),
        What::Call { function, began, depth, left, argument } => put!(p, CALL, Call { began: began.0 as u64, function: function.0, depth, left: left.into(), has_argument: argument.is_some().into(), argument: argument.unwrap_or(0) }),
        What::Sample { series, due } => put!(p, SAMPLE, Sample { due: due.0 as u64, series, spare: 0 }),
        What::Lost { count, since } => put!(p, LOST, Lost { count, since: since.0 as u64 }),
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
        TaskState::HeldBack => wire::HELD_BACK as u16,
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
