//! The timeline of one thread: its states and its waits, in lists searched by instant.

use super::{find_covering, switched_to};
use crate::threads::{ThreadSpan, WakeMark, WindowLanes, may_be_in_switch};
use punctual_core::event::{Futex, Group, TaskState, Tid};
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};

/// The maximum time of a page fault, whose end is not recorded (a page that must be zeroed, in a
/// virtual machine whose host has to map it too). A large page may take this for each of its pages.
pub(crate) const FAULT: Nanos = Nanos(20_000);
const FAULT_PER_PAGE: Nanos = Nanos(1_000);
/// If the next event of a thread is a fault on a page this near, it touches consecutive pages: all
/// until then belongs to the fault, up to this duration.
const NEXT: (u64, Nanos) = (64 << 12, Nanos(1_000_000));

/// A thread, with the indices of its events.
#[derive(Default)]
pub struct ThreadTimeline {
    pub tid: Tid,
    /// Its states in order of time; absent for unknown times.
    pub spans: Vec<ThreadSpan>,
    /// Events that show it on a CPU.
    pub runs: Vec<u32>,
    /// Events of its running, waiting and migration.
    pub about: Vec<u32>,
    pub lock_events: Vec<u32>,
    pub fault_events: Vec<u32>,
    pub reclaim_events: Vec<u32>,
    /// The returns of its system calls, with their instants.
    pub returns: Vec<(MonotonicNs, u32)>,
    /// Its waits for locks, earliest first: futexes and locks inside the kernel.
    pub locks: Vec<LockWait>,
    pub reclaims: Vec<(MonotonicNs, MonotonicNs)>,
    pub faults: Vec<(MonotonicNs, MonotonicNs)>,
    /// Context switches to it, if an event bounds them.
    pub switches: Vec<(MonotonicNs, MonotonicNs)>,
    pub wakes: Vec<WakeMark>,
    /// The CPU on which it was enqueued, from an instant on.
    pub enqueued: Vec<(MonotonicNs, u16)>,
    /// The tasks that moved it to another CPU, when, and on which CPU they ran.
    pub moves: Vec<(Tid, MonotonicNs, u16)>,
    /// The tasks that inherited its priority, with instants: the holders of its locks.
    pub lent: Vec<(MonotonicNs, Tid)>,
    /// When its group's quota throttled it, with the task that got its CPU.
    pub held: Vec<(MonotonicNs, MonotonicNs, Tid)>,
    /// Its priority from an instant on.
    prios: Vec<(MonotonicNs, i16)>,
}

/// An operation of the thread on a lock that may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockWait {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    pub kernel: bool,
    /// A futex with priority inheritance: a waiter spins while the holder runs
    /// (kernel/locking/rtmutex.c, rtmutex_spin_on_owner).
    pub pi: bool,
}

impl ThreadTimeline {
    pub fn from_events(
        tid: Tid,
        lanes: &WindowLanes,
        events: &[Event],
        until: MonotonicNs,
    ) -> ThreadTimeline {
        let lane = lanes.threads.get(&tid);
        let mut timeline = ThreadTimeline {
            tid,
            spans: lane.map(|lane| lane.spans.clone()).unwrap_or_default(),
            wakes: lanes.wakes.iter().filter(|wake| wake.task == tid).copied().collect(),
            ..ThreadTimeline::default()
        };
        let mut open = OpenActivities::default();
        for (place, event) in events.iter().enumerate() {
            timeline.add_event(place as u32, event, &mut open);
        }
        open.close_all(until, &mut timeline);
        timeline.locks.sort_by_key(|wait| wait.from);
        timeline
    }

