//! Records on their way from the task to the writer: a lock-free ring of batches, filled by one
//! thread and emptied by the other.

use super::file::RecordBuffer;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const BATCHES: usize = 8;

struct SharedQueue {
    batches: Box<[UnsafeCell<RecordBuffer>]>,
    /// Batches filled; changed only by the task.
    filled: AtomicUsize,
    /// Batches emptied; changed only by the writer.
    emptied: AtomicUsize,
    closed: AtomicBool,
}

// SAFETY: a batch belongs to the task from being emptied to being filled, and then to the writer;
// the counters publish this with release and acquire, and each has one writer.
unsafe impl Sync for SharedQueue {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for SharedQueue {}

pub(crate) struct BatchProducer {
    shared: Arc<SharedQueue>,
    record: usize,
    /// Bytes in the current batch.
    held: usize,
    /// Records dropped for lack of room.
    pub dropped: u64,
}

pub struct BatchConsumer(Arc<SharedQueue>);

/// A queue for batches of `batch` records of `record` bytes.
pub(crate) fn batch_queue(record: usize, batch: usize) -> (BatchProducer, BatchConsumer) {
    let batches =
        (0..BATCHES).map(|_| UnsafeCell::new(RecordBuffer::new(record * batch))).collect();
    let (filled, emptied, closed) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let shared = Arc::new(SharedQueue { batches, filled, emptied, closed });
    (
        BatchProducer { shared: Arc::clone(&shared), record, held: 0, dropped: 0 },
        BatchConsumer(shared),
    )
}

impl BatchProducer {
    /// Adds a record. Returns whether a batch is now full and the writer must be woken.
    #[inline(always)]
    pub fn add_record(&mut self, record: &[u8]) -> bool {
        let filled = self.shared.filled.load(Ordering::Relaxed);
        if filled - self.shared.emptied.load(Ordering::Acquire) == BATCHES {
            self.dropped += 1;
            return false;
        }
        // SAFETY: this batch is emptied and not yet filled: it is the task's.
        let batch = unsafe { &mut *self.shared.batches[filled % BATCHES].get() }.bytes_mut();
        if let Some(place) = batch.get_mut(self.held..self.held + self.record) {
            place.copy_from_slice(record);
        }
        self.held += self.record;
        let full = self.held >= batch.len();
        if full {
            self.held = 0;
            self.shared.filled.store(filled + 1, Ordering::Release);
        }
        full
    }

    /// Ends the queue. Returns the records of the last, partial batch, which are not written.
    pub fn close(&mut self) -> u64 {
        self.shared.closed.store(true, Ordering::Release);
        (self.held / self.record) as u64
    }
}

impl BatchConsumer {
    /// Passes the next full batch to `write`. `None`: there is none.
    pub fn next<R>(&self, write: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let emptied = self.0.emptied.load(Ordering::Relaxed);
        if emptied == self.0.filled.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: this batch is filled and not yet emptied: it is the writer's.
        let result = write(unsafe { &*self.0.batches[emptied % BATCHES].get() }.as_bytes());
        self.0.emptied.store(emptied + 1, Ordering::Release);
        Some(result)
    }

    /// Whether the queue has ended: no more batches follow those in it.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_arrive_complete_in_order_or_are_counted_as_dropped() {
        let (mut queue, consumer) = batch_queue(2, 3);
        let full: Vec<bool> = (0..6u8).map(|number| queue.add_record(&[number, number])).collect();
        assert_eq!(full, [false, false, true, false, false, true]);
        assert_eq!(consumer.next(<[u8]>::to_vec), Some(vec![0, 0, 1, 1, 2, 2]));
        assert_eq!(consumer.next(<[u8]>::to_vec), Some(vec![3, 3, 4, 4, 5, 5]));
        assert_eq!(consumer.next(<[u8]>::to_vec), None);
        for _ in 0..3 * BATCHES + 4 {
            queue.add_record(&[9, 9]);
        }
        assert_eq!(queue.dropped, 4);
        assert!(!consumer.is_closed());
        consumer.next(|_| ());
        queue.add_record(&[7, 7]);
        assert_eq!(queue.close(), 1);
        assert!(consumer.is_closed());
    }

    #[test]
    fn batches_passed_between_two_threads_arrive_complete() {
        let (mut queue, consumer) = batch_queue(8, 4);
        let writer = std::thread::spawn(move || {
            let mut sum = 0u64;
            loop {
                let closed = consumer.is_closed();
                let read = |bytes: &[u8]| {
                    bytes.chunks(8).map(|b| u64::from_ne_bytes(b.try_into().unwrap())).sum::<u64>()
                };
                match consumer.next(read) {
                    Some(more) => sum += more,
                    None if closed => return sum,
                    None => std::thread::yield_now(),
                }
            }
        });
        let mut expected = 0;
        for number in 0..4_000u64 {
            let before = queue.dropped;
            queue.add_record(&number.to_ne_bytes());
            expected += if queue.dropped == before { number } else { 0 };
        }
        // An incomplete batch stays with the producer.
        let held = queue.close();
        let sum = writer.join().unwrap();
        assert!(if held == 0 { sum == expected } else { sum < expected }, "{sum} of {expected}");
    }
}
