//! The flight recorder beside a run: saves the events around the worst samples into the bundle.
//!
//! Kernel events overwrite one another in buffers of the kernel. A separate thread polls new
//! samples (`watch`), and copies the events around one of the worst so far (`capture`) before they
//! are overwritten. The saver writes the copies ([`Flight::save_copies`]), so a slow disk causes no
//! delay. `worst_set` decides which samples are kept.

mod capture;
mod pacer;
mod pending;
mod steal;
mod watch;
mod worst_set;

use crate::exit::Failure;
use crate::saver::Saver;
use pacer::Pacer;
use pending::PendingWindows;
use punctual_bundle::windows::{KeptRule, Waited, WindowsDocument};
use punctual_bundle::{BundleError, WindowsWriter};
use punctual_core::event::{Names, Recorded, Tid};
use punctual_core::{Bytes, Clock, CpuSet, Fact, Finding, Sample, Severity};
use punctual_measure::ring::SnapshotReader;
use punctual_plan::ExplainPlan;
use punctual_record::{
    AttachedPrograms, RecordMode, Recorder, Request, StartError, kernel_symbols,
};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use watch::{Watch, WatchCommand};

/// The maximum size of all windows of a run in the bundle.
pub(crate) const ROOM: Bytes = Bytes::mib(256);
/// How long the controller thread waits for the last poll of a phase.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A flight recorder in force.
pub struct Flight {
    thread: JoinHandle<Option<(Recorded, Names)>>,
    commands: mpsc::Sender<WatchCommand>,
    pending: Arc<Mutex<PendingWindows>>,
    pacer: Option<Pacer>,
    writer: Arc<WindowsWriter>,
    saver: Saver,
    document: WindowsDocument,
    /// The number of kernel addresses that were looked up.
    named: usize,
    /// The first failed write; nothing is written after it.
    trouble: Arc<OnceLock<BundleError>>,
}

impl Flight {
    /// Begins: kernel events are kept when this returns.
    ///
    /// # Errors
    /// Kernel events cannot be recorded here.
    pub fn start(
        bundle: &Path,
        plan: &ExplainPlan,
        cpus: CpuSet,
        thread_cpus: &CpuSet,
        saver: &Saver,
    ) -> Result<Flight, Failure> {
        Flight::start_attached(bundle, plan, cpus, thread_cpus, saver).map(|(flight, _)| flight)
    }

    /// Like [`Flight::start`], with the recorder's BPF programs.
    pub(crate) fn start_attached(
        bundle: &Path,
        plan: &ExplainPlan,
        cpus: CpuSet,
        thread_cpus: &CpuSet,
        saver: &Saver,
    ) -> Result<(Flight, AttachedPrograms), Failure> {
        let rule = KeptRule {
            worst: plan.worst,
            above: plan.above,
            before: plan.before,
            buffer: Bytes(plan.buffer.0),
            room: ROOM,
        };
        let request = Request {
            buffer: usize::try_from(plan.buffer.0).unwrap_or(usize::MAX),
            stacks: plan.stacks,
            mode: RecordMode::Flight,
            timers_only: plan.timers_only,
            ..Request::new(&plan.events, cpus)
        };
        let (commands, received) = mpsc::channel();
        let (ready, started) = mpsc::sync_channel(1);
        let (pending, thread_cpus) = (Arc::<Mutex<PendingWindows>>::default(), thread_cpus.clone());
        let its_pending = Arc::clone(&pending);
        let body = move || {
            crate::recording::settle_thread(&thread_cpus);
            match start_recorder(request) {
                Ok(recorder) => {
                    let _ = ready.send(Ok((
                        recorder.coverage_so_far(),
                        recorder.known_names(),
                        recorder.buffer_progress(),
                        recorder.attached_programs(),
                    )));
                    Some(Watch::new(recorder, rule, its_pending).run(&received))
                }
                Err(why) => {
                    let _ = ready.send(Err(why));
                    None
                }
            }
        };
        let thread = std::thread::Builder::new().name("punctual-flight".to_owned()).spawn(body);
        let thread =
            thread.map_err(|why| Failure::failed(format!("cannot start a thread: {why}")))?;
        let (recorded, mut names, buffer_progress, attached) =
            started.recv().unwrap_or_else(|_| Err(Failure::failed(DIED)))?;
        names.tasks.clear();
        let document = WindowsDocument::new(rule, recorded, names);
        let writer = WindowsWriter::create(bundle, &document).map_err(Failure::failed)?;
        let (writer, saver) = (Arc::new(writer), saver.clone());
        let pacer = buffer_progress.map(Pacer::new);
        let (named, trouble) = (0, Arc::default());
        let flight =
            Flight { thread, commands, pending, pacer, writer, saver, document, named, trouble };
        Ok((flight, attached))
    }

    /// Polls these series from now on, until [`Flight::settle`].
    pub(crate) fn watch_series(&self, series: Vec<WatchedSeries>) {
        let _ = self.commands.send(WatchCommand::Watch(series));
    }

