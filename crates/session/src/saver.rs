//! Writes the files of a run on a thread of its own: a disk may take nothing for many seconds, and
//! no round of the controller thread waits for it.
//!
//! Files are written in the order in which they were handed over, so that a checkpoint never states
//! samples that the log does not hold.

use punctual_core::{Bytes, CpuSet};
use punctual_sys::attributes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The most bytes of samples that wait to be written: 10 s of 200,000 samples per second. Besides
/// them waits at most one checkpoint of everything.
const ROOM: usize = 64 << 20;
/// The calls of a write are shallow, and a locked stack is resident as a whole.
const STACK: usize = 256 << 10;
/// The time after which the user is told what the end of a phase waits for.
const SLOW: Duration = Duration::from_secs(2);
/// How long the end of a phase waits besides: the run fails then.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(120);

const DIED: &str = "the thread that writes the results died; this is a bug";

/// A write.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Hands writes over to the thread. It ends with the last handle.
#[derive(Clone)]
pub struct Saver(Option<Queue>);

#[derive(Clone)]
struct Queue {
    jobs: Sender<Job>,
    /// The bytes of samples that wait.
    waiting: Arc<AtomicUsize>,
    room: usize,
    /// Whether the last checkpoint still waits.
    is_behind: Arc<AtomicBool>,
}

impl Saver {
    /// Writes at once, on the calling thread: where nothing is measured meanwhile.
    pub(crate) fn on_caller() -> Saver {
        Saver(None)
    }

    /// Starts the thread, on these CPUs.
    pub(crate) fn start(cpus: &CpuSet) -> io::Result<Saver> {
        let (saver, jobs) = Saver::with_queue(ROOM);
        let cpus = cpus.clone();
        let body = move || {
            if !cpus.is_empty() {
                // As the controller thread: elsewhere it would disturb.
                let _ = attributes::set_affinity(0, &cpus);
            }
            jobs.into_iter().for_each(|job| job());
        };
        std::thread::Builder::new()
            .name("punctual-save".to_owned())
            .stack_size(STACK)
            .spawn(body)?;
        Ok(saver)
    }

    /// A saver with the other end of its queue.
    pub(crate) fn with_queue(room: usize) -> (Saver, Receiver<Job>) {
        let (jobs, received) = mpsc::channel();
        let (waiting, is_behind) = (Arc::default(), Arc::default());
        (Saver(Some(Queue { jobs, waiting, room, is_behind })), received)
    }

    /// Whether this many bytes of samples find room in the queue.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.waiting.load(Relaxed) + bytes <= queue.room)
    }

    /// Hands over a write with this many bytes of samples. Returns immediately.
    pub(crate) fn put_job(&self, bytes: usize, job: impl FnOnce() + Send + 'static) {
        let Some(queue) = &self.0 else { return job() };
        queue.waiting.fetch_add(bytes, Relaxed);
        let waiting = Arc::clone(&queue.waiting);
        let counted = move || {
            job();
            waiting.fetch_sub(bytes, Relaxed);
        };
        // Without the thread nothing is written: `finish` reports it.
        let _ = queue.jobs.send(Box::new(counted));
    }

    /// Whether the last checkpoint still waits: another one would only need memory.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|queue| queue.is_behind.load(Relaxed))
    }

    /// Called when all of a checkpoint was handed over.
    pub(crate) fn end_checkpoint(&self) {
        let Some(queue) = &self.0 else { return };
        queue.is_behind.store(true, Relaxed);
        let is_behind = Arc::clone(&queue.is_behind);
        self.put_job(0, move || is_behind.store(false, Relaxed));
    }

    /// Returns once everything handed over so far is written; `on_slow` gets what it waits for.
    ///
    /// # Errors
    /// The disk still takes nothing at the end of the time for it.
    pub(crate) fn finish(&self, on_slow: impl FnOnce(&str)) -> Result<(), String> {
        let Some(queue) = &self.0 else { return Ok(()) };
        let (done, written) = mpsc::sync_channel(1);
        self.put_job(0, move || {
            let _ = done.send(());
        });
        let mut result = written.recv_timeout(SLOW);
        if result == Err(RecvTimeoutError::Timeout) {
            let waiting = Bytes(queue.waiting.load(Relaxed) as u64);
            on_slow(&format!(
                "waiting for the disk: results and {waiting} of samples are unwritten"
            ));
            result = written.recv_timeout(END_TIMEOUT);
        }
        result.map_err(|why| match why {
            RecvTimeoutError::Disconnected => DIED.to_owned(),
            RecvTimeoutError::Timeout => {
                format!("the disk did not take the results within {} s", END_TIMEOUT.as_secs())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn writes_are_made_in_order_and_awaited_at_the_end() {
        let saver = Saver::start(&CpuSet::new()).expect("a thread");
        let written = Arc::<Mutex<Vec<usize>>>::default();
        for number in 0..100 {
            let written = Arc::clone(&written);
            saver.put_job(8, move || written.lock().expect("unpoisoned").push(number));
        }
        saver.finish(|text| panic!("{text}")).expect("written");
        assert_eq!(*written.lock().expect("unpoisoned"), (0..100).collect::<Vec<_>>());
        assert!(!saver.is_behind());
    }

    #[test]
    fn a_full_queue_and_a_waiting_checkpoint_are_known_until_they_are_written() {
        let (saver, jobs) = Saver::with_queue(100);
        saver.put_job(60, || ());
        saver.end_checkpoint();
        assert!(saver.has_room(40) && !saver.has_room(41) && saver.is_behind());
        jobs.try_iter().for_each(|job| job());
        assert!(saver.has_room(100) && !saver.is_behind());
        drop(jobs);
        assert_eq!(saver.finish(|_| ()), Err(DIED.to_owned()));
    }
}
