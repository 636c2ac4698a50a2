//! Real-time throttling: sets the share of real-time tasks so that others have some, and runs a
//! real-time task until it is throttled.

use super::score::Injected;
use punctual_core::{CpuSet, Nanos, Policy};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::clock;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// In each of these periods real-time tasks are throttled for at most one length.
const PERIOD: Nanos = Nanos(20_000_000);
/// The tasks run for at most this many periods until they are throttled.
const PERIODS: i64 = 4;
/// A gap of this length in the task's own time is throttling: nothing else takes a guest's CPU that
/// long.
const GAP: i64 = 200_000;
/// Memory that the other task touches, in bytes, so that page faults occur in it, too.
const TOUCHED: usize = 1 << 20;

/// Files of the kernel with their earlier contents, and the other task.
pub struct ThrottlingFiles {
    before: Vec<(PathBuf, String)>,
    ends: Arc<AtomicBool>,
}

/// Sets the limits, and starts a task without real-time policy that uses the CPU.
pub fn start_throttling(length: Nanos, cpu: usize) -> io::Result<ThrottlingFiles> {
    let server = PathBuf::from(format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}"));
    let kernel = PathBuf::from("/proc/sys/kernel");
    // The time left to others, in ns, since Linux 6.12; before, the time of real-time tasks, in µs.
    // The part is written first: it must not exceed the period.
    let settings = match server.exists() {
        true => [(server.join("runtime"), length.0), (server.join("period"), PERIOD.0)],
        false => [
            (kernel.join("sched_rt_runtime_us"), (PERIOD.0 - length.0) / 1_000),
            (kernel.join("sched_rt_period_us"), PERIOD.0 / 1_000),
        ],
    };
    let ends = Arc::new(AtomicBool::new(false));
    let mut throttling = ThrottlingFiles { before: Vec::new(), ends: Arc::clone(&ends) };
    for (file, value) in settings {
        let before = fs::read_to_string(&file)?;
        fs::write(&file, value.to_string())?;
        // Restored in the opposite order.
        throttling.before.insert(0, (file, before));
    }
    std::thread::Builder::new()
        .name("truth-other".to_owned())
        .spawn(move || load_cpu(cpu, &ends))?;
    Ok(throttling)
}

impl Drop for ThrottlingFiles {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for (file, value) in &self.before {
            // The file existed before.
            let _ = fs::write(file, value.trim());
        }
    }
}

/// Uses the CPU, and touches new memory repeatedly.
fn load_cpu(cpu: usize, ends: &AtomicBool) {
    let placed = attributes::set_affinity(0, &CpuSet::from_cpu(cpu))
        .and_then(|()| attributes::set_scheduling(0, &Scheduling::new(Policy::Other, None)));
    while placed.is_ok() && !ends.load(Ordering::Relaxed) {
        std::hint::black_box(vec![1u8; TOUCHED]);
    }
}

/// Runs until it was throttled; returns the time of that.
pub fn until_throttled() -> Option<Injected> {
    let begin = clock::monotonic_now().0;
    let mut last = begin;
    while last < begin + PERIOD.0 * PERIODS {
        let at = clock::monotonic_now().0;
        if at - last >= GAP {
            return Some(Injected::new(last, at));
        }
        last = at;
    }
    None
}
