//! A source that follows a script, and a clock that only pauses advance: the real engine, series
//! keeper and end of bundles, without threads, rights and waiting.

use super::{Begun, EarlyEnd, Engine, EngineClock, EngineRound, EngineSource, Schedule};
use crate::end::{self, Further, MeasuredRun};
use crate::saver::{Job, Saver};
use crate::series_store::{KeptSeries, SeriesFiles, shape_within};
use punctual_bundle::meta::TIMER_WORKLOAD;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, BundleWriter, Outcome, PhaseMeta, SeriesMeta, Verdict};
use punctual_core::{Clock, ClockNs, CpuSet, Finding, MonotonicNs, Nanos, Unfinished};
use punctual_stats::PhaseView;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::mpsc::Receiver;

/// The time between two rounds.
pub const TICK: Nanos = Nanos::from_millis(100);
pub const SAMPLES: u64 = 100;
/// The most samples in the log.
const KEPT: u64 = 10_000;

/// A clock that only pauses advance.
pub struct SimulatedClock(Cell<MonotonicNs>);

impl SimulatedClock {
    pub fn new() -> SimulatedClock {
        SimulatedClock(Cell::new(MonotonicNs(1_000)))
    }
}

impl EngineClock for SimulatedClock {
    fn now(&self) -> MonotonicNs {
        self.0.get()
    }

    fn pause(&self, span: Nanos) {
        self.0.set(self.0.get() + span);
    }
}

/// Events of a round, besides its samples.
#[derive(Clone, Debug)]
pub enum Happens {
    /// The source has no more samples.
    Ends,
    Outcome(Outcome),
    Fails,
    /// Nothing can be written from here on: the directory is gone.
    Unwritable,
    /// A sample takes this long.
    Takes(Nanos),
    /// From here on a sample is in progress and does not end.
    Hangs,
    /// kill -9: nothing more is done.
    Killed,
}

/// A disk that takes nothing before a round.
pub struct BlockedDisk {
    jobs: Receiver<Job>,
    until: usize,
}

impl BlockedDisk {
    /// The saver of this disk; bytes of samples that wait have this room.
    pub fn new(until: usize, room: usize) -> (Saver, BlockedDisk) {
        let (saver, jobs) = Saver::with_queue(room);
        (saver, BlockedDisk { jobs, until })
    }

    fn write(&self) {
        self.jobs.try_iter().for_each(|job| job());
    }
}

/// A source that follows a script.
pub struct ScriptedSource<'a> {
    pub script: Vec<(usize, Happens)>,
    pub schedule: Schedule,
    pub writer: &'a BundleWriter,
    pub saver: Saver,
    pub disk: Option<BlockedDisk>,
    /// The number of rounds with samples.
    pub ends: Option<usize>,
    /// The source fails before measuring begins.
    pub refused: bool,
    pub phase: PhaseMeta,
    pub series: Option<KeptSeries>,
    /// The number of calls of each function.
    pub rounds: usize,
    pub checkpoints: Vec<usize>,
    pub views: usize,
    pub finished: usize,
    pub unwritten: Vec<String>,
    pub found: Vec<Finding>,
    pub further: Further,
    /// The round since which a sample is in progress.
    hangs: Option<usize>,
    killed: bool,
}

impl<'a> ScriptedSource<'a> {
    pub fn new(writer: &'a BundleWriter, script: Vec<(usize, Happens)>) -> ScriptedSource<'a> {
        ScriptedSource {
            script,
            schedule: Schedule {
                began: MonotonicNs(1_000),
                tick: TICK,
                refresh: Some(Nanos::from_millis(500)),
                at_least: None,
            },
            writer,
            saver: Saver::on_caller(),
            disk: None,
            ends: Some(20),
            refused: false,
            phase: PhaseMeta::new("scripted", jiff::Timestamp::UNIX_EPOCH),
            series: None,
            rounds: 0,
            checkpoints: Vec::new(),
            views: 0,
            finished: 0,
            unwritten: Vec::new(),
            found: Vec::new(),
            further: Further::default(),
            hangs: None,
            killed: false,
        }
    }

    fn push(&mut self, latency: Nanos) {
        let Some(series) = &mut self.series else { return };
        let seq = series.state.data.sample_count();
        let due = MonotonicNs(1_000 + seq as i64 * 1_000_000);
        series.push(seq, (due, due + latency), 0, 0);
    }
}

impl EngineSource for ScriptedSource<'_> {
    type Error = String;

    fn begin(&mut self) -> Result<Begun, String> {
        if self.refused {
            return Err("refused".to_owned());
        }
        self.writer.write_phase(0, &self.phase).map_err(|why| why.to_string())?;
        let meta = timer_series_meta();
        let writer = self.writer.begin_series(0, 0, &meta, KEPT).map_err(|why| why.to_string())?;
        let files = SeriesFiles::new(writer, &self.saver);
        let mut series = KeptSeries::new(shape_within(Nanos::MILLI, None), meta, files);
        series.checkpoint();
        self.series = Some(series);
        Ok(Begun::Measuring(self.schedule))
    }

