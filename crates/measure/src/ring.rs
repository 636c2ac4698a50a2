//! The ring between one measuring thread and the controller thread: single producer, single
//! consumer, wait-free on both sides.
//!
//! A sample takes three words: `due`, `woke`, and sequence number (32 bits), missed periods (16),
//! CPU (16) packed into one. When the ring is full the new sample is dropped but the sequence
//! number still advances, so that the reader knows the exact number of lost samples.

// Imported through the crate, so that crates/measure/model can substitute a model of memory.
use crate::atomic::{AtomicU64, Ordering, fence};
use crate::marker;
use punctual_core::{ClockNs, Sample};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const WORDS: usize = 3;
/// Samples of one ring that are buffered outside of it while its reader is away: 48 bytes each, 52
/// s of one every 100 µs.
const BACKLOG: usize = 1 << 19;
/// A ring filled to this percentage is drained to the backlog.
const FULL_ENOUGH: u64 = 20;
/// A missed count that exceeds 16 bits: the reader recomputes it from latency and period.
pub(crate) const MISSED_MANY: u64 = 0xffff;

/// Keeps the writer's and the reader's word on separate cache lines.
#[repr(align(128))]
struct Padded(AtomicU64);

struct SharedRing {
    slots: Box<[AtomicU64]>,
    /// Samples ever written; only the producer stores.
    head: Padded,
    /// Samples ever read; only the consumer stores.
    tail: Padded,
    /// Samples ever offered (modulo 2^32), set when the producer ends.
    offered: Padded,
}

impl SharedRing {
    fn capacity(&self) -> u64 {
        (self.slots.len() / WORDS) as u64
    }
    fn word_index(&self, position: u64) -> usize {
        (position & (self.capacity() - 1)) as usize * WORDS
    }
}

pub struct Producer {
    shared: Arc<SharedRing>,
    head: u64,
    /// The reader's position as last read: read again only when the ring seems full.
    tail_seen: u64,
    seq: u32,
}

pub struct Consumer {
    shared: Arc<SharedRing>,
    reader: Arc<Mutex<ReaderPosition>>,
    /// Samples taken out and being read; empty between two calls.
    taken: Vec<DrainedSample>,
}

/// The reader's position, and the samples taken out of the ring before they were requested.
#[derive(Default)]
struct ReaderPosition {
    tail: u64,
    next_seq: u64,
    backlog: Vec<DrainedSample>,
}

/// Takes samples out of a ring that fills while the controller thread is away, and keeps them for
/// it.
pub struct BackupDrain {
    shared: Arc<SharedRing>,
    reader: Arc<Mutex<ReaderPosition>>,
}

/// Reads samples beside the controller thread, without taking them out.
pub struct SnapshotReader {
    shared: Arc<SharedRing>,
    at: u64,
    next_seq: u64,
}

/// A sample as it came out of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrainedSample {
    pub sample: Sample,
    /// Missed periods before this sample's wake-up ([`MISSED_MANY`]: that number or more).
    pub missed: u64,
    /// Samples dropped since the previous one.
    pub dropped_before: u64,
}

/// A ring for at least `samples` (rounded up to a power of two), with every page touched.
pub(crate) fn create_ring(samples: usize) -> (Producer, Consumer) {
    let capacity = samples.max(2).next_power_of_two();
    // Initially non-zero: zeroed allocations are not backed by memory until they are written.
    let slots: Box<[AtomicU64]> = (0..capacity * WORDS).map(|_| AtomicU64::new(u64::MAX)).collect();
    let shared = SharedRing {
        slots,
        head: Padded(AtomicU64::new(0)),
        tail: Padded(AtomicU64::new(0)),
        offered: Padded(AtomicU64::new(0)),
    };
    let shared = Arc::new(shared);
    let producer = Producer { shared: Arc::clone(&shared), head: 0, tail_seen: 0, seq: 0 };
    (producer, Consumer { shared, reader: Arc::default(), taken: Vec::new() })
}

