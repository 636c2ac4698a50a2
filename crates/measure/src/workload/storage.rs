//! `storage`: a periodic task that writes records to a file, whole and in its steps.
//!
//! The file has no name, so no trace of it remains in any case. In every period it is opened again
//! through its descriptor link under /proc, written and closed; or records are collected, and a
//! thread with time-sharing scheduling writes them, a batch at a time.

pub(super) mod batch_queue;
pub(super) mod file;
pub(super) mod place;
pub(super) mod report;
pub(super) mod writer;

use super::measurement_loop::{LoopResult, MeasurementLoop, Monotonic, Pacing};
use super::{MeasureConfig, Observer, PrepareError, Prepared, clock_cost};
use crate::ring::{Producer, create_ring};
use crate::sink;
use crate::stop::Stop;
use crate::thread::ThreadTask;
use batch_queue::BatchProducer;
use file::{RecordBuffer, RecordFile, WriteStamps};
use place::{DeviceCounts, StoragePlace};
use punctual_core::{Fact, Figure, Finding, Notes, Severity, Tolerance, Validation};
use punctual_plan::kinds::{Forcing, StorageMode, StoragePlan};
use punctual_sys::attributes::current_cpu;
use punctual_sys::memory;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use writer::{RunningWriter, StorageWriter};

/// Records of warm-up before the first sample: few, because forcing may take long.
const WARM_UP: u64 = 4;

pub(super) fn prepare_storage(
    config: &MeasureConfig,
    plan: &StoragePlan,
) -> Result<Prepared, PrepareError> {
    let Some(first) = config.series.first() else {
        return Err(PrepareError::Needs("storage has no series".to_owned()));
    };
    let needs = PrepareError::Needs;
    let file = file::open_in_directory(&plan.directory).map_err(needs)?;
    let place = StoragePlace::from_file(&file, &plan.directory);
    let on = |why: String| {
        needs(format!("on {} in {}: {why}", place.file_system_kind(), plan.directory.display()))
    };
    let mut record_file = RecordFile::new(file, plan).map_err(on)?;
    let record = RecordBuffer::new(plan.record.get() as usize);
    record_file.try_once(&Monotonic, record.as_bytes()).map_err(on)?;
    let (mut producers, mut sources) = (Vec::new(), Vec::new());
    for _ in &config.series {
        let (producer, source) = sink::ring_for_period(plan.period);
        producers.push(producer);
        sources.push(source);
    }
    let forced = Arc::new(AtomicU64::new(0));
    let measurement_loop =
        MeasurementLoop::from_config(config, first, Pacing::Periodic(plan.period));
    let subject = config.name.clone();
    let work = if plan.mode == StorageMode::Buffered {
        let (queue, batches) =
            batch_queue::batch_queue(plan.record.get() as usize, plan.batch as usize);
        let bytes = plan.record.get() as usize * plan.batch as usize;
        let last = config.series.last().map_or(first.number, |series| series.number);
        let (limit, stop) = (measurement_loop.limit, Arc::clone(&config.stop));
        let (subject, records) = (subject.clone(), Arc::default());
        let writer = StorageWriter {
            record_file,
            batches,
            bytes,
            series: last,
            subject,
            limit,
            stop,
            records,
        };
        let producer = producers.pop();
        let start = |producer| {
            RunningWriter::start(writer, producer)
                .map_err(|why| needs(format!("no writer thread: {why}")))
        };
        StorageWork::Collects { queue, writer: producer.map(start).transpose()?, held: 0 }
    } else {
        StorageWork::Writes(record_file)
    };
    let forced_records = if plan.mode == StorageMode::Forced && plan.forcing != Forcing::Sync {
        Some(Arc::clone(&forced))
    } else {
        None
    };
    let watch =
        DeviceWatch::new(place, forced_records, plan.mode == StorageMode::Forced, subject.clone());
    let storage = Storage {
        subject,
        measurement_loop,
        record,
        work,
        producers,
        forced,
        stop: Arc::clone(&config.stop),
        before: Err("it did not start".to_owned()),
        skipped: 0,
    };
    Ok(Prepared { tasks: vec![Box::new(storage)], sources, observer: Box::new(watch) })
}

/// The processing of a record.
enum StorageWork {
    Writes(RecordFile),
    Collects {
        queue: BatchProducer,
        /// Present until the task has ended.
        writer: Option<RunningWriter>,
        /// Records that were collected but not written, because the last batch was incomplete.
        held: u64,
    },
}

