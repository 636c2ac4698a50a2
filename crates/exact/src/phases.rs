//! The path of a sample from its release to its arrival, in parts with one reason each: the parts
//! add up to the path.

use super::path::{ExecutionContext, Path, PathPoint, StackCall};

/// A part of the path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPart {
    pub kind: PartKind,
    /// Instructions from the release to its start.
    pub begin: u64,
    /// Instructions from the release to its end.
    pub end: u64,
    /// The functions within it, with their own instructions, the most first.
    pub functions: Vec<(String, u64)>,
    /// The calls around the longest of them, outermost first.
    pub stack: Vec<String>,
}

/// The kind of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum PartKind {
    /// The timer has not raised its interrupt yet: it was programmed for a later time.
    Timer,
    /// The interrupt is pending: interrupts are disabled.
    IrqsDisabled,
    /// The interrupt's handler runs, and wakes the thread.
    Interrupt,
    /// The thread is ready, but the scheduler is not called yet: the interrupted code cannot be
    /// preempted, or more interrupts and softirqs run.
    NotPreempted,
    Schedule,
    /// The thread runs in the kernel, on its way to user mode.
    Return,
}

impl PartKind {
    pub fn as_str(self) -> &'static str {
        match self {
            PartKind::Timer => "timer",
            PartKind::IrqsDisabled => "irqs-disabled",
            PartKind::Interrupt => "interrupt",
            PartKind::NotPreempted => "not-preempted",
            PartKind::Schedule => "schedule",
            PartKind::Return => "return",
        }
    }
}

/// The functions that mark a task for rescheduling (kernel/sched/core.c: resched_curr, and
/// __resched_curr since 6.13).
const RESCHED: [&str; 3] = ["resched_curr", "__resched_curr", "resched_curr_lazy"];
/// The maximum number of functions named for a part: more than any kernel has so far.
const FUNCTIONS: usize = 1_000;

/// The parts of a path that ends with this task.
pub(crate) fn split_path(path: &Path, task: Option<usize>) -> Vec<PathPart> {
    let enter = path.events.iter().find(|(_, event)| *event == PathPoint::Enter).map(|(at, _)| *at);
    let switch = path
        .events
        .iter()
        .rev()
        .find(|(_, event)| matches!(event, PathPoint::Switch(to) if *to == task && task.is_some()))
        .map(|(at, _)| *at);
    let first = |names: &[&str], from: u64, to: u64| {
        let mut calls = path.calls.iter();
        calls
            .find(|call| {
                call.begin >= from && call.begin < to && names.contains(&call.function.as_str())
            })
            .map(|call| call.begin)
    };
    let last_schedule = |from: u64, to: u64| {
        let calls = path.calls.iter().rev();
        calls
            .clone()
            .find(|call| call.function == "__schedule" && call.begin >= from && call.begin < to)
            .map(|call| call.begin)
    };
    let entered = enter.unwrap_or(0).min(path.insns);
    let before =
        if path.irqs_off_before(entered) { PartKind::IrqsDisabled } else { PartKind::Timer };
    let mut ends = vec![(before, entered)];
    if let Some(switch) = switch.filter(|at| *at >= entered) {
        let schedule = last_schedule(entered, switch).unwrap_or(switch);
        // The idle task needs no mark: it polls by itself.
        let ready = first(&RESCHED, entered, schedule).unwrap_or(schedule);
        ends.push((PartKind::Interrupt, ready));
        ends.push((PartKind::NotPreempted, schedule));
        ends.push((PartKind::Schedule, switch));
    }
    ends.push((PartKind::Return, path.insns));
    let mut begin = 0;
    let mut parts = Vec::new();
    for (kind, end) in ends {
        if end > begin {
            parts.push(measure_part(path, kind, begin, end));
            begin = end;
        }
    }
    parts
}

/// The caller of handlers of devices (kernel/irq/handle.c).
const DEVICE: &str = "__handle_irq_event_percpu";

/// The instructions of an interrupt's response, which add up to the path: until it is pending
/// (controller, timer), while it is masked, from its acceptance to its handler, and from there to
/// the thread. None if no interrupt or no handler was seen.
pub(crate) fn response_instructions(path: &Path, parts: &[PathPart]) -> Option<[u64; 4]> {
    let before =
        |kind| parts.iter().find(|part| part.kind == kind).map_or(0, |of| of.end - of.begin);
    let (pending, masked) = (before(PartKind::Timer), before(PartKind::IrqsDisabled));
    let accepted = pending + masked;
    let of_interrupt =
        |call: &&StackCall| call.context == ExecutionContext::Interrupt && call.begin >= accepted;
    let mut calls = path.calls.iter().filter(of_interrupt).skip_while(|call| {
        !matches!(call.function.as_str(), "hrtimer_interrupt" | "timer_interrupt" | DEVICE)
    });
    let first = calls.next()?;
    // A device's own handler is what that calls first.
    let is_own_handler =
        |call: &&StackCall| call.depth == first.depth + 1 && !call.function.starts_with("__");
    let handler = if first.function == DEVICE { calls.find(is_own_handler)? } else { first };
    Some([pending, masked, handler.begin - accepted, path.insns.checked_sub(handler.begin)?])
}

fn measure_part(path: &Path, kind: PartKind, begin: u64, end: u64) -> PathPart {
    let mut functions = path.ran_between(begin, end);
    functions.truncate(FUNCTIONS);
    let inside = |call: &StackCall| call.end.min(end).saturating_sub(call.begin.max(begin));
    // The longest call there of the function with most instructions.
    let top_function = functions.first().map(|(name, _)| name.as_str());
    let call = path
        .calls
        .iter()
        .enumerate()
        .filter(|(_, call)| Some(call.function.as_str()) == top_function && inside(call) > 0)
        .max_by_key(|(_, call)| call.own.min(inside(call)));
    let stack = call.map_or(Vec::new(), |(place, _)| stack_of(path, place));
    PathPart { kind, begin, end, functions, stack }
}

/// The functions around a call, from the outermost to itself.
fn stack_of(path: &Path, place: usize) -> Vec<String> {
    let call = &path.calls[place];
    let around = |other: &&StackCall| {
        other.begin <= call.begin
            && other.end >= call.end
            && other.depth < call.depth
            && same_side(other.context, call.context)
    };
    let mut stack: Vec<(usize, &str)> =
        path.calls.iter().filter(around).map(|call| (call.depth, call.function.as_str())).collect();
    stack.sort();
    stack.dedup_by_key(|(depth, _)| *depth);
    stack
        .into_iter()
        .map(|(_, name)| name)
        .chain([call.function.as_str()])
        .map(str::to_owned)
        .collect()
}

/// The interrupted task is below the interrupt on the stack.
fn same_side(below: ExecutionContext, above: ExecutionContext) -> bool {
    below == above || above == ExecutionContext::Interrupt
}
