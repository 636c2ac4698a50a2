//! The thread that writes the collected records, a batch at a time, each a sample of `safe-write`.

use super::batch_queue::BatchConsumer;
use super::file::{RecordBuffer, RecordFile, written_by_this_thread};
use super::report;
use crate::ring::Producer;
use crate::stop::Stop;
use crate::workload::measurement_loop::{LoopClock, Monotonic};
use punctual_core::{Notes, Policy};
use punctual_sys::attributes::{self, Scheduling, current_cpu};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle, Thread};

pub struct StorageWriter {
    pub record_file: RecordFile,
    pub batches: BatchConsumer,
    pub bytes: usize,
    pub series: u32,
    pub subject: String,
    pub limit: i64,
    pub stop: Arc<Stop>,
    pub records: Arc<AtomicU64>,
}

pub struct RunningWriter {
    handle: JoinHandle<Notes>,
}

impl RunningWriter {
    /// Starts it, with time-sharing scheduling, on the CPUs of the caller.
    pub fn start(writer: StorageWriter, producer: Producer) -> io::Result<RunningWriter> {
        let body = move || {
            // It may have the caller's real-time policy; giving that up needs no permission.
            let _ = attributes::set_scheduling(0, &Scheduling::new(Policy::Other, None));
            writer.write_batches(producer)
        };
        Ok(RunningWriter { handle: Builder::new().name("writer".into()).spawn(body)? })
    }

    /// The thread to unpark when a batch is full.
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Waits until it has written everything. The task has closed its end.
    pub fn join(self) -> Notes {
        self.handle.thread().unpark();
        self.handle.join().unwrap_or_default()
    }
}

impl StorageWriter {
    fn write_batches(mut self, mut producer: Producer) -> Notes {
        let before = written_by_this_thread();
        loop {
            // Read first: batches filled before the queue was closed are then visible.
            let closed = self.batches.is_closed();
            let record_file = &mut self.record_file;
            match self.batches.next(|batch| record_file.write(&Monotonic, batch)) {
                Some(Some([begin, .., end])) => {
                    producer.push(
                        Monotonic.reading_to_ns(begin),
                        Monotonic.reading_to_ns(end),
                        0,
                        current_cpu(),
                    );
                    if end - begin > self.limit {
                        self.stop.on_limit_exceeded(self.series);
                    }
                }
                // It is included in the count of failures.
                Some(None) => {}
                None if closed => break,
                None => std::thread::park(),
            }
        }
        let count = self.record_file.count;
        self.records.store(count.records - count.failed, Ordering::Release);
        // The series ends here; the rest takes time.
        drop(producer);
        let after = written_by_this_thread();
        let mut notes = report::report_file(&mut self.record_file, &self.subject, before, after);
        notes
            .validations
            .extend(report::validate_calls(&mut self.record_file, &RecordBuffer::new(self.bytes)));
        notes
    }
}
