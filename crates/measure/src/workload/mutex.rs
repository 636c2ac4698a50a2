//! `mutex`: each wait for a lock that threads contend for, with its holders meanwhile.
//!
//! The threads compute the integral of 4/(1+x²) from 0 to 1 by midpoints, which is π. With a shared
//! sum every term is added under the lock, with own sums each thread adds once per round. A sample
//! is from directly before the lock is requested to directly after it is granted.

mod arena;
mod lock;
mod notes;
mod segment;

use super::measurement_loop::{LoopClock, Monotonic, Pacing};
use super::{MeasureConfig, Observer, PrepareError, Prepared};
use crate::binned_counter::CounterWriter;
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::{ThreadSettings, ThreadTask};
use arena::{Arena, ArenaSize, LOG, monotonic_now};
use lock::Grant;
use punctual_core::{Fact, Nanos, Notes};
use punctual_plan::kinds::{MutexPlan, Sums};
use punctual_sys::attributes::current_cpu;
use punctual_sys::usage::Usage;
use segment::MutexSegment;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Terms of the warm-up loop before the first sample.
const WARM_UP: u64 = 64;
/// Acquisitions by others that are kept of the longest wait: the first half and the last half.
const KEPT_ACQUISITIONS: usize = 4_096;
/// The length of a real-time thread's rest.
const REST: Nanos = Nanos::MILLI;

pub(super) fn prepare_mutex(
    config: &MeasureConfig,
    plan: &MutexPlan,
) -> Result<Prepared, PrepareError> {
    let needs = |why| PrepareError::Needs(format!("this lock is unavailable: {why}"));
    let threads = config.threads.len();
    let rests = config.threads.iter().any(|thread| thread.scheduling.policy.is_real_time());
    let shared = ArenaSize { threads, log: LOG, rounds: plan.rounds, rests };
    let arena = Arc::new(Arena::new(plan, shared, Arc::clone(&config.stop)).map_err(needs)?);
    let segment = Arc::new(MutexSegment::new(plan, threads).map_err(needs)?);
    let outcomes: Outcomes = Arc::default();
    let (mut tasks, mut sources): (Vec<Box<dyn ThreadTask>>, _) = (Vec::new(), Vec::new());
    for (me, series) in config.series.iter().enumerate() {
        let (writer, source) = sink::binned_counter(series.shape);
        let alone = MutexPlan { terms: WARM_UP, rounds: 2, hold: Nanos::ZERO, ..plan.clone() };
        let size = ArenaSize { threads: 1, log: WARM_UP as usize, rounds: 2, rests: false };
        let only_cpu = config.threads.get(series.thread).and_then(ThreadSettings::only_cpu);
        tasks.push(Box::new(Competitor {
            me: me as u32,
            plan: plan.clone(),
            arena: Arc::clone(&arena),
            warm: Arena::new(&alone, size, Arc::default()).map_err(needs)?,
            segment: Arc::clone(&segment),
            writer: Some(writer),
            series: series.number,
            samples: config.samples.unwrap_or(u64::MAX),
            duration: config.duration,
            limit: config.stop_above.map_or(i64::MAX, Nanos::ns),
            only_cpu,
            rests,
            stop: Arc::clone(&config.stop),
            waits: Waits::new(),
            outcome: ThreadOutcome::default(),
            outcomes: Arc::clone(&outcomes),
        }));
        sources.push(source);
    }
    let names = config.series.iter().map(|series| series.name.clone()).collect();
    let observer =
        Box::new(notes::LockAccount { plan: plan.clone(), arena, segment, names, outcomes });
    Ok(Prepared { tasks, sources, observer })
}

/// The outcomes of all threads, by index.
type Outcomes = Arc<Mutex<Vec<(usize, Waits, ThreadOutcome)>>>;

/// The waits of a thread.
struct Waits {
    acquisitions: u64,
    /// Acquisitions after it had all the requested samples.
    unmeasured: u64,
    sum: i64,
    longest: i64,
    /// Of the longest wait: the time of the request, and the acquisitions by others until the
    /// grant.
    asked_at: i64,
    overtaken: u64,
    /// The holders with their times: the last one before the request, if the log has it, then the
    /// others.
    holders: Vec<(i64, u32)>,
    /// Whether that last one is included.
    has_before: bool,
    /// The number of dropped holders in the middle.
    left_out: u64,
    /// The most acquisitions by others in a wait, since its ticket was drawn; `None` if nothing
    /// shows when the lock was requested.
    most_overtaken: Option<u64>,
}

/// Observes a thread's requests; empty during the measurement.
trait RequestObserver: SampleSink {
    /// A round begins, after this many.
    #[inline(always)]
    fn on_round(&mut self, _rounds: u64, _barrier_calls: u64) {}
    /// The lock is about to be requested.
    #[inline(always)]
    fn on_request(&mut self) {}
    /// The wait is over; others acquired the lock this often meanwhile.
    #[inline(always)]
    fn on_grant(&mut self, _meanwhile: u64) {}
}

