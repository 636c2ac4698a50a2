//! `testpoint-cost`: two consecutive test points; their distance in time is the cost of writing
//! one.
//!
//! A point is a timestamp of the points' clock and the data written after it. All mechanisms
//! alternate in turns of [`ROUND`] points, so that a disturbance or a change of frequency affects
//! each of them. The timestamps of `ring` are those in the ring itself.

mod lttng;
mod mechanisms;
mod module;
mod ring;

use super::counter::CycleCounter;
use super::measurement_loop::{LoopClock, MeasurementLoop, Pacing};
use super::{MeasureConfig, NoObserver, Prepared, clock_cost};
use crate::binned_counter::CounterWriter;
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use mechanisms::{MEMFD_SIZE, OpenMechanism};
use punctual_core::notes::Absent;
use punctual_core::{Cell, Column, CpuSet, Fact, Figure, Notes, Table, Tolerance, Validation};
use punctual_plan::Word;
use punctual_plan::kinds::{PointMechanism, TestpointCostPlan};
use punctual_record::perf::PerfCounter;
use punctual_sys::attributes::current_cpu;
use std::cell::Cell as Shared;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Points of a mechanism in one turn: at 10 µs each no longer than a [`Pacing::BURST`].
const ROUND: u64 = 1_000;
/// Points of warm-up before the first sample.
const WARM_UP: u64 = 64;
/// Batches of points without clock readings between them.
const BATCHES: usize = 25;

pub(super) fn prepare_testpoint_cost(config: &MeasureConfig, plan: &TestpointCostPlan) -> Prepared {
    let mut parts =
        Prepared { tasks: Vec::new(), sources: Vec::new(), observer: Box::new(NoObserver) };
    let mut lanes = Vec::new();
    for (series, mechanism) in config.series.iter().zip(&plan.mechanisms) {
        let (writer, source) = sink::binned_counter(series.shape);
        let measurement_loop = MeasurementLoop::from_config(
            config,
            series,
            Pacing::BackToBack { rest: punctual_core::Nanos::ZERO },
        );
        let (name, left) = (series.name.clone(), config.samples.unwrap_or(u64::MAX));
        let way = Err("it was not opened".to_owned());
        lanes.push(PointLane {
            mechanism: *mechanism,
            series: name,
            way,
            measurement_loop,
            writer: Some(writer),
            left,
            failed: 0,
            passed: 0,
        });
        parts.sources.push(source);
    }
    // A text without control characters, which trace_marker accepts unchanged.
    let payload =
        b"punctual-point.".iter().copied().cycle().take(plan.payload.get() as usize).collect();
    let cpus = config.threads.first().map(|thread| thread.cpus.clone()).unwrap_or_default();
    let (stop, duration) = (Arc::clone(&config.stop), config.duration);
    parts.tasks.push(Box::new(CostPoints { lanes, payload, cpus, ticks: None, stop, duration }));
    parts
}

struct PointLane {
    mechanism: PointMechanism,
    series: String,
    way: Result<OpenMechanism, String>,
    measurement_loop: MeasurementLoop,
    writer: Option<CounterWriter>,
    left: u64,
    failed: u64,
    /// Points written through it since it was opened.
    passed: u64,
}

struct CostPoints {
    lanes: Vec<PointLane>,
    payload: Box<[u8]>,
    cpus: CpuSet,
    ticks: Option<CycleCounter>,
    stop: Arc<Stop>,
    duration: Option<punctual_core::Nanos>,
}

