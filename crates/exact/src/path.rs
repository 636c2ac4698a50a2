//! The calls between a sample's release and its arrival, from the blocks of a window: which
//! function ran when, for whom, called by which.
//!
//! The calls come from a shadow stack per task: a call pushes, a return pops to the frame that it
//! returns into, interrupts and exceptions push until their `iret`. A jump into another function
//! replaces the function that jumped.

use super::dump::{BlockEnd, CodeBlock, Dump, DumpEntry, DumpWindow};
use super::symbols::FunctionTable;
use punctual_bundle::exact::ExactFunction;
use punctual_core::Nanos;
use std::collections::HashMap;

/// The maximum number of frames that a return may skip: they were left without a return.
const RETURN_DEPTH: usize = 64;

/// A pending interrupt enters within one block of the instruction that enables it.
const BLOCK: u64 = 16;

/// The maximum depth of a user stack. Beyond it, the innermost functions replace one another: the
/// program may leave them invisibly (longjmp, coroutines).
const USER_DEPTH: usize = 64;

/// User code, including kernel work for it; its own instructions are those of unknown functions.
pub const USER: &str = "user mode";
/// Kernel code without a symbol.
const UNKNOWN: &str = "unknown function";

/// Code that calls only to push an address: thunks of indirect jumps, and the code that fills the
/// return stack buffer at task switches (arch/x86/include/asm/nospec-branch.h).
fn is_trampoline(function: &str) -> bool {
    function.starts_with("__x86_") || function == "__switch_to_asm"
}

/// The context of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ExecutionContext {
    /// A task, by its index in the dump; `None`: the one before the first recorded switch.
    Task(Option<usize>),
    /// An interrupt or an exception.
    Interrupt,
}

/// A function during its time on the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackCall {
    pub function: String,
    pub context: ExecutionContext,
    /// The number of functions below it.
    pub depth: usize,
    /// Instructions from the release to its start.
    pub begin: u64,
    /// Instructions from the release to its end.
    pub end: u64,
    /// Its own instructions, without those of its callees.
    pub own: u64,
}

/// The execution between the release and the arrival of a sample.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Path {
    pub insns: u64,
    /// Instructions that fit in the latency but were not executed: the CPU waited, or the window is
    /// too short.
    pub without: u64,
    /// All calls, ordered by start.
    pub calls: Vec<StackCall>,
    /// The functions that ran, without gaps: each with the first instruction after it.
    pub ran: Vec<(u64, String)>,
    /// Instructions by source line and function, the most first, if lines are known. All
    /// instructions of a block count for the line of its first.
    pub lines: Vec<(String, String, u64)>,
    /// Whether interrupts were off at the release.
    pub irqs_off: bool,
    /// Entries of interrupts and task switches, in instructions from the release.
    pub events: Vec<(u64, PathPoint)>,
}

/// A point of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathPoint {
    /// An interrupt or an exception enters the kernel.
    Enter,
    /// The kernel switches to a task.
    Switch(Option<usize>),
    IrqsOff,
    IrqsOn,
    Idle,
}

struct CallFrame {
    function: String,
    /// The return address; 0 if not begun by a call.
    back: u64,
    interrupt: bool,
    user: bool,
    begin: u64,
    own: u64,
}

/// Follows the blocks of a window.
struct PathFollower<'a> {
    names: &'a FunctionTable,
    stacks: HashMap<Option<usize>, Vec<CallFrame>>,
    task: Option<usize>,
    stack: Vec<CallFrame>,
    /// Instructions since the start of the window.
    at: u64,
    release: u64,
    calls: Vec<StackCall>,
    ran: Vec<(u64, String)>,
}