impl RequestObserver for CounterWriter {}

/// The outcome of a thread.
#[derive(Default)]
struct ThreadOutcome {
    usage: Usage,
    gave_up: bool,
    counted: Option<segment::ThreadCounts>,
}

impl Waits {
    /// Allocates and touches room for the holders during one wait.
    fn new() -> Waits {
        let mut holders = vec![(1, 1); KEPT_ACQUISITIONS + 3];
        holders.clear();
        Waits { holders, ..Waits::without_holders() }
    }

    fn without_holders() -> Waits {
        let holders = Vec::new();
        Waits {
            acquisitions: 0,
            unmeasured: 0,
            sum: 0,
            longest: -1,
            asked_at: 0,
            overtaken: 0,
            holders,
            has_before: false,
            left_out: 0,
            most_overtaken: None,
        }
    }

    fn reset(&mut self) {
        let holders = std::mem::take(&mut self.holders);
        *self = Waits { holders, ..Waits::without_holders() };
        self.holders.clear();
    }

    /// Accounts a wait that has ended; returns how often others took the lock meanwhile, as far
    /// back as is known: since the ticket was drawn, else since the clock reading before the
    /// request. Copies the holders if it is the longest so far; allocates nothing.
    fn account_wait(&mut self, arena: &Arena, request: LockRequest, grant: Grant) -> u64 {
        let LockRequest { asked, number, begin, end } = request;
        let wait = end - begin;
        self.acquisitions += 1;
        self.sum += wait;
        let first = match grant {
            // Tickets are served in order: those between the owner and this one.
            Grant::Drawn { ahead } => number.saturating_sub(u64::from(ahead.saturating_sub(1))),
            // `asked` was read before the clock.
            _ => arena.first_since(asked, number, begin),
        };
        let overtaken_count = number - first;
        if matches!(grant, Grant::Drawn { .. }) {
            self.most_overtaken = self.most_overtaken.max(Some(overtaken_count));
        }
        if wait <= self.longest {
            return overtaken_count;
        }
        (self.longest, self.asked_at, self.overtaken, self.left_out) =
            (wait, begin, overtaken_count, 0);
        self.holders.clear();
        let before = first.checked_sub(1).and_then(|place| arena.log_entry(place));
        self.has_before = before.is_some();
        self.holders.extend(before);
        let half = (KEPT_ACQUISITIONS / 2) as u64;
        for place in first..number {
            if place - first >= half && number - place > half {
                self.left_out += 1;
                continue;
            }
            match arena.log_entry(place) {
                Some(entry) => self.holders.push(entry),
                None => self.left_out += 1,
            }
        }
        overtaken_count
    }
}

/// A wait that has ended.
struct LockRequest {
    /// Acquisitions at its beginning.
    asked: u64,
    /// The number of its own acquisition.
    number: u64,
    begin: i64,
    end: i64,
}

struct Competitor {
    me: u32,
    plan: MutexPlan,
    arena: Arc<Arena>,
    warm: Arena,
    segment: Arc<MutexSegment>,
    writer: Option<CounterWriter>,
    series: u32,
    samples: u64,
    duration: Option<Nanos>,
    limit: i64,
    only_cpu: Option<u32>,
    rests: bool,
    stop: Arc<Stop>,
    waits: Waits,
    outcome: ThreadOutcome,
    outcomes: Outcomes,
}

/// Runs rounds in an arena.
struct ArenaRounds<'a, S> {
    arena: &'a Arena,
    waits: &'a mut Waits,
    sink: &'a mut S,
    me: u32,
    hold: i64,
    left: u64,
    limit: i64,
    series: u32,
    stop: &'a Stop,
    only_cpu: Option<u32>,
    rests: bool,
    rest_at: i64,
    gave_up: bool,
    barrier_calls: u64,
}

