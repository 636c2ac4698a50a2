//! `heap`: malloc, first touch, free, each a separate interval.
//!
//! Punctual's own malloc is not the one that programs use: punctual is a static program. So a small
//! program, linked with the machine's own C library, makes the requests (`heap.c`), a batch at a
//! time. It and the measuring thread alternate: while one works the other waits, so that counting
//! samples is outside of all of them, and on the same CPU.

mod helper;
mod kernel;
mod lists;
mod requests;
mod shared_memory;

use super::measurement_loop::{LoopClock, Monotonic, Pacing};
use super::{MeasureConfig, NoObserver, PrepareError, Prepared, clock_cost};
use crate::binned_counter::CounterWriter;
use crate::ring::{Producer, create_ring};
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::{ThreadSettings, ThreadTask};
pub use helper::{ARGUMENT, run_heap_program};

use helper::{Allocator, Helper};
use kernel::HeapCounts;
use lists::{ListCounts, Lists};
use punctual_core::{Cell, Column};
use punctual_core::{Fact, Figure, Finding, Nanos, Notes, Severity, Table};
use punctual_plan::kinds::HeapPlan;
use punctual_sys::memory;
use requests::HeapRequests;
use shared_memory::{FRESH, HeapBlock, LOCK, ONE_CPU, TOUCH};
use std::io;
use std::sync::Arc;

/// The maximum number of blocks in a batch, except for a list, which is one batch of any length.
const BATCH: usize = 4_096;
/// Rounds of warm-up before the first sample.
const WARM_UP: usize = 64;
/// The minimum rest, and the part of the time since the last one that it takes at least: a long
/// list is not interrupted.
const REST: Nanos = Nanos::MILLI;
const REST_PART: i64 = 10;

pub(super) fn prepare_heap(
    config: &MeasureConfig,
    plan: &HeapPlan,
) -> Result<Prepared, PrepareError> {
    let allocator = Allocator::from_plan(plan.allocator.as_deref()).map_err(PrepareError::Needs)?;
    let (mut writers, mut sources) = (Vec::new(), Vec::new());
    for series in &config.series {
        let (writer, source) = match plan.period {
            Some(period) => {
                let (producer, source) = sink::ring_for_period(period);
                (SampleWriter::Ring(producer), source)
            }
            None => {
                let (writer, source) = sink::binned_counter(series.shape);
                (SampleWriter::Counter(writer), source)
            }
        };
        writers.push((series.number, writer));
        sources.push(source);
    }
    let flag = |on: bool, flag: u32| if on { flag } else { 0 };
    let only_cpu = config.threads.first().and_then(ThreadSettings::only_cpu);
    let heap = Heap {
        subject: config.name.clone(),
        allocator,
        flags: flag(plan.touch, TOUCH)
            | flag(plan.fresh, FRESH)
            | flag(plan.mlockall, LOCK)
            | flag(only_cpu.is_some(), ONE_CPU),
        only_cpu,
        requests: HeapRequests::new(plan, config.seed),
        lists: (plan.sizes.is_list() && plan.touch).then(Lists::new),
        bounds: LoopBounds {
            period: plan.period,
            duration: config.duration,
            left: config.samples.unwrap_or(u64::MAX),
            lists: if plan.lists > 0 { plan.lists } else { u64::MAX },
            limit: config.stop_above.map_or(i64::MAX, Nanos::ns),
        },
        writers,
        helper: None,
        stop: Arc::clone(&config.stop),
        done: HeapTotals::default(),
    };
    Ok(Prepared { tasks: vec![Box::new(heap)], sources, observer: Box::new(NoObserver) })
}

/// The destination of a series' samples.
enum SampleWriter {
    Ring(Producer),
    Counter(CounterWriter),
}

impl SampleWriter {
    fn write_sample(&mut self, [begin, end]: [i64; 2], cpu: u32) {
        match self {
            SampleWriter::Ring(producer) => producer.put_sample(begin, end, cpu),
            SampleWriter::Counter(writer) => writer.count_sample(begin, end, cpu),
        }
    }

