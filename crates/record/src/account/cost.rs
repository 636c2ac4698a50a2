//! The cost of the accounting: the kernel counts the run time of its programs
//! (`bpf_prog_info::run_time_ns`) while a thread sleeps.

use super::Accountant;
use crate::bpf::{Attach, sys};
use punctual_core::{AccountCost, CpuSet, Fact, Nanos};
use punctual_sys::attributes::{self, set_affinity};
use std::time::Duration;

const SLEEPS: u64 = 60;
const SLEEP: Duration = Duration::from_micros(500);

impl Accountant {
    /// Measures the cost of a sample, in about 30 ms before the measurement, including other tasks
    /// of these CPUs.
    pub fn measure_cost(&mut self) -> Fact<AccountCost> {
        let Some(cpu) = self.cpus.first_cpu() else { return Fact::NotAsked };
        let _counting = match sys::enable_run_time() {
            Ok(counting) => counting,
            Err(why) => return Fact::Unavailable(format!("BPF_ENABLE_STATS: {why}")),
        };
        let before = self.run_time();
        let slept = std::thread::scope(|scope| {
            let (sent, tid) = std::sync::mpsc::sync_channel(1);
            let (go, begin) = std::sync::mpsc::sync_channel::<()>(1);
            let sleeper = std::thread::Builder::new().name("account-cost".to_owned()).spawn_scoped(
                scope,
                move || {
                    // On other CPUs the programs do not watch, and the cost is underestimated,
                    // which is reported.
                    let bound = set_affinity(0, &CpuSet::from_cpu(cpu)).is_ok();
                    let _ = sent.send(attributes::thread_id() as u32);
                    let _ = begin.recv();
                    (0..SLEEPS).for_each(|_| std::thread::sleep(SLEEP));
                    bound
                },
            );
            let Ok(sleeper) = sleeper else { return false };
            let watched = tid.recv().is_ok_and(|tid| self.watch_thread(tid).is_ok());
            let _ = go.send(());
            sleeper.join().unwrap_or(false) && watched
        });
        if !slept {
            return Fact::Unavailable(format!("no thread could run on CPU {cpu} to measure it"));
        }
        let after = self.run_time();
        self.drain_records(&mut |_| ());
        match before.zip(after) {
            Some((before, after)) => Fact::Known(AccountCost {
                per_sample: Nanos(((after.0 - before.0) / SLEEPS) as i64),
                runs_per_sample: (after.1 - before.1) / SLEEPS,
                samples: SLEEPS,
            }),
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