impl PointLane {
    /// Writes points and takes the distance of each from the next.
    fn measure_points(
        &mut self,
        ticks: &CycleCounter,
        points: u64,
        payload: &[u8],
        sink: &mut impl SampleSink,
        stop: &Stop,
    ) {
        let Ok(way) = &mut self.way else { return };
        let measurement_loop =
            MeasurementLoop { samples: points, duration: None, ..self.measurement_loop.clone() };
        let (mut failed, result) = (0u64, Shared::new(0 as libc::c_long));
        let mut count = || failed += u64::from(result.get() < 0);
        let sample_count = match way {
            OpenMechanism::Clock => {
                measurement_loop.run(0, ticks, sink, stop, || (), || ()).samples
            }
            OpenMechanism::Raw { timed, before: None, .. } => {
                measurement_loop
                    .run(0, ticks, sink, stop, &mut count, || result.set(timed.make_call()))
                    .samples
            }
            OpenMechanism::Raw { timed, before: Some(before), .. } => {
                let count_and_call = || {
                    count();
                    before.make_call();
                };
                measurement_loop
                    .run(0, ticks, sink, stop, count_and_call, || result.set(timed.make_call()))
                    .samples
            }
            OpenMechanism::Memfd(file) => {
                let (fd, at) = (file.as_raw_fd(), payload.as_ptr().cast());
                let mut offset = 0;
                let write = || {
                    // SAFETY: the payload is readable memory of its length.
                    let written = unsafe { libc::pwrite(fd, at, payload.len(), offset) };
                    result.set(written as libc::c_long);
                    offset = (offset + payload.len() as libc::off_t) % MEMFD_SIZE;
                };
                measurement_loop.run(0, ticks, sink, stop, &mut count, write).samples
            }
            OpenMechanism::Uring(uring, file) => {
                let (fd, length) = (file.as_raw_fd(), payload.len() as u32);
                // SAFETY: the payload is readable memory of its length and outlives the call.
                let write =
                    || result.set(unsafe { uring.write(fd, payload.as_ptr(), length) }.into());
                measurement_loop.run(0, ticks, sink, stop, &mut count, write).samples
            }
            OpenMechanism::Uprobe(probe) => {
                probe.discard_records();
                measurement_loop.run(0, ticks, sink, stop, || (), || probe.hit_probe()).samples
            }
            OpenMechanism::Lttng(lttng) => match lttng.run_batch() {
                Ok(()) => {
                    let cpu = self.measurement_loop.only_cpu.unwrap_or_else(current_cpu);
                    for pair in lttng.stamps.windows(2).take(points as usize) {
                        sink.put_sample(
                            ticks.on_monotonic(pair[0]),
                            ticks.on_monotonic(pair[1]),
                            cpu,
                        );
                    }
                    (lttng::BATCH as u64).min(points)
                }
                Err(why) => {
                    self.way = Err(why);
                    return;
                }
            },
            OpenMechanism::Ring(ring) => match ring.run_batch() {
                Ok(recorded) => {
                    let cpu = current_cpu();
                    for pair in ring.stamps.windows(2).take(points as usize) {
                        sink.put_sample(
                            ticks.on_monotonic(pair[0]),
                            ticks.on_monotonic(pair[1]),
                            cpu,
                        );
                    }
                    // Points missing in the record count as failed.
                    failed += (ring::BATCH as u64).abs_diff(recorded);
                    (ring::BATCH as u64).min(points)
                }
                Err(why) => {
                    self.way = Err(why);
                    return;
                }
            },
        };
        self.failed += failed + u64::from(result.get() < 0);
        self.passed += sample_count;
    }

    /// The mean of consecutive points without clock readings between them, in ns: the median of
    /// some batches.
    fn batch_mean(&mut self, ticks: &CycleCounter, payload: &[u8]) -> Option<f64> {
        let way = self.way.as_mut().ok()?;
        const POINTS: usize = 1_000;
        let mut means = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            let begin = ticks.now();
            match way {
                // Mechanisms that need another call between points, or that write nothing.
                OpenMechanism::Clock
                | OpenMechanism::Lttng(_)
                | OpenMechanism::Raw { before: Some(_), .. } => {
                    return None;
                }
                OpenMechanism::Ring(ring) => ring.pass_points(POINTS),
                OpenMechanism::Raw { timed, .. } => (0..POINTS).for_each(|_| {
                    timed.make_call();
                }),
                OpenMechanism::Memfd(file) => (0..POINTS).for_each(|_| {
                    // SAFETY: the payload is readable memory of its length.
                    unsafe {
                        libc::pwrite(file.as_raw_fd(), payload.as_ptr().cast(), payload.len(), 0)
                    };
                }),
                OpenMechanism::Uring(uring, file) => (0..POINTS).for_each(|_| {
                    // SAFETY: the payload is readable memory of its length and outlives the call.
                    unsafe {
                        uring.write(file.as_raw_fd(), payload.as_ptr(), payload.len() as u32)
                    };
                }),
                OpenMechanism::Uprobe(probe) => (0..POINTS).for_each(|_| probe.hit_probe()),
            }
            let end = ticks.now();
            if let OpenMechanism::Uprobe(probe) = way {
                self.passed += POINTS as u64;
                probe.discard_records();
            }
            if let OpenMechanism::Raw { stored: Some(_), .. } = way {
                self.passed += POINTS as u64;
            }
            means.push(
                (ticks.reading_to_ns(end) - ticks.reading_to_ns(begin)) as f64 / POINTS as f64,
            );
        }
        means.sort_by(f64::total_cmp);
        means.get(BATCHES / 2).copied()
    }
}