    fn put_late(&mut self, [begin, end]: [i64; 2], missed: u64, cpu: u32) {
        match self {
            SampleWriter::Ring(producer) => producer.put_late(begin, end, missed, cpu),
            SampleWriter::Counter(writer) => writer.put_late(begin, end, missed, cpu),
        }
    }
}

/// The totals.
#[derive(Default)]
struct HeapTotals {
    blocks: u64,
    bytes: u64,
    spent: i64,
    faults: u64,
    skipped: u64,
}

/// The pacing of the loop, and its end conditions.
#[derive(Clone, Copy)]
struct LoopBounds {
    period: Option<Nanos>,
    duration: Option<Nanos>,
    /// Remaining samples of each series.
    left: u64,
    /// Remaining random lists.
    lists: u64,
    /// A longer sample triggers the stop.
    limit: i64,
}

struct Heap {
    subject: String,
    allocator: Allocator,
    flags: u32,
    only_cpu: Option<u32>,
    requests: HeapRequests,
    lists: Option<Lists>,
    bounds: LoopBounds,
    /// With the number of each series, in order: malloc, touch if any, free.
    writers: Vec<(u32, SampleWriter)>,
    helper: Option<Helper>,
    stop: Arc<Stop>,
    done: HeapTotals,
}

impl Heap {
    /// Requests the blocks of the next batch.
    fn request_blocks(&mut self, helper: &mut Helper, blocks: usize, round: usize) {
        let head = helper.shared_memory.batch_head();
        head.flags = self.flags;
        (head.blocks, head.round) = (blocks as u64, round as u64);
        self.requests.fill_blocks(&mut helper.shared_memory.all_blocks()[..blocks], round);
    }

    /// Runs batches until an end condition.
    fn run_batches(
        &mut self,
        mut bounds: LoopBounds,
        helper: &mut Helper,
        start: i64,
        writers: &mut [(u32, SampleWriter)],
        stop: &Stop,
    ) -> io::Result<()> {
        let end_at = bounds.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        let head = helper.shared_memory.batch_head();
        (head.due, head.until, head.limit) = (start, end_at, bounds.limit);
        head.period = bounds.period.map_or(0, Nanos::ns);
        // With long periods one block at a time, so that samples arrive soon; and no list is split.
        let (single, round) =
            (bounds.period.is_some_and(|period| period >= Pacing::BURST), self.requests.round);
        let batch = if single { round } else { round * (BATCH / round).max(1) };
        let mut now = Monotonic.now();
        while now < start && !stop.is_asked() {
            Monotonic.sleep_until(start);
            now = Monotonic.now();
        }
        let mut rested = now;
        while bounds.left > 0 && bounds.lists > 0 && now < end_at && !stop.is_asked() {
            // A random list is a separate batch: the page faults of the batch are those of the
            // list.
            let list = self.requests.next_list();
            bounds.lists -= u64::from(list.is_some());
            let blocks =
                list.unwrap_or(batch).min(usize::try_from(bounds.left).unwrap_or(usize::MAX));
            let round = list.map_or(round, |_| blocks);
            self.request_blocks(helper, blocks, round);
            helper.run_batch(stop)?;
            bounds.left = bounds.left.saturating_sub(self.collect_batch(
                bounds.limit,
                round,
                helper,
                writers,
                stop,
            ));
            if helper.shared_memory.batch_head().failed > 0 {
                return Err(io::Error::other(
                    "malloc failed: is there a limit on memory (ulimit -v, a cgroup; with \
                     `mlockall`, ulimit -l)?",
                ));
            }
            now = Monotonic.now();
            // A real-time task that never sleeps is throttled (sched_rt_runtime_us): both sides
            // have worked without a break since the last rest.
            if bounds.period.is_none() && now - rested >= Pacing::BURST.ns() {
                Monotonic.sleep_until(now + REST.ns().max((now - rested) / REST_PART));
                now = Monotonic.now();
                rested = now;
            }
        }
        Ok(())
    }

