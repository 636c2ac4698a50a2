//! The numbers of watched threads, in memory shared with the programs: which thread has which, and
//! which are free (bpf/attach.bpf.c).

use crate::bpf::{BpfObject, LoadError};
use crate::wire::layout as wire;
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct AttachPlaces {
    places: Mapping,
    numbers: Mapping,
}

const ORDER: Ordering = Ordering::SeqCst;
const TAKEN: usize = 0;
const GIVEN: usize = 8;
const FREE: usize = 16;

impl AttachPlaces {
    /// All numbers are free.
    pub(super) fn of(object: &BpfObject) -> Result<AttachPlaces, LoadError> {
        let shared = |name: &str, words: u64| {
            let length = words as usize * 8;
            Mapping::of_file(object.map(name)?, 0, length, READ_WRITE, 0)
                .map_err(|why| LoadError::Map { bytes: length as u64, why })
        };
        let places = shared("places", wire::PLACES)?;
        let numbers = shared("numbers", FREE as u64 / 8 + wire::WATCHED)?;
        (1..=wire::WATCHED)
            .for_each(|number| numbers.word(FREE + (number as usize - 1) * 8).store(number, ORDER));
        numbers.word(GIVEN).store(wire::WATCHED, ORDER);
        Ok(AttachPlaces { places, numbers })
    }

    fn probes(&self, tid: u32) -> impl Iterator<Item = &AtomicU64> {
        let first = u64::from(tid).wrapping_mul(wire::PLACE_FACTOR) >> wire::PLACE_SHIFT;
        (first..first + wire::PROBES)
            .map(|at| self.places.word((at & (wire::PLACES - 1)) as usize * 8))
    }

    /// The number of a thread, if it is watched.
    pub(super) fn number(&self, tid: u32) -> Option<u32> {
        let found = self.probes(tid).map(|place| place.load(ORDER));
        found.take_while(|place| *place != 0).find(|place| *place as u32 == tid).map(above)
    }

    /// Gives a thread a number of its own, if it has none yet: `clear` removes what its last
    /// thread left. `Ok(false)`: none is free.
    pub(super) fn watch<E>(
        &self,
        tid: u32,
        clear: impl FnOnce(u32) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.number(tid).is_some() {
            return Ok(true);
        }
        let Some(number) = self.take() else { return Ok(false) };
        clear(number)?;
        let own = u64::from(tid) | u64::from(number) << 32;
        for place in self.probes(tid) {
            let mut there = place.load(ORDER);
            if there as u32 == 0 {
                let swapped = place.compare_exchange(there, own, ORDER, ORDER);
                there = swapped.map_or_else(|there| there, |_| own);
            }
            if there as u32 == tid {
                // A program was faster.
                if there != own {
                    self.give(number);
                }
                return Ok(true);
            }
        }
        self.give(number);
        Ok(false)
    }

    fn free(&self, at: u64) -> &AtomicU64 {
        self.numbers.word(FREE + (at & (wire::WATCHED - 1)) as usize * 8)
    }

    fn take(&self) -> Option<u32> {
        let taken = self.numbers.word(TAKEN).fetch_update(ORDER, ORDER, |taken| {
            (taken < self.numbers.word(GIVEN).load(ORDER)).then_some(taken + 1)
        });
        Some(self.free(taken.ok()?).swap(0, ORDER) as u32).filter(|number| *number > 0)
    }

    fn give(&self, number: u32) {
        let at = self.numbers.word(GIVEN).fetch_add(1, ORDER);
        self.free(at).store(number.into(), ORDER);
    }

    /// All watched threads with their numbers.
    pub(super) fn all(&self) -> Vec<(u32, u32)> {
        let words = (0..wire::PLACES as usize).map(|at| self.places.word(at * 8).load(ORDER));
        words.filter(|place| *place as u32 != 0).map(|place| (place as u32, above(place))).collect()
    }
}

fn above(place: u64) -> u32 {
    (place >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn watched_threads_get_unique_numbers_until_none_is_free() {
        let places = Mapping::anonymous(wire::PLACES as usize * 8).unwrap();
        let numbers = Mapping::anonymous(FREE + wire::WATCHED as usize * 8).unwrap();
        let all = AttachPlaces { places, numbers };
        (1..=wire::WATCHED as u32).for_each(|number| all.give(number));
        let watch = |tid| all.watch(tid, |_| Ok::<(), Infallible>(())).unwrap();
        assert_eq!((all.number(7), all.all().len()), (None, 0));
        // As threads of three programs, some of which have the same place.
        let tids: Vec<u32> =
            (0..wire::WATCHED as u32).map(|k| 1_000 + k % 3 * 1_000_003 + k / 3).collect();
        assert!(tids.iter().all(|tid| watch(*tid)));
        assert!(watch(tids[5]), "it has one already");
        assert!(!watch(77_777), "none is free");
        let mut numbers: Vec<u32> = tids.iter().map(|tid| all.number(*tid).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=wire::WATCHED as u32).collect::<Vec<_>>());
        // One leaves, as the program does: threads behind it are still found.
        let place = all.probes(tids[9]).find(|place| place.load(ORDER) as u32 == tids[9]).unwrap();
        all.give(above(place.swap(wire::PLACE_LEFT, ORDER)));
        assert!(all.number(tids[9]).is_none() && all.all().len() == tids.len() - 1);
        assert!(tids.iter().filter(|tid| all.number(**tid).is_none()).count() == 1);
        assert!(watch(77_777) && all.number(77_777).is_some() && all.number(0).is_none());
    }
}