impl PathFollower<'_> {
    fn function_name(&self, place: usize, block: &CodeBlock) -> String {
        let name = match block.is_user() {
            true => self.names.user.function_of_block(place).unwrap_or(USER),
            false => self.names.kernel.function_at(block.pc).unwrap_or(UNKNOWN),
        };
        name.to_owned()
    }

    fn push(&mut self, function: String, back: u64, interrupt: bool) {
        let begin = self.at;
        self.stack.push(CallFrame { function, back, interrupt, user: false, begin, own: 0 });
    }

    fn push_user(&mut self, function: String, back: u64) {
        let begin = self.at;
        self.stack.push(CallFrame { function, back, interrupt: false, user: true, begin, own: 0 });
    }

    /// The topmost frame ended, or is removed by a task switch.
    fn record_frame_end(&mut self, frame: &CallFrame, depth: usize, interrupt: bool) {
        if self.at > self.release {
            let context = if interrupt {
                ExecutionContext::Interrupt
            } else {
                ExecutionContext::Task(self.task)
            };
            self.calls.push(StackCall {
                function: frame.function.clone(),
                context,
                depth,
                begin: frame.begin.saturating_sub(self.release),
                end: self.at - self.release,
                own: frame.own,
            });
        }
    }

    /// The topmost function executes `insns` instructions after the release.
    fn count_executed(&mut self, insns: u64) {
        let Some(top) = self.stack.last_mut().filter(|_| insns > 0) else { return };
        top.own += insns;
        let before = self.ran.last().map_or(0, |(end, _)| *end);
        match self.ran.last_mut() {
            Some((end, function)) if *function == top.function => *end += insns,
            _ => self.ran.push((before + insns, top.function.clone())),
        }
    }

    fn pop(&mut self) {
        let interrupt = self.in_interrupt();
        if let Some(frame) = self.stack.pop() {
            self.record_frame_end(&frame, self.stack.len(), interrupt);
        }
    }

    fn in_interrupt(&self) -> bool {
        self.stack.iter().any(|frame| frame.interrupt)
    }

    fn pop_to(&mut self, len: usize) {
        while self.stack.len() > len {
            self.pop();
        }
    }

    /// Updates the stack for this block, after the end of the previous one.
    fn enter_block(&mut self, place: usize, block: &CodeBlock, before: Option<&CodeBlock>) {
        let name = self.function_name(place, block);
        if block.entry {
            return self.push(name, 0, !is_syscall(before));
        }
        if block.is_user() {
            return self.enter_user(name, block, before);
        }
        let end_of = |block: &CodeBlock| block.pc.wrapping_add(u64::from(block.bytes));
        match before.map(|before| (before.kind, before)) {
            // A call that only pushes an address is a jump.
            Some((BlockEnd::Call, before))
                if !before.is_user()
                    && !self.stack.last().is_some_and(|top| is_trampoline(&top.function)) =>
            {
                return self.push(name, end_of(before), false);
            }
            Some((BlockEnd::Return, before)) if !before.is_user() => self.back_to(block.pc),
            Some((BlockEnd::Iret, _)) => {
                let interrupt = self.stack.iter().rposition(|frame| frame.interrupt);
                self.pop_to(interrupt.unwrap_or(0));
            }
            Some((BlockEnd::Syscall, before)) if before.is_user() => {
                return self.push(name, 0, false);
            }
            _ => {}
        }
        match self.stack.last() {
            Some(top) if top.function == name => {}
            // A jump: it replaces the function that jumped.
            Some(top) if !top.user => {
                let (back, interrupt) = (top.back, top.interrupt);
                self.pop();
                self.push(name, back, interrupt);
            }
            _ => self.push(name, 0, false),
        }
    }

    /// The same for a user block: the kernel work for it is over.
    fn enter_user(&mut self, name: String, block: &CodeBlock, before: Option<&CodeBlock>) {
        let kernel = self.stack.iter().position(|frame| !frame.user);
        self.pop_to(kernel.unwrap_or(self.stack.len()));
        if self.stack.is_empty() {
            self.push_user(USER.to_owned(), 0);
        }
        let deep = self.stack.len() > USER_DEPTH;
        // Consecutive unknown code has a single frame.
        let unknown = self.stack.last().is_some_and(|top| top.function == USER);
        let mut back = 0;
        match before.filter(|before| before.is_user()) {
            Some(before)
                if before.kind == BlockEnd::Call && !deep && !(unknown && name == USER) =>
            {
                let back = before.pc.wrapping_add(u64::from(before.bytes));
                return self.push_user(name, back);
            }
            Some(before) if before.kind == BlockEnd::Return => self.back_to(block.pc),
            _ => {}
        }
        if self.stack.last().is_some_and(|top| top.function == name) {
            return;
        }
        if self.stack.len() > 1 {
            back = self.stack.last().map_or(0, |top| top.back);
            self.pop();
        }
        // Unknown code counts as the program's own.
        if self.stack.last().is_none_or(|top| top.function != name) {
            self.push_user(name, back);
        }
    }

    fn back_to(&mut self, pc: u64) {
        let deepest = self.stack.len().saturating_sub(RETURN_DEPTH);
        let frames = self.stack[deepest..].iter();
        // None: it returned to an unknown caller, as thunks do that jump so.
        if let Some(place) = frames.clone().rposition(|frame| frame.back == pc) {
            self.pop_to(deepest + place);
        }
    }

    fn switch_task(&mut self, task: Option<usize>) {
        // For the task switched away, the call continues when the task returns.
        let frames = std::mem::take(&mut self.stack);
        for (depth, frame) in frames.iter().enumerate().rev() {
            let interrupt = frames[..=depth].iter().any(|frame| frame.interrupt);
            self.record_frame_end(frame, depth, interrupt);
        }
        self.stacks.insert(self.task, frames);
        self.task = task;
        self.stack = self.stacks.remove(&task).unwrap_or_default();
        let at = self.at;
        self.stack.iter_mut().for_each(|frame| (frame.begin, frame.own) = (at, 0));
    }
}

