//! The search for inputs that make a kernel late.
//!
//! Reading order: the [`space`] of inputs, the results of trials ([`archive`]), the order of trials
//! ([`search`]) and minimising ([`minimise`]): pure, over a trait that runs trials. [`trials`] runs
//! them as a lab; [`run`] puts all together.

pub mod against;
pub mod archive;
pub mod document;
pub mod experiment;
pub mod failures;
pub(crate) mod minimise;
pub mod run;
pub mod search;
#[cfg(test)]
mod simulated;
pub mod space;
pub mod spec;
pub mod standing;
pub mod stressors;
pub mod sweep;
pub mod trials;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014):
/// its sequence is the same on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniform number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }
}
