//! A cheap hash of ids, keyed at random: a file cannot choose ids that collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map by ids of a file: threads, events.
pub(crate) type IdMap<K, V> = HashMap<K, V, IdHash>;

#[derive(Clone, Debug)]
pub(crate) struct IdHash(u64, u64);

impl Default for IdHash {
    fn default() -> IdHash {
        let random = RandomState::new();
        // A product by an odd number loses no bit.
        IdHash(random.hash_one(0), random.hash_one(1) | 1)
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { state: self.0, by: self.1 }
    }
}

/// Folds the product of the number and a secret one.
#[derive(Debug)]
pub(crate) struct IdHasher {
    state: u64,
    by: u64,
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(whole));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.state ^ number) * u128::from(self.by);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}
