//! Sums over the cycles of a thread, for the rules.

use crate::cycles::{Begins, MeasuredCycle};
use hdrhistogram::Histogram;
use punctual_core::cycle::{Cycle, MARKED, TaskComm, WokenBy};
use punctual_core::series::{empty_hdr, record_hdr};
use punctual_core::{CauseKind, MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// The time lost by cycles, with the number of cycles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DelaySum {
    pub cycles: u64,
    pub total: Nanos,
    /// The longest in one cycle.
    pub longest: Nanos,
}

impl DelaySum {
    fn add(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.cycles += 1;
            self.total += time;
            self.longest = self.longest.max(time);
        }
    }
}

/// Statistics of a thread's cycles. Their size does not grow with the number of cycles.
#[derive(Clone, PartialEq, Debug)]
pub struct CycleStatistics {
    pub cycles: u64,
    /// Cycles that made each of the marked calls, in their order.
    pub calls: [u64; MARKED.len()],
    /// Cycles that wrote to each descriptor.
    pub written: BTreeMap<u32, u64>,
    pub with_faults: u64,
    pub faults: u64,
    /// Cycles that slept until a time of CLOCK_REALTIME.
    pub realtime: u64,
    pub without_pi: DelaySum,
    /// Ready while a task of the same or a higher priority ran.
    pub behind: DelaySum,
    /// While its runtime was exhausted.
    pub throttled: DelaySum,
    /// Asleep until woken by these threads, by id: not for locks.
    pub awaited: BTreeMap<u32, (TaskComm, DelaySum)>,
    pub executed: Nanos,
    pub response: Nanos,
    /// The requested durations of sleeps.
    pub slept: Histogram<u64>,
    /// From one release to the next.
    pub periods: Histogram<u64>,
    /// From the first release to the end of the last cycle.
    pub span: Nanos,
    first: Option<MonotonicNs>,
}

impl Default for CycleStatistics {
    fn default() -> CycleStatistics {
        CycleStatistics {
            cycles: 0,
            calls: [0; MARKED.len()],
            written: BTreeMap::new(),
            with_faults: 0,
            faults: 0,
            realtime: 0,
            without_pi: DelaySum::default(),
            behind: DelaySum::default(),
            throttled: DelaySum::default(),
            awaited: BTreeMap::new(),
            executed: Nanos::ZERO,
            response: Nanos::ZERO,
            slept: empty_hdr(),
            periods: empty_hdr(),
            span: Nanos::ZERO,
            first: None,
        }
    }
}

const AWAITED: usize = 64;
/// The clock and the flag of a sleep, as of clock_nanosleep(2).
const CLOCK_REALTIME: u64 = 0;
const TIMER_ABSTIME: u16 = 1;

/// Whether a sleep ends at a time of the settable clock. The kernel counts relative sleeps by
/// CLOCK_MONOTONIC, whichever clock they name.
fn sleeps_until_realtime(cycle: &Cycle) -> bool {
    let call = cycle.call;
    cycle.by == WokenBy::Sleep && (call.operation, call.argument) == (TIMER_ABSTIME, CLOCK_REALTIME)
}

impl CycleStatistics {
    pub fn add(&mut self, measured: &MeasuredCycle) {
        let cycle = &measured.cycle;
        self.cycles += 1;
        for (place, count) in self.calls.iter_mut().enumerate() {
            *count += u64::from(cycle.calls.contains(place));
        }
        for descriptor in cycle.written.iter() {
            *self.written.entry(descriptor).or_default() += 1;
        }
        self.with_faults += u64::from(cycle.faults > 0);
        self.faults += u64::from(cycle.faults);
        self.realtime += u64::from(sleeps_until_realtime(cycle));
        if cycle.slept_without_pi {
            self.without_pi.add(time_in_parts(cycle, &[CauseKind::Lock]));
        }
        self.behind.add(time_in_parts(cycle, &[CauseKind::Preempted, CauseKind::Runqueue]));
        self.throttled.add(time_in_parts(cycle, &[CauseKind::Throttled]));
        if let Some(by) = cycle.awaited.filter(|one| one.by == WokenBy::Task)
            && (self.awaited.len() < AWAITED || self.awaited.contains_key(&by.tid))
        {
            self.awaited.entry(by.tid).or_insert((by.name, DelaySum::default())).1.add(by.time);
        }
        self.executed += cycle.execution_time();
        if measured.begins == Begins::Unknown {
            return;
        }
        self.response += cycle.response_time();
        record_hdr(&mut self.slept, cycle.release - cycle.entered, 1);
        if let Some(period) = measured.period {
            record_hdr(&mut self.periods, period, 1);
        }
        self.span = cycle.again - *self.first.get_or_insert(cycle.release);
    }
}

fn time_in_parts(cycle: &Cycle, parts: &[CauseKind]) -> Nanos {
    let time_of_part = |part: &CauseKind| cycle.wake.time_of(*part) + cycle.run.time_of(*part);
    parts.iter().fold(Nanos::ZERO, |sum, part| sum + time_of_part(part))
}
