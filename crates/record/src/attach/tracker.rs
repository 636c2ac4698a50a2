//! Cycles from recorded events, where no program runs in the kernel. When a cycle was due, began
//! and ended is the same as there; what took its time is known as far as the thread's own events
//! show it.

use crate::format::NR_FUTEX;
use punctual_core::cycle::{
    CallClass, CallSet, Culprit, Cycle, DescriptorSet, MARKED, TaskName, WaitingCall, WokenBy,
};
use punctual_core::event::TaskState;
use punctual_core::{Event, EventKind, MainPart, MonotonicNs, Nanos, Split};
use std::collections::{BTreeMap, BTreeSet};

/// Timers of which it is known when they expire: far more than are started at once.
const TIMERS: usize = 1 << 16;
/// Timers that a thread started in the call under way; interrupts start some meanwhile.
const STARTED: usize = 8;
/// Timers of a thread whose expiries are waited for in other calls.
const OWN: usize = 4;

/// From this one on, the kernel's priorities are those of tasks without a real-time policy.
const NORMAL: i16 = 100;

/// Which calls cycles may begin with, and which are for files.
pub(super) struct Calls {
    pub(super) waits: BTreeSet<u32>,
    pub(super) files: BTreeSet<u32>,
    pub(super) clock_nanosleep: u32,
}

/// The threads that are watched, by their events in the order of time.
pub(super) struct Tracker {
    calls: Calls,
    marks: BTreeMap<u32, (usize, CallClass)>,
    threads: BTreeMap<u32, Thread>,
    selections: BTreeMap<u32, Option<(WaitingCall, bool)>>,
    /// When the timers that were started expire.
    timers: BTreeMap<u64, MonotonicNs>,
    /// The timer whose handler runs on a CPU.
    expiring: BTreeMap<u16, Expiry>,
    /// The threads that timers released.
    owners: BTreeMap<u64, u32>,
}

#[derive(Clone, Copy)]
struct Expiry {
    timer: u64,
    due: MonotonicNs,
    at: MonotonicNs,
}

#[derive(Clone, Copy)]
struct OwnTimer {
    timer: u64,
    site: WaitingCall,
    expired: Option<MonotonicNs>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    /// What it is ready for, and whom it waits for.
    Ready(MainPart, u32),
    Asleep(MainPart),
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    NoCycle,
    Waiting,
    Woken,
    Open,
}

/// A release, and by what.
#[derive(Clone, Copy)]
struct Release {
    due: MonotonicNs,
    woken: MonotonicNs,
    by: WokenBy,
    timer: u64,
    /// When the timer's handler began.
    handled: MonotonicNs,
}

struct Thread {
    state: State,
    since: MonotonicNs,
    cpu: u16,
    phase: Phase,
    call: Option<(WaitingCall, MonotonicNs)>,
    started: Vec<(u64, MonotonicNs)>,
    own: Vec<OwnTimer>,
    /// A wake-up that came before it slept.
    early: Option<Release>,
    slept: bool,
    /// Of the cycle, without the call under way; and of that.
    sum: Split,
    in_call: Split,
    cycle: Cycle,
    culprits: BTreeMap<u32, Nanos>,
}

