//! Follows a remote run to its end, through any number of connections.

mod session;

use super::agent::RunRequest;
use super::client::{Connection, RemoteSystem};
use super::destination::Destination;
use super::files::FileReceiver;
use super::staging::{self, RemoteDirectory};
use super::wire::WireFrame;
use super::{ErrorPlace, SshError, binary};
use session::{Sent, Session};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The first and the longest pause between attempts to reconnect.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(20)];

/// A run for a destination.
#[derive(Clone, Debug)]
pub struct RemoteJob {
    pub to: Destination,
    /// The program to send; `None`: the running one, or one built beside it.
    pub binary: Option<PathBuf>,
    /// The name of the experiment's file, without directories.
    pub file: String,
    /// Its bytes.
    pub experiment: Vec<u8>,
    /// Arguments of `punctual run` on the remote system.
    pub arguments: Vec<String>,
    /// The path of the bundle, which must not exist.
    pub output: PathBuf,
    pub timeouts: Timeouts,
}

/// Time limits of waits.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The time to wait for a lost connection.
    pub reconnect: Duration,
    /// The time without a client after which the remote system ends the run and removes all its
    /// files.
    pub keep_for: Duration,
}

pub trait RemoteWatch {
    /// Shows standard error of the remote run: bytes of another system.
    fn show_message(&mut self, bytes: &[u8]);
    /// Shows an event between the two systems.
    fn show_note(&mut self, text: &str);
    /// Whether the user requested the end.
    fn end_requested(&self) -> bool;
}

/// How the remote run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteEnd {
    Exit(u8),
    /// A signal of this number ended it.
    Signal(i32),
    /// Without a report: it was killed with its supervisor, or the system went down.
    Died,
}

/// The result.
#[derive(Clone, Debug)]
pub struct RemoteResult {
    pub ended: RemoteEnd,
    pub system: RemoteSystem,
    /// Whether there is a bundle.
    pub bundle: bool,
    /// The run's standard output.
    pub answer: Vec<u8>,
    /// The version of punctual there, in its words.
    pub version: String,
    /// The number of reconnections.
    pub lost: u32,
    /// Files that could not be removed on the remote system.
    pub left: Option<String>,
}

/// Sends punctual and the experiment, follows the run, retrieves the bundle.
pub fn run_remote(job: &RemoteJob, watch: &mut dyn RemoteWatch) -> Result<RemoteResult, SshError> {
    let connection = Connection::open(&job.to)?;
    let binary = binary::choose_binary(job.binary.as_deref(), &connection.system.machine)?;
    let system = &connection.system;
    watch.show_note(&format!(
        "{}: {}, Linux {} on {}, as {}{}; sending {} ({:.1} MiB)",
        job.to,
        system.node,
        system.release,
        system.machine,
        system.user,
        if system.is_root { "" } else { ", who is not root" },
        binary.path.display(),
        binary.bytes.len() as f64 / f64::from(1 << 20),
    ));
    let directory = staging::stage_program(&connection, &binary)?;
    watch.show_note(&format!(
        "the run is {0}; if this process ends: punctual ssh fetch {1} {0}",
        directory.run_id(),
        job.to.to_word()
    ));
    let request = RunRequest {
        keep_for: job.timeouts.keep_for,
        file: job.file.clone(),
        arguments: job.arguments.clone(),
    };
    let remote_run = FollowedRun {
        to: &job.to,
        directory,
        sent: Some(Sent { request: request.encode(), file: &job.experiment }),
        output: &job.output,
        reconnect_timeout: job.timeouts.reconnect,
    };
    remote_run.follow_run(connection, watch)
}

/// Follows a run left on the remote system.
pub fn resume_run(
    to: &Destination,
    id: &str,
    output: &Path,
    reconnect_timeout: Duration,
    watch: &mut dyn RemoteWatch,
) -> Result<RemoteResult, SshError> {
    let connection = Connection::open(to)?;
    let directory = staging::find_run(&connection, id)?;
    FollowedRun { to, directory, sent: None, output, reconnect_timeout }
        .follow_run(connection, watch)
}

