//! Samples are taken out of their rings while the controller thread cannot: it waits for a disk, or
//! for a CPU among many that want one.
//!
//! The controller thread writes files, and a write waits for as long as the file system likes: for
//! its journal, for dirty pages of others. A ring holds two seconds. This thread writes nothing and
//! waits for nobody, so a ring that fills is emptied, whatever the disk does.

use crate::recording::settle_thread;
use punctual_core::CpuSet;
use punctual_measure::ring::BackupDrain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often rings are polled: they hold two seconds, and the rest of that is what this thread may
/// be kept off the CPUs. While the controller thread empties them ten times a second there is
/// nothing to do; who wakes more often disturbs (docs/reference/explain.md, what is kept).
const INTERVAL: Duration = Duration::from_millis(400);
/// It calls next to nothing.
const STACK: usize = 64 << 10;

/// The thread; it ends when this is dropped.
pub struct Reliever {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reliever {
    /// Relieves these rings from now on, on these CPUs. If no thread can be started, the rings hold
    /// what they hold.
    pub fn start(rings: Vec<BackupDrain>, cpus: &CpuSet) -> Reliever {
        let stop = Arc::<AtomicBool>::default();
        let (its_stop, cpus) = (Arc::clone(&stop), cpus.clone());
        let body = move || {
            settle_thread(&cpus);
            while !its_stop.load(Ordering::Relaxed) {
                for ring in &rings {
                    ring.drain_to_backup();
                }
                std::thread::park_timeout(INTERVAL);
            }
        };
        let thread = std::thread::Builder::new()
            .name("punctual-relief".to_owned())
            .stack_size(STACK)
            .spawn(body);
        Reliever { stop, thread: thread.ok() }
    }
}

impl Drop for Reliever {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
