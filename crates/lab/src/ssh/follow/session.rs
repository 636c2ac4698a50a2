//! One connection's part in following a run.

use super::super::client::Connection;
use super::super::staging::{self, RemoteDirectory, last_lines};
use super::super::wire::{self, FrameKind, WireFrame};
use super::Incoming;
use super::{ErrorPlace, RemoteEnd, RemoteResult, RemoteWatch, SshError};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// The maximum silence of the remote end, which reports each second.
const SILENCE: Duration = Duration::from_secs(20);
/// How often requests of the user are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum of a run's standard output.
const ANSWER_MAX: usize = 16 << 20;

/// The data sent to the remote system first.
pub struct Sent<'a> {
    pub request: Vec<u8>,
    pub file: &'a [u8],
}

/// The state that outlives a connection.
pub struct Session<'a> {
    directory: &'a RemoteDirectory,
    sent: Option<&'a Sent<'a>>,
    output: &'a Path,
    /// The number of received bytes of the run's messages.
    offset: u64,
}

impl<'a> Session<'a> {
    pub fn new(
        directory: &'a RemoteDirectory,
        sent: Option<&'a Sent<'a>>,
        output: &'a Path,
    ) -> Session<'a> {
        Session { directory, sent, output, offset: 0 }
    }

    /// Serves until the run is over and everything received, or the connection is lost.
    pub(crate) fn serve_run(
        &mut self,
        connection: &Connection,
        watch: &mut dyn RemoteWatch,
    ) -> Result<RemoteResult, SshError> {
        let (ended, bundle, answer) = self.until_settled(connection, watch)?;
        // The bundle is in its place: only the acknowledgement is missing.
        let left = self.remove(connection).err().map(|why| {
            format!(
                "the run {} is still on {} ({why}); it removes itself later; to remove it now: \
                 punctual ssh clean {} {}",
                self.directory.run_id(),
                connection.destination(),
                connection.destination(),
                self.directory.run_id()
            )
        });
        Ok(RemoteResult {
            ended,
            system: connection.system.clone(),
            bundle,
            answer,
            left,
            version: String::new(),
            lost: 0,
        })
    }

    fn until_settled(
        &mut self,
        connection: &Connection,
        watch: &mut dyn RemoteWatch,
    ) -> Result<(RemoteEnd, bool, Vec<u8>), SshError> {
        let mut line = SessionLine::open(connection, self.directory, self.offset)?;
        if let Some(sent) = self.sent {
            line.send_frame(FrameKind::RunRequest, &sent.request);
            line.send_frame(FrameKind::Experiment, sent.file);
        }
        let (mut ended, mut answer, mut incoming) = (None, Vec::new(), None);
        let mut interrupted = false;
        loop {
            if watch.end_requested() && !interrupted {
                interrupted = true;
                line.send_frame(FrameKind::Interrupt, &[]);
            }
            let Some(frame) = line.next()? else { continue };
            match frame.kind {
                FrameKind::Alive => {}
                FrameKind::Message => {
                    self.offset += frame.payload.len() as u64;
                    watch.show_message(&frame.payload);
                }
                FrameKind::Answer if answer.len() + frame.payload.len() <= ANSWER_MAX => {
                    answer.extend(frame.payload)
                }
                FrameKind::Ended => ended = Some(parse_ended(&frame.payload)),
                FrameKind::Failed => {
                    return Err(line.remote_failure(String::from_utf8_lossy(&frame.payload)));
                }
                _ => {
                    let Some(ended) = ended else {
                        return Err(line.remote_failure("results of a run that has not ended"));
                    };
                    let taking = match &mut incoming {
                        Some(taking) => taking,
                        None => incoming.insert(Incoming::new(self.output)?),
                    };
                    if taking.on_frame(&frame)? {
                        let bundle =
                            incoming.map(|taken| taken.move_bundle(self.output)).transpose()?;
                        return Ok((ended, bundle.unwrap_or(false), answer));
                    }
                }
            }
        }
    }

    /// Everything was received: removes all files there.
    fn remove(&self, connection: &Connection) -> Result<(), SshError> {
        let mut line = SessionLine::open(connection, self.directory, u64::MAX >> 1)?;
        line.send_frame(FrameKind::Fetched, &[]);
        let until = Instant::now() + SILENCE;
        while Instant::now() < until {
            match line.next()? {
                Some(frame) if frame.kind == FrameKind::Gone => return Ok(()),
                _ => {}
            }
        }
        Err(line.remote_failure("no answer"))
    }
}

