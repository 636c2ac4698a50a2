//! `switch`: from the last instruction of one task to the first of the next, in a ring of tasks of
//! which one runs at a time.
//!
//! The measuring thread is the first task, the leader. Each task stores timestamps in shared memory
//! when its turn comes and before it hands over; the leader takes the samples of a round when its
//! turn comes again, outside of every sample. Working sets alternate after each burst.

mod counts;
mod handoff;
mod members;
mod places;
mod shared_memory;
mod walks;
mod watch;

use super::measurement_loop::{LoopClock, Monotonic, Pacing};
use super::{MeasureConfig, NoObserver, Observer, PrepareError, Prepared};
use crate::binned_counter::CounterWriter;
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use handoff::HandoffMechanism;
use members::{Members, SwitchRing, monotonic_now};
use punctual_core::{CpuSet, Nanos, Notes};
use punctual_host::environment::Topology;
use punctual_host::files::Root;
use punctual_plan::kinds::{Distance, SwitchPlan, Tasks};
use punctual_sys::attributes;
use shared_memory::{SwitchMemory, TurnMode};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use walks::Walks;

/// Rounds of warm-up before the first sample.
const WARM_UP: u64 = 8;
/// The pairs of walks through a working set that are kept: the first ones.
const KEPT_WALKS: usize = 4_096;
/// After this many rounds a member walks through its set a second time: between the measured
/// switches, so that both walks see the same frequency, caches and neighbours.
const PAIR_EVERY: u64 = 4;

