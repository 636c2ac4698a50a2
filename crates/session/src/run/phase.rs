//! One phase: prepares threads, starts loads, measures, ends loads.

mod entries;
mod measuring;
mod programs;
mod punctuality;

use measuring::Measuring;
use punctuality::{Punctuality, RoundPart, ThreadTimes};

use super::companion::Companion;
use super::cooling::Cooling;
use super::counters;
use super::entries::{self as cpu_entries, EntriesRun};
use super::evidence::{self, Collecting};
use super::mapping;
use super::measure::{MeasureRun, PartitionPlacement};
use super::phase_run::{LoadCounts, PhaseRun};
use super::program::ProgramRun;
use super::relief::Reliever;
use super::series::{self, SeriesRun};
use super::state::Run;
use super::wall_clock::WallClock;
use super::watcher::{RunWatcher, Snapshot};
use super::work;
use crate::cycles;
use crate::engine::{Begun, Engine, Schedule, SystemClock};
use crate::series_store::SeriesFiles;
use punctual_bundle::lines;
use punctual_bundle::load::CpuLoad;
use punctual_bundle::meta::{DETAIL_KEPT, LoadMeta, NEWEST};
use punctual_bundle::{HowEnded, Outcome, PhaseMeta, ProgramEnd, SeriesMeta};
use punctual_core::format::count_with_noun;
use punctual_core::{Clock, CpuSet, Fact, MonotonicNs, Nanos};
use punctual_host::cpu_time::CpuTimes;
use punctual_host::files::Root;
use punctual_host::heat::Sensors;
use punctual_measure::load::{GuardEvent, LoadExitAction};
use punctual_measure::preparation;
use punctual_measure::sink::SampleSource;
use punctual_measure::stop::Stop;
use punctual_plan::limits::MAX_SEED_DELAY;
use punctual_plan::{MeasurePlan, PhasePlan, Temperature, Workload};
use punctual_sys::pace::{self, SampleTimes};
use punctual_sys::{attributes, clock};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time between two drains of the rings, far below their capacity; also the maximum delay of an
/// interrupt by the user.
const TICK: Nanos = Nanos::from_millis(100);
/// Time from the last preparation to the first expiry.
const LEAD: Nanos = Nanos::from_millis(30);
/// The time within which a load that cannot be started reports it.
const LOAD_START: Nanos = Nanos::from_secs(5);
/// The time after which a measuring thread that does not see its stop is stuck; the run then fails
/// instead of hanging.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(10);

pub(crate) enum PhaseError {
    /// A resource of a measure is missing: nothing of the phase was started.
    Missing(String),
    Failed(String),
}

impl From<String> for PhaseError {
    fn from(why: String) -> PhaseError {
        PhaseError::Failed(why)
    }
}

/// Runs the phases in order until one ends the run. The error names the missing resource of the
/// first one: nothing was started then.
pub(crate) fn run_all(
    run: &mut Run,
    watcher: &mut dyn RunWatcher,
) -> Result<(Vec<PhaseRun>, Outcome), String> {
    let mut done = Vec::new();
    let plan = run.plan;
    let sensors =
        plan.cool_below.map(|_| Sensors::find_sensors(&Root::from_system(), &CpuSet::new()));
    for (index, phase) in plan.phases.iter().enumerate() {
        if let (Some(below), Some(sensors)) = (plan.cool_below, &sensors) {
            cool_down(run, watcher, phase, below, sensors);
        }
        let mut current = PhaseRun {
            meta: phase_meta(phase, run.attached_program().is_some()),
            measures: Vec::new(),
            series: Vec::new(),
            programs: Vec::new(),
            entries: Vec::new(),
        };
        let interrupts = run.interrupts.clone();
        let engine = Engine { clock: &SystemClock, end_requested: &|| interrupts.end_requested() };
        let controller = Controller::new(run, index, phase, watcher);
        let ended = engine.run(&mut Measuring { controller, current: &mut current });
        done.push(current);
        match ended {
            Ok(None) => {}
            Ok(Some(outcome)) => return Ok((done, outcome)),
            Err(PhaseError::Missing(why)) if index == 0 => return Err(why),
            Err(PhaseError::Missing(why) | PhaseError::Failed(why)) => {
                return Ok((done, Outcome::Failed { why }));
            }
        }
    }
    Ok((done, Outcome::Completed))
}

