//! The guard: the parent of all loads, a separate process with no other work.

use super::BackOff;
use super::outbox::Outbox;
use super::protocol::{GuardEvent, GuardRequest, LoadExitAction, LoadSpec};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::children;
use punctual_sys::descriptor::poll_readable;
use punctual_sys::signals;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument that makes this program the guard.
pub const ARGUMENT: &str = "__guard-loads";
/// Loads are killed; one that still exists after this time is blocked in the kernel and ends when
/// it returns. Freeing its memory takes a process long on an emulated machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The interval in ms at which data is sent again after the socket was full.
const RESEND: i32 = 20;

struct WatchedLoad {
    number: usize,
    spec: LoadSpec,
    /// Its process while it runs.
    running: Option<(i32, Instant)>,
    /// The time of its start, while it does not run.
    start_at: Option<Instant>,
    back_off: BackOff,
    started_before: bool,
}

/// Runs the guard; the socket to punctual is its standard input. Returns when punctual and all
/// loads have ended.
pub fn run_guard() -> io::Result<()> {
    children::leave_terminal()?;
    children::adopt_orphans()?;
    // A full CPU must not delay the guard. Without permission its nice value stays unchanged; loads
    // get their own nice value.
    let _ =
        attributes::set_scheduling(0, &Scheduling { nice: -10, ..attributes::read_scheduling(0)? });
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    let served = Guard {
        socket,
        events: children::ChildEvents::new()?,
        loads: Vec::new(),
        unread: Vec::new(),
        unsent: Outbox::default(),
    }
    .watch_loads();
    let ended = children::end_descendants(TIMEOUT);
    served.and(ended)
}

struct Guard {
    socket: UnixStream,
    events: children::ChildEvents,
    loads: Vec<WatchedLoad>,
    unread: Vec<u8>,
    unsent: Outbox,
}

impl Guard {
    /// Serves requests and respawns until the socket closes.
    fn watch_loads(&mut self) -> io::Result<()> {
        loop {
            let next = self.loads.iter().filter_map(|load| load.start_at).min();
            let time = next.map(|at| at.saturating_duration_since(Instant::now()).as_millis());
            // Rounded up: a sleep that ends too early would only spin.
            let time = time.map_or(-1, |time| i32::try_from(time + 1).unwrap_or(i32::MAX));
            let time = match self.unsent.is_empty() {
                true => time,
                false if time < 0 => RESEND,
                false => time.min(RESEND),
            };
            let [asked, child] = poll_readable([self.socket.as_fd(), self.events.as_fd()], time)?;
            if child {
                self.events.clear_pending();
            }
            self.reap_children();
            if asked && !self.handle_requests()? {
                return Ok(());
            }
            self.start_due();
            self.unsent.write_pending(&mut self.socket);
        }
    }

