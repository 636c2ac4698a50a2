//! The rows that a bundle adds to each table. Each begins with the columns that queries group by,
//! so that most queries need one table.

use super::FleetRun;
use super::table::{ColumnType, FleetColumns, FleetTable, FleetValue};
use punctual_bundle::explanation::{ExplainedPart, ExplainedSample};
use punctual_bundle::summary::{SeriesSummary, Summary};
use punctual_bundle::{Outcome, RanUnder, Series};
use punctual_core::MAIN_PARTS;
use std::collections::BTreeMap;

pub const RUNS: &str = "runs";

/// Columns of the run, kernel, experiment and time.
const OF_RUN: [(&str, ColumnType); 4] = [
    ("run", ColumnType::Text),
    ("experiment", ColumnType::Text),
    ("kernel", ColumnType::Text),
    ("timebase", ColumnType::Text),
];

/// The columns of a table: those of its run, then its own.
macro_rules! columns {
    ($($kind:ident $name:literal),* $(,)?) => {
        &[OF_RUN[0], OF_RUN[1], OF_RUN[2], OF_RUN[3], $(($name, ColumnType::$kind)),*]
    };
}

const RUN_COLUMNS: FleetColumns = columns![
    Time "created", Text "outcome", Number "exit_code", Text "verdict", Text "target",
    Text "architecture", Text "cpu_model", Text "punctual", Text "lab", Text "cell",
    Number "seed", Number "findings", Text "bundle",
];
const SERIES_COLUMNS: FleetColumns = columns![
    Text "phase", Text "series", Text "measure", Text "workload", Text "cpus",
    Text "scheduling", Number "period_ns", Number "count", Number "expected", Number "overruns",
    Number "skipped", Number "lost", Number "min_ns", Fraction "mean_ns", Number "median_ns",
    Number "p99_ns",
    Number "p999_ns", Number "p9999_ns", Number "max_ns", Fraction "stddev_ns",
];
const HISTOGRAM_COLUMNS: FleetColumns = columns![
    Text "phase", Text "series", Number "low_ns", Number "high_ns", Number "count",
];
const WORST_COLUMNS: FleetColumns = columns![
    Text "phase", Text "series", Number "latency_ns", Number "seq", Number "due_ns",
    Number "cpu", Text "cause", Text "culprit",
];
const CAUSE_COLUMNS: FleetColumns = columns![
    Text "phase", Text "series", Text "source", Text "cause", Text "culprit",
    Number "samples", Number "total_ns", Number "max_ns",
];

/// All tables of a partition.
pub struct Tables {
    runs: FleetTable,
    series: FleetTable,
    histograms: FleetTable,
    worst: FleetTable,
    causes: FleetTable,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            runs: FleetTable::new(RUNS, RUN_COLUMNS),
            series: FleetTable::new("series", SERIES_COLUMNS),
            histograms: FleetTable::new("histograms", HISTOGRAM_COLUMNS),
            worst: FleetTable::new("worst", WORST_COLUMNS),
            causes: FleetTable::new("causes", CAUSE_COLUMNS),
        }
    }
}

impl Tables {
    /// In the order of writing: the runs are last.
    pub fn all_tables(&self) -> [&FleetTable; 5] {
        [&self.series, &self.histograms, &self.worst, &self.causes, &self.runs]
    }

    pub fn add(&mut self, id: &str, run: &FleetRun<'_>) {
        let bundle = run.bundle;
        let summary = punctual_stats::summarize_bundle(bundle);
        let environment = RanUnder::from_bundle(bundle);
        let of_run: Vec<FleetValue> = vec![
            id.into(),
            summary.experiment.as_str().into(),
            environment.kernel_release().into(),
            bundle.timebase().unit_prefix().unwrap_or("own").into(),
        ];
        let target = summary.target.as_ref().map_or("host", |target| target.kind.as_str());
        let lab = run.lab;
        let run_values: Vec<FleetValue> = vec![
            summary.created.as_microsecond().into(),
            outcome_word(&summary).into(),
            summary.ending.as_ref().map(|ending| i64::from(ending.exit_code)).into(),
            summary.verdict.word.map(|verdict| verdict.json_word()).into(),
            target.into(),
            environment.architecture().into(),
            environment.cpu_model().into(),
            bundle.manifest.punctual.as_str().into(),
            lab.map(|lab| lab.lab).into(),
            lab.map(|lab| lab.cell).into(),
            lab.and_then(|lab| lab.seed).into(),
            (summary.findings.len() as u64).into(),
            bundle.directory.to_string_lossy().as_ref().into(),
        ];
        self.runs.push(of_run.iter().cloned().chain(run_values));
        let series = summary
            .phases
            .iter()
            .flat_map(|phase| phase.series.iter().map(|series| (phase.name.as_str(), series)));
        for ((phase, figures), (_, series)) in series.zip(bundle.all_series()) {
            let of_series: Vec<FleetValue> = vec![phase.into(), figures.name.as_str().into()];
            let of_series: Vec<FleetValue> = of_run.iter().cloned().chain(of_series).collect();
            let samples: Vec<&ExplainedSample> = run
                .explained
                .iter()
                .flat_map(|explained| &explained.samples)
                .filter(|sample| sample.phase == phase && sample.series == figures.name)
                .collect();
            self.add_series(&of_series, figures, series, &samples);
        }
    }

