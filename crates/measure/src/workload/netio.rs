//! `netio`: a periodic task that requests a message from a server, receives it, encrypts it, and
//! writes it to a file or passes it to another thread.
//!
//! The file, the queue of batches, and the thread that writes them are those of `storage`.

mod line;
mod route;

use super::measurement_loop::{LoopClock, LoopResult, MeasurementLoop, Monotonic, Pacing};
use super::storage::batch_queue::{self, BatchProducer};
use super::storage::file::{self, RecordBuffer, RecordFile};
use super::storage::place::StoragePlace;
use super::storage::writer::{RunningWriter, StorageWriter};
use super::storage::{DeviceWatch, report};
use super::{MeasureConfig, NoObserver, Observer, PrepareError, Prepared, clock_cost};
use crate::ring::{Producer, create_ring};
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use aes::Aes128;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use line::{NetworkLine, NoMessage};
use punctual_core::{Bytes, Fact, Figure, Finding, Notes, Severity, Tolerance, Validation};
use punctual_plan::kinds::{Cipher, NetioPlan, RequestAt, StorageMode, StoragePlan, Writing};
use punctual_record::network::NetworkTime;
use punctual_record::perf::PerfCounter;
use punctual_sys::attributes::current_cpu;
use punctual_sys::memory;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Messages of warm-up before the first sample.
const WARM_UP: u64 = 8;
/// Messages whose own time is kept: the first ones.
const KEPT_MESSAGES: usize = 1 << 16;
/// Messages while the kernel counts the calls.
const COUNTED: u64 = 64;
/// The size at which the file restarts.
const FILE_MAX: Bytes = Bytes::mib(256);

pub(super) fn prepare_netio(
    config: &MeasureConfig,
    plan: &NetioPlan,
) -> Result<Prepared, PrepareError> {
    let Some(first) = config.series.first() else {
        return Err(PrepareError::Needs("netio has no series".to_owned()));
    };
    let (mut producers, mut sources) = (Vec::new(), Vec::new());
    for _ in &config.series {
        let (producer, source) = sink::ring_for_period(plan.period);
        producers.push(producer);
        sources.push(source);
    }
    let measurement_loop =
        MeasurementLoop::from_config(config, first, Pacing::Periodic(plan.period));
    let (work, observer) = prepare_work(config, plan, &measurement_loop, &mut producers)
        .map_err(PrepareError::Needs)?;
    let line = NetworkLine::open(plan).map_err(PrepareError::Needs)?;
    let netio = Netio {
        subject: config.name.clone(),
        plan: plan.clone(),
        measurement_loop,
        hands: NetTaskState {
            line,
            cipher: derive_encryption(plan, config.seed),
            message: RecordBuffer::new(plan.message.get() as usize),
            work,
            came: 0,
            ahead: plan.request == RequestAt::Last,
            requested: false,
            spent: [0; 3],
        },
        producers,
        stop: Arc::clone(&config.stop),
        before: Err("it did not start".to_owned()),
        done: TaskResult::default(),
        own: {
            let mut own_times =
                vec![1; KEPT_MESSAGES.min(config.samples.unwrap_or(u64::MAX) as usize)];
            own_times.clear();
            own_times
        },
    };
    Ok(Prepared { tasks: vec![Box::new(netio)], sources, observer })
}

