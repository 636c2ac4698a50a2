//! A running process: its threads, its CPU time, and the switches that /proc counts.

use crate::exit::Failure;
use punctual_bundle::CpuTime;
use punctual_core::{Fact, Nanos};
use punctual_session::programs::is_there;
use std::collections::BTreeMap;
use std::fs;

/// The unit of times in /proc/PID/stat: USER_HZ is 100 on every current architecture of Linux
/// (include/asm-generic/param.h).
const TICK: Nanos = Nanos(10_000_000);

/// The process, at the begin of counting and at the last read.
pub struct CountedProcess {
    pid: u32,
    began: ProcessReading,
    last: ProcessReading,
    /// Whether a thread ended meanwhile, with its switches.
    lost: bool,
}

#[derive(Clone, Default)]
struct ProcessReading {
    /// Voluntary and involuntary switches of each thread.
    switches: BTreeMap<i32, (u64, u64)>,
    user: Nanos,
    system: Nanos,
}

impl CountedProcess {
    /// An existing process.
    pub fn from_pid(pid: u32) -> Result<CountedProcess, Failure> {
        if !is_there(pid) {
            return Err(Failure::refused(format!("there is no process {pid}")));
        }
        let began = ProcessReading::read_process(pid).ok_or_else(|| {
            Failure::refused(format!(
                "there is no process {pid}: it is a thread, or cannot be read"
            ))
        })?;
        Ok(CountedProcess { pid, last: began.clone(), began, lost: false })
    }

    /// The process's command line, or its name without one.
    pub fn command_line(&self) -> Vec<String> {
        let read = |file| fs::read(format!("/proc/{}/{file}", self.pid)).unwrap_or_default();
        let words = |bytes: Vec<u8>| -> Vec<String> {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.split(['\0', '\n']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
        };
        Some(words(read("cmdline"))).filter(|line| !line.is_empty()).unwrap_or(words(read("comm")))
    }

    /// The process's threads at the last read.
    pub fn thread_ids(&self) -> impl Iterator<Item = i32> {
        self.last.switches.keys().copied()
    }

    /// Whether a thread of it still exists.
    pub fn has_thread(&self, thread: i32) -> bool {
        fs::exists(format!("/proc/{}/task/{thread}", self.pid)).unwrap_or(false)
    }

    /// Begins to count from /proc's current values; returns how many threads began since the
    /// earlier read.
    pub fn begin_count(&mut self) -> usize {
        let Some(now) = ProcessReading::read_process(self.pid) else { return 0 };
        let new = now.switches.keys().filter(|t| !self.began.switches.contains_key(t)).count();
        (self.last, self.began) = (now.clone(), now);
        new
    }

    /// Reads the process again; false: it has ended.
    pub fn update_reading(&mut self) -> bool {
        let now =
            Some(self.pid).filter(|pid| is_there(*pid)).and_then(ProcessReading::read_process);
        let Some(now) = now else {
            self.lost = true;
            return false;
        };
        self.lost |= self.last.switches.keys().any(|thread| !now.switches.contains_key(thread));
        self.last = now;
        true
    }

    /// The CPU time of all threads, including ended ones.
    pub fn cpu_time(&self) -> CpuTime {
        let (user, system) =
            (self.last.user - self.began.user, self.last.system - self.began.system);
        CpuTime { total: user + system, user, system }
    }

    /// The switches with this name, if there are any.
    pub fn switch_count(&self, name: &str) -> Option<Fact<u64>> {
        let which: fn(&(u64, u64)) -> u64 = match name {
            "context-switches" => |(voluntary, involuntary)| voluntary + involuntary,
            "voluntary-switches" => |(voluntary, _)| *voluntary,
            "involuntary-switches" => |(_, involuntary)| *involuntary,
            _ => return None,
        };
        if self.lost {
            let reason =
                "threads of the process have ended, and what /proc counted of them is gone";
            return Some(Fact::Unavailable(reason.to_owned()));
        }
        let before = |thread| self.began.switches.get(thread).map_or(0, which);
        let added_switches = |(thread, now)| which(now).saturating_sub(before(thread));
        Some(Fact::Known(self.last.switches.iter().map(added_switches).sum()))
    }
}

impl ProcessReading {
    fn read_process(pid: u32) -> Option<ProcessReading> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (user, system) = parse_cpu_times(&stat)?;
        let mut switches = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Ok(status) = fs::read_to_string(task.path().join("status")) {
                switches.insert(thread, parse_switches(&status));
            }
        }
        Some(ProcessReading { switches, user, system })
    }
}

/// `utime` and `stime` of proc_pid_stat(5).
fn parse_cpu_times(stat: &str) -> Option<(Nanos, Nanos)> {
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace().skip(11);
    let mut time = || fields.next()?.parse::<i64>().ok().map(|n| Nanos(n.saturating_mul(TICK.0)));
    Some((time()?, time()?))
}

/// The switches of proc_pid_status(5).
fn parse_switches(status: &str) -> (u64, u64) {
    let value_of_key = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    (value_of_key("voluntary_ctxt_switches:"), value_of_key("nonvoluntary_ctxt_switches:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_and_switches_are_parsed_from_proc() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 9 0 0 0 25 4 0 0 20 0 3 0 100 1 1";
        assert_eq!(parse_cpu_times(stat), Some((Nanos(250_000_000), Nanos(40_000_000))));
        assert_eq!(parse_cpu_times("7 (a) S 1"), None);
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse_switches(status), (12, 3));
    }

    #[test]
    fn context_switches_are_unavailable_if_a_thread_ended() {
        let seen = |all: &[(i32, (u64, u64))]| ProcessReading {
            switches: all.iter().copied().collect(),
            ..ProcessReading::default()
        };
        let mut process = CountedProcess {
            pid: 7,
            began: seen(&[(7, (10, 1))]),
            last: seen(&[(7, (15, 3)), (8, (4, 0))]),
            lost: false,
        };
        assert_eq!(process.switch_count("context-switches"), Some(Fact::Known(11)));
        assert_eq!(process.switch_count("voluntary-switches"), Some(Fact::Known(9)));
        assert_eq!(process.switch_count("involuntary-switches"), Some(Fact::Known(2)));
        assert_eq!(process.switch_count("page-faults"), None);
        process.lost = true;
        assert!(matches!(process.switch_count("voluntary-switches"), Some(Fact::Unavailable(_))));
    }
}