    /// Reads and serves new requests; returns false if punctual has closed its end.
    fn handle_requests(&mut self) -> io::Result<bool> {
        let mut chunk = [0u8; 4096];
        loop {
            match self.socket.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(n) => self.unread.extend(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // ECONNRESET: punctual died with unread events.
                Err(_) => return Ok(false),
            }
        }
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match serde_json::from_slice(&line)? {
                GuardRequest::Start(number, spec) => {
                    let start_at = Instant::now() + spec.start_delay.to_std();
                    let load = WatchedLoad {
                        number,
                        spec: *spec,
                        running: None,
                        start_at: Some(start_at),
                        back_off: BackOff::default(),
                        started_before: false,
                    };
                    self.loads.push(load);
                }
                GuardRequest::EndAll => {
                    self.loads.clear();
                    let problem =
                        children::end_descendants(TIMEOUT).err().map(|why| why.to_string());
                    self.send_event(GuardEvent::AllEnded { problem });
                }
            }
        }
        Ok(true)
    }

    /// Waiting for a punctual that does not read would delay respawning.
    fn send_event(&mut self, event: GuardEvent) {
        self.unsent.push(&event);
        self.unsent.write_pending(&mut self.socket);
    }

    /// Reaps children: loads, and adopted orphans.
    fn reap_children(&mut self) {
        while let Ok(Some((pid, exit))) = children::reap_child() {
            let index = self
                .loads
                .iter()
                .position(|load| load.running.is_some_and(|(running, _)| running == pid));
            let Some(load) = index.map(|index| &mut self.loads[index]) else { continue };
            let Some((_, since)) = load.running.take() else { continue };
            // The rest of the load's process group would otherwise grow with each respawn.
            let _ = children::send_signal(-pid, libc::SIGKILL);
            let success = exit.is_success();
            let then = if success { load.spec.on_success } else { load.spec.on_failure };
            let pause = load.back_off.next_pause(since.elapsed(), success);
            load.start_at = (then == LoadExitAction::Respawn).then(|| Instant::now() + pause);
            let (signal, status) = match exit {
                children::ProcessEnd::Signal(signal) => (Some(signal), 0),
                children::ProcessEnd::Status(status) => (None, status),
            };
            let (load, how) = (load.number, exit.to_string());
            let event = GuardEvent::Ended { load, how, signal, status, success, then };
            self.send_event(event);
        }
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        for index in 0..self.loads.len() {
            let load = &mut self.loads[index];
            if load.start_at.is_none_or(|at| at > now) {
                continue;
            }
            load.start_at = None;
            let number = load.number;
            let first = !std::mem::replace(&mut load.started_before, true);
            let event = match spawn_load(&load.spec, first) {
                Ok(pid) => {
                    load.running = Some((pid, now));
                    GuardEvent::Started { load: number, pid }
                }
                Err(why) => GuardEvent::NotStarted { load: number, why: why.to_string() },
            };
            self.send_event(event);
        }
    }
}

fn open_output(path: Option<&Path>, first: bool) -> io::Result<Stdio> {
    let Some(path) = path else { return Ok(Stdio::null()) };
    // A respawned load must not overwrite its earlier output; an older run's output is removed.
    if first {
        let _ = File::create(path);
    }
    let file = File::options().create(true).append(true).open(path);
    let named = |why: io::Error| {
        io::Error::new(why.kind(), format!("cannot write {}: {why}", path.display()))
    };
    file.map(Stdio::from).map_err(named)
}

fn open_cgroup(path: &Path) -> io::Result<File> {
    let named = |why: io::Error| {
        io::Error::new(why.kind(), format!("cannot open {}: {why}", path.display()))
    };
    File::options().write(true).open(path).map_err(named)
}

/// Starts a load in its own process group; it dies with the guard.
fn spawn_load(spec: &LoadSpec, first: bool) -> io::Result<i32> {
    let (cpus, guard) = (spec.cpus.clone(), std::process::id());
    let scheduling = Scheduling { nice: spec.nice, ..Scheduling::new(spec.policy, spec.priority) };
    let (name, arguments) = spec.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(&spec.program);
    command.arg0(name).args(arguments).process_group(0).stdin(Stdio::null());
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    command
        .stdout(open_output(spec.stdout.as_deref(), first)?)
        .stderr(open_output(spec.stderr.as_deref(), first)?);
    let cgroup = spec.joins.as_deref().map(open_cgroup).transpose()?;
    let become_load = move || {
        signals::die_with_parent(guard)?;
        signals::allow_all();
        // 0 is the writing process (kernel/cgroup/cgroup.c, cgroup_procs_write_start). Before the
        // affinity, which is checked against the cgroup.
        if let Some(mut cgroup) = cgroup.as_ref() {
            cgroup.write_all(b"0")?;
        }
        attributes::set_affinity(0, &cpus)?;
        attributes::set_scheduling(0, &scheduling)
    };
    // SAFETY: between fork and exec only system calls on values made before are done: no
    // allocation, no lock.
    unsafe { command.pre_exec(become_load) };
    command.spawn().map(|child| child.id() as i32)
}
