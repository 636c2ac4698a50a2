//! A program that is measured: from attaching to its last cycle.

use super::explaining::Explaining;
use super::metrics;
use super::options::{Options, PHASE, begun_phase};
use super::watcher::{Attached, Watcher};
use crate::command::Command;
use crate::cycles::series::SeriesPlace;
use crate::cycles::target::{Started, Target};
use crate::cycles::{self, Cycles, TICK};
use crate::engine::{
    Begun, CHECKPOINT, Ended, Engine, REFRESH, Round, Schedule, Source, SystemClock,
};
use crate::exit::Failure;
use crate::flight::Flight;
use crate::interrupts::Interrupts;
use crate::recording::{Done, Recording};
use crate::request;
use crate::run::calibration::{self, Recorders, Setup};
use crate::run::mapping;
use crate::unfinished::Unfinished;
use crate::violation::ViolationHook;
use punctual_bundle::{BundleWriter, Calibration, Outcome, PhaseMeta};
use punctual_core::event::Recorded;
use punctual_core::{Fact, Finding, MonotonicNs, Nanos};
use punctual_host::cpu_time::CpuTimes;
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_plan::{ExplainPlan, WorkloadKind};
use punctual_sys::clock;
use std::convert::Infallible;
use std::path::Path;

/// Samples that go into the log of a series.
const KEPT: u64 = 1 << 20;

/// A program that is measured.
pub struct Attachment {
    unfinished: Unfinished,
    pub(super) options: Options,
    pub(super) writer: BundleWriter,
    pub(super) phase: PhaseMeta,
    pub(super) findings: Vec<Finding>,
    pub(super) unwritten: Vec<String>,
    pub(super) cycles: Cycles,
    pub(super) command: Option<Command>,
    flight: Option<Flight>,
    /// Where the flight recorder cannot be had.
    recording: Option<Recording>,
    pub(super) recorded: Option<Recorded>,
    /// How many series the flight recorder watches.
    watched: usize,
    times: Option<CpuTimes>,
    /// How many series there are.
    series: usize,
    /// Threads have begun that the bundle does not name yet, and when it shall name them.
    has_begun: bool,
    next_measures: MonotonicNs,
    hook: Option<ViolationHook>,
}

impl Attachment {
    /// Puts the programs into the kernel and begins the bundle. Nothing is left of it where that
    /// fails.
    pub fn start(
        directory: &Path,
        target: &Target,
        options: Options,
        interrupts: &Interrupts,
    ) -> Result<Attachment, Failure> {
        let mut options = options;
        let environment = environment::capture(&Root::system());
        let mut writer =
            BundleWriter::create(directory, &target.name(), "attach").map_err(Failure::refused)?;
        let phase = begun_phase();
        let unfinished = Unfinished::of(directory);
        let written = writer
            .write_document("environment", &environment)
            .and_then(|()| writer.write_phase(0, &phase));
        written.map_err(Failure::failed)?;
        let plan = || ExplainPlan { account: false, ..ExplainPlan::usual([WorkloadKind::Program]) };
        // Before its own programs are in the kernel.
        let calibration = match options.calibrate {
            true => calibrate(options.explain.then(plan), directory, interrupts),
            false => Err(calibration::NOT_ASKED_OF_A_PROGRAM.to_owned()),
        };
        let calibration = calibration.map_or_else(Fact::Unavailable, Fact::Known);
        writer.set_calibration(calibration).map_err(Failure::failed)?;
        let cycles = Cycles::start(std::mem::take(&mut options.cycles), environment.clone())?;
        let explaining = match options.explain {
            true => Explaining::start(directory, &plan(), &cycles)?,
            false => Explaining::default(),
        };
        let command = options.on_violation.clone();
        Ok(Attachment {
            hook: command.map(|command| ViolationHook::new(command, directory)),
            unfinished,
            options,
            writer,
            phase,
            findings: explaining.finding.into_iter().collect(),
            unwritten: Vec::new(),
            cycles,
            command: None,
            flight: explaining.flight,
            recording: explaining.recording,
            recorded: None,
            watched: 0,
            times: CpuTimes::read(&Root::system()).ok(),
            series: 0,
            has_begun: false,
            next_measures: MonotonicNs(0),
        })
    }

    /// Watches the target; a command begins when this returns. Nothing is left of a bundle where
    /// that fails and this is dropped.
    pub fn begin(&mut self, target: &Target) -> Result<Started, Failure> {
        let started = target.start(self.cycles.attacher())?;
        self.unfinished.keep();
        self.phase.started = jiff::Timestamp::now();
        self.phase.started_monotonic = clock::monotonic().ns();
        Ok(started)
    }

    /// Until the target, the time, the user or a response time ends it.
    pub fn measure(
        &mut self,
        started: Started,
        interrupts: &Interrupts,
        watcher: &mut dyn Watcher<Attached>,
    ) -> Outcome {
        let engine = Engine { clock: &SystemClock, end_requested: &|| interrupts.end_requested() };
        let mut source = Measuring { attachment: self, started: Some(started), watcher };
        let Ok(ended) = engine.run(&mut source);
        ended.unwrap_or(Outcome::Completed)
    }

