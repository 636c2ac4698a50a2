//! `spin`: gaps in a loop that only reads the clock, and their causes.
//!
//! The loop reads the finest available clock; a distance of two readings above the threshold is a
//! gap, and a sample. At the end of every interruption longer than [`NOTICED`], gap or not, the
//! kernel's counts are read, so that those of the next one begin there.

mod causes;

use super::counter::CycleCounter;
use super::measurement_loop::LoopClock;
use super::{MeasureConfig, Observer, Prepared, clock_cost};
use crate::binned_counter::CounterWriter;
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use causes::{CausesCounts, CountDeltas, CpuCounters, GapCause, Handled, largest_part, read_steal};
use punctual_core::{
    Cell, Column, CpuSet, Fact, Figure, Finding, Nanos, Notes, Severity, Table, Tolerance,
    Validation,
};
use punctual_plan::kinds::SpinPlan;
use punctual_sys::attributes::current_cpu;
use punctual_sys::usage::Usage;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// An interruption longer than this is attributed. Shorter than any interrupt, longer than the
/// loop.
const NOTICED: Nanos = Nanos(300);
/// The longest gaps that are kept with their causes, for each thread.
const LONGEST: usize = 16;
/// Turns of the warm-up loop before the first sample.
const WARM_UP: u64 = 1_000;

pub(super) fn prepare_spin(config: &MeasureConfig, plan: &SpinPlan) -> Prepared {
    let results: Arc<Mutex<Vec<SpinResults>>> = Arc::default();
    let mut parts = Prepared {
        tasks: Vec::new(),
        sources: Vec::new(),
        observer: Box::new(SpinTables(Arc::clone(&results))),
    };
    for series in &config.series {
        let (writer, source) = sink::binned_counter(series.shape);
        let cpus =
            config.threads.get(series.thread).map(|thread| thread.cpus.clone()).unwrap_or_default();
        parts.tasks.push(Box::new(Spinner {
            series: series.name.clone(),
            number: series.number,
            attribute: plan.attribute,
            threshold: plan.threshold,
            cpus,
            duration: config.duration,
            samples: config.samples.unwrap_or(u64::MAX),
            limit: config.stop_above.unwrap_or(Nanos(i64::MAX)),
            stop: Arc::clone(&config.stop),
            writer: Some(writer),
            ticks: None,
            causes: Err("not requested (attribute = false)".to_owned()),
            found: SpinResults::default(),
            results: Arc::clone(&results),
        }));
        parts.sources.push(source);
    }
    parts
}

struct Spinner {
    series: String,
    number: u32,
    attribute: bool,
    threshold: Nanos,
    cpus: CpuSet,
    duration: Option<Nanos>,
    samples: u64,
    limit: Nanos,
    stop: Arc<Stop>,
    writer: Option<CounterWriter>,
    ticks: Option<CycleCounter>,
    /// The counters that attribute gaps, or why there are none.
    causes: Result<CpuCounters, String>,
    found: SpinResults,
    results: Arc<Mutex<Vec<SpinResults>>>,
}

/// The gaps of one cause.
#[derive(Clone, Copy, Default)]
struct GapShare {
    gaps: u64,
    total: Nanos,
    longest: Nanos,
    /// Gaps of which this part alone is as long as the threshold.
    alone: u64,
}

/// A kept gap.
#[derive(Clone, Copy)]
struct KeptGap {
    length: Nanos,
    begin: i64,
    parts: [i64; GapCause::ALL.len()],
    counts: CausesCounts,
}

/// The results of a thread.
#[derive(Clone, Default)]
struct SpinResults {
    series: String,
    watched: Nanos,
    /// Distances of two readings, gaps or not.
    readings: u64,
    /// The rate of the clock, in MHz.
    rate: f64,
    by_cause: [GapShare; GapCause::ALL.len()],
    /// Unordered.
    longest: Vec<KeptGap>,
    /// Interruptions, gaps or not, in which another task ran.
    switched: u64,
    /// An upper bound of the switches away from this thread, from the scheduler's switches on the
    /// CPU.
    departures: u64,
    /// Interrupts around the loop, while the kernel's file was read.
    around: u64,
    counted: CausesCounts,
    /// The number of times that events were counted while the counts were read: in no gap.
    meanwhile: u64,
    /// Time spent reading the counts, without reading the clock.
    unwatched: Nanos,
    interrupts: Option<Handled>,
    switches: u64,
    /// Time stolen by the hypervisor, from the steal clock.
    stolen: Option<Nanos>,
}

