//! Notices that a process of the ring has been killed: the leader would wait for its turn for ever.

use super::members::{Ring, has_ended};
use crate::workload::Observer;
use punctual_core::Notes;
use punctual_host::task::signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks. On the conductor's CPUs, while nothing else waits for it.
const EVERY: Duration = Duration::from_millis(200);

/// Looks after the processes while the ring measures.
pub struct Watch {
    ring: Arc<Ring>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Over a ring of processes.
    pub fn new(ring: &Arc<Ring>) -> Watch {
        Watch { ring: Arc::clone(ring), ended: Arc::default(), thread: None }
    }
}

impl Observer for Watch {
    fn before(&mut self) {
        let (ring, ended) = (Arc::clone(&self.ring), Arc::clone(&self.ended));
        let pids: Vec<i32> = ring.board.slots().skip(1).map(|slot| slot.pid.load(Ordering::Acquire)).collect();
        let watch = move || {
            while !ended.load(Ordering::Acquire) {
                if pids.iter().any(|pid| has_ended(*pid)) {
                    ring.board.set_broken();
                }
                if ring.board.is_broken() {
                    // Again until it has looked; ESRCH when it is gone already.
                    let _ = signals::wake(ring.board.slot(0).tid.load(Ordering::Acquire));
                }
                std::thread::park_timeout(EVERY);
            }
        };
        // Without it a killed process is noticed when the run is interrupted.
        self.thread = std::thread::Builder::new().name("ring-watch".into()).spawn(watch).ok();
    }

    fn after(&mut self) -> Notes {
        self.end();
        Notes::default()
    }
}

impl Watch {
    fn end(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic; if it did there is nothing to be done.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}
