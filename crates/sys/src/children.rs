//! Child processes and their descendants: adopts, watches and ends them.

use crate::usage::Usage;
use crate::{check_result, descriptor, signals};
use punctual_core::Nanos;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::time::Duration;

/// The end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessEnd {
    /// By itself, with this status.
    Status(i32),
    Signal(i32),
}

impl ProcessEnd {
    /// Status 0.
    pub fn is_success(self) -> bool {
        self == ProcessEnd::Status(0)
    }
}

impl std::fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProcessEnd::Status(0) => f.write_str("ended with success"),
            ProcessEnd::Status(status) => write!(f, "ended with status {status}"),
            ProcessEnd::Signal(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// Makes orphans among this process's descendants its children instead of init's (prctl(2),
/// PR_SET_CHILD_SUBREAPER).
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: prctl takes numbers alone here.
    check_result(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) }).map(drop)
}

/// Variables that a service manager gave only to this process (sd_notify(3),
/// sd_watchdog_enabled(3)): a process with them can act for the service.
const OF_THE_SERVICE: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// Removes variables from a command that are only for this process.
pub fn without_service_manager(command: &mut std::process::Command) {
    for name in OF_THE_SERVICE {
        command.env_remove(name);
    }
}

/// A command that is killed when this process ends in any way: strictly, when the spawning thread
/// ends (prctl(2), PR_SET_PDEATHSIG), which must live as long as the process.
pub fn killed_with_us(command: &mut std::process::Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made; the closure owns
    // nothing.
    unsafe { command.pre_exec(move || signals::die_with_parent(parent)) };
}

/// Begins a new session: signals from the terminal no longer reach this process.
pub fn leave_terminal() -> io::Result<()> {
    // SAFETY: setsid has no arguments.
    check_result(unsafe { libc::setsid() }).map(drop)
}

/// Reaps one child that has ended; `Ok(None)` if none has; ECHILD if there is no child at all.
pub fn reap_child() -> io::Result<Option<(i32, ProcessEnd)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid int to write to.
    let pid = check_result(unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) })?;
    Ok((pid > 0).then_some((pid, exit_of(status))))
}

/// The resources used by a child and the descendants that it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    pub usage: Usage,
}

/// Waits until a child has ended, without reaping it: until then its number cannot be reused.
pub fn wait_for_end(pid: i32) -> io::Result<()> {
    loop {
        // SAFETY: siginfo_t is plain integers; all zeroes is a value of it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is valid to write to.
        let ended = unsafe {
            libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        match check_result(ended) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Reaps a child that has ended, with its resource usage (wait4(2)).
pub fn reap_with_usage(pid: i32) -> io::Result<(ProcessEnd, Used)> {
    let mut status = 0;
    // SAFETY: rusage is plain integers; all zeroes is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid to write to.
    check_result(unsafe { libc::wait4(pid, &mut status, 0, &mut usage) })?;
    let nanos = |time: libc::timeval| {
        Nanos(widen_time_part(time.tv_sec) * 1_000_000_000 + widen_time_part(time.tv_usec) * 1_000)
    };
    let used = Used {
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
        usage: Usage::from(&usage),
    };
    Ok((exit_of(status), used))
}

/// A field of a C library time, which has 32 bits on some systems.
fn widen_time_part(part: impl Into<i64>) -> i64 {
    part.into()
}

fn exit_of(status: i32) -> ProcessEnd {
    match libc::WIFSIGNALED(status) {
        true => ProcessEnd::Signal(libc::WTERMSIG(status)),
        false => ProcessEnd::Status(libc::WEXITSTATUS(status)),
    }
}

/// Becomes readable when a child ends (signalfd(2)).
pub struct ChildEvents(OwnedFd);

impl ChildEvents {
    /// Blocks SIGCHLD in the calling thread and receives it from the descriptor instead.
    pub fn new() -> io::Result<ChildEvents> {
        let set = signals::set_of(&[libc::SIGCHLD]);
        signals::block_signals(&set);
        // SAFETY: a valid set; the call makes a descriptor.
        let fd = unsafe {
            descriptor::own_descriptor(libc::signalfd(
                -1,
                &set,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ))
        };
        fd.map(ChildEvents)
    }
    /// Takes pending signals, so that the descriptor is no longer readable. Children must be reaped
    /// afterwards.
    pub fn clear_pending(&self) {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>() * 4];
        // SAFETY: the kernel writes at most the stated length.
        while unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) } > 0 {}
    }
}

impl AsFd for ChildEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a signal to a process or, with a negative number, to a process group. ESRCH: there is
/// none.
pub fn send_signal(pid: i32, signal: i32) -> io::Result<()> {
    // 0 and -1 mean this process and all processes.
    if matches!(pid, -1..=1) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: kill takes numbers alone.
    check_result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// All living descendants of a process, from /proc/PID/stat. Processes that end meanwhile are
/// omitted.
pub fn list_descendants(of: i32) -> io::Result<Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some(parent) = parent_in(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (Vec::new(), 0);
    found.extend(children.remove(&of).unwrap_or_default());
    while let Some(pid) = found.get(next).copied() {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    Ok(found)
}

/// The parent of a process that is not a zombie. The name before it can hold anything, also `)`:
/// the last one ends it (proc(5)).
fn parent_in(stat: &[u8]) -> Option<i32> {
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(after + 1..)?).ok()?;
    let mut words = text.split_ascii_whitespace();
    let state = words.next()?;
    words.next()?.parse().ok().filter(|_| state != "Z")
}

/// Ends all descendants of this process and reaps those that are its children. First all are
/// stopped, so that none can fork faster than it is found. `Err` if some still exist after
/// `timeout`.
pub fn end_descendants(timeout: Duration) -> io::Result<()> {
    let me = std::process::id() as i32;
    let until = std::time::Instant::now() + timeout;
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        let mut signalled = Vec::new();
        loop {
            let alive = list_descendants(me)?;
            let new: Vec<i32> =
                alive.iter().copied().filter(|pid| !signalled.contains(pid)).collect();
            // Processes that have ended meanwhile cannot and need not be signalled.
            new.iter().for_each(|pid| drop(send_signal(*pid, signal)));
            while let Ok(Some(_)) = reap_child() {}
            let done = if signal == libc::SIGKILL { alive.is_empty() } else { new.is_empty() };
            if done || (signal == libc::SIGSTOP && std::time::Instant::now() > until) {
                break;
            }
            if std::time::Instant::now() > until {
                let message =
                    format!("{} processes did not end, such as {}", alive.len(), alive[0]);
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            signalled.extend(new);
            if signal == libc::SIGKILL {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    while let Ok(Some(_)) = reap_child() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent_in(b"12 (a) R 1 ) S 7 1 1"), Some(7));
        assert_eq!(parent_in(b"12 (gone) Z 7 1 1"), None);
        assert_eq!(parent_in(b"12 (cut"), None);
    }
}
