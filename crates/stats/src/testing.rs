//! Series for the tests of this crate.

use crate::{PhaseView, RunView, summarize_run};
use punctual_bundle::lab::{
    self, AxisDocument, CellDocument, CellSeries, CellState, LabDocument, SeedDocument,
    SeriesFigures,
};
use punctual_bundle::meta::TIMER_WORKLOAD;
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Manifest, Outcome, PhaseMeta, PlannedRequests, RunEnding, SeriesMeta};
use punctual_core::event::Recorded;
use punctual_core::{
    Clock, ClockNs, CpuSet, Fact, Finding, Nanos, Sample, SeriesData, SeriesShape,
};

/// A series of these latencies, 1 ms apart, with an overrun for each whole period of delay below a
/// second.
pub(crate) fn series_data(latencies: &[i64]) -> SeriesData {
    let shape =
        SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };
    let mut data = SeriesData::new(shape);
    for (seq, latency) in latencies.iter().enumerate() {
        let due = seq as i64 * 1_000_000;
        let sample =
            Sample { seq: seq as u64, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 0 };
        let missed = if *latency < 1_000_000_000 { latency / 1_000_000 } else { 0 };
        data.record_sample(&sample, missed.max(0) as u64);
    }
    data
}

pub(crate) fn series_state(latencies: &[i64]) -> SeriesState {
    let data = series_data(latencies);
    let samples_kept = data.sample_count();
    SeriesState { data, usage: Fact::NotAsked, digest: None, samples_kept, log_bytes: 8 }
}

pub fn series_meta(requirements: &[&str]) -> SeriesMeta {
    SeriesMeta {
        name: "cpu0".into(),
        measure: String::new(),
        workload: TIMER_WORKLOAD.into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(0),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(Nanos::MILLI),
        tid: Some(7),
        requirements: requirements.iter().map(|r| r.to_string()).collect(),
        details: Default::default(),
    }
}

pub(crate) fn test_manifest(outcome: Option<Outcome>) -> Manifest {
    Manifest {
        format: punctual_bundle::manifest::FORMAT.into(),
        version: 1,
        punctual: "0.1.0".into(),
        experiment: "test".into(),
        origin: "run".into(),
        calibration: Fact::NotAsked,
        created: jiff::Timestamp::UNIX_EPOCH,
        ending: outcome.map(|outcome| RunEnding {
            at: jiff::Timestamp::UNIX_EPOCH,
            outcome,
            exit_code: 0,
        }),
        limits: Some(Vec::new()),
        ..Manifest::default()
    }
}

pub fn phase_meta() -> PhaseMeta {
    PhaseMeta { duration: Some(Nanos::SECOND), ..PhaseMeta::new("p", jiff::Timestamp::UNIX_EPOCH) }
}

/// A lab with one axis: each value with the maximum of each seed, which is also the median.
pub(crate) fn lab_of(axis: &str, values: &[(&str, Vec<i64>)]) -> LabDocument {
    let figures = |max: i64| SeriesFigures {
        phase: "main".into(),
        series: "switch".into(),
        measure: "switch".into(),
        count: 1_000,
        lost: Some(0),
        overruns: Some(0),
        min: Some(max),
        mean: Some(max as f64),
        median: Some(max),
        max: Some(max),
        stddev: None,
        percentiles: Default::default(),
    };
    let seed = |(seed, max): (usize, &i64)| SeedDocument {
        seed: Some(seed as u64),
        series: vec![figures(*max)],
        ..SeedDocument::default()
    };
    let cell = |(value, maxima): &(&str, Vec<i64>)| CellDocument {
        name: (*value).to_owned(),
        axes: [(axis.to_owned(), (*value).to_owned())].into(),
        target: "this machine".into(),
        state: CellState::Done,
        series: vec![CellSeries {
            figures: figures(maxima.iter().copied().max().unwrap_or_default()),
            ..CellSeries::default()
        }],
        seeds: maxima.iter().enumerate().map(seed).collect(),
        ..CellDocument::default()
    };
    LabDocument {
        schema: lab::SCHEMA.into(),
        punctual: "0.1.0".into(),
        name: "lab".into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        finished: true,
        axes: vec![AxisDocument {
            name: axis.to_owned(),
            values: values.iter().map(|(value, _)| (*value).to_owned()).collect(),
        }],
        repeat: 1,
        cells: values.iter().map(cell).collect(),
        ..LabDocument::default()
    }
}

/// The summary of a run without a plan.
pub(crate) fn summarize_phases(
    manifest: &Manifest,
    phases: &[PhaseView],
    found: &[Finding],
    damage: &[String],
    recorded: Option<&Recorded>,
) -> Summary {
    let planned = &PlannedRequests::default();
    summarize_run(&RunView { manifest, planned, phases, found, damage, recorded })
}
