//! The state of a thread and of its current cycle, from one event to the next.

use super::cpu::{ServedTime, StreamCpu, clamp_to_zero};
use punctual_core::cycle::{
    AwaitedWaker, CallSet, Cycle, CycleCulprit, DescriptorSet, Gap, LockEvidence, LockHolder,
    Moment, MomentKind, OpenCycle, POLLS_AFTER, TaskComm, ThreadTimes, WaitingCall, WokenBy,
};
use punctual_core::{CauseKind, MAIN_PARTS, MAX_RT_PRIO, MonotonicNs, Nanos, Split};
use std::collections::BTreeMap;

/// The maximum number of timers started by a thread in its current call; interrupts start some
/// meanwhile.
const STARTED: usize = 8;
/// The maximum number of a thread's timers awaited in other calls.
const MAX_OWN_TIMERS: usize = 4;
/// The maximum number of tasks distinguished in a cycle.
const CULPRITS: usize = 64;
/// The maximum number of moments in a cycle; later ones are skipped.
const MOMENTS: u32 = 64;

#[derive(Clone, Copy)]
pub struct OwnTimer {
    pub timer: u64,
    pub site: WaitingCall,
    pub expired: Option<MonotonicNs>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum StreamThreadState {
    Unseen,
    Running,
    Ready(Readiness),
    Asleep(CauseKind),
}

/// The reason why a runnable thread does not run.
#[derive(Clone, Copy, PartialEq)]
pub enum Readiness {
    /// The tasks of its CPU show it.
    ByCpu,
    /// Without switches of others: the part it was preempted for, and by whom.
    For(CauseKind, u32),
    /// The quota of its group is used up.
    Held,
}

#[derive(Clone, Copy, PartialEq)]
pub enum StreamPhase {
    NoCycle,
    Waiting,
    Woken,
    Open,
    /// A signal ended its wait, which is not a release.
    Interrupted,
}

/// The waker that ended a wait.
#[derive(Clone, Copy)]
pub struct WaitWaker {
    pub by: WokenBy,
    pub tid: u32,
}

/// A release with its source.
#[derive(Clone, Copy)]
pub struct Release {
    pub due: MonotonicNs,
    pub woken: MonotonicNs,
    pub waker: WaitWaker,
    pub timer: u64,
}

pub struct StreamThread {
    pub state: StreamThreadState,
    /// The time is divided up to here.
    pub from: MonotonicNs,
    served: ServedTime,
    pub cpu: u16,
    pub prio: Option<i16>,
    /// When it was enqueued: later switches were decided against it.
    pub enqueued: Option<MonotonicNs>,
    pub phase: StreamPhase,
    pub call: Option<(WaitingCall, MonotonicNs)>,
    /// A system call of it was seen: from then on its absence from a call is known.
    pub has_called: bool,
    pub started: Vec<(u64, MonotonicNs)>,
    pub own: Vec<OwnTimer>,
    /// A wake-up before it slept.
    pub early: Option<Release>,
    pub slept: bool,
    slept_at: MonotonicNs,
    /// The task that inherited its priority in the current call.
    pub lent_to: Option<u32>,
    pub reclaims: bool,
    /// A page fault began since it last got a CPU or made a call.
    pub faulted: bool,
    /// It is in a call for a lock with priority inheritance.
    pub locks: bool,
    /// The CPU that it last ran on, and whether it was moved since.
    ran_on: u16,
    moved: bool,
    blocked: bool,
    /// It became ready by a wake-up from an interruptible wait, not by a preemption.
    pub is_woken: bool,
    /// When it got a CPU after such a wait, without any action since: the return of its call bounds
    /// the context switch to it.
    pub returns_from: Option<MonotonicNs>,
    /// The split of the cycle without the current call, and that of the call.
    pub sum: Split,
    pub in_call: Split,
    pub cycle: Cycle,
    /// Their run times, and the part in which their priority was not lower.
    culprits: BTreeMap<u32, (Nanos, Nanos)>,
    /// It was stopped since a signal interrupted its wait: releases meanwhile waited for that.
    held_up: bool,
    /// The sender of the last stop signal.
    pub stopped_by: Option<u32>,
    moments: u32,
    moment: Option<Moment>,
    /// For a polling thread that lost its CPU: since when, its sums then, and the tasks on the CPU.
    taken: Option<(MonotonicNs, Split, BTreeMap<u32, Nanos>)>,
    times: ThreadTimes,
    /// When it entered its state.
    since: MonotonicNs,
}

impl StreamThread {
    pub fn new(tid: u32, cpu: u16, at: MonotonicNs) -> StreamThread {
        StreamThread {
            state: StreamThreadState::Unseen,
            from: at,
            served: ServedTime::default(),
            cpu,
            prio: None,
            enqueued: None,
            phase: StreamPhase::NoCycle,
            call: None,
            has_called: false,
            started: Vec::new(),
            own: Vec::new(),
            early: None,
            slept: false,
            slept_at: at,
            lent_to: None,
            reclaims: false,
            faulted: false,
            locks: false,
            ran_on: cpu,
            moved: false,
            blocked: false,
            is_woken: false,
            returns_from: None,
            sum: Split::default(),
            in_call: Split::default(),
            cycle: blank_cycle(tid, at),
            culprits: BTreeMap::new(),
            held_up: false,
            stopped_by: None,
            moments: 0,
            moment: None,
            taken: None,
            times: ThreadTimes::default(),
            since: at,
        }
    }

