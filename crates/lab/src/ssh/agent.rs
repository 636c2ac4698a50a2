//! The remote end: punctual itself, in its own directory on the other system.
//!
//! ```text
//! nonce               the creator's mark of the directory
//! punctual            the program
//! lock                held by the supervisor as long as it lives; its process number
//! order               the request of the run (see [`request::RunRequest`])
//! work/               the working directory, with the experiment's file
//! run.pid             the process of the run while it runs
//! interrupted         the run was interrupted
//! contact             the last connection of a client (CLOCK_BOOTTIME, seconds)
//! messages, answer    the run's standard error and standard output
//! bundle/             the results
//! ended               how it ended
//! ```
//!
//! The supervisor starts the run and outlives every connection; `attach` is the process at the end
//! of a connection and reads these files. The directory is always removed: when the bundle was
//! fetched, or when no client came for it.

mod attach;
mod request;
mod supervise;

pub(crate) use request::RunRequest;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument that makes the program the remote end.
pub const ARGUMENT: &str = "__remote";
/// The maximum time for a supervisor to start, or to end on request, even on a busy or slow system.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(60);

/// Executes the other arguments: a word, the directory, and more. Errors go to standard error,
/// which the connection returns.
pub fn run_agent(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let mut next = || arguments.next().unwrap_or_default();
    let (word, directory, more) = (next(), RunDirectory { path: PathBuf::from(next()) }, next());
    let done = directory.check_identity().and_then(|()| match word.to_str() {
        Some("begin") => directory.start_supervisor(),
        Some("supervise") => supervise::supervise_run(&directory),
        Some("attach") => attach::attach_to_run(
            &directory,
            more.to_str().and_then(|more| more.parse().ok()).unwrap_or(0),
        ),
        Some("status") => directory.print_status(),
        Some("remove") => remove(&directory),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "unknown request")),
    });
    match done {
        Ok(()) => 0,
        // A shell's exit code for a missing program.
        Err(_) if !directory.path.is_dir() => 127,
        Err(why) => {
            let _ = writeln!(io::stderr(), "punctual, in {}: {why}", directory.path.display());
            1
        }
    }
}

struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    fn file_path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Checks that the working directory, which the caller verified, is the one named by the path:
    /// it identifies the run in `ps`, and must not lead elsewhere.
    fn check_identity(&self) -> io::Result<()> {
        let (here, named) = (fs::metadata(".")?, fs::symlink_metadata(&self.path)?);
        match (here.dev(), here.ino()) == (named.dev(), named.ino()) {
            true => Ok(()),
            false => Err(io::Error::other("this process was started in another directory")),
        }
    }

    /// The running program, even if the file at its path has changed.
    fn program_command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(self.file_path("punctual"));
        command
    }

    /// Starts the supervisor and waits until it holds its lock.
    fn start_supervisor(&self) -> io::Result<()> {
        self.note_contact()?;
        let mut command = self.program_command();
        command.args([ARGUMENT.as_ref(), "supervise".as_ref(), self.path.as_os_str()]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let until = Instant::now() + SUPERVISOR_TIMEOUT;
        while Instant::now() < until {
            if self.supervisor_pid()?.is_some() {
                return Ok(());
            }
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("the supervisor ended at once: {status}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other("the supervisor does not start"))
    }

    fn lock_file(&self) -> io::Result<File> {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.file_path("lock"))
    }

    /// Takes the lock; `None` if another process has it.
    fn try_lock(&self) -> io::Result<Option<File>> {
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(why) => Err(why.into()),
        }
    }

    /// The process of the live supervisor: the number in the lock file is valid while the lock is
    /// held.
    fn supervisor_pid(&self) -> io::Result<Option<Pid>> {
        match self.try_lock()? {
            Some(_free) => Ok(None),
            None => Ok(self.pid_in("lock")),
        }
    }

    /// The process of the run while it runs.
    fn run_pid(&self) -> io::Result<Option<Pid>> {
        Ok(self.supervisor_pid()?.and_then(|_| self.pid_in("run.pid")))
    }

    fn pid_in(&self, name: &str) -> Option<Pid> {
        fs::read_to_string(self.file_path(name)).ok()?.trim().parse().ok().and_then(Pid::from_raw)
    }

    /// Ends the run as Ctrl-C does, once: a second signal would end it at once without cleanup.
    /// False without a run.
    fn interrupt_run(&self) -> io::Result<bool> {
        if self.file_path("interrupted").exists() {
            return Ok(true);
        }
        let Some(run) = self.run_pid()? else { return Ok(false) };
        kill_process(run, Signal::INT).or_else(gone_already)?;
        // On a disk without room for a file, another signal may follow.
        let _ = fs::write(self.file_path("interrupted"), []);
        Ok(true)
    }

    fn note_contact(&self) -> io::Result<()> {
        fs::write(self.file_path("contact"), since_boot().as_secs().to_string())
    }

    /// The time since a client was connected.
    fn disconnected_for(&self) -> Duration {
        let at =
            fs::read_to_string(self.file_path("contact")).ok().and_then(|text| text.parse().ok());
        since_boot().saturating_sub(Duration::from_secs(at.unwrap_or(0)))
    }

    /// Writes a file atomically.
    fn write_whole(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = self.file_path(&format!("{name}.new"));
        fs::write(&new, bytes)?;
        fs::rename(new, self.file_path(name))
    }

    /// How the run ended, once it has.
    fn read_ending(&self) -> Option<String> {
        fs::read_to_string(self.file_path("ended"))
            .ok()
            .map(|text| text.trim_end_matches(['\0', '\n']).to_owned())
    }

    /// One line for the list of runs.
    fn print_status(&self) -> io::Result<()> {
        let state = match (
            self.read_ending(),
            self.supervisor_pid()?.is_some(),
            self.file_path("run.pid").exists(),
        ) {
            (Some(ended), true, _) => format!("ended ({ended}), its bundle can be fetched"),
            (Some(ended), false, _) => format!("ended ({ended}), its supervisor is gone"),
            (None, true, true) => "running".to_owned(),
            (None, true, false) => "starting".to_owned(),
            (None, false, _) => {
                "lost: its supervisor was killed, or the system was restarted".to_owned()
            }
        };
        let experiment_file = RunRequest::read(&self.file_path("order"))
            .map_or_else(|_| "?".to_owned(), |request| request.file);
        writeln!(io::stdout(), "{experiment_file}\t{state}\t{}", self.disconnected_for().as_secs())
    }
}

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.clamp(0, 999_999_999) as u32)
}

fn gone_already(why: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if why == rustix::io::Errno::SRCH { Ok(()) } else { Err(why) }
}

fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

/// The time for an interrupted run to undo its partition and close its bundle.
const CLEAN_END: Duration = Duration::from_secs(60);

fn remove(directory: &RunDirectory) -> io::Result<()> {
    directory.interrupt_run()?;
    let mut ended = wait_until(CLEAN_END, || Ok(directory.run_pid()?.is_none()))?;
    if let (false, Some(run)) = (ended, directory.run_pid()?) {
        // A second signal ends it at once.
        kill_process(run, Signal::INT).or_else(gone_already)?;
        ended = wait_until(SUPERVISOR_TIMEOUT, || Ok(directory.run_pid()?.is_none()))?;
    }
    if !ended {
        return Err(io::Error::other(format!(
            "the run did not end within {} s after the request",
            CLEAN_END.as_secs()
        )));
    }
    if let Some(supervisor) = directory.supervisor_pid()? {
        kill_process(supervisor, Signal::TERM).or_else(gone_already)?;
        wait_until(SUPERVISOR_TIMEOUT, || Ok(directory.supervisor_pid()?.is_none()))?;
    }
    remove_all(&directory.path)
}

fn wait_until(time: Duration, mut so: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let until = Instant::now() + time;
    while !so()? {
        if Instant::now() > until {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}