/// The destination of messages, and the observer.
fn prepare_work(
    config: &MeasureConfig,
    plan: &NetioPlan,
    measurement_loop: &MeasurementLoop,
    producers: &mut Vec<Producer>,
) -> Result<(NetWork, Box<dyn Observer>), String> {
    if plan.writing == Writing::None {
        return Ok((NetWork::Nothing, Box::new(NoObserver)));
    }
    let (direct, forced) = (plan.writing == Writing::Direct, plan.writing == Writing::Forced);
    let file = file::open_in_directory(&plan.directory)?;
    let place = StoragePlace::from_file(&file, &plan.directory);
    let on = |why: String| {
        format!("on {} in {}: {why}", place.file_system_kind(), plan.directory.display())
    };
    let as_storage = StoragePlan {
        mode: if forced { StorageMode::Forced } else { StorageMode::Direct },
        forcing: plan.forcing,
        directory: plan.directory.clone(),
        record: plan.message,
        file_max: FILE_MAX,
        ..StoragePlan::default()
    };
    let mut record_file = RecordFile::new(file, &as_storage).map_err(on)?;
    let at_once = plan.message.get() as usize * if direct { 1 } else { plan.batch as usize };
    record_file.try_once(&Monotonic, RecordBuffer::new(at_once).as_bytes()).map_err(on)?;
    let records = Arc::new(AtomicU64::new(0));
    // Data that is already written when sync(2) runs needs no write.
    let forced_records = forced && plan.forcing != punctual_plan::kinds::Forcing::Sync;
    let watch = DeviceWatch::new(
        place,
        forced_records.then(|| Arc::clone(&records)),
        forced,
        config.name.clone(),
    );
    if direct {
        return Ok((NetWork::Writes(record_file), Box::new(watch)));
    }
    let (queue, batches) =
        batch_queue::batch_queue(plan.message.get() as usize, plan.batch as usize);
    let last = config.series.last().map_or(measurement_loop.series, |series| series.number);
    let (subject, stop) = (config.name.clone(), Arc::clone(&config.stop));
    let writer = StorageWriter {
        record_file,
        batches,
        bytes: at_once,
        series: last,
        subject,
        limit: measurement_loop.limit,
        stop,
        records,
    };
    let start = |producer| {
        RunningWriter::start(writer, producer).map_err(|why| format!("no writer thread: {why}"))
    };
    let writer = producers.pop().map(start).transpose()?;
    Ok((NetWork::Collects { queue, writer, held: 0 }, Box::new(watch)))
}

type Encryption = Ctr128BE<Aes128>;

/// The key is derived from the experiment's seed: only time is measured, and nothing is secret.
fn derive_encryption(plan: &NetioPlan, seed: u64) -> Option<Encryption> {
    let key = (u128::from(seed) | 1 << 127).to_le_bytes();
    (plan.cipher == Cipher::Aes128).then(|| Encryption::new(&key.into(), &[0; 16].into()))
}

/// The processing of a message.
enum NetWork {
    Writes(RecordFile),
    Collects {
        queue: BatchProducer,
        /// Present until the task has ended.
        writer: Option<RunningWriter>,
        /// Messages that were collected but not written, because the last batch was incomplete.
        held: u64,
    },
    Nothing,
}

/// The indices of requesting and receiving among the parts.
const SEND: usize = 0;
const RECV: usize = 1;

/// The parts of one message, in the order of their series after `whole`: at most send, recv,
/// encrypt, open, write, close, driver, softirq.
#[derive(Clone, Copy, Default)]
struct Spans {
    spans: [[i64; 2]; 8],
    used: usize,
}

impl Spans {
    #[inline(always)]
    fn add(&mut self, span: [i64; 2]) {
        if let Some(place) = self.spans.get_mut(self.used) {
            *place = span;
            self.used += 1;
        }
    }

    #[inline(always)]
    fn hand_on(&self, producers: &mut [Producer]) {
        let cpu = current_cpu();
        for (producer, [begin, end]) in producers.iter_mut().zip(&self.spans[..self.used]) {
            producer.push(*begin, *end, 0, cpu);
        }
    }
}

struct NetTaskState {
    line: NetworkLine,
    cipher: Option<Encryption>,
    message: RecordBuffer,
    work: NetWork,
    /// The number of the last received message.
    came: u64,
    /// Whether a message is requested in the cycle before its own.
    ahead: bool,
    /// Whether a message was requested and not received.
    requested: bool,
    /// Time of all messages, of the driver and of network softirqs within it.
    spent: [i64; 3],
}

