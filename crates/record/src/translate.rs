//! Converts records of tracepoints to wire records.
//!
//! Recorders without BTF read the kernel's own records of its tracepoints. The positions of fields
//! differ between versions, but their names have not changed.

use crate::request::Request;
use crate::tracepoints::TracepointTable;
use crate::wire::{self, layout};
use punctual_core::MonotonicNs;
use punctual_core::event::NamedTracepoint;
use punctual_core::event::{
    Event, EventKind, Futex, Group, InterfaceName, RecordBytes, TaskState, Tid, TracepointFormat,
    TracepointId, signal,
};
use punctual_sys::clock;
use punctual_traces::bytes::ByteOrder;
use punctual_traces::format::{FieldPosition, RecordFormat};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{SystemTime, UNIX_EPOCH};

/// A tracepoint's record with its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord<'a> {
    pub(crate) at: MonotonicNs,
    pub(crate) cpu: u16,
    pub(crate) tid: u32,
    /// From its first common field on.
    pub(crate) record: &'a [u8],
}

/// Translates the records of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    tracepoints: Vec<KnownTasks>,
    by_id: HashMap<u16, usize>,
    /// The tracepoints recorded by name, ordered by id.
    formats: Vec<TracepointFormat>,
    named_by_id: HashMap<u16, usize>,
    /// The current futex call of each thread, which its exit does not state.
    futexes: HashMap<u32, Futex>,
    want_syscall: bool,
    want_futex: bool,
    /// The requested system calls; empty: all.
    syscalls: Vec<u32>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC: timers of the former have its instants.
    wall: i64,
}

#[derive(Debug)]
struct KnownTasks {
    wants: Wants,
    /// For one recorded by name: its index among those.
    named: Option<TracepointId>,
    /// The fields listed by [`names_of`] for this kind, in that order.
    fields: [Option<FieldPosition>; 4],
}

/// The selection of a tracepoint's records.
#[derive(Clone, Copy, Debug)]
struct Wants {
    kind: u8,
    /// Page faults of user space.
    user: bool,
}

impl Translator {
    pub(crate) fn new(request: &Request) -> Translator {
        let real =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        Translator {
            wall: real - clock::monotonic_now().0,
            want_syscall: request.groups.contains(&Group::Syscall),
            want_futex: request.groups.contains(&Group::Futex),
            syscalls: request.syscalls.clone(),
            ..Translator::default()
        }
    }

    /// Adds a tracepoint; returns its number in the translator.
    pub(crate) fn add(&mut self, tracepoint: &TracepointTable, format: &RecordFormat) -> usize {
        let mut fields = [None; 4];
        for (place, name) in fields.iter_mut().zip(names_of(tracepoint.kind)) {
            *place = name.split('|').find_map(|name| format.find_field(name));
        }
        let wants = Wants { kind: tracepoint.kind, user: tracepoint.name.ends_with("_user") };
        self.by_id.insert(format.id, self.tracepoints.len());
        self.tracepoints.push(KnownTasks { wants, fields, named: None });
        self.tracepoints.len() - 1
    }

    /// Adds a tracepoint recorded by name; returns its number in the translator.
    pub(crate) fn add_named(&mut self, name: &NamedTracepoint, format: &RecordFormat) -> usize {
        let wants = Wants { kind: layout::TRACEPOINT as u8, user: false };
        let named = TracepointId(self.formats.len() as u32);
        self.formats.push(format.to_tracepoint_format(name.full_name()));
        self.named_by_id.insert(format.id, self.tracepoints.len());
        self.tracepoints.push(KnownTasks { wants, fields: [None; 4], named: Some(named) });
        self.tracepoints.len() - 1
    }

    pub(crate) fn formats(&self) -> &[TracepointFormat] {
        &self.formats
    }

    /// The number of bytes needed of its record.
    pub(crate) fn needed_size(&self, tracepoint: usize) -> usize {
        let fields = self.tracepoints.get(tracepoint).map_or(&[][..], |known| &known.fields[..]);
        fields.iter().flatten().map(|field| field.offset + field.size).max().unwrap_or(0)
    }

