//! `punctual tune`: finds the settings of the machine that help, by an experiment whose every
//! answer has an interval and a known error rate.
//!
//! Reading order: the settings ([`candidate`]), the whole procedure ([`procedure`]), the evidence
//! for each setting ([`effect`]), the interface to a machine ([`TunableMachine`]), the figure of a
//! block ([`figure`]), and a machine with known truth ([`simulated`], [`scenarios`]).

pub mod candidate;
pub mod effect;
pub mod figure;
mod outcome;
mod procedure;
pub mod request;
mod required;
pub mod scenarios;
pub mod simulated;

use crate::probability::normal_upper;
use candidate::wash_out;
pub use candidate::{Candidate, Risk};
use effect::MISSED;
pub use figure::TuneFigure;
pub use procedure::Tuning;
use punctual_core::Nanos;
pub use request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep, TuningOptions};
pub use required::tuned_requirement;

/// The first round's share of the error rate; each further round takes 40 % of the one before.
const FIRST: f64 = 0.6;
/// The maximum share of the time for the first round: after its adoptions, another round is
/// worthwhile.
const ROUND: f64 = 0.7;
/// The maximum share of the time reserved for the last comparison.
const LAST: f64 = 0.3;
/// The minimum number of groups in which effects count as resolved, and of pairs of the last
/// comparison.
const PAIRS: usize = 6;
/// The minimum number of groups that show anything.
const LEAST_GROUPS: usize = 3;
/// The ratio of the stated to the expected time: some blocks are measured again, and the spread is
/// estimated from few.
const SPARE: f64 = 1.1;

/// The number of blocks per group without any tested setting: each setting is compared with their
/// mean, and this many make the most of the time (Dunnett, J. Am. Stat. Assoc. 50, 1955).
fn control_count(settings: usize) -> usize {
    (settings as f64).sqrt().round().max(1.0) as usize
}

fn group_size(settings: usize) -> usize {
    settings + control_count(settings)
}

/// The number of blocks of a screening round, from the spread between blocks of the same settings.
fn blocks_needed(options: &TuningOptions, settings: usize, error: f64, spread: f64) -> f64 {
    let settings = settings.max(1);
    let z = normal_upper(error / settings as f64 / 2.0) + normal_upper(MISSED);
    let of_difference = spread * (1.0 + 1.0 / control_count(settings) as f64).sqrt();
    let groups = (z * of_difference / options.smallest.ln()).powi(2).ceil();
    groups.max(PAIRS as f64) * group_size(settings) as f64
}

/// The time to find all effects of the smallest size, from the spread between blocks of the same
/// settings and the time of a block including its preparation: two rounds of screening, and the
/// last comparison. Each setting that hides others takes another round.
pub fn time_needed(options: &TuningOptions, settings: usize, spread: f64, block: Nanos) -> Nanos {
    let round = |part: f64| blocks_needed(options, settings, part * options.error, spread);
    let first = round(FIRST);
    let rounds = (first / ROUND).max(first + round(FIRST * (1.0 - FIRST)));
    let pairs = blocks_needed(options, 1, options.error, spread);
    Nanos((SPARE * (rounds + pairs) * block.ns() as f64) as i64)
}

/// The shortest tuning in which anything can be tried: the first groups of these settings, and what
/// the procedure keeps for its last comparison.
pub fn least_time(options: &TuningOptions, settings: usize) -> Nanos {
    let blocks = (LEAST_GROUPS * group_size(settings)) as f64;
    Nanos((blocks / ROUND / (1.0 - LAST) * options.block.ns() as f64).ceil() as i64)
}

/// A machine with switchable settings, on which blocks are measured.
pub trait TunableMachine {
    type Error;

    /// Switches to these settings; all others are restored to their state before the tuning.
    fn apply_settings(&mut self, on: &[bool]) -> Result<(), Self::Error>;
    /// Waits for settings with slow effect.
    fn wait_to_settle(&mut self, time: Nanos) -> Result<(), Self::Error>;
    /// Measures a block: the figure in ns, or `None` if the block is unusable.
    fn measure_block(&mut self, request: &BlockRequest) -> Result<Option<f64>, Self::Error>;
    /// The time since the tuning began.
    fn elapsed_time(&self) -> Nanos;
    /// Stores a block before the next one begins.
    fn store_block(
        &mut self,
        request: &BlockRequest,
        block: MeasuredBlock,
    ) -> Result<(), Self::Error>;
}

/// Continues to the end. The caller must restore the final settings.
pub fn run_tuning<M: TunableMachine>(tuning: &mut Tuning, machine: &mut M) -> Result<(), M::Error> {
    let mut now: Option<Vec<bool>> = None;
    while let TuneStep::Measure(request) = tuning.next() {
        let request = request.clone();
        if now.as_ref() != Some(&request.on) {
            let before = now.unwrap_or_else(|| vec![false; request.on.len()]);
            let wait = wash_out(tuning.candidates(), &before, &request.on);
            machine.apply_settings(&request.on)?;
            machine.wait_to_settle(wait)?;
            now = Some(request.on.clone());
        }
        let figure = machine.measure_block(&request)?;
        let block = MeasuredBlock { figure, elapsed: machine.elapsed_time() };
        machine.store_block(&request, block)?;
        tuning.record_block(block);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
