//! A connection of ssh(1): one authenticated process, and commands through it.
//!
//! ssh runs in a private directory, in which its files have short and safe names: a path in one of
//! its options would be split at spaces and expanded at `%` and `$`.

use super::destination::Destination;
use super::stderr;
use super::{ErrorPlace, SshError};
use crate::tools;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The maximum total time to connect.
const CONNECT: Duration = Duration::from_secs(40);
/// The maximum of kept output of ssh.
const STDERR_MAX: usize = 64 << 10;
const BEGIN: &str = "punctual-here";
const END: &str = "punctual-end";
/// Identifies the system and user, then stays until this end closes. In single quotes for any login
/// shell, csh and fish too.
const PROBE: &str = "sh -c 'echo; echo punctual-here; uname -s; uname -m; uname -r; uname -n; id \
                     -un || id -u; id -u; echo \"${TMPDIR:-}\"; echo \"${HOME:-}\"; echo \
                     punctual-end; exec cat >/dev/null'";

/// The remote system, as it reports itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSystem {
    /// `x86_64`, `aarch64`, … (uname(2)).
    pub machine: String,
    pub release: String,
    pub node: String,
    pub user: String,
    pub is_root: bool,
    /// `$TMPDIR` there, if set.
    pub(crate) temporary: Option<String>,
    /// `$HOME` there.
    pub(crate) home: String,
    /// The user id there.
    pub(crate) uid: String,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    to: Destination,
    master: Child,
    log: Arc<Mutex<Vec<u8>>>,
    directory: TempDir,
    pub system: RemoteSystem,
}

impl Connection {
    /// Connects and queries the system. The connection ends with this process: the pipe to it
    /// closes.
    pub fn open(to: &Destination) -> Result<Connection, SshError> {
        to.validate()?;
        tools::find_program("ssh", "openssh-client")
            .map_err(|why| SshError::new(ErrorPlace::NoClient, why))?;
        let directory = tempfile::Builder::new().prefix("punctual-connection-").tempdir();
        let directory =
            directory.map_err(SshError::local("create a directory in", &std::env::temp_dir()))?;
        lay_out(to, directory.path())?;
        let mut command = ssh_command(to, directory.path());
        command.args(["-v", "-M", "-o", "ControlPersist=no", "--", &to.host, PROBE]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut master = command.spawn().map_err(|why| {
            SshError::new(ErrorPlace::NoClient, format!("cannot start ssh: {why}"))
        })?;
        let log = Arc::<Mutex<Vec<u8>>>::default();
        if let Some(stderr) = master.stderr.take() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || keep_the_end(stderr, &log));
        }
        match read_probe(&mut master) {
            Ok(system) => {
                Ok(Connection { to: to.clone(), master, log, directory, system: system? })
            }
            Err(ended) => {
                end_master(&mut master);
                let log = log_text(&log);
                Err(match ended {
                    SessionEnd::Silent
                        if !log.contains("debug1: Authentication succeeded")
                            && !log.contains("Authenticated to") =>
                    {
                        stderr::judge_failure(to, &log)
                    }
                    SessionEnd::Silent => SshError::new(
                        ErrorPlace::Remote,
                        format!(
                            "{to} accepts the login, but its shell does not answer; `{} uname` \
                             must print a word",
                            to.by_hand()
                        ),
                    ),
                    SessionEnd::TooLong => SshError::new(
                        ErrorPlace::Unreachable,
                        format!("no connection to {to} within {} s", CONNECT.as_secs()),
                    ),
                })
            }
        }
    }

    /// A command of the other system's shell through this connection. It must have the same meaning
    /// in every login shell: words, or `sh -c` with one line in single quotes.
    pub(crate) fn remote_command(&self, remote: &str) -> Command {
        let mut command = ssh_command(&self.to, self.directory.path());
        command.args(["-o", "ControlMaster=no", "--", &self.to.host, remote]);
        command
    }

    pub fn destination(&self) -> &Destination {
        &self.to
    }

    /// The error for a command that ended with the connection.
    pub(crate) fn lost_error(&self) -> SshError {
        let words = stderr::last_messages(&log_text(&self.log));
        SshError::new(ErrorPlace::Lost, format!("the connection to {} is lost ({words})", self.to))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        end_master(&mut self.master);
    }
}

