//! punctual's side: starts the guard, sends it requests, reads its events.

use super::guard::ARGUMENT;
use super::protocol::{GuardEvent, GuardRequest, LoadSpec};
use punctual_sys::children;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than the guard's own timeout.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An error of the loads.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard could not be started.
    #[error("cannot start the process that guards the loads: {0}")]
    NoGuard(io::Error),
    /// The guard has ended too early.
    #[error("the process that guards the loads has died; the loads were ended")]
    GuardDied,
    /// Some loads are still running.
    #[error("some loads could not be ended: {0}")]
    NotEnded(String),
}

/// The guard and its loads. Dropping it terminates them all.
pub struct Guarded {
    socket: UnixStream,
    guard: Child,
    unread: Vec<u8>,
}

impl Guarded {
    /// Starts the guard: this program with another first argument and another name, so that
    /// `killall punctual` does not end it.
    pub fn start() -> Result<Guarded, GuardError> {
        children::adopt_orphans().map_err(GuardError::NoGuard)?;
        let (ours, theirs) = UnixStream::pair().map_err(GuardError::NoGuard)?;
        ours.set_nonblocking(true).map_err(GuardError::NoGuard)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("load-guard").arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs)));
        children::without_service_manager(&mut command);
        let guard = command.stdout(Stdio::null()).spawn().map_err(GuardError::NoGuard)?;
        Ok(Guarded { socket: ours, guard, unread: Vec::new() })
    }

    /// Starts a load with a number that its events will carry.
    pub fn start_load(&mut self, number: usize, spec: &LoadSpec) -> Result<(), GuardError> {
        self.send_request(&GuardRequest::Start(number, Box::new(spec.clone())))
    }

    fn send_request(&mut self, request: &GuardRequest) -> Result<(), GuardError> {
        let mut line = serde_json::to_vec(request).map_err(|_| GuardError::GuardDied)?;
        line.push(b'\n');
        let until = Instant::now() + TIMEOUT;
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return Err(self.guard_died()),
            }
        }
        Ok(())
    }

    /// The events since the last call; never waits.
    pub fn read_events(&mut self) -> Result<Vec<GuardEvent>, GuardError> {
        let mut chunk = [0u8; 4096];
        loop {
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(self.guard_died()),
                Ok(n) => self.unread.extend(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.guard_died()),
            }
        }
        let mut events = Vec::new();
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match serde_json::from_slice::<GuardEvent>(&line) {
                Ok(event) => events.push(event),
                // The guard is the only other user of the socket.
                Err(_) => return Err(self.guard_died()),
            }
        }
        Ok(events)
    }

    /// Terminates all loads and returns the last events when they are gone.
    pub fn end_loads(&mut self) -> Result<Vec<GuardEvent>, GuardError> {
        self.send_request(&GuardRequest::EndAll)?;
        let (until, mut all) = (Instant::now() + TIMEOUT, Vec::new());
        loop {
            for event in self.read_events()? {
                match event {
                    GuardEvent::AllEnded { problem: None } => return Ok(all),
                    GuardEvent::AllEnded { problem: Some(why) } => {
                        return Err(GuardError::NotEnded(why));
                    }
                    other => all.push(other),
                }
            }
            if Instant::now() > until {
                return Err(GuardError::NotEnded("the guard does not answer".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The guard has ended: punctual adopted its children.
    fn guard_died(&mut self) -> GuardError {
        match children::end_descendants(TIMEOUT) {
            Ok(()) => GuardError::GuardDied,
            Err(why) => GuardError::NotEnded(why.to_string()),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The closed socket tells the guard to terminate everything; it exits when that is done.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.guard.wait();
    }
}
