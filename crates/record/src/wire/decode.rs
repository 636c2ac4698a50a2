//! Decodes bytes to events.

use super::layout::{self as wire, Header};
use punctual_core::MonotonicNs;
use punctual_core::event::{
    CpuContext, Event, EventKind, FunctionId, Futex, InterfaceName, PointId, PointKind,
    RecordBytes, StackId, TaskState, Tid, TracepointId,
};
use std::num::NonZeroU32;

/// Why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside a record.
    #[error("the record at byte {at} is cut off")]
    CutOff {
        /// Its position.
        at: usize,
    },
    /// An unknown kind; decoding continues after it.
    #[error(
        "the record at byte {at} is of kind {kind}, which this version of punctual does not know"
    )]
    UnknownKind {
        /// Its position.
        at: usize,
        /// Its kind.
        kind: u8,
    },
    /// A payload of the wrong size; decoding continues after it.
    #[error("the record at byte {at} of kind {kind} cannot have {words} words")]
    WrongSize {
        /// Its position.
        at: usize,
        /// Its kind.
        kind: u8,
        /// The size of its payload in words.
        words: u8,
    },
    /// An invalid value of a field; decoding continues after it.
    #[error("the record at byte {at} of kind {kind} holds an impossible value")]
    WrongValue {
        /// Its position.
        at: usize,
        /// Its kind.
        kind: u8,
    },
}

/// The events in these bytes, in order. Names and stacks are not events and are skipped.
pub fn decode(bytes: &[u8]) -> Decode<'_> {
    Decode { bytes, at: 0 }
}

/// The extent of the records in a buffer, without decoding them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Survey {
    /// The number of whole records with one event each: all but records of losses.
    pub events: u64,
    /// The earliest instant of a record.
    pub first: MonotonicNs,
    /// The latest one.
    pub last: MonotonicNs,
    /// The size of these records in bytes.
    pub bytes: usize,
}

/// Reads only the headers of whole records until they take `most` bytes; `None` without a whole
/// record.
pub fn survey_records(bytes: &[u8], most: usize) -> Option<Survey> {
    let (mut events, mut first, mut last, all) = (0, u64::MAX, 0, bytes.len());
    let mut bytes = bytes;
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let header = Header::read(header);
        let Some(rest) = rest.get(usize::from(header.words) * super::WORD..) else { break };
        if all - bytes.len() >= most {
            break;
        }
        events += u64::from(u64::from(header.kind) != wire::LOST);
        (first, last) = (first.min(header.ns), last.max(header.ns));
        bytes = rest;
    }
    let (first, last) = (MonotonicNs(first as i64), MonotonicNs(last as i64));
    (all > bytes.len()).then_some(Survey { events, first, last, bytes: all - bytes.len() })
}

/// The number of whole records with one event each.
pub fn count_records(bytes: &[u8]) -> u64 {
    survey_records(bytes, usize::MAX).map_or(0, |survey| survey.events)
}

/// See [`decode`].
#[derive(Clone, Debug)]
pub struct Decode<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Decode<'_> {
    /// The number of bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }
}

impl Iterator for Decode<'_> {
    type Item = Result<Event, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.at;
            let rest = self.bytes.get(at..)?;
            if rest.is_empty() {
                return None;
            }
            let Some((header, rest)) = rest.split_first_chunk() else {
                self.at = self.bytes.len();
                return Some(Err(WireError::CutOff { at }));
            };
            let header = Header::read(header);
            let size = usize::from(header.words) * super::WORD;
            let Some(payload) = rest.get(..size) else {
                self.at = self.bytes.len();
                return Some(Err(WireError::CutOff { at }));
            };
            self.at = at + Header::SIZE + size;
            match decode_event_kind(header.kind, payload) {
                Ok(Some(what)) => {
                    let at = MonotonicNs(header.ns as i64);
                    return Some(Ok(Event { at, cpu: header.cpu, tid: Tid(header.tid), what }));
                }
                Ok(None) => {}
                Err(problem) => {
                    let (kind, words) = (header.kind, header.words);
                    return Some(Err(match problem {
                        WireProblem::Kind => WireError::UnknownKind { at, kind },
                        WireProblem::Size => WireError::WrongSize { at, kind, words },
                        WireProblem::Value => WireError::WrongValue { at, kind },
                    }));
                }
            }
        }
    }
}

enum WireProblem {
    Kind,
    Size,
    Value,
}

/// A payload of exactly the size of its structure.
#[inline(always)]
fn exact_payload<const N: usize>(payload: &[u8]) -> Result<&[u8; N], WireProblem> {
    payload.try_into().map_err(|_| WireProblem::Size)
}

