//! The effect of a seed on a plan: the same work at other moments. Loads and timers start slightly
//! later, and programs that use random numbers get the seed. Everything is derived from the seed,
//! so that a run in virtual time can be repeated exactly.

use crate::limits::MAX_SEED_DELAY;
use crate::plan::{LoadPlan, MeasurePlan, Plan, Workload};
use punctual_core::Nanos;

/// The placeholder of the seed in a load's arguments.
const SEED_MARK: &str = "{seed}";
/// The variable in a load's environment that holds the seed.
pub const SEED_VARIABLE: &str = "PUNCTUAL_SEED";
/// The source of random choices for an experiment without a seed.
const DEFAULT_SEED: u64 = 1;

/// The purpose of a random number: each has its own sequence.
#[derive(Clone, Copy)]
enum RandomStream {
    Loads = 1,
    Timers = 2,
}

impl Plan {
    /// The seed, or the default one.
    pub fn seed_or_default(&self) -> u64 {
        self.seed.unwrap_or(DEFAULT_SEED)
    }

    /// The plan with its seed applied; without a seed it is unchanged, except that `{seed}` in
    /// arguments becomes 1.
    pub fn to_seeded(&self) -> Plan {
        let mut plan = self.clone();
        let effective_seed = self.seed_or_default();
        for (number, phase) in plan.phases.iter_mut().enumerate() {
            for (place, load) in phase.loads.iter_mut().enumerate() {
                load.argv
                    .iter_mut()
                    .for_each(|word| *word = word.replace(SEED_MARK, &effective_seed.to_string()));
                if let Some(seed) = self.seed {
                    load.start_delay +=
                        draw_delay(seed, RandomStream::Loads, number, place, MAX_SEED_DELAY);
                    seed_stress_ng(load, seed);
                }
            }
            for (place, measure) in phase.measures.iter_mut().enumerate() {
                if let Workload::Program(program) = &mut measure.workload {
                    let words = program.command.iter_mut().flat_map(|command| &mut command.0);
                    words.for_each(|word| {
                        *word = word.replace(SEED_MARK, &effective_seed.to_string())
                    });
                    continue;
                }
                let Some(seed) = self.seed else { continue };
                let shift =
                    draw_delay(seed, RandomStream::Timers, number, place, longest_shift(measure));
                measure.threads.iter_mut().for_each(|thread| thread.start_offset += shift);
            }
        }
        plan
    }
}

/// A timer is shifted by less than its period.
fn longest_shift(measure: &MeasurePlan) -> Nanos {
    match &measure.workload {
        Workload::Timer(timer) => timer.period.min(MAX_SEED_DELAY),
        _ => MAX_SEED_DELAY,
    }
}

/// stress-ng uses its own seed, unless its command line sets one.
fn seed_stress_ng(load: &mut LoadPlan, seed: u64) {
    let is_it = load.program.file_name().is_some_and(|name| name == "stress-ng");
    let has_one = load.argv.iter().any(|word| word == "--seed" || word.starts_with("--seed="));
    if is_it && !has_one {
        load.argv.splice(1..1, ["--seed".to_owned(), seed.to_string()]);
    }
}

/// A uniform value from 0 to below `below`: a hash of its purpose.
fn draw_delay(seed: u64, stream: RandomStream, phase: usize, place: usize, below: Nanos) -> Nanos {
    let parts = [stream as u64, phase as u64, place as u64];
    let hash = parts.into_iter().fold(mix_state(seed), |hash, part| mix_state(hash ^ part));
    let below = u128::try_from(below.ns()).unwrap_or(0);
    Nanos(((u128::from(hash) * below) >> 64) as i64)
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
fn mix_state(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_mixer_matches_its_published_values() {
        // The first outputs of SplitMix64 from state 1234567, as in the test of the reference
        // implementation.
        assert_eq!(mix_state(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn drawn_offsets_are_uniform_within_their_bound() {
        let all: Vec<i64> = (0..1000)
            .map(|seed| draw_delay(seed, RandomStream::Loads, 0, 0, Nanos::MILLI).ns())
            .collect();
        assert!(all.iter().all(|ns| (0..1_000_000).contains(ns)));
        for quarter in 0..4 {
            let inside = all.iter().filter(|ns| **ns / 250_000 == quarter).count();
            assert!((200..300).contains(&inside), "{inside}");
        }
        assert_eq!(draw_delay(7, RandomStream::Timers, 0, 0, Nanos::ZERO), Nanos::ZERO);
        assert_ne!(
            draw_delay(7, RandomStream::Timers, 0, 0, Nanos::SECOND),
            draw_delay(7, RandomStream::Loads, 0, 0, Nanos::SECOND)
        );
    }
}
