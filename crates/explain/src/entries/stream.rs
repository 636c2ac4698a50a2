//! Entries of CPUs from events: the equivalent of the BPF programs of `attach --cpus`
//! (crates/record/bpf/cpus.bpf.c) for kernels without them.
//!
//! The originator of an IPI, work item or timer is kept under its identifier until that arrives.
//! Interrupts and softirqs of all CPUs are followed, so that those they cause also have an
//! originator.

mod frame;
mod named;
mod pending;
#[cfg(test)]
mod tests;

pub use named::TRACEPOINTS;

use frame::{EntryFrame, EntryLevel, FrameCpu, Origin};
use named::{EventContent, NamedFields};
use pending::PendingValues;
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{
    Entry, EntryCounts, KernelFunctions, OwnCount, OwnEntry, Served, Vector, Via,
};
use punctual_core::event::{TaskState, TracepointFormat};
use punctual_core::{CpuSet, Event, EventKind, MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// The maximum number of threads with counts of their own actions.
const MAX_COUNTED_THREADS: usize = 16_384;
const REMOTE_SHOOTDOWN: u64 = 1;

/// Properties of tasks.
pub trait TaskProperties {
    /// The name of a task; empty if unknown.
    fn task_name(&self, tid: u32) -> TaskComm;
    fn is_kernel(&self, tid: u32) -> bool;
}

/// Takes events in order of time, and returns entries.
pub struct EntryStream {
    chosen: CpuSet,
    functions: KernelFunctions,
    vectors: BTreeMap<u8, Vector>,
    named: NamedFields,
    cpus: BTreeMap<u16, FrameCpu>,
    /// Pending IPIs by CPU and purpose.
    sent: PendingValues<(u32, IpiPurpose)>,
    calls: PendingValues<u64>,
    timers: PendingValues<u64>,
    works: PendingValues<u64>,
    woken: PendingValues<u32>,
    /// Tasks with a wake-up in progress.
    waking: PendingValues<u32>,
    own: BTreeMap<(u32, u32, OwnEntry), (TaskComm, u64)>,
}

/// The purpose of an IPI, as far as its vector shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum IpiPurpose {
    Reschedule,
    Call,
    IrqWork,
}

impl IpiPurpose {
    fn from_vector(vector: Vector) -> Option<IpiPurpose> {
        match vector {
            Vector::Reschedule => Some(IpiPurpose::Reschedule),
            Vector::CallFunction | Vector::CallFunctionSingle => Some(IpiPurpose::Call),
            Vector::IrqWork => Some(IpiPurpose::IrqWork),
            _ => None,
        }
    }
}

/// The receiver of entries, with the names.
struct Out<'a> {
    tasks: &'a dyn TaskProperties,
    take: &'a mut dyn FnMut(Entry),
}

impl EntryStream {
    /// A stream for these CPUs. `vectors`: as numbered by the kernel; `formats`: the
    /// [`TRACEPOINTS`] recorded by name, ordered by id.
    pub fn new(
        chosen: &CpuSet,
        functions: KernelFunctions,
        vectors: &BTreeMap<u8, String>,
        formats: &[TracepointFormat],
    ) -> EntryStream {
        let vector = |(number, name): (&u8, &String)| {
            let known_vector = Vector::ALL.iter().find(|vector| vector.tracepoint_name() == name);
            Some((*number, *known_vector?))
        };
        let mut cpus: BTreeMap<u16, FrameCpu> = BTreeMap::new();
        for cpu in chosen.iter().filter_map(|cpu| u16::try_from(cpu).ok()) {
            cpus.insert(cpu, FrameCpu { is_chosen: true, ..FrameCpu::default() });
        }
        EntryStream {
            chosen: chosen.clone(),
            functions,
            vectors: vectors.iter().filter_map(vector).collect(),
            named: NamedFields::from_formats(formats),
            cpus,
            sent: PendingValues::default(),
            calls: PendingValues::default(),
            timers: PendingValues::default(),
            works: PendingValues::default(),
            woken: PendingValues::default(),
            waking: PendingValues::default(),
            own: BTreeMap::new(),
        }
    }