    fn run_round(&mut self) -> Result<EngineRound, String> {
        self.rounds += 1;
        if let Some(disk) = self.disk.as_ref().filter(|disk| self.rounds >= disk.until) {
            disk.write();
        }
        if self.hangs.is_none() {
            (0..SAMPLES).for_each(|_| self.push(Nanos::MICRO));
        }
        let ended = self.ends.is_some_and(|last| self.rounds >= last);
        let mut round = EngineRound { ended, ..EngineRound::default() };
        for (number, what) in self.script.clone() {
            match what {
                _ if number != self.rounds => {}
                Happens::Ends => round.ended = true,
                Happens::Outcome(outcome) => round.outcome = Some(outcome),
                Happens::Fails => return Err("it failed".to_owned()),
                Happens::Unwritable => {
                    fs::remove_dir_all(self.writer.directory().join("phases")).expect("removed");
                }
                Happens::Takes(latency) => self.push(latency),
                Happens::Hangs => self.hangs = Some(self.rounds),
                Happens::Killed => {
                    self.killed = true;
                    return Err("killed".to_owned());
                }
            }
        }
        if let (Some(since), Some(series)) = (self.hangs, &mut self.series) {
            let (due, lasted) = (ClockNs(1_000), TICK * (self.rounds - since) as i64);
            series.state.data.unfinished =
                Some(Unfinished { due, at_least: lasted, lasted, passed: 0, ended: false });
        }
        Ok(round)
    }

    fn checkpoint(&mut self) {
        self.checkpoints.push(self.rounds);
        let is_behind = self.saver.is_behind();
        if let Some(series) = &mut self.series {
            series.checkpoint();
        }
        if !is_behind {
            self.saver.end_checkpoint();
        }
    }

    fn refresh_view(&mut self, _now: MonotonicNs, _elapsed: Nanos) {
        self.views += 1;
    }

    fn finish(&mut self, ended: EarlyEnd<String>) -> EarlyEnd<String> {
        self.finished += 1;
        if self.killed {
            return ended;
        }
        self.phase.duration = Some(TICK * self.rounds as i64);
        if let Some(series) = &mut self.series {
            series.finish();
            self.disk.iter().for_each(BlockedDisk::write);
            series.update_log_length();
            self.found.extend(series.unsaved_finding("scripted"));
            self.unwritten.extend(series.write_error().map(ToString::to_string));
        }
        let written = self.writer.write_phase(0, &self.phase);
        self.unwritten.extend(written.err().map(|why| why.to_string()));
        ended
    }
}

pub(crate) fn timer_series_meta() -> SeriesMeta {
    SeriesMeta {
        name: "loop".to_owned(),
        measure: "loop".to_owned(),
        workload: TIMER_WORKLOAD.to_owned(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(0),
        scheduling: "SCHED_FIFO 80".to_owned(),
        real_time: true,
        requirements: vec!["max < 1ms".to_owned()],
        ..SeriesMeta::default()
    }
}

/// The outcome of a script.
pub struct Became {
    pub outcome: EarlyEnd<String>,
    /// The figures and the verdict, if it reached its end.
    pub summary: Option<Summary>,
    pub rounds: usize,
    pub checkpoints: Vec<usize>,
    pub views: usize,
    pub finished: usize,
    /// The verdict passed to the conclusion.
    pub concluded: Option<Verdict>,
}

/// Runs a script to the end of its bundle in `directory`, unless it is killed before; signals ask
/// for the end from round `interrupted` on.
pub fn run_script(
    directory: &Path,
    script: Vec<(usize, Happens)>,
    interrupted: Option<usize>,
    change: impl FnOnce(&mut ScriptedSource<'_>),
) -> Became {
    let writer = BundleWriter::create(directory, "scripted", "run").expect("a bundle");
    run_in(writer, script, interrupted, change)
}

/// Like [`run_script`], in an existing bundle.
pub fn run_in(
    writer: BundleWriter,
    script: Vec<(usize, Happens)>,
    interrupted: Option<usize>,
    change: impl FnOnce(&mut ScriptedSource<'_>),
) -> Became {
    let clock = SimulatedClock::new();
    let began = clock.now();
    let rounds = || ((clock.now() - began).ns() / TICK.ns()) as usize;
    let end_requested = || interrupted.is_some_and(|round| rounds() >= round);
    let engine = Engine { clock: &clock, end_requested: &end_requested };
    let mut source = ScriptedSource::new(&writer, script);
    change(&mut source);
    let outcome = engine.run(&mut source);
    let ScriptedSource { phase, series, rounds, checkpoints, views, finished, .. } = source;
    let ScriptedSource { unwritten, found, killed, further, .. } = source;
    let of_end = match &outcome {
        Ok(outcome) => outcome.clone().unwrap_or(Outcome::Completed),
        Err(why) => Outcome::Failed { why: why.clone() },
    };
    let mut concluded = None;
    let summary = (!killed).then(|| {
        let series = series.iter().map(KeptSeries::view).collect();
        let phases = [PhaseView { meta: &phase, series }];
        let measured = MeasuredRun { phases: &phases, found: &found, recorded: None, unwritten };
        let conclude = |verdict: &Verdict| {
            concluded = Some(verdict.clone());
            Ok(())
        };
        end::end_bundle(writer, of_end, measured, &further, conclude).summary
    });
    Became { concluded, outcome, summary, rounds, checkpoints, views, finished }
}

/// The figures and the verdict that a reader of the bundle gets.
pub fn read(directory: &Path) -> Summary {
    punctual_stats::summarize_bundle(&Bundle::open(directory).expect("it opens"))
}
