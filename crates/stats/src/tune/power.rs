//! The number of blocks, and the time, needed to find an effect.

use super::design::{self, Design, group_size, least_groups};
use super::effect::MISSED;
use super::request::TuningOptions;
use crate::probability::normal_upper;
use punctual_core::Nanos;

/// The first round's share of the error rate; each further round takes 40 % of the one before.
pub(super) const FIRST: f64 = 0.6;
/// The maximum share of the time for the first round: after its adoptions, another round is
/// worthwhile.
pub(super) const ROUND: f64 = 0.7;
/// The number of initial blocks of the untouched machine.
pub(super) const PILOT: usize = 8;
/// The ratio of the stated to the expected time: some blocks are measured again, and the spread is
/// estimated from few.
const SPARE: f64 = 1.1;

/// The number of blocks of a screening round, from the spread between blocks of the same settings.
pub(crate) fn blocks_needed(options: &TuningOptions, settings: usize, error: f64, spread: f64) -> f64 {
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
