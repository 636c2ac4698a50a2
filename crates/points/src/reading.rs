//! The results of reading: sources, points and their names, on one clock.

use crate::clock::{ClockPairs, ClockSegment};
use crate::file::{Access, FileHeader, read_name};
use crate::quota::{Quotas, Stranger};
use crate::tally::{PointNames, PointSource};
use punctual_core::event::PointId;
use punctual_core::{Event, Finding, MonotonicNs, Nanos};
use punctual_testpoint::layout::{ID_UNNAMED, NAMES_MAX};

/// Sources kept separately: the threads of all processes. The points of further threads are counted
/// with the earlier threads of their rings.
const SOURCES_KEPT: usize = 65_536;
const FINDINGS_KEPT: usize = 64;

pub struct Gathered {
    pub clock: ClockPairs,
    pub points: PointNames,
    pub sources: Vec<PointSource>,
    pub findings: Vec<Finding>,
    /// The largest error of any instant.
    pub error: Option<Nanos>,
    pub count: u64,
    quotas: Quotas,
    buffer: Vec<u8>,
    events: Vec<Event>,
}

impl Gathered {
    pub fn new(clock: ClockPairs) -> Gathered {
        Gathered {
            clock,
            points: PointNames::default(),
            sources: Vec::new(),
            findings: Vec::new(),
            error: None,
            count: 0,
            quotas: Quotas::default(),
            buffer: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Keeps a finding, without duplicates.
    pub(crate) fn add_finding(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_KEPT && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// A new source of this user, or the given one if there are too many; `None` if there is
    /// neither.
    pub fn add_source(
        &mut self,
        user: Option<Stranger>,
        instead: Option<usize>,
        source: PointSource,
    ) -> Option<usize> {
        if self.sources.len() >= SOURCES_KEPT || !self.quotas.take_source(user) {
            return instead;
        }
        self.sources.push(source);
        Some(self.sources.len() - 1)
    }

    fn point_id(&mut self, user: Option<Stranger>, name: String) -> PointId {
        match self.points.find_id(&name) {
            Some(point) => point,
            None if self.quotas.take_name(user) => self.points.id_of_name(name),
            None => self.points.unnamed_id(),
        }
    }
}

/// The context and the destination of reading one process's rings.
pub struct RingReading<'a> {
    pub all: &'a mut Gathered,
    pub sink: &'a mut dyn FnMut(usize, &[Event]),
    pub buffer: Vec<u8>,
    pub events: Vec<Event>,
    /// Slots that may still be read.
    pub budget: u64,
    pub header: &'a FileHeader,
    /// Its owner, if another user.
    pub user: Option<Stranger>,
    ids: &'a mut Vec<Option<PointId>>,
    segment: Option<ClockSegment>,
    /// The clock back to the beginning of the process; created when a point needs it.
    birth: Option<Option<ClockPairs>>,
}

impl<'a> RingReading<'a> {
    /// A reading of the rings of a process with this header, whose sites have these points so far.
    pub fn new(
        all: &'a mut Gathered,
        sink: &'a mut dyn FnMut(usize, &[Event]),
        (header, user): (&'a FileHeader, Option<Stranger>),
        ids: &'a mut Vec<Option<PointId>>,
        budget: u64,
    ) -> RingReading<'a> {
        let (buffer, events) = (std::mem::take(&mut all.buffer), std::mem::take(&mut all.events));
        let (segment, birth) = (None, None);
        RingReading { all, sink, buffer, events, budget, header, user, ids, segment, birth }
    }

    /// Returns the memory that reading used.
    pub(crate) fn return_memory(self) {
        (self.all.buffer, self.all.events) = (self.buffer, self.events);
    }

    pub(crate) fn source_mut(&mut self, source: usize) -> &mut PointSource {
        &mut self.all.sources[source]
    }

    /// A timestamp as an instant; `None` for one before the process began or in the future.
    #[inline]
    pub(crate) fn instant_at(&mut self, stamp: u64) -> Option<MonotonicNs> {
        if let Some(at) = self.segment.as_ref().and_then(|segment| segment.convert_ticks(stamp)) {
            return Some(at);
        }
        self.other_segment(stamp)
    }

    #[cold]
    fn other_segment(&mut self, stamp: u64) -> Option<MonotonicNs> {
        let clock = &self.all.clock;
        let Some(birth) = self.header.birth else {
            let now = clock.last_pair().monotonic.saturating_add(1_000_000_000);
            self.all.error.get_or_insert(Nanos::ZERO);
            return i64::try_from(stamp).ok().filter(|stamp| *stamp <= now).map(MonotonicNs);
        };
        let segment = if stamp >= clock.first_pair().ticks {
            clock.segment_at(stamp)
        } else {
            self.birth
                .get_or_insert_with(|| clock.extended_to_birth(birth))
                .as_ref()
                .and_then(|clock| clock.segment_at(stamp))
        }?;
        self.all.error = self.all.error.max(Some(segment.error));
        self.segment = Some(segment);
        segment.convert_ticks(stamp)
    }

    /// The point of this number in the process.
    #[inline]
    pub(crate) fn point_of(&mut self, file: &impl Access, id: u32) -> Option<PointId> {
        let place = match id {
            0 => return None,
            1..=NAMES_MAX => id as usize,
            ID_UNNAMED => 0,
            _ => return None,
        };
        match self.ids[place] {
            Some(point) => Some(point),
            None => {
                let point = self.all.point_id(self.user, read_name(file, id));
                Some(*self.ids[place].insert(point))
            }
        }
    }
}