    fn add_event(&mut self, place: u32, event: &Event, open: &mut OpenActivities) {
        let (tid, own) = (self.tid, event.tid == self.tid);
        match event.what {
            EventKind::Waking { task, prio, .. } if task == tid => {
                self.about.push(place);
                open.is_woken = open.left.is_none_or(|state| state == TaskState::Sleeping);
                self.note_priority(event.at, prio);
            }
            EventKind::Wakeup { task, prio, .. } if task == tid => {
                self.about.push(place);
                open.is_woken = open.left.is_none_or(|state| state == TaskState::Sleeping);
                self.enqueued.push((event.at, event.cpu));
                self.note_priority(event.at, prio);
            }
            EventKind::Migrate { task, .. } if task == tid => {
                self.about.push(place);
                self.moves.push((event.tid, event.at, event.cpu));
            }
            EventKind::PiSetPrio { task, new, .. } if task == tid => {
                self.note_priority(event.at, new)
            }
            // For any task: the tasks of a group are unthrottled together.
            EventKind::Unthrottled { .. }
                if open.held.is_some_and(|(_, cpu, _)| cpu == event.cpu) =>
            {
                self.let_go(event.at, open)
            }
            EventKind::Switch { next, next_prio, .. } if next == tid => {
                self.about.push(place);
                self.runs.push(place);
                self.note_priority(event.at, next_prio);
                self.let_go(event.at, open);
                open.on_switch_in(event.at);
                let (from, woken) = (event.at, open.is_woken);
                let leaves = Some(event.tid).filter(|leaves| *leaves != tid);
                open.switch = leaves.map(|leaves| Switching {
                    from,
                    cpu: event.cpu,
                    leaves,
                    woken,
                    to: None,
                });
                return;
            }
            _ => {}
        }
        if event.cpu != Event::NO_CPU {
            self.switches.extend(open.switch_until(event, tid));
        }
        if own && event.cpu != Event::NO_CPU && switched_to(event) != Some(tid) {
            self.runs.push(place);
        }
        if own {
            self.add_own_event(place, event, open);
        }
    }

    fn let_go(&mut self, at: MonotonicNs, open: &mut OpenActivities) {
        self.held.extend(open.held.take().map(|(from, _, instead)| (from, at, instead)));
    }

    /// The task that got its CPU when the quota of its group throttled it.
    pub(crate) fn held_at(&self, at: MonotonicNs) -> Option<Tid> {
        find_covering(&self.held, at, |(from, to, _)| (*from, *to)).map(|(.., instead)| *instead)
    }

    /// Adds an event of the thread itself, by the event's group.
    fn add_own_event(&mut self, place: u32, event: &Event, open: &mut OpenActivities) {
        if open.ends_fault(event) {
            open.goes_on_page_by_page(event);
            self.faults.extend(open.fault_until(event.at));
        }
        match event.what.group() {
            Some(Group::Sched) => self.add_sched_event(place, event, open),
            Some(Group::Futex | Group::Lock) => self.add_lock_event(place, event, open),
            Some(Group::Fault | Group::Page) => self.needs_memory(place, event, open),
            Some(Group::Syscall) if matches!(event.what, EventKind::SyscallExit { .. }) => {
                self.returns.push((event.at, place));
            }
            _ => {}
        }
    }

    fn add_sched_event(&mut self, place: u32, event: &Event, open: &mut OpenActivities) {
        let at = event.at;
        match event.what {
            EventKind::Switch { prev_prio, prev_state, next, .. } if next != self.tid => {
                self.about.push(place);
                self.note_priority(at, prev_prio);
                open.held = (prev_state == TaskState::Throttled).then_some((at, event.cpu, next));
                open.on_switch_out(at, prev_state, self);
                (open.is_woken, open.left) = (false, Some(prev_state));
            }
            EventKind::PiSetPrio { task, .. } => self.lent.push((at, task)),
            _ => {}
        }
    }

    fn add_lock_event(&mut self, place: u32, event: &Event, open: &mut OpenActivities) {
        let at = event.at;
        let wait = |from, kernel, pi| LockWait { from, to: at, kernel, pi };
        match event.what {
            EventKind::FutexEnter { op: op @ (Futex::Wait | Futex::LockPi), .. } => {
                open.futex = Some((at, op == Futex::LockPi));
            }
            EventKind::FutexExit { .. } => {
                self.locks.extend(open.futex.take().map(|(from, pi)| wait(from, false, pi)));
            }
            EventKind::ContentionBegin { .. } => open.kernel = Some(at),
            EventKind::ContentionEnd { .. } => {
                self.locks.extend(open.kernel.take().map(|from| wait(from, true, false)));
            }
            _ => return,
        }
        self.lock_events.push(place);
    }

