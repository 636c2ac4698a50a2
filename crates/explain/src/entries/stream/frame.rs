//! The nesting on a CPU: an interrupt within a softirq within a task.

use super::TaskProperties;
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{EntryCounts, Originator, SOFTIRQS, Served, Via};
use punctual_core::{Event, MonotonicNs, Nanos};

/// The levels, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryLevel {
    Task,
    Soft,
    Hard,
}

/// The originator of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    pub(super) at: MonotonicNs,
    /// `None`: an interrupt of unknown originator.
    pub(super) tid: Option<u32>,
    pub(super) cpu: u32,
    pub(super) via: Option<Via>,
}

impl Origin {
    pub(super) fn into_originator(self, tasks: &dyn TaskProperties) -> Originator {
        let name = match self.tid {
            None => TaskComm::default(),
            Some(0) => idle_name(self.cpu),
            Some(tid) => tasks.task_name(tid),
        };
        Originator { at: self.at, tid: self.tid.unwrap_or(0), name, cpu: self.cpu, stack: None }
    }
}

/// `swapper/3`.
fn idle_name(cpu: u32) -> TaskComm {
    let (mut name, text) = (TaskComm::default(), format!("swapper/{cpu}"));
    let length = text.len().min(name.0.len());
    name.0[..length].copy_from_slice(&text.as_bytes()[..length]);
    name
}

pub(super) struct EntryFrame {
    pub(super) begin: MonotonicNs,
    /// The time of nested frames.
    pub(super) inner: Nanos,
    pub(super) served: Served,
    /// The served thread, for a task.
    pub(super) tid: u32,
    pub(super) over: u32,
    pub(super) nested: bool,
    pub(super) away: bool,
    /// The first function executed for an originator; 0: none.
    pub(super) function: u64,
    /// The function being executed.
    pub(super) running: u64,
    pub(super) since: MonotonicNs,
    pub(super) inner_then: Nanos,
    pub(super) functions: u32,
    /// The originator of `function`.
    pub(super) origin: Option<Origin>,
    /// The originator of `running`, if that is another function.
    pub(super) next: Option<Origin>,
}

impl EntryFrame {
    pub(super) fn new(
        event: &Event,
        begin: MonotonicNs,
        served: Served,
        origin: Option<Origin>,
    ) -> EntryFrame {
        EntryFrame {
            begin,
            inner: Nanos::ZERO,
            served,
            tid: 0,
            over: event.tid.0,
            nested: false,
            away: false,
            function: 0,
            running: 0,
            since: begin,
            inner_then: Nanos::ZERO,
            functions: 0,
            origin,
            next: None,
        }
    }

    /// The originator of the current function.
    pub(super) fn current_origin(&self) -> Option<Origin> {
        if self.running != 0 && self.functions > 1 { self.next } else { self.origin }
    }

    /// The path of an entry caused from here.
    pub(super) fn caused_via(&self) -> Option<Via> {
        Some(match self.served {
            Served::Irq(irq) => Via::Irq(irq),
            Served::Vector(_) if self.running != 0 => Via::Vector(self.running),
            Served::Vector(vector) => Via::Vector(vector as u64),
            Served::Softirq(number) => Via::Softirq(number),
            Served::Call => Via::Call,
            Served::Task { .. } | Served::Nmi(_) => return None,
        })
    }
}

#[derive(Default)]
pub(super) struct FrameCpu {
    pub(super) is_chosen: bool,
    /// The frames by [`EntryLevel`].
    pub(super) frames: [Option<EntryFrame>; 3],
    /// The originator of each pending softirq.
    pub(super) raised: [Option<Origin>; SOFTIRQS.len()],
    /// The timer whose handler ran last.
    pub(super) timer: u64,
    /// The thread that was preempted and has not run since; 0: none.
    pub(super) victim: u32,
    pub(super) depth: u32,
    pub(super) dependency: u32,
    pub(super) lost: u64,
    pub(super) counts: EntryCounts,
}