impl NetTaskState {
    /// One message, with a reading of the clock between its parts.
    #[inline(always)]
    fn process_message(&mut self, stop: &Stop) -> Result<Spans, NoMessage> {
        let begin = Monotonic.now();
        let before = self.line.network_time(begin);
        self.request_message()?;
        let NetTaskState { line, cipher, message, work, came, ahead, requested, .. } = self;
        let mut spans = Spans::default();
        let sent = Monotonic.now();
        spans.add([begin, sent]);
        *requested = false;
        line.receive_message(message.bytes_mut(), || stop.is_asked())?;
        let received = Monotonic.now();
        *came = line.number;
        spans.add([sent, received]);
        if let Some(cipher) = cipher {
            cipher.apply_keystream(message.bytes_mut());
            spans.add([received, Monotonic.now()]);
        }
        match work {
            NetWork::Writes(record_file) => {
                if let Some([begin, opened, written, _, closed]) =
                    record_file.write(&Monotonic, message.as_bytes())
                {
                    spans.add([begin, opened]);
                    spans.add([opened, written]);
                    spans.add([written, closed]);
                }
            }
            NetWork::Collects { queue, writer, .. } => {
                if queue.add_record(message.as_bytes())
                    && let Some(writer) = writer
                {
                    writer.thread().unpark();
                }
            }
            NetWork::Nothing => {}
        }
        if *ahead {
            let begin = Monotonic.now();
            self.request_message()?;
            spans.spans[SEND] = [begin, Monotonic.now()];
        }
        let end = Monotonic.now();
        if let Some((before, after)) = before.zip(self.line.network_time(end)) {
            let NetworkTime { driver, softirq, .. } = after - before;
            // It began between a reading of the clock and that of its CPU: some ns below 0.
            for part in [driver.max(0), softirq.max(0)] {
                spans.add([begin, begin + part]);
            }
            let spent = [end - begin, driver, softirq];
            self.spent.iter_mut().zip(spent).for_each(|(sum, ns)| *sum += ns);
        }
        Ok(spans)
    }

    /// Requests a message, unless one has been requested.
    #[inline(always)]
    fn request_message(&mut self) -> Result<(), NoMessage> {
        if !self.requested {
            self.line.send_request()?;
            self.requested = true;
        }
        Ok(())
    }

    /// Receives the requested message that belongs to no cycle.
    fn receive_outstanding(&mut self, stop: &Stop) {
        if std::mem::take(&mut self.requested) {
            let _ = self.line.receive_message(self.message.bytes_mut(), || stop.is_asked());
        }
    }

    /// System calls of the calling thread so far.
    fn call_count(&self) -> u64 {
        // Open, write, close.
        let written = if let NetWork::Writes(record_file) = &self.work {
            3 * record_file.count.records
        } else {
            0
        };
        self.line.calls + written
    }

    /// Redirects batches to another queue: the writer is not involved.
    fn swap_queue(&mut self, other: &mut BatchProducer) {
        if let NetWork::Collects { queue, .. } = &mut self.work {
            std::mem::swap(queue, other);
        }
    }

    /// A queue without a consumer.
    fn spare_queue(&self) -> BatchProducer {
        batch_queue::batch_queue(self.message.as_bytes().len(), 2).0
    }
}

/// The result of the task.
#[derive(Default)]
struct TaskResult {
    taken: LoopResult,
    lost: u64,
    broken: Option<io::Error>,
    /// Bytes before the run.
    sent_before: u64,
    received_before: u64,
    tcp_before: Option<u64>,
    /// Frames of a veth pair before it, and as its devices count them.
    frames_before: Option<(u64, Result<u64, String>)>,
    /// Bytes after it, like those.
    sent: u64,
    received: u64,
}

/// Turns a received message into samples.
struct MessageSampler<'a, S> {
    sink: &'a mut S,
    came: &'a Cell<bool>,
    /// The time spent waiting for it.
    waited: &'a Cell<i64>,
    /// The task's own time without waiting, while there is room.
    own: &'a mut Vec<i64>,
}

impl<S: SampleSink> MessageSampler<'_, S> {
    #[inline(always)]
    fn keep_own(&mut self, begin: i64, end: i64) {
        if self.own.len() < self.own.capacity() {
            self.own.push(end - begin - self.waited.get());
        }
    }
}

impl<S: SampleSink> SampleSink for MessageSampler<'_, S> {
    #[inline(always)]
    fn put_sample(&mut self, begin: i64, end: i64, cpu: u32) {
        if self.came.get() {
            self.sink.put_sample(begin, end, cpu);
            self.keep_own(begin, end);
        }
    }

    fn put_late(&mut self, begin: i64, end: i64, missed: u64, cpu: u32) {
        if self.came.get() {
            self.sink.put_late(begin, end, missed, cpu);
            self.keep_own(begin, end);
        }
    }
}