impl SpinResults {
    fn add_gap(&mut self, gap: KeptGap, threshold: Nanos) {
        self.by_cause[largest_part(&gap.parts) as usize].gaps += 1;
        for (share, part) in self.by_cause.iter_mut().zip(gap.parts) {
            share.total += Nanos(part);
            share.longest = share.longest.max(Nanos(part));
            share.alone += u64::from(Nanos(part) >= threshold);
        }
        if self.longest.len() < LONGEST {
            self.longest.push(gap);
            return;
        }
        let shortest_kept = self.longest.iter_mut().min_by_key(|kept| kept.length);
        if let Some(least) = shortest_kept.filter(|least| least.length < gap.length) {
            *least = gap;
        }
    }
}

/// The limits of a segment of the loop, in ticks of the counter.
struct SegmentBounds {
    end: i64,
    gaps: u64,
    turns: u64,
}

impl Spinner {
    /// The loop. Between two readings of the clock there is only a comparison and a check of the
    /// stop flag.
    fn watch_gaps(
        &mut self,
        ticks: &CycleCounter,
        bounds: &SegmentBounds,
        sink: &mut impl SampleSink,
        stop: &Stop,
    ) {
        let noticed = ticks.ticks_in_span(NOTICED.min(self.threshold));
        let mut left = bounds.gaps;
        let mut last = ticks.now();
        let mut turns = bounds.turns;
        while left > 0 && turns > 0 && last < bounds.end && !stop.is_asked() {
            let now = ticks.now();
            turns -= 1;
            if now - last < noticed {
                last = now;
                continue;
            }
            let (begin, end) = (ticks.reading_to_ns(last), ticks.reading_to_ns(now));
            let length = Nanos(end - begin);
            let deltas = self.read_counts();
            self.found.switched += u64::from(deltas.is_some_and(|seen| seen.counts.switches > 0));
            if length >= self.threshold {
                sink.put_sample(begin, end, current_cpu());
                let unknown = || {
                    let mut parts = [0; GapCause::ALL.len()];
                    parts[GapCause::Unknown as usize] = length.ns();
                    parts
                };
                let parts = deltas.map_or_else(unknown, |seen| seen.split_gap(length.ns()));
                let counts = deltas.map(|seen| seen.counts).unwrap_or_default();
                self.found.add_gap(KeptGap { length, begin, parts, counts }, self.threshold);
                left -= 1;
                if length > self.limit {
                    stop.on_limit_exceeded(self.number);
                }
            }
            last = ticks.now();
            self.found.unwatched += Nanos(ticks.reading_to_ns(last) - end);
        }
        self.found.readings += bounds.turns - turns;
    }

    /// The kernel's counts up to the end of this gap.
    fn read_counts(&mut self) -> Option<CountDeltas> {
        let causes = self.causes.as_mut().ok()?;
        let deltas = causes.read_deltas();
        self.found.counted.add(deltas.counts);
        self.found.departures += deltas.counts.departures_max();
        // Events during the reading of the counts belong to no gap, in particular not to the next
        // one.
        let CountDeltas { counts: meanwhile, .. } = causes.read_deltas();
        if meanwhile != CausesCounts::default() {
            self.found.meanwhile += 1;
            self.found.counted.add(meanwhile);
            self.found.departures += meanwhile.departures_max();
        }
        Some(deltas)
    }

    /// Discards the interrupts since the last reading, which belong to no gap.
    fn discard_counts(&mut self) -> u64 {
        let counted = self.found.counted;
        self.read_counts();
        std::mem::replace(&mut self.found.counted, counted).interrupts - counted.interrupts
    }

    fn only_cpu(&self) -> Option<usize> {
        self.cpus.first_cpu().filter(|_| self.cpus.len() == 1)
    }
}