    /// The same, preferring those recorded by name.
    pub(crate) fn of_record(&self, id: u16) -> Option<usize> {
        self.named_by_id.get(&id).copied().or_else(|| self.by_id(id))
    }

    /// The tracepoint with this `common_type`.
    pub(crate) fn by_id(&self, id: u16) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Appends the record in our format, unless it is not wanted. Names go to `names`.
    pub(crate) fn translate_record(
        &mut self,
        tracepoint: usize,
        recorded: RawRecord<'_>,
        to: &mut Vec<u8>,
        names: &mut Vec<u8>,
    ) {
        let Some(known) = self.tracepoints.get(tracepoint) else { return };
        let (wants, fields, named) = (known.wants, known.fields, known.named);
        let (record, order) = (recorded.record, ByteOrder::NATIVE);
        let number = |place: usize| {
            fields[place].and_then(|field| field.read_number(record, order)).unwrap_or(0)
        };
        let text =
            |place: usize| fields[place].map_or(&[][..], |field| field.read_text(record, order));
        let emit = |what: EventKind, to: &mut Vec<u8>| {
            wire::encode(
                &Event { at: recorded.at, cpu: recorded.cpu, tid: Tid(recorded.tid), what },
                to,
            );
        };
        match u64::from(wants.kind) {
            layout::SYSCALL_ENTER | layout::FUTEX_ENTER => {
                let call = number(0) as u32;
                let args = [number(1) as u64, number(2) as u64];
                if self.want_futex && call == NR_FUTEX {
                    let value = number(3) as u32;
                    let op = match wire::decode_futex(args[1] as u32) {
                        Futex::Wait if !is_of_lock(value) => Futex::Other,
                        op => op,
                    };
                    self.enter_futex(recorded.tid, op);
                    emit(EventKind::FutexEnter { op, address: args[0] }, to);
                }
                if self.wants_syscall(call) {
                    emit(EventKind::SyscallEnter { number: call, args }, to);
                }
            }
            layout::SYSCALL_EXIT | layout::FUTEX_EXIT => {
                let call = number(0) as u32;
                if self.wants_syscall(call) {
                    emit(EventKind::SyscallExit { number: call, result: number(1) }, to);
                }
                if self.want_futex && call == NR_FUTEX {
                    let op = self.futexes.remove(&recorded.tid).unwrap_or(Futex::Other);
                    emit(EventKind::FutexExit { op, result: number(1) as i32 }, to);
                }
            }
            layout::NAME => encode_name(number(0) as u32, text(1), names),
            layout::TRACEPOINT => {
                let own_fields = recorded.record.get(RecordBytes::COMMON..).unwrap_or_default();
                if let Some(tracepoint) = named {
                    emit(
                        EventKind::Tracepoint { tracepoint, record: RecordBytes::new(own_fields) },
                        to,
                    );
                }
            }
            _ => {
                if let Some(what) = translate_event(wants, self.wall, number, text) {
                    emit(what, to);
                }
            }
        }
    }

    fn wants_syscall(&self, number: u32) -> bool {
        self.want_syscall && (self.syscalls.is_empty() || self.syscalls.contains(&number))
    }

    fn enter_futex(&mut self, tid: u32, op: Futex) {
        if self.futexes.len() < MOST_FUTEXES {
            self.futexes.insert(tid, op);
        }
    }
}

/// A task's name; the tracepoint has neither process nor scheduling.
fn encode_name(tid: u32, comm: &[u8], to: &mut Vec<u8>) {
    let mut name = layout::Name { process: 0, policy: u8::MAX, prio: 0, spare: 0, comm: [0; 16] };
    let length = comm.len().min(16);
    name.comm[..length].copy_from_slice(&comm[..length]);
    let (mut head, mut bytes) = ([0; layout::Header::SIZE], [0; layout::Name::SIZE]);
    layout::Header {
        ns: 0,
        tid,
        kind: layout::NAME as u8,
        words: (bytes.len() / wire::WORD) as u8,
        cpu: 0,
    }
    .write(&mut head);
    name.write(&mut bytes);
    to.extend_from_slice(&head);
    to.extend_from_slice(&bytes);
}

