//! Samples that a machine may hide from BPF programs, and so from tests that count their records.

/// Samples that may have no record without a defect: on some machines no BPF program runs while a
/// thread of the first process does, not even for its interrupts (trace buffers have those events).
pub struct HiddenSamples {
    ran: i64,
}

impl HiddenSamples {
    pub fn begin() -> HiddenSamples {
        HiddenSamples { ran: ran_of_first() }
    }

    /// The maximum number of such samples until now, with this period in ns. The run times of that
    /// process are distributed randomly among the samples, hence twice its time.
    pub fn samples(&self, period: i64) -> usize {
        ((ran_of_first() - self.ran).max(0) * 2 / period) as usize
    }
}

/// The run time of the first process's threads so far, ns (/proc/PID/task/TID/schedstat); 0 if the
/// kernel does not count it.
fn ran_of_first() -> i64 {
    let threads = std::fs::read_dir("/proc/1/task").into_iter().flatten().flatten();
    let ran = |text: String| text.split(' ').next().and_then(|ran| ran.parse::<i64>().ok());
    threads
        .filter_map(|thread| {
            std::fs::read_to_string(thread.path().join("schedstat")).ok().and_then(ran)
        })
        .sum()
}
