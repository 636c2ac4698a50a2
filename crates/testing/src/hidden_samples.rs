//! What a machine may hide from BPF programs, and so from tests that count their records.

/// Samples that may have no record although nothing is wrong: on some machines no BPF program runs
/// while a thread of the first process does, not even for what interrupts it (trace buffers have
/// those events).
pub struct HiddenSamples {
    ran: i64,
}

impl HiddenSamples {
    pub fn begin() -> HiddenSamples {
        HiddenSamples { ran: ran_of_first() }
    }

    /// Until now: the maximum number of such samples with this period in ns. How the run times of
    /// that process are distributed among the samples is random, hence twice its time.
    pub fn samples(&self, period: i64) -> usize {
        ((ran_of_first() - self.ran).max(0) * 2 / period) as usize
    }
}

/// How long the threads of the first process ran so far, ns (/proc/PID/task/TID/schedstat); 0 where
/// the kernel does not count it.
fn ran_of_first() -> i64 {
    let threads = std::fs::read_dir("/proc/1/task").into_iter().flatten().flatten();
    let ran = |text: String| text.split(' ').next().and_then(|ran| ran.parse::<i64>().ok());
    threads
        .filter_map(|thread| {
            std::fs::read_to_string(thread.path().join("schedstat")).ok().and_then(ran)
        })
        .sum()
}
