//! Values kept until their event arrives: a bounded number, the oldest dropped first.

use super::frame::Origin;
use std::collections::HashMap;
use std::hash::Hash;

/// The maximum size of each of the two generations.
const GENERATION: usize = 16_384;

pub(super) struct PendingValues<K> {
    young: HashMap<K, Origin>,
    old: HashMap<K, Origin>,
}

impl<K> Default for PendingValues<K> {
    fn default() -> PendingValues<K> {
        PendingValues { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash> PendingValues<K> {
    pub(super) fn insert(&mut self, key: K, origin: Origin) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, origin);
    }

    pub(super) fn get(&self, key: &K) -> Option<Origin> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<Origin> {
        let old = self.old.remove(key);
        self.young.remove(key).or(old)
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::MonotonicNs;

    #[test]
    fn the_number_of_origins_is_bounded_and_the_newest_are_kept() {
        let mut kept = PendingValues::default();
        let origin = |at| Origin { at: MonotonicNs(at), tid: Some(1), cpu: 0, via: None };
        for key in 0..10 * GENERATION {
            kept.insert(key, origin(key as i64));
        }
        assert!(kept.young.len() + kept.old.len() <= 2 * GENERATION);
        assert!(!kept.contains(&0));
        assert!((9 * GENERATION..10 * GENERATION).all(|key| kept.contains(&key)));
        let last = 10 * GENERATION - 1;
        assert_eq!(kept.remove(&last).map(|origin| origin.at.0), Some(last as i64));
        assert!(!kept.contains(&last));
    }
}
