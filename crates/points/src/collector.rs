//! Collects from all applications at once.

use crate::alive;
use crate::clock::ClockPairs;
use crate::directories::{FILES_MAX, NotRead, PointsDirectory, default_directories, display_name};
use crate::file::{Access, ControlState, Refused};
use crate::process::{DrainOptions, FileSnapshot, PointProcess, ReadFrom};
use crate::quota;
use crate::reading::Gathered;
use crate::ring::Torn;
use crate::tally::PointSource;
use punctual_core::{Event, Finding, Nanos, Severity};
use punctual_testpoint::layout::{Control, FLIGHT, STREAM};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The interval of searches for new applications. They record from their start; this only keeps
/// their rings from filling.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// The interval of checks whether applications live.
const ALIVE_EVERY: Duration = Duration::from_millis(250);
/// The time to wait at the end for points that threads are just writing.
const LAST_POINTS: Duration = Duration::from_millis(50);
const PROCESSES: usize = 1_024;
/// Files that are remembered until vanished ones are forgotten.
const KNOWN_MAX: usize = 2 * FILES_MAX;

/// The scope of a collection.
#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: all usual ones that exist.
    directories: Option<Vec<PathBuf>>,
    pids: Vec<u32>,
    record: bool,
    remove: bool,
}

impl Options {
    /// What running applications pass from now on, and those that start meanwhile from their first
    /// point on. Files of applications that end meanwhile are read and removed, and so are those
    /// that an earlier collector, or none, left of dead ones.
    pub fn for_recording() -> Options {
        Options { directories: None, pids: Vec::new(), record: true, remove: true }
    }
    /// Reads the files of dead applications, and the flight recorders of running ones. Enables no
    /// recording. Files stay; see [`Options::remove`].
    pub fn for_harvest() -> Options {
        Options { record: false, remove: false, ..Options::for_recording() }
    }
    /// Whether files of dead applications are removed after reading.
    pub fn remove(mut self, remove: bool) -> Options {
        self.remove = remove;
        self
    }
    /// Limits it to this directory (`PUNCTUAL_POINTS_DIR` of the applications).
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Options {
        self.directories = Some(vec![directory.into()]);
        self
    }
    /// Limits it to these processes; empty: all.
    pub fn limit_to_processes(mut self, pids: &[u32]) -> Options {
        self.pids = pids.to_vec();
        self
    }
}

/// Why collecting cannot start.
#[derive(Debug, thiserror::Error)]
pub enum CollectorStartError {
    /// Another collector is running.
    #[error("another punctual collects test points in {}: end it first", .0.display())]
    Busy(PathBuf),
    /// The directory cannot be used.
    #[error("test points in {path}: {why}", path = .0.display(), why = .1)]
    Directory(PathBuf, String),
}

/// The result of a round of reading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Poll {
    pub points: u64,
    /// The fill level of the fullest ring, from 0 to 1. At 1 points are dropped: read more often.
    pub fullest: f64,
    /// The number of applications being read.
    pub processes: usize,
}

/// The result of a collection.
#[derive(Clone, PartialEq, Debug)]
pub struct Collected {
    /// Each thread's ring, in the order of the numbers passed to the sink.
    pub sources: Vec<PointSource>,
    /// The names of points; a `PointId` is an index.
    pub names: Vec<String>,
    /// The maximum difference of an instant from CLOCK_MONOTONIC; `None` without points.
    pub clock_error: Option<Nanos>,
    /// Errors while reading, with the reasons.
    pub findings: Vec<Finding>,
}

struct Application {
    directory: usize,
    name: Vec<u8>,
    file: File,
    process: PointProcess,
    begin: ReadFrom,
    /// The time of the last check whether it lives.
    checked_alive: Option<Instant>,
    dead: bool,
    /// Nothing is left to read: dead and read to the end, or unreadable.
    done: bool,
}

