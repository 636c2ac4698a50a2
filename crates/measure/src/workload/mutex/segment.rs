//! Two segments after the measured time, at most as long. In the first the kernel counts the calls
//! of futex(2): with a tracepoint enabled, every system call is slower. In the second each thread
//! queries the kernel around every wait for whether it slept.

use super::arena::{Arena, ArenaSize, LOG, ROUNDS, monotonic_now};
use super::{Competitor, RequestObserver, Waits};
use crate::sink::SampleSink;
use punctual_core::Nanos;
use punctual_core::PerfEvent;
use punctual_plan::kinds::MutexPlan;
use punctual_record::perf::{PerfCounter, Whom};
use punctual_sys::futex::{self, FutexScope};
use punctual_sys::usage::Usage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The counted segment has as many rounds as were measured, limited to this time.
const TIME: i64 = 10_000_000_000;
/// The time for which waits are watched.
const WATCHED: i64 = 250_000_000;
/// The maximum time for which the lock is held.
const HOLD: i64 = 100_000;

pub struct MutexSegment {
    pub arena: Arena,
    waits: Arena,
}

/// The counts of one thread.
pub(crate) struct ThreadCounts {
    /// Calls of futex(2) before each round and at the end, without those of the barrier.
    pub futex: Result<Vec<u64>, String>,
    /// Context switches, by perf and by the kernel's own count.
    pub switches: Result<u64, String>,
    pub own_switches: u64,
    /// The kernel's own count of those while the perf counters were enabled and disabled.
    pub around: u64,
    /// The waits in which it slept.
    pub slept: FutexWaits,
}

/// The waits for the lock in which a thread slept, by the kernel's count: it had requested it.
#[derive(Default)]
pub(crate) struct FutexWaits {
    before: Usage,
    /// Those without preemption: no other thread can have taken the lock before the request.
    pub count: u64,
    /// Those with preemption, which are inconclusive.
    pub preempted: u64,
    /// The maximum number of acquisitions by others in one of them.
    pub most_overtaken: u64,
}

impl SampleSink for FutexWaits {
    fn put_sample(&mut self, begin: i64, end: i64, _: u32) {
        std::hint::black_box(end - begin);
    }
}

impl RequestObserver for FutexWaits {
    fn on_request(&mut self) {
        self.before = Usage::of_this_thread();
    }
    fn on_grant(&mut self, meanwhile: u64) {
        self.add_wait(Usage::of_this_thread().usage_since(self.before), meanwhile);
    }
}

impl FutexWaits {
    fn add_wait(&mut self, usage: Usage, meanwhile: u64) {
        match (usage.voluntary_switches, usage.involuntary_switches) {
            (0, _) => {}
            (_, 0) => {
                self.count += 1;
                self.most_overtaken = self.most_overtaken.max(meanwhile);
            }
            _ => self.preempted += 1,
        }
    }
}

/// Reads a counter at the beginning of each round.
struct CountedRounds<'a> {
    futex: Option<&'a PerfCounter>,
    /// Limited to the reserved room.
    calls: Vec<u64>,
    error: Option<io::Error>,
}

impl SampleSink for CountedRounds<'_> {
    fn put_sample(&mut self, begin: i64, end: i64, _: u32) {
        std::hint::black_box(end - begin);
    }
}

impl RequestObserver for CountedRounds<'_> {
    fn on_round(&mut self, rounds: u64, barrier_calls: u64) {
        let Some(futex) = self.futex else { return };
        if rounds as usize != self.calls.len() || self.calls.len() == self.calls.capacity() {
            return;
        }
        match futex.read() {
            Ok(calls) => self.calls.push(calls.saturating_sub(barrier_calls + PROBES)),
            Err(why) => self.error = Some(why),
        }
    }
}

impl MutexSegment {
    pub fn new(plan: &MutexPlan, threads: usize) -> io::Result<MutexSegment> {
        let size = |log| ArenaSize { threads, log, rounds: 0, rests: false };
        Ok(MutexSegment {
            arena: Arena::new(plan, size(1), Arc::default())?,
            waits: Arena::new(plan, size(LOG), Arc::default())?,
        })
    }