    /// Takes the samples of the batch that has just ended; returns the number of blocks.
    fn collect_batch(
        &mut self,
        limit: i64,
        round: usize,
        helper: &mut Helper,
        writers: &mut [(u32, SampleWriter)],
        stop: &Stop,
    ) -> u64 {
        let head = helper.shared_memory.batch_head();
        let (count, page, mut skipped) = (head.done, head.page, head.skipped);
        let batch_counts = ListCounts { faults: head.faults, cpu_time: head.cpu_time };
        self.done.spent += head.spent;
        self.done.faults += head.faults;
        self.done.skipped += skipped;
        self.done.blocks += count;
        let blocks = &helper.shared_memory.all_blocks()[..count as usize];
        // The helper counts the missed periods of a batch: the longest block hid them.
        let whole = |block: &HeapBlock| block.free[1] - block.malloc[0];
        let longest = blocks.iter().map(whole).max().unwrap_or_default();
        for block in blocks {
            let missed = if whole(block) == longest { std::mem::take(&mut skipped) } else { 0 };
            self.done.bytes += block.size;
            let parts = [block.malloc, block.touch, block.free];
            let parts: &[[i64; 2]] =
                if self.flags & TOUCH != 0 { &parts } else { &[block.malloc, block.free] };
            for ((number, writer), part) in writers.iter_mut().zip(parts) {
                let cpu = self.only_cpu.unwrap_or(block.cpu as u32);
                match missed {
                    0 => writer.write_sample(*part, cpu),
                    missed => writer.put_late(*part, missed, cpu),
                }
                if part[1] - part[0] > limit {
                    stop.on_limit_exceeded(*number);
                }
            }
        }
        if let Some(lists) = &mut self.lists {
            let list_counts = Some(batch_counts).filter(|_| blocks.len() <= round);
            blocks
                .chunks(round)
                .for_each(|list: &[HeapBlock]| lists.add_list(list, page, list_counts));
        }
        count
    }

    /// Warms up the measured loop, so that its code and memory are resident.
    fn warm_up_loop(&mut self) -> Result<(), String> {
        let Some(mut helper) = self.helper.take() else { return Ok(()) };
        let (mut writers, lists) = (std::mem::take(&mut self.writers), self.lists.take());
        let blocks = if self.requests.round > 1 { self.requests.round } else { WARM_UP };
        let bounds = LoopBounds {
            period: None,
            duration: None,
            left: blocks as u64,
            lists: 1,
            limit: i64::MAX,
        };
        // Counters are reset; a ring would keep these samples.
        let scratch = writers.iter().filter(|(_, writer)| matches!(writer, SampleWriter::Ring(_)));
        let mut scratch: Vec<_> = scratch
            .map(|(number, _)| (*number, SampleWriter::Ring(create_ring(WARM_UP).0)))
            .collect();
        let into = if scratch.is_empty() { &mut writers } else { &mut scratch };
        let done = self.run_batches(bounds, &mut helper, 0, into, &Stop::default());
        (self.writers, self.lists, self.done) = (writers, lists, HeapTotals::default());
        self.helper = Some(helper);
        done.map_err(|why| why.to_string())
    }

    fn total_figures(&self) -> Vec<Figure> {
        let HeapTotals { blocks, bytes, spent, faults, skipped } = self.done;
        let per_block = |number: f64| number / blocks.max(1) as f64;
        let title = "a request with everything around it (malloc, touch, free and six readings of \
                     the clock), mean";
        let title = if self.flags & TOUCH != 0 {
            title
        } else {
            "a request with everything around it (malloc, free and four readings of the clock), \
             mean"
        };
        let mut figures = vec![
            Figure::new("blocks", "blocks allocated and freed", blocks as f64, "count"),
            Figure::new("bytes", "bytes requested", bytes as f64, "bytes"),
            Figure::new("turn", title, per_block(spent as f64), "ns").with_count(blocks),
            Figure::new(
                "faults-each",
                "page faults for each block (getrusage(2))",
                per_block(faults as f64),
                "ratio",
            )
            .with_count(blocks),
        ];
        figures.extend(self.lists.iter().flat_map(Lists::list_figures));
        if skipped > 0 {
            let title = "periods that passed while a block took longer than one";
            figures.push(Figure::new("skipped-periods", title, skipped as f64, "count"));
        }
        figures
    }
}