struct Netio {
    subject: String,
    plan: NetioPlan,
    measurement_loop: MeasurementLoop,
    hands: NetTaskState,
    /// The series `whole`, then those of the task's parts. Dropped at the end, which ends the
    /// series.
    producers: Vec<Producer>,
    stop: Arc<Stop>,
    /// The bytes that this thread had read and written, by the kernel's count, before the first
    /// message.
    before: Result<Moved, String>,
    done: TaskResult,
    /// The own time of each message, without waiting.
    own: Vec<i64>,
}

impl Netio {
    fn run_cycles(
        &mut self,
        measurement_loop: &MeasurementLoop,
        start: i64,
        producers: &mut [Producer],
        stop: &Stop,
    ) -> TaskResult {
        let mut done = TaskResult::default();
        let Some((whole, parts)) = producers.split_first_mut() else { return done };
        let (last, came) = (Cell::new(None::<Spans>), Cell::new(false));
        let hands = &mut self.hands;
        let (mut lost, mut broken, waited) = (0, None, Cell::new(0));
        if hands.ahead
            && let Err(NoMessage::Broken(why)) = hands.request_message()
        {
            broken = Some(why);
            stop.request_stop();
        }
        let before = || {
            if let Some(spans) = last.take() {
                spans.hand_on(parts);
            }
        };
        let act = || {
            let one = hands.process_message(stop);
            came.set(one.is_ok());
            match one {
                Ok(spans) => {
                    let [begin, end] = spans.spans[RECV];
                    waited.set(end - begin);
                    last.set(Some(spans));
                }
                Err(NoMessage::Lost) => lost += 1,
                Err(NoMessage::Stopped) => {}
                Err(NoMessage::Broken(why)) => {
                    // There will be no more messages.
                    broken = Some(why);
                    stop.request_stop();
                }
            }
        };
        let own_times = &mut self.own;
        let mut sink = MessageSampler { sink: whole, came: &came, waited: &waited, own: own_times };
        done.taken = measurement_loop.run(start, &Monotonic, &mut sink, stop, before, act);
        if let Some(spans) = last.take() {
            spans.hand_on(parts);
        }
        self.hands.receive_outstanding(stop);
        (done.lost, done.broken) = (lost, broken);
        done
    }

    /// Compares the decrypted last record of the file with the message of the server.
    fn read_back(&mut self) -> Option<Validation> {
        let NetWork::Writes(record_file) = &mut self.hands.work else { return None };
        let is_unknown = self.plan.is_elsewhere();
        if is_unknown || record_file.count.records == 0 || record_file.count.failed > 0 {
            return None;
        }
        let length = self.hands.message.as_bytes().len();
        let read =
            record_file.read_last(length).map_err(|why| why.to_string()).and_then(|mut bytes| {
                if let Some(cipher) = &mut self.hands.cipher {
                    let end: u64 = cipher.try_current_pos().map_err(|why| why.to_string())?;
                    cipher.try_seek(end - length as u64).map_err(|why| why.to_string())?;
                    cipher.try_apply_keystream(&mut bytes).map_err(|why| why.to_string())?;
                }
                let mut expected = line::answer_pattern(length);
                line::number_answer(&mut expected, self.hands.came);
                Ok(bytes.iter().zip(&expected).filter(|(have, wanted)| have == wanted).count()
                    as u64)
            });
        let what = "bytes of the last record as the server sent them";
        Some(Validation::compare_counts(
            what,
            length as u64,
            Fact::from(read),
            "the file, read back and decrypted",
            Tolerance::EXACT,
        ))
    }