    /// The time in each state so far.
    pub fn state_times(&self, at: MonotonicNs) -> ThreadTimes {
        let (mut times, span) = (self.times, clamp_to_zero(at - self.since));
        match self.state {
            StreamThreadState::Unseen => {}
            StreamThreadState::Running => times.ran += span,
            StreamThreadState::Ready(_) => times.ready += span,
            StreamThreadState::Asleep(CauseKind::Stopped) => times.stopped += span,
            StreamThreadState::Asleep(_) => times.waited += span,
        }
        times
    }

    fn turn_to(&mut self, at: MonotonicNs, state: StreamThreadState) {
        self.times = self.state_times(at);
        (self.state, self.since) = (state, self.since.max(at));
    }

    /// Whether it polls: it has not waited, or not for long.
    fn is_polling(&self, at: MonotonicNs) -> bool {
        let open = self.phase == StreamPhase::Open && at - self.cycle.returned > POLLS_AFTER;
        self.phase == StreamPhase::NoCycle || open
    }

    /// The CPU is taken from it.
    pub(crate) fn note_cpu_loss(&mut self, at: MonotonicNs) {
        if self.is_polling(at) {
            self.taken = Some((at, self.sum.add_parts(&self.in_call), BTreeMap::new()));
        }
    }

    /// It has a CPU again.
    pub(crate) fn end_gap(&mut self, end: MonotonicNs) -> Option<Gap> {
        let (begin, before, by) = self.taken.take()?;
        let (now, mut split) = (self.sum.add_parts(&self.in_call), Split::default());
        for part in MAIN_PARTS {
            split.add(*part, now.time_of(*part) - before.time_of(*part));
        }
        complete_parts(&mut split, clamp_to_zero(end - begin));
        let longest = by.into_iter().max_by_key(|(_, time)| *time);
        let culprit = longest.map(|(tid, time)| CycleCulprit {
            tid,
            name: TaskComm::default(),
            time,
            behind: Nanos::ZERO,
        });
        let (tid, cpu) = (self.cycle.tid, self.cpu);
        Some(Gap { tid, cpu, begin, end: end.max(begin), split, culprit })
    }

    /// An interrupt or softirq had its CPU.
    pub(crate) fn gap_of_service(
        &self,
        cpu: u16,
        (begin, served): (MonotonicNs, ServedTime),
        end: MonotonicNs,
    ) -> Option<Gap> {
        let runs = self.state == StreamThreadState::Running && self.cpu == cpu;
        let mut split = Split::default();
        split.add(CauseKind::Irq, served.hard);
        split.add(CauseKind::Softirq, served.soft);
        let tid = self.cycle.tid;
        (runs && self.is_polling(end)).then_some(Gap { tid, cpu, begin, end, split, culprit: None })
    }