pub(super) fn prepare_switch(
    config: &MeasureConfig,
    plan: &SwitchPlan,
) -> Result<Prepared, PrepareError> {
    let needs = PrepareError::Needs;
    let thread = config.threads.first().ok_or_else(|| needs("it has no thread".to_owned()))?;
    let tasks = plan.ring as usize;
    let processes = plan.tasks == Tasks::Processes;
    let topology = if plan.distance == Distance::SameCpu {
        Topology::default()
    } else {
        Topology::read(&Root::from_system())
    };
    let places =
        places::choose_cpus(&topology, &thread.cpus, plan.distance, tasks).map_err(needs)?;
    let handoff = HandoffMechanism::open(plan.mechanism, tasks, processes).map_err(|why| {
        let needed_count = HandoffMechanism::descriptor_count(plan.mechanism, tasks);
        needs(format!(
            "a ring of {tasks} tasks needs {needed_count} file descriptors: {why} (raise `ulimit \
             -n`)"
        ))
    })?;
    let largest = plan.working_set.iter().map(|size| size.get() as usize).max().unwrap_or_default();
    let shared_memory = SwitchMemory::new(tasks, largest, plan.walk)
        .map_err(|why| needs(format!("memory for {tasks} working sets of {largest} B: {why}")))?;
    let scheduling = thread.scheduling;
    let places = places.into_iter().map(CpuSet::from_cpu).collect();
    let ring = Arc::new(SwitchRing { shared_memory, handoff, places, scheduling });
    let (mut lanes, mut writers, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for (series, size) in config.series.iter().zip(&plan.working_set) {
        let (writer, source) = sink::binned_counter(series.shape);
        let (number, left) = (series.number, config.samples.unwrap_or(u64::MAX));
        // Touched, and emptied again.
        let mut walks = vec![Walks { after: 1, alone: 1 }; KEPT_WALKS];
        walks.clear();
        let size = size.get() as usize;
        lanes.push(SizeLane { series: number, size, left, walks, sum: 0, taken: 0 });
        writers.push(writer);
        sources.push(source);
    }
    let observer: Box<dyn Observer> =
        if processes { Box::new(watch::SwitchWatch::new(&ring)) } else { Box::new(NoObserver) };
    let leader = Leader {
        ring,
        members: None,
        processes,
        lanes,
        writers,
        rest: plan.rest,
        duration: config.duration,
        limit: config.stop_above.map_or(i64::MAX, Nanos::ns),
        stop: Arc::clone(&config.stop),
        book: counts::SwitchCounts::new(tasks),
    };
    Ok(Prepared { tasks: vec![Box::new(leader)], sources, observer })
}

/// A size of the working set, with the series of its switches.
struct SizeLane {
    series: u32,
    size: usize,
    /// Remaining samples.
    left: u64,
    /// The times of a member's walks through its working set, after a switch and without a task
    /// between.
    walks: Vec<Walks>,
    sum: i64,
    taken: u64,
}

/// The first task of the ring.
struct Leader {
    // Before `ring`: members end before the objects that they wait on are dropped.
    members: Option<Members>,
    ring: Arc<SwitchRing>,
    processes: bool,
    lanes: Vec<SizeLane>,
    writers: Vec<CounterWriter>,
    rest: Nanos,
    duration: Option<Nanos>,
    limit: i64,
    stop: Arc<Stop>,
    book: counts::SwitchCounts,
}

/// The turn will not come back.
struct Broken;

impl SwitchRing {
    /// Hands over to the first member and waits until the turn returns.
    #[inline(always)]
    fn lead_round(&self) -> Result<(), Broken> {
        let SwitchRing { shared_memory, handoff, .. } = self;
        let slot = shared_memory.task_slot(0);
        shared_memory.walk_working_set(0);
        handoff.await_departure(shared_memory, 1);
        slot.left.store(monotonic_now(), Ordering::Release);
        handoff.hand_over(shared_memory, 1);
        let whole = handoff.wait_for_turn(shared_memory, 0);
        slot.arrived.store(monotonic_now(), Ordering::Release);
        if whole { Ok(()) } else { Err(Broken) }
    }

    /// A round in another mode.
    fn round_of(&self, mode: TurnMode) -> Result<(), Broken> {
        self.shared_memory.set_mode(mode);
        let outcome = self.lead_round();
        self.shared_memory.set_mode(TurnMode::Run);
        outcome
    }

    /// Unparks the waiting members, in the order of the ring, which becomes their order in the run
    /// queue. Returns how often the leader slept meanwhile.
    fn unpark_members(&self, stop: &Stop) -> Result<u64, Broken> {
        let SwitchRing { shared_memory, handoff, .. } = self;
        let mut slept = 0;
        if !handoff.is_parking_needed() || !shared_memory.is_parking() {
            return Ok(slept);
        }
        while !shared_memory
            .task_slots()
            .skip(1)
            .all(|slot| slot.parked.load(Ordering::Acquire) == 1)
        {
            if stop.is_asked() || shared_memory.is_broken() {
                return Err(Broken);
            }
            Monotonic.sleep_until(monotonic_now() + 50_000);
            slept += 1;
        }
        shared_memory.set_turn(0);
        shared_memory.set_parking(false);
        shared_memory.task_slots().skip(1).for_each(|slot| handoff.wake_task(slot));
        Ok(slept)
    }
}

impl Leader {
    /// Sleeps while it holds the turn, so that all other tasks get the CPU.
    fn sleep_with_turn(&mut self, until: i64) -> Result<(), Broken> {
        self.ring.shared_memory.set_parking(true);
        self.book.rests += 1;
        Monotonic.sleep_until(until);
        self.wake_all()
    }

    fn wake_all(&mut self) -> Result<(), Broken> {
        self.book.rests += self.ring.unpark_members(&self.stop)?;
        if self.ring.handoff.is_parking_needed() { self.spare_round(TurnMode::Run) } else { Ok(()) }
    }

    /// A round that is not measured.
    fn spare_round(&mut self, mode: TurnMode) -> Result<(), Broken> {
        self.book.spare += self.ring.shared_memory.task_count() as u64;
        self.ring.round_of(mode)
    }

    /// A round in which each task reports how often it was switched out.
    fn count_switches(&mut self) -> Result<(), Broken> {
        self.spare_round(TurnMode::Count)?;
        self.ring.shared_memory.task_slot(0).publish_switches();
        Ok(())
    }

    /// Takes the samples of the round that has just ended; returns the time of its end.
    #[inline(always)]
    fn collect_round(&mut self, lane: usize, sink: &mut impl SampleSink) -> i64 {
        let Leader { ring, lanes, limit, stop, book, .. } = self;
        let lane = &mut lanes[lane];
        let tasks = ring.shared_memory.task_count();
        book.rounds += 1;
        let mut end = 0;
        for task in 0..tasks {
            let (from, to) =
                (ring.shared_memory.task_slot(task), ring.shared_memory.task_slot(task + 1));
            let begin = from.left.load(Ordering::Acquire);
            end = to.arrived.load(Ordering::Acquire);
            if lane.left == 0 {
                continue;
            }
            let cpu = ring.places[(task + 1) % tasks].first_cpu().unwrap_or_default() as u32;
            sink.put_sample(begin, end, cpu);
            lane.left -= 1;
            lane.taken += 1;
            lane.sum += end - begin;
            if end - begin > *limit {
                stop.on_limit_exceeded(lane.series);
            }
        }
        end
    }

    /// Runs bursts of each working set in turn, until an end condition.
    fn run_bursts(&mut self, start: i64, writers: &mut [CounterWriter]) -> Result<(), Broken> {
        let end_at = self.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        let mut size = usize::MAX;
        while self.lanes.iter().any(|lane| lane.left > 0) {
            for (lane, writer) in writers.iter_mut().enumerate() {
                if self.lanes[lane].left == 0 {
                    continue;
                }
                if size != self.lanes[lane].size {
                    size = self.lanes[lane].size;
                    self.begin_size(lane)?;
                }
                let mut now = monotonic_now();
                let burst_end = now + Pacing::BURST.ns();
                while self.lanes[lane].left > 0
                    && now < burst_end
                    && now < end_at
                    && !self.stop.is_asked()
                {
                    self.ring.lead_round()?;
                    now = self.collect_round(lane, writer);
                    if size > 0 && self.book.rounds.is_multiple_of(PAIR_EVERY) {
                        self.walk_twice(lane)?;
                    }
                }
                if now >= end_at || self.stop.is_asked() {
                    return Ok(());
                }
                if self.rest > Nanos::ZERO {
                    self.sleep_with_turn(now + self.rest.ns())?;
                }
            }
        }
        Ok(())
    }

    /// Switches to another working set: a round brings the sets into the caches.
    fn begin_size(&mut self, lane: usize) -> Result<(), Broken> {
        self.ring.shared_memory.set_size(self.lanes[lane].size);
        self.spare_round(TurnMode::Run)
    }

    /// A round that is not measured, in which a member walks through its set twice.
    fn walk_twice(&mut self, lane: usize) -> Result<(), Broken> {
        let walks = &self.lanes[lane].walks;
        if walks.len() == walks.capacity() {
            return Ok(());
        }
        self.spare_round(TurnMode::Twice)?;
        let member = self.ring.shared_memory.task_slot(1);
        let after = member.after.load(Ordering::Acquire);
        let alone = member.alone.load(Ordering::Relaxed);
        self.lanes[lane].walks.push(Walks { after, alone });
        Ok(())
    }

    fn check_broken(&self) -> io::Result<()> {
        if self.stop.is_asked() && !self.ring.shared_memory.is_broken() {
            return Ok(());
        }
        Err(io::Error::other("a process of the ring has ended: was it killed?"))
    }
}

impl ThreadTask for Leader {
    fn prepare(&mut self) -> Result<(), String> {
        let ring = &self.ring;
        ring.publish_ids(0);
        if ring.scheduling.deadline.is_none() {
            let describe_error =
                |why| format!("the ring cannot run on CPU {}: {why}", ring.places[0]);
            attributes::set_affinity(0, &ring.places[0]).map_err(describe_error)?;
        }
        ring.shared_memory.touch_working_set(0);
        self.members = Some(Members::start(ring, self.processes)?);
        Ok(())
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.writers.iter().try_for_each(CounterWriter::lock_memory)
    }

    fn warm_up(&mut self) {
        let mut writers = std::mem::take(&mut self.writers);
        let scratch = Stop::default();
        let whole = self.ring.unpark_members(&scratch).is_ok();
        for (lane, writer) in writers.iter_mut().enumerate().filter(|_| whole) {
            let SizeLane { size, left, .. } = self.lanes[lane];
            self.ring.shared_memory.set_size(size);
            let rounds = if size > 1 << 16 || self.ring.shared_memory.task_count() > 64 {
                1
            } else {
                WARM_UP
            };
            let stop = std::mem::take(&mut self.stop);
            for _ in 0..rounds {
                if self.ring.lead_round().is_err() {
                    break;
                }
                self.collect_round(lane, writer);
            }
            self.stop = stop;
            writer.reset();
            let lane = &mut self.lanes[lane];
            lane.walks.clear();
            (lane.left, lane.sum, lane.taken) = (left, 0, 0);
        }
        // Also warm up the other code of the measured time. An error here recurs in the measured
        // loop, which reports it.
        if whole {
            let _ = self.count_switches();
            let _ = self.sleep_with_turn(monotonic_now() + 20_000);
        }
        self.ring.shared_memory.set_parking(true);
        self.writers = writers;
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        // Dropping the writers ends the series.
        let mut writers = std::mem::take(&mut self.writers);
        writers.iter_mut().for_each(CounterWriter::begin_counting);
        while monotonic_now() < start && !self.stop.is_asked() {
            Monotonic.sleep_until(start);
        }
        self.ring.shared_memory.set_size(0);
        if self.wake_all().is_err() {
            return self.check_broken();
        }
        if self.count_switches().is_err() {
            return self.check_broken();
        }
        self.book.begin_counting(&self.ring.shared_memory);
        if self.run_bursts(start, &mut writers).is_err() {
            return self.check_broken();
        }
        self.ring.shared_memory.set_size(0);
        if self.count_switches().is_err() {
            return self.check_broken();
        }
        self.book.end_counting(&self.ring.shared_memory);
        Ok(())
    }

    fn own_yields(&self) -> u64 {
        let yields = self.ring.handoff.is_yielding();
        if yields { self.book.leaders_yields(self.ring.shared_memory.task_count()) } else { 0 }
    }

    fn collect_notes(&mut self) -> Notes {
        let notes = counts::collect_notes(self);
        // Drops the rest of the ring.
        self.members = None;
        notes
    }
}