struct FollowedRun<'a> {
    to: &'a Destination,
    directory: RemoteDirectory,
    sent: Option<Sent<'a>>,
    output: &'a Path,
    reconnect_timeout: Duration,
}

impl FollowedRun<'_> {
    fn follow_run(
        &self,
        first: Connection,
        watch: &mut dyn RemoteWatch,
    ) -> Result<RemoteResult, SshError> {
        let mut connection = first;
        let version = staging::remote_version(&connection, &self.directory)
            .map_err(|why| self.with_what_is_left(why))?;
        let mut session = Session::new(&self.directory, self.sent.as_ref(), self.output);
        let mut lost = 0;
        loop {
            let session_error = match session.serve_run(&connection, watch) {
                Ok(result) => return Ok(RemoteResult { version, lost, ..result }),
                Err(why) => why,
            };
            if !session_error.is_passing() {
                return Err(self.with_what_is_left(session_error));
            }
            watch.show_note(&format!(
                "{session_error}; the run continues there, reconnecting for up to {} s",
                self.reconnect_timeout.as_secs()
            ));
            drop(connection);
            connection = self.connect_again(watch).map_err(|why| self.with_what_is_left(why))?;
            lost += 1;
            watch.show_note(&format!("reconnected to {}", self.to));
        }
    }

    fn connect_again(&self, watch: &mut dyn RemoteWatch) -> Result<Connection, SshError> {
        let until = Instant::now() + self.reconnect_timeout;
        let [mut pause, longest] = PAUSES;
        loop {
            let open_error = match Connection::open(self.to) {
                Ok(connection) => return Ok(connection),
                Err(why) => why,
            };
            if !open_error.is_passing() || Instant::now() + pause > until {
                return Err(open_error);
            }
            let next = Instant::now() + pause;
            while Instant::now() < next {
                if watch.end_requested() {
                    return Err(SshError::new(
                        ErrorPlace::Lost,
                        format!("interrupted while there was no connection to {}", self.to),
                    ));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn with_what_is_left(&self, why: SshError) -> SshError {
        if why.trouble == ErrorPlace::Gone {
            return why;
        }
        let (to, id) = (self.to.to_word(), self.directory.run_id());
        let message = format!(
            "{why}\nthe run {id} continues there; to fetch it: punctual ssh fetch {to} {id}; to \
             end and remove it: punctual ssh clean {to} {id}"
        );
        SshError { message, is_run_left: true, ..why }
    }
}

/// The maximum size of a received bundle.
const MAX: u64 = 64 << 30;

pub struct Incoming {
    place: TempDir,
    receiver: FileReceiver,
}

impl Incoming {
    pub fn new(output: &Path) -> Result<Incoming, SshError> {
        let parent = output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let place = tempfile::Builder::new().prefix(".punctual-incoming-").tempdir_in(parent);
        let place = place.map_err(SshError::local("create a directory in", parent))?;
        let receiver = FileReceiver::new(&bundle_in(&place), MAX)
            .map_err(SshError::local("create", &bundle_in(&place)))?;
        Ok(Incoming { place, receiver })
    }

    /// Handles the next frame; true for the last one.
    pub(crate) fn on_frame(&mut self, frame: &WireFrame) -> Result<bool, SshError> {
        let wrong =
            |why| SshError::new(ErrorPlace::Local, format!("the bundle cannot be received: {why}"));
        self.receiver.on_frame(frame).map_err(wrong)
    }

    /// Moves the bundle to its place; false if there was none.
    pub(crate) fn move_bundle(self, output: &Path) -> Result<bool, SshError> {
        let bundle = bundle_in(&self.place);
        if !bundle.join("bundle.json").is_file() {
            return Ok(false);
        }
        fs::rename(&bundle, output).map_err(SshError::local("create", output))?;
        Ok(true)
    }
}

fn bundle_in(place: &TempDir) -> PathBuf {
    place.path().join("bundle")
}