/// Waits until the machine is below this temperature. A request to end is left to the phase.
fn cool_down(
    run: &mut Run,
    watcher: &mut dyn RunWatcher,
    phase: &PhasePlan,
    below: Temperature,
    sensors: &Sensors,
) {
    let (files, interrupts) = (Root::from_system(), run.interrupts.clone());
    let cooling = Cooling {
        below,
        at_most: run.plan.cool_wait,
        clock: &SystemClock,
        end_requested: &|| interrupts.end_requested(),
    };
    let (messages, mut shown) = (run.messages, false);
    let mut say = |text: &str| {
        if watcher.is_watching() {
            watcher.show_preparation(text);
        } else if !std::mem::replace(&mut shown, true) {
            messages.say(&format!("{text}\n"));
        }
    };
    let cooled = cooling.wait_until_cool(&mut || sensors.hottest_zone(&files), &mut say);
    run.findings.extend(cooling.cooling_finding(&phase.name, &cooled));
}

fn phase_meta(phase: &PhasePlan, is_program: bool) -> PhaseMeta {
    let measures: &[MeasurePlan] = if is_program { &[] } else { &phase.measures };
    let loads = phase.loads.iter().map(|load| LoadMeta {
        name: load.name.clone(),
        argv: load.argv.clone(),
        cpus: load.cpus.clone(),
        starts: 0,
        failures: 0,
        work: Fact::NotAsked,
    });
    PhaseMeta {
        started_monotonic: clock::monotonic_now().ns(),
        loads: loads.collect(),
        measures: measures.iter().map(mapping::measure_meta).collect(),
        ..PhaseMeta::new(&phase.name, jiff::Timestamp::now())
    }
}

/// The state of the phase's loop between its ticks.
struct Controller<'r, 'p, 'w> {
    run: &'r mut Run<'p>,
    index: usize,
    phase: &'p PhasePlan,
    watcher: &'w mut dyn RunWatcher,
    stop: Arc<Stop>,
    /// The evidence that it is measured as requested.
    evidence: Collecting,
    tallies: Vec<LoadCounts>,
    files: Root,
    /// The affinity of this thread.
    cpus: CpuSet,
    /// The CPU times at the start of the phase, and at the last refresh.
    times: Option<(CpuTimes, CpuTimes)>,
    cpu_load: Option<CpuLoad>,
    /// Drains rings while this thread cannot.
    reliever: Option<Reliever>,
    /// The wall clock, if it matters and was not stepped yet.
    wall: Option<WallClock>,
    /// Whether this thread runs on time.
    punctuality: Punctuality,
    /// The index of the next series found in a program.
    next_series: usize,
    /// Set if threads of programs have begun that the bundle does not name yet.
    has_begun: bool,
    next_measures: MonotonicNs,
}

/// The outcome that ends the run, or `None` to continue; an error fails it.
type PhaseStep = Result<Option<Outcome>, PhaseError>;

impl<'r, 'p, 'w> Controller<'r, 'p, 'w> {
    fn new(
        run: &'r mut Run<'p>,
        index: usize,
        phase: &'p PhasePlan,
        watcher: &'w mut dyn RunWatcher,
    ) -> Self {
        let name = |load: &punctual_plan::LoadPlan| LoadCounts {
            name: load.name.clone(),
            ..LoadCounts::default()
        };
        let tallies = phase.loads.iter().map(name).collect();
        let stop = Arc::default();
        let evidence = Collecting::new(run.plan, phase);
        Controller {
            evidence,
            run,
            index,
            phase,
            watcher,
            stop,
            tallies,
            files: Root::from_system(),
            cpus: CpuSet::new(),
            times: None,
            cpu_load: None,
            reliever: None,
            wall: None,
            punctuality: Punctuality::default(),
            next_series: 0,
            has_begun: false,
            next_measures: MonotonicNs(0),
        }
    }