struct Storage {
    subject: String,
    measurement_loop: MeasurementLoop,
    record: RecordBuffer,
    work: StorageWork,
    /// The series `whole` and, if the task writes, those of its steps. Dropped at the end, which
    /// ends the series.
    producers: Vec<Producer>,
    /// Records that were forced, for the observer.
    forced: Arc<AtomicU64>,
    stop: Arc<Stop>,
    /// The bytes that this thread had written, by the kernel's count, before the first record.
    before: Result<u64, String>,
    skipped: u64,
}

/// Passes on the steps of a record: `open`, `write`, `force` if there is such a series, and
/// `close`.
#[inline(always)]
fn hand_on(stamps: Option<WriteStamps>, steps: &mut [Producer]) {
    let Some([begin, opened, written, safe, closed]) = stamps else { return };
    let cpu = current_cpu();
    match steps {
        [open, write, force, close] => {
            open.push(begin, opened, 0, cpu);
            write.push(opened, written, 0, cpu);
            force.push(written, safe, 0, cpu);
            close.push(safe, closed, 0, cpu);
        }
        [open, write, close] => {
            open.push(begin, opened, 0, cpu);
            write.push(opened, written, 0, cpu);
            close.push(written, closed, 0, cpu);
        }
        _ => {}
    }
}

impl Storage {
    fn swap_queue(&mut self, other: &mut BatchProducer) {
        if let StorageWork::Collects { queue, .. } = &mut self.work {
            std::mem::swap(queue, other);
        }
    }

    fn write(
        &mut self,
        measurement_loop: &MeasurementLoop,
        start: i64,
        producers: &mut [Producer],
        stop: &Stop,
    ) -> LoopResult {
        let Some((whole, steps)) = producers.split_first_mut() else {
            return LoopResult::default();
        };
        let record = self.record.as_bytes();
        match &mut self.work {
            StorageWork::Writes(record_file) => {
                let last = Cell::new(None);
                let before = || hand_on(last.take(), steps);
                let act = || last.set(record_file.write(&Monotonic, record));
                let loop_result = measurement_loop.run(start, &Monotonic, whole, stop, before, act);
                hand_on(last.take(), steps);
                loop_result
            }
            StorageWork::Collects { queue, writer, .. } => {
                let writer = writer.as_ref().map(|writer| writer.thread().clone());
                let act = || {
                    if queue.add_record(record)
                        && let Some(writer) = &writer
                    {
                        writer.unpark();
                    }
                };
                measurement_loop.run(start, &Monotonic, whole, stop, || (), act)
            }
        }
    }
}

impl ThreadTask for Storage {
    fn lock_memory(&self) -> io::Result<()> {
        self.producers
            .iter()
            .try_for_each(|producer| memory::lock_slice(producer.ring_memory()))?;
        memory::lock_slice(self.record.as_bytes())
    }

    fn warm_up(&mut self) {
        let mut scratch: Vec<Producer> =
            self.producers.iter().map(|_| create_ring(WARM_UP as usize).0).collect();
        let measurement_loop = self.measurement_loop.short_loop(WARM_UP);
        // Collected in a separate queue: the writer is woken and finds nothing.
        let mut spare_queue = batch_queue::batch_queue(self.record.as_bytes().len(), 2).0;
        self.swap_queue(&mut spare_queue);
        self.write(&measurement_loop, 0, &mut scratch, &Stop::default());
        self.swap_queue(&mut spare_queue);
        if let StorageWork::Writes(record_file) = &mut self.work {
            record_file.reset_counts();
        }
        // Here and not in the run, where page faults would be reported.
        self.before = file::written_by_this_thread();
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        let mut producers = std::mem::take(&mut self.producers);
        let (measurement_loop, stop) = (self.measurement_loop.clone(), Arc::clone(&self.stop));
        self.skipped = self.write(&measurement_loop, start, &mut producers, &stop).skipped;
        drop(producers);
        match &mut self.work {
            StorageWork::Writes(record_file) => {
                self.forced
                    .store(record_file.count.records - record_file.count.failed, Ordering::Release);
            }
            StorageWork::Collects { queue, writer, held } => {
                *held = queue.close();
                // It writes the rest and ends its series; waiting for it is not part of the run.
                if let Some(writer) = writer {
                    writer.thread().unpark();
                }
            }
        }
        Ok(())
    }