impl Tracker {
    pub(super) fn new(calls: Calls) -> Tracker {
        let mark = |(place, (name, class)): (usize, (&str, CallClass))| {
            Some((crate::syscall_number(name)?, (place, class)))
        };
        Tracker {
            calls,
            marks: MARKED.into_iter().enumerate().filter_map(mark).collect(),
            threads: BTreeMap::new(),
            selections: BTreeMap::new(),
            timers: BTreeMap::new(),
            expiring: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    pub(super) fn select(&mut self, tid: u32, call: Option<(WaitingCall, bool)>) {
        self.selections.insert(tid, call);
    }

    /// Takes the next event.
    pub(super) fn push(&mut self, event: &Event, take: &mut dyn FnMut(Cycle)) {
        let (at, tid) = (event.at, event.tid.0);
        match event.what {
            EventKind::HrtimerStart { timer, expires } => {
                if self.timers.len() >= TIMERS {
                    self.timers.clear();
                }
                self.timers.insert(timer, expires);
                if let Some(thread) = self.threads.get_mut(&tid)
                    && thread.call.is_some()
                {
                    thread.started.truncate(STARTED - 1);
                    thread.started.insert(0, (timer, expires));
                }
            }
            EventKind::HrtimerExpireEntry { timer, now, .. } => {
                let due = self.timers.get(&timer).copied().or(now).unwrap_or(at);
                let due = due.min(at);
                self.expiring.insert(event.cpu, Expiry { timer, due, at });
                let owner = self.owners.get(&timer).and_then(|tid| self.threads.get_mut(tid));
                let own = owner.and_then(|thread| thread.own_timer(timer));
                if let Some(own) = own {
                    own.expired.get_or_insert(due);
                }
            }
            EventKind::HrtimerExpireExit { .. } => {
                self.expiring.remove(&event.cpu);
            }
            EventKind::SyscallEnter { number, args } => self.enters(event, number, args),
            EventKind::SyscallExit { result, .. } => self.returns(at, tid, result, take),
            EventKind::Switch { prev_state, prev_prio, next, next_prio } => {
                let part = match next_prio {
                    _ if next.0 == 0 => MainPart::Throttled,
                    prio if prio > prev_prio && prev_prio < NORMAL => MainPart::Throttled,
                    prio if prio < prev_prio && prio < NORMAL => MainPart::Preempted,
                    _ => MainPart::Runqueue,
                };
                self.leaves(at, tid, prev_state, (part, next.0), take);
                if let Some(thread) = self.threads.get_mut(&next.0) {
                    thread.arrives(at, event.cpu);
                }
            }
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, new: false, .. } => {
                self.wakes(event, task.0);
            }
            EventKind::Exit => {
                self.forget(tid);
            }
            EventKind::Exec => self.forget(tid),
            // What lies between is not known.
            EventKind::Lost { .. } => self.threads.clear(),
            _ => {}
        }
    }

    fn forget(&mut self, tid: u32) {
        self.threads.remove(&tid);
        self.selections.remove(&tid);
        self.owners.retain(|_, owner| *owner != tid);
    }

    fn ends_cycle(&self, tid: u32, call: WaitingCall) -> bool {
        match self.selections.get(&tid) {
            None => self.calls.waits.contains(&call.number),
            Some(None) => false,
            Some(Some((of, by_argument))) => {
                (of.number, of.operation) == (call.number, call.operation)
                    && (!by_argument || of.argument == call.argument)
            }
        }
    }

    fn enters(&mut self, event: &Event, number: u32, args: [u64; 2]) {
        let (at, tid) = (event.at, event.tid.0);
        let thread =
            self.threads.entry(tid).or_insert_with(|| Thread::new(tid, event.cpu, event.at));
        thread.runs(at);
        let operation = match number {
            NR_FUTEX => args[1] as u16 & 0x7f,
            _ if number == self.calls.clock_nanosleep => args[1] as u16 & 1,
            _ => 0,
        };
        thread.call = Some((WaitingCall { number, operation, argument: args[0] }, at));
        thread.in_call = Split::default();
        thread.started.clear();
        (thread.early, thread.slept) = (None, false);
        let cycle = &mut thread.cycle;
        cycle.syscalls = cycle.syscalls.saturating_add(1);
        if let Some((place, class)) = self.marks.get(&number) {
            cycle.calls.0 |= 1 << place;
            if *class == CallClass::Write {
                cycle.written.0 |= 1 << args[0].min(DescriptorSet::OTHERS.into());
            }
        }
    }

    fn leaves(
        &mut self,
        at: MonotonicNs,
        tid: u32,
        state: TaskState,
        ready: (MainPart, u32),
        take: &mut dyn FnMut(Cycle),
    ) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.runs(at);
        match state {
            TaskState::Preempted | TaskState::Yielded | TaskState::Throttled => {
                thread.state = State::Ready(ready.0, ready.1);
                return;
            }
            TaskState::Dead => return self.forget(tid),
            _ => {}
        }
        let call = thread.call;
        let within = match call {
            None => MainPart::PageFault,
            Some((call, _)) => self.calls.part_of_sleep(call, state),
        };
        let ends =
            call.filter(|(call, _)| state == TaskState::Sleeping && self.ends_cycle(tid, *call));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.state = State::Asleep(within);
        thread.slept = true;
        thread.cycle.slept_without_pi |=
            within == MainPart::Lock && call.is_some_and(|(call, _)| call.operation == 0);
        if let Some((call, entered)) = ends {
            // Woken, it may wait on in the same call: that was no release.
            if thread.phase != Phase::Woken {
                thread.next_cycle(call, entered, within, take);
            }
            thread.phase = Phase::Waiting;
        }
    }