    /// It starts a timer in the current call.
    pub(crate) fn note_timer_start(&mut self, timer: u64, expires: MonotonicNs) {
        self.started.retain(|(of, _)| *of != timer);
        self.started.truncate(STARTED - 1);
        self.started.insert(0, (timer, expires));
    }

    pub(crate) fn own_timer(&mut self, timer: u64) -> Option<&mut OwnTimer> {
        self.own.iter_mut().find(|own| own.timer == timer)
    }

    /// This timer, started outside of that call, ended the wait there.
    pub(crate) fn keep_timer(&mut self, timer: u64, site: WaitingCall) {
        self.own.retain(|own| own.timer != timer);
        self.own.truncate(MAX_OWN_TIMERS - 1);
        self.own.insert(0, OwnTimer { timer, site, expired: None });
    }

    /// Adds time to the part of the cycle that it belongs to.
    fn add(&mut self, part: CauseKind, span: Nanos) {
        // The time of a wait before its release belongs to no cycle.
        if self.phase == StreamPhase::Waiting {
            return;
        }
        match self.call.is_some() && self.phase != StreamPhase::Woken {
            true => self.in_call.add(part, span),
            false => self.sum.add(part, span),
        }
    }

    /// Divides its time by the activity of this CPU from now on.
    pub(crate) fn follow_cpu(&mut self, cpu: &StreamCpu, at: MonotonicNs) {
        self.from = self.from.max(at);
        self.served = cpu.served_time(self.from);
    }

    /// Divides the time since the last update: interrupts and softirqs by the totals of its CPU,
    /// the rest to `part`. Returns the rest.
    fn divide_time(&mut self, cpu: &StreamCpu, at: MonotonicNs, part: CauseKind) -> Nanos {
        let now = cpu.served_time(at);
        let whole = clamp_to_zero(at - self.from);
        let irqs = clamp_to_zero(now.hard - self.served.hard).min(whole);
        let softs = clamp_to_zero(now.soft - self.served.soft).min(whole - irqs);
        self.add(CauseKind::Irq, irqs);
        self.add(CauseKind::Softirq, softs);
        let rest = whole - irqs - softs;
        self.add(part, rest);
        (self.from, self.served) = (self.from.max(at), now);
        rest
    }

    /// Its time until now is unknown.
    pub(crate) fn loses_sight(&mut self, at: MonotonicNs) {
        if self.state != StreamThreadState::Unseen {
            self.add(CauseKind::Unknown, at - self.from);
        }
        self.from = self.from.max(at);
    }

    /// The part that its own execution counts for.
    fn own_part(&self) -> CauseKind {
        match (self.reclaims, self.call) {
            (true, _) => CauseKind::Reclaim,
            (false, Some(_)) => CauseKind::SystemCall,
            (false, None) => CauseKind::OwnExecution,
        }
    }

    /// The CPU was switching to it until now.
    pub(crate) fn attribute_switch(&mut self, cpu: &StreamCpu, at: MonotonicNs) {
        self.divide_time(cpu, at, CauseKind::Switch);
        self.returns_from = None;
    }

    /// Ends its current activity on a CPU.
    pub(crate) fn end_activity(&mut self, cpu: &StreamCpu, at: MonotonicNs) {
        self.returns_from = None;
        let part = self.own_part();
        let rest = self.divide_time(cpu, at, part);
        if self.reclaims && self.phase != StreamPhase::Waiting {
            self.cycle.reclaimed += rest;
        }
    }

    /// An event of its own shows it on a CPU.
    pub(crate) fn note_running(&mut self, number: u16, cpu: &StreamCpu, at: MonotonicNs) {
        match self.state {
            StreamThreadState::Running if self.cpu == number => self.end_activity(cpu, at),
            StreamThreadState::Asleep(_) if self.phase == StreamPhase::Waiting => {}
            _ => self.loses_sight(at),
        }
        self.turn_to(at, StreamThreadState::Running);
        self.cpu = number;
        self.follow_cpu(cpu, at);
    }