impl ThreadTask for Spinner {
    fn prepare(&mut self) -> Result<(), String> {
        self.ticks = Some(CycleCounter::calibrate());
        self.found.longest.reserve(LONGEST);
        if self.attribute {
            self.causes = CpuCounters::open(&self.cpus);
        }
        Ok(())
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.writer.as_ref().map_or(Ok(()), CounterWriter::lock_memory)
    }

    fn warm_up(&mut self) {
        let (Some(ticks), Some(mut writer)) = (self.ticks, self.writer.take()) else { return };
        let bounds = SegmentBounds { end: i64::MAX, gaps: u64::MAX, turns: WARM_UP };
        self.watch_gaps(&ticks, &bounds, &mut writer, &Stop::default());
        self.read_counts();
        // Also warm up the path of a gap.
        writer.count_sample(0, 0, 0);
        writer.reset();
        let longest = std::mem::take(&mut self.found.longest);
        self.found = SpinResults { series: self.series.clone(), longest, ..SpinResults::default() };
        self.found.longest.clear();
        self.writer = Some(writer);
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        // Dropping the writer ends the series.
        let (Some(ticks), Some(mut writer)) = (self.ticks, self.writer.take()) else {
            return Ok(());
        };
        writer.begin_counting();
        while ticks.reading_to_ns(ticks.now()) < start && !self.stop.is_asked() {
            ticks.sleep_until(start);
        }
        let stop = Arc::clone(&self.stop);
        self.read_counts();
        let before = self.only_cpu().and_then(|cpu| Handled::read_for_cpu(cpu).ok());
        let stolen_before = self.only_cpu().and_then(read_steal);
        let usage = Usage::of_this_thread();
        self.found.rate = ticks.ticks_per_us();
        self.found.departures = 0;
        self.found.around = self.discard_counts();
        self.found.counted = CausesCounts::default();
        let began = ticks.now();
        let end =
            self.duration.map_or(i64::MAX, |span| began.saturating_add(ticks.ticks_in_span(span)));
        self.watch_gaps(
            &ticks,
            &SegmentBounds { end, gaps: self.samples, turns: u64::MAX },
            &mut writer,
            &stop,
        );
        self.found.watched = Nanos(ticks.reading_to_ns(ticks.now()) - ticks.reading_to_ns(began))
            - self.found.unwatched;
        self.read_counts();
        let used = Usage::of_this_thread().usage_since(usage);
        self.found.switches = used.voluntary_switches + used.involuntary_switches;
        let after = self.only_cpu().and_then(|cpu| Handled::read_for_cpu(cpu).ok());
        let stolen_after = self.only_cpu().and_then(read_steal);
        self.found.stolen = stolen_before.zip(stolen_after).map(|(before, after)| after - before);
        self.found.around += self.discard_counts();
        self.found.interrupts = before.zip(after).map(|(before, after)| after.subtract(before));
        Ok(())
    }