impl<S: RequestObserver> ArenaRounds<'_, S> {
    fn run_rounds(&mut self, terms: u64, sums: Sums) {
        let (arena, width) = (self.arena, 1.0 / terms as f64);
        'rounds: while arena.wait_at_barrier(&mut self.barrier_calls) {
            self.sink.on_round(arena.round_count(), self.barrier_calls);
            let rest = arena.rest_until.load(std::sync::atomic::Ordering::Relaxed);
            if self.rests && monotonic_now() < rest {
                Monotonic.sleep_until(rest);
            }
            self.rest_at = monotonic_now() + Pacing::BURST.ns();
            let mut own_sum = 0.0;
            for k in (u64::from(self.me)..terms).step_by(arena.threads) {
                let x = (k as f64 + 0.5) * width;
                let term = 4.0 / (1.0 + x * x) * width;
                match sums {
                    Sums::Shared if !self.add_under_lock(term) => break 'rounds,
                    Sums::Shared => {}
                    Sums::Own => own_sum += term,
                }
                if sums == Sums::Own
                    && k & 0xffff < arena.threads as u64
                    && arena.is_ending(monotonic_now())
                {
                    break 'rounds;
                }
            }
            if sums == Sums::Own && !self.add_under_lock(own_sum) {
                break;
            }
        }
        arena.end_threads(&mut self.barrier_calls);
    }

    /// Takes the lock, adds, releases it. False: all threads end.
    #[inline(always)]
    fn add_under_lock(&mut self, value: f64) -> bool {
        let arena = self.arena;
        self.sink.on_request();
        let acquisitions_before = arena.acquisition_count();
        let begin = monotonic_now();
        // Spinning threads give up one second after the end: the owner does not get the CPU.
        let grant = arena.lock.lock(|| arena.is_ending(monotonic_now() - 1_000_000_000));
        if grant == Grant::GivenUp {
            self.gave_up = true;
            return false;
        }
        let end = monotonic_now();
        let number = arena.add(value, end, self.me);
        if self.hold > 0 {
            while monotonic_now() - end < self.hold {}
        }
        arena.lock.unlock();
        if self.left > 0 {
            self.sink.put_sample(begin, end, self.only_cpu.unwrap_or_else(current_cpu));
            let overtaken_count = self.waits.account_wait(
                arena,
                LockRequest { asked: acquisitions_before, number, begin, end },
                grant,
            );
            self.sink.on_grant(overtaken_count);
            if end - begin > self.limit {
                self.stop.on_limit_exceeded(self.series);
            }
            self.left -= 1;
            // A thread with all its samples keeps contending until all have theirs.
            if self.left == 0 {
                let done = arena.done.fetch_add(1, std::sync::atomic::Ordering::AcqRel) + 1;
                if done as usize == arena.threads {
                    return false;
                }
            }
        } else {
            self.waits.unmeasured += 1;
        }
        if self.rests && end >= self.rest_at {
            Monotonic.sleep_until(end + REST.ns());
            self.rest_at = monotonic_now() + Pacing::BURST.ns();
        }
        !arena.is_ending(end)
    }
}

impl Competitor {
    fn arena_rounds<'a, S: RequestObserver>(
        &'a self,
        arena: &'a Arena,
        waits: &'a mut Waits,
        sink: &'a mut S,
    ) -> ArenaRounds<'a, S> {
        ArenaRounds {
            arena,
            waits,
            sink,
            me: self.me,
            hold: self.plan.hold.ns(),
            left: self.samples,
            limit: self.limit,
            series: self.series,
            stop: &self.stop,
            only_cpu: self.only_cpu,
            rests: self.rests,
            rest_at: i64::MAX,
            gave_up: false,
            barrier_calls: 0,
        }
    }
}

impl ThreadTask for Competitor {
    fn lock_memory(&self) -> io::Result<()> {
        self.writer.as_ref().map_or(Ok(()), CounterWriter::lock_memory)
    }

    fn warm_up(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        let mut waits = std::mem::replace(&mut self.waits, Waits::without_holders());
        self.warm.reset_rounds();
        let mut rounds = self.arena_rounds(&self.warm, &mut waits, &mut writer);
        (rounds.me, rounds.hold, rounds.limit, rounds.left) = (0, 0, i64::MAX, u64::MAX);
        rounds.run_rounds(WARM_UP, self.plan.sums);
        waits.reset();
        self.waits = waits;
        writer.reset();
        self.writer = Some(writer);
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        // Dropping the writer ends the series.
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.begin_counting();
        if let Some(duration) = self.duration {
            self.arena.end_at(start.saturating_add(duration.ns()));
        }
        while monotonic_now() < start && !self.stop.is_asked() {
            Monotonic.sleep_until(start);
        }
        let mut waits = std::mem::replace(&mut self.waits, Waits::without_holders());
        let before = Usage::of_this_thread();
        let arena = Arc::clone(&self.arena);
        let mut rounds = self.arena_rounds(&arena, &mut waits, &mut writer);
        rounds.run_rounds(self.plan.terms, self.plan.sums);
        self.outcome.gave_up = rounds.gave_up;
        self.outcome.usage = Usage::of_this_thread().usage_since(before);
        self.waits = waits;
        Ok(())
    }

    fn collect_notes(&mut self) -> Notes {
        if !self.outcome.gave_up {
            self.outcome.counted = Some(self.segment.count_thread(self));
        }
        let waits = std::mem::replace(&mut self.waits, Waits::without_holders());
        let outcome = std::mem::take(&mut self.outcome);
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((
            self.me as usize,
            waits,
            outcome,
        ));
        match self.me {
            0 => {
                Notes { clock_cost: Fact::Known(super::clock_cost(&Monotonic)), ..Notes::default() }
            }
            _ => Notes::default(),
        }
    }
}

impl Observer for notes::LockAccount {
    fn on_end(&mut self) -> Notes {
        self.collect_notes()
    }
}