    /// Further messages, while the kernel counts this thread's calls.
    fn count_calls(&mut self) -> Validation {
        let (measurement_loop, mut claimed) = (self.measurement_loop.short_loop(COUNTED), 0);
        let mut scratch: Vec<Producer> =
            self.producers.iter().map(|_| create_ring(COUNTED as usize).0).collect();
        // The producers of the run are gone: their number is irrelevant, but one must exist.
        scratch.push(create_ring(COUNTED as usize).0);
        let mut spare_queue = self.hands.spare_queue();
        self.hands.swap_queue(&mut spare_queue);
        let mut run_more_cycles = || {
            let before = self.hands.call_count();
            self.run_cycles(&measurement_loop, 0, &mut scratch, &Stop::default());
            claimed = self.hands.call_count() - before;
        };
        let counted = PerfCounter::system_calls(&mut run_more_cycles);
        if counted.is_err() {
            // The claim does not depend on the count.
            run_more_cycles();
        }
        self.hands.swap_queue(&mut spare_queue);
        let source = "perf_event_open: tracepoint raw_syscalls:sys_enter, this thread";
        let tolerance = Tolerance::EXACT;
        Validation::compare_counts(
            "system calls of the task",
            claimed,
            Fact::from(counted),
            source,
            tolerance,
        )
        .with_explanation(format!(
            "{COUNTED} messages more, after the measured ones; the call that ends the counting is \
             taken off"
        ))
    }

    fn validate_received(&self, moved: &Result<Moved, String>) -> Vec<Validation> {
        let claimed = self.done.received - self.done.received_before;
        let what = "bytes received";
        let read = moved.as_ref().map(|moved| moved.read).map_err(Clone::clone);
        let mut validations = vec![Validation::compare_counts(
            what,
            claimed,
            Fact::from(read),
            "/proc/thread-self/io: rchar",
            Tolerance::EXACT,
        )];
        if let Some((before, now)) = self.done.tcp_before.zip(self.hands.line.tcp_counts()) {
            let counted = Fact::Known(now.received - before);
            let source = "getsockopt(2): TCP_INFO, tcpi_bytes_received";
            validations.push(Validation::compare_counts(
                what,
                claimed,
                counted,
                source,
                Tolerance::EXACT,
            ));
        }
        if let Some((before, now)) =
            self.done.frames_before.clone().zip(self.hands.line.frame_counts())
        {
            let counted = now.1.and_then(|now| before.1.map(|before| now - before));
            let (what, source) = ("frames that the driver took", "/proc/net/dev of both ends");
            let claimed = now.0 - before.0;
            let exact = Tolerance::EXACT;
            validations.push(Validation::compare_counts(
                what,
                claimed,
                Fact::from(counted),
                source,
                exact,
            ));
        }
        validations
    }
}

/// The bytes that a thread has read and written by the kernel's count, with read(2), write(2) and
/// similar calls, including sockets (proc_pid_io(5)).
#[derive(Clone, Copy, Debug)]
struct Moved {
    read: u64,
    written: u64,
}

impl Moved {
    /// The current count. Reading it counts as reading, too: later counts include its `length`.
    fn read_current() -> Result<(Moved, u64), String> {
        let path = "/proc/thread-self/io";
        let text = std::fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
        let field = |name: &str| {
            let field = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            field.ok_or_else(|| format!("{path} has no {name}"))
        };
        Ok((Moved { read: field("rchar:")?, written: field("wchar:")? }, text.len() as u64))
    }
}

impl ThreadTask for Netio {
    fn lock_memory(&self) -> io::Result<()> {
        self.producers
            .iter()
            .try_for_each(|producer| memory::lock_slice(producer.ring_memory()))?;
        memory::lock_slice(self.hands.message.as_bytes())
    }