impl Path {
    /// The path of a window. `insn` is the time per instruction.
    pub(crate) fn from_window(
        dump: &Dump,
        window: &DumpWindow,
        names: &FunctionTable,
        insn: Nanos,
    ) -> Path {
        let (arrival, all) = find_arrival(dump, window);
        let wanted = window.woke.saturating_sub(window.due).max(0) as u64 / insn.0.max(1) as u64;
        let (release, without) = find_release(dump, window, arrival, wanted);
        debug_assert!(arrival <= all);
        Path { without, ..Path::from_entries(dump, &window.entries, names, release, arrival) }
    }

    /// The path between two instructions of the entries.
    pub(crate) fn from_entries(
        dump: &Dump,
        entries: &[DumpEntry],
        names: &FunctionTable,
        release: u64,
        arrival: u64,
    ) -> Path {
        let mut follower = PathFollower {
            names,
            stacks: HashMap::new(),
            task: None,
            stack: Vec::new(),
            at: 0,
            release,
            calls: Vec::new(),
            ran: Vec::new(),
        };
        let mut path = Path { insns: arrival - release, ..Path::default() };
        let mut before: Option<&CodeBlock> = None;
        let mut lines: HashMap<(&str, String), u64> = HashMap::new();
        for entry in entries {
            if follower.at >= arrival {
                break;
            }
            let event = match entry {
                DumpEntry::Block(place) => {
                    let block = &dump.blocks[*place];
                    follower.enter_block(*place, block, before);
                    let event = (block.entry && !is_syscall(before)).then_some(PathPoint::Enter);
                    let end = follower.at + u64::from(block.insns);
                    // Only the part of a block between release and arrival counts.
                    let counted_insns = end.min(arrival).saturating_sub(follower.at.max(release));
                    follower.count_executed(counted_insns);
                    let line = names.lines.get(place).filter(|_| counted_insns > 0);
                    if let (Some(line), Some(top)) = (line, follower.stack.last()) {
                        *lines.entry((line, top.function.clone())).or_default() += counted_insns;
                    }
                    let at = follower.at;
                    follower.at = end;
                    before = Some(block);
                    event.map(|event| (at, event))
                }
                DumpEntry::Switch(task) => {
                    follower.switch_task(*task);
                    Some((follower.at, PathPoint::Switch(*task)))
                }
                DumpEntry::IrqsOff => Some((follower.at, PathPoint::IrqsOff)),
                DumpEntry::IrqsOn => Some((follower.at, PathPoint::IrqsOn)),
                DumpEntry::Idle => Some((follower.at, PathPoint::Idle)),
            };
            if follower.at <= release {
                match entry {
                    DumpEntry::IrqsOff => path.irqs_off = true,
                    DumpEntry::IrqsOn => path.irqs_off = false,
                    _ => {}
                }
            }
            let shown_event = event.filter(|(at, _)| *at >= release);
            path.events.extend(shown_event.map(|(at, event)| (at - release, event)));
        }
        follower.at = arrival;
        follower.pop_to(0);
        path.calls = follower.calls;
        path.ran = follower.ran;
        path.calls.sort_by_key(|call| (call.begin, call.depth));
        let lines =
            lines.into_iter().map(|((line, function), own)| (line.to_owned(), function, own));
        path.lines = lines.collect();
        path.lines.sort_by(|a, b| (b.2, &a.0, &a.1).cmp(&(a.2, &b.0, &b.1)));
        path
    }