    fn collect_notes(&mut self) -> Notes {
        let mut notes = Notes::default();
        if let Some(ticks) = self.ticks {
            notes.clock_cost = Fact::Known(clock_cost(&ticks));
        }
        let found = &self.found;
        match &self.causes {
            Err(why) if self.attribute => {
                let message = "gaps could not be attributed";
                let finding =
                    Finding::new("gaps-not-attributed", Severity::Advice, &*self.series, message);
                notes.findings.push(
                    finding
                        .with_evidence(why.clone())
                        .with_remedy("run as root (CAP_PERFMON and tracefs)"),
                );
            }
            Err(_) => {}
            Ok(causes) => {
                if let Err(why) = &causes.gaps {
                    let message = "gaps are not divided: each counts whole for the deepest cause \
                                   that was counted in it";
                    let finding =
                        Finding::new("gaps-not-divided", Severity::Advice, &*self.series, message);
                    let remedy = "run as root on a kernel with BPF and BTF; without it, long gaps \
                                  with interrupts may be steal or hardware latency";
                    notes.findings.push(finding.with_evidence(why.clone()).with_remedy(remedy));
                }
                if let Some(stolen) = found.stolen {
                    let title = format!(
                        "steal time during the measurement, by /proc/stat, in ticks \
                                 ({})",
                        self.series
                    );
                    notes.figures.push(Figure::new("steal", title, stolen.ns() as f64, "ns"));
                }
                let counted = found
                    .interrupts
                    .map(|handled| handled.sure)
                    .ok_or("/proc/interrupts could not be read");
                let shootdowns = found.interrupts.map_or(0, |handled| handled.shootdowns);
                let claimed = found.counted.interrupts;
                let shared = found.interrupts.map_or(0, |handled| handled.shared);
                let tolerance = Tolerance::EXACT
                    .allow_more(found.around, "while the file was read, before and after the loop")
                    .allow_either(
                        shootdowns,
                        "TLB shootdowns, in none of its rows or in two, which depends on the \
                         kernel",
                    )
                    .allow_fewer(
                        shared,
                        "handlers that share an interrupt, each of which is entered",
                    );
                let what = format!("interrupts ({})", self.series);
                notes.validations.push(
                    Validation::compare_counts(
                        what,
                        claimed,
                        Fact::from(counted),
                        "/proc/interrupts, the column of this CPU",
                        tolerance,
                    )
                    .with_explanation(
                        "claimed: entries of tracepoints while the loop ran; rows without a \
                         tracepoint, and NMIs, are left out",
                    ),
                );
                let what = format!("interruptions by another task ({})", self.series);
                let several = found.departures.saturating_sub(found.switched);
                let tolerance = Tolerance::EXACT.allow_more(
                    several,
                    "switches within one interruption, or while the counts were read",
                );
                notes.validations.push(Validation::compare_counts(
                    what,
                    found.switched,
                    Fact::Known(found.switches),
                    "getrusage(2), switches of this thread",
                    tolerance,
                ));
            }
        }
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push(found.clone());
        notes
    }
}

/// Builds tables of the results of all threads.
struct SpinTables(Arc<Mutex<Vec<SpinResults>>>);

/// How often each loop read the clock: oslat counts that, too.
fn readings_table(all: &[SpinResults]) -> Table {
    let row = |found: &SpinResults| {
        let (watched, rate) = (Cell::Number(found.watched.ns() as f64), Cell::Number(found.rate));
        vec![found.series.as_str().into(), found.readings.into(), watched, rate]
    };
    let columns = [("series", ""), ("readings", "count"), ("watched", "ns"), ("clock", "MHz")];
    Table {
        name: "readings".to_owned(),
        title: "Readings of the clock, gaps or not, and its rate".to_owned(),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).into(),
        rows: all.iter().map(row).collect(),
    }
}

impl Observer for SpinTables {
    fn on_end(&mut self) -> Notes {
        let mut spin_results =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        spin_results.sort_by(|a, b| a.series.cmp(&b.series));
        let mut notes = Notes {
            tables: vec![
                by_cause(&spin_results),
                longest_gap_table(&spin_results),
                readings_table(&spin_results),
            ],
            ..Notes::default()
        };
        notes.tables.retain(|table| !table.rows.is_empty());
        notes.findings.extend(throttling_finding(&spin_results));
        notes
    }
}

fn by_cause(all: &[SpinResults]) -> Table {
    let mut rows = Vec::new();
    for found in all {
        let share = |total: Nanos| match found.watched.ns() {
            0 => Cell::Nothing,
            watched => Cell::Number(total.ns() as f64 / watched as f64),
        };
        for (cause, of) in GapCause::ALL
            .iter()
            .zip(&found.by_cause)
            .filter(|(_, of)| of.gaps > 0 || of.total > Nanos::ZERO)
        {
            let series = found.series.as_str();
            rows.push(vec![
                series.into(),
                cause.to_words().into(),
                of.gaps.into(),
                of.longest.into(),
                share(of.total),
                of.total.into(),
                of.alone.into(),
            ]);
        }
        if found.unwatched > Nanos::ZERO {
            let (series, what) =
                (found.series.as_str().into(), "attributing gaps, not watched".into());
            let (share, total) = (share(found.unwatched), found.unwatched.into());
            let empty_cell = Cell::Nothing;
            rows.push(vec![
                series,
                what,
                found.meanwhile.into(),
                empty_cell.clone(),
                share,
                total,
                empty_cell,
            ]);
        }
    }
    let columns = [
        ("series", ""),
        ("cause", ""),
        ("gaps", "count"),
        ("longest", "ns"),
        ("share", "ratio"),
        ("total", "ns"),
        ("alone", "count"),
    ];
    Table {
        name: "gaps-by-cause".to_owned(),
        title: "Gaps by their largest part; longest, total and share are of parts, the share of \
                the time that was watched; alone: gaps of which this part reaches the threshold"
            .to_owned(),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).into(),
        rows,
    }
}

