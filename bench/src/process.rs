//! Watches a process from outside: the CPU time of its threads and its resident memory.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Observations of a process in its steady state.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// CPU time of all its threads over the watched span, in ns (/proc/PID/task/TID/schedstat).
    pub cpu_ns: u64,
    /// The span, in s.
    pub span: f64,
    /// VmRSS at its end, in kB.
    pub resident_kb: u64,
    /// VmHWM at its end, in kB.
    pub peak_kb: u64,
}

/// Runs a command to its end and watches it from `begin` to `end` after its start.
pub fn watch_command(
    command: &mut Command,
    begin: Duration,
    end: Duration,
) -> Result<Seen, String> {
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    let observation = observe_child(&child, start, begin, end);
    let status = child.wait().map_err(|e| e.to_string())?;
    // 3 and 4 are punctual's verdicts on the machine.
    match status.code() {
        Some(0 | 3 | 4) => observation,
        _ => Err(format!("{command:?}: {status}")),
    }
}

fn observe_child(
    child: &Child,
    start: Instant,
    begin: Duration,
    end: Duration,
) -> Result<Seen, String> {
    std::thread::sleep(begin.saturating_sub(start.elapsed()));
    let (first, at) = (cpu_ns(child.id())?, Instant::now());
    std::thread::sleep(end.saturating_sub(start.elapsed()));
    let (second, span) = (cpu_ns(child.id())?, at.elapsed().as_secs_f64());
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))
        .map_err(|e| e.to_string())?;
    let kb = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
            .ok_or(format!("no {key} in its status"))
    };
    Ok(Seen {
        cpu_ns: second.saturating_sub(first),
        span,
        resident_kb: kb("VmRSS:")?,
        peak_kb: kb("VmHWM:")?,
    })
}

fn cpu_ns(pid: u32) -> Result<u64, String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|e| format!("it ended too early: {e}"))?;
    let of_task = |path: std::path::PathBuf| -> Option<u64> {
        std::fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    Ok(tasks.flatten().filter_map(|task| of_task(task.path())).sum())
}