impl FrameCpu {
    pub(super) fn innermost_level(&self) -> Option<EntryLevel> {
        let levels = [EntryLevel::Hard, EntryLevel::Soft, EntryLevel::Task];
        levels.into_iter().find(|level| self.frames[*level as usize].is_some())
    }

    /// The current interrupt or softirq.
    pub(super) fn current_interrupt(&self) -> Option<&EntryFrame> {
        let hard = self.frames[EntryLevel::Hard as usize].as_ref();
        hard.or(self.frames[EntryLevel::Soft as usize].as_ref())
    }

    /// The frame around an open one of this level.
    pub(super) fn outer_frame(&mut self, level: EntryLevel) -> Option<&mut EntryFrame> {
        let [task, soft, _] = &mut self.frames;
        match level {
            EntryLevel::Hard if soft.is_some() => soft.as_mut(),
            EntryLevel::Hard | EntryLevel::Soft => task.as_mut(),
            EntryLevel::Task => None,
        }
    }

    /// Drops a frame whose end was not seen: it yields no entry. Nested frames have entries of
    /// their own.
    fn forget_frame(&mut self, level: EntryLevel) {
        let Some(frame) = self.frames[level as usize].take() else { return };
        if let Some(around) = self.outer_frame(level) {
            around.inner += frame.inner;
        }
    }

    pub(super) fn open_frame(
        &mut self,
        event: &Event,
        level: EntryLevel,
        served: Served,
        origin: Option<Origin>,
    ) {
        self.forget_frame(level);
        let mut frame = EntryFrame::new(event, event.at, served, origin);
        frame.nested =
            level == EntryLevel::Hard && self.frames[EntryLevel::Soft as usize].is_some();
        frame.away = self.victim != 0;
        if level == EntryLevel::Task {
            // The event is the switch to it.
            frame.over = self.victim;
            if let punctual_core::EventKind::Switch { next, .. } = event.what {
                frame.tid = next.0;
            }
        }
        self.frames[level as usize] = Some(frame);
    }

    pub(super) fn begin_interrupt(
        &mut self,
        event: &Event,
        served: Served,
        origin: Option<Origin>,
    ) {
        self.depth += 1;
        if self.depth == 1 {
            self.open_frame(event, EntryLevel::Hard, served, origin);
        }
    }

    /// Ends an interrupt; returns whether the outermost one has ended.
    pub(super) fn ends_interrupt(&mut self) -> bool {
        let ends = self.depth == 1;
        self.depth = self.depth.saturating_sub(1);
        ends
    }

    /// Softirqs, switches and system calls neither begin nor end within an interrupt: an open one
    /// has ended unseen.
    pub(super) fn interrupts_ended(&mut self) {
        self.depth = 0;
        self.forget_frame(EntryLevel::Hard);
    }

    /// The level of a work item: a current softirq (kernel/workqueue.c: WQ_BH), else the task;
    /// never an interrupt. A softirq whose end was not seen lasts until a switch.
    pub(super) fn level_of_work(&mut self) -> EntryLevel {
        self.interrupts_ended();
        let in_softirq = self.frames[EntryLevel::Soft as usize].is_some();
        if in_softirq { EntryLevel::Soft } else { EntryLevel::Task }
    }

    /// Begins a function for an originator. The first one names the entry; each later one has its
    /// own entry, and its time does not count for this one.
    pub(super) fn begin_function(
        &mut self,
        at: MonotonicNs,
        level: EntryLevel,
        function: u64,
        origin: Option<Origin>,
    ) {
        let Some(frame) = self.frames[level as usize].as_mut() else { return };
        frame.running = function;
        frame.since = at;
        frame.inner_then = frame.inner;
        frame.functions += 1;
        match frame.functions {
            1 => {
                frame.function = function;
                // Otherwise it keeps the originator that woke the worker.
                let keeps = level == EntryLevel::Task && origin.is_none();
                frame.origin = if keeps { frame.origin } else { origin };
            }
            _ => frame.next = origin,
        }
    }

    pub(super) fn on_loss(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        self.frames = [None, None, None];
        self.raised = [None; SOFTIRQS.len()];
        (self.depth, self.victim, self.timer) = (0, 0, 0);
    }
}
