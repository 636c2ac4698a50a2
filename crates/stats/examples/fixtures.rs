//! Regenerates the fixture bundles: `cargo run -p punctual-analyze --example fixtures`.
//!
//! Everything is computed from fixed seeds and written with the product's own writer, so the output
//! changes only with the format or the figures. `good` is a complete run, `cut-off` one that was
//! killed, `lossy` one with every kind of loss, `hostile` one with malicious names and numbers,
//! `imported` one of cyclictest, `workloads` one of other kinds than timers, with all their
//! results.

use punctual_bundle::import::{ImportOptions, import_results};
use punctual_bundle::load::{CpuLoad, Shares};
use punctual_bundle::meta::{LoadMeta, MeasureMeta};
use punctual_bundle::state::{SeriesState, ThreadUsage};
use punctual_bundle::{
    Bundle, BundleWriter, Completeness, Outcome, PhaseMeta, RunEnding, SeriesMeta,
};
use punctual_core::notes::Absent;
use punctual_core::{
    Cell, Clock, ClockCost, ClockNs, Column, CpuSet, Fact, Figure, Finding, Nanos, Notes, Sample,
    SampleWindow, SeriesData, SeriesShape, Severity, Table, Tolerance, Validation,
};
use punctual_host::environment::{self, Environment};
use punctual_host::files::Root;
use punctual_stats::summarize_bundle;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

type Made = Result<(), Box<dyn Error>>;

const EXPERIMENT: &str = include_str!("../../../examples/quickstart.toml");
const CYCLICTEST: &str = include_str!("../../bundle/src/import/testdata/two.json");
/// CLOCK_MONOTONIC at the beginning of every generated run.
const BEGIN: i64 = 5_000_000_000_000;

fn main() -> Made {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for (name, make) in [
        ("good", write_good_bundle as fn(&Path, &Path) -> Made),
        ("cut-off", cut_off),
        ("lossy", write_lossy_bundle),
        ("hostile", write_hostile_bundle),
        ("imported", write_imported_bundle),
        ("workloads", write_workloads_bundle),
    ] {
        let directory = root.join("bundles").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        make(&directory, &root.join("hosts/debian-rt"))?;
        println!("{}", directory.display());
    }
    Ok(())
}

/// Pseudorandom numbers, the same each time (Steele, Lea, Flood: "Fast Splittable Pseudorandom
/// Number Generators", 2014).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// From 0 to 1, exclusive.
    fn next_share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    /// A latency as of timers: a minimum, a spread, and rarely a delay of another magnitude.
    fn next_latency(&mut self, least: i64, spread: f64, rare: f64) -> i64 {
        let body = -self.next_share().ln() * spread;
        let tail =
            if self.next_share() < rare { -self.next_share().ln() * spread * 20.0 } else { 0.0 };
        least + (body + tail) as i64
    }
}

struct Maker {
    writer: BundleWriter,
    created: jiff::Timestamp,
}

impl Maker {
    fn new(directory: &Path, experiment: &str, origin: &str) -> Result<Maker, Box<dyn Error>> {
        let created = "2026-11-21T08:00:00Z".parse()?;
        let writer = BundleWriter::create_at(directory, experiment, origin, created)?;
        Ok(Maker { writer, created })
    }

    /// The environment of a captured machine, before and after.
    fn write_environment(&self, host: &Path) -> Made {
        let files = Root::from_base(host);
        let mut environment: Environment = environment::capture_environment(&files);
        environment.record_end(&files);
        Ok(self.writer.write_document("environment", &environment)?)
    }

    fn write_phase(&self, index: usize, phase: &PhaseMeta) -> Made {
        Ok(self.writer.write_phase(index, phase)?)
    }