/// Closing its input ends the remote end; then it is killed for certain.
fn end_master(master: &mut Child) {
    drop(master.stdin.take());
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        if !matches!(master.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = master.kill();
    let _ = master.wait();
}

/// Creates links with short names for the files.
fn lay_out(to: &Destination, directory: &Path) -> Result<(), SshError> {
    let link = |path: &Path, name: &str| {
        let path = std::path::absolute(path).map_err(SshError::local("find", path))?;
        symlink(&path, directory.join(name)).map_err(SshError::local("link to", &path))
    };
    if let Some(path) = &to.known_hosts {
        link(path, "known_hosts")?;
    }
    if let Some(path) = &to.identity {
        link(path, "identity")?;
        // ssh looks for the public key and a certificate beside the private one.
        for ending in [".pub", "-cert.pub"] {
            let mut sibling_path = path.clone().into_os_string();
            sibling_path.push(ending);
            if Path::new(&sibling_path).is_file() {
                link(Path::new(&sibling_path), &format!("identity{ending}"))?;
            }
        }
    }
    Ok(())
}

/// The options of every ssh of this connection. First values count: no configuration weakens them.
fn ssh_command(to: &Destination, directory: &Path) -> Command {
    let mut command = Command::new("ssh");
    command.current_dir(directory).env("LC_ALL", "C");
    // Ctrl-C is for punctual, not for its connection.
    command.process_group(0);
    command.args(["-S", "control", "-T", "-x", "-a"]);
    let options = [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "UpdateHostKeys=no",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
        "LogLevel=INFO",
        "EscapeChar=none",
        "ConnectTimeout=15",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
    ];
    for option in options {
        command.args(["-o", option]);
    }
    if to.known_hosts.is_some() {
        command.args([
            "-o",
            "UserKnownHostsFile=known_hosts",
            "-o",
            "GlobalKnownHostsFile=/dev/null",
        ]);
    }
    if to.identity.is_some() {
        command.args(["-i", "identity", "-o", "IdentitiesOnly=yes"]);
    }
    if let Some(user) = &to.user {
        command.args(["-l", user]);
    }
    if let Some(port) = to.port {
        command.args(["-p", &port.to_string()]);
    }
    command
}

enum SessionEnd {
    Silent,
    TooLong,
}

/// Reads the answer of the probe; earlier output of the login shell is skipped.
fn read_probe(master: &mut Child) -> Result<Result<RemoteSystem, SshError>, SessionEnd> {
    let stdout = master.stdout.take().ok_or(SessionEnd::Silent)?;
    let (send, lines) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        // No line is longer than this.
        for line in BufReader::new(stdout.take(1 << 20)).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()).is_err()
            {
                return;
            }
        }
    });
    let until = Instant::now() + CONNECT;
    let mut answer: Option<Vec<String>> = None;
    loop {
        let line = match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Err(SessionEnd::Silent),
            Err(RecvTimeoutError::Timeout) => return Err(SessionEnd::TooLong),
        };
        match &mut answer {
            Some(answer) if line == END => return Ok(parse_system(answer)),
            Some(answer) if answer.len() < 16 => answer.push(line),
            None if line == BEGIN => answer = Some(Vec::new()),
            _ => {}
        }
    }
}

fn parse_system(answer: &[String]) -> Result<RemoteSystem, SshError> {
    let odd = |why: String| Err(SshError::new(ErrorPlace::Remote, why));
    let [kernel, machine, release, node, user, uid, temporary, home] = answer else {
        return odd(format!("unexpected answer of the remote system to uname and id: {answer:?}"));
    };
    if kernel != "Linux" {
        return odd(format!("the remote system runs {kernel:?}; punctual measures Linux"));
    }
    let system = RemoteSystem {
        machine: machine.clone(),
        release: release.clone(),
        node: node.clone(),
        user: user.clone(),
        is_root: uid == "0",
        temporary: Some(temporary.clone()).filter(|path| !path.is_empty()),
        home: home.clone(),
        uid: uid.clone(),
    };
    Ok(system)
}

fn keep_the_end(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..n]);
        let too_many = kept.len().saturating_sub(STDERR_MAX);
        kept.drain(..too_many);
    }
}

fn log_text(log: &Mutex<Vec<u8>>) -> String {
    // The thread may still be reading the last lines.
    std::thread::sleep(Duration::from_millis(50));
    String::from_utf8_lossy(&log.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}
