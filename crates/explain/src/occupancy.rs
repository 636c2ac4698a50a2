//! CPU usage of tasks and interrupts, and the waits of the other threads: a sink of the tracker
//! that sums up.

use crate::threads::{
    CpuSpan, Interrupt, InterruptSpan, MigrationMark, SpanSink, SwitchMark, ThreadSpan,
    ThreadState, TrackerWarnings, WakeMark,
};
use punctual_bundle::intervals::{
    ActivityTimes, Covered, CpuOccupancy, InterruptOccupancy, OCCUPANCY_SCHEMA, OccupancyDocument,
    ProcessOccupancy, RanTask, ThreadOccupancy,
};
use punctual_core::event::{Recorded, TaskState};
use punctual_core::{MonotonicNs, Names, Nanos, Tid};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of threads, and of shares of threads in CPUs, with separate sums; others are
/// counted as `untracked`.
const MAX_TRACKED: usize = 1 << 20;

/// Sums over a recording.
#[derive(Debug, Default)]
pub struct Occupancy {
    threads: HashMap<Tid, OccupyingThread>,
    cpus: BTreeMap<u16, OccupiedCpu>,
    shares: HashMap<(u16, Tid), i64>,
    interrupts: BTreeMap<(Interrupt, u16), ServedOccupancy>,
    untracked: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OccupyingThread {
    times: ActivityTimes,
    longest_ready: Option<(Nanos, MonotonicNs)>,
    /// The current wait for a CPU: a migration does not end it.
    ready: Option<(MonotonicNs, MonotonicNs)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OccupiedCpu {
    busy: i64,
    idle: i64,
    unknown: i64,
    interrupts: i64,
    switches: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ServedOccupancy {
    count: u64,
    own: i64,
    max: i64,
}

impl OccupyingThread {
    fn is_followed(&self) -> bool {
        let ActivityTimes { running, ready, sleeping, blocked, other, unknown, .. } = self.times;
        [running, ready, sleeping, blocked, other, unknown].iter().any(|ns| *ns > 0)
    }
}

impl Occupancy {
    fn track_thread(&mut self, tid: Tid) -> Option<&mut OccupyingThread> {
        if tid == Tid::IDLE {
            return None;
        }
        if self.threads.len() >= MAX_TRACKED && !self.threads.contains_key(&tid) {
            self.untracked += 1;
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    /// The sums of one thread.
    pub fn thread_times(&self, tid: Tid) -> Option<ActivityTimes> {
        self.threads.get(&tid).map(|thread| thread.times)
    }

    /// The sums with their names.
    pub fn to_document(
        &self,
        warnings: TrackerWarnings,
        names: &Names,
        recorded: &Recorded,
    ) -> OccupancyDocument {
        OccupancyDocument {
            schema: OCCUPANCY_SCHEMA.to_owned(),
            covered: Covered {
                began: recorded.began.ns(),
                ended: recorded.ended.ns(),
                lost: recorded.lost_count(),
                untracked: self.untracked.saturating_add(warnings.untracked),
            },
            contradictions: warnings.contradictions,
            cpus: self.cpu_occupancies(names),
            processes: self.process_occupancies(names),
            interrupts: self.interrupt_occupancies(names),
            findings: recorded.findings.clone(),
        }
    }

    fn cpu_occupancies(&self, names: &Names) -> Vec<CpuOccupancy> {
        let mut tasks: BTreeMap<u16, Vec<RanTask>> = BTreeMap::new();
        for ((cpu, tid), ns) in &self.shares {
            let ran = RanTask {
                cpu: *cpu,
                kind: "task".into(),
                who: names.task_name(*tid),
                tid: Some(tid.0),
                ns: *ns,
            };
            tasks.entry(*cpu).or_default().push(ran);
        }
        let cpu = |(cpu, sums): (&u16, &OccupiedCpu)| {
            let mut tasks = tasks.remove(cpu).unwrap_or_default();
            tasks.sort_by_key(|ran| (-ran.ns, ran.tid));
            let OccupiedCpu { busy, idle, unknown, interrupts, switches } = *sums;
            CpuOccupancy { cpu: *cpu, busy, idle, unknown, interrupts, switches, tasks }
        };
        self.cpus.iter().map(cpu).collect()
    }

    fn process_occupancies(&self, names: &Names) -> Vec<ProcessOccupancy> {
        let mut processes: BTreeMap<Option<u32>, Vec<ThreadOccupancy>> = BTreeMap::new();
        // In a recording limited to some tasks, others are only seen in passing and are unknown.
        for (tid, thread) in self.threads.iter().filter(|(_, thread)| thread.is_followed()) {
            let process =
                names.tasks.get(tid).map(|task| task.process).filter(|process| *process != 0);
            processes.entry(process).or_default().push(ThreadOccupancy {
                tid: tid.0,
                name: names.task_name(*tid),
                times: thread.times,
                longest_ready: thread.longest_ready.map(|(span, _)| span.ns()),
                longest_ready_at: thread.longest_ready.map(|(_, at)| at.ns()),
            });
        }
        let process = |(process, mut threads): (Option<u32>, Vec<ThreadOccupancy>)| {
            threads.sort_by_key(|thread| (-thread.times.running, thread.tid));
            let times =
                threads.iter().fold(ActivityTimes::default(), |sum, thread| add(sum, thread.times));
            let leader =
                names.tasks.get(&Tid(process.unwrap_or_default())).filter(|_| process.is_some());
            let first =
                threads.iter().min_by_key(|thread| thread.tid).map(|thread| thread.name.clone());
            let name = leader.map(|leader| leader.comm.clone()).or(first).unwrap_or_default();
            ProcessOccupancy { process, name, times, threads }
        };
        let mut occupancies: Vec<ProcessOccupancy> = processes.into_iter().map(process).collect();
        occupancies.sort_by_key(|process| (-process.times.running, process.process));
        occupancies
    }

    fn interrupt_occupancies(&self, names: &Names) -> Vec<InterruptOccupancy> {
        let one = |((what, cpu), served): (&(Interrupt, u16), &ServedOccupancy)| {
            let (kind, name) = interrupt_name(*what, names);
            let ServedOccupancy { count, own, max } = *served;
            InterruptOccupancy { kind: kind.into(), name, cpu: *cpu, count, ns: own, max }
        };
        let mut occupancies: Vec<InterruptOccupancy> = self.interrupts.iter().map(one).collect();
        occupancies.sort_by_key(|interrupt| -interrupt.ns);
        occupancies
    }
}

/// The kind and the name of an interrupt.
pub(crate) fn interrupt_name(what: Interrupt, names: &Names) -> (&'static str, String) {
    match what {
        Interrupt::Hard(irq) => ("irq", names.irq_name(irq)),
        Interrupt::Vector(vector) => ("vector", names.vector_name(vector)),
        Interrupt::Soft(vector) => ("softirq", names.softirq_name(vector)),
    }
}

fn add(sum: ActivityTimes, more: ActivityTimes) -> ActivityTimes {
    ActivityTimes {
        running: sum.running.saturating_add(more.running),
        interrupted: sum.interrupted.saturating_add(more.interrupted),
        ready: sum.ready.saturating_add(more.ready),
        waking: sum.waking.saturating_add(more.waking),
        sleeping: sum.sleeping.saturating_add(more.sleeping),
        blocked: sum.blocked.saturating_add(more.blocked),
        other: sum.other.saturating_add(more.other),
        unknown: sum.unknown.saturating_add(more.unknown),
        voluntary: sum.voluntary + more.voluntary,
        involuntary: sum.involuntary + more.involuntary,
        migrations: sum.migrations + more.migrations,
        wakeups: sum.wakeups + more.wakeups,
    }
}

impl SpanSink for Occupancy {
    fn on_thread_span(&mut self, span: &ThreadSpan) {
        let Some(thread) = self.track_thread(span.tid) else { return };
        let ns = (span.to - span.from).ns();
        let times = &mut thread.times;
        match span.doing {
            ThreadState::Running { .. } => times.running += ns,
            ThreadState::Ready { .. } => times.ready += ns,
            ThreadState::Waking => {
                times.waking += ns;
                times.ready += ns;
            }
            ThreadState::Sleeping => times.sleeping += ns,
            ThreadState::Blocked | ThreadState::LockWait => times.blocked += ns,
            ThreadState::Stopped | ThreadState::Other => times.other += ns,
            ThreadState::Unknown => times.unknown += ns,
        }
        if matches!(span.doing, ThreadState::Ready { .. } | ThreadState::Waking) {
            let began =
                thread.ready.filter(|(_, to)| *to == span.from).map_or(span.from, |(from, _)| from);
            thread.ready = Some((began, span.to));
            let waited = span.to - began;
            if thread.longest_ready.is_none_or(|(longest, _)| waited > longest) {
                thread.longest_ready = Some((waited, began));
            }
        }
    }

    fn on_cpu_span(&mut self, span: &CpuSpan) {
        let ns = (span.to - span.from).ns();
        let cpu = self.cpus.entry(span.cpu).or_default();
        match span.tid {
            None => cpu.unknown += ns,
            Some(Tid::IDLE) => cpu.idle += ns,
            Some(tid) => {
                cpu.busy += ns;
                let key = (span.cpu, tid);
                if self.shares.len() < MAX_TRACKED || self.shares.contains_key(&key) {
                    *self.shares.entry(key).or_default() += ns;
                } else {
                    self.untracked += 1;
                }
            }
        }
    }

    fn on_interrupt_span(&mut self, span: &InterruptSpan) {
        let served = self.interrupts.entry((span.what, span.cpu)).or_default();
        served.count += u64::from(span.whole);
        served.own += span.own.ns();
        let whole = (span.to - span.from).ns();
        served.max = served.max.max(whole);
        if span.depth == 0 {
            self.cpus.entry(span.cpu).or_default().interrupts += whole;
            if let Some(thread) = self.track_thread(span.tid) {
                thread.times.interrupted += whole;
            }
        }
    }

    fn on_switch(&mut self, mark: &SwitchMark) {
        self.cpus.entry(mark.cpu).or_default().switches += 1;
        let Some(thread) = self.track_thread(mark.prev) else { return };
        match mark.state {
            // As the kernel counts: a task that yields was still runnable (__schedule in
            // kernel/sched/core.c).
            TaskState::Preempted | TaskState::Yielded | TaskState::Throttled => {
                thread.times.involuntary += 1
            }
            _ => thread.times.voluntary += 1,
        }
    }

    fn on_migration(&mut self, mark: &MigrationMark) {
        if let Some(thread) = self.track_thread(mark.tid) {
            thread.times.migrations += 1;
        }
    }

    fn on_wake(&mut self, mark: &WakeMark) {
        if let Some(thread) = self.track_thread(mark.task) {
            thread.times.wakeups += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::Gaps;
    use crate::threads::{Coverage, Tracker};
    use punctual_testing::{events, parse_names};

    #[test]
    fn occupancy_adds_up_the_recorded_events() {
        let events = events!(
            "5 cpu0 7 irq_entry 5
            8 irq_exit 5
            10 switch S -> 0
            20 waking 7; 22 wakeup 7; 23 migrate 7 cpu1 -> cpu0
            30 switch R -> 7
            50 switch R -> 8
            60 switch D -> 7"
        );
        let coverage = Coverage::from_span(MonotonicNs(0), MonotonicNs(100));
        let mut tracker = Tracker::new(coverage, Gaps::default(), Occupancy::default());
        events.iter().for_each(|event| tracker.push(event));
        let (occupancy, warnings) = tracker.finish();
        let times = occupancy.thread_times(Tid(7)).unwrap();
        assert_eq!(
            times,
            ActivityTimes {
                running: 70,
                interrupted: 3,
                ready: 20,
                waking: 2,
                sleeping: 10,
                voluntary: 1,
                involuntary: 1,
                migrations: 1,
                wakeups: 1,
                ..ActivityTimes::default()
            }
        );
        let names = parse_names("task 7 in 7 main; task 8 in 7 other");
        let recorded = Recorded {
            ended: MonotonicNs(100),
            ..Recorded::without_events("none", MonotonicNs(0))
        };
        let document = occupancy.to_document(warnings, &names, &recorded);
        let cpu = &document.cpus[0];
        assert_eq!(
            (cpu.busy, cpu.idle, cpu.unknown, cpu.interrupts, cpu.switches),
            (80, 20, 0, 3, 4)
        );
        assert_eq!(document.processes[0].times.running, 80);
        assert_eq!(document.processes[0].threads[0].longest_ready, Some(10));
        assert_eq!((document.interrupts[0].name.as_str(), document.interrupts[0].ns), ("irq 5", 3));
    }
}