    fn warm_up(&mut self) {
        let mut scratch: Vec<Producer> =
            self.producers.iter().map(|_| create_ring(WARM_UP as usize).0).collect();
        let measurement_loop = self.measurement_loop.short_loop(WARM_UP);
        // Collected in a separate queue: the writer finds nothing.
        let mut spare_queue = self.hands.spare_queue();
        self.hands.swap_queue(&mut spare_queue);
        self.run_cycles(&measurement_loop, 0, &mut scratch, &Stop::default());
        self.hands.swap_queue(&mut spare_queue);
        if let NetWork::Writes(record_file) = &mut self.hands.work {
            record_file.reset_counts();
        }
        // Freeing memory may read: glibc then reads /proc/sys/vm/overcommit_memory.
        drop((scratch, spare_queue));
        self.own.clear();
        self.done.tcp_before = self.hands.line.tcp_counts().map(|counts| counts.received);
        self.done.frames_before = self.hands.line.frame_counts();
        // Here and not in the run, where page faults would be reported.
        self.before = Moved::read_current()
            .map(|(moved, length)| Moved { read: moved.read + length, ..moved });
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        let mut producers = std::mem::take(&mut self.producers);
        let (measurement_loop, stop) = (self.measurement_loop.clone(), Arc::clone(&self.stop));
        let (sent_before, received_before) = (self.hands.line.sent, self.hands.line.received);
        self.hands.spent = [0; 3];
        let tcp_before = self.done.tcp_before;
        let frames_before = self.done.frames_before.take();
        let done = self.run_cycles(&measurement_loop, start, &mut producers, &stop);
        let (sent, received) = (self.hands.line.sent, self.hands.line.received);
        self.done = TaskResult {
            sent_before,
            received_before,
            tcp_before,
            frames_before,
            sent,
            received,
            ..done
        };
        drop(producers);
        if let NetWork::Collects { queue, writer, held } = &mut self.hands.work {
            *held = queue.close();
            // It writes the rest and ends its series; waiting for it is not part of the run.
            if let Some(writer) = writer {
                writer.thread().unpark();
            }
        }
        match self.done.broken.take() {
            Some(why) => Err(io::Error::new(
                why.kind(),
                format!("the connection with the server is gone: {why}"),
            )),
            None => Ok(()),
        }
    }

    fn collect_notes(&mut self) -> Notes {
        // Before further messages are sent.
        let own_times = std::mem::take(&mut self.own);
        let [whole, driver, softirq] = self.hands.spent;
        let mut notes = Notes {
            tables: vec![self.hands.line.connection_table(&self.plan)],
            ..Notes::default()
        };
        let after = Moved::read_current();
        let moved = self.before.clone().and_then(|before| {
            after.map(|(after, _)| Moved {
                read: after.read.saturating_sub(before.read),
                written: after.written - before.written,
            })
        });
        let sent = self.done.sent - self.done.sent_before;
        notes.validations = self.validate_received(&moved);
        notes.validations.extend(self.read_back());
        let written = moved.map(|moved| moved.written.saturating_sub(sent));
        match &mut self.hands.work {
            NetWork::Writes(record_file) => merge_notes(
                &mut notes,
                report::report_file(record_file, &self.subject, Ok(0), written),
            ),
            NetWork::Collects { queue, writer, held } => {
                merge_notes(&mut notes, writer.take().map(RunningWriter::join).unwrap_or_default());
                report::report_unwritten(&mut notes, &self.subject, *held, queue.dropped);
            }
            NetWork::Nothing => {}
        }
        notes.validations.push(self.count_calls());
        let TaskResult { taken, lost, received, received_before, .. } = &self.done;
        let bytes = (received - received_before) as f64;
        notes.figures.extend(own_time(own_times));
        for (name, part, ns) in
            [("driver-share", "driver", driver), ("softirq-share", "softirq", softirq)]
        {
            let title = format!("{part} as a share of the time of all messages");
            let share = self.plan.shares.then(|| 100.0 * ns as f64 / whole.max(1) as f64);
            notes.figures.extend(
                share.map(|share| Figure::new(name, title, share, "%").with_count(taken.samples)),
            );
        }
        notes.figures.push(
            Figure::new("received-bytes", "bytes received", bytes, "bytes")
                .with_count(taken.samples),
        );
        if *lost > 0 {
            let figure = Figure::new(
                "lost-datagrams",
                "answers that did not come within a second",
                *lost as f64,
                "count",
            );
            notes.figures.push(figure.with_count(taken.samples));
            let message = "datagrams were lost, or their sender got no CPU for a second";
            let finding = Finding::new("netio-lost", Severity::Warning, &*self.subject, message);
            let finding = finding.with_evidence(format!(
                "{lost} of {}; no sample has been taken of them",
                taken.samples
            ));
            notes.findings.push(
                finding.with_remedy("leave the server a CPU on which nothing real-time runs"),
            );
        }
        if taken.skipped > 0 {
            let title = "periods that passed while a message took longer than one";
            notes.figures.push(Figure::new(
                "skipped-periods",
                title,
                taken.skipped as f64,
                "count",
            ));
        }
        notes.clock_cost = Fact::Known(clock_cost(&Monotonic));
        notes
    }
}