    pub fn push(&mut self, event: &Event, tasks: &dyn TaskProperties, take: &mut dyn FnMut(Entry)) {
        let out = &mut Out { tasks, take };
        match event.what {
            EventKind::Lost { count, .. } => self.on_loss(event.cpu, count),
            EventKind::IrqEntry { irq } => {
                let cpu = self.cpu_mut(event);
                cpu.counts.irqs += 1;
                cpu.begin_interrupt(event, Served::Irq(irq), None);
            }
            EventKind::VectorEntry { vector } => self.on_vector_entry(event, vector),
            EventKind::IrqExit { .. } | EventKind::VectorExit { .. } => {
                self.end_interrupt(event, out);
            }
            EventKind::SoftirqRaise { vector } => self.on_softirq_raise(event, vector),
            EventKind::SoftirqEntry { vector } => {
                let cpu = self.cpu_mut(event);
                cpu.interrupts_ended();
                let raised = cpu.raised.get_mut(usize::from(vector)).and_then(Option::take);
                cpu.open_frame(event, EntryLevel::Soft, Served::Softirq(vector.into()), raised);
            }
            EventKind::SoftirqExit { .. } => {
                self.cpu_mut(event).interrupts_ended();
                self.close_frame(event, EntryLevel::Soft, out);
            }
            EventKind::Waking { task, .. } => {
                let origin = self.current_origin(event);
                self.waking.insert(task.0, origin);
                self.woken.insert(task.0, origin);
            }
            EventKind::Wakeup { task, new, .. } => {
                self.waking.remove(&task.0);
                if new {
                    let origin = self.current_origin(event);
                    self.woken.insert(task.0, origin);
                }
            }
            EventKind::Migrate { task, from, to } => self.on_migration(event, task.0, from, to),
            EventKind::Switch { prev_state, next, .. } => {
                self.on_switch(event, prev_state, next.0, out);
            }
            EventKind::SyscallEnter { number, .. } => {
                self.cpu_mut(event).interrupts_ended();
                self.count_own_entry(event, OwnEntry::SystemCall(Some(number)), tasks);
            }
            EventKind::PageFault { user: true, .. } => {
                self.count_own_entry(event, OwnEntry::UserFault, tasks);
            }
            EventKind::PageFault { user: false, .. } => {
                self.count_own_entry(event, OwnEntry::KernelFault, tasks);
            }
            EventKind::Tracepoint { tracepoint, ref record } => {
                if let Some(named) = self.named.read(tracepoint, record) {
                    self.take_named(event, named, out);
                }
            }
            _ => {}
        }
    }

    /// The counts of a CPU.
    pub fn cpu_counts(&self, cpu: usize) -> EntryCounts {
        self.chosen_cpu(cpu).map_or_else(EntryCounts::default, |cpu| cpu.counts)
    }

    /// The number of missing events of a CPU: an upper bound of its missing entries.
    pub fn lost_events(&self, cpu: usize) -> u64 {
        self.chosen_cpu(cpu).map_or(0, |cpu| cpu.lost)
    }

    /// The actions of tasks themselves on the chosen CPUs.
    pub fn own_counts(&self) -> Vec<OwnCount> {
        let one = |(&(cpu, tid, what), &(name, count)): (&_, &_)| OwnCount {
            cpu,
            tid,
            name,
            what,
            count,
        };
        self.own.iter().map(one).collect()
    }

    fn chosen_cpu(&self, cpu: usize) -> Option<&FrameCpu> {
        u16::try_from(cpu).ok().and_then(|cpu| self.cpus.get(&cpu))
    }

    fn cpu_mut(&mut self, event: &Event) -> &mut FrameCpu {
        self.cpus.entry(event.cpu).or_default()
    }

    fn is_chosen(&self, cpu: u32) -> bool {
        self.chosen.contains(cpu as usize)
    }

    /// After a loss, forgets originators: unknown is better than wrong.
    fn on_loss(&mut self, cpu: u16, count: u64) {
        self.cpus.entry(cpu).or_default().on_loss(count);
        self.sent.clear();
        for kept in [&mut self.calls, &mut self.timers, &mut self.works] {
            kept.clear();
        }
        self.woken.clear();
        self.waking.clear();
    }

    /// The running thread; in an interrupt or softirq, its originator.
    fn current_origin(&self, event: &Event) -> Origin {
        let cpu = self.cpus.get(&event.cpu);
        let of_thread =
            Origin { at: event.at, tid: Some(event.tid.0), cpu: event.cpu.into(), via: None };
        let Some(frame) = cpu.and_then(FrameCpu::current_interrupt) else { return of_thread };
        let via = frame.caused_via();
        match frame.current_origin() {
            Some(origin) => Origin { at: event.at, via, ..origin },
            None => Origin { tid: None, via, ..of_thread },
        }
    }

    fn on_softirq_raise(&mut self, event: &Event, vector: u8) {
        let origin = self.current_origin(event);
        if let Some(raised) = self.cpu_mut(event).raised.get_mut(usize::from(vector)) {
            raised.get_or_insert(origin);
        }
    }

    fn on_vector_entry(&mut self, event: &Event, number: u8) {
        let Some(vector) = self.vectors.get(&number).copied() else { return };
        let purpose = IpiPurpose::from_vector(vector);
        let sent = purpose.and_then(|purpose| self.sent.remove(&(event.cpu.into(), purpose)));
        let cpu = self.cpu_mut(event);
        cpu.counts.vectors[vector as usize] += 1;
        cpu.begin_interrupt(event, Served::Vector(vector), sent);
    }