impl ThreadTask for CostPoints {
    fn prepare(&mut self) -> Result<(), String> {
        let ticks = CycleCounter::calibrate();
        self.ticks = Some(ticks);
        for lane in &mut self.lanes {
            lane.way = OpenMechanism::open(lane.mechanism, &mut self.payload, &self.cpus, &ticks);
        }
        Ok(())
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.lanes
            .iter()
            .filter_map(|lane| lane.writer.as_ref())
            .try_for_each(CounterWriter::lock_memory)
    }

    fn warm_up(&mut self) {
        let Some(ticks) = self.ticks else { return };
        for lane in &mut self.lanes {
            let Some(mut writer) = lane.writer.take() else { continue };
            lane.measure_points(&ticks, WARM_UP, &self.payload, &mut writer, &Stop::default());
            writer.reset();
            lane.writer = Some(writer);
        }
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        let Some(ticks) = self.ticks else { return Ok(()) };
        ticks.sleep_until(start);
        let end_at = self.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        // Dropping the writers ends the series.
        let mut writers: Vec<_> = self.lanes.iter_mut().map(|lane| lane.writer.take()).collect();
        writers.iter_mut().flatten().for_each(CounterWriter::begin_counting);
        let mut rest_at = start + Pacing::BURST.ns();
        loop {
            let mut wrote = false;
            for (lane, writer) in self.lanes.iter_mut().zip(&mut writers) {
                let (Some(writer), true) = (writer, lane.way.is_ok() && lane.left > 0) else {
                    continue;
                };
                let points = ROUND.min(lane.left);
                lane.measure_points(&ticks, points, &self.payload, writer, &self.stop);
                lane.left -= points;
                wrote = true;
                let now = ticks.reading_to_ns(ticks.now());
                if now >= end_at || self.stop.is_asked() {
                    return Ok(());
                }
                if now >= rest_at {
                    // Real-time throttling stops threads that never sleep.
                    ticks.sleep_until(now + 1_000_000);
                    rest_at = now + 1_000_000 + Pacing::BURST.ns();
                }
            }
            if !wrote {
                return Ok(());
            }
        }
    }

