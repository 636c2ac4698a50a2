//! One end of a pair: its name, and the events it matches.

use super::PairKey;
use crate::gaps::{Gaps, LossScope};
use crate::intervals::IntervalEnd;
use punctual_core::event::{FunctionId, Names, PointId, PointKind};
use punctual_core::words::{format_suggestion, nearest_word};
use punctual_core::{Event, EventKind, Tid};
use std::collections::HashSet;

/// One end of a pair, looked up in the names of a recording.
///
/// `NAME`, `NAME:begin`, `NAME:end` for test points; `FUNCTION:entry`, `FUNCTION:exit` for probed
/// functions; the tracepoint's name for kernel events, with a detail: `sched_waking:cyclictest`,
/// `irq_handler_entry:virtio0`, `sys_enter:futex`. An ambiguous name is resolved by a prefix
/// `point:`, `function:` or `kernel:`; without one, test points precede functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoint {
    pub name: String,
    what: Selector,
}

#[derive(Clone, PartialEq, Debug)]
enum Selector {
    /// A test point. One name may have several numbers, one per program that registered it.
    Point {
        points: Vec<PointId>,
        kind: Option<PointKind>,
    },
    Entry(Vec<FunctionId>),
    Exit(Vec<FunctionId>),
    /// A kernel event by its name; with a detail, only those with one of these threads or values.
    Kernel {
        kind: &'static EndpointKind,
        about: Option<HashSet<u64>>,
    },
}

/// A kernel event that can be the end of a pair.
#[derive(PartialEq, Debug)]
struct EndpointKind {
    name: &'static str,
    /// Another common name of it.
    alias: &'static str,
    /// The names that a detail is looked up in.
    about: ValueMeaning,
    by: PairKey,
}

/// The meaning of a kernel event's value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum ValueMeaning {
    Task,
    Irq,
    Vector,
    Softirq,
    Syscall,
    Device,
    IdleState,
    Symbol,
    Number,
    Nothing,
}

const fn endpoint_kind(
    name: &'static str,
    alias: &'static str,
    about: ValueMeaning,
    by: PairKey,
) -> EndpointKind {
    EndpointKind { name, alias, about, by }
}

