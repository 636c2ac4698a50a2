//! Bundles as a run would write them, from a random generator instead of a clock.

use punctual_bundle::load::{CpuLoad, Shares};
use punctual_bundle::meta::{LoadMeta, TIMER_WORKLOAD};
use punctual_bundle::state::{SeriesState, ThreadUsage};
use punctual_bundle::{
    Bundle, BundleWriter, Completeness, Outcome, PhaseMeta, RunEnding, SeriesMeta,
};
use punctual_core::{
    Clock, ClockNs, CpuSet, Fact, Finding, Nanos, Sample, SampleWindow, SeriesData, SeriesShape,
};
use std::path::Path;

/// The content of a bundle.
pub struct Recipe {
    pub experiment: String,
    pub phases: Vec<(String, Load)>,
    pub cpus: u32,
    pub samples: u64,
    pub period: Nanos,
    pub resolution: Nanos,
    pub keep: u64,
    pub requirements: Vec<String>,
    pub findings: Vec<Finding>,
    pub documents: Vec<(&'static str, serde_json::Value)>,
    pub ends: bool,
    pub series_name: Box<dyn Fn(u32) -> String>,
    /// Used in the experiment file, the plan, the loads' arguments and the series' details.
    pub text: String,
    pub seed: u64,
}

/// The distribution of the latencies.
#[derive(Clone, Copy, PartialEq)]
pub enum Load {
    Idle,
    Loaded,
    /// Latencies beyond the period: overruns.
    Overloaded,
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe {
            experiment: "quickstart".into(),
            phases: vec![("idle".into(), Load::Idle), ("loaded".into(), Load::Loaded)],
            cpus: 4,
            samples: 10_000,
            period: Nanos::MILLI,
            resolution: Nanos::MICRO,
            keep: u64::MAX,
            requirements: Vec::new(),
            findings: Vec::new(),
            documents: Vec::new(),
            ends: true,
            seed: 1,
            series_name: Box::new(|cpu| format!("timer/cpu{cpu}")),
            text: String::new(),
        }
    }
}

/// xorshift64* (Vigna 2016): the same numbers every time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn bell(&mut self) -> f64 {
        (0..6).map(|_| self.next()).sum::<f64>() / 3.0 - 1.0
    }

    fn latency(&mut self, load: Load, cpu: u32, period: Nanos) -> i64 {
        let u = self.next();
        let (body, spread) = match load {
            Load::Idle => (6_000.0 + 700.0 * f64::from(cpu % 8), 0.25),
            _ => (11_000.0 + 1_300.0 * f64::from(cpu % 8), 0.55),
        };
        let body = body * (spread * 2.0 * self.bell()).exp();
        let tail = match load {
            Load::Idle if u < 0.002 => 12_000.0 * (-(1.0 - self.next()).ln()),
            Load::Idle => 0.0,
            _ if u < 0.03 => 16_000.0 * (-(1.0 - self.next()).ln()),
            _ => 0.0,
        };
        let stall = match load {
            Load::Loaded if u > 0.999_96 => 5_900_000.0 * (0.6 + 0.4 * self.next()),
            Load::Overloaded if u > 0.999 => period.ns() as f64 * 6.0 * self.next(),
            _ => 0.0,
        };
        (body + tail + stall) as i64
    }
}

/// Writes the bundle and opens it.
pub fn write(directory: &Path, recipe: &Recipe) -> Bundle {
    let mut writer = BundleWriter::create(directory, &recipe.experiment, "run").unwrap();
    let toml = format!(
        "# {}\n[[measure]]\nworkload = \"timer\"\ncpus = \"0-{}\"\nperiod = \"{}\"\n{}",
        recipe.experiment,
        recipe.cpus - 1,
        recipe.period,
        recipe.text
    );
    writer.write_experiment("experiment.toml", toml.as_bytes()).unwrap();
    writer
        .write_plan(&format!("{toml}policy = \"fifo\"\npriority = 80\nclock = \"monotonic\"\n"))
        .unwrap();
    for (name, document) in &recipe.documents {
        writer.write_document(name, document).unwrap();
    }
    writer.write_findings(&recipe.findings).unwrap();
    for (number, (name, load)) in recipe.phases.iter().enumerate() {
        phase(&writer, recipe, number, name, *load);
    }
    let bundle = Bundle::open(directory).unwrap();
    if recipe.ends {
        let ending =
            RunEnding { at: jiff::Timestamp::now(), outcome: Outcome::Completed, exit_code: 0 };
        let mut ended = bundle;
        ended.manifest.ending = Some(ending.clone());
        ended.completeness = Completeness::Whole;
        writer.finish(&punctual_stats::summarize_bundle(&ended), ending).unwrap();
        return Bundle::open(directory).unwrap();
    }
    bundle
}

