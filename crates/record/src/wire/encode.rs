//! Encodes events to bytes: those that user space adds to a recording, and those of other
//! recorders.

use super::layout::{self as wire, Header};
use punctual_core::event::{Event, EventKind, Futex, PointKind, RecordBytes, TaskState};

/// Appends the event as a record for [`super::decode`].
pub fn encode(event: &Event, to: &mut Vec<u8>) {
    let mut payload = [0; PAYLOAD];
    let (kind, size) = fill_payload(&event.what, &mut payload);
    let words = (size / super::WORD) as u8;
    let header =
        Header { ns: event.at.0 as u64, tid: event.tid.0, kind: kind as u8, words, cpu: event.cpu };
    let mut bytes = [0; Header::SIZE];
    header.write(&mut bytes);
    to.extend_from_slice(&bytes);
    to.extend_from_slice(&payload[..size]);
}

/// The maximum payload of an event.
const PAYLOAD: usize = wire::Tracepoint::SIZE;

fn encode_prio(prio: i16) -> u8 {
    prio.saturating_add(1).clamp(0, 255) as u8
}

#[rustfmt::skip] // A table.
fn fill_payload(what: &EventKind, payload: &mut [u8; PAYLOAD]) -> (u64, usize) {
    use EventKind::*;
    macro_rules! put {
        ($kind:ident, $structure:ident { $($fields:tt)* }) => {{
            let mut bytes = [0; wire::$structure::SIZE];
            wire::$structure { $($fields)* }.write(&mut bytes);
            payload[..bytes.len()].copy_from_slice(&bytes);
            (wire::$kind, bytes.len())
        }};
    }
    match *what {
        Switch { prev_prio, prev_state, next, next_prio } =>
            put!(SWITCH, Switch {
                next: next.0, prev_prio: encode_prio(prev_prio), next_prio: encode_prio(next_prio),
                prev_state: task_state(prev_state),
            }),
        Waking { task, prio: level, target } =>
            put!(WAKING, Wake { task: task.0, target, prio: encode_prio(level), spare: 0 }),
        Wakeup { task, prio: level, target, new: false } =>
            put!(WAKEUP, Wake { task: task.0, target, prio: encode_prio(level), spare: 0 }),
        Wakeup { task, prio: level, target, new: true } =>
            put!(WAKEUP_NEW, Wake { task: task.0, target, prio: encode_prio(level), spare: 0 }),
        Migrate { task, from, to } => put!(MIGRATE, Migrate { task: task.0, from, to }),
        Fork { child } => put!(FORK, Fork { child: child.0, spare: 0 }),
        Exec => (wire::EXEC, 0),
        Exit => (wire::EXIT, 0),
        PiSetPrio { task, old, new } =>
            put!(PI_SETPRIO, Pi { task: task.0, old: encode_prio(old), new: encode_prio(new),
                spare: 0 }),
        IrqEntry { irq } => put!(IRQ_ENTRY, Irq { irq, handled: 0 }),
        IrqExit { irq, handled } => put!(IRQ_EXIT, Irq { irq, handled: handled.into() }),
        VectorEntry { vector } => put!(VECTOR_ENTRY, Number { number: vector.into(), spare: 0 }),
        VectorExit { vector } => put!(VECTOR_EXIT, Number { number: vector.into(), spare: 0 }),
        SoftirqRaise { vector } => put!(SOFTIRQ_RAISE, Number { number: vector.into(), spare: 0 }),
        SoftirqEntry { vector } => put!(SOFTIRQ_ENTRY, Number { number: vector.into(), spare: 0 }),
        SoftirqExit { vector } => put!(SOFTIRQ_EXIT, Number { number: vector.into(), spare: 0 }),
        IpiSend { target } => put!(IPI_SEND, Number { number: target.into(), spare: 0 }),
        Signal { task, signal } =>
            put!(SIGNAL, Signal { task: task.0, signal: signal.into() }),
        HrtimerStart { timer, expires, slack: None } =>
            put!(HRTIMER_START, HrtimerStart { timer, expires: expires.0 as u64 }),
        HrtimerStart { timer, expires, slack: Some(slack) } =>
            put!(HRTIMER_SLACK_START, HrtimerSlackStart {
                timer, expires: expires.0 as u64, slack: slack.get().into(),
            }),
        HrtimerCancel { timer } => put!(HRTIMER_CANCEL, Address { address: timer }),
        HrtimerExpireEntry { timer, now, expires, slack: None } =>
            put!(HRTIMER_ENTRY, HrtimerEntry {
                timer, now: now.map_or(0, |at| at.0 as u64),
                expires: expires.map_or(0, |at| at.0 as u64),
            }),
        HrtimerExpireEntry { timer, now, expires, slack: Some(slack) } =>
            put!(HRTIMER_SLACK_ENTRY, HrtimerSlackEntry {
                timer, now: now.map_or(0, |at| at.0 as u64),
                expires: expires.map_or(0, |at| at.0 as u64), slack: slack.get().into(),
            }),
        HrtimerExpireExit { timer } => put!(HRTIMER_EXIT, Address { address: timer }),
        TimerStart { timer, expires } => put!(TIMER_START, Timer { timer, value: expires }),
        TimerExpireEntry { timer, function } => put!(TIMER_ENTRY, Timer { timer, value: function }),
        TimerExpireExit { timer } => put!(TIMER_EXIT, Address { address: timer }),
        SyscallEnter { number, args: [first, second] } =>
            put!(SYSCALL_ENTER, SyscallEnter { number, spare: 0, first, second }),
        SyscallExit { number, result } =>
            put!(SYSCALL_EXIT, SyscallExit { number, spare: 0, result }),
        FutexEnter { op, address } =>
            put!(FUTEX_ENTER, FutexEnter { address, op: encode_futex(op), waits: 0 }),
        FutexExit { op, result } => put!(FUTEX_EXIT, FutexExit { op: encode_futex(op), result }),
        ContentionBegin { lock, flags } =>
            put!(CONTENTION_BEGIN, Contention { lock, value: flags as i32, spare: 0 }),
        ContentionEnd { lock, result } =>
            put!(CONTENTION_END, Contention { lock, value: result, spare: 0 }),
        PageFault { address, ip, user } =>
            put!(PAGE_FAULT, PageFault { address, ip, user: user.into(), spare: 0 }),
        PageAlloc { order, page } =>
            put!(PAGE_ALLOC, PageAlloc { page, order: order.into(), spare: 0 }),
        ReclaimBegin { order } => put!(RECLAIM_BEGIN, Number { number: order.into(), spare: 0 }),
        ReclaimEnd { reclaimed } => put!(RECLAIM_END, Address { address: reclaimed }),
        Kmalloc { requested, allocated, object } =>
            put!(KMALLOC_OBJECT, Object { requested, allocated, object }),
        CacheAlloc { requested, allocated, object } =>
            put!(CACHE_ALLOC_OBJECT, Object { requested, allocated, object }),
        Kfree { object } => put!(KFREE, Address { address: object }),
        CacheFree { object } => put!(CACHE_FREE, Address { address: object }),
        BlockIssue { device, sector, bytes, write } =>
            put!(BLOCK_ISSUE, Block { sector, device, bytes, value: write.into(), spare: 0 }),
        BlockComplete { device, sector, bytes, error } =>
            put!(BLOCK_COMPLETE, Block { sector, device, bytes, value: error, spare: 0 }),
        // The kernel's tid_t is 32 bits wide.
        JournalStart { device, transaction } =>
            put!(JOURNAL_START, Journal { device, transaction: transaction as u32 }),
        JournalEnd { device, transaction } =>
            put!(JOURNAL_END, Journal { device, transaction: transaction as u32 }),
        MmcStart { opcode, blocks } => put!(MMC_START, Mmc { opcode, value: blocks as i32 }),
        MmcDone { opcode, error } => put!(MMC_DONE, Mmc { opcode, value: error }),
        WorkStart { function } => put!(WORK_START, Address { address: function }),
        WorkEnd { function } => put!(WORK_END, Address { address: function }),
        NapiPoll { work, budget } => put!(NAPI_POLL, Napi { work, budget }),
        PacketReceived { device, bytes } =>
            put!(PACKET, Packet { device: device.0, bytes, spare: 0 }),
        SocketReady { family, protocol } => put!(SOCKET, Socket { family, protocol, spare: 0 }),
        IdleEnter { state } => put!(IDLE, Number { number: state, spare: 0 }),
        IdleExit => put!(IDLE, Number { number: u32::MAX, spare: 0 }),
        Frequency { khz } => put!(FREQUENCY, Number { number: khz, spare: 0 }),
        Tracepoint { tracepoint, record } =>
            put!(TRACEPOINT, Tracepoint {
                tracepoint: tracepoint.0, bytes: record.as_bytes().len() as u32,
                record: pad_record(record.as_bytes()),
            }),
        Interrupted { call } =>
            put!(INTERRUPTED, Interrupted { call: call.unwrap_or(wire::NO_CALL as u32), spare: 0 }),
        Unthrottled { task } => put!(RELEASED, Fork { child: task.0, spare: 0 }),
        Context { context, site, section } =>
            put!(CONTEXT, Context { site, bits: context.bits(), section: section.into() }),
        Stack { stack } => put!(STACK, Number { number: stack.0, spare: 0 }),
        Point { point, kind, count, values: [first, second] } =>
            put!(POINT, Point {
                point: point.0, kind: point_kind(kind), count, spare: 0, first, second,
            }),
        Call { function, began, depth, left, argument } =>
            put!(CALL, Call {
                began: began.0 as u64, function: function.0, depth, left: left.into(),
                has_argument: argument.is_some().into(), argument: argument.unwrap_or(0),
            }),
        Sample { series, due } => put!(SAMPLE, Sample { due: due.0 as u64, series, spare: 0 }),
        Lost { count, since } => put!(LOST, Lost { count, since: since.0 as u64 }),
    }
}

fn pad_record(bytes: &[u8]) -> [u8; RecordBytes::MAX] {
    let mut padded_bytes = [0; RecordBytes::MAX];
    padded_bytes[..bytes.len()].copy_from_slice(bytes);
    padded_bytes
}

fn point_kind(kind: PointKind) -> u8 {
    match kind {
        PointKind::Point => 0,
        PointKind::Begin => 1,
        PointKind::End => 2,
    }
}

/// One of the kernel's bits for each state; see `decode`.
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

fn encode_futex(op: Futex) -> u32 {
    match op {
        Futex::Wait => 0,
        Futex::Wake => 1,
        Futex::LockPi => 6,
        Futex::UnlockPi => 7,
        Futex::Other => 2,
    }
}
