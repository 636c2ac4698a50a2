//! A recording beside whatever else goes on: one thread takes what the recorders hold and appends
//! it to the bundle.
//!
//! Nothing is decoded meanwhile. The thread keeps away from the CPUs that are recorded where others
//! are left, and wakes at times of its own: nobody who records wakes it.

mod drain;
mod points;
mod probing;
mod progress;
mod sink;
mod sources;
mod wanted;

use crate::exit::Failure;
use drain::Drain;
pub use progress::{Done, Progress};
use punctual_core::{CpuSet, Finding, Policy, Priority};
use punctual_record::Attached;
use punctual_sys::attributes::{self, Scheduling};
pub(crate) use sources::Sources;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
pub use wanted::{BUFFER, Events, Wanted, WantedProbes, events};

/// A recording that goes on.
pub struct Recording {
    /// `None` where it was stopped.
    thread: Option<JoinHandle<Option<Done>>>,
    stop: Arc<AtomicBool>,
    progress: Arc<Progress>,
    /// What cannot be recorded here of what was wanted, and why.
    pub findings: Vec<Finding>,
}

impl Recording {
    /// Begins: when this returns, the recorders are in force.
    ///
    /// # Errors
    /// Nothing that was wanted can be recorded, or kernel events cannot and the request insists.
    pub fn start(bundle: &Path, wanted: Wanted) -> Result<Recording, Failure> {
        Recording::start_attached(bundle, wanted).map(|(recording, _)| recording)
    }

    /// The same, with the BPF programs of kernel events.
    pub fn start_attached(bundle: &Path, wanted: Wanted) -> Result<(Recording, Attached), Failure> {
        let (stop, progress) = (Arc::<AtomicBool>::default(), Arc::<Progress>::default());
        let (ready, started) = mpsc::sync_channel(1);
        let (bundle, its_stop, its_progress) =
            (bundle.to_owned(), Arc::clone(&stop), Arc::clone(&progress));
        // Recorders are made by the thread that reads them: memory that they map is touched where
        // it is used.
        let body = move || {
            settle_thread(&wanted.thread_cpus);
            match Drain::start(&bundle, wanted, its_progress) {
                Ok(drain) => {
                    let _ = ready.send(Ok((drain.findings().to_vec(), drain.attached())));
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
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether it has ended of itself.
    pub fn has_ended(&self) -> bool {
        self.progress.ended.load(Ordering::Relaxed)
    }

    /// Ends it: recorders are taken away, the rest is written, the document is for good.
    pub fn stop(mut self) -> Result<Done, Failure> {
        self.end().ok_or_else(|| Failure::failed(DIED))
    }

    fn end(&mut self) -> Option<Done> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok().flatten()
    }
}

/// Where what it stands beside could not begin: nothing of it stays in tracefs.
impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

const DIED: &str =
    "the recording thread died; this is a bug. What it wrote until then is in the bundle";

/// Puts the calling thread, one that takes what recorders hold, where it disturbs least and is
/// soonest.
pub fn settle_thread(cpus: &CpuSet) {
    if !cpus.is_empty() {
        // Elsewhere it disturbs more, and is seen in the recording.
        let _ = attributes::set_affinity(0, cpus);
    }
    hasten();
}

/// Where many want its CPU, or real-time tasks hold the one that it last ran on, buffers fill while
/// the thread waits. As the least of the real-time tasks it is moved to wherever one of them would
/// be (kernel/sched/rt.c, push and pull); without the right to that it takes its turn, an early one
/// if it may.
fn hasten() {
    let least = Scheduling::new(Policy::Fifo, Priority::new(1));
    let early = Scheduling { nice: -20, ..Scheduling::new(Policy::Other, None) };
    let _ =
        attributes::set_scheduling(0, &least).or_else(|_| attributes::set_scheduling(0, &early));
}
