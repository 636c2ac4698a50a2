//! The shared state of the contending threads: the sum under the lock, the log of its holders, and
//! the barrier between rounds.

use super::lock::FixedLock;
use crate::stop::Stop;
use punctual_plan::kinds::MutexPlan;
use punctual_sys::clock;
use punctual_sys::futex::{self, FutexScope};
use std::cell::UnsafeCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The last acquisitions that are kept: 16 bytes each.
pub(crate) const LOG: usize = 1 << 16;
/// The rounds whose time is kept: the first ones.
pub const ROUNDS: usize = 1 << 16;
/// The interval at which a wait at the barrier checks for the end.
const POLL_INTERVAL: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// An acquisition: when, and by which thread.
#[derive(Default)]
struct Acquisition {
    at: AtomicI64,
    owner: AtomicU32,
}

/// Changed only by the owner of the lock.
#[repr(align(128))]
struct Protected {
    sum: UnsafeCell<f64>,
    /// The current run of the last owner.
    owner: UnsafeCell<(u32, u64)>,
    longest_run: UnsafeCell<(u32, u64)>,
    /// Acquisitions so far; read by a thread that requests the lock.
    acquisitions: AtomicU64,
}

/// The state shared by all threads.
pub struct Arena {
    pub lock: FixedLock,
    pub threads: usize,
    protected: Protected,
    log: Box<[Acquisition]>,
    arrived: AtomicU32,
    generation: AtomicU32,
    ending: AtomicBool,
    /// The beginning of the current round.
    round_began: AtomicI64,
    /// The end of a common rest; and the time of the last one.
    pub rest_until: AtomicI64,
    rested: AtomicI64,
    rests: bool,
    rounds: AtomicU64,
    /// 0: any number.
    rounds_wanted: AtomicU64,
    round_times: Box<[AtomicI64]>,
    right: AtomicU64,
    error: AtomicU64,
    terms: u64,
    /// Threads that have all the requested samples.
    pub done: AtomicU32,
    /// Barriers at which a thread slept.
    pub barrier_sleeps: AtomicU64,
    stop: Arc<Stop>,
    /// The latest end.
    end_at: AtomicI64,
}

// SAFETY: the cells of `Protected` are touched only by the owner of the lock or, at the end of a
// round, by the last thread at the barrier, while all others wait there.
unsafe impl Sync for Arena {}

/// The size of an arena.
pub struct ArenaSize {
    pub threads: usize,
    pub log: usize,
    pub rounds: u64,
    /// Whether threads must rest from time to time: real-time threads.
    pub rests: bool,
}

impl Arena {
    /// A free lock and an empty log, all of it touched.
    pub fn new(plan: &MutexPlan, size: ArenaSize, stop: Arc<Stop>) -> io::Result<Arena> {
        let round_times = (0..ROUNDS.min(size.log)).map(|_| AtomicI64::new(0)).collect();
        Ok(Arena {
            lock: FixedLock::new(plan.lock)?,
            threads: size.threads,
            protected: Protected {
                sum: UnsafeCell::new(0.0),
                owner: UnsafeCell::new((u32::MAX, 0)),
                longest_run: UnsafeCell::new((0, 0)),
                acquisitions: AtomicU64::new(0),
            },
            log: (0..size.log.max(1)).map(|_| Acquisition::default()).collect(),
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            round_began: AtomicI64::new(0),
            rest_until: AtomicI64::new(0),
            rested: AtomicI64::new(0),
            rests: size.rests,
            rounds: AtomicU64::new(0),
            rounds_wanted: AtomicU64::new(size.rounds),
            round_times,
            right: AtomicU64::new(0),
            error: AtomicU64::new(0),
            terms: plan.terms,
            done: AtomicU32::new(0),
            barrier_sleeps: AtomicU64::new(0),
            stop,
            end_at: AtomicI64::new(i64::MAX),
        })
    }

    /// Acquisitions so far.
    #[inline(always)]
    pub(crate) fn acquisition_count(&self) -> u64 {
        self.protected.acquisitions.load(Ordering::Relaxed)
    }

