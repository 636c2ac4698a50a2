//! The sizes of blocks, and the order in which those of a round are touched.

use super::shared_memory::HeapBlock;
use punctual_plan::kinds::{HeapPlan, Sizes};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Sizes and orders, determined by the seed.
pub struct HeapRequests {
    sizes: Sizes,
    least: u64,
    most: u64,
    /// The maximum number of blocks in a round.
    pub round: usize,
    random: Xoshiro256PlusPlus,
}

impl HeapRequests {
    pub fn new(plan: &HeapPlan, seed: u64) -> HeapRequests {
        let round = plan.most_nodes() as usize;
        let (least, most) = (plan.size.get(), plan.size_max.get());
        HeapRequests {
            sizes: plan.sizes,
            least,
            most,
            round,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The middle size of a block.
    pub(crate) fn middle_size(&self) -> u64 {
        match self.sizes {
            Sizes::Fixed | Sizes::RandomList => self.least,
            Sizes::Random | Sizes::List => self.least.midpoint(self.most),
        }
    }

    /// The number of nodes of the next random list; `None` for all other sizes.
    pub(crate) fn next_list(&mut self) -> Option<usize> {
        if self.sizes != Sizes::RandomList {
            return None;
        }
        let total = self.least + self.random_below(self.most.saturating_sub(self.least) + 1);
        Some((total / self.least.max(1)).max(1) as usize)
    }

    /// Sets the size of each block and, for rounds of `round` blocks, their order.
    pub(crate) fn fill_blocks(&mut self, blocks: &mut [HeapBlock], round: usize) {
        for blocks in blocks.chunks_mut(round.max(1)) {
            for place in 0..blocks.len() {
                blocks[place].size = match self.sizes {
                    Sizes::Fixed | Sizes::RandomList => self.least,
                    Sizes::Random | Sizes::List => {
                        self.least + self.random_below(self.most.saturating_sub(self.least) + 1)
                    }
                };
                // Fisher and Yates, inside-out.
                let swapped_place = if self.sizes.is_list() {
                    self.random_below(place as u64 + 1) as usize
                } else {
                    place
                };
                blocks[place].visit = blocks[swapped_place].visit;
                blocks[swapped_place].visit = place as u64;
            }
        }
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        // The upper half of a product: a negligible bias of bound/2^64.
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Bytes;

    const NONE: HeapBlock =
        HeapBlock { size: 0, visit: 0, at: 0, malloc: [0; 2], touch: [0; 2], free: [0; 2], cpu: 0 };

    #[test]
    fn a_list_is_visited_completely_in_an_order_given_by_the_seed() {
        let plan =
            HeapPlan { sizes: Sizes::List, nodes: 50, size: Bytes(40), ..HeapPlan::default() };
        let of = |seed| {
            let mut blocks = [NONE; 120];
            HeapRequests::new(&plan, seed).fill_blocks(&mut blocks, 50);
            blocks
        };
        let blocks = of(7);
        for round in blocks.chunks(50) {
            let mut visits: Vec<u64> = round.iter().map(|block| block.visit).collect();
            assert_ne!(visits, (0..round.len() as u64).collect::<Vec<_>>());
            visits.sort_unstable();
            assert_eq!(visits, (0..round.len() as u64).collect::<Vec<_>>());
            assert!(round.iter().all(|block| (40..=4 << 20).contains(&block.size)));
        }
        let same = |a: &[HeapBlock], b: &[HeapBlock]| {
            a.iter().zip(b).all(|(a, b)| (a.size, a.visit) == (b.size, b.visit))
        };
        assert!(same(&blocks, &of(7)) && !same(&blocks, &of(8)));
    }

    #[test]
    fn sizes_of_random_lists_range_from_one_node_to_the_largest() {
        let plan = HeapPlan { sizes: Sizes::RandomList, size: Bytes(40), ..HeapPlan::default() };
        let mut requests = HeapRequests::new(&plan, 7);
        let most = (4 << 20) / 40;
        assert_eq!(requests.round, most);
        let lists: Vec<usize> = (0..1_000).filter_map(|_| requests.next_list()).collect();
        assert_eq!(lists.len(), 1_000);
        assert!(lists.iter().all(|nodes| (1..=most).contains(nodes)));
        // Uniform: about a tenth of them in the first tenth.
        let short = lists.iter().filter(|nodes| **nodes < most / 10).count();
        assert!((60..140).contains(&short), "{short}");
        let mut blocks = [NONE; 30];
        requests.fill_blocks(&mut blocks, 30);
        assert!(blocks.iter().all(|block| block.size == 40));
        assert_ne!(blocks.map(|block| block.visit), std::array::from_fn(|place| place as u64));
    }

    #[test]
    fn blocks_of_fixed_size_are_visited_in_order() {
        let mut blocks = [NONE; 3];
        HeapRequests::new(&HeapPlan::default(), 1).fill_blocks(&mut blocks, 3);
        assert_eq!(
            blocks.map(|block| (block.size, block.visit)),
            [(1024, 0), (1024, 1), (1024, 2)]
        );
    }
}