    /// The reason why it did not run until now although it was ready.
    fn delay_reason(&self, cpu: &StreamCpu, interrupts_shown: bool) -> CauseKind {
        let Some(running) = cpu.running else { return CauseKind::Unknown };
        let decided = self.enqueued.zip(cpu.switched).is_some_and(|(since, at)| at >= since);
        // Without events of interrupts, one of them may have kept the CPU.
        let if_shown = |part| if interrupts_shown { part } else { CauseKind::Unknown };
        let real_time = self.prio.is_some_and(|prio| prio < MAX_RT_PRIO);
        if running == 0 {
            return match decided && real_time {
                true => CauseKind::Throttled,
                false => if_shown(CauseKind::IdleExit),
            };
        }
        let Some((own, other)) = self.prio.zip(cpu.prio) else { return CauseKind::Unknown };
        match other {
            _ if other < own && other < MAX_RT_PRIO => CauseKind::Preempted,
            _ if other > own && real_time && decided => CauseKind::Throttled,
            _ if other > own && real_time => if_shown(CauseKind::NonPreemptible),
            _ => CauseKind::Runqueue,
        }
    }

    /// Attributes the wait for a CPU until now to the task that ran there.
    pub(crate) fn attribute_wait(
        &mut self,
        cpu: &StreamCpu,
        at: MonotonicNs,
        interrupts_shown: bool,
    ) {
        let StreamThreadState::Ready(readiness) = self.state else { return };
        let (part, by) = match readiness {
            Readiness::ByCpu => {
                (self.delay_reason(cpu, interrupts_shown), cpu.running.unwrap_or_default())
            }
            Readiness::For(part, by) => (part, by),
            Readiness::Held => (CauseKind::Throttled, cpu.running.unwrap_or_default()),
        };
        let rest = self.divide_time(cpu, at, part);
        let other_task_parts = [
            CauseKind::Preempted,
            CauseKind::Runqueue,
            CauseKind::NonPreemptible,
            CauseKind::Throttled,
        ];
        if by != 0
            && other_task_parts.contains(&part)
            && (self.culprits.len() < CULPRITS || self.culprits.contains_key(&by))
        {
            if let Some((_, _, had)) = &mut self.taken {
                *had.entry(by).or_default() += rest;
            }
            let (whole, behind) = self.culprits.entry(by).or_default();
            *whole += rest;
            if matches!(part, CauseKind::Preempted | CauseKind::Runqueue) {
                *behind += rest;
            }
        }
    }

    /// It could run on, and another task gets its CPU.
    pub(crate) fn on_preemption(&mut self, at: MonotonicNs, readiness: Readiness, by: u32) {
        self.turn_to(at, StreamThreadState::Ready(readiness));
        (self.enqueued, self.is_woken) = (Some(at), false);
        let what = MomentKind::Preempted { by, name: TaskComm::default() };
        self.begin_moment(at, what);
    }

    /// It sleeps from now on; `blocked`: uninterruptibly.
    pub(crate) fn on_sleep(&mut self, at: MonotonicNs, part: CauseKind, blocked: bool) {
        self.turn_to(at, StreamThreadState::Asleep(part));
        if part == CauseKind::Stopped {
            self.note_cpu_loss(at);
        }
        self.blocked = blocked;
        (self.slept, self.slept_at) = (true, at);
        self.from = self.from.max(at);
    }