/// Reads the points of all applications. See the module's example.
pub struct Collector {
    options: Options,
    directories: Vec<PointsDirectory>,
    applications: Vec<Application>,
    /// Files already seen: read, refused, or not requested.
    known: HashSet<(usize, Vec<u8>)>,
    all: Gathered,
    scanned: Instant,
    /// The time of the last search, and the unusable directories.
    opened: Instant,
    closed: HashSet<PathBuf>,
    namespace: u64,
    finished: bool,
}

/// Receives the events: a source's number, and its next events, approximately in time order.
pub type PointSink<'a> = dyn FnMut(usize, &[Event]) + 'a;

impl Collector {
    /// Finds the applications, and enables recording if requested.
    pub fn start(options: Options) -> Result<Collector, CollectorStartError> {
        let mut gathered = Gathered::new(ClockPairs::read_first());
        // Pairs determine the rate of the clock; these two are for the very first points.
        std::thread::sleep(Duration::from_millis(1));
        gathered.clock.read();
        let mut collector = Collector {
            options,
            directories: Vec::new(),
            applications: Vec::new(),
            known: HashSet::new(),
            all: gathered,
            scanned: Instant::now(),
            opened: Instant::now(),
            closed: HashSet::new(),
            namespace: alive::pid_namespace(),
            finished: false,
        };
        collector.open_directories(true)?;
        Ok(collector)
    }

