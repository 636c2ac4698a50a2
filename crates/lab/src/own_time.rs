//! The time that this system gave a process. A guest on a busy machine waits for a CPU for most of
//! the wall clock's time, and little progress by then is not its fault.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The unit of /proc/stat: USER_HZ is 100 on every architecture of guests (proc_stat(5)).
const TICK: Duration = Duration::from_millis(10);

/// The wall clock since a process was started, minus its waits for a CPU and the hypervisor's
/// steal.
pub struct OwnTime {
    process: u32,
    began: Instant,
    steal: Vec<u32>,
}

impl OwnTime {
    /// Begins with a process that has just been started.
    pub fn start(process: u32) -> OwnTime {
        OwnTime { process, began: Instant::now(), steal: steal_ticks() }
    }

    /// The time until now. If the kernel counts neither waits nor steal it is the wall clock's
    /// time.
    pub fn elapsed(&self) -> Duration {
        self.began
            .elapsed()
            .saturating_sub(max_run_delay(self.process))
            .saturating_sub(self.steal_time())
    }

    /// The steal of the CPU that lost most: the process may always have been on that one.
    fn steal_time(&self) -> Duration {
        let since =
            steal_ticks().into_iter().zip(&self.steal).map(|(now, then)| now.saturating_sub(*then));
        TICK * since.max().unwrap_or(0)
    }
}

/// How long its threads were ready to run and waited for a CPU: the maximum over the threads, as
/// they wait concurrently (run_delay, the second figure of /proc/PID/task/TID/schedstat;
/// Documentation/scheduler/sched-stats.rst).
fn max_run_delay(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let delay = |path: &Path| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').nth(1)?.trim().parse().ok()
    };
    Duration::from_nanos(threads.filter_map(|thread| delay(&thread.path())).max().unwrap_or(0))
}

/// The steal of each CPU since boot.
fn steal_ticks() -> Vec<u32> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpus = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    cpus.map(|line| {
        line.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Spinning(Child);

    impl Drop for Spinning {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A process on the CPU that all of these share.
    fn spinning(niceness: &str) -> Option<Spinning> {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
        let first = list.split([',', '-']).next().unwrap();
        let words = ["-c", first, "nice", "-n", niceness, "sh", "-c", "while :; do :; done"];
        Some(Spinning(Command::new("taskset").args(words).spawn().ok()?))
    }

    #[test]
    fn time_waiting_for_a_cpu_is_not_own_time() {
        if !Path::new("/proc/self/schedstat").exists() {
            return println!("SKIPPED: the kernel counts no waiting (no /proc/PID/schedstat)");
        }
        let (Some(_busy), Some(kept)) = (spinning("0"), spinning("19")) else {
            return println!("SKIPPED: lacks taskset (Debian package util-linux)");
        };
        let own = OwnTime::start(kept.0.id());
        // Until it has waited for a while: beside a competitor of the highest weight it gets one of
        // 69 parts.
        while max_run_delay(kept.0.id()) < Duration::from_millis(300) {
            assert!(own.began.elapsed() < Duration::from_secs(120), "it never waited");
            std::thread::sleep(Duration::from_millis(20));
        }
        let (time, wall) = (own.elapsed(), own.began.elapsed());
        assert!(time + Duration::from_millis(300) <= wall, "{time:?} of {wall:?}");
    }

    #[test]
    fn without_waiters_own_time_is_all_time() {
        let sleeping = Spinning(Command::new("sleep").arg("1000").spawn().unwrap());
        let own = OwnTime { steal: vec![u32::MAX; 4096], ..OwnTime::start(sleeping.0.id()) };
        std::thread::sleep(Duration::from_millis(200));
        // The process waited for a CPU before it slept, and no longer than that.
        let settled = max_run_delay(sleeping.0.id());
        assert!(own.elapsed() + settled + Duration::from_millis(20) >= Duration::from_millis(200));
    }
}