    fn needs_memory(&mut self, place: u32, event: &Event, open: &mut OpenActivities) {
        let at = event.at;
        match event.what {
            EventKind::ReclaimBegin { .. } => {
                self.reclaim_events.push(place);
                open.reclaim = Some(at);
            }
            EventKind::ReclaimEnd { .. } => {
                self.reclaim_events.push(place);
                self.reclaims.extend(open.reclaim.take().map(|from| (from, at)));
            }
            EventKind::PageFault { address, .. } => {
                self.fault_events.push(place);
                open.fault = Some(Fault { from: at, address, longest: FAULT, away: false });
            }
            EventKind::PageAlloc { order, .. } => open.needs_pages(order),
            _ => {}
        }
    }

    fn note_priority(&mut self, at: MonotonicNs, prio: i16) {
        if self.prios.last().is_none_or(|(_, last)| *last != prio) {
            self.prios.push((at, prio));
        }
    }

    /// The span at this instant.
    pub(crate) fn span_at(&self, at: MonotonicNs) -> Option<&ThreadSpan> {
        find_covering(&self.spans, at, |span| (span.from, span.to))
    }

    /// The wake-up that ends the wait at this instant.
    pub(crate) fn wake_after(&self, at: MonotonicNs) -> Option<&WakeMark> {
        self.wakes.get(self.wakes.partition_point(|wake| wake.at < at))
    }

    /// The return of the system call that it is in at this instant.
    pub(crate) fn return_after(&self, at: MonotonicNs) -> Option<u32> {
        let next = self.returns.partition_point(|(when, _)| *when < at);
        self.returns.get(next).map(|(_, place)| *place)
    }

    /// The CPU on which it is enqueued next.
    pub(crate) fn enqueued_after(&self, at: MonotonicNs) -> Option<u16> {
        let place = self.enqueued.partition_point(|(when, _)| *when < at);
        self.enqueued.get(place).map(|(_, cpu)| *cpu)
    }

    /// The innermost wait for a lock that it was in: a lock inside the kernel is within a futex
    /// call.
    pub(crate) fn lock_wait_at(&self, at: MonotonicNs) -> Option<LockWait> {
        let begun = self.locks.partition_point(|wait| wait.from <= at);
        // At most one of each kind is open, so the nearest two are enough.
        self.locks[..begun].iter().rev().take(NEAREST).find(|wait| at < wait.to).copied()
    }

    /// Whether it was reclaiming memory.
    pub(crate) fn reclaims_at(&self, at: MonotonicNs) -> bool {
        find_covering(&self.reclaims, at, |ends| *ends).is_some()
    }

    /// Whether it was in a page fault.
    pub(crate) fn faults_at(&self, at: MonotonicNs) -> bool {
        find_covering(&self.faults, at, |ends| *ends).is_some()
    }

    /// Whether its CPU was switching to it.
    pub(crate) fn is_in_switch(&self, at: MonotonicNs) -> bool {
        find_covering(&self.switches, at, |ends| *ends).is_some()
    }

    /// Its priority, if an event shows it.
    pub(crate) fn priority_at(&self, at: MonotonicNs) -> Option<i16> {
        let known_count = self.prios.partition_point(|(since, _)| *since <= at);
        // The next recorded priority held before, unless it changed and that event was lost as
        // well.
        self.prios.get(known_count.saturating_sub(1)).map(|(_, prio)| *prio)
    }

    /// Instants at which its priority changed.
    pub(crate) fn changes_of_priority(&self) -> impl Iterator<Item = MonotonicNs> {
        self.prios.iter().map(|(at, _)| *at)
    }

    /// The task that inherited its priority while it waited.
    pub(crate) fn lent_to(&self, from: MonotonicNs, to: MonotonicNs) -> Option<Tid> {
        let first = self.lent.partition_point(|(at, _)| *at < from);
        self.lent.get(first).filter(|(at, tid)| *at <= to && *tid != self.tid).map(|(_, tid)| *tid)
    }
}

/// The number of locks searched for the awaited one.
const NEAREST: usize = 8;

/// The unfinished activities of a thread.
#[derive(Default)]
struct OpenActivities {
    /// The throttling: since when, on which CPU, and the task that got it.
    held: Option<(MonotonicNs, u16, Tid)>,
    futex: Option<(MonotonicNs, bool)>,
    kernel: Option<MonotonicNs>,
    reclaim: Option<MonotonicNs>,
    fault: Option<Fault>,
    switch: Option<Switching>,
    /// It was woken from an interruptible wait since it last had the CPU: the end of its system
    /// call follows.
    is_woken: bool,
    /// The state in which it last left the CPU.
    left: Option<TaskState>,
}