    /// One series: its samples, each with the periods missed, in its log and its state.
    fn write_series(&self, phase: usize, index: usize, made: Series) -> Made {
        let Series { meta, samples, keep, dropped, usage, range, ended } = made;
        let mut writer = self.writer.begin_series(phase, index, &meta, keep)?;
        let shape = SeriesShape { range, resolution: Nanos::MICRO, period: meta.period };
        let mut data = SeriesData::new(shape);
        for (sample, missed) in &samples {
            data.record_sample(sample, *missed);
        }
        data.losses.dropped = dropped;
        let samples: Vec<Sample> = samples.into_iter().map(|(sample, _)| sample).collect();
        for second in samples.chunks(1_000) {
            writer.append_samples(second)?;
            writer.append_window(&summarize_window(second))?;
        }
        let mut state = SeriesState {
            data: SeriesData::new(shape),
            usage,
            digest: None,
            samples_kept: 0,
            log_bytes: 0,
        };
        // As in a run: a checkpoint before the first sample, one later, and the final statistics.
        writer.save_checkpoint(&state)?;
        state = SeriesState {
            data,
            samples_kept: writer.kept_count(),
            log_bytes: writer.log_bytes(),
            ..state
        };
        writer.save_checkpoint(&state)?;
        if ended {
            writer.finish(&state)?;
        }
        Ok(())
    }

    fn finish(self, outcome: Outcome, exit_code: u8, findings: &[Finding]) -> Made {
        self.writer.write_findings(findings)?;
        let at = self.created + jiff::SignedDuration::from_secs(8);
        let ending = RunEnding { at, outcome, exit_code };
        let mut bundle = Bundle::open(self.writer.directory())?;
        bundle.manifest.ending = Some(ending.clone());
        bundle.completeness = Completeness::Whole;
        Ok(self.writer.finish(&summarize_bundle(&bundle), ending)?)
    }
}

fn summarize_window(samples: &[Sample]) -> SampleWindow {
    let latencies = || samples.iter().map(Sample::latency);
    SampleWindow {
        start: samples[0].due,
        count: samples.len() as u64,
        min: latencies().min().unwrap_or_default(),
        max: latencies().max().unwrap_or_default(),
        sum: latencies().fold(Nanos::ZERO, |sum, latency| sum + latency),
    }
}

/// The description of a generated series.
struct Series {
    meta: SeriesMeta,
    samples: Vec<(Sample, u64)>,
    keep: u64,
    dropped: u64,
    usage: Fact<ThreadUsage>,
    range: Nanos,
    /// Whether it ended, or was cut off at a checkpoint.
    ended: bool,
}

impl Series {
    /// Samples of these latencies at a period of 1 ms; a latency of whole periods misses them.
    fn new(meta: SeriesMeta, latencies: impl Iterator<Item = i64>) -> Series {
        let mut seq = 0;
        let mut samples = Vec::new();
        let cpu = meta.cpus.first_cpu().unwrap_or(0) as u32;
        for latency in latencies {
            let due = BEGIN + seq as i64 * 1_000_000;
            let sample =
                Sample { seq, due: ClockNs(due), woke: ClockNs(due.saturating_add(latency)), cpu };
            let missed = (latency / 1_000_000).clamp(0, 10_000) as u64;
            samples.push((sample, missed));
            seq += 1 + missed;
        }
        let usage = Fact::Known(ThreadUsage {
            voluntary_switches: samples.len() as u64,
            ..ThreadUsage::default()
        });
        Series { meta, samples, keep: 1 << 20, dropped: 0, usage, range: Nanos::MILLI, ended: true }
    }
}

fn series_meta(name: &str, cpu: usize, requirements: &[&str]) -> SeriesMeta {
    SeriesMeta {
        name: name.into(),
        measure: String::new(),
        workload: "timer".into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(cpu),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(Nanos::MILLI),
        tid: Some(4_000 + cpu as i32),
        requirements: requirements.iter().map(|r| r.to_string()).collect(),
        details: [("method".to_owned(), "nanosleep-absolute".to_owned())].into(),
    }
}

