//! Series for the tests of this crate.

use punctual_bundle::state::State;
use punctual_bundle::{Ending, Manifest, Outcome, PhaseMeta, SeriesMeta};
use punctual_core::{Clock, ClockNs, CpuSet, Fact, Nanos, Sample, SeriesData, SeriesShape};

/// A series of these latencies, 1 ms apart, an overrun for each whole period of delay below a
/// second.
pub fn series(latencies: &[i64]) -> SeriesData {
    let shape =
        SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };
    let mut data = SeriesData::new(shape);
    for (seq, latency) in latencies.iter().enumerate() {
        let due = seq as i64 * 1_000_000;
        let sample =
            Sample { seq: seq as u64, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 0 };
        let missed = if *latency < 1_000_000_000 { latency / 1_000_000 } else { 0 };
        data.record(&sample, missed.max(0) as u64);
    }
    data
}

pub fn state(latencies: &[i64]) -> State {
    let data = series(latencies);
    let samples_kept = data.count();
    State { data, usage: Fact::NotAsked, digest: None, samples_kept, log_bytes: 8 }
}

pub fn meta(requirements: &[&str]) -> SeriesMeta {
    SeriesMeta {
        name: "cpu0".into(),
        measure: String::new(),
        workload: "timer".into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::single(0),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(Nanos::MILLI),
        tid: Some(7),
        requirements: requirements.iter().map(|r| r.to_string()).collect(),
        details: Default::default(),
    }
}

pub fn manifest(outcome: Option<Outcome>) -> Manifest {
    Manifest {
        format: punctual_bundle::manifest::FORMAT.into(),
        version: 1,
        punctual: "0.1.0".into(),
        experiment: "test".into(),
        experiment_file: None,
        published: None,
        origin: "run".into(),
        target: None,
        machine: None,
        calibration: Fact::NotAsked,
        created: jiff::Timestamp::UNIX_EPOCH,
        gaps: Vec::new(),
        ending: outcome.map(|outcome| Ending {
            at: jiff::Timestamp::UNIX_EPOCH,
            outcome,
            exit_code: 0,
        }),
    }
}

pub fn phase() -> PhaseMeta {
    PhaseMeta { duration: Some(Nanos::SECOND), ..PhaseMeta::new("p", jiff::Timestamp::UNIX_EPOCH) }
}