fn longest_gap_table(all: &[SpinResults]) -> Table {
    let mut gaps: Vec<_> =
        all.iter().flat_map(|found| found.longest.iter().map(move |gap| (found, gap))).collect();
    gaps.sort_by_key(|(_, gap)| std::cmp::Reverse(gap.length));
    let row = |(found, gap): (&SpinResults, &KeptGap)| {
        let part = |cause: GapCause| Cell::from(Nanos(gap.parts[cause as usize]));
        vec![
            Cell::from(found.series.as_str()),
            Cell::from(gap.length),
            largest_part(&gap.parts).to_words().into(),
            part(GapCause::Task),
            part(GapCause::Softirq),
            part(GapCause::Interrupt),
            part(GapCause::Observer),
            gap.counts.switches.into(),
            gap.counts.softirqs.into(),
            gap.counts.interrupts.into(),
            Cell::Number(gap.begin as f64),
        ]
    };
    let columns = [
        ("series", ""),
        ("gap", "ns"),
        ("cause", ""),
        ("another task", "ns"),
        ("softirq", "ns"),
        ("interrupt", "ns"),
        ("outside", "ns"),
        ("switches", "count"),
        ("softirqs", "count"),
        ("interrupts", "count"),
        ("began", "ns"),
    ];
    Table {
        name: "longest-gaps".to_owned(),
        title: "The longest gaps: largest cause, each part, and what the kernel counted in it"
            .to_owned(),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).into(),
        rows: gaps.into_iter().take(LONGEST).map(row).collect(),
    }
}

/// A real-time thread that never sleeps is throttled: 50 ms of each second by default.
fn throttling_finding(all: &[SpinResults]) -> Option<Finding> {
    let path = "/proc/sys/kernel/sched_rt_runtime_us";
    let runtime: i64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let long = |found: &SpinResults| {
        found.by_cause[GapCause::Task as usize].longest >= Nanos::from_millis(20)
    };
    let found = all.iter().find(|found| runtime >= 0 && long(found))?;
    let message = "long gaps by other tasks may be real-time throttling, which stops threads that \
                   never sleep";
    let finding = Finding::new("rt-throttling", Severity::Note, &*found.series, message);
    let evidence = format!(
        "{path}: {runtime}; the longest was {}",
        found.by_cause[GapCause::Task as usize].longest
    );
    Some(finding.with_evidence(evidence).with_remedy(
        "to see the rest alone: sysctl kernel.sched_rt_runtime_us=-1 for the time of the run, or \
         --policy other",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gaps_are_counted_and_the_longest_kept() {
        let mut found = SpinResults::default();
        for k in 0..100 {
            let length = Nanos(1_000 + (k * 37) % 100);
            let parts = [0, 0, length.ns() - 400, 400, 0];
            let counts = CausesCounts::default();
            found.add_gap(KeptGap { length, begin: k, parts, counts }, Nanos(1));
        }
        let mut kept: Vec<i64> = found.longest.iter().map(|gap| gap.length.ns()).collect();
        kept.sort_unstable();
        assert_eq!(kept, (1_084..1_100).collect::<Vec<_>>());
        let share = found.by_cause[GapCause::Interrupt as usize];
        assert_eq!((share.gaps, share.longest, share.total), (100, Nanos(699), Nanos(64_950)));
        let observer = found.by_cause[GapCause::Observer as usize];
        assert_eq!(
            (observer.gaps, observer.longest, observer.total),
            (0, Nanos(400), Nanos(40_000))
        );
    }
}
