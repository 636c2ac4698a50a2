//! The destination of a series' samples: a ring that keeps each, or a binned counter for loops too
//! fast for that.

use crate::binned_counter::{self, CounterReader, CounterWriter};
use crate::marker;
use crate::ring::{self, BackupDrain, Consumer, Producer, SnapshotReader};
use punctual_core::{Nanos, SeriesShape};

/// The ring's capacity in time: as long as its readers may be kept off the CPUs.
const RING_SPAN: Nanos = Nanos::from_secs(2);
/// Limits of the ring in samples (24 bytes each).
const RING_SAMPLES: std::ops::RangeInclusive<i64> = 1_024..=262_144;

/// The measuring thread's end: a loop is compiled once for each.
pub trait SampleSink {
    /// Takes a sample. Never waits, never allocates.
    fn put_sample(&mut self, begin: i64, end: i64, cpu: u32);

    /// The same, with the number of missed periods.
    fn put_late(&mut self, begin: i64, end: i64, _missed: u64, cpu: u32) {
        self.put_sample(begin, end, cpu);
    }
}

impl SampleSink for Producer {
    #[inline(always)]
    fn put_sample(&mut self, begin: i64, end: i64, cpu: u32) {
        self.push(begin, end, 0, cpu);
    }

    fn put_late(&mut self, begin: i64, end: i64, missed: u64, cpu: u32) {
        self.push(begin, end, missed, cpu);
    }
}

impl SampleSink for CounterWriter {
    #[inline(always)]
    fn put_sample(&mut self, begin: i64, end: i64, cpu: u32) {
        marker::mark_sample(begin, end, std::ptr::from_ref(self).addr());
        CounterWriter::count_sample(self, begin, end, cpu);
    }

    fn put_late(&mut self, begin: i64, end: i64, missed: u64, cpu: u32) {
        self.count_missed(end - begin, missed);
        SampleSink::put_sample(self, begin, end, cpu);
    }
}

pub enum SampleSource {
    Ring(Consumer),
    Counter(CounterReader),
}

impl SampleSource {
    /// A second reader of every sample, beside the controller thread.
    pub fn snapshot_reader(&self) -> Option<SnapshotReader> {
        match self {
            SampleSource::Ring(consumer) => Some(consumer.snapshot_reader()),
            SampleSource::Counter(_) => None,
        }
    }

    /// An object that takes samples out of a ring while the controller thread is away.
    pub fn backup_drain(&self) -> Option<BackupDrain> {
        match self {
            SampleSource::Ring(consumer) => Some(consumer.backup_drain()),
            SampleSource::Counter(_) => None,
        }
    }
}

/// A ring for samples at this distance or more.
pub(crate) fn ring_for_period(period: Nanos) -> (Producer, SampleSource) {
    let per_span = RING_SPAN.ns() / period.ns().max(1);
    let (producer, consumer) =
        ring::create_ring(per_span.clamp(*RING_SAMPLES.start(), *RING_SAMPLES.end()) as usize);
    (producer, SampleSource::Ring(consumer))
}

/// A binned counter, for samples less than about 10 µs apart.
pub fn binned_counter(shape: SeriesShape) -> (CounterWriter, SampleSource) {
    let (writer, reader) = binned_counter::binned_counter(shape);
    (writer, SampleSource::Counter(reader))
}