    fn add_series(
        &mut self,
        of_series: &[FleetValue],
        figures: &SeriesSummary,
        series: &Series,
        explained: &[&ExplainedSample],
    ) {
        let row = |own: Vec<FleetValue>| of_series.iter().cloned().chain(own);
        let percentile = |name: &str| FleetValue::Number(figures.percentiles.get(name).copied());
        self.series.push(row(vec![
            figures.measure.as_str().into(),
            figures.workload.as_str().into(),
            figures.cpus.as_str().into(),
            figures.scheduling.as_str().into(),
            figures.period.into(),
            figures.count.into(),
            figures.expected.into(),
            figures.overruns.into(),
            figures.skipped.into(),
            figures.lost.into(),
            figures.min.into(),
            figures.mean.into(),
            figures.median.into(),
            percentile("99"),
            percentile("99.9"),
            percentile("99.99"),
            figures.max.into(),
            figures.stddev.into(),
        ]));
        let whole = &series.state.data.whole;
        for bucket in whole.iter_recorded() {
            let value = bucket.value_iterated_to();
            self.histograms.push(row(vec![
                whole.lowest_equivalent(value).into(),
                whole.highest_equivalent(value).into(),
                bucket.count_at_value().into(),
            ]));
        }
        for sample in &figures.worst {
            let explained = explained.iter().find(|explained| explained.at == sample.due);
            let part = explained.and_then(|sample| longest_part(&sample.parts));
            self.worst.push(row(vec![
                sample.latency.into(),
                sample.seq.into(),
                sample.due.into(),
                i64::from(sample.cpu).into(),
                part.map(|part| part.cause.as_str()).into(),
                part.and_then(|part| part.who.as_deref()).into(),
            ]));
        }
        if let Some(account) = series.account.known_value() {
            let times = account.account.time_by_part();
            let parts = MAIN_PARTS.iter().map(|part| (*part, times[*part as usize]));
            for (part, total) in parts.filter(|(_, total)| *total > 0) {
                let buckets = account.account.occupied_buckets();
                let samples = buckets.map(|(_, bucket)| bucket.longest[part as usize]);
                let samples: u64 = samples.sum();
                self.causes.push(row(vec![
                    "all".into(),
                    part.id().into(),
                    FleetValue::Text(None),
                    samples.into(),
                    total.into(),
                    FleetValue::Number(None),
                ]));
            }
        }
        for ((cause, culprit), parts) in by_cause(explained) {
            self.causes.push(row(vec![
                "worst".into(),
                cause.into(),
                culprit.into(),
                (parts.len() as u64).into(),
                parts.iter().sum::<i64>().into(),
                parts.iter().max().copied().into(),
            ]));
        }
    }
}

fn outcome_word(summary: &Summary) -> Option<&'static str> {
    Some(match summary.ending.as_ref()?.outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::StoppedAbove { .. } => "stopped-above",
        Outcome::StoppedByLoad { .. } => "stopped-by-load",
        Outcome::Failed { .. } => "failed",
        Outcome::CutOff { .. } => "cut-off",
    })
}

fn longest_part(parts: &[ExplainedPart]) -> Option<&ExplainedPart> {
    parts.iter().max_by_key(|part| part.ns)
}

/// The time of each cause in each sample that it delayed.
fn by_cause<'a>(samples: &[&'a ExplainedSample]) -> BTreeMap<(&'a str, Option<&'a str>), Vec<i64>> {
    let mut times_by_cause: BTreeMap<(&str, Option<&str>), Vec<i64>> = BTreeMap::new();
    for sample in samples {
        let mut of_sample: BTreeMap<(&str, Option<&str>), i64> = BTreeMap::new();
        for part in &sample.parts {
            *of_sample.entry((&part.cause, part.who.as_deref())).or_default() += part.ns;
        }
        of_sample
            .into_iter()
            .for_each(|(cause, ns)| times_by_cause.entry(cause).or_default().push(ns));
    }
    times_by_cause
}