fn phase_meta(maker: &Maker, name: &str, index: i64, busy: f64, loads: Vec<LoadMeta>) -> PhaseMeta {
    let shares = |busy| Shares { busy, steal: 0.0, interrupts: busy / 50.0 };
    let cpus = (0..4).map(|cpu| (cpu, shares(busy * (0.9 + 0.05 * f64::from(cpu))))).collect();
    PhaseMeta {
        started_monotonic: BEGIN + 4_000_000_000 * index,
        duration: Some(Nanos::from_secs(4)),
        loads,
        cpu_load: Fact::Known(CpuLoad { all: shares(busy), cpus, switches: None }),
        ..PhaseMeta::new(name, maker.created + jiff::SignedDuration::from_secs(4 * index))
    }
}

fn load_meta(name: &str, argv: &[&str]) -> LoadMeta {
    let argv = argv.iter().map(|word| word.to_string()).collect();
    LoadMeta {
        name: name.into(),
        argv,
        cpus: (0..4).collect(),
        starts: 1,
        failures: 0,
        work: Fact::NotAsked,
    }
}

/// Idle and loaded, two CPUs each, every requirement met.
fn write_good_bundle(directory: &Path, host: &Path) -> Made {
    let mut maker = Maker::new(directory, "quickstart", "run")?;
    maker.writer.write_experiment("experiment.toml", EXPERIMENT.as_bytes())?;
    maker.writer.write_plan(EXPERIMENT)?;
    maker.write_environment(host)?;
    maker.write_phase(0, &phase_meta(&maker, "idle", 0, 0.02, Vec::new()))?;
    let compute = load_meta("compute", &["stress-ng", "--cpu", "2", "--quiet"]);
    maker.write_phase(1, &phase_meta(&maker, "loaded", 1, 0.87, vec![compute]))?;
    for (phase, spread) in [(0, 900.0), (1, 2_600.0)] {
        for cpu in 0..2 {
            let mut noise = Noise(7 * phase as u64 + cpu as u64);
            let latencies: Vec<i64> =
                (0..4_000).map(|_| noise.next_latency(1_800, spread, 0.002)).collect();
            let meta =
                series_meta(&format!("timer/cpu{cpu}"), cpu, &["max < 500us", "p99 < 100us"]);
            maker.write_series(phase, cpu, Series::new(meta, latencies.into_iter()))?;
        }
    }
    maker.finish(Outcome::Completed, 0, &[])
}

/// Killed in its second phase: no ending, no summary, and a log that ends within a block.
fn cut_off(directory: &Path, host: &Path) -> Made {
    let mut maker = Maker::new(directory, "killed", "run")?;
    maker.writer.write_experiment("experiment.toml", EXPERIMENT.as_bytes())?;
    maker.writer.write_plan(EXPERIMENT)?;
    maker.write_environment(host)?;
    maker.write_phase(0, &phase_meta(&maker, "idle", 0, 0.02, Vec::new()))?;
    let mut second = phase_meta(
        &maker,
        "loaded",
        1,
        0.0,
        vec![load_meta("compute", &["stress-ng", "--cpu", "2"])],
    );
    (second.duration, second.cpu_load) = (None, Fact::NotAsked);
    maker.write_phase(1, &second)?;
    for (phase, count) in [(0, 3_000), (1, 1_500)] {
        let mut noise = Noise(100 + phase as u64);
        let latencies =
            (0..count).map(|_| noise.next_latency(2_000, 1_500.0, 0.003)).collect::<Vec<i64>>();
        let mut series =
            Series::new(series_meta("timer/cpu0", 0, &["max < 500us"]), latencies.into_iter());
        (series.usage, series.ended) = (Fact::NotAsked, phase == 0);
        maker.write_series(phase, 0, series)?;
    }
    // The state after kill -9: an incomplete block, and a series without its first checkpoint.
    let log = directory.join("phases/001/0000.log");
    OpenOptions::new().append(true).open(log)?.write_all(&[0x40, 0, 0, 0, 1, 2, 3])?;
    maker.writer.begin_series(1, 1, &series_meta("timer/cpu1", 1, &["max < 500us"]), 100)?;
    Ok(())
}