const KINDS: &[EndpointKind] = &[
    endpoint_kind("sched_switch", "switch_in", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_switch_out", "switch_out", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_waking", "waking", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_wakeup", "wakeup", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_migrate_task", "migrate", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_process_fork", "fork", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_process_exec", "exec", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_process_exit", "exit", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("sched_pi_setprio", "pi_setprio", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("signal_generate", "signal", ValueMeaning::Task, PairKey::Thread),
    endpoint_kind("irq_handler_entry", "irq_entry", ValueMeaning::Irq, PairKey::Cpu),
    endpoint_kind("irq_handler_exit", "irq_exit", ValueMeaning::Irq, PairKey::Cpu),
    endpoint_kind("vector_entry", "vector_entry", ValueMeaning::Vector, PairKey::Cpu),
    endpoint_kind("vector_exit", "vector_exit", ValueMeaning::Vector, PairKey::Cpu),
    endpoint_kind("softirq_raise", "softirq_raise", ValueMeaning::Softirq, PairKey::Cpu),
    endpoint_kind("softirq_entry", "softirq_entry", ValueMeaning::Softirq, PairKey::Cpu),
    endpoint_kind("softirq_exit", "softirq_exit", ValueMeaning::Softirq, PairKey::Cpu),
    endpoint_kind("ipi_send_cpu", "ipi_send", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("hrtimer_start", "hrtimer_start", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("hrtimer_cancel", "hrtimer_cancel", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("hrtimer_expire_entry", "hrtimer_expire", ValueMeaning::Number, PairKey::Value),
    endpoint_kind(
        "hrtimer_expire_exit",
        "hrtimer_expire_exit",
        ValueMeaning::Number,
        PairKey::Value,
    ),
    endpoint_kind("timer_start", "timer_start", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("timer_expire_entry", "timer_expire", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("timer_expire_exit", "timer_expire_exit", ValueMeaning::Number, PairKey::Value),
    endpoint_kind("sys_enter", "syscall_enter", ValueMeaning::Syscall, PairKey::Thread),
    endpoint_kind("sys_exit", "syscall_exit", ValueMeaning::Syscall, PairKey::Thread),
    endpoint_kind("futex_enter", "futex_enter", ValueMeaning::Number, PairKey::Thread),
    endpoint_kind("futex_exit", "futex_exit", ValueMeaning::Nothing, PairKey::Thread),
    endpoint_kind("contention_begin", "contention_begin", ValueMeaning::Number, PairKey::Thread),
    endpoint_kind("contention_end", "contention_end", ValueMeaning::Number, PairKey::Thread),
    endpoint_kind("page_fault", "page_fault", ValueMeaning::Nothing, PairKey::Thread),
    endpoint_kind("mm_page_alloc", "page_alloc", ValueMeaning::Nothing, PairKey::Thread),
    endpoint_kind(
        "mm_vmscan_direct_reclaim_begin",
        "reclaim_begin",
        ValueMeaning::Nothing,
        PairKey::Thread,
    ),
    endpoint_kind(
        "mm_vmscan_direct_reclaim_end",
        "reclaim_end",
        ValueMeaning::Nothing,
        PairKey::Thread,
    ),
    endpoint_kind("kmalloc", "kmalloc", ValueMeaning::Nothing, PairKey::Thread),
    endpoint_kind("kmem_cache_alloc", "kmem_cache_alloc", ValueMeaning::Nothing, PairKey::Thread),
    endpoint_kind("block_rq_issue", "block_issue", ValueMeaning::Device, PairKey::Value),
    endpoint_kind("block_rq_complete", "block_complete", ValueMeaning::Device, PairKey::Value),
    endpoint_kind("jbd2_start_commit", "journal_start", ValueMeaning::Device, PairKey::Value),
    endpoint_kind("jbd2_end_commit", "journal_end", ValueMeaning::Device, PairKey::Value),
    endpoint_kind("mmc_request_start", "mmc_start", ValueMeaning::Nothing, PairKey::Global),
    endpoint_kind("mmc_request_done", "mmc_done", ValueMeaning::Nothing, PairKey::Global),
    endpoint_kind("workqueue_execute_start", "work_start", ValueMeaning::Symbol, PairKey::Thread),
    endpoint_kind("workqueue_execute_end", "work_end", ValueMeaning::Symbol, PairKey::Thread),
    endpoint_kind("napi_poll", "napi_poll", ValueMeaning::Nothing, PairKey::Cpu),
    endpoint_kind("netif_receive_skb", "packet_received", ValueMeaning::Nothing, PairKey::Cpu),
    endpoint_kind("sk_data_ready", "socket_ready", ValueMeaning::Nothing, PairKey::Cpu),
    endpoint_kind("cpu_idle", "idle_enter", ValueMeaning::IdleState, PairKey::Cpu),
    endpoint_kind("cpu_idle_exit", "idle_exit", ValueMeaning::Nothing, PairKey::Cpu),
    endpoint_kind("cpu_frequency", "frequency", ValueMeaning::Nothing, PairKey::Cpu),
];

/// Why a text is not an end of a pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Unknown name.
    #[error(
        "`{name}` is not a test point, probed function or kernel event of this recording{}",
        format_suggestion(near.as_ref())
    )]
    Unknown {
        name: String,
        /// The most similar existing name.
        near: Option<String>,
    },
    /// A function without one of its ends.
    #[error(
        "`{0}` is a function: write `{0}:entry` or `{0}:exit`, or the function alone to time its \
         calls"
    )]
    WhichEnd(String),
    /// Unknown detail of a kernel event.
    #[error("`{name}` has no `{detail}` in this recording")]
    UnknownDetail { name: String, detail: String },
}

impl Endpoint {
    /// Finds the end with this name in the recording.
    pub fn from_text(text: &str, names: &Names) -> Result<Endpoint, EndpointError> {
        let text = text.trim();
        let (kinds, bare) = match text.split_once(':') {
            Some(("point", bare)) => ([true, false, false], bare),
            Some(("function", bare)) => ([false, true, false], bare),
            Some(("kernel", bare)) => ([false, false, true], bare),
            _ => ([true; 3], text),
        };
        let end = |what| Ok(Endpoint { name: text.to_owned(), what });
        if kinds[0]
            && let Some(what) = find_point(bare, names)
        {
            return end(what);
        }
        if kinds[1]
            && let Some(what) = find_function(bare, names)
        {
            return end(what?);
        }
        if kinds[2]
            && let Some(what) = find_kernel_event(bare, names)
        {
            return end(what?);
        }
        Err(EndpointError::Unknown { name: clip_input(text), near: nearest_name(bare, names) })
    }

    /// A test point by its numbers.
    pub(super) fn of_point(name: String, points: Vec<PointId>, kind: PointKind) -> Endpoint {
        Endpoint { name, what: Selector::Point { points, kind: Some(kind) } }
    }

    /// Whether this event is that end; for functions only the exit, as calls are recorded at their
    /// end.
    pub fn match_end(&self, event: &Event) -> Option<IntervalEnd> {
        let end_of = |tid, value| Some(IntervalEnd { at: event.at, tid, cpu: event.cpu, value });
        match (&self.what, event.what) {
            (
                Selector::Point { points, kind },
                EventKind::Point { point, kind: found, count, values },
            ) if points.contains(&point) && kind.is_none_or(|kind| kind == found) => {
                end_of(event.tid, (count > 0).then_some(values[0]))
            }
            (Selector::Exit(functions), EventKind::Call { function, argument, .. })
                if functions.contains(&function) =>
            {
                end_of(event.tid, argument.map(|argument| argument as i64))
            }
            (Selector::Kernel { kind, about }, what) if is_kind(kind, &what) => {
                let (tid, value) = event_subject(kind, event);
                let key = if kind.about == ValueMeaning::Task {
                    Some(u64::from(tid.0))
                } else {
                    detail_of(&what)
                };
                let meant =
                    about.as_ref().is_none_or(|about| key.is_some_and(|key| about.contains(&key)));
                if meant { end_of(tid, value) } else { None }
            }
            _ => None,
        }
    }

    /// The entry of a call, which is recorded at its end.
    pub(crate) fn match_entry(&self, event: &Event) -> Option<IntervalEnd> {
        match (&self.what, event.what) {
            (Selector::Entry(functions), EventKind::Call { function, began, argument, .. })
                if functions.contains(&function) =>
            {
                let value = argument.map(|argument| argument as i64);
                Some(IntervalEnd { at: began, tid: event.tid, cpu: event.cpu, value })
            }
            _ => None,
        }
    }

    /// Whether it is an entry, which is recorded at the end of its call.
    pub fn is_entry(&self) -> bool {
        matches!(self.what, Selector::Entry(_))
    }

    /// The default key for matching.
    pub(super) fn natural_key(&self) -> PairKey {
        match &self.what {
            Selector::Kernel { kind, .. } => kind.by,
            _ => PairKey::Thread,
        }
    }

    /// Whether `self` and `to` are the two ends of a scope, or of a function's calls.
    pub(super) fn is_begin_of(&self, to: &Endpoint) -> bool {
        match (&self.what, &to.what) {
            (
                Selector::Point { points: a, kind: Some(PointKind::Begin) },
                Selector::Point { points: b, kind },
            ) => a == b && *kind == Some(PointKind::End),
            (Selector::Entry(a), Selector::Exit(b)) => a == b,
            _ => false,
        }
    }

    /// The test points that it matches.
    pub(super) fn matched_points(&self) -> &[PointId] {
        match &self.what {
            Selector::Point { points, .. } => points,
            _ => &[],
        }
    }

    /// Whether any of its events may be missing.
    pub(super) fn may_be_missing(&self, gaps: &Gaps) -> bool {
        if matches!(self.what, Selector::Point { .. }) {
            gaps.any_of_points()
        } else {
            gaps.any_of_kernel()
        }
    }

    /// The source whose losses may hide one of its events.
    pub(super) fn loss_scope(&self, by: PairKey, seen: IntervalEnd) -> LossScope {
        match (&self.what, by) {
            (Selector::Point { .. }, _) if seen.cpu != Event::NO_CPU => LossScope::AnyCpu,
            (Selector::Point { .. }, PairKey::Thread) => LossScope::Thread(seen.tid),
            (Selector::Point { .. }, _) => LossScope::AnyThread,
            (_, PairKey::Cpu) => LossScope::Cpu(seen.cpu),
            _ => LossScope::AnyCpu,
        }
    }
}

pub(super) fn points_named(name: &str, names: &Names) -> Vec<PointId> {
    let named_points = names.points.iter().enumerate().filter(|(_, point)| *point == name);
    named_points.filter_map(|(place, _)| u32::try_from(place).ok()).map(PointId).collect()
}

/// The numbers of all functions of this name; without any, of all with this name before their
/// parameters: `step` also matches `step(int)`, as when probing functions.
pub(super) fn functions_named(name: &str, names: &Names) -> Vec<FunctionId> {
    let functions_where = |is: fn(&str, &str) -> bool| -> Vec<FunctionId> {
        let found_functions =
            names.functions.iter().enumerate().filter(|(_, function)| is(&function.name, name));
        found_functions.filter_map(|(place, _)| u32::try_from(place).ok()).map(FunctionId).collect()
    };
    let without_parameters =
        |full: &str, name: &str| full.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
    let exact = functions_where(|full, name| full == name);
    if exact.is_empty() && !name.is_empty() { functions_where(without_parameters) } else { exact }
}

fn find_point(text: &str, names: &Names) -> Option<Selector> {
    let found = |name: &str, kind| {
        let points = points_named(name, names);
        (!points.is_empty()).then_some(Selector::Point { points, kind })
    };
    let suffixed =
        |suffix: &str, kind| text.strip_suffix(suffix).and_then(|name| found(name, Some(kind)));
    found(text, None)
        .or_else(|| suffixed(":begin", PointKind::Begin))
        .or_else(|| suffixed(":end", PointKind::End))
}

fn find_function(text: &str, names: &Names) -> Option<Result<Selector, EndpointError>> {
    let found =
        |name: &str| Some(functions_named(name, names)).filter(|functions| !functions.is_empty());
    if let Some(functions) = text.strip_suffix(":entry").and_then(found) {
        return Some(Ok(Selector::Entry(functions)));
    }
    if let Some(functions) = text.strip_suffix(":exit").and_then(found) {
        return Some(Ok(Selector::Exit(functions)));
    }
    found(text).map(|_| Err(EndpointError::WhichEnd(clip_input(text))))
}

fn find_kernel_event(text: &str, names: &Names) -> Option<Result<Selector, EndpointError>> {
    let (name, detail) =
        text.split_once(':').map_or((text, None), |(name, detail)| (name, Some(detail)));
    let kind = KINDS.iter().find(|kind| kind.name == name || kind.alias == name)?;
    let Some(detail) = detail else { return Some(Ok(Selector::Kernel { kind, about: None })) };
    let about = look_up(kind.about, detail, names);
    Some(if about.is_empty() {
        Err(EndpointError::UnknownDetail { name: name.to_owned(), detail: clip_input(detail) })
    } else {
        Ok(Selector::Kernel { kind, about: Some(about) })
    })
}

/// The numbers that a detail matches. A number matches itself and the threads of the process of
/// that number.
fn look_up(about: ValueMeaning, detail: &str, names: &Names) -> HashSet<u64> {
    let number = detail
        .strip_prefix("0x")
        .map_or_else(|| detail.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    let mut all_numbers: HashSet<u64> =
        number.filter(|_| about != ValueMeaning::Nothing).into_iter().collect();
    match about {
        ValueMeaning::Task => all_numbers.extend(
            names
                .tasks
                .iter()
                .filter(|(_, task)| task.comm == detail || Some(u64::from(task.process)) == number)
                .map(|(tid, _)| u64::from(tid.0)),
        ),
        // Handlers are registered under names like `virtio0-req.0`; several are separated by
        // commas.
        ValueMeaning::Irq => all_numbers.extend(
            names.irqs.iter().filter(|(_, name)| name.contains(detail)).map(|(n, _)| u64::from(*n)),
        ),
        ValueMeaning::Vector => all_numbers.extend(matching_numbers(&names.vectors, detail)),
        ValueMeaning::Softirq => all_numbers.extend(matching_numbers(&names.softirqs, detail)),
        ValueMeaning::Syscall => all_numbers.extend(matching_numbers(&names.syscalls, detail)),
        ValueMeaning::Device => all_numbers.extend(matching_numbers(&names.devices, detail)),
        ValueMeaning::IdleState => all_numbers.extend(matching_numbers(&names.idle_states, detail)),
        ValueMeaning::Symbol => all_numbers.extend(matching_numbers(&names.symbols, detail)),
        ValueMeaning::Number | ValueMeaning::Nothing => {}
    }
    all_numbers
}

fn matching_numbers<N: Copy + Into<u64>>(
    table: &std::collections::BTreeMap<N, String>,
    detail: &str,
) -> impl Iterator<Item = u64> {
    table
        .iter()
        .filter(move |(_, name)| name.eq_ignore_ascii_case(detail))
        .map(|(number, _)| (*number).into())
}

fn is_kind(kind: &EndpointKind, what: &EventKind) -> bool {
    match what {
        EventKind::Switch { .. } => kind.name == "sched_switch" || kind.name == "sched_switch_out",
        EventKind::Point { .. } | EventKind::Call { .. } => false,
        what => what.event_name() == kind.name,
    }
}

/// The thread and the value of a kernel event.
fn event_subject(kind: &EndpointKind, event: &Event) -> (Tid, Option<i64>) {
    match event.what {
        EventKind::Switch { next, .. } if kind.name == "sched_switch" => {
            (next, Some(next.0.into()))
        }
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. }
        | EventKind::PiSetPrio { task, .. }
        | EventKind::Signal { task, .. }
        | EventKind::Fork { child: task } => (task, Some(task.0.into())),
        what => (
            event.tid,
            value_of(&what).or((kind.about == ValueMeaning::Task).then_some(event.tid.0.into())),
        ),
    }
}

/// The value for matching events of one kind.
fn value_of(what: &EventKind) -> Option<i64> {
    let value = match *what {
        EventKind::IrqEntry { irq } | EventKind::IrqExit { irq, .. } => irq.into(),
        EventKind::VectorEntry { vector }
        | EventKind::VectorExit { vector }
        | EventKind::SoftirqRaise { vector }
        | EventKind::SoftirqEntry { vector }
        | EventKind::SoftirqExit { vector } => vector.into(),
        EventKind::IpiSend { target } => target.into(),
        EventKind::HrtimerStart { timer, .. }
        | EventKind::HrtimerCancel { timer }
        | EventKind::HrtimerExpireEntry { timer, .. }
        | EventKind::HrtimerExpireExit { timer }
        | EventKind::TimerStart { timer, .. }
        | EventKind::TimerExpireEntry { timer, .. }
        | EventKind::TimerExpireExit { timer } => timer,
        EventKind::SyscallEnter { number, .. } | EventKind::SyscallExit { number, .. } => {
            number.into()
        }
        EventKind::FutexEnter { address, .. } => address,
        EventKind::ContentionBegin { lock, .. } | EventKind::ContentionEnd { lock, .. } => lock,
        // A sector with its device in the upper bits, so that two disks are unlikely to be mixed
        // up.
        EventKind::BlockIssue { device, sector, .. }
        | EventKind::BlockComplete { device, sector, .. } => sector ^ u64::from(device) << 44,
        EventKind::JournalStart { device, transaction }
        | EventKind::JournalEnd { device, transaction } => transaction ^ u64::from(device) << 44,
        EventKind::WorkStart { function } | EventKind::WorkEnd { function } => function,
        EventKind::IdleEnter { state } => state.into(),
        _ => return None,
    };
    Some(value as i64)
}

/// The value that a detail is compared with.
fn detail_of(what: &EventKind) -> Option<u64> {
    match *what {
        EventKind::BlockIssue { device, .. }
        | EventKind::BlockComplete { device, .. }
        | EventKind::JournalStart { device, .. }
        | EventKind::JournalEnd { device, .. } => Some(device.into()),
        ref what => value_of(what).map(|value| value as u64),
    }
}

/// Shortens hostile input before it is quoted in an error.
pub(super) fn clip_input(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn nearest_name(text: &str, names: &Names) -> Option<String> {
    let points = names.points.iter().map(String::as_str);
    let functions = names.functions.iter().map(|function| function.name.as_str());
    let kernel = KINDS.iter().flat_map(|kind| [kind.name, kind.alias]);
    nearest_word(text.split(':').next().unwrap_or(text), points.chain(functions).chain(kernel))
        .map(clip_input)
}