/// A switch to the thread: until its own first event, events of the previous task are part of it
/// (kernel/sched/core.c: context_switch).
#[derive(Clone, Copy)]
struct Switching {
    from: MonotonicNs,
    cpu: u16,
    leaves: Tid,
    woken: bool,
    /// The last event within the switch.
    to: Option<MonotonicNs>,
}

/// A page fault in progress: its start, its maximum duration while the thread runs, and whether the
/// thread waits in it.
#[derive(Clone, Copy)]
struct Fault {
    from: MonotonicNs,
    address: u64,
    longest: Nanos,
    away: bool,
}

impl OpenActivities {
    /// The switch to the thread, if it ends with this event.
    fn switch_until(&mut self, event: &Event, own: Tid) -> Option<(MonotonicNs, MonotonicNs)> {
        let switch = self.switch.as_mut()?;
        if event.cpu != switch.cpu {
            return None;
        }
        if event.tid == switch.leaves && may_be_in_switch(&event.what) {
            switch.to = Some(event.at);
            return None;
        }
        let Switching { from, woken, to, .. } = self.switch.take()?;
        let returns = matches!(event.what, EventKind::SyscallExit { .. }) && event.tid == own;
        let to = to.or((returns && woken).then_some(event.at))?;
        (to > from).then_some((from, to))
    }

    /// Whether the event cannot occur within a page fault of the thread.
    fn ends_fault(&self, event: &Event) -> bool {
        match event.what {
            // A fault only reads; writes within it belong to reclaim.
            EventKind::BlockIssue { write, .. } => {
                write && self.reclaim.is_none() && self.fault.is_some()
            }
            EventKind::PageFault { .. }
            | EventKind::SyscallEnter { .. }
            | EventKind::SyscallExit { .. }
            | EventKind::FutexEnter { .. }
            | EventKind::FutexExit { .. }
            | EventKind::Point { .. }
            | EventKind::Call { .. }
            | EventKind::Sample { .. } => self.fault.is_some(),
            _ => false,
        }
    }

    fn goes_on_page_by_page(&mut self, event: &Event) {
        if let (Some(fault), EventKind::PageFault { address, .. }) = (&mut self.fault, event.what)
            && address.abs_diff(fault.address) <= NEXT.0
        {
            fault.longest = fault.longest.max(NEXT.1);
        }
    }

    /// The fault ended at `at`, or after the maximum duration of a fault.
    fn fault_until(&mut self, at: MonotonicNs) -> Option<(MonotonicNs, MonotonicNs)> {
        let fault = self.fault.take()?;
        let to = if fault.away { at } else { at.min(fault.from + fault.longest) };
        Some((fault.from, to)).filter(|(from, to)| to > from)
    }

    /// Pages allocated in a fault extend its maximum duration.
    fn needs_pages(&mut self, order: u8) {
        if let Some(fault) = &mut self.fault {
            fault.longest += FAULT_PER_PAGE * (1 << order.min(10));
        }
    }

    /// The thread leaves its CPU. A fault in which it waits continues.
    fn on_switch_out(&mut self, at: MonotonicNs, state: TaskState, timeline: &mut ThreadTimeline) {
        match &mut self.fault {
            Some(fault) if at - fault.from <= fault.longest && state == TaskState::Blocked => {
                fault.away = true
            }
            _ => timeline.faults.extend(self.fault_until(at)),
        }
    }

    /// The thread gets a CPU: a fault in which it waited continues.
    fn on_switch_in(&mut self, at: MonotonicNs) {
        if let Some(fault) = self.fault.as_mut().filter(|fault| fault.away) {
            fault.longest = (at - fault.from) + FAULT;
            fault.away = false;
        }
    }

    fn close_all(mut self, until: MonotonicNs, timeline: &mut ThreadTimeline) {
        let wait = |from, kernel, pi| LockWait { from, to: until, kernel, pi };
        timeline.locks.extend(self.futex.map(|(from, pi)| wait(from, false, pi)));
        timeline.locks.extend(self.kernel.map(|from| wait(from, true, false)));
        timeline.reclaims.extend(self.reclaim.map(|from| (from, until)));
        timeline.held.extend(self.held.map(|(from, _, instead)| (from, until, instead)));
        let fault = self.fault_until(until);
        timeline.faults.extend(fault);
    }
}