/// Every kind of loss occurred, one thread did not get real-time scheduling, and requirements fail.
fn write_lossy_bundle(directory: &Path, host: &Path) -> Made {
    let maker = Maker::new(directory, "lossy", "run")?;
    maker.write_environment(host)?;
    let mut bad_load = load_meta("flaky", &["sh", "-c", "exit 1"]);
    (bad_load.starts, bad_load.failures) = (12, 11);
    let mut main = phase_meta(&maker, "main", 0, 0.96, vec![bad_load]);
    if let Fact::Known(load) = &mut main.cpu_load {
        load.all.steal = 0.031;
    }
    maker.write_phase(0, &main)?;
    let mut noise = Noise(4_711);
    let mut latencies =
        |n: usize| (0..n).map(|_| noise.next_latency(2_500, 4_000.0, 0.01)).collect::<Vec<i64>>();

    let mut late = latencies(3_000);
    (late[700], late[1_900], late[2_500]) = (7_300_000, 2_100_000, 1_250_000);
    let requirements =
        ["max < 1ms", "p99 < 100us", "overruns == 0", "corrected p99 < 100us", "p99.999 < 1ms"];
    let mut overruns = Series::new(series_meta("overruns", 0, &requirements), late.into_iter());
    overruns.usage = Fact::Known(ThreadUsage {
        minor_faults: 3,
        major_faults: 1,
        voluntary_switches: 3_000,
        involuntary_switches: 17,
    });
    maker.write_series(0, 0, overruns)?;

    let mut dropped = Series::new(
        series_meta("dropped", 1, &["max < 10ms", "lost == 0"]),
        latencies(2_000).into_iter(),
    );
    (dropped.dropped, dropped.keep) = (130, 500);
    maker.write_series(0, 1, dropped)?;

    let mut stepped = latencies(1_000);
    (stepped[10], stepped[11]) = (-1_000_000, -3);
    let mut negative = Series::new(series_meta("negative", 2, &[]), stepped.into_iter());
    (negative.meta.clock, negative.range) = (Clock::Realtime, Nanos::from_micros(20));
    maker.write_series(0, 2, negative)?;

    let mut shared = Series::new(
        series_meta("time-sharing", 3, &["max < 10ms"]),
        latencies(1_000).into_iter().map(|l| l / 4_000 * 4_000),
    );
    (shared.meta.scheduling, shared.meta.real_time) = ("SCHED_OTHER".into(), false);
    shared.meta.details.insert("asked".into(), "SCHED_FIFO 80".into());
    shared.usage = Fact::Unavailable("getrusage(2): Operation not permitted".into());
    maker.write_series(0, 3, shared)?;

    let mut empty = Series::new(series_meta("empty", 3, &["max < 1ms"]), std::iter::empty());
    empty.usage = Fact::NotAsked;
    maker.write_series(0, 4, empty)?;
    let governor = Finding::new(
        "governor",
        Severity::Warning,
        "cpu 0",
        "the frequency of this CPU changes with its load",
    )
    .with_evidence("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: schedutil")
    .with_remedy("cpupower frequency-set -g performance");
    maker.finish(Outcome::Interrupted, 3, &[governor])
}