    /// Whether interrupts were disabled just before this instruction, at which one enters.
    pub(crate) fn irqs_off_before(&self, at: u64) -> bool {
        let change = self.events.iter().rev().find_map(|(when, event)| match event {
            PathPoint::IrqsOff if *when < at => Some(true),
            PathPoint::IrqsOn if *when <= at => Some(false),
            _ => None,
        });
        // Enabled for at most an instruction: it was pending.
        match change {
            Some(false) => self.off_until(at),
            Some(off) => off,
            None => self.irqs_off,
        }
    }

    /// Whether interrupts were enabled only at this instruction, or a block before it.
    fn off_until(&self, at: u64) -> bool {
        let on = self
            .events
            .iter()
            .rev()
            .find(|(when, event)| *event == PathPoint::IrqsOn && *when <= at);
        on.is_some_and(|(when, _)| at - when <= BLOCK)
    }

    /// The functions on the stack at the release, outermost first.
    pub(crate) fn release_stack(&self) -> Vec<&str> {
        let open = self.calls.iter().take_while(|call| call.begin == 0).enumerate();
        open.take_while(|(place, call)| call.depth == *place)
            .map(|(_, call)| call.function.as_str())
            .collect()
    }

    /// The functions that ran between two instructions, with their instructions, the most first.
    pub(crate) fn ran_between(&self, from: u64, to: u64) -> Vec<(String, u64)> {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        let mut begin = 0;
        for (end, function) in &self.ran {
            let inside = (*end).min(to).saturating_sub(begin.max(from));
            if inside > 0 {
                *sums.entry(function).or_default() += inside;
            }
            begin = *end;
        }
        let mut sums: Vec<(String, u64)> =
            sums.into_iter().map(|(name, insns)| (name.to_owned(), insns)).collect();
        sums.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        sums
    }

    /// Instructions by function, own and total, the most own ones first.
    pub(crate) fn function_totals(&self) -> Vec<ExactFunction> {
        let mut functions: HashMap<&str, ExactFunction> = HashMap::new();
        // A recursive function counts once in its own total.
        let mut open: Vec<&StackCall> = Vec::new();
        for call in &self.calls {
            open.retain(|other| other.end > call.begin && other.depth < call.depth);
            let inside = open.iter().any(|other| other.function == call.function);
            let function = functions.entry(&call.function).or_insert_with(|| ExactFunction {
                name: call.function.clone(),
                ..ExactFunction::default()
            });
            function.own += call.own;
            function.calls += 1;
            if !inside {
                function.total += call.end - call.begin;
            }
            open.push(call);
        }
        let mut functions: Vec<ExactFunction> = functions.into_values().collect();
        functions.sort_by(|a, b| (b.own, &a.name).cmp(&(a.own, &b.name)));
        functions
    }
}

/// Whether the next kernel entry is a system call: arm64 has the same vectors for all.
fn is_syscall(before: Option<&CodeBlock>) -> bool {
    before.is_some_and(|before| before.kind == BlockEnd::Syscall)
}

/// The position in a window at which the thread read the clock, in instructions: the last time in
/// user mode (the vDSO reads the processor's counter there); and the instructions of the whole
/// window.
fn find_arrival(dump: &Dump, window: &DumpWindow) -> (u64, u64) {
    let (mut at, mut arrival) = (0, None);
    for entry in &window.entries {
        let DumpEntry::Block(place) = entry else { continue };
        let block = &dump.blocks[*place];
        if block.is_user() && block.clock > 0 {
            arrival = Some(at + u64::from(block.clock));
        }
        at += u64::from(block.insns);
    }
    (arrival.unwrap_or(at), at)
}

/// The position of the release, and the number of missing instructions of the latency. A waiting
/// CPU executes none and wakes at a release: anything before the wait is not of this sample.
fn find_release(dump: &Dump, window: &DumpWindow, arrival: u64, wanted: u64) -> (u64, u64) {
    let earliest = arrival.saturating_sub(wanted);
    let (mut at, mut release) = (0, earliest);
    for entry in &window.entries {
        match entry {
            DumpEntry::Block(place) => at += u64::from(dump.blocks[*place].insns),
            DumpEntry::Idle if at > earliest && at < arrival && release == earliest => release = at,
            _ => {}
        }
    }
    (release, wanted.saturating_sub(arrival - release))
}
