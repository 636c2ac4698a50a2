//! Some rounds more after the measured ones, while the kernel counts: with a tracepoint on, every
//! system call is slower.

use super::arena::{Arena, Size, now};
use super::{Competitor, Waits};
use crate::sink::Sink;
use punctual_core::Nanos;
use punctual_core::PerfEvent;
use punctual_plan::kinds::MutexPlan;
use punctual_record::perf::{Counter, Whom};
use punctual_sys::futex::{self, Scope};
use punctual_sys::usage::Usage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Terms that are counted over, and rounds at most, and for how long at most.
const TERMS: u64 = 200_000;
const ROUNDS: u64 = 20;
const TIME: i64 = 250_000_000;
/// How long the lock is held at most.
const HOLD: i64 = 100_000;

/// An arena of its own.
pub struct Segment {
    pub arena: Arena,
}

/// What was counted of one thread.
pub struct Counted {
    /// Calls of futex(2).
    pub futex: Result<u64, String>,
    /// Context switches, by perf and by the kernel's own count.
    pub switches: Result<u64, String>,
    pub own_switches: u64,
    /// The kernel's own count of those while the perf counters were enabled and disabled.
    pub around: u64,
    /// Calls of futex(2) that were made to see whether the counter counts.
    pub probes: u64,
}

struct Discard;

impl Sink for Discard {
    fn put(&mut self, begin: i64, end: i64, _: u32) {
        std::hint::black_box(end - begin);
    }
}

impl Segment {
    pub fn new(plan: &MutexPlan, threads: usize) -> io::Result<Segment> {
        let rounds = (TERMS / plan.terms.max(1)).clamp(1, ROUNDS);
        let size = Size { threads, log: 1, rounds, rests: false };
        Ok(Segment { arena: Arena::new(plan, size, Arc::default())? })
    }

    /// Contends again, in the calling thread, while all others do so too.
    pub(super) fn count(&self, who: &Competitor) -> Counted {
        let futex = Counter::tracepoint("syscalls", "sys_enter_futex", Whom::ThisThread);
        let switches = Counter::of(&PerfEvent::CONTEXT_SWITCHES, Whom::ThisThread);
        self.arena.end_at(now() + TIME);
        let mut waits = Waits::new();
        let mut sink = Discard;
        let mut rounds = who.rounds(&self.arena, &mut waits, &mut sink);
        (rounds.hold, rounds.limit, rounds.left) = (rounds.hold.min(HOLD), i64::MAX, u64::MAX);
        let own = || {
            let usage = Usage::of_this_thread();
            usage.voluntary_switches + usage.involuntary_switches
        };
        let both = || futex.iter().chain(&switches);
        let outer = own();
        both().for_each(Counter::enable);
        let before = own();
        probe();
        rounds.run(who.plan.terms, who.plan.sums);
        let own_switches = own() - before;
        both().for_each(Counter::disable);
        let around = own() - outer - own_switches;
        let read = |counter: Counter| counter.read().map_err(|why| why.to_string());
        let futex = futex.and_then(read).and_then(|calls| match calls {
            0 => Err("the tracepoint syscalls:sys_enter_futex stayed off".to_owned()),
            calls => Ok(calls),
        });
        Counted { futex, switches: switches.and_then(read), own_switches, around, probes: 1 }
    }

    /// Calls of futex(2) by the barrier between rounds.
    pub fn barrier_calls(&self) -> u64 {
        self.arena.barrier_calls.load(Ordering::Relaxed)
    }

    /// How long the lock was held at most, where that is less than in the measured time.
    pub fn shorter_hold(hold: Nanos) -> Option<Nanos> {
        (hold.ns() > HOLD).then_some(Nanos(HOLD))
    }
}

/// A call of futex(2) that wakes nobody.
fn probe() {
    let _ = futex::wake(&AtomicU32::new(0), 1, Scope::Private);
}
