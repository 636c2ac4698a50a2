//! Writes frames (a view on a terminal, lines on a pipe, metrics) on a thread of its own: its
//! reader may be stopped. A frame that is not begun when the next one comes is dropped.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Frames are written by shallow calls.
const STACK: usize = 64 << 10;

struct Slot<F> {
    frame: Option<F>,
    has_ended: bool,
    /// Whether the thread has ended, and written the last frame.
    is_done: bool,
}

type SharedSlot<F> = Arc<(Mutex<Slot<F>>, Condvar)>;

/// Hands frames over to the thread.
pub struct FrameWriter<F> {
    slot: SharedSlot<F>,
    thread: Option<JoinHandle<()>>,
}

impl<F: Send + 'static> FrameWriter<F> {
    /// Starts the thread on the CPUs of the calling one.
    pub fn start(mut write: impl FnMut(F) + Send + 'static) -> io::Result<FrameWriter<F>> {
        let slot = Slot { frame: None, has_ended: false, is_done: false };
        let slot: SharedSlot<F> = Arc::new((Mutex::new(slot), Condvar::new()));
        let its_slot = Arc::clone(&slot);
        let body = move || {
            while let Some(frame) = next(&its_slot) {
                write(frame);
            }
            lock_slot(&its_slot).is_done = true;
            its_slot.1.notify_all();
        };
        let thread = std::thread::Builder::new().name("punctual-show".to_owned());
        let thread = Some(thread.stack_size(STACK).spawn(body)?);
        Ok(FrameWriter { slot, thread })
    }

    /// Writes this frame next. Returns immediately.
    pub fn put_frame(&self, frame: F) {
        lock_slot(&self.slot).frame = Some(frame);
        self.slot.1.notify_all();
    }

    /// Writes the last frame. Returns whether that ended in this time: a thread that still waits
    /// for its reader is left alone.
    pub fn finish(mut self, at_most: Duration) -> bool {
        let mut slot = lock_slot(&self.slot);
        slot.has_ended = true;
        self.slot.1.notify_all();
        let waited = self.slot.1.wait_timeout_while(slot, at_most, |slot| !slot.is_done);
        let is_done = waited.unwrap_or_else(PoisonError::into_inner).0.is_done;
        if let Some(thread) = self.thread.take().filter(|_| is_done) {
            let _ = thread.join();
        }
        is_done
    }
}

/// The next frame; `None` after the last one.
fn next<F>(slot: &SharedSlot<F>) -> Option<F> {
    let waits = |slot: &mut Slot<F>| slot.frame.is_none() && !slot.has_ended;
    let waited = slot.1.wait_while(lock_slot(slot), waits);
    waited.unwrap_or_else(PoisonError::into_inner).frame.take()
}

fn lock_slot<F>(slot: &SharedSlot<F>) -> MutexGuard<'_, Slot<F>> {
    slot.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F> Drop for FrameWriter<F> {
    fn drop(&mut self) {
        lock_slot(&self.slot).has_ended = true;
        self.slot.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn frames_that_a_stopped_reader_would_get_are_dropped_and_the_last_one_wins() {
        let ((begun, has_begun), (go, may_go)) = (mpsc::channel(), mpsc::channel());
        let frames = FrameWriter::start(move |frame: u32| {
            begun.send(frame).expect("the test waits");
            may_go.recv().expect("the test goes on");
        });
        let frames = frames.expect("a thread");
        frames.put_frame(1);
        assert_eq!(has_begun.recv(), Ok(1));
        // None of these waits, and the reader takes nothing meanwhile.
        (2..=9).for_each(|frame| frames.put_frame(frame));
        (0..2).for_each(|_| go.send(()).expect("it waits"));
        assert!(frames.finish(LONG), "the last one is written");
        assert_eq!(has_begun.iter().collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn the_end_leaves_a_thread_whose_reader_takes_nothing() {
        let (go, may_go) = mpsc::channel::<()>();
        let wait = move |()| assert!(may_go.recv().is_err());
        let frames = FrameWriter::start(wait).expect("a thread");
        frames.put_frame(());
        assert!(!frames.finish(Duration::from_millis(10)));
        drop(go);
    }
}