/// Names with markup, escapes, paths or very long text, and numbers at the limits of their types.
fn write_hostile_bundle(directory: &Path, _: &Path) -> Made {
    const NAMES: [&str; 7] = [
        "<script>alert('name')</script>",
        "\"quoted\" & 'quoted' </td></svg>]]>",
        "\u{1b}[2J\u{1b}[31mred\u{7}",
        "two\nlines\r\tand a tab",
        "\u{202e}txt.exe\u{2066}\u{200b}",
        "../../etc/passwd\0{{ braces }} ${HOME} `id` %n",
        "=HYPERLINK(\"x\";\"y\"),comma;semicolon",
    ];
    let maker = Maker::new(directory, NAMES[0], "run\u{1b}[5m")?;
    let evil = LoadMeta {
        name: NAMES[2].into(),
        argv: NAMES.map(String::from).into(),
        cpus: CpuSet::new(),
        starts: u64::MAX,
        failures: u64::MAX,
        work: Fact::NotAsked,
    };
    let mut main = phase_meta(&maker, NAMES[1], 0, 1e300, vec![evil]);
    (main.duration, main.started_monotonic) = (Some(Nanos(i64::MAX)), i64::MIN);
    maker.write_phase(0, &main)?;
    let long = "x".repeat(5_000);
    let names = NAMES.iter().copied().chain([long.as_str(), ""]);
    for (index, name) in names.enumerate() {
        let huge = [1_000_000_000_000_000_000, i64::MAX - BEGIN, 0, -1_000_000_000_000_000_000];
        let latencies = huge.into_iter().cycle().take(if index % 2 == 0 { 4 } else { 40 });
        let mut series =
            Series::new(series_meta(name, 0, &[NAMES[4], "max < 1us", "p50 > 1d"]), latencies);
        series.meta.scheduling = NAMES[3].into();
        series.meta.workload = NAMES[5].into();
        series.meta.period = Some(Nanos(i64::MAX));
        series.meta.details = NAMES.iter().map(|name| (name.to_string(), long.clone())).collect();
        series.dropped = 1 << 60;
        let largest_count = u64::MAX;
        series.usage = Fact::Known(ThreadUsage {
            minor_faults: largest_count,
            major_faults: largest_count,
            voluntary_switches: largest_count,
            involuntary_switches: largest_count,
        });
        maker.write_series(0, index, series)?;
    }
    let findings = NAMES.map(|name| {
        Finding::new(name, Severity::Bad, name, name).with_evidence(long.clone()).with_remedy(name)
    });
    maker.finish(Outcome::Failed { why: NAMES[2].into() }, 1, &findings)
}

/// Kinds other than timers: one series and several per measure, claims that agree, differ and could
/// not be checked, figures and tables.
fn write_workloads_bundle(directory: &Path, host: &Path) -> Made {
    let maker = Maker::new(directory, "workloads", "run")?;
    maker.write_environment(host)?;
    let mut main = phase_meta(&maker, "main", 0, 0.3, Vec::new());
    maker.write_phase(0, &main)?;
    let kinds: [(&str, &str, &[&str]); 4] = [
        ("getpid", "syscall", &["getpid"]),
        ("heap", "heap", &["heap/malloc", "heap/touch", "heap/free"]),
        ("points", "testpoint-cost", &["points/clock", "points/lttng"]),
        (HOSTILE, "storage", &[HOSTILE]),
    ];
    let (mut noise, mut number) = (Noise(99), 0);
    for (name, kind, series) in kinds {
        let parameters: BTreeMap<String, String> = [("call".to_owned(), name.to_owned())].into();
        for one in series {
            let count = if *one == "points/lttng" { 0 } else { 2_000 };
            let latencies: Vec<i64> =
                (0..count).map(|_| noise.next_latency(140, 60.0, 0.001)).collect();
            let mut new_series =
                Series::new(series_meta(one, 2, &["p99 < 1us"]), latencies.into_iter());
            (new_series.meta.measure, new_series.meta.workload, new_series.meta.period) =
                (name.into(), kind.into(), None);
            new_series.meta.details = parameters.clone();
            // Counted in the thread: only the worst samples are kept.
            new_series.keep = if kind == "syscall" { 0 } else { new_series.keep };
            maker.write_series(0, number, new_series)?;
            number += 1;
        }
        let series = series.iter().map(|name| name.to_string()).collect();
        let notes = notes_of(kind);
        main.measures.push(MeasureMeta {
            name: name.into(),
            workload: kind.into(),
            parameters,
            series,
            notes,
        });
    }
    maker.write_phase(0, &main)?;
    maker.finish(Outcome::Completed, 0, &[])
}