impl Producer {
    /// Writes a sample, or drops it when the ring is full.
    #[inline(always)]
    pub fn push(&mut self, due: i64, woke: i64, missed: u64, cpu: u32) {
        marker::mark_sample(due, woke, std::ptr::from_ref(&*self.shared).addr());
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        if self.head - self.tail_seen == self.shared.capacity() {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            if self.head - self.tail_seen == self.shared.capacity() {
                return;
            }
        }
        let place = self.shared.word_index(self.head);
        let packed = u64::from(seq) << 32 | missed.min(MISSED_MANY) << 16 | u64::from(cpu & 0xffff);
        // A snapshot reader that sees one of these words must see the head that allows overwriting
        // them: on weakly ordered machines a release store alone lets later stores pass it. Pairs
        // with the acquire fence of `read_snapshot`, and costs nothing on x86-64.
        fence(Ordering::Release);
        self.shared.slots[place].store(due as u64, Ordering::Relaxed);
        self.shared.slots[place + 1].store(woke as u64, Ordering::Relaxed);
        self.shared.slots[place + 2].store(packed, Ordering::Relaxed);
        self.head += 1;
        // Release: a reader that sees the new head sees the three words.
        self.shared.head.0.store(self.head, Ordering::Release);
    }

    /// The number of samples offered so far, dropped ones included (modulo 2^32).
    #[cfg(test)]
    fn offered_count(&self) -> u32 {
        self.seq
    }

    /// The memory of the ring, for locking.
    pub(crate) fn ring_memory(&self) -> &[AtomicU64] {
        &self.shared.slots
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.offered.0.store(self.seq.into(), Ordering::Release);
    }
}

/// A reader that panicked was between two samples: its data is consistent.
fn lock_reader(reader: &Mutex<ReaderPosition>) -> MutexGuard<'_, ReaderPosition> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReaderPosition {
    /// Moves the ring's content to the backlog while there is room; the rest is dropped and counted
    /// when the ring is full.
    fn move_to_backlog(&mut self, shared: &SharedRing) {
        let head = shared.head.0.load(Ordering::Acquire);
        let room = BACKLOG.saturating_sub(self.backlog.len());
        let pull_count = ((head - self.tail) as usize).min(room);
        if self.backlog.try_reserve(pull_count).is_err() {
            return;
        }
        for _ in 0..pull_count {
            let place = shared.word_index(self.tail);
            let word = |k: usize| shared.slots[place + k].load(Ordering::Relaxed);
            let (due, woke, packed) = (word(0), word(1), word(2));
            let dropped_before =
                u64::from(((packed >> 32) as u32).wrapping_sub(self.next_seq as u32));
            let seq = self.next_seq + dropped_before;
            self.next_seq = seq + 1;
            self.tail += 1;
            let sample = Sample {
                seq,
                due: ClockNs(due as i64),
                woke: ClockNs(woke as i64),
                cpu: (packed & 0xffff) as u32,
            };
            self.backlog.push(DrainedSample {
                sample,
                missed: packed >> 16 & MISSED_MANY,
                dropped_before,
            });
            // Room is returned in steps, so that a writer that is ahead need not wait for a whole
            // drain.
            if self.tail.is_multiple_of(256) {
                shared.tail.0.store(self.tail, Ordering::Release);
            }
        }
        shared.tail.0.store(self.tail, Ordering::Release);
    }
}

impl Consumer {
    /// A second reader, starting at the first unread sample.
    pub fn snapshot_reader(&self) -> SnapshotReader {
        let reader = lock_reader(&self.reader);
        SnapshotReader {
            shared: Arc::clone(&self.shared),
            at: reader.tail,
            next_seq: reader.next_seq,
        }
    }

    /// An object that takes samples out while the controller thread does not drain.
    pub fn backup_drain(&self) -> BackupDrain {
        BackupDrain { shared: Arc::clone(&self.shared), reader: Arc::clone(&self.reader) }
    }

    /// Samples dropped after the last one that was read; known when the producer is gone.
    pub(crate) fn dropped_when_ended(&self) -> u64 {
        self.dropped_at_end(self.shared.offered.0.load(Ordering::Acquire) as u32)
    }

