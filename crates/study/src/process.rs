//! A process that a study starts and waits for: `punctual run`, or a command whose time is taken.

use punctual_bundle::Member;
use punctual_core::format::escape_unsafe;
use punctual_core::{CpuSet, Nanos};
use punctual_session::exit::Failure;
use punctual_sys::attributes::{read_affinity, set_affinity, thread_id};
use punctual_sys::children;
use punctual_sys::descriptor::poll_readable;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often child processes are polled.
pub const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// The same while one is waited for on kernels before 5.3, which have no pidfd.
const WITHOUT_PIDFD: Duration = Duration::from_millis(10);
/// How long a process may take to end on request.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a failed run's log is shown.
const LOG_TAIL_BYTES: usize = 600;

/// A process in a group of its own, so that Ctrl-C reaches only us and we end it in order.
pub struct Process {
    child: Child,
    began: Instant,
    asked: Option<Instant>,
}

impl Process {
    /// Starts a command, which writes into the log if there is one; with `cpu` it is confined to
    /// that CPU.
    pub fn start(mut command: Command, log: Option<File>, cpu: Option<usize>) -> io::Result<Self> {
        command.stdin(Stdio::null()).process_group(0);
        if let Some(log) = log {
            command.stdout(log.try_clone()?).stderr(log);
        }
        // A child inherits the affinity of the starting thread. Another user's partition may have
        // taken this CPU: then the child uses any allowed CPU.
        let own_affinity = read_affinity(thread_id())?;
        let moved =
            cpu.is_some_and(|cpu| set_affinity(thread_id(), &CpuSet::from_cpu(cpu)).is_ok());
        let child = command.spawn();
        if moved {
            set_affinity(thread_id(), &own_affinity)?;
        }
        Ok(Process { child: child?, began: Instant::now(), asked: None })
    }

    /// Starts a run that [`own_run`] makes.
    pub fn start_run(
        command: Command,
        log: Option<File>,
        cpu: Option<usize>,
    ) -> Result<Self, Failure> {
        Process::start(command, log, cpu)
            .map_err(|why| Failure::failed(format!("cannot start punctual: {why}")))
    }

    /// Time since its start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether we asked it to end.
    pub fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The exit status, if it has ended.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child
            .try_wait()
            .map_err(|why| Failure::failed(format!("cannot wait for a process: {why}")))
    }

    /// Asks it to end, once; ends it with SIGKILL if it has not done so in time.
    pub(crate) fn request_end(&mut self) {
        match self.asked {
            None => self.send_signal(libc::SIGTERM),
            Some(at) if at.elapsed() > END_TIMEOUT => self.send_signal(libc::SIGKILL),
            Some(_) => {}
        }
        self.asked.get_or_insert_with(Instant::now);
    }

    fn send_signal(&self, signal: i32) {
        // If it has ended already, that is fine.
        let _ = children::send_signal(-(self.child.id() as i32), signal);
    }

    /// Waits for its end, and asks for it when interrupted. `None` if it took longer than allowed
    /// and was killed.
    pub fn wait_for_end(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
        longest: Duration,
    ) -> Result<Option<ExitStatus>, Failure> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let fd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(Some(status));
            }
            if self.elapsed() > longest && !self.was_asked() {
                self.send_signal(libc::SIGKILL);
                let _ = self.child.wait();
                return Ok(None);
            }
            if self.was_asked() || is_interrupted() {
                self.request_end();
            }
            match &fd {
                Some(fd) => drop(poll_readable([fd.as_fd()], POLL_INTERVAL.as_millis() as i32)),
                None => std::thread::sleep(WITHOUT_PIDFD),
            }
        }
    }
}

/// `punctual run` by this program, without further options.
pub fn own_run(bundle: &Path, experiment: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["run", "--child-of", &std::process::id().to_string(), "--output"]);
    command.arg(bundle).arg(experiment);
    command
}

/// Why a process failed: the end of its log.
pub(crate) fn failure_reason(status: ExitStatus, log: &Member) -> String {
    let messages = log.read().unwrap_or_default();
    let messages =
        String::from_utf8_lossy(&messages[messages.len().saturating_sub(64 << 10)..]).into_owned();
    let line = messages
        .lines()
        .rev()
        .find(|line| line.contains("error"))
        .or(messages.lines().rev().find(|l| !l.trim().is_empty()));
    let mut line = escape_unsafe(line.unwrap_or("no output").trim());
    if let Some((end, _)) = line.char_indices().nth(LOG_TAIL_BYTES) {
        line.truncate(end);
    }
    format!("{status}: {line}")
}

/// A time of this machine's clock.
pub(crate) fn to_nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
