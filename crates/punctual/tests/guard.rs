//! The guard of loads, a separate process, driven as by punctual: the processes that it starts, the
//! remains of an ended load, and that it starts nothing after everything was ended.

use crate::common::{HANG, Place, eventually, processes_with};
use punctual_core::{CpuSet, Nanos, Policy};
use punctual_measure::load::guard::ARGUMENT;
use punctual_measure::load::{GuardEvent, LoadExitAction, LoadSpec};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Guard {
    guard: Child,
    socket: BufReader<UnixStream>,
}

impl Guard {
    fn start() -> Guard {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let guard = command.spawn().expect("punctual starts");
        Guard { guard, socket: BufReader::new(ours) }
    }

    fn ask(&mut self, request: &serde_json::Value) {
        writeln!(self.socket.get_mut(), "{request}").expect("the guard reads");
    }

    fn start_load(&mut self, number: usize, spec: &LoadSpec) {
        self.ask(&serde_json::json!({ "Start": [number, spec] }));
    }

    /// The next event; `None` if there is none within this time.
    fn event_within(&mut self, time: Duration) -> Option<GuardEvent> {
        self.socket.get_ref().set_read_timeout(Some(time)).expect("a timeout");
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(_) => Some(serde_json::from_str(&line).expect("an event")),
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(why) => panic!("{why}"),
        }
    }

    fn event(&mut self) -> GuardEvent {
        self.event_within(HANG).expect("the guard answers")
    }

    /// Ends all loads; returns the events before the answer.
    fn end_all(&mut self) -> Vec<GuardEvent> {
        self.ask(&serde_json::json!("EndAll"));
        let mut before = Vec::new();
        loop {
            match self.event() {
                GuardEvent::AllEnded { problem } => {
                    assert_eq!(problem, None);
                    return before;
                }
                other => before.push(other),
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closing the socket is its signal to end.
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Both);
        let _ = self.guard.wait();
    }
}

/// A script run by a shell, with inherited affinity.
fn load(script: &str) -> LoadSpec {
    LoadSpec {
        name: "load".to_owned(),
        program: "/bin/sh".into(),
        argv: ["sh", "-c", script].map(str::to_owned).into(),
        environment: Vec::new(),
        joins: None,
        cpus: punctual_sys::attributes::read_affinity(0).unwrap_or_else(|_| CpuSet::from_cpu(0)),
        policy: Policy::Other,
        priority: None,
        nice: 0,
        stdout: None,
        stderr: None,
        on_success: LoadExitAction::Ignore,
        on_failure: LoadExitAction::Ignore,
        start_delay: Nanos::ZERO,
    }
}

/// Otherwise a load of the phase before would start in the next one.
#[test]
fn what_waits_to_be_started_is_not_once_everything_was_ended() {
    let mut guard = Guard::start();
    let later = LoadSpec { start_delay: Nanos::from_millis(200), ..load("sleep 1000") };
    let fails = LoadSpec { on_failure: LoadExitAction::Respawn, ..load("exit 1") };
    guard.start_load(0, &later);
    guard.start_load(1, &fails);
    // The load failed twice, and is started a third time after 200 ms.
    let mut ended = 0;
    while ended < 2 {
        ended +=
            usize::from(matches!(guard.event(), GuardEvent::Ended { load: 1, success: false, .. }));
    }
    guard.end_all();
    assert_eq!(guard.event_within(Duration::from_millis(600)), None);
    // The guard continues for the next phase.
    guard.start_load(2, &load("sleep 1000"));
    assert!(matches!(guard.event(), GuardEvent::Started { load: 2, .. }));
    assert_eq!(guard.end_all(), []);
}

/// Otherwise processes of all its lives would add up.
#[test]
fn what_a_load_leaves_of_its_group_ends_with_it() {
    let (mut guard, place) = (Guard::start(), Place::with(""));
    // A unique sleep time identifies its process.
    let (time, end) = (format!("1000.{}", std::process::id()), place.path().join("end"));
    let until = format!("until [ -e {} ]; do sleep 0.02; done", end.display());
    guard.start_load(0, &load(&format!("sleep {time} & {until}")));
    assert!(matches!(guard.event(), GuardEvent::Started { load: 0, .. }));
    eventually("what it starts", || processes_with(&format!("sleep\0{time}")).len() == 1);
    place.write("end", b"");
    let ended = guard.event();
    assert!(matches!(ended, GuardEvent::Ended { load: 0, success: true, .. }), "{ended:?}");
    eventually("its end", || processes_with(&time).is_empty());
}