    /// Passes every available sample to `take`; returns their number. Bounded by the capacity of
    /// the ring and of the backlog.
    pub fn drain(&mut self, mut take: impl FnMut(DrainedSample)) -> u64 {
        let mut count = 0;
        loop {
            // Samples are not processed under the lock: the backup drain would wait.
            let mut reader = lock_reader(&self.reader);
            reader.move_to_backlog(&self.shared);
            std::mem::swap(&mut reader.backlog, &mut self.taken);
            drop(reader);
            let drained_count = self.taken.len();
            count += drained_count as u64;
            self.taken.drain(..).for_each(&mut take);
            // The memory of the backlog is freed.
            self.taken.shrink_to(self.shared.capacity() as usize);
            if drained_count < BACKLOG {
                return count;
            }
        }
    }

    /// Samples dropped after the last one that was read, if the writer has ended after offering
    /// `offered`.
    fn dropped_at_end(&self, offered: u32) -> u64 {
        u64::from(offered.wrapping_sub(lock_reader(&self.reader).next_seq as u32))
    }
}

impl BackupDrain {
    /// Moves the ring's content to the backlog, if it is large; returns the backlog's length. Never
    /// waits: if the controller thread is reading, there is no need.
    pub fn drain_to_backup(&self) -> usize {
        let (head, tail) = (
            self.shared.head.0.load(Ordering::Relaxed),
            self.shared.tail.0.load(Ordering::Relaxed),
        );
        if head.saturating_sub(tail) * 100 < self.shared.capacity() * FULL_ENOUGH {
            return 0;
        }
        let Ok(mut reader) = self.reader.try_lock() else { return 0 };
        reader.move_to_backlog(&self.shared);
        reader.backlog.len()
    }
}

impl SnapshotReader {
    /// Passes on every sample since the last call; returns the number of missed ones, which were
    /// taken by the controller thread and then overwritten. Never waits or delays another thread.
    pub fn read_snapshot(&mut self, mut see: impl FnMut(&Sample)) -> u64 {
        let capacity = self.shared.capacity();
        let head = self.shared.head.0.load(Ordering::Acquire);
        let mut unseen = 0;
        while self.at < head {
            let place = self.shared.word_index(self.at);
            let word = |k: usize| self.shared.slots[place + k].load(Ordering::Relaxed);
            let (due, woke, packed) = (word(0), word(1), word(2));
            fence(Ordering::Acquire);
            // The writer may be writing at `now`: the sample of the previous round there is no
            // longer consistent.
            let now = self.shared.head.0.load(Ordering::Relaxed);
            if now - self.at >= capacity {
                let next = now - capacity / 2;
                unseen += next - self.at;
                self.next_seq += next - self.at;
                self.at = next;
                continue;
            }
            self.at += 1;
            let skipped = u64::from(((packed >> 32) as u32).wrapping_sub(self.next_seq as u32));
            let seq = self.next_seq + skipped;
            self.next_seq = seq + 1;
            let cpu = (packed & 0xffff) as u32;
            see(&Sample { seq, due: ClockNs(due as i64), woke: ClockNs(woke as i64), cpu });
        }
        unseen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn samples_are_read_or_dropped(bursts in proptest::collection::vec(0usize..20, 1..30)) {
            let (mut producer, mut consumer) = create_ring(8);
            let (mut written, mut read, mut dropped, mut next) = (0u64, 0u64, 0u64, 0u64);
            for burst in bursts {
                for _ in 0..burst {
                    producer.push(written as i64, written as i64 + 5, 3, 2);
                    written += 1;
                }
                consumer.drain(|d| {
                    read += 1;
                    dropped += d.dropped_before;
                    next += d.dropped_before;
                    assert_eq!(
                        d.sample,
                        Sample {
                            seq: next,
                            due: ClockNs(next as i64),
                            woke: ClockNs(next as i64 + 5),
                            cpu: 2
                        }
                    );
                    assert_eq!(d.missed, 3);
                    next += 1;
                });
            }
            dropped += consumer.dropped_at_end(producer.offered_count());
            prop_assert_eq!(written, read + dropped);
        }
    }

