//! One process: its rings, and the names that its points have.

use super::clock::{Clock, Segment};
use super::file::{Access, Header, Refused, State, name};
use super::ring::{RingReader, RingState, Torn};
use super::tally::{PointSource, Points};
use punctual_core::event::PointId;
use punctual_core::{Event, Finding, MonotonicNs, Nanos, Severity};
use punctual_testpoint::layout::*;
use std::io;
use std::mem::offset_of;

/// Sources kept apart: the threads of all processes. What further threads record is counted with
/// those that had their ring before.
const SOURCES_KEPT: usize = 65_536;
/// Slots of one process that are read before it is others' turn: 2 GiB.
pub const SLOTS_AT_ONCE: u64 = 1 << 26;
/// Findings kept.
const FINDINGS_KEPT: usize = 64;

/// Where reading begins of a ring that was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// At its first point: the ring is newer than the reading.
    First,
    /// Where whoever read before stopped.
    Unread,
    /// With what comes now.
    Now,
}

/// What all processes gave.
pub struct Gathered {
    pub clock: Clock,
    pub points: Points,
    pub sources: Vec<PointSource>,
    pub findings: Vec<Finding>,
    /// The largest error of any instant.
    pub error: Option<Nanos>,
    /// Points read.
    pub count: u64,
    buffer: Vec<u8>,
    events: Vec<Event>,
}

impl Gathered {
    pub fn new(clock: Clock) -> Gathered {
        Gathered {
            clock,
            points: Points::default(),
            sources: Vec::new(),
            findings: Vec::new(),
            error: None,
            count: 0,
            buffer: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Keeps a finding, each once.
    pub fn find(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_KEPT && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// A new source, or this one if there are too many.
    fn source(&mut self, instead: Option<usize>, source: PointSource) -> usize {
        match instead {
            Some(instead) if self.sources.len() >= SOURCES_KEPT => instead,
            _ => {
                self.sources.push(source);
                self.sources.len() - 1
            }
        }
    }
}

/// What reading the rings of one process goes with and into.
pub struct Reading<'a> {
    pub all: &'a mut Gathered,
    pub sink: &'a mut dyn FnMut(usize, &[Event]),
    pub buffer: Vec<u8>,
    pub events: Vec<Event>,
    /// Slots that may still be read.
    pub budget: u64,
    header: &'a Header,
    ids: &'a mut Vec<Option<PointId>>,
    segment: Option<Segment>,
    /// The clock back to when the process began; made when a point asks for it.
    birth: Option<Option<Clock>>,
}

impl Reading<'_> {
    pub fn source(&mut self, source: usize) -> &mut PointSource {
        &mut self.all.sources[source]
    }

    /// A time stamp as an instant; `None` for one before the process began or after the present.
    #[inline]
    pub fn instant(&mut self, stamp: u64) -> Option<MonotonicNs> {
        if let Some(at) = self.segment.as_ref().and_then(|segment| segment.convert(stamp)) {
            return Some(at);
        }
        self.other_segment(stamp)
    }

    #[cold]
    fn other_segment(&mut self, stamp: u64) -> Option<MonotonicNs> {
        let clock = &self.all.clock;
        let Some(birth) = self.header.birth else {
            let now = clock.last().monotonic.saturating_add(1_000_000_000);
            self.all.error.get_or_insert(Nanos::ZERO);
            return i64::try_from(stamp).ok().filter(|stamp| *stamp <= now).map(MonotonicNs);
        };
        let segment = if stamp >= clock.first().ticks {
            clock.segment(stamp)
        } else {
            self.birth
                .get_or_insert_with(|| clock.since(birth))
                .as_ref()
                .and_then(|clock| clock.segment(stamp))
        }?;
        self.all.error = self.all.error.max(Some(segment.error));
        self.segment = Some(segment);
        segment.convert(stamp)
    }

    /// The point that this number means in the process.
    #[inline]
    pub fn point(&mut self, file: &impl Access, id: u32) -> Option<PointId> {
        let place = match id {
            0 => return None,
            1..=NAMES_MAX => id as usize,
            ID_UNNAMED => 0,
            _ => return None,
        };
        match self.ids[place] {
            Some(point) => Some(point),
            None => Some(*self.ids[place].insert(self.all.points.id(name(file, id)))),
        }
    }
}

/// A process's file at one moment.
pub struct Look {
    pub state: State,
    rings: Vec<RingState>,
}

impl Look {
    /// The fullest ring: unread points by slots.
    pub fn fullest(&self, process: &Process) -> f64 {
        let fill = |(ring, reader): (&RingState, &Option<RingReader>)| {
            let unread =
                ring.head.saturating_sub(reader.as_ref().map_or(0, |reader| reader.position));
            if ring.state == RING_LIVE {
                unread as f64 / f64::from(process.header.slots)
            } else {
                0.0
            }
        };
        let known = process.rings.iter().chain(std::iter::repeat(&None));
        self.rings.iter().zip(known).map(fill).fold(0.0, f64::max).min(1.0)
    }
}

/// How a drain goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// What is done about points that are not whole.
    pub torn: Torn,
    /// Whether writers learn what was read, and rings of ended threads are released.
    pub claim: bool,
    /// Where rings begin that were not read before.
    pub begin: Begin,
}