fn phase(writer: &BundleWriter, recipe: &Recipe, number: usize, name: &str, load: Load) {
    let start = 5_000_000_000_000 + number as i64 * 100_000_000_000;
    let busy = if load == Load::Idle { 0.02 } else { 0.93 };
    let shares =
        |k: u32| Shares { busy: busy + 0.01 * f64::from(k % 5), steal: 0.004, interrupts: 0.011 };
    let loads = [
        "find / -xdev -type f",
        "tar cf - /usr/share",
        "sh -c 'while :; do gzip < /bin/bash > /dev/null; done'",
    ];
    let load_meta = |argv: &&str| LoadMeta {
        name: argv.split(' ').next().unwrap().into(),
        argv: shell_words::split(argv)
            .unwrap()
            .into_iter()
            .chain(Some(recipe.text.clone()).filter(|t| !t.is_empty()))
            .collect(),
        cpus: CpuSet::from_cpu(0),
        starts: 3,
        failures: 0,
        work: Fact::NotAsked,
    };
    let meta = PhaseMeta {
        started_monotonic: start,
        duration: recipe.ends.then_some(recipe.period * recipe.samples as i64),
        loads: if load == Load::Idle { Vec::new() } else { loads.iter().map(load_meta).collect() },
        cpu_load: Fact::Known(CpuLoad {
            all: shares(0),
            cpus: (0..recipe.cpus).map(|k| (k, shares(k))).collect(),
            switches: None,
        }),
        ..PhaseMeta::new(name, "2026-11-21T08:59:12Z".parse().unwrap())
    };
    writer.write_phase(number, &meta).unwrap();
    for cpu in 0..recipe.cpus {
        series(writer, recipe, number, cpu, load, start);
    }
}

fn series(writer: &BundleWriter, recipe: &Recipe, phase: usize, cpu: u32, load: Load, start: i64) {
    let meta = SeriesMeta {
        name: (recipe.series_name)(cpu),
        measure: String::new(),
        workload: TIMER_WORKLOAD.into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(cpu as usize),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(recipe.period),
        tid: Some(1_000 + cpu as i32),
        requirements: recipe.requirements.clone(),
        details: [("method", "clock_nanosleep absolute"), ("text", recipe.text.as_str())]
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect(),
    };
    let shape = SeriesShape {
        range: Nanos::from_micros(1_000),
        resolution: recipe.resolution,
        period: Some(recipe.period),
    };
    let mut data = SeriesData::new(shape);
    let mut random = Random(
        0x9e37_79b9_7f4a_7c15
            ^ (u64::from(cpu) << 20)
            ^ ((phase as u64) << 40)
            ^ recipe.seed.wrapping_mul(0x1234_5678_9abc_def1),
    );
    let mut samples = Vec::new();
    let mut due = start + 1_000_000;
    for seq in 0..recipe.samples {
        let latency = random.latency(load, cpu, recipe.period);
        let sample = Sample { seq, due: ClockNs(due), woke: ClockNs(due + latency), cpu };
        let missed = latency / recipe.period.ns();
        data.record_sample(&sample, missed as u64);
        samples.push(sample);
        due += recipe.period.ns() * (1 + missed);
    }
    let mut out = writer.begin_series(phase, cpu as usize, &meta, recipe.keep).unwrap();
    out.append_samples(&samples).unwrap();
    if recipe.keep < recipe.samples {
        for second in samples.chunk_by(|a, b| {
            (a.due.ns() - start) / 1_000_000_000 == (b.due.ns() - start) / 1_000_000_000
        }) {
            let latencies = || second.iter().map(|s| s.latency());
            let window = SampleWindow {
                start: ClockNs(
                    start + (second[0].due.ns() - start) / 1_000_000_000 * 1_000_000_000,
                ),
                count: second.len() as u64,
                min: latencies().min().unwrap(),
                max: latencies().max().unwrap(),
                sum: latencies().fold(Nanos::ZERO, |a, b| a + b),
            };
            out.append_window(&window).unwrap();
        }
    }
    let usage = ThreadUsage {
        minor_faults: 0,
        major_faults: 0,
        voluntary_switches: recipe.samples,
        involuntary_switches: u64::from(load != Load::Idle),
    };
    let state = SeriesState {
        data,
        usage: Fact::Known(usage),
        digest: None,
        samples_kept: out.kept_count(),
        log_bytes: out.log_bytes(),
    };
    out.finish(&state).unwrap();
}
