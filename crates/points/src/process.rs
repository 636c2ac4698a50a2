//! One process: its rings, and the names of its points.

use crate::file::{Access, ControlState, FileHeader, Refused};
use crate::quota::{SOURCES, Stranger, false_claim};
use crate::reading::{Gathered, RingReading};
use crate::ring::{RingReader, RingState, Torn};
use crate::tally::PointSource;
use punctual_core::event::PointId;
use punctual_core::{Event, Finding, Severity};
use punctual_testpoint::layout::*;
use std::io;
use std::mem::offset_of;

/// Slots of one process that are read in one turn: 2 GiB.
pub(crate) const SLOTS_AT_ONCE: u64 = 1 << 26;

/// The place at which reading of an existing ring begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadFrom {
    /// At its first point: the ring is newer than the collector.
    First,
    /// At the place where an earlier reader stopped.
    Unread,
    Now,
}

/// A process's file at one moment.
pub(crate) struct FileSnapshot {
    pub state: ControlState,
    rings: Vec<RingState>,
}

impl FileSnapshot {
    /// The fullest ring: unread points divided by slots.
    pub(crate) fn fullest_ring(&self, process: &PointProcess) -> f64 {
        let fill = |(ring, reader): (&RingState, &Option<RingReader>)| {
            let unread =
                ring.head.saturating_sub(reader.as_ref().map_or(0, |reader| reader.position));
            if ring.state == RING_LIVE {
                unread as f64 / f64::from(process.header.slots)
            } else {
                0.0
            }
        };
        let known_readers = process.rings.iter().chain(std::iter::repeat(&None));
        self.rings.iter().zip(known_readers).map(fill).fold(0.0, f64::max).min(1.0)
    }
}

/// The options of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrainOptions {
    /// The treatment of incomplete points.
    pub torn: Torn,
    /// Whether writers are told the read position, and rings of ended threads are released.
    pub claim: bool,
    /// The place at which reading of new rings begins.
    pub begin: ReadFrom,
}

/// A process whose file is being read.
pub struct PointProcess {
    pub header: FileHeader,
    /// Its owner, if another user.
    pub user: Option<Stranger>,
    rings: Vec<Option<RingReader>>,
    /// Rings given up because they are inconsistent.
    broken: Vec<bool>,
    ids: Vec<Option<PointId>>,
    ringless_before: u64,
    ringless: Option<usize>,
}

impl PointProcess {
    pub fn open(file: &impl Access) -> Result<PointProcess, Refused> {
        PointProcess::open_of(None, file)
    }

    /// Opens a file of another user, which may only claim processes of that user.
    pub(crate) fn open_of(
        user: Option<Stranger>,
        file: &impl Access,
    ) -> Result<PointProcess, Refused> {
        let header = FileHeader::read(file)?;
        if let Some(why) = false_claim(user, header.pid) {
            return Err(Refused::Malformed(why));
        }
        if user.is_some() && header.is_kernel() {
            return Err(Refused::Malformed("a user's file claims to be the kernel's".to_owned()));
        }
        let ids = vec![None; NAMES_MAX as usize + 1];
        Ok(PointProcess {
            header,
            user,
            rings: Vec::new(),
            broken: Vec::new(),
            ids,
            ringless_before: 0,
            ringless: None,
        })
    }

    /// Omits points that threads without a ring lost before.
    pub(crate) fn forgive_ringless(&mut self, state: &ControlState) {
        self.ringless_before = state.ringless;
    }

