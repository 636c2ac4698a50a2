//! Detects that a process of the ring was killed: the leader would wait for its turn for ever.

use super::members::{SwitchRing, has_ended};
use crate::workload::Observer;
use punctual_core::Notes;
use punctual_sys::signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval of its checks. On the controller's CPUs, while nothing else waits for it.
const EVERY: Duration = Duration::from_millis(200);

/// Checks the processes while the ring measures.
pub struct SwitchWatch {
    ring: Arc<SwitchRing>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SwitchWatch {
    /// Watches a ring of processes.
    pub fn new(ring: &Arc<SwitchRing>) -> SwitchWatch {
        SwitchWatch { ring: Arc::clone(ring), ended: Arc::default(), thread: None }
    }
}

impl Observer for SwitchWatch {
    fn on_start(&mut self) {
        let (ring, ended) = (Arc::clone(&self.ring), Arc::clone(&self.ended));
        let pids: Vec<i32> = ring
            .shared_memory
            .task_slots()
            .skip(1)
            .map(|slot| slot.pid.load(Ordering::Acquire))
            .collect();
        let watch = move || {
            while !ended.load(Ordering::Acquire) {
                if pids.iter().any(|pid| has_ended(*pid)) {
                    ring.shared_memory.set_broken();
                }
                if ring.shared_memory.is_broken() {
                    // Repeated until it has checked; ESRCH if it has already ended.
                    let _ = signals::wake_thread(
                        ring.shared_memory.task_slot(0).tid.load(Ordering::Acquire),
                    );
                }
                std::thread::park_timeout(EVERY);
            }
        };
        // Without it a killed process is noticed when the run is interrupted.
        self.thread = std::thread::Builder::new().name("ring-watch".into()).spawn(watch).ok();
    }

    fn on_end(&mut self) -> Notes {
        self.stop_watching();
        Notes::default()
    }
}

impl SwitchWatch {
    fn stop_watching(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic; nothing could be done about it.
            let _ = thread.join();
        }
    }
}

impl Drop for SwitchWatch {
    fn drop(&mut self) {
        self.stop_watching();
    }
}