    fn wakes(&mut self, event: &Event, task: u32) {
        let at = event.at;
        let Some(thread) = self.threads.get_mut(&task) else { return };
        let release = match self.expiring.get(&event.cpu) {
            Some(expiry) => {
                let own = thread.started.iter().any(|(timer, _)| *timer == expiry.timer);
                let by = if own { WokenBy::Sleep } else { WokenBy::Timer };
                let due = expiry.due.min(at);
                Release { due, woken: at, by, timer: expiry.timer, handled: expiry.at }
            }
            None => {
                // The idle task wakes nobody: it was interrupted.
                let by = if event.tid.0 == 0 { WokenBy::Irq } else { WokenBy::Unseen };
                Release { due: at, woken: at, by, timer: 0, handled: at }
            }
        };
        match thread.state {
            State::Ready(..) => return,
            State::Running => {
                thread.early = thread.call.is_some().then_some(release);
                return;
            }
            State::Asleep(_) if thread.phase == Phase::Waiting => thread.release(release),
            State::Asleep(part) => {
                let slept = at - thread.since;
                thread.sum().add(part, slept);
                thread.cycle.blocks = thread.cycle.blocks.saturating_add(1);
                thread.cycle.blocked += slept;
            }
        }
        (thread.state, thread.since) = (State::Ready(MainPart::Unknown, 0), at);
        if release.by == WokenBy::Timer
            && let Some((site, _)) = thread.call
        {
            thread.own.retain(|own| own.timer != release.timer);
            thread.own.truncate(OWN - 1);
            thread.own.insert(0, OwnTimer { timer: release.timer, site, expired: None });
            self.owners.insert(release.timer, task);
        }
    }

    fn returns(&mut self, at: MonotonicNs, tid: u32, result: i64, take: &mut dyn FnMut(Cycle)) {
        let site = self.threads.get(&tid).and_then(|thread| thread.call);
        let ends = site.is_some_and(|(call, _)| self.ends_cycle(tid, call));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.runs(at);
        let Some((call, entered)) = thread.call else { return };
        if thread.phase == Phase::Waiting {
            // Nobody saw who woke it.
            let due = thread.started.first().map_or(at, |(_, expires)| (*expires).min(at));
            let by = if due < at { WokenBy::Sleep } else { WokenBy::Unseen };
            thread.release(Release { due, woken: at, by, timer: 0, handled: at });
        } else if ends && !thread.slept && thread.phase != Phase::Woken {
            let passed = thread.passed(call, at, result, call.number == self.calls.clock_nanosleep);
            if let Some(release) = passed.or(thread.early) {
                let within = self.calls.part_of_sleep(call, TaskState::Sleeping);
                thread.next_cycle(call, entered, within, take);
                thread.release(release);
                thread.sum.add(MainPart::SystemCall, at - release.woken.max(release.due));
            }
        }
        if let Some(own) = thread.own.iter_mut().find(|own| own.site == call) {
            own.expired = None;
        }
        if thread.phase == Phase::Woken {
            thread.cycle.returned = at;
            thread.cycle.wake = std::mem::take(&mut thread.sum);
            thread.cycle.syscalls = 0;
            thread.phase = Phase::Open;
        } else {
            thread.sum = thread.sum.plus(&thread.in_call);
            let longest = thread.cycle.longest_call.map_or(Nanos::ZERO, |(_, time)| time);
            if at - entered > longest {
                thread.cycle.longest_call = Some((call.number, at - entered));
            }
        }
        thread.call = None;
        thread.in_call = Split::default();
    }
}

impl Calls {
    /// What a sleep in this call is, where that is none of the cycle's.
    fn part_of_sleep(&self, call: WaitingCall, state: TaskState) -> MainPart {
        /// FUTEX_WAIT, FUTEX_LOCK_PI and FUTEX_LOCK_PI2.
        const LOCKS: [u16; 3] = [0, 6, 13];
        match call.number {
            NR_FUTEX if LOCKS.contains(&call.operation) => MainPart::Lock,
            NR_FUTEX => MainPart::Waiting,
            number if state == TaskState::Blocked && self.files.contains(&number) => MainPart::Io,
            _ => MainPart::Waiting,
        }
    }
}

impl Thread {
    fn new(tid: u32, cpu: u16, at: MonotonicNs) -> Thread {
        Thread {
            state: State::Running,
            since: at,
            cpu,
            phase: Phase::NoCycle,
            call: None,
            started: Vec::new(),
            own: Vec::new(),
            early: None,
            slept: false,
            sum: Split::default(),
            in_call: Split::default(),
            cycle: blank(tid, at),
            culprits: BTreeMap::new(),
        }
    }

    fn own_timer(&mut self, timer: u64) -> Option<&mut OwnTimer> {
        self.own.iter_mut().find(|own| own.timer == timer)
    }

    /// Where time of this instant belongs to.
    fn sum(&mut self) -> &mut Split {
        match self.call.is_some() && self.phase != Phase::Woken {
            true => &mut self.in_call,
            false => &mut self.sum,
        }
    }