    pub(crate) fn slept_at(&self) -> MonotonicNs {
        self.slept_at
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether it sleeps in a page fault or in reclaim, which its I/O is then for.
    pub(crate) fn needs_memory(&self) -> bool {
        matches!(self.state, StreamThreadState::Asleep(CauseKind::PageFault | CauseKind::Reclaim))
    }

    /// It became runnable and is to run on this CPU.
    pub(crate) fn becomes_ready(
        &mut self,
        at: MonotonicNs,
        cpu: u16,
        readiness: Readiness,
        enqueued: bool,
    ) {
        self.turn_to(at, StreamThreadState::Ready(readiness));
        self.cpu = cpu;
        self.enqueued = enqueued.then_some(at);
        self.is_woken = !self.blocked && self.call.is_some();
        self.from = self.from.max(at);
    }

    /// It was moved to another CPU.
    pub(crate) fn on_migration(&mut self) {
        self.moved = true;
        self.cycle.migrations = self.cycle.migrations.saturating_add(1);
    }

    /// It gets this CPU. Not every stream shows that it was moved.
    pub(crate) fn runs_on(&mut self, cpu: u16) {
        if !self.moved && cpu != self.ran_on {
            self.cycle.migrations = self.cycle.migrations.saturating_add(1);
        }
        (self.ran_on, self.moved) = (cpu, false);
    }

    /// It sleeps within its cycle.
    pub(crate) fn begin_pause(&mut self, at: MonotonicNs, part: CauseKind) {
        self.begin_moment(at, MomentKind::Asleep { part, time: Nanos::ZERO });
    }

    fn begin_moment(&mut self, begin: MonotonicNs, what: MomentKind) {
        if matches!(self.phase, StreamPhase::Open | StreamPhase::Woken) && self.moments < MOMENTS {
            self.moments += 1;
            let call = self.call.map(|(call, _)| call.number);
            let tid = self.cycle.tid;
            self.moment = Some(Moment { call, ..Moment::new(tid, begin, what) });
        }
    }

    /// It has a CPU again.
    pub(crate) fn end_moment(&mut self, at: MonotonicNs) -> Option<Moment> {
        let mut moment = self.moment.take()?;
        moment.end = at.max(moment.begin);
        Some(moment)
    }

    /// A wait within the cycle is over; `proven`: its kind, if the wake-up shows it.
    pub(crate) fn ends_pause(
        &mut self,
        at: MonotonicNs,
        proven: Option<CauseKind>,
        waker: WaitWaker,
    ) {
        let StreamThreadState::Asleep(part) = self.state else { return };
        let part = proven.unwrap_or(part);
        let took = clamp_to_zero(at - self.from);
        self.add(part, took);
        if let Some(Moment { what: MomentKind::Asleep { part: of, time }, .. }) = &mut self.moment {
            (*of, *time) = (part, took);
        }
        self.cycle.blocks = self.cycle.blocks.saturating_add(1);
        self.cycle.blocked += took;
        match part {
            CauseKind::Lock => self.attribute_lock_wait(took, waker),
            CauseKind::Stopped => {
                self.held_up = self.phase == StreamPhase::Interrupted;
                let stopper =
                    self.stopped_by.take().map(|tid| WaitWaker { by: WokenBy::Task, tid });
                self.note_awaited_waker(took, stopper.unwrap_or(waker));
            }
            _ => self.note_awaited_waker(took, waker),
        }
    }

    /// Attributes the wait to the holder of the lock, or to its waker. Keeps the one with the
    /// longest waits of a cycle.
    fn attribute_lock_wait(&mut self, took: Nanos, waker: WaitWaker) {
        let (tid, evidence) = match self.lent_to.take() {
            Some(holder) => (holder, LockEvidence::PiFutex),
            None if waker.by == WokenBy::Task => (waker.tid, LockEvidence::Waker),
            None => return,
        };
        let name = TaskComm::default();
        match &mut self.cycle.holder {
            Some(held) if (held.tid, held.evidence) == (tid, evidence) => {
                held.time += took;
                held.waits = held.waits.saturating_add(1);
            }
            Some(held) if held.time >= took => {}
            held => {
                *held = Some(LockHolder {
                    tid,
                    name,
                    evidence,
                    in_namespace: false,
                    waits: 1,
                    time: took,
                });
            }
        }
    }

    fn note_awaited_waker(&mut self, took: Nanos, waker: WaitWaker) {
        match &mut self.cycle.awaited {
            Some(one) if (one.tid, one.by) == (waker.tid, waker.by) => one.time += took,
            Some(one) if one.time >= took => {}
            one => {
                let name = TaskComm::default();
                *one = Some(AwaitedWaker { by: waker.by, tid: waker.tid, name, time: took });
            }
        }
    }

    /// The wait is over: its cycle begins. `here` is the CPU that it was woken on, if known.
    pub fn on_release(&mut self, release: Release, here: Option<&StreamCpu>) {
        self.sum = Split::default();
        self.culprits.clear();
        let entered = self.cycle.entered;
        let (due, woken) = (release.due.min(release.woken), release.woken);
        let before = self.before_the_wait();
        self.sum.add(before, entered.min(woken) - due);
        let begin = due.max(entered);
        // It was not yet asleep.
        let asleep = self.slept_at.clamp(begin.min(woken), woken);
        self.sum.add(CauseKind::SystemCall, asleep - begin);
        match here {
            Some(cpu) => cpu.divide_overdue(asleep, woken, &mut self.sum),
            None => self.sum.add(CauseKind::Unknown, woken - asleep),
        }
        let cycle = &mut self.cycle;
        (cycle.release, cycle.woken) = (due, woken);
        (cycle.by, cycle.timer, cycle.waker) = (release.waker.by, release.timer, release.waker.tid);
        if cycle.call.number == WaitingCall::NOT_RECORDED {
            cycle.call.operation = release.waker.by as u16;
            cycle.call.argument =
                if release.waker.by == WokenBy::Timer { release.timer } else { 0 };
        }
        self.phase = StreamPhase::Woken;
    }

    /// The part for the time of a cycle before its waiting call.
    fn before_the_wait(&mut self) -> CauseKind {
        if std::mem::take(&mut self.held_up) { CauseKind::Stopped } else { CauseKind::Overrun }
    }

    /// The awaited event came before the call, which returns at once.
    pub(crate) fn on_early_release(&mut self, release: Release, at: MonotonicNs) {
        self.sum = Split::default();
        self.culprits.clear();
        let entered = self.cycle.entered;
        let due = release.due.min(at);
        let before = self.before_the_wait();
        self.sum.add(before, entered - due);
        self.sum.add(CauseKind::SystemCall, at - due.max(entered));
        let cycle = &mut self.cycle;
        (cycle.release, cycle.woken) = (due, due.max(entered));
        (cycle.by, cycle.timer, cycle.waker) = (release.waker.by, release.timer, release.waker.tid);
        self.phase = StreamPhase::Woken;
    }

    /// Its wake-up was not seen: the timer that it started determines when it was due.
    pub(crate) fn on_unseen_release(&mut self, at: MonotonicNs) {
        let started = self.started.first().map(|(_, expires)| *expires).filter(|due| *due < at);
        let woken_by = if started.is_some() { WokenBy::Sleep } else { WokenBy::Unseen };
        let unseen = Release {
            due: started.unwrap_or(at),
            woken: at,
            waker: WaitWaker { by: woken_by, tid: 0 },
            timer: 0,
        };
        let release = self.early.map_or(unseen, |early| Release { woken: at, ..early });
        self.on_release(release, None);
    }

    /// The awaited event, if it came before the call.
    pub(crate) fn release_before_call(
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
            let own_timers = self.own.iter().filter(|own| result > 0 && own.site == call);
            let expired =
                own_timers.filter_map(|own| Some((own.expired?, WokenBy::Timer, own.timer)));
            expired.min_by_key(|(due, ..)| *due)?
        };
        Some(Release { due, woken: at, waker: WaitWaker { by, tid: 0 }, timer })
    }