/// The task's own time for a message: `whole` without waiting for the server, which varies more
/// than writing.
fn own_time(mut own: Vec<i64>) -> Vec<Figure> {
    own.sort_unstable();
    let figure = |name, which, ns: &i64| {
        let title = format!("a message without waiting for it (whole less recv), {which}");
        Figure::new(name, title, *ns as f64, "ns").with_count(own.len() as u64)
    };
    let middle = own.get(own.len() / 2).map(|ns| figure("without-receiving", "median", ns));
    let worst = own.last().map(|ns| figure("worst-without-receiving", "longest", ns));
    middle.into_iter().chain(worst).collect()
}

fn merge_notes(all: &mut Notes, more: Notes) {
    all.validations.extend(more.validations);
    all.figures.extend(more.figures);
    all.tables.extend(more.tables);
    all.findings.extend(more.findings);
}

impl Drop for Netio {
    fn drop(&mut self) {
        // If it never ran, the writer still waits.
        if let NetWork::Collects { queue, writer, .. } = &mut self.hands.work {
            queue.close();
            writer.take().map(RunningWriter::join);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::simulated::SteppedClock;
    use punctual_core::Nanos;

    #[test]
    fn a_missing_message_is_no_sample_and_waiting_is_not_own_time() {
        let measurement_loop = MeasurementLoop {
            series: 0,
            pacing: Pacing::Periodic(Nanos(1_000)),
            duration: None,
            samples: 8,
            limit: i64::MAX,
            only_cpu: Some(2),
        };
        let (ticks, stop) = (SteppedClock::default(), Stop::default());
        let (mut whole, mut reader) = create_ring(16);
        let (came, waited, mut own) = (Cell::new(false), Cell::new(0), Vec::with_capacity(2));
        let mut number = 0;
        let act = || {
            number += 1;
            came.set(number % 2 == 0);
            waited.set(10 * number);
            ticks.pass_time(10 * number + 100);
        };
        let mut sink =
            MessageSampler { sink: &mut whole, came: &came, waited: &waited, own: &mut own };
        let taken = measurement_loop.run(1_000, &ticks, &mut sink, &stop, || (), act);
        assert_eq!(taken, LoopResult { samples: 8, skipped: 0 });
        let mut spans = Vec::new();
        reader.drain(|drained| spans.push(drained.sample.latency().ns()));
        assert_eq!(spans, [2, 4, 6, 8].map(|number| 10 * number + 100 + SteppedClock::READING));
        // Only as many as there is room for.
        assert!(own.len() == own.capacity() && own.iter().all(|ns| *ns == 105), "{own:?}");
    }

    #[test]
    fn parts_of_a_sample_are_distributed_to_their_series_in_order() {
        let mut spans = Spans::default();
        (0..9).for_each(|part| spans.add([part, 10 * part]));
        let (mut producers, readers): (Vec<_>, Vec<_>) = (0..9).map(|_| create_ring(2)).unzip();
        spans.hand_on(&mut producers);
        let parts: Vec<_> = readers
            .into_iter()
            .map(|mut reader| {
                let mut part = None;
                reader.drain(|drained| {
                    part = Some((drained.sample.due.ns(), drained.sample.latency().ns()));
                });
                part
            })
            .collect();
        let expected = (0..8).map(|part| Some((part, 9 * part))).chain([None]);
        assert!(parts.into_iter().eq(expected));
    }

    #[test]
    fn the_cipher_is_that_of_the_standard() {
        // NIST SP 800-38A, F.5.1: CTR-AES128.Encrypt, the first two blocks.
        let bytes = |text: &str| -> Vec<u8> {
            (0..text.len() / 2)
                .map(|k| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap())
                .collect()
        };
        let key: [u8; 16] = bytes("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let counter: [u8; 16] = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
        let mut message = bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        Encryption::new(&key.into(), &counter.into()).apply_keystream(&mut message);
        assert_eq!(
            message,
            bytes("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff")
        );
    }

    #[test]
    fn reading_the_count_is_in_the_next_one() {
        let (before, length) = Moved::read_current().unwrap();
        let (after, _) = Moved::read_current().unwrap();
        assert_eq!(after.read - before.read, length);
    }
}