/// A process whose file is read.
pub struct Process {
    pub header: Header,
    rings: Vec<Option<RingReader>>,
    /// Rings given up because they contradict themselves.
    broken: Vec<bool>,
    ids: Vec<Option<PointId>>,
    ringless_before: u64,
    ringless: Option<usize>,
}

impl Process {
    pub fn open(file: &impl Access) -> Result<Process, Refused> {
        let header = Header::read(file)?;
        let ids = vec![None; NAMES_MAX as usize + 1];
        Ok(Process {
            header,
            rings: Vec::new(),
            broken: Vec::new(),
            ids,
            ringless_before: 0,
            ringless: None,
        })
    }

    /// Points that threads without a ring lost before are not reported.
    pub fn forgive_ringless(&mut self, state: &State) {
        self.ringless_before = state.ringless;
    }

    /// Reads how far every ring is.
    pub fn look(&self, file: &impl Access) -> io::Result<Look> {
        let state = State::read(file)?;
        let mut rings = Vec::new();
        for number in 0..state.rings {
            match RingState::read(file, self.header.ring_at(number)) {
                Ok(ring) => rings.push(ring),
                // A ring for which there was no space: its number is used up, the file ends before
                // it. Later ones may be there.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    rings.push(RingState::default())
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Look { state, rings })
    }

    /// Reads every ring up to where it was at this look. Whether all of that could be read.
    pub fn drain(
        &mut self,
        file: &impl Access,
        look: &Look,
        how: How,
        all: &mut Gathered,
        sink: &mut dyn FnMut(usize, &[Event]),
    ) -> bool {
        self.count_ringless(&look.state, all);
        self.rings.resize_with(look.rings.len().max(self.rings.len()), || None);
        self.broken.resize(self.rings.len(), false);
        let (buffer, events) = (std::mem::take(&mut all.buffer), std::mem::take(&mut all.events));
        let mut reading = Reading {
            all,
            sink,
            buffer,
            events,
            budget: SLOTS_AT_ONCE,
            header: &self.header,
            ids: &mut self.ids,
            segment: None,
            birth: None,
        };
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
                    reading.all.find(broken(&self.header, &why));
                }
            }
        }
        let (buffer, events) = (reading.buffer, reading.events);
        (all.buffer, all.events) = (buffer, events);
        whole
    }

    /// Lets living threads overwrite: the rings of a flight recorder.
    pub fn lift_limits(&self, file: &impl Access) {
        for number in 0..self.rings.len() as u32 {
            let at = self.header.ring_at(number);
            if RingState::read(file, at).is_ok_and(|ring| ring.state == RING_LIVE) {
                // A file that cannot be written any more has no writer either.
                let _ = file.write(at + offset_of!(Ring, limit) as u64, &u64::MAX.to_ne_bytes());
            }
        }
    }

    fn count_ringless(&mut self, state: &State, all: &mut Gathered) {
        let lost = state.ringless.saturating_sub(self.ringless_before);
        if lost > 0 {
            let (process, pid) = (self.header.comm.clone(), self.header.pid);
            let source = PointSource { process, pid, ringless: true, ..PointSource::default() };
            let place = *self.ringless.get_or_insert_with(|| all.source(None, source));
            all.sources[place].dropped = lost;
        }
    }
}

fn drain_ring(
    reader: &mut Option<RingReader>,
    file: &impl Access,
    at: u64,
    state: &RingState,
    how: How,
    reading: &mut Reading,
) -> Result<bool, String> {
    let reader = match reader {
        Some(known) if known.generation == state.generation => known,
        other => {
            let header = reading.header;
            let source = PointSource {
                process: header.comm.clone(),
                pid: header.pid,
                comm: state.comm.clone(),
                tid: state.tid,
                ..PointSource::default()
            };
            let (position, dropped) = match how.begin {
                _ if other.is_some() => (0, 0),
                Begin::First => (0, 0),
                Begin::Unread => (state.read, state.reported),
                Begin::Now => (state.head, state.dropped),
            };
            let source = reading.all.source(other.as_ref().map(|reader| reader.source), source);
            let reader =
                other.insert(RingReader::new(at, state, header.slots, source, position, dropped));
            if how.claim {
                reader.claim(file, state).map_err(|error| error.to_string())?;
            }
            reader
        }
    };
    let whole = reader.drain(file, state, how.torn, how.claim, reading)?;
    if whole && how.claim && state.state == RING_ENDED {
        file.write(at, &RING_FREE.to_ne_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(whole)
}

fn broken(header: &Header, why: &str) -> Finding {
    let subject = format!("pid {} {}", header.pid, header.comm);
    Finding::new(
        "points-broken",
        Severity::Warning,
        subject,
        "The rest of a thread's test points could not be read: this process or another one of its \
         user overwrote them.",
    )
    .evidence(why)
}
