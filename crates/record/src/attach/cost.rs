//! The cost of attaching: the kernel counts the run time of its programs, for some ms before the
//! measurement. Counting takes two clock readings per run, so it ends then.

use super::Attacher;
use crate::bpf::{Attach, sys};
use punctual_core::{Fact, Nanos};
use punctual_sys::attributes;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of cycles of the measured thread, and of its further system calls.
const CYCLES: u64 = 60;
const CALLS: u64 = 1_000;
const SLEEP: Duration = Duration::from_micros(500);

/// The time of the programs on all CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttachCost {
    /// Per cycle of one sleep.
    pub per_cycle: Nanos,
    /// Program runs per such cycle.
    pub runs_per_cycle: u64,
    /// Per further system call.
    pub per_call: Nanos,
}

impl Attacher {
    /// Measures the cost with a thread of this process, in about 40 ms, including the programs'
    /// work for other tasks meanwhile. Call it before anything is watched.
    pub fn measure_cost(&mut self) -> Fact<AttachCost> {
        let _counting = match sys::enable_run_time() {
            Ok(counting) => counting,
            Err(why) => return Fact::Unavailable(format!("BPF_ENABLE_STATS: {why}")),
        };
        let counted = std::thread::scope(|scope| {
            let (sent, tid) = std::sync::mpsc::sync_channel(1);
            let (go, begin) = std::sync::mpsc::sync_channel::<()>(1);
            let thread = std::thread::Builder::new().name("attach-cost".to_owned());
            let attacher = &*self;
            let thread = thread.spawn_scoped(scope, move || {
                let _ = sent.send(attributes::thread_id() as u32);
                begin.recv().ok()?;
                let first = attacher.run_time()?;
                (0..CALLS).for_each(|_| _ = attributes::thread_id());
                let second = attacher.run_time()?;
                (0..CYCLES).for_each(|_| std::thread::sleep(SLEEP));
                // Reading the counts takes system calls, which are in each difference once.
                let third = attacher.run_time()?;
                Some([first, second, third, attacher.run_time()?])
            });
            let tid = tid.recv().ok()?;
            self.own.store(tid, Ordering::Relaxed);
            self.watch_thread(tid).ok()?;
            go.send(()).ok()?;
            thread.ok()?.join().ok()?
        });
        self.drain_cycles(&mut |_| ());
        match counted {
            Some([first, second, third, fourth]) => {
                let run_difference = |a: (u64, u64), b: (u64, u64)| (b.0 - a.0, b.1 - a.1);
                let reading = run_difference(third, fourth);
                let net_cost = |a, b, times| {
                    let (ns, runs) = run_difference(a, b);
                    (ns.saturating_sub(reading.0) / times, runs.saturating_sub(reading.1) / times)
                };
                let (calls, cycles) =
                    (net_cost(first, second, CALLS), net_cost(second, third, CYCLES));
                Fact::Known(AttachCost {
                    per_cycle: Nanos(cycles.0 as i64),
                    runs_per_cycle: cycles.1,
                    per_call: Nanos(calls.0 as i64),
                })
            }
            None => Fact::Unavailable(
                "the kernel does not count the run time of BPF programs".to_owned(),
            ),
        }
    }

    /// ns and runs of all programs so far.
    fn run_time(&self) -> Option<(u64, u64)> {
        Attach::run_time_of(&self.attached)
    }
}
