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
    pub(super) fn from_object(object: &BpfObject) -> Result<AttachPlaces, LoadError> {
        let shared = |name: &str, words: u64| {
            let length = words as usize * 8;
            Mapping::of_file(object.map_fd(name)?, 0, length, READ_WRITE, 0)
                .map_err(|why| LoadError::Map { bytes: length as u64, why })
        };
        let places = shared("places", wire::PLACES)?;
        let numbers = shared("numbers", FREE as u64 / 8 + wire::WATCHED)?;
        (1..=wire::WATCHED).for_each(|number| {
            numbers.word_at(FREE + (number as usize - 1) * 8).store(number, ORDER)
        });
        numbers.word_at(GIVEN).store(wire::WATCHED, ORDER);
        Ok(AttachPlaces { places, numbers })
    }

    fn probe_sequence(&self, tid: u32) -> impl Iterator<Item = &AtomicU64> {
        let first = u64::from(tid).wrapping_mul(wire::PLACE_FACTOR) >> wire::PLACE_SHIFT;
        (first..first + wire::PROBES)
            .map(|at| self.places.word_at((at & (wire::PLACES - 1)) as usize * 8))
    }

    /// The number of a thread, if it is watched.
    pub(super) fn number_of(&self, tid: u32) -> Option<u32> {
        let found = self.probe_sequence(tid).map(|place| place.load(ORDER));
        found
            .take_while(|place| *place != 0)
            .find(|place| *place as u32 == tid)
            .map(number_in_place)
    }

    /// Gives a thread a number of its own, if it has none yet: `clear` removes what its last
    /// thread left. `Ok(false)`: none is free.
    pub(super) fn watch_thread<E>(
        &self,
        tid: u32,
        clear: impl FnOnce(u32) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.number_of(tid).is_some() {
            return Ok(true);
        }
        let Some(number) = self.take_number() else { return Ok(false) };
        clear(number)?;
        let own_entry = u64::from(tid) | u64::from(number) << 32;
        for place in self.probe_sequence(tid) {
            let mut place_entry = place.load(ORDER);
            if place_entry as u32 == 0 {
                let swapped = place.compare_exchange(place_entry, own_entry, ORDER, ORDER);
                place_entry = swapped.map_or_else(|there| there, |_| own_entry);
            }
            if place_entry as u32 == tid {
                // A program was faster.
                if place_entry != own_entry {
                    self.return_number(number);
                }
                return Ok(true);
            }
        }
        self.return_number(number);
        Ok(false)
    }

    fn free_number_at(&self, at: u64) -> &AtomicU64 {
        self.numbers.word_at(FREE + (at & (wire::WATCHED - 1)) as usize * 8)
    }

    fn take_number(&self) -> Option<u32> {
        let taken_count = self.numbers.word_at(TAKEN).fetch_update(ORDER, ORDER, |taken| {
            (taken < self.numbers.word_at(GIVEN).load(ORDER)).then_some(taken + 1)
        });
        Some(self.free_number_at(taken_count.ok()?).swap(0, ORDER) as u32)
            .filter(|number| *number > 0)
    }

    fn return_number(&self, number: u32) {
        let at = self.numbers.word_at(GIVEN).fetch_add(1, ORDER);
        self.free_number_at(at).store(number.into(), ORDER);
    }

    /// All watched threads with their numbers.
    pub(super) fn watched_threads(&self) -> Vec<(u32, u32)> {
        let words = (0..wire::PLACES as usize).map(|at| self.places.word_at(at * 8).load(ORDER));
        words
            .filter(|place| *place as u32 != 0)
            .map(|place| (place as u32, number_in_place(place)))
            .collect()
    }
}

fn number_in_place(place: u64) -> u32 {
    (place >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn watched_threads_get_unique_numbers_until_none_is_free() {
        let places = Mapping::new_anonymous(wire::PLACES as usize * 8).unwrap();
        let numbers = Mapping::new_anonymous(FREE + wire::WATCHED as usize * 8).unwrap();
        let all = AttachPlaces { places, numbers };
        (1..=wire::WATCHED as u32).for_each(|number| all.return_number(number));
        let watch = |tid| all.watch_thread(tid, |_| Ok::<(), Infallible>(())).unwrap();
        assert_eq!((all.number_of(7), all.watched_threads().len()), (None, 0));
        // As threads of three programs, some of which have the same place.
        let tids: Vec<u32> =
            (0..wire::WATCHED as u32).map(|k| 1_000 + k % 3 * 1_000_003 + k / 3).collect();
        assert!(tids.iter().all(|tid| watch(*tid)));
        assert!(watch(tids[5]), "it has one already");
        assert!(!watch(77_777), "none is free");
        let mut numbers: Vec<u32> = tids.iter().map(|tid| all.number_of(*tid).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=wire::WATCHED as u32).collect::<Vec<_>>());
        // One leaves, as the program does: threads behind it are still found.
        let place =
            all.probe_sequence(tids[9]).find(|place| place.load(ORDER) as u32 == tids[9]).unwrap();
        all.return_number(number_in_place(place.swap(wire::PLACE_LEFT, ORDER)));
        assert!(all.number_of(tids[9]).is_none() && all.watched_threads().len() == tids.len() - 1);
        assert!(tids.iter().filter(|tid| all.number_of(**tid).is_none()).count() == 1);
        assert!(watch(77_777) && all.number_of(77_777).is_some() && all.number_of(0).is_none());
    }
}