fn allocator_table(helper: &Helper) -> Table {
    let library = helper.library.clone().map_or(Cell::Nothing, Cell::from);
    Table {
        name: "allocator".to_owned(),
        title: "Whose malloc and free were measured".to_owned(),
        columns: vec![Column::new("allocator", ""), Column::new("library", "")],
        rows: vec![vec![helper.name.clone().into(), library]],
    }
}

impl ThreadTask for Heap {
    fn prepare(&mut self) -> Result<(), String> {
        let room = BATCH.max(self.requests.round);
        self.helper = Some(Helper::start(&self.allocator, room, false)?);
        self.warm_up_loop()
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.writers.iter().try_for_each(|(_, writer)| match writer {
            SampleWriter::Ring(producer) => memory::lock_slice(producer.ring_memory()),
            SampleWriter::Counter(writer) => writer.lock_memory(),
        })
    }

    fn warm_up(&mut self) {
        if let Some(helper) = &self.helper {
            // The thread's own refusal is already reported.
            let _ = helper.scheduled_like_us();
        }
        // An error here recurs in the run, which reports it.
        let _ = self.warm_up_loop();
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        let mut writers = std::mem::take(&mut self.writers);
        for (_, writer) in &mut writers {
            if let SampleWriter::Counter(writer) = writer {
                writer.begin_counting();
            }
        }
        let Some(mut helper) = self.helper.take() else { return Ok(()) };
        let (bounds, stop) = (self.bounds, Arc::clone(&self.stop));
        let done = self.run_batches(bounds, &mut helper, start, &mut writers, &stop);
        self.helper = Some(helper);
        done
    }

    fn collect_notes(&mut self) -> Notes {
        let mut notes =
            Notes { clock_cost: Fact::Known(clock_cost(&Monotonic)), ..Notes::default() };
        let Some(mut helper) = self.helper.take() else { return notes };
        let flags = self.flags & !FRESH;
        // Counts in an unused heap run in a separate process, started like the measured one.
        let allocator =
            if helper.instead.is_some() { Allocator::BuiltIn } else { self.allocator.clone() };
        let unused = kernel::count_unused_heap(&allocator, &mut self.requests, flags);
        let used = match self.flags & FRESH {
            0 => kernel::count_used_heap(&mut helper, &mut self.requests, flags).ok(),
            _ => None,
        };
        let is_glibc = helper.name.starts_with("glibc") && helper.instead.is_none();
        notes.validations = kernel::validate_pages(&unused, flags, is_glibc);
        let heaps: [(&str, Option<&HeapCounts>); 2] = [
            ("heap not used before", unused.as_ref().ok()),
            ("heap that was measured", used.as_ref()),
        ];
        let rows: Vec<_> = heaps
            .iter()
            .filter_map(|(heap, counted)| counted.map(|counted| (*heap, counted)))
            .collect();
        notes.tables.push(allocator_table(&helper));
        if !rows.is_empty() {
            notes.tables.push(kernel::heap_table(&rows));
        }
        notes.tables.extend(self.lists.as_ref().and_then(Lists::list_table));
        notes.figures = self.total_figures();
        notes.figures.extend(unused.iter().flat_map(kernel::unused_heap_figures));
        if let Some(why) = &helper.instead {
            let message = format!(
                "the measured allocator is {}, not the one that programs of this machine use",
                helper.name
            );
            let finding = Finding::new("heap-built-in", Severity::Advice, &*self.subject, message);
            let remedy =
                "measure on a machine with glibc, or read the figures as those of a static program";
            notes.findings.push(finding.with_evidence(why.clone()).with_remedy(remedy));
        }
        notes
    }
}