/// Whether a futex has this value while it is a contended lock: of glibc and Rust's standard
/// library, or of musl. A parked thread has another value.
fn is_of_lock(value: u32) -> bool {
    value == 2 || (value >> 31 == 1 && value != u32::MAX)
}

/// The maximum number of threads in futex calls: the maximum number of threads.
const MOST_FUTEXES: usize = 1 << 22;

#[cfg(target_arch = "x86_64")]
pub(crate) const NR_FUTEX: u32 = 202;
#[cfg(target_arch = "arm")]
pub(crate) const NR_FUTEX: u32 = 240;
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
pub(crate) const NR_FUTEX: u32 = 98;

/// The fields that a kind needs; `a|b` if versions differ.
fn names_of(kind: u8) -> &'static [&'static str] {
    match u64::from(kind) {
        layout::SWITCH => &["prev_prio", "prev_state", "next_pid", "next_prio"],
        layout::WAKING | layout::WAKEUP | layout::WAKEUP_NEW => &["pid", "prio", "target_cpu"],
        layout::MIGRATE => &["pid", "orig_cpu", "dest_cpu"],
        layout::FORK => &["child_pid"],
        layout::PI_SETPRIO => &["pid", "oldprio", "newprio"],
        layout::IRQ_ENTRY | layout::IRQ_EXIT => &["irq", "ret"],
        layout::VECTOR_ENTRY | layout::VECTOR_EXIT => &["vector"],
        layout::SOFTIRQ_RAISE | layout::SOFTIRQ_ENTRY | layout::SOFTIRQ_EXIT => &["vec"],
        layout::IPI_SEND => &["cpu"],
        layout::SIGNAL => &["sig", "pid"],
        layout::HRTIMER_START => &["hrtimer", "softexpires|expires", "expires"],
        layout::HRTIMER_ENTRY => &["hrtimer", "now"],
        layout::HRTIMER_CANCEL | layout::HRTIMER_EXIT => &["hrtimer"],
        layout::TIMER_START => &["timer", "expires"],
        layout::TIMER_ENTRY => &["timer", "function"],
        layout::TIMER_EXIT => &["timer"],
        layout::SYSCALL_ENTER | layout::FUTEX_ENTER => &["id", "args[0]", "args[1]", "args[2]"],
        layout::SYSCALL_EXIT | layout::FUTEX_EXIT => &["id", "ret"],
        layout::CONTENTION_BEGIN => &["lock_addr", "flags"],
        layout::CONTENTION_END => &["lock_addr", "ret"],
        layout::PAGE_FAULT => &["address", "ip"],
        layout::PAGE_ALLOC => &["order", "pfn"],
        layout::RECLAIM_BEGIN => &["order"],
        layout::RECLAIM_END => &["nr_reclaimed"],
        layout::KMALLOC_OBJECT | layout::CACHE_ALLOC_OBJECT => &["bytes_req", "bytes_alloc", "ptr"],
        layout::KFREE | layout::CACHE_FREE => &["ptr"],
        layout::BLOCK_ISSUE => &["dev", "sector", "bytes", "rwbs"],
        layout::BLOCK_COMPLETE => &["dev", "sector", "nr_sector", "error|errors"],
        layout::JOURNAL_START | layout::JOURNAL_END => &["dev", "transaction"],
        layout::MMC_START => &["cmd_opcode", "blocks"],
        layout::MMC_DONE => &["cmd_opcode", "cmd_err"],
        layout::WORK_START | layout::WORK_END => &["function"],
        layout::NAPI_POLL => &["work", "budget"],
        layout::PACKET => &["len", "name"],
        layout::SOCKET => &["family", "protocol"],
        layout::IDLE => &["state"],
        layout::FREQUENCY => &["state", "cpu_id"],
        layout::NAME => &["pid", "newcomm|comm"],
        _ => &[],
    }
}