    fn begin_phase(&mut self, current: &mut PhaseRun) -> Result<Begun, PhaseError> {
        self.write_phase(current)?;
        self.prepare_measures(current)?;
        self.run.bind_controller();
        self.cpus = attributes::read_affinity(0).unwrap_or_default();
        if let Some(outcome) = self.start_loads(current)? {
            return Ok(Begun::Ended(outcome));
        }
        self.start_programs(current)?;
        let keep = self.run.plan.keep_samples > 0;
        current.meta.started = jiff::Timestamp::now();
        current.meta.started_monotonic = clock::monotonic_now().ns();
        self.write_phase(current)?;
        self.times = CpuTimes::read(&self.files).ok().map(|times| (times.clone(), times));
        let programs = self.program_measures().fold(CpuSet::new(), |all, of| all.union(&of.cpus));
        let (partition, fixed) = (self.run.partition.as_ref(), self.run.fixed.as_ref());
        self.evidence.begin(&self.files, partition, fixed, &current.series, &programs);
        // Last: the code that runs from here on is what stays resident.
        self.hold_resources();
        let mut rings = Vec::new();
        for measure in &mut current.measures {
            let sources = measure.start(LEAD);
            rings.extend(sources.iter().filter_map(SampleSource::backup_drain));
            let series = &mut current.series[measure.series.clone()];
            for (place, (series, source)) in
                measure.series.clone().zip(series.iter_mut().zip(sources))
            {
                for companion in &mut self.run.companions {
                    companion.begin_series(&self.phase.name, place, series, &source);
                }
                series.begin_collecting(source, keep);
            }
        }
        self.reliever =
            (!rings.is_empty()).then(|| Reliever::start(rings, &self.run.plan.controller_cpus));
        self.for_each_companion(|companion| companion.begin_phase(current));
        current.programs.iter_mut().for_each(ProgramRun::release);
        current.entries.iter_mut().for_each(EntriesRun::begin);
        let is_on_wall = |one: &SeriesRun| one.kept.meta.clock != Clock::Monotonic;
        self.wall = current.series.iter().any(is_on_wall).then(WallClock::new);
        let schedule = self.round_schedule(current);
        self.punctuality = Punctuality::new(schedule.tick, self.phase);
        Ok(Begun::Measuring(schedule))
    }

    fn write_phase(&mut self, current: &PhaseRun) -> Result<(), String> {
        self.run.writer.write_phase(self.index, &current.meta).map_err(|why| why.to_string())
    }

    /// Prepares the threads of each measure, and a pair of files for each series.
    fn prepare_measures(&mut self, current: &mut PhaseRun) -> Result<(), PhaseError> {
        let plan = self.run.plan;
        for measure in &self.phase.measures {
            let first = current.series.len();
            if let Workload::Program(program) = &measure.workload {
                let run = self.prepare_program(measure, program, current.programs.len());
                current.programs.push(run.map_err(PhaseError::Missing)?);
                current.measures.push(MeasureRun::without_threads(first));
                continue;
            }
            if let Workload::Entries(_) = &measure.workload {
                self.prepare_entries(measure, current)?;
                continue;
            }
            let order = mapping::measure_config(measure, first, plan, &self.stop);
            let placement = PartitionPlacement(self.run.partition.as_ref());
            let (mut prepared, waiting) =
                MeasureRun::prepare(&order, &placement, first..first + order.series.len())
                    .map_err(PhaseError::Missing)?;
            let threads: Vec<_> = waiting.prepared_threads().collect();
            self.evidence.add_threads(
                evidence::watch_of(current.measures.len(), measure, &order, &threads).into_iter(),
            );
            for (planned, thread) in measure.threads.iter().zip(&threads) {
                let subject = format!("{}/{}", self.phase.name, planned.name);
                self.run.findings.extend(series::preparation_findings(&subject, planned, thread));
            }
            for ordered in &order.series {
                let Some(thread) = threads.get(ordered.thread) else { continue };
                self.add_series(current, measure, mapping::series_meta(measure, ordered, thread))?;
            }
            prepared.keep_threads(waiting);
            current.measures.push(prepared);
        }
        self.next_series = current.series.len();
        Ok(())
    }