macro_rules! read {
    ($structure:ident, $payload:expr) => {
        wire::$structure::read(exact_payload($payload)?)
    };
}

fn decode_prio(on_wire: u8) -> i16 {
    i16::from(on_wire) - 1
}

/// `Ok(None)` for records that are not events.
#[inline]
fn decode_event_kind(kind: u8, payload: &[u8]) -> Result<Option<EventKind>, WireProblem> {
    let number = || Ok(read!(Number, payload).number);
    let small = || number().and_then(|number| u8::try_from(number).map_err(|_| WireProblem::Value));
    let address = || Ok::<_, WireProblem>(read!(Address, payload).address);
    Ok(Some(match u64::from(kind) {
        wire::SWITCH => {
            let r = read!(Switch, payload);
            EventKind::Switch {
                prev_prio: decode_prio(r.prev_prio),
                prev_state: task_state(r.prev_state),
                next: Tid(r.next),
                next_prio: decode_prio(r.next_prio),
            }
        }
        wire::WAKING => {
            let r = read!(Wake, payload);
            EventKind::Waking { task: Tid(r.task), prio: decode_prio(r.prio), target: r.target }
        }
        wire::WAKEUP => decode_wakeup(payload, false)?,
        wire::WAKEUP_NEW => decode_wakeup(payload, true)?,
        wire::MIGRATE => {
            let r = read!(Migrate, payload);
            EventKind::Migrate { task: Tid(r.task), from: r.from, to: r.to }
        }
        wire::FORK => EventKind::Fork { child: Tid(read!(Fork, payload).child) },
        wire::EXEC => {
            exact_payload::<0>(payload)?;
            EventKind::Exec
        }
        wire::EXIT => {
            exact_payload::<0>(payload)?;
            EventKind::Exit
        }
        wire::PI_SETPRIO => {
            let r = read!(Pi, payload);
            EventKind::PiSetPrio {
                task: Tid(r.task),
                old: decode_prio(r.old),
                new: decode_prio(r.new),
            }
        }
        wire::IRQ_ENTRY => EventKind::IrqEntry { irq: read!(Irq, payload).irq },
        wire::IRQ_EXIT => {
            let r = read!(Irq, payload);
            EventKind::IrqExit { irq: r.irq, handled: r.handled != 0 }
        }
        wire::VECTOR_ENTRY => EventKind::VectorEntry { vector: small()? },
        wire::VECTOR_EXIT => EventKind::VectorExit { vector: small()? },
        wire::SOFTIRQ_RAISE => EventKind::SoftirqRaise { vector: small()? },
        wire::SOFTIRQ_ENTRY => EventKind::SoftirqEntry { vector: small()? },
        wire::SOFTIRQ_EXIT => EventKind::SoftirqExit { vector: small()? },
        wire::IPI_SEND => {
            EventKind::IpiSend { target: u16::try_from(number()?).map_err(|_| WireProblem::Value)? }
        }
        wire::IDLE => match number()? {
            u32::MAX => EventKind::IdleExit,
            state => EventKind::IdleEnter { state },
        },
        wire::FREQUENCY => EventKind::Frequency { khz: number()? },
        wire::HRTIMER_START => {
            let r = read!(HrtimerStart, payload);
            let expires = MonotonicNs(r.expires as i64);
            EventKind::HrtimerStart { timer: r.timer, expires, slack: None }
        }
        wire::HRTIMER_SLACK_START => {
            let r = read!(HrtimerSlackStart, payload);
            let expires = MonotonicNs(r.expires as i64);
            EventKind::HrtimerStart { timer: r.timer, expires, slack: decode_slack(r.slack) }
        }
        wire::SIGNAL => {
            let r = read!(Signal, payload);
            let signal = u8::try_from(r.signal).map_err(|_| WireProblem::Value)?;
            EventKind::Signal { task: Tid(r.task), signal }
        }
        wire::HRTIMER_CANCEL => EventKind::HrtimerCancel { timer: address()? },
        wire::HRTIMER_ENTRY => {
            let r = read!(HrtimerEntry, payload);
            let expires = (r.expires != 0).then_some(MonotonicNs(r.expires as i64));
            let now = (r.now != 0).then_some(MonotonicNs(r.now as i64));
            EventKind::HrtimerExpireEntry { timer: r.timer, now, expires, slack: None }
        }
        wire::HRTIMER_SLACK_ENTRY => {
            let r = read!(HrtimerSlackEntry, payload);
            let expires = (r.expires != 0).then_some(MonotonicNs(r.expires as i64));
            let now = (r.now != 0).then_some(MonotonicNs(r.now as i64));
            EventKind::HrtimerExpireEntry {
                timer: r.timer,
                now,
                expires,
                slack: decode_slack(r.slack),
            }
        }
        wire::HRTIMER_EXIT => EventKind::HrtimerExpireExit { timer: address()? },
        wire::TIMER_START => {
            let r = read!(Timer, payload);
            EventKind::TimerStart { timer: r.timer, expires: r.value }
        }
        wire::TIMER_ENTRY => {
            let r = read!(Timer, payload);
            EventKind::TimerExpireEntry { timer: r.timer, function: r.value }
        }
        wire::TIMER_EXIT => EventKind::TimerExpireExit { timer: address()? },
        wire::SYSCALL_ENTER => {
            let r = read!(SyscallEnter, payload);
            EventKind::SyscallEnter { number: r.number, args: [r.first, r.second] }
        }
        wire::SYSCALL_EXIT => {
            let r = read!(SyscallExit, payload);
            EventKind::SyscallExit { number: r.number, result: r.result }
        }
        wire::FUTEX_ENTER => {
            let r = read!(FutexEnter, payload);
            let op = match decode_futex(r.op) {
                Futex::Wait if u64::from(r.waits) == wire::FUTEX_FOR_OTHER => Futex::Other,
                op => op,
            };
            EventKind::FutexEnter { op, address: r.address }
        }
        wire::FUTEX_EXIT => {
            let r = read!(FutexExit, payload);
            EventKind::FutexExit { op: decode_futex(r.op), result: r.result }
        }
        wire::CONTENTION_BEGIN => {
            let r = read!(Contention, payload);
            EventKind::ContentionBegin { lock: r.lock, flags: r.value as u32 }
        }
        wire::CONTENTION_END => {
            let r = read!(Contention, payload);
            EventKind::ContentionEnd { lock: r.lock, result: r.value }
        }
        wire::PAGE_FAULT => {
            let r = read!(PageFault, payload);
            EventKind::PageFault { address: r.address, ip: r.ip, user: r.user != 0 }
        }
        wire::PAGE_ALLOC => {
            let r = read!(PageAlloc, payload);
            EventKind::PageAlloc {
                order: u8::try_from(r.order).map_err(|_| WireProblem::Value)?,
                page: r.page,
            }
        }
        wire::RECLAIM_BEGIN => EventKind::ReclaimBegin { order: small()? },
        wire::RECLAIM_END => EventKind::ReclaimEnd { reclaimed: address()? },
        wire::KMALLOC => {
            let r = read!(Kmalloc, payload);
            EventKind::Kmalloc { requested: r.requested, allocated: r.allocated, object: 0 }
        }
        wire::CACHE_ALLOC => {
            let r = read!(Kmalloc, payload);
            EventKind::CacheAlloc { requested: r.requested, allocated: r.allocated, object: 0 }
        }
        wire::KMALLOC_OBJECT => {
            let wire::Object { requested, allocated, object } = read!(Object, payload);
            EventKind::Kmalloc { requested, allocated, object }
        }
        wire::CACHE_ALLOC_OBJECT => {
            let wire::Object { requested, allocated, object } = read!(Object, payload);
            EventKind::CacheAlloc { requested, allocated, object }
        }
        wire::KFREE => EventKind::Kfree { object: address()? },
        wire::CACHE_FREE => EventKind::CacheFree { object: address()? },
        wire::BLOCK_ISSUE => {
            let r = read!(Block, payload);
            EventKind::BlockIssue {
                device: r.device,
                sector: r.sector,
                bytes: r.bytes,
                write: r.value != 0,
            }
        }
        wire::BLOCK_COMPLETE => {
            let r = read!(Block, payload);
            EventKind::BlockComplete {
                device: r.device,
                sector: r.sector,
                bytes: r.bytes,
                error: r.value,
            }
        }
        wire::JOURNAL_START => {
            let r = read!(Journal, payload);
            EventKind::JournalStart { device: r.device, transaction: u64::from(r.transaction) }
        }
        wire::JOURNAL_END => {
            let r = read!(Journal, payload);
            EventKind::JournalEnd { device: r.device, transaction: u64::from(r.transaction) }
        }
        wire::MMC_START => {
            let r = read!(Mmc, payload);
            EventKind::MmcStart { opcode: r.opcode, blocks: r.value as u32 }
        }
        wire::MMC_DONE => {
            let r = read!(Mmc, payload);
            EventKind::MmcDone { opcode: r.opcode, error: r.value }
        }
        wire::WORK_START => EventKind::WorkStart { function: address()? },
        wire::WORK_END => EventKind::WorkEnd { function: address()? },
        wire::NAPI_POLL => {
            let r = read!(Napi, payload);
            EventKind::NapiPoll { work: r.work, budget: r.budget }
        }
        wire::PACKET => {
            let r = read!(Packet, payload);
            EventKind::PacketReceived {
                device: InterfaceName::from_bytes(&r.device),
                bytes: r.bytes,
            }
        }
        wire::SOCKET => {
            let r = read!(Socket, payload);
            EventKind::SocketReady { family: r.family, protocol: r.protocol }
        }
        wire::TRACEPOINT => {
            let r = read!(Tracepoint, payload);
            let bytes = r.record.get(..r.bytes as usize).ok_or(WireProblem::Value)?;
            EventKind::Tracepoint {
                tracepoint: TracepointId(r.tracepoint),
                record: RecordBytes::new(bytes),
            }
        }
        wire::INTERRUPTED => {
            let call = read!(Interrupted, payload).call;
            EventKind::Interrupted { call: (u64::from(call) != wire::NO_CALL).then_some(call) }
        }
        wire::RELEASED => EventKind::Unthrottled { task: Tid(read!(Fork, payload).child) },
        wire::CONTEXT => {
            let r = read!(Context, payload);
            let context = CpuContext::of_bits(r.bits);
            EventKind::Context { context, site: r.site, section: r.section != 0 }
        }
        wire::STACK => EventKind::Stack { stack: StackId(number()?) },
        wire::POINT => {
            let r = read!(Point, payload);
            if r.count > 2 {
                return Err(WireProblem::Value);
            }
            EventKind::Point {
                point: PointId(r.point),
                kind: point_kind(r.kind)?,
                count: r.count,
                values: [r.first, r.second],
            }
        }
        wire::CALL => {
            let r = read!(Call, payload);
            EventKind::Call {
                function: FunctionId(r.function),
                began: MonotonicNs(r.began as i64),
                depth: r.depth,
                left: r.left != 0,
                argument: (r.has_argument != 0).then_some(r.argument),
            }
        }
        wire::SAMPLE => {
            let r = read!(Sample, payload);
            EventKind::Sample { series: r.series, due: MonotonicNs(r.due as i64) }
        }
        wire::LOST => {
            let r = read!(Lost, payload);
            EventKind::Lost { count: r.count, since: MonotonicNs(r.since as i64) }
        }
        wire::NAME | wire::RAW => return Ok(None),
        _ => return Err(WireProblem::Kind),
    }))
}