fn parse_ended(payload: &[u8]) -> RemoteEnd {
    let text = String::from_utf8_lossy(payload);
    let number = |word| text.strip_prefix(word).map(str::trim);
    match (number("exit"), number("signal")) {
        (Some(code), _) => code.parse().map_or(RemoteEnd::Died, RemoteEnd::Exit),
        (_, Some(signal)) => signal.parse().map_or(RemoteEnd::Died, RemoteEnd::Signal),
        _ => RemoteEnd::Died,
    }
}

/// The remote process at the end of this connection.
struct SessionLine<'a> {
    connection: &'a Connection,
    child: Child,
    stdin: Option<ChildStdin>,
    frames: Receiver<io::Result<WireFrame>>,
    heard: Instant,
}

impl<'a> SessionLine<'a> {
    fn open(
        connection: &'a Connection,
        directory: &RemoteDirectory,
        offset: u64,
    ) -> Result<SessionLine<'a>, SshError> {
        let mut command = connection.remote_command(&directory.agent_command("attach", offset));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| {
            SshError::new(ErrorPlace::NoClient, format!("cannot start ssh: {why}"))
        })?;
        let (send, frames) = sync_channel(16);
        let stdin = child.stdin.take();
        if let Some(mut stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let failed = |log: String| io::Error::new(io::ErrorKind::InvalidData, log);
                let mut next = wire::expect_greeting(&mut stdout).map_err(failed).map(|()| None);
                loop {
                    match next {
                        Ok(None) => {}
                        Ok(Some(frame)) => match send.send(Ok(frame)) {
                            Ok(()) => {}
                            Err(_) => return,
                        },
                        Err(why) => return drop(send.send(Err(why))),
                    }
                    next = wire::read(&mut stdout);
                    if matches!(next, Ok(None)) {
                        return;
                    }
                }
            });
        }
        Ok(SessionLine { connection, child, stdin, frames, heard: Instant::now() })
    }

    /// Sends a frame; a remote end that stopped reading is detected by its output.
    fn send_frame(&mut self, kind: FrameKind, payload: &[u8]) {
        let _ = self.stdin.as_mut().map(|stdin| wire::write(stdin, kind, payload));
    }

    /// The next frame, if one has arrived.
    fn next(&mut self) -> Result<Option<WireFrame>, SshError> {
        match self.frames.recv_timeout(POLL_INTERVAL) {
            Ok(Ok(frame)) => {
                self.heard = Instant::now();
                Ok(Some(frame))
            }
            Err(RecvTimeoutError::Timeout) if self.heard.elapsed() < SILENCE => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.connection.lost_error()),
            Ok(Err(why)) => Err(self.closing_error(Some(why))),
            Err(RecvTimeoutError::Disconnected) => Err(self.closing_error(None)),
        }
    }

    /// Why the connection closed: 255 is ssh's own exit code, all others are of the remote end.
    fn closing_error(&mut self, why: Option<io::Error>) -> SshError {
        drop(self.stdin.take());
        let until = Instant::now() + Duration::from_secs(20);
        let mut status = self.child.try_wait().ok().flatten();
        while status.is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            status = self.child.try_wait().ok().flatten();
        }
        let code = status.and_then(|status| status.code());
        if matches!(code, None | Some(255)) {
            return self.connection.lost_error();
        }
        let mut log = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(64 << 10).read_to_end(&mut log);
        }
        if let Some(gone) = staging::gone_error(self.connection, code, &log) {
            return gone;
        }
        match why.filter(|_| log.is_empty()) {
            Some(why) => self.remote_failure(why),
            None => self.remote_failure(last_lines(&log)),
        }
    }

    fn remote_failure(&self, why: impl std::fmt::Display) -> SshError {
        SshError::new(
            ErrorPlace::Remote,
            format!("punctual on {} failed: {why}", self.connection.destination()),
        )
    }
}

impl Drop for SessionLine<'_> {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
