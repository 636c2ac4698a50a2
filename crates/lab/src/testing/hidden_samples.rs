//! What a machine may keep from BPF programs, and so from tests that count what they tell.

/// Samples that may be untold although nothing is wrong: on some machines no BPF program runs while a thread of the first process does, not even for what
/// interrupts it (trace buffers have those events).
pub struct HiddenSamples {
    ran: i64,
}

impl HiddenSamples {
    /// From now on.
    pub fn begin() -> HiddenSamples {
        HiddenSamples { ran: ran_of_first() }
    }

    /// Until now: so many samples at most with this period, of ns. How the stretches of that process lie among the samples is chance, hence twice its time.
    pub fn samples(&self, period: i64) -> usize {
        ((ran_of_first() - self.ran).max(0) * 2 / period) as usize
    }
}

/// How long the threads of the first process ran so far, ns (/proc/PID/task/TID/schedstat); 0 where the kernel does not count it.
fn ran_of_first() -> i64 {
    let threads = std::fs::read_dir("/proc/1/task").into_iter().flatten().flatten();
    let ran = |text: String| text.split(' ').next().and_then(|ran| ran.parse::<i64>().ok());
    threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok().and_then(ran)).sum()
}