fn decode_wakeup(payload: &[u8], new: bool) -> Result<EventKind, WireProblem> {
    let r = read!(Wake, payload);
    Ok(EventKind::Wakeup { task: Tid(r.task), prio: decode_prio(r.prio), target: r.target, new })
}

fn point_kind(kind: u8) -> Result<PointKind, WireProblem> {
    match kind {
        0 => Ok(PointKind::Point),
        1 => Ok(PointKind::Begin),
        2 => Ok(PointKind::End),
        _ => Err(WireProblem::Value),
    }
}

fn decode_slack(ns: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(ns).unwrap_or(u32::MAX))
}

/// include/linux/sched.h: TASK_INTERRUPTIBLE and others. Idle kernel threads wait uninterruptibly
/// and without load; they delay no other task, so they count as sleeping.
fn task_state(state: u16) -> TaskState {
    const NOLOAD: u16 = 0x400;
    match state {
        0 => TaskState::Preempted,
        s if u64::from(s) == wire::HELD_BACK => TaskState::Throttled,
        s if s & 0x1 != 0 => TaskState::Sleeping,
        s if s & 0x1000 != 0 => TaskState::LockWait,
        s if s & 0x2 != 0 && s & NOLOAD != 0 => TaskState::Sleeping,
        s if s & 0x2 != 0 => TaskState::Blocked,
        s if s & (0x4 | 0x8) != 0 => TaskState::Stopped,
        s if s & (0x10 | 0x20 | 0x80) != 0 => TaskState::Dead,
        _ => TaskState::Other,
    }
}

/// include/uapi/linux/futex.h, without the flags FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
pub(crate) fn decode_futex(op: u32) -> Futex {
    match op & !(128 | 256) {
        0 | 9 | 11 => Futex::Wait,
        1 | 3 | 4 | 5 | 10 | 12 => Futex::Wake,
        6 | 13 => Futex::LockPi,
        7 => Futex::UnlockPi,
        _ => Futex::Other,
    }
}
