//! Drains the samples' rings while the controller thread cannot: it waits for a CPU among many
//! tasks, or for a file of /proc or /sys.
//!
//! A ring holds two seconds. This thread waits for no other, so a full ring is drained in any case.

use crate::recording::settle_thread;
use punctual_core::CpuSet;
use punctual_measure::ring::BackupDrain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two polls of the rings: they hold two seconds, and the rest is how long this thread
/// may wait for a CPU. While the controller thread drains them ten times a second there is nothing
/// to do; waking more often disturbs (docs/reference/explain.md, what is kept).
const INTERVAL: Duration = Duration::from_millis(400);
/// The thread's calls are shallow.
const STACK: usize = 64 << 10;

/// The thread; it ends when this is dropped.
pub struct Reliever {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reliever {
    /// Drains these rings from now on, on these CPUs. If no thread can be started, the rings keep
    /// their contents.
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