    /// Opens directories that have appeared: the first application of a user creates the user's
    /// directory.
    fn open_directories(&mut self, first: bool) -> Result<(), CollectorStartError> {
        self.opened = Instant::now();
        let paths = self.options.directories.clone().unwrap_or_else(default_directories);
        for (place, path) in paths.into_iter().enumerate() {
            if self.closed.contains(&path)
                || self.directories.iter().any(|directory| directory.path == path)
            {
                continue;
            }
            match PointsDirectory::open(&path, self.options.record) {
                Ok(None) => {}
                Ok(Some(directory)) => {
                    self.directories.push(directory);
                    self.scan_directory(self.directories.len() - 1, true);
                }
                // The user's own directory must work; failures of others are reported.
                Err(NotRead::Busy) if first && place == 0 => {
                    return Err(CollectorStartError::Busy(path));
                }
                Err(error) if first && place == 0 => {
                    return Err(CollectorStartError::Directory(path, error.to_string()));
                }
                Err(error) => {
                    self.all
                        .add_finding(unread_finding(&path.to_string_lossy(), &error.to_string()));
                    self.closed.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Reads new points. Must be called every few milliseconds.
    pub fn poll_points(&mut self, sink: &mut PointSink) -> Poll {
        if self.scanned.elapsed() >= SCAN_EVERY {
            self.scan_directories();
        }
        self.read_round(Torn::Wait, sink).0
    }

    /// The data of the threads so far.
    pub fn point_sources(&self) -> &[PointSource] {
        &self.all.sources
    }

    /// The names of the points so far.
    pub fn point_names(&self) -> &[String] {
        self.all.points.all_names()
    }

    /// Disables recording and reads the rest.
    pub fn finish(mut self, sink: &mut PointSink) -> Collected {
        self.scan_directories();
        self.switch_off();
        let deadline = Instant::now() + LAST_POINTS;
        let mut torn = Torn::Wait;
        loop {
            // A thread that saw recording enabled writes its point within this time, unless it is
            // preempted there.
            std::thread::sleep(Duration::from_millis(1));
            self.applications.iter_mut().for_each(|application| application.checked_alive = None);
            // A flight recorder that continues is read only once: a second reading would begin
            // after a gap.
            if self.read_round(torn, sink).1 || torn == Torn::Count {
                break;
            }
            if Instant::now() > deadline {
                torn = Torn::Count;
            }
        }
        self.give_back();
        Collected {
            sources: std::mem::take(&mut self.all.sources),
            names: self.all.points.all_names().to_vec(),
            clock_error: self.all.error,
            findings: std::mem::take(&mut self.all.findings),
        }
    }

    /// Reads the state of all rings, then the clock, then the points up to that state: so the clock
    /// covers every point. Returns whether everything could be read.
    fn read_round(&mut self, torn: Torn, sink: &mut PointSink) -> (Poll, bool) {
        let before = self.all.count;
        let mut fullest = 0.0_f64;
        let mut looks: Vec<Option<FileSnapshot>> = Vec::with_capacity(self.applications.len());
        for application in &mut self.applications {
            // A process that is dead by now writes no more.
            if application.checked_alive.is_none_or(|looked| looked.elapsed() >= ALIVE_EVERY) {
                application.checked_alive = Some(Instant::now());
                application.dead = application.is_dead(self.namespace);
            }
            let look = application.process.read_positions(&application.file);
            if let Err(error) = &look {
                self.all.add_finding(unread_finding(
                    &display_name(&application.name),
                    &error.to_string(),
                ));
            }
            fullest = fullest
                .max(look.as_ref().map_or(0.0, |look| look.fullest_ring(&application.process)));
            looks.push(look.ok());
        }
        self.all.clock.read();
        let mut whole = true;
        for (application, look) in self.applications.iter_mut().zip(&looks) {
            let Some(look) = look else {
                application.done = true;
                continue;
            };
            let torn = if application.dead { Torn::Count } else { torn };
            let how = DrainOptions { torn, claim: self.options.record, begin: application.begin };
            let read =
                application.process.drain_rings(&application.file, look, how, &mut self.all, sink);
            application.begin = ReadFrom::First;
            whole &= read;
            if application.dead && read {
                application.done = true;
                // A process that executes another program with points keeps its number, and finds
                // the name unused again.
                let directory = &self.directories[application.directory];
                if self.options.remove && directory.remove(&application.name, &application.file) {
                    self.known.remove(&(application.directory, application.name.clone()));
                }
            }
        }
        self.applications.retain(|application| !application.done);
        (
            Poll { points: self.all.count - before, fullest, processes: self.applications.len() },
            whole,
        )
    }

    /// Adds new applications.
    fn scan_directories(&mut self) {
        self.scanned = Instant::now();
        for place in 0..self.directories.len() {
            self.scan_directory(place, false);
        }
        if self.opened.elapsed() >= ALIVE_EVERY {
            // An unusable directory is an error only the first time.
            let _ = self.open_directories(false);
        }
    }

    /// `first`: files present now existed before this collector.
    fn scan_directory(&mut self, place: usize, first: bool) {
        let names = match self.directories[place].file_names() {
            Ok(names) => names,
            Err(error) => {
                let path = self.directories[place].path.to_string_lossy().into_owned();
                self.all.add_finding(unread_finding(&path, &error.to_string()));
                return;
            }
        };
        if self.known.len() > KNOWN_MAX {
            let present_names: HashSet<&Vec<u8>> = names.iter().collect();
            self.known.retain(|(of, name)| *of != place || present_names.contains(name));
        }
        for name in names {
            if !self.known.contains(&(place, name.clone())) && self.has_room(place) {
                self.take_up(place, name, first);
            }
        }
    }

    /// Whether another application of this directory's user may be added.
    fn has_room(&mut self, place: usize) -> bool {
        let own_applications =
            self.applications.iter().filter(|application| application.directory == place);
        let directory = &self.directories[place];
        if directory.foreign_owner().is_some() && own_applications.count() >= quota::PROCESSES {
            let path = directory.path.to_string_lossy().into_owned();
            let reason = format!("its user has more than {} applications", quota::PROCESSES);
            self.all.add_finding(unread_finding(&format!("further files of {path}"), &reason));
            return false;
        }
        self.applications.len() < PROCESSES
    }

    fn take_up(&mut self, place: usize, name: Vec<u8>, first: bool) {
        let opened =
            self.directories[place].open_file(&name).map_err(Refused::from).and_then(|file| {
                let process =
                    PointProcess::open_of(self.directories[place].foreign_owner(), &file)?;
                let state = ControlState::read(&file)?;
                Ok((file, process, state))
            });
        match opened {
            Err(Refused::NotReady) => {}
            Err(refused) => {
                self.all.add_finding(unread_finding(&display_name(&name), &refused.to_string()));
                self.known.insert((place, name));
            }
            Ok((file, process, state)) => {
                self.known.insert((place, name.clone()));
                let mut application = Application {
                    directory: place,
                    name,
                    file,
                    process,
                    begin: ReadFrom::First,
                    checked_alive: None,
                    dead: false,
                    done: false,
                };
                application.dead = application.is_dead(self.namespace);
                // Points that it did not ask for itself were for a collector that has ended.
                let is_left = self.options.record && self.options.remove && first;
                if is_left && application.dead && state.requested == 0 {
                    self.directories[place].remove(&application.name, &application.file);
                    return;
                }
                if !self.options.pids.is_empty()
                    && !self.options.pids.contains(&application.process.header.pid)
                {
                    // It records because this collector holds the lock.
                    if self.options.record && !first && state.requested == 0 {
                        let _ = application.set_recording(0, state.mode);
                    }
                    return;
                }
                let wanted = if self.options.record {
                    !(first && application.dead)
                } else {
                    application.dead || state.recording
                };
                if wanted {
                    self.begin_reading(application, &state, first);
                }
            }
        }
    }

    fn begin_reading(&mut self, mut application: Application, state: &ControlState, first: bool) {
        if !self.options.record {
            application.begin = ReadFrom::Unread;
        } else if first {
            application.begin =
                if state.requested == STREAM { ReadFrom::Unread } else { ReadFrom::Now };
            application.process.forgive_ringless(state);
            // A look without reading, so that the beginning is the present, and flight recorders
            // become streams before they are enabled.
            let look = application.process.read_positions(&application.file);
            if let (Ok(look), ReadFrom::Now) = (look, application.begin) {
                let how = DrainOptions { torn: Torn::Wait, claim: true, begin: ReadFrom::Now };
                application.process.drain_rings(
                    &application.file,
                    &look,
                    how,
                    &mut self.all,
                    &mut |_, _| {},
                );
                application.begin = ReadFrom::First;
            }
        }
        if self.options.record
            && !application.dead
            && let Err(error) = application.set_recording(1, STREAM)
        {
            self.all
                .add_finding(unread_finding(&display_name(&application.name), &error.to_string()));
            return;
        }
        self.applications.push(application);
    }

    /// Restores the recording state that the applications requested themselves.
    fn switch_off(&mut self) {
        if !self.options.record || self.finished {
            return;
        }
        self.finished = true;
        for application in &mut self.applications {
            if let Ok(state) = ControlState::read(&application.file) {
                let recording = u32::from(matches!(state.requested, STREAM | FLIGHT));
                // A file that can no longer be written has no writer either.
                let _ = application.set_recording(
                    recording,
                    if recording == 1 { state.requested } else { STREAM },
                );
            }
        }
    }

    /// Turns streams back into flight recorders if they were ones.
    fn give_back(&mut self) {
        for application in self.applications.iter().filter(|_| self.options.record) {
            if ControlState::read(&application.file).is_ok_and(|state| state.requested == FLIGHT) {
                application.process.lift_limits(&application.file);
            }
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.switch_off();
        self.give_back();
    }
}

impl Application {
    /// Switches recording. The mode first: threads that get their ring meanwhile use it.
    fn set_recording(&self, recording: u32, mode: u32) -> io::Result<()> {
        self.file.write(offset_of!(Control, mode) as u64, &mode.to_ne_bytes())?;
        self.file.write(offset_of!(Control, recording) as u64, &recording.to_ne_bytes())
    }

    fn is_dead(&self, namespace: u64) -> bool {
        let header = &self.process.header;
        if header.namespace != namespace {
            // Its number belongs to another process here. The file itself shows whether it ended in
            // order.
            return ControlState::read(&self.file).is_ok_and(|state| state.ended);
        }
        !alive::has_file_mapped(header.pid, header.start_time, &self.name)
    }
}

fn unread_finding(what: &str, why: &str) -> Finding {
    Finding::new(
        "points-unread",
        Severity::Warning,
        "test points",
        format!("Test points in {what} were not read: {why}."),
    )
}
