//! Passes binned counters from a measuring thread to the controller thread: two buffers that are
//! swapped on the reader's request.
//!
//! The thread counts in one, the reader takes the other. Neither waits: the thread reads one flag
//! per sample.

use punctual_core::{BinnedCounter, SeriesShape};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

struct SharedBins {
    buffers: [UnsafeCell<BinnedCounter>; 2],
    /// The reader requests the counts; set by the reader, cleared by the writer.
    wanted: AtomicBool,
    /// The number of the reader's buffer plus one; 0: none.
    handed: AtomicU32,
    /// The writer is gone: both buffers belong to the reader.
    ended: AtomicBool,
}

// SAFETY: a buffer belongs to the writer or to the reader, never to both: the writer gives one away
// by storing `handed` (Release) and does not touch it again until it has read `handed` as 0
// (Acquire), which the reader stores when it has finished.
unsafe impl Sync for SharedBins {}

pub struct CounterWriter {
    shared: Arc<SharedBins>,
    /// The writer's buffer: one of `shared`.
    active: *mut BinnedCounter,
    place: usize,
    seq: u64,
    /// Whether counts are valid: before, no buffer is handed over.
    begun: bool,
}

// SAFETY: the pointer leads into `shared`, which moves along and is `Sync`; its comment says who
// may use it.
unsafe impl Send for CounterWriter {}

pub struct CounterReader {
    shared: Arc<SharedBins>,
}

/// Two counters of a shape, with all their memory touched.
pub fn binned_counter(shape: SeriesShape) -> (CounterWriter, CounterReader) {
    let buffer = || UnsafeCell::new(BinnedCounter::new(shape));
    let (wanted, handed, ended) =
        (AtomicBool::new(false), AtomicU32::new(0), AtomicBool::new(false));
    let shared = Arc::new(SharedBins { buffers: [buffer(), buffer()], wanted, handed, ended });
    let active = shared.buffers[0].get();
    (
        CounterWriter { shared: Arc::clone(&shared), active, place: 0, seq: 0, begun: false },
        CounterReader { shared },
    )
}

impl CounterWriter {
    /// Counts a sample.
    #[inline(always)]
    pub(crate) fn count_sample(&mut self, begin: i64, end: i64, cpu: u32) {
        // SAFETY: the active buffer is the writer's (see `SharedBins`), and there is one writer.
        let counter = unsafe { &mut *self.active };
        counter.record_sample(self.seq, begin, end, cpu);
        self.seq += 1;
        if self.shared.wanted.load(Ordering::Relaxed) {
            self.hand_over();
        }
    }

    /// Counts periods that pass without a sample during the next one, which has this latency.
    pub fn count_missed(&mut self, latency: i64, missed: u64) {
        // SAFETY: as in `put`.
        let counter = unsafe { &mut *self.active };
        counter.count_missed(latency, missed);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        if !self.begun || self.shared.handed.load(Ordering::Acquire) != 0 {
            return;
        }
        self.shared.wanted.store(false, Ordering::Relaxed);
        self.shared.handed.store(self.place as u32 + 1, Ordering::Release);
        self.place ^= 1;
        self.active = self.shared.buffers[self.place].get();
    }

    /// Marks counts as valid from here on. Earlier ones are discarded, even if requested.
    pub(crate) fn begin_counting(&mut self) {
        self.reset();
        self.begun = true;
    }

    /// Discards the counts so far: after warming up.
    pub fn reset(&mut self) {
        // SAFETY: as in `put`.
        let counter = unsafe { &mut *self.active };
        counter.clear();
        self.seq = 0;
    }

    /// Locks the memory of both buffers. Only before the reader's first request.
    pub fn lock_memory(&self) -> std::io::Result<()> {
        for buffer in &self.shared.buffers {
            // SAFETY: nothing writes: the writer is here, and the reader has no buffer.
            let counter = unsafe { &*buffer.get() };
            for memory in counter.counts_memory() {
                punctual_sys::memory::lock_slice(memory)?;
            }
        }
        Ok(())
    }
}

impl Drop for CounterWriter {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
    }
}

impl CounterReader {
    /// Passes on the buffer handed over since the last call and requests the next one; at the end,
    /// also the rest.
    pub fn drain(&mut self, mut take: impl FnMut(&BinnedCounter)) {
        let mut empty = |place: usize| {
            // SAFETY: the buffer is the reader's: it was handed over, or the writer is gone.
            let counter = unsafe { &mut *self.shared.buffers[place].get() };
            if counter.sample_count() > 0 {
                take(counter);
                counter.clear();
            }
        };
        let ended = self.shared.ended.load(Ordering::Acquire);
        let handed = self.shared.handed.load(Ordering::Acquire) as usize;
        if handed > 0 {
            empty(handed - 1);
            if ended {
                // The rest was counted later than the buffer handed over.
                empty(2 - handed);
            }
            self.shared.handed.store(0, Ordering::Release);
        } else if ended {
            empty(0);
            empty(1);
        }
        self.shared.wanted.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Nanos, SeriesData};

    #[test]
    fn a_counter_shared_by_two_threads_loses_no_sample() {
        let shape = SeriesShape { range: Nanos::MILLI, resolution: Nanos(10), period: None };
        let (mut writer, mut reader) = binned_counter(shape);
        let mut data = SeriesData::new(shape);
        // The reader may request counts during the warm-up.
        reader.drain(|_| unreachable!());
        (0..100).for_each(|_| writer.count_sample(0, 77_777, 0));
        reader.drain(|_| unreachable!());
        writer.begin_counting();
        let thread = std::thread::spawn(move || {
            (0..300_000i64).for_each(|k| writer.count_sample(k, k + k % 1_000, 3));
        });
        while !thread.is_finished() {
            reader.drain(|counter| data.absorb_counter(counter));
        }
        thread.join().unwrap();
        reader.drain(|counter| data.absorb_counter(counter));
        assert_eq!(
            (data.sample_count(), data.max, data.losses.dropped),
            (300_000, Some(Nanos(999)), 0)
        );
        assert_eq!(data.exact.total_count(), data.whole.len());
        assert_eq!(data.worst[0].seq, 999);
    }
}