    fn end_interrupt(&mut self, event: &Event, out: &mut Out<'_>) {
        if self.cpu_mut(event).ends_interrupt() {
            self.close_frame(event, EntryLevel::Hard, out);
        }
    }

    fn close_frame(&mut self, event: &Event, level: EntryLevel, out: &mut Out<'_>) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let Some(frame) = cpu.frames[level as usize].take() else { return };
        let took = event.at - frame.begin;
        let dependency = if level == EntryLevel::Hard { cpu.dependency } else { 0 };
        let own_time = (took - frame.inner).max(Nanos::ZERO);
        if cpu.is_chosen {
            out.emit_entry(
                event,
                &frame,
                Piece { begin: frame.begin, own: own_time, further: false, dependency },
            );
        }
        if let Some(around) = cpu.outer_frame(level) {
            around.inner += took;
        }
    }

    fn end_function(&mut self, event: &Event, level: EntryLevel, out: &mut Out<'_>) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let is_chosen = cpu.is_chosen;
        let Some(frame) = cpu.frames[level as usize].as_mut() else { return };
        if frame.running == 0 {
            return;
        }
        if frame.functions > 1 {
            let inner = frame.inner - frame.inner_then;
            let own_time = (event.at - frame.since - inner).max(Nanos::ZERO);
            if is_chosen {
                let begin = frame.since;
                out.emit_entry(
                    event,
                    frame,
                    Piece { begin, own: own_time, further: true, dependency: 0 },
                );
            }
            frame.inner += own_time;
        }
        frame.running = 0;
    }

    fn on_migration(&mut self, event: &Event, task: u32, from: u16, to: u16) {
        let origin = self.current_origin(event);
        if let Some(cpu) = self.cpus.get_mut(&from)
            && cpu.victim == task
        {
            cpu.victim = 0;
        }
        // A task with a wake-up in progress already has its waker.
        if self.is_chosen(to.into()) && !self.waking.contains(&task) {
            self.woken.insert(task, origin);
        }
    }

    fn on_switch(&mut self, event: &Event, state: TaskState, next: u32, out: &mut Out<'_>) {
        self.cpu_mut(event).interrupts_ended();
        // A softirq that is switched away from runs in a task (PREEMPT_RT).
        self.close_frame(event, EntryLevel::Soft, out);
        self.close_frame(event, EntryLevel::Task, out);
        let woken = self.woken.get(&next);
        let kernel = next != 0 && out.tasks.is_kernel(next);
        let cpu = self.cpu_mut(event);
        let runnable =
            matches!(state, TaskState::Preempted | TaskState::Yielded | TaskState::Throttled);
        if next == cpu.victim || next == 0 {
            cpu.victim = 0;
        } else if runnable && event.tid.0 != 0 && cpu.victim == 0 {
            cpu.victim = event.tid.0;
        }
        if next != 0 {
            // Its name is the one at its end.
            let served = Served::Task { name: TaskComm::default(), kernel };
            cpu.open_frame(event, EntryLevel::Task, served, woken);
        }
    }

    fn count_own_entry(&mut self, event: &Event, what: OwnEntry, tasks: &dyn TaskProperties) {
        let (cpu, tid) = (u32::from(event.cpu), event.tid.0);
        if !self.is_chosen(cpu) {
            return;
        }
        let key = (cpu, tid, what);
        if let Some((_, count)) = self.own.get_mut(&key) {
            *count += 1;
        } else if self.own.len() < MAX_COUNTED_THREADS {
            self.own.insert(key, (tasks.task_name(tid), 1));
        } else {
            self.cpu_mut(event).counts.own_lost += 1;
        }
    }