    /// It runs at this instant, and what it did until then is over.
    fn runs(&mut self, at: MonotonicNs) {
        let part = match self.state {
            State::Running if self.call.is_some() => MainPart::SystemCall,
            State::Running => MainPart::OwnExecution,
            State::Ready(part, by) => {
                *self.culprits.entry(by).or_default() += at - self.since;
                part
            }
            State::Asleep(_) => MainPart::Unknown,
        };
        // The time of a wait before its release is no cycle's.
        if self.phase != Phase::Waiting {
            let took = at - self.since;
            self.sum().add(part, took);
        }
        (self.state, self.since) = (State::Running, at.max(self.since));
    }

    fn arrives(&mut self, at: MonotonicNs, cpu: u16) {
        self.runs(at);
        if self.cpu != cpu {
            self.cycle.migrations = self.cycle.migrations.saturating_add(1);
        }
        self.cpu = cpu;
    }

    /// The wait is over: its cycle begins.
    fn release(&mut self, release: Release) {
        self.sum = Split::default();
        self.culprits.clear();
        let cycle = &mut self.cycle;
        let (due, entered) = (release.due, cycle.entered);
        self.sum.add(MainPart::Overrun, entered - due);
        self.sum.add(MainPart::TimerIrqDelay, release.handled - due.max(entered));
        self.sum.add(MainPart::Irq, release.woken - release.handled.max(due).max(entered));
        (cycle.release, cycle.woken) = (due, release.woken);
        (cycle.by, cycle.timer) = (release.by, release.timer);
        self.phase = Phase::Woken;
    }

    /// What the call had waited for had come before it.
    fn passed(
        &self,
        call: WaitingCall,
        at: MonotonicNs,
        result: i64,
        is_sleep: bool,
    ) -> Option<Release> {
        let (due, by, timer) = if is_sleep && call.operation != 0 && result == 0 {
            let started = self.started.iter().find(|(_, expires)| *expires <= at);
            started.map(|(timer, expires)| (*expires, WokenBy::Sleep, *timer))?
        } else {
            let own = self.own.iter().filter(|own| result > 0 && own.site == call);
            let expired = own.filter_map(|own| Some((own.expired?, WokenBy::Timer, own.timer)));
            expired.min_by_key(|(due, ..)| *due)?
        };
        let entered = self.call.map_or(at, |(_, entered)| entered);
        let handled = due.max(entered);
        Some(Release { due, woken: handled, by, timer, handled })
    }

    /// What was goes to `take`, where it had begun; the next cycle waits in this call.
    fn next_cycle(
        &mut self,
        call: WaitingCall,
        entered: MonotonicNs,
        within: MainPart,
        take: &mut dyn FnMut(Cycle),
    ) {
        if self.phase == Phase::Open {
            let culprit = self.culprits.iter().filter(|(tid, _)| **tid != 0);
            let culprit = culprit.max_by_key(|(_, time)| **time);
            let again = entered.max(self.cycle.returned);
            self.cycle.run = std::mem::take(&mut self.sum);
            let missing = (again - self.cycle.returned) - self.cycle.run.sum();
            self.cycle.run.add(MainPart::Unknown, missing);
            take(Cycle {
                cpu: self.cpu,
                again,
                culprit: culprit.map(|(tid, time)| Culprit {
                    tid: *tid,
                    name: TaskName::default(),
                    time: *time,
                }),
                ..self.cycle
            });
        }
        self.cycle = Cycle { call, wait_is: within, entered, ..blank(self.cycle.tid, entered) };
        (self.sum, self.in_call) = (Split::default(), Split::default());
        self.culprits.clear();
    }
}

/// A cycle of which nothing is known yet.
fn blank(tid: u32, at: MonotonicNs) -> Cycle {
    Cycle {
        tid,
        cpu: 0,
        release: at,
        entered: at,
        woken: at,
        returned: at,
        again: at,
        call: WaitingCall { number: 0, operation: 0, argument: 0 },
        by: WokenBy::Unseen,
        timer: 0,
        waker: 0,
        waker_name: TaskName::default(),
        wait_is: MainPart::Waiting,
        reclaimed: Nanos::ZERO,
        faulted: Nanos::ZERO,
        blocks: 0,
        blocked: Nanos::ZERO,
        migrations: 0,
        syscalls: 0,
        faults: 0,
        calls: CallSet::default(),
        written: DescriptorSet::default(),
        slept_without_pi: false,
        longest_call: None,
        culprit: None,
        holder: None,
        awaited: None,
        wake: Split::default(),
        run: Split::default(),
    }
}

#[cfg(test)]
mod tests;
