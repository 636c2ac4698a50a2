//! Random numbers that are the same in every run on every machine, so that resampling is
//! repeatable.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded source (xoshiro256++, Blackman and Vigna, "Scrambled Linear Pseudorandom Number
/// Generators", 2021).
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The source with this seed.
    pub fn from_seed(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
    /// Uniform in `0..n`; 0 if `n` is 0. The bias of the multiplication is below n/2^64.
    pub fn next_below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }
    /// Uniform between 0 and 1, both exclusive.
    pub fn next_unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    /// Selects `n` elements of `order`, all choices equally likely (Fisher and Yates).
    pub(crate) fn choose_first(&mut self, order: &mut [usize], n: usize) {
        for k in 0..n.min(order.len()) {
            let swap_place = k + self.next_below(order.len() - k);
            order.swap(k, swap_place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let mut random = Random::from_seed(7);
        let drawn: Vec<usize> = (0..6).map(|_| random.next_below(1_000)).collect();
        let mut again = Random::from_seed(7);
        assert_eq!(drawn, (0..6).map(|_| again.next_below(1_000)).collect::<Vec<_>>());
        assert_eq!(Random::from_seed(1).next_below(0), 0);
        let mean = (0..10_000).map(|_| random.next_unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