    fn take_named(&mut self, event: &Event, named: EventContent, out: &mut Out<'_>) {
        match named {
            EventContent::Ipi { target, callback } if self.is_chosen(target) => {
                let purpose = match callback {
                    0 => IpiPurpose::Reschedule,
                    callback if callback == self.functions.call_function => IpiPurpose::Call,
                    _ => IpiPurpose::IrqWork,
                };
                let origin = self.current_origin(event);
                self.sent.insert((target, purpose), origin);
            }
            EventContent::CallQueued { target, call } if self.is_chosen(target) => {
                let origin = self.current_origin(event);
                self.calls.insert(call, origin);
            }
            EventContent::CallEntry { function, call } if call != 0 => {
                let called = self.calls.remove(&call);
                let is_shootdown = function == self.functions.shootdown && function != 0;
                let cpu = self.cpu_mut(event);
                cpu.counts.shootdowns += u64::from(is_shootdown);
                // Called by the idle task: no interrupt arrived.
                if cpu.frames[EntryLevel::Hard as usize].is_none() {
                    cpu.begin_interrupt(event, Served::Call, None);
                }
                cpu.begin_function(event.at, EntryLevel::Hard, function, called);
            }
            EventContent::CallExit { call } if call != 0 => {
                self.end_function(event, EntryLevel::Hard, out);
                let frame = self.cpu_mut(event).frames[EntryLevel::Hard as usize].as_ref();
                if frame.is_some_and(|frame| frame.served == Served::Call) {
                    self.end_interrupt(event, out);
                }
            }
            EventContent::TlbFlush { reason: REMOTE_SHOOTDOWN } => {
                let shootdown = self.functions.shootdown;
                let cpu = self.cpu_mut(event);
                if let Some(frame) = cpu.frames[EntryLevel::Hard as usize].as_mut() {
                    cpu.counts.shootdowns += 1;
                    if frame.function == 0 {
                        frame.function = shootdown;
                    }
                }
            }
            EventContent::TimerStart { timer, function } => {
                let tick = self.functions.tick;
                let event_cpu = self.cpu_mut(event);
                let rearmed = event_cpu.frames[EntryLevel::Hard as usize].is_some()
                    && event_cpu.timer == timer;
                // The task running when the tick is restarted did not cause it.
                if !rearmed && (function != tick || tick == 0) {
                    let origin = self.current_origin(event);
                    self.timers.insert(timer, origin);
                }
            }
            EventContent::TimerEntry { timer, function } => {
                let armed = self.timers.get(&timer);
                let cpu = self.cpu_mut(event);
                cpu.timer = timer;
                if let Some(level) = cpu.innermost_level() {
                    cpu.begin_function(event.at, level, function, armed);
                }
            }
            EventContent::TimerExit => {
                if let Some(level) = self.cpu_mut(event).innermost_level() {
                    self.end_function(event, level, out);
                }
            }
            EventContent::TickStop { success, dependency } => {
                self.cpu_mut(event).dependency = if success { 0 } else { dependency };
            }
            EventContent::WorkQueued { work } => {
                let origin = self.current_origin(event);
                self.works.insert(work, origin);
            }
            EventContent::WorkEntry { work, function } => {
                let queued = self.works.remove(&work);
                let cpu = self.cpu_mut(event);
                let level = cpu.level_of_work();
                cpu.begin_function(event.at, level, function, queued);
            }
            EventContent::WorkExit => {
                let level = self.cpu_mut(event).level_of_work();
                self.end_function(event, level, out);
            }
            EventContent::Nmi { handler, took } => {
                let cpu = self.cpu_mut(event);
                let begin = MonotonicNs(event.at.0.saturating_sub(took.ns()));
                let away = cpu.victim != 0;
                if let Some(level) = cpu.innermost_level() {
                    cpu.frames[level as usize].iter_mut().for_each(|frame| frame.inner += took);
                }
                let frame = EntryFrame {
                    away,
                    ..EntryFrame::new(event, begin, Served::Nmi(handler), None)
                };
                if cpu.is_chosen {
                    out.emit_entry(
                        event,
                        &frame,
                        Piece { begin, own: took, further: false, dependency: 0 },
                    );
                }
            }
            EventContent::Ipi { .. }
            | EventContent::CallQueued { .. }
            | EventContent::CallEntry { .. }
            | EventContent::CallExit { .. }
            | EventContent::TlbFlush { .. } => {}
        }
    }
}

/// The slice of a frame that one entry reports.
struct Piece {
    begin: MonotonicNs,
    own: Nanos,
    further: bool,
    dependency: u32,
}

impl Out<'_> {
    fn emit_entry(&mut self, event: &Event, frame: &EntryFrame, piece: Piece) {
        let served = match frame.served {
            Served::Task { kernel, .. } => {
                Served::Task { name: self.tasks.task_name(frame.tid), kernel }
            }
            other => other,
        };
        let origin = if piece.further { frame.next } else { frame.origin };
        let originator = origin.map(|origin| origin.into_originator(self.tasks));
        (self.take)(Entry {
            cpu: event.cpu,
            begin: piece.begin,
            end: event.at,
            own: piece.own.max(Nanos::ZERO),
            served,
            task: if matches!(served, Served::Task { .. }) { frame.tid } else { 0 },
            observer: false,
            function: if piece.further { frame.running } else { frame.function },
            over: frame.over,
            nested: frame.nested,
            away: frame.away,
            further: piece.further,
            tick_dependency: piece.dependency,
            originator,
            via: origin.and_then(|origin: Origin| -> Option<Via> { origin.via }),
        });
    }
}