    /// The work under the lock, by its owner: adds to the sum and writes the log. Returns the
    /// number of the acquisition.
    #[inline(always)]
    pub fn add(&self, value: f64, at: i64, owner: u32) -> u64 {
        let number = self.protected.acquisitions.load(Ordering::Relaxed);
        let entry = &self.log[number as usize % self.log.len()];
        entry.at.store(at, Ordering::Relaxed);
        entry.owner.store(owner, Ordering::Relaxed);
        // SAFETY: the caller owns the lock; no other thread touches these.
        unsafe {
            *self.protected.sum.get() += value;
            let (last, run) = &mut *self.protected.owner.get();
            *run = if *last == owner { *run + 1 } else { 1 };
            *last = owner;
            let longest = &mut *self.protected.longest_run.get();
            if *run > longest.1 {
                *longest = (owner, *run);
            }
        }
        self.protected.acquisitions.store(number + 1, Ordering::Release);
        number
    }

    /// An acquisition by its number, if the log still has it.
    pub(crate) fn log_entry(&self, number: u64) -> Option<(i64, u32)> {
        let entry = &self.log[number as usize % self.log.len()];
        let found = (entry.at.load(Ordering::Acquire), entry.owner.load(Ordering::Acquire));
        // One more may be incomplete.
        (self.acquisition_count() < number + self.log.len() as u64).then_some(found)
    }

    /// The first of the acquisitions from `from` to before `end` that the log has at or after an
    /// instant; acquisitions lost in the log count as earlier. They are in time order.
    pub(crate) fn first_since(&self, from: u64, end: u64, instant: i64) -> u64 {
        let (mut low, mut high) = (from, end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.log_entry(middle) {
                Some((at, _)) if at >= instant => high = middle,
                _ => low = middle + 1,
            }
        }
        low
    }

    /// Resets everything except the log; for an arena that has ended.
    pub(crate) fn reset_rounds(&self) {
        for word in [&self.arrived, &self.done] {
            word.store(0, Ordering::Relaxed);
        }
        self.round_began.store(0, Ordering::Relaxed);
        self.rounds.store(0, Ordering::Relaxed);
        self.ending.store(false, Ordering::Release);
    }

    /// Sets the number of rounds: the first request counts.
    pub fn end_after(&self, rounds: u64) {
        let (first, relaxed) = (0, Ordering::Relaxed);
        let _ = self.rounds_wanted.compare_exchange(first, rounds, relaxed, relaxed);
    }

    pub(crate) fn round_count(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Sets the time of the end.
    pub(crate) fn end_at(&self, at: i64) {
        self.end_at.fetch_min(at, Ordering::Relaxed);
    }

    /// Whether all threads end. `now` may be any recent reading of the clock.
    #[inline(always)]
    pub(crate) fn is_ending(&self, now: i64) -> bool {
        self.ending.load(Ordering::Relaxed)
            || self.stop.is_asked()
            || now >= self.end_at.load(Ordering::Relaxed)
    }

    /// Ends all threads; none waits at the barrier for those that have ended. `calls` counts the
    /// calling thread's system calls, here and in [`Arena::wait_at_barrier`].
    pub(crate) fn end_threads(&self, calls: &mut u64) {
        self.ending.store(true, Ordering::Release);
        self.wake_all(calls);
    }

    fn wake_all(&self, calls: &mut u64) {
        *calls += 1;
        let _ = futex::wake(&self.generation, i32::MAX as u32, FutexScope::Private);
    }

    /// Sleeps for a while, or until the round has changed. False: it has already.
    fn sleep_at_barrier(&self, generation: u32, calls: &mut u64) -> bool {
        *calls += 1;
        let slept =
            futex::wait(&self.generation, generation, FutexScope::Private, Some(&POLL_INTERVAL));
        slept.err().and_then(|why| why.raw_os_error()) != Some(libc::EAGAIN)
    }

    /// Waits for all threads; the last one ends the round. False: all threads end.
    pub(crate) fn wait_at_barrier(&self, calls: &mut u64) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads as u32 {
            self.arrived.store(0, Ordering::Relaxed);
            self.end_round();
            self.generation.fetch_add(1, Ordering::Release);
            if self.threads > 1 {
                self.wake_all(calls);
            }
        } else {
            while self.generation.load(Ordering::Acquire) == generation {
                if self.is_ending(monotonic_now()) {
                    self.end_threads(calls);
                    return false;
                }
                let slept = self.sleep_at_barrier(generation, calls);
                self.barrier_sleeps.fetch_add(slept.into(), Ordering::Relaxed);
            }
        }
        !self.is_ending(monotonic_now())
    }

