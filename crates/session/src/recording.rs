//! A recording: one thread reads the recorders and appends to the bundle, beside everything else.
//!
//! Nothing is decoded meanwhile. The thread avoids the recorded CPUs if others are left, and wakes
//! at its own times: no recorder wakes it.

mod drain;
mod points;
mod probing;
mod request;
mod sink;
mod sources;

use crate::exit::Failure;
use drain::Drain;
use punctual_core::event::Recorded;
use punctual_core::{CpuSet, Finding, Policy, Priority};
use punctual_record::AttachedPrograms;
use punctual_sys::attributes::{self, Scheduling};
pub use request::{BUFFER, KernelEvents, RecordingWanted, WantedProbes, parse_events};
pub(crate) use sources::Sources;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// A recording in progress.
pub struct Recording {
    /// `None` once stopped.
    thread: Option<JoinHandle<Option<RecordingResult>>>,
    stop: Arc<AtomicBool>,
    progress: Arc<RecordingProgress>,
    /// The requested items that cannot be recorded here, with reasons.
    pub findings: Vec<Finding>,
}

impl Recording {
    /// Begins: the recorders are in force when this returns.
    ///
    /// # Errors
    /// Nothing requested can be recorded, or kernel events cannot and the request insists.
    pub fn start(bundle: &Path, wanted: RecordingWanted) -> Result<Recording, Failure> {
        Recording::start_attached(bundle, wanted).map(|(recording, _)| recording)
    }

    /// Like [`Recording::start`], with the BPF programs of kernel events.
    pub(crate) fn start_attached(
        bundle: &Path,
        wanted: RecordingWanted,
    ) -> Result<(Recording, AttachedPrograms), Failure> {
        let (stop, progress) = (Arc::<AtomicBool>::default(), Arc::<RecordingProgress>::default());
        let (ready, started) = mpsc::sync_channel(1);
        let (bundle, its_stop, its_progress) =
            (bundle.to_owned(), Arc::clone(&stop), Arc::clone(&progress));
        // The reading thread creates the recorders: it uses the memory that they map, and should be
        // the one to touch it first.
        let body = move || {
            settle_thread(&wanted.thread_cpus);
            match Drain::start(&bundle, wanted, its_progress) {
                Ok(drain) => {
                    let _ = ready.send(Ok((drain.findings().to_vec(), drain.attached_programs())));
                    Some(drain.run(&its_stop))
                }
                Err(failure) => {
                    let _ = ready.send(Err(failure));
                    None
                }
            }
        };
        let thread = std::thread::Builder::new().name("punctual-record".to_owned()).spawn(body);
        let thread =
            thread.map_err(|why| Failure::failed(format!("cannot start a thread: {why}")))?;
        let (findings, attached) = started.recv().unwrap_or_else(|_| Err(Failure::failed(DIED)))?;
        Ok((Recording { thread: Some(thread), stop, progress, findings }, attached))
    }

    /// The state of a recording.
    pub fn progress(&self) -> &RecordingProgress {
        &self.progress
    }

    /// Whether the recording has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.progress.ended.load(Ordering::Relaxed)
    }

    /// Stops: removes the recorders, writes the rest, and saves the document durably.
    pub fn stop(mut self) -> Result<RecordingResult, Failure> {
        self.stop_thread().ok_or_else(|| Failure::failed(DIED))
    }

    fn stop_thread(&mut self) -> Option<RecordingResult> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok().flatten()
    }
}

/// If its companion could not begin: nothing of it stays in tracefs.
impl Drop for Recording {
    fn drop(&mut self) {
        self.stop_thread();
    }
}

const DIED: &str =
    "the recording thread died; this is a bug. What it wrote until then is in the bundle";

/// Places the calling thread, which reads recorders, where it disturbs least and runs soonest.
pub(crate) fn settle_thread(cpus: &CpuSet) {
    if !cpus.is_empty() {
        // Elsewhere it disturbs more, and is seen in the recording.
        let _ = attributes::set_affinity(0, cpus);
    }
    raise_priority();
}

/// If many tasks want its CPU, or real-time tasks hold the one that it last ran on, buffers fill
/// while the thread waits. At the lowest real-time priority it is moved wherever such a task may
/// run (kernel/sched/rt.c, push and pull); without that right it takes its turn, an early one if
/// allowed.
fn raise_priority() {
    let lowest_realtime = Scheduling::new(Policy::Fifo, Priority::new(1));
    let early = Scheduling { nice: -20, ..Scheduling::new(Policy::Other, None) };
    let _ = attributes::set_scheduling(0, &lowest_realtime)
        .or_else(|_| attributes::set_scheduling(0, &early));
}

/// The state of a recording.
#[derive(Debug, Default)]
pub struct RecordingProgress {
    /// Kernel events and test points so far.
    pub events: AtomicU64,
    pub lost: AtomicU64,
    pub bytes: AtomicU64,
    /// Whether recording has ended by itself: its bound is reached, the disk is full, something
    /// failed.
    pub ended: AtomicBool,
}

/// The result of a recording.
#[derive(Debug)]
pub struct RecordingResult {
    /// The recorded extent and the losses.
    pub recorded: Recorded,
    /// The error that prevented a write.
    pub trouble: Option<String>,
}
