//! Progress of processes: whether a program works, seen from outside (proc(5)).

use crate::files::Files;
use punctual_core::Nanos;

/// At most this many processes of a tree are read.
const MAX_PROCESSES: usize = 4_096;
const TICK: Nanos = Nanos(10_000_000);

/// The work of a process since it began, of all its threads together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessWork {
    pub cpu_time: Nanos,
    /// The number of times its threads were switched in.
    pub switches: u64,
    /// Bytes read and written, from and to any file; 0 if they may not be read.
    pub io_bytes: u64,
}

/// A process and all its living descendants, the process first. `Err` if /proc does not show them.
pub fn process_tree(files: &dyn Files, root: i32) -> Result<Vec<i32>, String> {
    let (mut found, mut next) = (vec![root], 0);
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() < MAX_PROCESSES) {
        next += 1;
        for tid in list_threads(files, pid) {
            match files.read(&format!("/proc/{pid}/task/{tid}/children")) {
                Ok(text) => found.extend(
                    text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()),
                ),
                // A kernel without CONFIG_PROC_CHILDREN has none of these files; an ended process
                // has none any more.
                Err(_) if files.exists("/proc/self/task") && !has_children_files(files) => {
                    let descendants = punctual_sys::children::list_descendants(root)
                        .map_err(|why| why.to_string())?;
                    return Ok([vec![root], descendants].concat());
                }
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

fn has_children_files(files: &dyn Files) -> bool {
    let me = std::process::id();
    files.exists(&format!("/proc/{me}/task/{me}/children"))
}

fn list_threads(files: &dyn Files, pid: i32) -> Vec<String> {
    files.list(&format!("/proc/{pid}/task")).unwrap_or_default()
}

/// The work of a process; `None` if it is gone, or this user may not read it.
pub fn of_process(files: &dyn Files, pid: i32) -> Option<ProcessWork> {
    let mut done = ProcessWork::default();
    let mut is_known = false;
    for tid in list_threads(files, pid) {
        // CPU time in ns, time spent waiting, time slices
        // (Documentation/scheduler/sched-stats.rst).
        let Ok(text) = files.read(&format!("/proc/{pid}/task/{tid}/schedstat")) else { continue };
        let fields: Vec<u64> =
            text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        if let [time, _, slices] = fields[..] {
            done.cpu_time += Nanos(i64::try_from(time).unwrap_or(i64::MAX));
            done.switches = done.switches.saturating_add(slices);
            is_known = true;
        }
    }
    if !is_known {
        done.cpu_time = cpu_time(&files.read(&format!("/proc/{pid}/stat")).ok()?)?;
    }
    let io = files.read(&format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes =
        io.lines().filter_map(|line| line.strip_prefix("rchar: ").or(line.strip_prefix("wchar: ")));
    done.io_bytes = bytes.filter_map(|n| n.trim().parse::<u64>().ok()).fold(0, u64::saturating_add);
    Some(done)
}

/// Whether a thread of a process is runnable: on a CPU or waiting for one, state `R` of
/// proc_pid_stat(5).
pub fn is_ready(files: &dyn Files, pid: i32) -> bool {
    list_threads(files, pid).iter().any(|tid| {
        let stat = files.read(&format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
        task_state(&stat) == Some("R")
    })
}

/// Whether all of these processes are stopped, by a signal or a tracer: states `T` and `t`. Ended
/// processes do not count.
pub fn is_stopped(files: &dyn Files, all: &[i32]) -> bool {
    let stat = |pid: &i32| files.read(&format!("/proc/{pid}/stat")).ok();
    let stats: Vec<String> = all.iter().filter_map(stat).collect();
    let mut states = stats.iter().filter_map(|stat| task_state(stat));
    let mut states = states.by_ref().filter(|state| !matches!(*state, "Z" | "X")).peekable();
    states.peek().is_some() && states.all(|state| matches!(state, "T" | "t"))
}

/// The state in a line of /proc/PID/stat, behind the name.
fn task_state(stat: &str) -> Option<&str> {
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().next()
}

/// User and system time of a line of /proc/PID/stat.
fn cpu_time(stat: &str) -> Option<Nanos> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let ticks: i64 =
        fields.get(11)?.parse::<i64>().ok()?.saturating_add(fields.get(12)?.parse().ok()?);
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Root;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_busy_process_tree_is_distinguished_from_a_sleeping_one() {
        let files = Root::from_system();
        let mut child =
            Command::new("sh").args(["-c", "sleep 60 & while :; do :; done"]).spawn().unwrap();
        let root = child.id() as i32;
        let until = Instant::now() + Duration::from_secs(30);
        let (mut all, mut busy) = (Vec::new(), ProcessWork::default());
        while (all.len() < 2 || busy.cpu_time < Nanos::from_millis(50)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            all = process_tree(&files, root).unwrap();
            busy = of_process(&files, root).unwrap();
        }
        let sleeper = all[1];
        assert!(is_ready(&files, root) && !is_ready(&files, sleeper));
        assert!(!is_stopped(&files, &all));
        let before = of_process(&files, sleeper).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let (after, later) =
            (of_process(&files, sleeper).unwrap(), of_process(&files, root).unwrap());
        punctual_sys::children::send_signal(sleeper, libc::SIGKILL).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            busy.cpu_time >= Nanos::from_millis(50) && later.cpu_time > busy.cpu_time,
            "{busy:?} {later:?}"
        );
        assert!(after.cpu_time - before.cpu_time < Nanos::from_millis(50), "{before:?} {after:?}");
        assert_eq!(of_process(&files, root), None, "it has ended");
    }

    #[test]
    fn cpu_ticks_are_read_after_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 1 0 0 0 0";
        assert_eq!(cpu_time(stat), Some(Nanos::from_secs(3)));
        assert_eq!(task_state(stat), Some("S"));
        assert_eq!(task_state("7 (a"), None);
    }
}