    fn collect_notes(&mut self) -> Notes {
        let mut notes;
        let (before, after) = (self.before.clone(), file::written_by_this_thread());
        match &mut self.work {
            StorageWork::Writes(record_file) => {
                notes = report::report_file(record_file, &self.subject, before, after);
                notes.validations.extend(report::validate_calls(record_file, &self.record));
            }
            StorageWork::Collects { queue, writer, held } => {
                notes = writer.take().map(RunningWriter::join).unwrap_or_default();
                report::report_unwritten(&mut notes, &self.subject, *held, queue.dropped);
            }
        }
        notes.clock_cost = Fact::Known(clock_cost(&Monotonic));
        if self.skipped > 0 {
            let title = "periods that passed while a record took longer than one";
            notes.figures.push(Figure::new("skipped-periods", title, self.skipped as f64, "count"));
        }
        notes
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // If it never ran, the writer still waits.
        if let StorageWork::Collects { queue, writer, .. } = &mut self.work {
            queue.close();
            writer.take().map(RunningWriter::join);
        }
    }
}

/// Counts the writes of the device.
pub(super) struct DeviceWatch {
    place: StoragePlace,
    before: Result<DeviceCounts, String>,
    /// The number of records, if each of them must have reached the device.
    forced: Option<Arc<AtomicU64>>,
    in_memory: bool,
    subject: String,
}

impl DeviceWatch {
    /// Watches a place; `records` is the number of records if each must have reached the device.
    pub fn new(
        place: StoragePlace,
        records: Option<Arc<AtomicU64>>,
        forced: bool,
        subject: String,
    ) -> DeviceWatch {
        let in_memory = forced && place.is_memory();
        DeviceWatch {
            place,
            before: Err("it did not start".to_owned()),
            forced: records,
            in_memory,
            subject,
        }
    }
}

impl Observer for DeviceWatch {
    fn on_start(&mut self) {
        self.before = self.place.read_counts();
    }

    fn on_end(&mut self) -> Notes {
        let mut notes = Notes { tables: vec![self.place.place_table()], ..Notes::default() };
        let after = self.place.read_counts();
        let counts_pair = self.before.clone().and_then(|before| after.map(|after| (before, after)));
        if let Ok((before, after)) = &counts_pair {
            let bytes = after.bytes.saturating_sub(before.bytes);
            let writes = after.writes.saturating_sub(before.writes);
            let mut figure = |name: &str, title: &str, value: u64, unit: &str| {
                notes.figures.push(Figure::new(name, title, value as f64, unit));
            };
            figure(
                "device-writes",
                "writes that the device completed, of all tasks",
                writes,
                "count",
            );
            figure("device-bytes", "bytes written to the device, by all tasks", bytes, "bytes");
            if let (Some(before), Some(after)) = (before.flushes, after.flushes) {
                let title = "flushes that the device completed, of all tasks";
                figure("device-flushes", title, after.saturating_sub(before), "count");
            }
        }
        if let Some(forced) = &self.forced {
            let claimed = forced.load(Ordering::Acquire);
            let counted =
                counts_pair.map(|(before, after)| after.writes.saturating_sub(before.writes));
            let tolerance =
                Tolerance::EXACT.any_more("writes of other tasks to the device meanwhile");
            let what = "records forced to the device, at least";
            let source = self.place.counts_file();
            let validation =
                Validation::compare_counts(what, claimed, Fact::from(counted), source, tolerance);
            let explanation = "a record that was waited for is at least one write to the device";
            notes.validations.push(validation.with_explanation(explanation));
        }
        if self.in_memory {
            let message =
                format!("nothing is forced to a disk: {} is memory", self.place.file_system_kind());
            let finding =
                Finding::new("storage-in-memory", Severity::Advice, &*self.subject, message);
            notes
                .findings
                .push(finding.with_remedy("choose a `directory` on the disk to be measured"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples in the series of the steps for a record with these stamps.
    fn handed_on<const STEPS: usize>(stamps: Option<WriteStamps>) -> [Vec<(i64, i64)>; STEPS] {
        let (mut producers, consumers): (Vec<_>, Vec<_>) =
            (0..STEPS).map(|_| create_ring(2)).unzip();
        hand_on(stamps, &mut producers);
        let mut consumers = consumers.into_iter();
        [(); STEPS].map(|()| {
            let mut spans = Vec::new();
            let mut consumer = consumers.next().unwrap();
            consumer.drain(|drained| {
                spans.push((drained.sample.due.ns(), drained.sample.latency().ns()));
            });
            spans
        })
    }

    #[test]
    fn each_storage_step_has_a_sample_of_its_own() {
        let steps = handed_on::<4>(Some([10, 12, 20, 35, 40]));
        assert_eq!(steps, [[(10, 2)], [(12, 8)], [(20, 15)], [(35, 5)]]);
        // If nothing is forced, closing follows writing.
        assert_eq!(handed_on::<3>(Some([10, 12, 20, 20, 26])), [[(10, 2)], [(12, 8)], [(20, 6)]]);
        assert_eq!(handed_on::<3>(None), [const { Vec::new() }; 3]);
    }
}
