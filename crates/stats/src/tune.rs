//! `punctual tune`: finds the settings of the machine that help, by an experiment whose every
//! answer has an interval and a known error rate.
//!
//! Reading order: the settings ([`candidate`]), the measured blocks ([`design`]), their evidence
//! for each setting ([`effect`]), the number needed ([`power`]), the whole procedure
//! ([`procedure`]), the interface to a machine ([`machine`]), the figure of a block ([`figure`]),
//! and a machine with known truth ([`simulated`], [`scenarios`]).

pub mod candidate;
pub mod design;
pub mod effect;
pub mod figure;
mod least_squares;
mod outcome;
pub(crate) mod procedure;
mod repeats;
pub mod request;
mod required;
pub mod scenarios;
pub mod simulated;

use crate::probability::normal_upper;
use candidate::settling;
pub use candidate::{Candidate, Risk};
pub use design::Design;
use design::{group_size, least_groups};
use effect::MISSED;
pub use figure::TuneFigure;
pub use procedure::Tuning;
use punctual_core::Nanos;
pub use request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep, TuningOptions};
pub use required::required;

/// The first round's share of the error rate; each further round takes 40 % of the one before.
const FIRST: f64 = 0.6;
/// The maximum share of the time for the first round: after its adoptions, another round is
/// worthwhile.
const ROUND: f64 = 0.7;
/// The number of initial blocks of the untouched machine.
const PILOT: usize = 8;
/// The ratio of the stated to the expected time: some blocks are measured again, and the spread is
/// estimated from few.
const SPARE: f64 = 1.1;

/// The number of blocks of a screening round, from the spread between blocks of the same settings.
pub(crate) fn blocks_needed(
    options: &TuningOptions,
    settings: usize,
    error: f64,
    spread: f64,
) -> f64 {
    let k = settings.max(1) as f64;
    let z = normal_upper(error / k / 2.0) + normal_upper(MISSED);
    let of_one = (z * spread / options.smallest.ln()).powi(2);
    let size = group_size(options.design, settings) as f64;
    let groups = match options.design {
        // A setting's blocks against two controls for each: 1 + 1/2.
        Design::OneAtATime => 1.5 * of_one,
        // Half of all against the other half.
        Design::Factorial => 4.0 * of_one / (size - design::CONTROLS as f64),
    };
    groups.ceil().max(least_groups(options.design, settings) as f64) * size
}

/// The time to find all effects of the smallest size, from the spread between blocks of the same
/// settings and the time of a block including its preparation: two rounds of screening, and the
/// last comparison. Each setting that hides others takes another round.
pub fn time_needed(options: &TuningOptions, settings: usize, spread: f64, block: Nanos) -> Nanos {
    let round = |part: f64| blocks_needed(options, settings, part * options.error, spread);
    let first = round(FIRST);
    let rounds = (first / ROUND).max(first + round(FIRST * (1.0 - FIRST)));
    let pairs = blocks_needed(options, 1, options.error, spread);
    Nanos((SPARE * (PILOT as f64 + rounds + pairs) * block.ns() as f64) as i64)
}

/// The shortest tuning in which anything can be tried: the initial blocks, the groups that separate
/// the effects of these settings, and what the procedure keeps for its last comparison.
pub fn least_time(options: &TuningOptions, settings: usize) -> Nanos {
    let block = options.block.ns() as f64;
    let groups = least_groups(options.design, settings) * group_size(options.design, settings);
    let before = (PILOT as f64 + groups as f64 / ROUND) * block;
    let last = 2.0 * procedure::PAIRS as f64 * (block + options.cost.ns() as f64);
    Nanos((before + last).min(before / (1.0 - procedure::LAST)).ceil() as i64)
}

/// A machine with switchable settings, on which blocks are measured.
pub trait TunableMachine {
    type Error;

    /// Switches to these settings; all others are restored to their state before the tuning.
    fn apply(&mut self, on: &[bool]) -> Result<(), Self::Error>;
    /// Waits for settings with slow effect.
    fn settle(&mut self, time: Nanos) -> Result<(), Self::Error>;
    /// Measures a block: the figure in ns, or `None` if the block is unusable.
    fn measure(&mut self, request: &BlockRequest) -> Result<Option<f64>, Self::Error>;
    /// Measures the throughput beside a block of the last comparison, which shows the cost of the
    /// set: runs per second, or `None` if not requested or unknown.
    fn throughput(&mut self) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }
    /// The time since the tuning began.
    fn elapsed(&self) -> Nanos;
    /// Stores a block before the next one begins.
    fn keep(&mut self, request: &BlockRequest, block: MeasuredBlock) -> Result<(), Self::Error>;
}

/// Continues to the end. The caller must restore the final settings.
pub fn conduct<M: TunableMachine>(tuning: &mut Tuning, machine: &mut M) -> Result<(), M::Error> {
    let mut now: Option<Vec<bool>> = None;
    while let TuneStep::Measure(request) = tuning.next() {
        let request = request.clone();
        if now.as_ref() != Some(&request.on) {
            let before = now.unwrap_or_else(|| vec![false; request.on.len()]);
            let wait = settling(tuning.candidates(), &before, &request.on);
            machine.apply(&request.on)?;
            machine.settle(wait)?;
            now = Some(request.on.clone());
        }
        let figure = machine.measure(&request)?;
        let throughput = match (request.purpose, figure) {
            (BlockPurpose::Confirm, Some(_)) => machine.throughput()?,
            _ => None,
        };
        let block = MeasuredBlock { figure, throughput, elapsed: machine.elapsed() };
        machine.keep(&request, block)?;
        tuning.record(block);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