    /// Called by the last thread at the barrier: all others wait.
    fn end_round(&self) {
        let now = monotonic_now();
        let began = self.round_began.load(Ordering::Relaxed);
        if began != 0 {
            let round = self.rounds.fetch_add(1, Ordering::Relaxed);
            if let Some(place) = self.round_times.get(round as usize) {
                place.store(now - began, Ordering::Relaxed);
            }
            // SAFETY: all others wait at the barrier.
            let sum = unsafe { std::mem::take(&mut *self.protected.sum.get()) };
            let error = (sum - std::f64::consts::PI).abs();
            self.right
                .fetch_add(u64::from(error <= integral_tolerance(self.terms)), Ordering::Relaxed);
            if error > f64::from_bits(self.error.load(Ordering::Relaxed)) {
                self.error.store(error.to_bits(), Ordering::Relaxed);
            }
            let wanted = self.rounds_wanted.load(Ordering::Relaxed);
            if wanted != 0 && round + 1 >= wanted {
                self.ending.store(true, Ordering::Release);
            }
        }
        let mut begin = now;
        // Half a burst: the rest of it may be over before the next meeting.
        if self.rests && now - self.rested.load(Ordering::Relaxed) > 5_000_000 {
            begin = now + 1_000_000;
            self.rest_until.store(begin, Ordering::Relaxed);
            self.rested.store(begin, Ordering::Relaxed);
        }
        self.round_began.store(begin, Ordering::Relaxed);
    }

    /// The number of whole rounds, how many of them gave π, and the largest error.
    pub(crate) fn integral_results(&self) -> (u64, u64, f64) {
        let error = f64::from_bits(self.error.load(Ordering::Relaxed));
        (self.rounds.load(Ordering::Relaxed), self.right.load(Ordering::Relaxed), error)
    }

    /// The times of the first rounds.
    pub(crate) fn round_times(&self) -> Vec<i64> {
        let rounds = self.rounds.load(Ordering::Relaxed) as usize;
        self.round_times.iter().take(rounds).map(|time| time.load(Ordering::Relaxed)).collect()
    }

    /// The thread with the longest run of acquisitions, and its length; when all threads have
    /// ended.
    pub(crate) fn longest_run(&self) -> (u32, u64) {
        // SAFETY: called when no thread adds any more.
        unsafe { *self.protected.longest_run.get() }
    }

    /// The owners of the last acquisitions, the oldest first; when all threads have ended.
    pub(crate) fn last_owners(&self) -> Vec<u32> {
        let end = self.acquisition_count();
        let begin = end.saturating_sub(self.log.len() as u64);
        (begin..end)
            .map(|number| self.log[number as usize % self.log.len()].owner.load(Ordering::Relaxed))
            .collect()
    }
}

/// The maximum error of the midpoint rule: h²/24·(f'(1) − f'(0)) = h²/12 for 4/(1+x²), and the
/// rounding of each addition to a sum of at most 4.
pub(crate) fn integral_tolerance(terms: u64) -> f64 {
    let width = 1.0 / terms as f64;
    1.01 * width * width / 12.0 + terms as f64 * 4.0 * f64::EPSILON
}

#[inline(always)]
pub fn monotonic_now() -> i64 {
    clock::read(libc::CLOCK_MONOTONIC)
}
