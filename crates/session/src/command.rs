//! The command that runs while recording.

use crate::exit::Failure;
use crate::programs::find_program;
use punctual_bundle::{CommandEnd, HowEnded};
use punctual_sys::children;
use punctual_sys::user::User;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The time between the request to end and the kill.
const COMMAND_END_TIMEOUT: Duration = Duration::from_secs(5);

/// A started command.
pub struct Command {
    child: Child,
    status: Option<ExitStatus>,
    /// Whether the command was asked to end.
    terminated: bool,
}

/// The program of a command line, found as by a shell; `None` without a command.
pub fn find_command(command: &[String]) -> Result<Option<PathBuf>, Failure> {
    let Some(name) = command.first() else { return Ok(None) };
    let found = find_program(name);
    found.map(Some).map_err(|why| Failure::refused(format!("cannot run `{name}`: {why}")))
}

/// The name of a bundle of this command line.
pub fn bundle_name(line: &[String]) -> String {
    let program = line.first().map(|program| program.rsplit('/').next().unwrap_or_default());
    program.filter(|name| !name.is_empty()).unwrap_or("trace").to_owned()
}

/// The user for a command, as named on the command line.
///
/// # Errors
/// There is no such user, or this process may not start anything as another one.
pub fn find_user(name: Option<&str>) -> Result<Option<User>, Failure> {
    let Some(name) = name else { return Ok(None) };
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::refused("--user needs root: only root starts commands as others"));
    }
    let refused = |why| Failure::refused(format!("--user {name}: {why}"));
    User::find_user(name).map(Some).map_err(refused)
}

/// A command that is ready to start, with the terminal and the environment of this process, except
/// the service manager's variables for this process; as this user, or as the current one. It is
/// killed with this process, and with the thread that starts it.
pub fn prepare_command(
    program: &Path,
    line: &[String],
    output_to_stderr: bool,
    user: Option<&User>,
) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.arg0(&line[0]).args(&line[1..]);
    children::without_service_manager(&mut command);
    user.into_iter().for_each(|user| user.set_command_user(&mut command));
    children::killed_with_us(&mut command);
    if output_to_stderr {
        command.stdout(std::io::stderr());
    }
    command
}

impl Command {
    /// A command that was started elsewhere.
    pub fn from_child(child: Child) -> Command {
        Command { child, status: None, terminated: false }
    }

    pub fn start(program: &Path, line: &[String], user: Option<&User>) -> Result<Command, Failure> {
        let child = prepare_command(program, line, false, user).spawn();
        let child =
            child.map_err(|why| Failure::refused(format!("cannot run `{}`: {why}", line[0])))?;
        Ok(Command::from_child(child))
    }

    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Asks the command to end (SIGTERM; Ctrl-C has reached it already), and kills it if needed.
    pub fn terminate(&mut self) {
        // The process id may be reused by now.
        if self.has_ended() {
            return;
        }
        self.terminated = true;
        let _ = children::send_signal(self.child.id() as i32, libc::SIGTERM);
        let until = Instant::now() + COMMAND_END_TIMEOUT;
        while !self.has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }

    /// How the command ended, if it did before the request to end.
    pub(crate) fn own_end(&self) -> Option<HowEnded> {
        let status = self.status.filter(|_| !self.terminated)?;
        Some(HowEnded::of_wait(status.into_raw() as u32))
    }

    pub fn into_end(self) -> Option<CommandEnd> {
        let status = self.status?;
        let code =
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        let code = u8::try_from(code).unwrap_or(u8::MAX);
        Some(CommandEnd { code, by_itself: !self.terminated })
    }
}