    /// Contends again, in the calling thread, while all others do so too.
    pub(super) fn count_thread(&self, who: &Competitor) -> ThreadCounts {
        let futex = PerfCounter::open_tracepoint("syscalls", "sys_enter_futex", Whom::ThisThread);
        let switches = PerfCounter::open_event(&PerfEvent::CONTEXT_SWITCHES, Whom::ThisThread);
        let measured = who.arena.round_count().clamp(1, ROUNDS as u64);
        self.arena.end_after(measured);
        self.arena.end_at(monotonic_now() + TIME);
        let mut waits = Waits::new();
        let calls = Vec::with_capacity(measured as usize + 1);
        let mut counted_rounds = CountedRounds { futex: futex.as_ref().ok(), calls, error: None };
        let mut rounds = who.arena_rounds(&self.arena, &mut waits, &mut counted_rounds);
        (rounds.hold, rounds.limit, rounds.left) = (rounds.hold.min(HOLD), i64::MAX, u64::MAX);
        let own_switches_now = || {
            let usage = Usage::of_this_thread();
            usage.voluntary_switches + usage.involuntary_switches
        };
        let perf_counters = || futex.iter().chain(&switches);
        let outer = own_switches_now();
        perf_counters().for_each(PerfCounter::enable);
        let before = own_switches_now();
        probe_futex();
        rounds.run_rounds(who.plan.terms, who.plan.sums);
        let barrier_calls = rounds.barrier_calls;
        let own_switches = own_switches_now() - before;
        perf_counters().for_each(PerfCounter::disable);
        let around = own_switches_now() - outer - own_switches;
        let (mut calls, error) = (counted_rounds.calls, counted_rounds.error);
        let read = |counter: PerfCounter| counter.read().map_err(|why| why.to_string());
        let futex = futex.and_then(read).and_then(|all| match (all, error) {
            (0, _) => Err("the tracepoint syscalls:sys_enter_futex stayed off".to_owned()),
            (_, Some(why)) => Err(why.to_string()),
            (all, None) => {
                calls.push(all.saturating_sub(barrier_calls + PROBES));
                Ok(calls)
            }
        });
        let switches = switches.and_then(read);
        ThreadCounts { futex, switches, own_switches, around, slept: self.watch_waits(who) }
    }

    /// The same, while the thread's own counts are read around each wait.
    fn watch_waits(&self, who: &Competitor) -> FutexWaits {
        self.waits.end_at(monotonic_now() + WATCHED);
        let (mut waits, mut slept) = (Waits::new(), FutexWaits::default());
        let mut rounds = who.arena_rounds(&self.waits, &mut waits, &mut slept);
        (rounds.hold, rounds.limit, rounds.left) = (rounds.hold.min(HOLD), i64::MAX, u64::MAX);
        rounds.run_rounds(who.plan.terms, who.plan.sums);
        slept
    }

    /// The maximum hold time, if it is shorter than in the measured time.
    pub(crate) fn shorter_hold(hold: Nanos) -> Option<Nanos> {
        (hold.ns() > HOLD).then_some(Nanos(HOLD))
    }
}

/// Calls of [`probe_futex`] that are counted.
const PROBES: u64 = 1;

/// A call of futex(2) that wakes no thread.
fn probe_futex() {
    let _ = futex::wake(&AtomicU32::new(0), 1, FutexScope::Private);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_futex_wait_counts_only_if_the_thread_slept_unpreempted() {
        let usage = |voluntary_switches, involuntary_switches| Usage {
            voluntary_switches,
            involuntary_switches,
            ..Usage::default()
        };
        let mut slept = FutexWaits::default();
        // It did not sleep: preempted before the request, or granted immediately.
        slept.add_wait(usage(0, 1), 1_697);
        slept.add_wait(usage(0, 0), 900);
        slept.add_wait(usage(1, 1), 800);
        slept.add_wait(usage(1, 0), 3);
        slept.add_wait(usage(2, 0), 5);
        assert_eq!((slept.count, slept.preempted, slept.most_overtaken), (2, 1, 5));
    }
}