fn is_recorded(number: u8) -> bool {
    number == signal::CONTINUE || signal::STOP.contains(&number)
}

fn translate_event<'a>(
    wants: Wants,
    wall: i64,
    n: impl Fn(usize) -> i64,
    text: impl Fn(usize) -> &'a [u8],
) -> Option<EventKind> {
    let (task, prio) = (|| Tid(n(0) as u32), |place| n(place) as i16);
    Some(match u64::from(wants.kind) {
        layout::SWITCH => EventKind::Switch {
            prev_prio: prio(0),
            prev_state: task_state(n(1)),
            next: Tid(n(2) as u32),
            next_prio: prio(3),
        },
        layout::WAKING => EventKind::Waking { task: task(), prio: prio(1), target: n(2) as u16 },
        layout::WAKEUP => {
            EventKind::Wakeup { task: task(), prio: prio(1), target: n(2) as u16, new: false }
        }
        layout::WAKEUP_NEW => {
            EventKind::Wakeup { task: task(), prio: prio(1), target: n(2) as u16, new: true }
        }
        layout::MIGRATE => EventKind::Migrate { task: task(), from: n(1) as u16, to: n(2) as u16 },
        layout::FORK => EventKind::Fork { child: task() },
        layout::EXEC => EventKind::Exec,
        layout::EXIT => EventKind::Exit,
        layout::PI_SETPRIO => EventKind::PiSetPrio { task: task(), old: prio(1), new: prio(2) },
        layout::SIGNAL => {
            let signal = u8::try_from(n(0)).ok().filter(|number| is_recorded(*number))?;
            EventKind::Signal { task: Tid(n(1) as u32), signal }
        }
        layout::IRQ_ENTRY => EventKind::IrqEntry { irq: n(0) as u32 },
        layout::IRQ_EXIT => EventKind::IrqExit { irq: n(0) as u32, handled: n(1) != 0 },
        layout::VECTOR_ENTRY => EventKind::VectorEntry { vector: n(0) as u8 },
        layout::VECTOR_EXIT => EventKind::VectorExit { vector: n(0) as u8 },
        layout::SOFTIRQ_RAISE => EventKind::SoftirqRaise { vector: n(0) as u8 },
        layout::SOFTIRQ_ENTRY => EventKind::SoftirqEntry { vector: n(0) as u8 },
        layout::SOFTIRQ_EXIT => EventKind::SoftirqExit { vector: n(0) as u8 },
        layout::IPI_SEND => EventKind::IpiSend { target: n(0) as u16 },
        layout::HRTIMER_START => {
            let slack = n(2).saturating_sub(n(1)).clamp(0, u32::MAX.into()) as u32;
            EventKind::HrtimerStart {
                timer: n(0) as u64,
                expires: to_monotonic(n(1), wall),
                slack: NonZeroU32::new(slack),
            }
        }
        layout::HRTIMER_CANCEL => EventKind::HrtimerCancel { timer: n(0) as u64 },
        layout::HRTIMER_ENTRY => EventKind::HrtimerExpireEntry {
            timer: n(0) as u64,
            now: Some(to_monotonic(n(1), wall)),
            expires: None,
            slack: None,
        },
        layout::HRTIMER_EXIT => EventKind::HrtimerExpireExit { timer: n(0) as u64 },
        layout::TIMER_START => EventKind::TimerStart { timer: n(0) as u64, expires: n(1) as u64 },
        layout::TIMER_ENTRY => {
            EventKind::TimerExpireEntry { timer: n(0) as u64, function: n(1) as u64 }
        }
        layout::TIMER_EXIT => EventKind::TimerExpireExit { timer: n(0) as u64 },
        layout::CONTENTION_BEGIN => {
            EventKind::ContentionBegin { lock: n(0) as u64, flags: n(1) as u32 }
        }
        layout::CONTENTION_END => {
            EventKind::ContentionEnd { lock: n(0) as u64, result: n(1) as i32 }
        }
        layout::PAGE_FAULT => {
            EventKind::PageFault { address: n(0) as u64, ip: n(1) as u64, user: wants.user }
        }
        layout::PAGE_ALLOC => EventKind::PageAlloc { order: n(0) as u8, page: n(1) as u64 },
        layout::RECLAIM_BEGIN => EventKind::ReclaimBegin { order: n(0) as u8 },
        layout::RECLAIM_END => EventKind::ReclaimEnd { reclaimed: n(0) as u64 },
        layout::KMALLOC_OBJECT => EventKind::Kmalloc {
            requested: n(0) as u64,
            allocated: n(1) as u64,
            object: n(2) as u64,
        },
        layout::CACHE_ALLOC_OBJECT => EventKind::CacheAlloc {
            requested: n(0) as u64,
            allocated: n(1) as u64,
            object: n(2) as u64,
        },
        layout::KFREE => EventKind::Kfree { object: n(0) as u64 },
        layout::CACHE_FREE => EventKind::CacheFree { object: n(0) as u64 },
        layout::BLOCK_ISSUE => {
            let write = text(3).contains(&b'W');
            EventKind::BlockIssue {
                device: n(0) as u32,
                sector: n(1) as u64,
                bytes: n(2) as u32,
                write,
            }
        }
        layout::BLOCK_COMPLETE => {
            let bytes = (n(2) as u32).saturating_mul(512);
            EventKind::BlockComplete {
                device: n(0) as u32,
                sector: n(1) as u64,
                bytes,
                error: n(3) as i32,
            }
        }
        layout::JOURNAL_START => {
            EventKind::JournalStart { device: n(0) as u32, transaction: n(1) as u32 as u64 }
        }
        layout::JOURNAL_END => {
            EventKind::JournalEnd { device: n(0) as u32, transaction: n(1) as u32 as u64 }
        }
        layout::MMC_START => EventKind::MmcStart { opcode: n(0) as u32, blocks: n(1) as u32 },
        layout::MMC_DONE => EventKind::MmcDone { opcode: n(0) as u32, error: n(1) as i32 },
        layout::WORK_START => EventKind::WorkStart { function: n(0) as u64 },
        layout::WORK_END => EventKind::WorkEnd { function: n(0) as u64 },
        layout::NAPI_POLL => EventKind::NapiPoll { work: n(0) as u32, budget: n(1) as u32 },
        layout::PACKET => EventKind::PacketReceived {
            device: InterfaceName::from_bytes(text(1)),
            bytes: n(0) as u32,
        },
        layout::SOCKET => EventKind::SocketReady { family: n(0) as u16, protocol: n(1) as u16 },
        layout::IDLE if n(0) as u32 == u32::MAX => EventKind::IdleExit,
        layout::IDLE => EventKind::IdleEnter { state: n(0) as u32 },
        layout::FREQUENCY => EventKind::Frequency { khz: n(0) as u32 },
        _ => return None,
    })
}

/// `prev_state` of sched_switch is not the kernel's state but a report of it
/// (`__trace_sched_switch_state`, include/trace/events/sched.h): one bit, and above all others one
/// for "preempted".
fn task_state(state: i64) -> TaskState {
    match state {
        0 => TaskState::Preempted,
        s if s & 0x100 != 0 => TaskState::Preempted,
        s if s & 0x1 != 0 => TaskState::Sleeping,
        s if s & 0x2 != 0 => TaskState::Blocked,
        s if s & (0x4 | 0x8) != 0 => TaskState::Stopped,
        s if s & (0x10 | 0x20) != 0 => TaskState::Dead,
        // An idle kernel thread.
        s if s & 0x80 != 0 => TaskState::Sleeping,
        _ => TaskState::Other,
    }
}

/// The record does not state the clock of a timer. CLOCK_REALTIME is decades ahead of a machine's
/// uptime.
fn to_monotonic(instant: i64, wall: i64) -> MonotonicNs {
    const YEAR: i64 = 365 * 86_400 * 1_000_000_000;
    MonotonicNs(if wall > 2 * YEAR && instant > wall - YEAR && instant != i64::MAX {
        instant - wall
    } else {
        instant
    })
}
