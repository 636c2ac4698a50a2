//! The effect of recording on the measured values of this system: before measuring, the recorders
//! of a run are switched on and off beside a timer thread of our own, which they treat like a
//! measured one.
//!
//! A turn is a block without and a block with them, every other turn in the opposite order, so that
//! drift affects both alike. Shifts are those of `punctual_stats::calibration`. A last block with
//! the recorders measures the run time of their BPF programs; it counts for no shift, because
//! measuring that takes time itself.

mod recorders;
mod stand_in;

pub use recorders::Recorders;
pub use stand_in::Setup;

use punctual_bundle::calibration::{Calibration, ProgramTime, ProgramTimes};
use punctual_core::{Fact, MonotonicNs, Nanos};
use punctual_record::RunTime;
use punctual_stats::calibration::{TurnLatencies, percentile_shifts};
use punctual_sys::{clock, signals};
use stand_in::StandIn;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

const TURNS: usize = 10;
/// 200 samples of a thread with a period of 1 ms.
const BLOCK: Nanos = Nanos::from_millis(200);
/// The pause after switching.
const SETTLING: Duration = Duration::from_millis(50);
/// The maximum delay of a sample that is due in a block.
const LATEST: Duration = Duration::from_millis(10);
/// Time between two drains: as in a run.
const TICK: Duration = Duration::from_millis(100);
/// The directory of the recorders in the bundle meanwhile.
const DIRECTORY: &str = "calibration";
const LISTED_EVENTS: usize = 64;

/// The message during the wait.
pub const PREPARING: &str =
    "measuring what recording costs (about 7 s; --no-calibration leaves it out)";
/// The message if the calibration was requested.
pub const MEASURING: &str = "measuring what recording costs (about 7 s)";

/// Why an attached program is not calibrated by default.
pub(crate) const NOT_ASKED_OF_A_PROGRAM: &str =
    "beside a program it is measured only if requested: --calibrate";

/// Measures the cost of recording. The error says why that failed.
pub fn measure_cost(
    setup: &Setup<'_>,
    recorders: Recorders,
    goes_on: &dyn Fn() -> bool,
) -> Result<Calibration, String> {
    let failed = |why| format!("cannot install a signal handler: {why}");
    signals::prepare_waking().map_err(failed)?;
    let place = setup.directory.join(DIRECTORY);
    let thread = StandIn::start(setup)?;
    let mut bench = Bench { thread, recorders, place, is_on: false };
    let outcome = bench.measure_turns(setup, goes_on);
    let removed = bench.recorders.remove(&bench.place);
    bench.thread.stop();
    removed.and(outcome)
}

/// The thread and the recorders switched beside it.
struct Bench {
    thread: StandIn,
    recorders: Recorders,
    place: PathBuf,
    is_on: bool,
}

impl Bench {
    fn measure_turns(
        &mut self,
        setup: &Setup<'_>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Calibration, String> {
        let mut turns = vec![TurnLatencies::default(); TURNS];
        for (number, turn) in turns.iter_mut().enumerate() {
            for on in [number % 2 == 1, number % 2 == 0] {
                if !goes_on() {
                    return Err("it was interrupted".to_owned());
                }
                self.switch_recorders(on)?;
                let latencies = self.measure_block();
                *(if on { &mut turn.with } else { &mut turn.without }) = latencies;
            }
        }
        self.switch_recorders(true)?;
        let (programs, mut span) = (self.recorders.attached_programs().clone(), Nanos::ZERO);
        let programs = programs.run_times(|| {
            let from = clock::monotonic_now();
            self.measure_block();
            span = clock::monotonic_now() - from;
        });
        let count = |of: fn(&TurnLatencies) -> &Vec<i64>| -> u64 {
            turns.iter().map(|turn| of(turn).len() as u64).sum()
        };
        let shifts = percentile_shifts(&turns);
        if shifts.is_empty() {
            let reason = "the timer thread did not run often enough beside the recorders";
            return Err(reason.to_owned());
        }
        Ok(Calibration {
            recorders: self.recorders.report_names().map(str::to_owned).collect(),
            cpu: setup.cpu as u32,
            scheduling: self.thread.scheduling.clone(),
            period_ns: setup.period.ns(),
            turns: TURNS as u64,
            block_ns: BLOCK.ns(),
            samples_without: count(|turn| &turn.without),
            samples_with: count(|turn| &turn.with),
            shifts,
            programs: match programs {
                Fact::Known(programs) => Fact::Known(program_times(programs, span)),
                Fact::Unavailable(why) => Fact::Unavailable(why),
                Fact::NotAsked => Fact::NotAsked,
            },
        })
    }

    fn switch_recorders(&mut self, on: bool) -> Result<(), String> {
        if on == self.is_on {
            return Ok(());
        }
        self.is_on = on;
        match on {
            true => self.recorders.switch_on(&self.place, &self.thread),
            false => self.recorders.switch_off(&self.place),
        }
    }

    /// The latencies of the samples that are due in a block.
    fn measure_block(&mut self) -> Vec<i64> {
        sleep(SETTLING);
        let from = clock::monotonic_now();
        let to = from + BLOCK;
        while clock::monotonic_now() < to {
            sleep(TICK.min((to - clock::monotonic_now()).max(Nanos::ZERO).to_std()));
            self.thread.drain();
            self.recorders.poll();
        }
        sleep(LATEST);
        self.thread.take_latencies(from, to)
    }
}

/// The programs that ran, the longest total first.
fn program_times(programs: Vec<RunTime>, span: Nanos) -> ProgramTimes {
    let sum = |of: fn(&RunTime) -> u64| programs.iter().map(of).sum();
    let (runs, total_ns) = (sum(|of| of.runs), sum(|of| of.ns));
    let ran = programs.into_iter().filter(|of| of.runs > 0).map(|of| ProgramTime {
        recorder: of.recorder.to_owned(),
        tracepoint: of.tracepoint,
        runs: of.runs,
        total_ns: of.ns,
    });
    let mut programs: Vec<ProgramTime> = ran.collect();
    programs.sort_by_key(|of| std::cmp::Reverse(of.total_ns));
    programs.truncate(LISTED_EVENTS);
    ProgramTimes { span_ns: span.ns(), runs, total_ns, programs }
}

/// Whether a sample that is due then belongs to a block.
fn is_within(due: i64, from: MonotonicNs, to: MonotonicNs) -> bool {
    (from.0..to.0).contains(&due)
}