    /// The sleep of the current call timed out: in its cycle, or in a wait that turns out not to
    /// begin a cycle.
    pub(crate) fn note_timeout(&mut self) {
        self.in_call.move_part(CauseKind::Waiting, CauseKind::Timeout);
        if self.phase == StreamPhase::Woken && self.cycle.wait_is == CauseKind::Waiting {
            self.cycle.wait_is = CauseKind::Timeout;
        }
    }

    /// The current call is over.
    pub(crate) fn on_call_return(
        &mut self,
        call: WaitingCall,
        entered: MonotonicNs,
        at: MonotonicNs,
    ) {
        if let Some(own) = self.own.iter_mut().find(|own| own.site == call) {
            own.expired = None;
        }
        if self.phase == StreamPhase::Woken {
            self.end_wakeup(at);
        } else {
            self.sum = self.sum.add_parts(&self.in_call);
            let longest = self.cycle.longest_call.map_or(Nanos::ZERO, |(_, time)| time);
            if at - entered > longest {
                self.cycle.longest_call = Some((call.number, at - entered));
            }
        }
        self.call = None;
        self.in_call = Split::default();
    }

    /// The waiting call returns: the time before is the wake-up.
    pub(crate) fn end_wakeup(&mut self, at: MonotonicNs) {
        self.cycle.returned = at.max(self.cycle.release);
        self.cycle.wake = std::mem::take(&mut self.sum);
        complete_parts(&mut self.cycle.wake, self.cycle.returned - self.cycle.release);
        self.cycle.syscalls = 0;
        self.phase = StreamPhase::Open;
    }