    #[test]
    fn a_slow_reader_loses_no_sample_if_the_backlog_is_used() {
        let (mut producer, mut consumer) = create_ring(64);
        let (backup_drain, mut dropped, mut read) = (consumer.backup_drain(), 0, 0);
        for k in 0..10_000i64 {
            producer.push(k, k * 2, 0, 1);
            if k % 20 == 0 {
                backup_drain.drain_to_backup();
            }
        }
        consumer.drain(|d| {
            assert_eq!((d.sample.due.ns(), d.sample.seq), (read, read as u64));
            read += 1;
            dropped += d.dropped_before;
        });
        assert_eq!(
            (read, dropped, consumer.dropped_at_end(producer.offered_count())),
            (10_000, 0, 0)
        );
        assert!(consumer.taken.capacity() <= 64, "the memory of the backlog is freed");
    }

    #[test]
    fn samples_beyond_the_limit_of_the_backlog_are_counted() {
        let (mut producer, mut consumer) = create_ring(1 << 10);
        let backup_drain = consumer.backup_drain();
        let all = BACKLOG as i64 + 5_000;
        for k in 0..all {
            producer.push(k, k, 0, 1);
            if k % 200 == 0 {
                backup_drain.drain_to_backup();
            }
        }
        let mut dropped = 0;
        let read = consumer.drain(|d| dropped += d.dropped_before) as i64;
        dropped += consumer.dropped_at_end(producer.offered_count());
        assert_eq!((read, read + dropped as i64), (BACKLOG as i64 + (1 << 10), all));
    }

    #[test]
    fn two_threads_agree_on_every_sample() {
        // In a smaller ring the writer is nearer to the samples being read.
        for capacity in [64, 2] {
            two_threads_agree(capacity, 200_000);
        }
    }

    fn two_threads_agree(capacity: usize, samples: i64) {
        let (mut producer, mut consumer) = create_ring(capacity);
        let writer = std::thread::spawn(move || {
            (0..samples).for_each(|k| producer.push(k, k * 2, 0, 1));
            producer.offered_count()
        });
        let backup_drain = consumer.backup_drain();
        let (ended, is_ended) = std::sync::mpsc::channel::<()>();
        let relieving = std::thread::spawn(move || {
            while is_ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                backup_drain.drain_to_backup();
            }
        });
        let (mut read, mut dropped) = (0u64, 0u64);
        let mut check = |d: DrainedSample| {
            assert_eq!(d.sample.woke.ns(), d.sample.due.ns() * 2);
            assert_eq!(d.sample.seq, d.sample.due.ns() as u64);
            read += 1;
            dropped += d.dropped_before;
        };
        while !writer.is_finished() {
            consumer.drain(&mut check);
        }
        drop(ended);
        relieving.join().unwrap();
        consumer.drain(&mut check);
        dropped += consumer.dropped_at_end(writer.join().unwrap());
        assert_eq!(read + dropped, samples as u64);
    }

    #[test]
    fn snapshots_read_each_sample_or_count_it_as_overwritten() {
        let (mut producer, mut consumer) = create_ring(64);
        let mut snapshot_reader = consumer.snapshot_reader();
        let writer =
            std::thread::spawn(move || (0..200_000i64).for_each(|k| producer.push(k, k * 2, 0, 1)));
        let (mut seen, mut unseen, mut last) = (0u64, 0u64, None);
        let mut see = |sample: &Sample| {
            assert_eq!(sample.woke.ns(), sample.due.ns() * 2);
            assert_eq!(sample.seq, sample.due.ns() as u64);
            assert!(last < Some(sample.seq));
            last = Some(sample.seq);
            seen += 1;
        };
        let mut read = 0;
        while !writer.is_finished() {
            read += consumer.drain(|_| {});
            unseen += snapshot_reader.read_snapshot(&mut see);
        }
        writer.join().unwrap();
        read += consumer.drain(|_| {});
        unseen += snapshot_reader.read_snapshot(&mut see);
        assert_eq!(seen + unseen, read);
    }
}