const HOSTILE: &str = "<b onclick=alert(1)>\u{1b}[31m\u{202e}";

fn notes_of(kind: &str) -> Notes {
    let cost = |clock: &str| ClockCost {
        clock: clock.to_owned(),
        count: 10_000,
        min: Nanos(20),
        median: Nanos(22),
        p99: Nanos(31),
        max: Nanos(4_100),
    };
    match kind {
        "syscall" => Notes {
            validations: vec![Validation::compare_counts(
                "system calls",
                10_000,
                Fact::Known(10_001),
                "raw_syscalls:sys_enter",
                Tolerance::EXACT.allow_more(1, "the call that ends the counting"),
            )],
            clock_cost: Fact::Known(cost("CLOCK_MONOTONIC (clock_gettime in the vDSO)")),
            ..Notes::default()
        },
        "testpoint-cost" => Notes {
            absent: vec![Absent {
                series: "points/lttng".into(),
                why: "LTTng-UST is not installed".into(),
            }],
            ..Notes::default()
        },
        "heap" => Notes {
            validations: vec![
                Validation::compare_counts(
                    "pages",
                    502_000,
                    Fact::Known(251_000),
                    "kmem:mm_page_alloc",
                    Tolerance::EXACT.allow_either(100, "page tables"),
                )
                .with_explanation("half of them were huge"),
                Validation::compare_counts(
                    "brk calls",
                    3,
                    Fact::Unavailable("no tracepoints here".into()),
                    "sys_enter_brk",
                    Tolerance::EXACT,
                ),
            ],
            figures: vec![
                Figure::new("pages-per-block", "pages for each block", 251.0, "count")
                    .with_count(2_000),
                Figure::new("jain-index", "fairness (Jain)", 0.98765, "ratio"),
            ],
            tables: vec![Table {
                name: "sizes".into(),
                title: "Time by size".into(),
                columns: vec![
                    Column::new("size", "bytes"),
                    Column::new("median", "ns"),
                    Column::new("remark", ""),
                ],
                rows: vec![
                    vec![Cell::from(1_024), Cell::Number(181.5), Cell::Nothing],
                    vec![Cell::from(1 << 20), Cell::from(Nanos(90_400)), Cell::from("mmap")],
                ],
            }],
            ..Notes::default()
        },
        _ => Notes {
            validations: vec![
                Validation::compare_counts(
                    HOSTILE,
                    u64::MAX,
                    Fact::Known(0),
                    HOSTILE,
                    Tolerance::EXACT.allow_more(u64::MAX, HOSTILE),
                )
                .with_explanation(HOSTILE),
            ],
            clock_cost: Fact::Known(cost(HOSTILE)),
            figures: vec![Figure::new(HOSTILE, HOSTILE, -1e300, HOSTILE).with_count(u64::MAX)],
            tables: vec![Table {
                name: HOSTILE.into(),
                title: HOSTILE.into(),
                columns: vec![Column::new(HOSTILE, HOSTILE), Column::new("", "")],
                rows: vec![vec![], vec![Cell::from(HOSTILE); 40]],
            }],
            ..Notes::default()
        },
    }
}

fn write_imported_bundle(directory: &Path, _: &Path) -> Made {
    let options = ImportOptions { name: "two".into(), ..ImportOptions::default() };
    import_results(
        &mut CYCLICTEST.as_bytes(),
        &PathBuf::from(directory),
        &options,
        summarize_bundle,
    )?;
    Ok(())
}