    /// Reads the position of every ring.
    pub(crate) fn read_positions(&self, file: &impl Access) -> io::Result<FileSnapshot> {
        let state = ControlState::read(file)?;
        let mut rings = Vec::new();
        for number in 0..state.rings {
            match RingState::read(file, self.header.ring_at(number)) {
                Ok(ring) => rings.push(ring),
                // There was no space for this ring: its number is used, but the file ends before
                // it. Later ones may exist.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    rings.push(RingState::default())
                }
                Err(error) => return Err(error),
            }
        }
        Ok(FileSnapshot { state, rings })
    }

    /// Reads every ring up to its position at this look. Returns whether all of it could be read.
    pub(crate) fn drain_rings(
        &mut self,
        file: &impl Access,
        look: &FileSnapshot,
        how: DrainOptions,
        all: &mut Gathered,
        sink: &mut dyn FnMut(usize, &[Event]),
    ) -> bool {
        self.count_ringless(&look.state, all);
        self.rings.resize_with(look.rings.len().max(self.rings.len()), || None);
        self.broken.resize(self.rings.len(), false);
        let header_and_user = (&self.header, self.user);
        let mut reading =
            RingReading::new(all, sink, header_and_user, &mut self.ids, SLOTS_AT_ONCE);
        let mut whole = true;
        for (number, state) in look.rings.iter().enumerate() {
            if self.broken[number] || !matches!(state.state, RING_LIVE | RING_ENDED) {
                continue;
            }
            let at = self.header.ring_at(number as u32);
            let reader = &mut self.rings[number];
            match drain_ring(reader, file, at, state, how, &mut reading) {
                Ok(all) => whole &= all,
                Err(why) => {
                    self.broken[number] = true;
                    reading.all.add_finding(why.into_finding(&self.header));
                }
            }
        }
        reading.return_memory();
        whole
    }

    /// Lets living threads overwrite: for the rings of a flight recorder.
    pub(crate) fn lift_limits(&self, file: &impl Access) {
        for number in 0..self.rings.len() as u32 {
            let at = self.header.ring_at(number);
            if RingState::read(file, at).is_ok_and(|ring| ring.state == RING_LIVE) {
                // A file that can no longer be written has no writer either.
                let _ = file.write(at + offset_of!(Ring, limit) as u64, &u64::MAX.to_ne_bytes());
            }
        }
    }

    fn count_ringless(&mut self, state: &ControlState, all: &mut Gathered) {
        let lost = state.ringless.saturating_sub(self.ringless_before);
        if lost > 0 {
            let (process, pid) = (self.header.comm.clone(), self.header.pid);
            let source = PointSource { process, pid, ringless: true, ..PointSource::default() };
            self.ringless = self.ringless.or_else(|| all.add_source(self.user, None, source));
            self.ringless.into_iter().for_each(|place| all.sources[place].dropped = lost);
        }
    }
}

fn drain_ring(
    reader: &mut Option<RingReader>,
    file: &impl Access,
    at: u64,
    state: &RingState,
    how: DrainOptions,
    reading: &mut RingReading,
) -> Result<bool, RingError> {
    let reader = match reader {
        Some(known) if known.generation == state.generation => known,
        other => {
            let header = reading.header;
            let cpu = header.is_kernel().then_some(state.tid as u16);
            let source = PointSource {
                process: header.comm.clone(),
                pid: header.pid,
                comm: state.comm.clone(),
                tid: if cpu.is_some() { 0 } else { state.tid },
                cpu,
                ..PointSource::default()
            };
            let (position, dropped) = match how.begin {
                _ if other.is_some() => (0, 0),
                ReadFrom::First => (0, 0),
                ReadFrom::Unread => (state.read, state.reported),
                ReadFrom::Now => (state.head, state.dropped),
            };
            if let Some(why) = false_claim(reading.user, state.tid) {
                return Err(RingError::Refused(why));
            }
            let before = other.as_ref().map(|reader| reader.source);
            let Some(source) = reading.all.add_source(reading.user, before, source) else {
                let reason = format!("more than {SOURCES} threads of its user were read already");
                return Err(RingError::Refused(reason));
            };
            let reader =
                other.insert(RingReader::new(at, state, header.slots, source, position, dropped));
            if how.claim {
                reader.publish_limit(file, state).map_err(RingError::from_io_error)?;
            }
            reader
        }
    };
    let whole =
        reader.drain_ring(file, state, how.torn, how.claim, reading).map_err(RingError::Broken)?;
    if whole && how.claim && state.state == RING_ENDED {
        file.write(at, &RING_FREE.to_ne_bytes()).map_err(RingError::from_io_error)?;
    }
    Ok(whole)
}

/// Why a ring is given up.
enum RingError {
    /// Its content is impossible.
    Broken(String),
    /// It is not read, whatever its content.
    Refused(String),
}

impl RingError {
    fn from_io_error(why: io::Error) -> RingError {
        RingError::Broken(why.to_string())
    }

    fn into_finding(self, header: &FileHeader) -> Finding {
        let subject = format!("pid {} {}", header.pid, header.comm);
        let (id, message, why) = match self {
            RingError::Broken(why) => (
                "points-broken",
                "The rest of a thread's test points could not be read: this process or another \
                 one of its user overwrote them.",
                why,
            ),
            RingError::Refused(why) => {
                ("points-unread", "Test points of a thread were not read.", why)
            }
        };
        Finding::new(id, Severity::Warning, subject, message).with_evidence(why)
    }
}