    /// Takes what the kernel has; a response time above the limit, and of which series.
    fn drain(&mut self, ended: bool) -> Option<(String, Nanos)> {
        let (writer, next, keep) = (&self.writer, &mut self.series, KEPT);
        let mut place = SeriesPlace { writer, phase: 0, next, taken: &[], keep };
        let drained = self.cycles.drain(ended, &mut place);
        self.has_begun |= drained.begun;
        let now = clock::monotonic();
        if self.has_begun && now >= self.next_measures {
            // All of them: with hundreds of threads that takes its time.
            self.phase.measures = self.cycles.measures().collect();
            let _ = self.writer.write_phase(0, &self.phase);
            (self.has_begun, self.next_measures) = (false, now + CHECKPOINT);
        }
        if let Some(flight) = &mut self.flight {
            self.cycles.explain(flight, &mut self.watched);
            flight.poll();
        }
        drained.above
    }

    fn checkpoint(&mut self) {
        self.cycles.checkpoint();
        self.flight.iter_mut().for_each(Flight::save);
        self.look_for_violations(false);
    }

    /// As in a run: the command starts a checkpoint after its violation was found.
    fn look_for_violations(&mut self, ended: bool) {
        let Some(hook) = &mut self.hook else { return };
        hook.advance();
        hook.examine(PHASE, self.cycles.views(), ended);
    }

    /// Where a new version is due; without `now` the last one.
    fn write_metrics(&mut self, now: Option<MonotonicNs>) {
        let Some(file) = &mut self.options.metrics else { return };
        if now.is_none_or(|now| file.is_due(now)) {
            let program = &self.writer.manifest().experiment;
            file.write(&metrics::text(program, &self.cycles, None));
        }
    }

    /// The last figures: everything is written.
    fn finish(&mut self) {
        self.findings.extend(self.cycles.finish());
        self.write_metrics(None);
        let metrics = self.options.metrics.as_ref();
        self.findings.extend(metrics.and_then(|file| file.finding(PHASE)));
        if let Some(flight) = self.flight.take() {
            self.cycles.explain(&flight, &mut self.watched);
            flight.settle();
            self.findings.extend(flight.stop());
        }
        match self.recording.take().map(Recording::stop) {
            Some(Ok(Done { recorded, trouble })) => {
                self.findings.extend(recorded.findings.iter().cloned());
                self.unwritten.extend(trouble);
                self.recorded = Some(recorded);
            }
            Some(Err(why)) => self.unwritten.push(why.render(false)),
            None => {}
        }
        self.look_for_violations(true);
        self.findings.extend(self.hook.take().and_then(ViolationHook::finish));
        let now = CpuTimes::read(&Root::system());
        if let (Some(first), Ok(now)) = (&self.times, now) {
            self.phase.cpu_load =
                mapping::cpu_load(first, &now).map_or(Fact::NotAsked, Fact::Known);
        }
        self.phase.measures = self.cycles.measures().collect();
        self.phase.without_series = self.cycles.without_series();
        self.phase.left_out = self.cycles.left_out().into_iter().collect();
        if let Err(why) = self.writer.write_phase(0, &self.phase) {
            self.findings.push(cycles::incomplete(PHASE, &why));
            self.unwritten.push(why.to_string());
        }
    }
}

/// An attached program as a source of the engine.
struct Measuring<'a> {
    attachment: &'a mut Attachment,
    started: Option<Started>,
    watcher: &'a mut dyn Watcher<Attached>,
}

impl Source for Measuring<'_> {
    type Error = Infallible;

    fn begin(&mut self) -> Result<Begun, Infallible> {
        Ok(Begun::Measuring(Schedule {
            began: MonotonicNs(self.attachment.phase.started_monotonic),
            tick: TICK,
            refresh: self.watcher.watches().then_some(REFRESH),
            at_least: None,
            at_most: self.attachment.options.duration,
        }))
    }

    fn round(&mut self) -> Result<Round, Infallible> {
        let ended = self.started.as_mut().is_none_or(Started::has_ended);
        let limit = self.attachment.cycles.options().stop_above.map(Nanos::ns);
        let above = self.attachment.drain(ended);
        self.attachment.write_metrics(Some(clock::monotonic()));
        let outcome = above.map(|(series, latency)| Outcome::StoppedAbove {
            series,
            latency: latency.ns(),
            limit,
            seq: None,
        });
        Ok(Round { outcome, ended })
    }

    fn checkpoint(&mut self) {
        self.attachment.checkpoint();
    }

    fn refresh(&mut self, now: MonotonicNs, elapsed: Nanos) {
        let Attachment { writer, options, cycles, .. } = &mut *self.attachment;
        self.watcher.refresh(&Attached {
            name: writer.manifest().experiment.clone(),
            elapsed,
            planned: options.duration,
            threads: cycles.rows(),
            others: cycles.threads().filter(|one| one.label().is_none()).count(),
            culprit: cycles.top_culprit(now),
        });
    }

    fn finish(&mut self, ended: Ended<Infallible>) -> Ended<Infallible> {
        self.watcher.end();
        let attachment = &mut *self.attachment;
        attachment.command = self.started.take().and_then(Started::end);
        let began = MonotonicNs(attachment.phase.started_monotonic);
        attachment.phase.duration = Some(clock::monotonic() - began);
        attachment.drain(true);
        attachment.finish();
        ended
    }
}

/// What measuring costs, on the first CPU.
fn calibrate(
    explain: Option<ExplainPlan>,
    directory: &Path,
    interrupts: &Interrupts,
) -> Result<Calibration, String> {
    let cpus = request::online_cpus().map_err(|why| why.render(false))?;
    let setup = Setup::on(cpus.first().unwrap_or(0), directory);
    let recorders = Recorders::of_cycles(explain);
    calibration::measure(&setup, recorders, &|| !interrupts.end_requested())
}
