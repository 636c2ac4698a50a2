//! punctual on another system for a few short commands, beside runs.

use super::binary;
use super::client::Connection;
use super::destination::Destination;
use super::staging::{self, Leftover, RemoteDirectory, last_lines, run_command};
use super::{ErrorPlace, SshError};
use std::path::Path;
use std::time::Duration;

/// The commands that restart a system.
const RESTARTS: [&[&str]; 5] = [
    &["reboot"],
    &["reboot", "0 tryboot"],
    &["systemctl", "reboot"],
    &["systemctl", "kexec"],
    &["kexec", "-e"],
];
const BOOT_ID: &str = "cat /proc/sys/kernel/random/boot_id";

/// The program in a directory of its own there.
pub struct RemoteProgram {
    connection: Connection,
    directory: RemoteDirectory,
}

/// The answer to a command.
pub struct RemoteAnswer {
    pub stdout: Vec<u8>,
    /// Its exit code was 0.
    pub is_done: bool,
    /// The last lines of its messages.
    pub messages: String,
}

impl RemoteProgram {
    /// Sends it. `binary`: the program; `None`: the running one, or one built beside it.
    pub fn send_to(to: &Destination, binary: Option<&Path>) -> Result<RemoteProgram, SshError> {
        let connection = Connection::open(to)?;
        let binary = binary::choose_binary(binary, &connection.system.machine)?;
        let directory = staging::stage_program(&connection, &binary)?;
        Ok(RemoteProgram { connection, directory })
    }

    /// Runs it with these words, none of which may mean anything to a shell.
    pub fn run_words(&self, words: &[&str]) -> Result<RemoteAnswer, SshError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " =.,_-:/@+".contains(c);
        if let Some(word) = words.iter().find(|word| !word.chars().all(is_plain)) {
            let reason = format!("{word:?} cannot be sent to another system");
            return Err(SshError::new(ErrorPlace::Request, reason));
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let script = format!("./punctual {}", quoted.join(" "));
        let output = run_command(&self.connection, &self.directory.script_inside(&script), &[])?;
        if let Some(why) =
            staging::gone_error(&self.connection, output.status.code(), &output.stderr)
        {
            return Err(why);
        }
        let (is_done, messages) = (output.status.success(), last_lines(&output.stderr));
        Ok(RemoteAnswer { stdout: output.stdout, is_done, messages })
    }

    /// Removes it there.
    pub fn remove(self) -> Result<(), SshError> {
        let run = Leftover {
            id: self.directory.run_id().to_owned(),
            experiment: String::new(),
            state: String::new(),
            disconnected_for: None,
            directory: self.directory,
        };
        staging::remove_run(&self.connection, &run)
    }
}

/// The id of the boot of another system (random(4)).
pub fn boot_id(connection: &Connection) -> Result<String, SshError> {
    let output = run_command(connection, BOOT_ID, &[])?;
    let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_id = id.len() == 36 && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    match is_id {
        true => Ok(id),
        false => Err(SshError::new(
            ErrorPlace::Remote,
            format!("{} does not say which boot it is in", connection.destination()),
        )),
    }
}

/// Restarts another system by one of the commands that punctual there names: in a second, so that
/// this command still ends.
pub fn restart_system(connection: &Connection, command: &[String]) -> Result<(), SshError> {
    let known_command = RESTARTS.iter().find(|known| known.iter().eq(command.iter()));
    let Some(known) = known_command else {
        let reason = format!("{} names an unknown command to restart it", connection.destination());
        return Err(SshError::new(ErrorPlace::Remote, reason));
    };
    let words: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
    let script =
        format!("sh -c '(sleep 1; sync; {}) >/dev/null 2>&1 </dev/null &'", words.join(" "));
    match run_command(connection, &script, &[]) {
        Ok(output) if !output.status.success() => {
            let reason = format!(
                "{} does not restart: {}",
                connection.destination(),
                last_lines(&output.stderr)
            );
            Err(SshError::new(ErrorPlace::Remote, reason))
        }
        // Some systems are faster.
        Ok(_) | Err(SshError { trouble: ErrorPlace::Lost, .. }) => Ok(()),
        Err(why) => Err(why),
    }
}

/// How long to wait between attempts to reach a system that restarts.
pub const PAUSE: Duration = Duration::from_secs(1);