    /// Adds the next series of the phase, of this measure: from here on it is in the bundle,
    /// without samples.
    fn add_series(
        &mut self,
        current: &mut PhaseRun,
        measure: &MeasurePlan,
        mut meta: SeriesMeta,
    ) -> Result<(), String> {
        let plan = self.run.plan;
        if plan.forever {
            meta.details.insert(DETAIL_KEPT.into(), NEWEST.into());
        }
        let writer = self.run.writer.begin_series(
            self.index,
            current.series.len(),
            &meta,
            if plan.forever { u64::MAX } else { plan.keep_samples },
        );
        let mut writer = writer.map_err(|why| why.to_string())?;
        if plan.forever {
            let limit = lines::log_limit(self.series_planned());
            writer.begin_rotation(limit).map_err(|why| why.to_string())?;
        }
        let files = SeriesFiles::new(writer, &self.run.saver);
        let mut series = SeriesRun::new(mapping::series_shape(measure), meta, files);
        if plan.forever {
            series.kept.keep_lines();
        }
        for companion in &mut self.run.companions {
            companion.prepare_series(&measure.workload, &mut series)?;
        }
        series.checkpoint();
        current.series.push(series);
        Ok(())
    }

    /// The number of series of the phase, as far as the plan shows it: a bound on each of them.
    fn series_planned(&self) -> usize {
        let orders = self.phase.measures.iter();
        orders
            .map(|of| mapping::measure_config(of, 0, self.run.plan, &self.stop).series.len())
            .sum()
    }

    /// Locks memory and idle states until the end of the run.
    fn hold_resources(&mut self) {
        let (plan, last) = (self.run.plan, self.run.preparation.take());
        let preparation = preparation::prepare_process(plan.memory_lock, plan.dma_latency.0, last);
        let refused = preparation.findings.iter().find(|finding| finding.id == "memory-not-locked");
        refused
            .into_iter()
            .for_each(|f| self.evidence.memory_refused(f.evidence.clone().unwrap_or_default()));
        self.run.findings.extend(preparation.findings.iter().cloned());
        self.run.preparation = Some(preparation);
    }