    fn collect_notes(&mut self) -> Notes {
        let Some(ticks) = self.ticks else { return Notes::default() };
        let mut notes = Notes { clock_cost: Fact::Known(clock_cost(&ticks)), ..Notes::default() };
        notes.validations.extend(self.system_calls());
        notes.tables.push(self.batch_table(&ticks));
        for lane in &self.lanes {
            match &lane.way {
                Err(why) => {
                    notes.absent.push(Absent { series: lane.series.clone(), why: why.clone() })
                }
                Ok(OpenMechanism::Uprobe(probe)) => {
                    let source = "the BPF program of the probe, at the entry of the function";
                    let counted = Fact::Known(probe.counted_calls());
                    let site = format!(
                        "the function probed begins with: {}; entry and return are both probed",
                        probe.site_name()
                    );
                    notes.validations.push(
                        Validation::compare_counts(
                            "calls of the probed function",
                            lane.passed,
                            counted,
                            source,
                            Tolerance::EXACT,
                        )
                        .with_explanation(site),
                    );
                }
                Ok(OpenMechanism::Ring(_)) => {
                    let read = lane.passed.saturating_sub(lane.failed);
                    let source = "the head of the ring in the record, before and after each batch";
                    notes.validations.push(Validation::compare_counts(
                        "points in the ring",
                        lane.passed,
                        Fact::Known(read),
                        source,
                        Tolerance::EXACT,
                    ));
                }
                Ok(OpenMechanism::Raw { stored: Some(stored), .. }) => {
                    let written = lane.passed.saturating_sub(lane.failed);
                    let what = format!("points that the module stored ({})", lane.mechanism.word());
                    let counted = Fact::from(stored.read_stored());
                    notes.validations.push(Validation::compare_counts(
                        &what,
                        written,
                        counted,
                        stored.count_source(),
                        Tolerance::EXACT,
                    ));
                }
                Ok(_) if lane.failed > 0 => {
                    let title =
                        format!("points that could not be written ({})", lane.mechanism.word());
                    let name = format!("failed-{}", lane.mechanism.word());
                    notes.figures.push(
                        Figure::new(&name, title, lane.failed as f64, "count")
                            .with_count(lane.passed),
                    );
                }
                Ok(_) => {}
            }
        }
        notes
    }
}

impl CostPoints {
    /// A segment of every mechanism with one system call per point, while the kernel counts them.
    fn system_calls(&mut self) -> Option<Validation> {
        let ticks = self.ticks?;
        let (mut claimed, mut others) = (0, 0);
        let counted = PerfCounter::system_calls(|| {
            (claimed, others) = (0, 0);
            for lane in &mut self.lanes {
                match &lane.way {
                    Ok(OpenMechanism::Raw { before, .. }) => {
                        others += if before.is_some() { ROUND } else { 0 }
                    }
                    Ok(OpenMechanism::Memfd(_) | OpenMechanism::Uring(..)) => {}
                    _ => continue,
                }
                lane.measure_points(
                    &ticks,
                    ROUND,
                    &self.payload,
                    &mut DiscardEvents,
                    &Stop::default(),
                );
                claimed += ROUND;
            }
        });
        let source = "perf_event_open: tracepoint raw_syscalls:sys_enter, this thread";
        let explanation = format!(
            "{ROUND} points of each mechanism that makes a system call for every point, after the \
             measured ones; {others} of the calls empty the pipe again; the one that ends the \
             counting is taken off"
        );
        let claimed = claimed + others;
        let counted = Fact::from(counted);
        Some(
            Validation::compare_counts("system calls", claimed, counted, source, Tolerance::EXACT)
                .with_explanation(explanation),
        )
    }

    /// The cost of a point without clock readings between two of them.
    fn batch_table(&mut self, ticks: &CycleCounter) -> Table {
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        let mut ring = None;
        for lane in &mut self.lanes {
            let Some(mean) = lane.batch_mean(ticks, &self.payload) else { continue };
            if lane.mechanism == PointMechanism::Ring {
                ring = Some(mean);
            }
            rows.push(vec![lane.mechanism.word().into(), Cell::Number(mean)]);
        }
        for row in &mut rows {
            let mean = if let [_, Cell::Number(mean)] = row[..] { mean } else { continue };
            row.push(
                ring.filter(|ring| *ring > 0.0)
                    .map_or(Cell::Nothing, |ring| Cell::Number(mean / ring)),
            );
        }
        Table {
            name: "batches".to_owned(),
            title: "Points one after the other without a clock between them: the mean of 1,000, \
                    median of 25 batches"
                .to_owned(),
            columns: vec![
                Column::new("mechanism", ""),
                Column::new("mean", "ns"),
                Column::new("times the ring", "ratio"),
            ],
            rows,
        }
    }
}

struct DiscardEvents;

impl SampleSink for DiscardEvents {
    fn put_sample(&mut self, begin: i64, end: i64, _: u32) {
        std::hint::black_box(end - begin);
    }
}