    /// Its wait, or the cycle after it. `overdue`: the planned end of its current sleep; `again`:
    /// when it entered its current call, if that can end its cycle.
    pub fn open_cycle(
        &self,
        overdue: Option<MonotonicNs>,
        again: Option<MonotonicNs>,
    ) -> Option<OpenCycle> {
        let cycle = &self.cycle;
        let (release, returned) = match self.phase {
            StreamPhase::NoCycle => return None,
            // No event shows that it was woken.
            StreamPhase::Waiting | StreamPhase::Interrupted => (overdue, None),
            StreamPhase::Woken => (Some(cycle.release), None),
            StreamPhase::Open => (Some(cycle.release), Some(cycle.returned)),
        };
        let is_awake = !matches!(self.state, StreamThreadState::Asleep(_));
        let until = again.filter(|_| returned.is_some() && is_awake);
        let Cycle { call, entered, elsewhere, .. } = *cycle;
        Some(OpenCycle { call, entered, release, returned, until, elsewhere })
    }

    /// Begins the wait for the next cycle in this call. Returns the ended cycle, if one had begun.
    pub(crate) fn next_cycle(
        &mut self,
        call: WaitingCall,
        entered: MonotonicNs,
        within: CauseKind,
    ) -> Option<Cycle> {
        let ended = (self.phase == StreamPhase::Open).then(|| {
            let culprit = self.culprits.iter().max_by_key(|(_, (time, _))| *time);
            let next_entry = entered.max(self.cycle.returned);
            self.cycle.run = std::mem::take(&mut self.sum);
            complete_parts(&mut self.cycle.run, next_entry - self.cycle.returned);
            Cycle {
                cpu: self.cpu,
                again: next_entry,
                culprit: culprit.map(|(tid, (time, behind))| CycleCulprit {
                    tid: *tid,
                    name: TaskComm::default(),
                    time: *time,
                    behind: *behind,
                }),
                ..self.cycle
            }
        });
        let awaited = self.cycle.awaited.filter(|_| self.held_up);
        let next = Cycle { call, wait_is: within, entered, ..blank_cycle(self.cycle.tid, entered) };
        self.cycle = Cycle { awaited, ..next };
        (self.sum, self.in_call) = (Split::default(), Split::default());
        self.culprits.clear();
        (self.moments, self.moment) = (0, None);
        ended
    }
}

/// Attributes the rest of a span to unknown; parts with a larger sum are invalid.
fn complete_parts(parts: &mut Split, whole: Nanos) {
    if parts.total_time() > whole {
        *parts = Split::default();
    }
    parts.add(CauseKind::Unknown, whole - parts.total_time());
}

/// A cycle without known properties.
fn blank_cycle(tid: u32, at: MonotonicNs) -> Cycle {
    Cycle {
        tid,
        cpu: 0,
        release: at,
        entered: at,
        woken: at,
        returned: at,
        again: at,
        call: WaitingCall { number: 0, operation: 0, argument: 0, place: 0 },
        by: WokenBy::Unseen,
        timer: 0,
        waker: 0,
        waker_name: TaskComm::default(),
        wait_is: CauseKind::Waiting,
        reclaimed: Nanos::ZERO,
        faulted: Nanos::ZERO,
        blocks: 0,
        elsewhere: 0,
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
        hidden: 0,
        likely: None,
        wake: Split::default(),
        run: Split::default(),
    }
}