    /// Starts the loads; those without a delay are running, or were refused, when this returns.
    /// Returns an outcome if one of them has ended the run already.
    fn start_loads(&mut self, current: &mut PhaseRun) -> PhaseStep {
        let errors: Vec<Option<PathBuf>> = (self.phase.loads.iter().enumerate())
            .map(|(number, load)| work::is_counted(load).then(|| self.work_file(number)))
            .collect();
        let Some(guard) = self.run.guard.as_mut() else { return Ok(None) };
        for ((number, load), errors) in self.phase.loads.iter().enumerate().zip(errors) {
            let joins =
                self.run.partition.as_ref().and_then(|partition| partition.cgroup_file(&load.cpus));
            let seed = self.run.plan.seed_or_default();
            guard
                .start_load(number, &mapping::load_spec(load, joins, seed, errors))
                .map_err(|why| why.to_string())?;
        }
        let until = clock::monotonic_now() + LOAD_START;
        while self.waits_for_loads() && clock::monotonic_now() < until {
            std::thread::sleep(Duration::from_millis(2));
            if let Some(outcome) = self.load_events(&mut current.programs)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// The output of a load on its work, until the phase ends.
    fn work_file(&self, load: usize) -> PathBuf {
        self.run.writer.directory().join(format!("load-{:03}-{load:02}.err", self.index))
    }

    fn waits_for_loads(&self) -> bool {
        let mut loads_with_tallies = self.phase.loads.iter().zip(&self.tallies);
        // With a seed every start is delayed; loads delayed by it alone are waited for too.
        let soon = self.run.plan.seed.map_or(Nanos::ZERO, |_| MAX_SEED_DELAY);
        loads_with_tallies.any(|(load, tally)| load.start_delay <= soon && tally.starts == 0)
    }

    /// Handles events of loads and programs; returns an outcome if one of them ends the run.
    fn load_events(&mut self, programs: &mut [ProgramRun]) -> PhaseStep {
        let Some(guard) = self.run.guard.as_mut() else { return Ok(None) };
        let events = guard.read_events().map_err(|why| why.to_string())?;
        self.take_events(events, programs)
    }

    fn take_events(&mut self, events: Vec<GuardEvent>, programs: &mut [ProgramRun]) -> PhaseStep {
        let mut outcome = None;
        for event in events {
            self.evidence.load_event(&event);
            programs.iter_mut().try_for_each(|program| program.take_event(&event))?;
            match event {
                GuardEvent::Started { load, .. } => {
                    self.tallies.get_mut(load).into_iter().for_each(|tally| tally.starts += 1);
                }
                GuardEvent::NotStarted { load, why } => {
                    let name = self.tallies.get(load).map_or("?", |tally| tally.name.as_str());
                    return Err(format!("the load {name} could not be started: {why}").into());
                }
                GuardEvent::Ended { load, how, success, then, .. } => {
                    let Some(tally) = self.tallies.get_mut(load) else { continue };
                    tally.failures += u64::from(!success);
                    if then == LoadExitAction::Stop {
                        outcome.get_or_insert(Outcome::StoppedByLoad {
                            load: tally.name.clone(),
                            how,
                            success,
                        });
                    }
                }
                GuardEvent::Lost { events } => {
                    return Err(format!(
                        "{} of loads were lost, because punctual was stopped: the activity of the \
                         loads is unknown",
                        count_with_noun(events, "event")
                    )
                    .into());
                }
                GuardEvent::AllEnded { .. } => {}
            }
        }
        Ok(outcome)
    }

    fn round_schedule(&self, current: &PhaseRun) -> Schedule {
        let refresh = self.run.plan.refresh;
        let ticks = [
            (!current.programs.is_empty()).then_some(cycles::TICK),
            (!current.entries.is_empty()).then_some(cpu_entries::TICK),
        ];
        let shortest_tick = ticks.into_iter().flatten().fold(TICK, Nanos::min);
        Schedule {
            began: MonotonicNs(current.meta.started_monotonic),
            tick: shortest_tick.min(refresh),
            refresh: self.watcher.is_watching().then_some(refresh),
            at_least: self.phase.duration,
        }
    }

    /// The outcome of a sample that ended the run, with the exceeded limit.
    fn stopped_above(&self, series: String, latency: Nanos, seq: Option<u64>) -> Outcome {
        let limits = self.phase.measures.iter().filter_map(|measure| measure.stop_above);
        let limit = limits.filter(|limit| *limit < latency).max().map(Nanos::ns);
        Outcome::StoppedAbove { series, latency: latency.ns(), limit, seq }
    }

    /// Reads the samples of threads on the CPUs of this one: its own system calls must not delay
    /// them.
    fn heed_samples(&self, current: &PhaseRun) {
        let own_cpus = &self.cpus;
        let near = current.series.iter().map(|series| &series.kept).filter(|kept| {
            kept.meta.clock == Clock::Monotonic && !kept.meta.cpus.intersection(own_cpus).is_empty()
        });
        let times = near.filter_map(|kept| {
            let due = kept.state.data.worst.first()?.due.ns();
            Some(SampleTimes { due, period: kept.meta.period?.ns() })
        });
        let times: Vec<SampleTimes> = times.collect();
        if !times.is_empty() && !self.run.saver.is_behind() {
            let times = times.clone();
            self.run.saver.put_job(0, move || pace::avoid_samples(times));
        }
        pace::avoid_samples(times);
    }

    fn begin_part(&mut self, part: RoundPart) {
        self.punctuality.begin_part(part, ThreadTimes::read(&self.files));
    }

    fn for_each_companion(&mut self, step: impl FnMut(&mut Box<dyn Companion>)) {
        self.run.companions.iter_mut().for_each(step);
    }

    /// Checks for samples that threads have not taken although due; returns one above its limit,
    /// with its series.
    fn look_at_threads(&self, current: &mut PhaseRun) -> Option<(String, Nanos)> {
        let mut above = None;
        for (measure, planned) in current.measures.iter().zip(&self.phase.measures) {
            let series = &mut current.series[measure.series.clone()];
            for (series, thread) in series.iter_mut().zip(&measure.threads) {
                let lasted = series.check_overdue(measure.thread_has_ended(*thread));
                let lasted =
                    lasted.filter(|of| planned.stop_above.is_some_and(|limit| *of > limit));
                let name = || format!("{}/{}", self.phase.name, series.kept.meta.name);
                above = above.or_else(|| lasted.map(|lasted| (name(), lasted)));
            }
        }
        above
    }

    /// The outcome of the sample above its limit by which a thread ended the run.
    fn trip_outcome(&self, current: &PhaseRun) -> Option<Outcome> {
        let number = self.stop.tripped_by()?;
        let series = &current.series.get(number as usize)?.kept;
        let latency = series.state.data.max.unwrap_or_default();
        let seq = series.state.data.worst.first().map(|sample| sample.seq);
        let series = format!("{}/{}", self.phase.name, series.meta.name);
        Some(self.stopped_above(series, latency, seq))
    }

    fn update_view(&mut self, current: &mut PhaseRun, elapsed: Nanos) {
        if self.run.attached.is_some() {
            let PhaseRun { entries, series, .. } = current;
            entries.iter_mut().for_each(|of| of.update_view(series));
        }
        if self.run.plan.cpu_load
            && let Some((_, last)) = &mut self.times
        {
            let now = CpuTimes::read(&self.files).unwrap_or_default();
            self.cpu_load = mapping::cpu_load(last, &now).or(self.cpu_load.take());
            *last = now;
        }
        let planned = self
            .phase
            .measures
            .iter()
            .map(MeasurePlan::estimated_time)
            .collect::<Option<Vec<Nanos>>>();
        let planned = planned.and_then(|spans| spans.into_iter().chain(self.phase.duration).max());
        self.watcher.show_snapshot(&Snapshot {
            experiment: &self.run.plan.name,
            phase: current,
            phase_number: self.index,
            phases: self.run.plan.phases.len(),
            elapsed,
            planned,
            cpu_load: self.cpu_load.as_ref(),
            loads: &self.tallies,
            findings: &self.run.findings,
        });
    }

    /// Ends every running thread, waking sleeping ones, and takes their samples.
    fn stop_threads(&mut self, current: &mut PhaseRun) -> Result<(), String> {
        self.stop.request_stop();
        let until = clock::monotonic_now() + STOP_TIMEOUT;
        while !current.measures.iter().all(MeasureRun::is_finished) {
            if clock::monotonic_now() > until {
                return Err("a measuring thread did not stop: does another real-time task occupy \
                            its CPU?"
                    .to_owned());
            }
            current.measures.iter().for_each(MeasureRun::wake_threads);
            std::thread::sleep(Duration::from_millis(5));
            current.series.iter_mut().for_each(SeriesRun::drain);
        }
        self.reliever = None;
        let mut errors = Vec::new();
        let planned = &self.phase.measures;
        let measures =
            current.measures.iter_mut().zip(&mut current.meta.measures).zip(planned).enumerate();
        for (number, ((measure, meta), planned)) in measures {
            let ended = measure.finish(&self.phase.name, meta);
            self.evidence.after_end(number, ended.after);
            errors
                .extend(ended.errors.iter().map(|why| format!("{} ended early: {why}", meta.name)));
            self.run.findings.extend(ended.findings);
            for (series, thread) in
                current.series[measure.series.clone()].iter_mut().zip(&measure.threads)
            {
                series.finish(ended.usages.get(*thread).copied());
            }
            let series = || current.series[measure.series.clone()].iter().zip(&measure.threads);
            let samples = |thread: usize| {
                series()
                    .filter(|(_, of)| **of == thread)
                    .map(|(series, _)| series.kept.state.data.sample_count())
                    .max()
                    .unwrap_or(0)
            };
            let threads = planned.threads.iter().zip(&ended.counted).enumerate();
            let threads: Vec<counters::CounterThread> = threads
                .map(|(place, (thread, totals))| counters::CounterThread {
                    name: &thread.name,
                    totals,
                    samples: samples(place),
                })
                .collect();
            meta.notes.tables.extend(counters::counter_table(&planned.counters, &threads));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    fn end_loads(&mut self, current: &mut PhaseRun) -> PhaseStep {
        if self.phase.loads.is_empty() && current.programs.is_empty() {
            return Ok(None);
        }
        self.wait_for_programs(current);
        let Some(guard) = self.run.guard.as_mut() else { return Ok(None) };
        let last = guard.end_loads().map_err(|why| why.to_string())?;
        self.take_events(last, &mut current.programs)
    }

    /// Finishes the phase: its CPU load, its loads, and events during writes.
    fn close_phase(&mut self, current: &mut PhaseRun) {
        let now = CpuTimes::read(&self.files);
        current.meta.cpu_load = match (&self.times, now) {
            (Some((first, _)), Ok(now)) => match mapping::cpu_load(first, &now) {
                Some(load) => Fact::Known(load),
                None => Fact::Unavailable(
                    "the phase was shorter than one tick of the kernel's CPU times".to_owned(),
                ),
            },
            (None, _) => Fact::NotAsked,
            (_, Err(why)) => Fact::Unavailable(why.to_string()),
        };
        for (number, (load, tally)) in current.meta.loads.iter_mut().zip(&self.tallies).enumerate()
        {
            (load.starts, load.failures) = (tally.starts, tally.failures);
            if work::is_counted(&self.phase.loads[number]) {
                load.work = work::take_work(&self.work_file(number));
            }
        }
        self.list_measures(current);
        let saved = self.save_all(current);
        for program in &current.programs {
            current.meta.without_series.extend(program.cycles.without_series());
            current.meta.left_out.extend(program.cycles.left_out());
            // Ctrl-C at a terminal reaches it, too.
            let is_ours = |end: &ProgramEnd| {
                end.how == HowEnded::Signal(libc::SIGINT) && self.run.interrupts.end_requested()
            };
            current.meta.ended.extend(program.failed_end().filter(|end| !is_ours(end)));
        }
        let trouble = current.series.iter().find_map(|series| series.kept.write_error());
        let written = self.run.writer.write_phase(self.index, &current.meta);
        if let Some(trouble) = trouble.or(written.as_ref().err()) {
            self.run.findings.push(cycles::incomplete_bundle(&self.phase.name, trouble));
            self.run.unwritten.push(trouble.to_string());
        }
        for why in current.programs.iter().flat_map(|program| program.cycles.write_errors()) {
            self.run.findings.push(cycles::incomplete_bundle(&self.phase.name, why));
            self.run.unwritten.push(why.to_string());
        }
        self.run.unwritten.extend(saved.err());
    }

    /// Waits until everything of the phase is written.
    fn save_all(&mut self, current: &mut PhaseRun) -> Result<(), String> {
        let saved = self.run.saver.finish(|text| match self.watcher.is_watching() {
            true => self.watcher.show_preparation(text),
            false => self.run.messages.show_progress(text),
        });
        let programs = current.programs.iter_mut().flat_map(|of| of.cycles.all_series_mut());
        let programs = programs.map(|series| &mut series.kept);
        for kept in current.series.iter_mut().map(|series| &mut series.kept).chain(programs) {
            kept.update_log_length();
            self.run.findings.extend(kept.unsaved_finding(&self.phase.name));
        }
        saved
    }
}