    /// Polls these in addition; earlier ones keep their indexes.
    pub(crate) fn watch_also(&self, series: WatchedSeries) {
        let _ = self.commands.send(WatchCommand::WatchAlso(Box::new(series)));
    }

    /// The worst samples of watched series number `place`, if it has no snapshot reader.
    pub(crate) fn add_worst(&self, place: usize, samples: Vec<Sample>) {
        if !samples.is_empty() {
            let _ = self.commands.send(WatchCommand::WorstSamples(place, samples));
        }
    }

    /// Polls new samples if due. The flight thread also wakes by itself, but fewer threads with
    /// their own wake-ups disturb less.
    pub fn poll(&mut self) {
        if self.pacer.as_mut().is_none_or(Pacer::is_time) {
            let _ = self.commands.send(WatchCommand::Poll);
        }
    }

    /// Called when all samples exist: returns once each was polled, and stops polling.
    pub fn settle(&self) {
        let (done, settled) = mpsc::sync_channel(1);
        if self.commands.send(WatchCommand::Settle(done)).is_ok() {
            let _ = settled.recv_timeout(SETTLE_TIMEOUT);
        }
    }

    /// Hands the copies made since the last call to the saver.
    pub(crate) fn save_copies(&mut self) {
        let Some(taken) = self.pending.lock().ok().and_then(|mut pending| pending.take_writes())
        else {
            return;
        };
        self.document.series = taken.series;
        let names = &mut self.document.names;
        (names.tasks, names.stacks) = (taken.tasks, taken.stacks);
        if taken.functions.len() > self.named {
            self.named = taken.functions.len();
            if let Fact::Known(symbols) = kernel_symbols(&taken.functions) {
                names.symbols = symbols;
            }
        }
        let (writer, document) = (Arc::clone(&self.writer), self.document.clone());
        let trouble = Arc::clone(&self.trouble);
        self.saver.put_job(0, move || {
            // In this order: everything in a window has a name, and there are never fewer windows
            // than before.
            let mut outcome = writer.renew_document(&document);
            for (number, window) in &taken.fresh {
                let records: Vec<&[u8]> = window.records.iter().map(Vec::as_slice).collect();
                outcome = outcome.and_then(|()| writer.add_window(*number, &window.head, &records));
            }
            for number in &taken.gone {
                outcome = outcome.and_then(|()| writer.remove(*number));
            }
            if let Err(why) = outcome {
                let _ = trouble.set(why);
            }
        });
    }

    /// Ends the recorder after writing everything; returns the findings.
    pub fn stop(mut self) -> Vec<Finding> {
        let _ = self.commands.send(WatchCommand::Stop);
        self.save_copies();
        let saved = self.saver.finish(|_| ());
        let Some((recorded, names)) = self.thread.join().ok().flatten() else {
            return vec![Finding::new("explain-died", Severity::Bad, "explain", DIED)];
        };
        self.document.recorded = recorded;
        let tasks = std::mem::take(&mut self.document.names.tasks);
        self.document.names = Names { tasks, ..names };
        self.document.complete = true;
        let mut findings = self.document.limit_findings();
        let written = self.writer.finish(&self.document).map_err(|why| why.to_string());
        let first = self.trouble.get().map(ToString::to_string).or(saved.err());
        findings.extend(first.or(written.err()).map(|why| {
            let message = "not every window could be written";
            Finding::new("windows-incomplete", Severity::Bad, "explain", message).with_evidence(why)
        }));
        findings
    }
}

const DIED: &str = "the flight recorder thread died; this is a bug. The windows written until \
                    then are in the bundle";

/// The beginning of the error on a system without a flight recorder.
pub(crate) const NOT_EXPLAINED: &str = "the worst samples cannot be explained on this system: ";

fn start_recorder(request: Request) -> Result<Recorder, Failure> {
    Recorder::start(request).map_err(|why| match why {
        why @ StartError::Request(_) => Failure::refused(why),
        why => Failure::refused(format!(
            "{NOT_EXPLAINED}{why}\nto measure without explanations, remove --explain or [explain]"
        )),
    })
}

/// The task of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleTask {
    /// The same thread, always.
    Thread(Tid),
    /// The task that took its end: it ran on its CPU then. Tasks of a ring take turns; a process
    /// that allocates may be a new one each round.
    RunsAtEnd,
}

/// A series whose samples are polled.
pub struct WatchedSeries {
    pub phase: String,
    pub series: String,
    pub whose: SampleTask,
    /// The clock of its samples.
    pub clock: Clock,
    /// The meaning of a sample's start.
    pub waited: Waited,
    /// The affinity of its thread.
    pub cpus: CpuSet,
    /// The samples one by one; `None` if they are only counted, and the worst arrive through
    /// `Flight::add_worst`.
    pub snapshot_reader: Option<SnapshotReader>,
}
