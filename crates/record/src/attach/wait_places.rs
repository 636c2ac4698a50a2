//! The places of a program at which its threads wait: by the stacks of their first waits, until the
//! kernel knows which of them begins the cycles of a thread.

use crate::unwind::{StackCopy, Unwinder, UserStack};
use crate::wire::layout::{self as wire, Selection, Wait};
use punctual_core::MonotonicNs;
use punctual_core::cycle::Cycle;
use std::collections::BTreeMap;

/// The maximum number of places, and of waits that have not become a record yet.
const PLACES: usize = 4_096;
const WAITS: usize = 1 << 16;
/// How often the stacks of a process are unwound in vain.
const TRIES: u32 = 64;
const CALLERS: usize = wire::SELECTED_CALLERS as usize;
const NEVER: MonotonicNs = MonotonicNs(i64::MAX);

/// Places have numbers from 1 on.
#[derive(Default)]
pub(super) struct WaitPlaces {
    all: Vec<WaitPlace>,
    /// By process.
    failures: BTreeMap<u32, u32>,
    /// By thread and entry.
    waits: BTreeMap<(u32, MonotonicNs), u64>,
    /// The places that the kernel compares, by thread, after the first instant and until the
    /// second.
    selected: BTreeMap<u32, (u64, MonotonicNs, MonotonicNs)>,
}

struct WaitPlace {
    process: u32,
    ip: u64,
    /// Return addresses, with where they are in words from the stack pointer.
    callers: Vec<(usize, u64)>,
    stack: UserStack,
}

impl WaitPlace {
    /// Between the same functions their return addresses are where they were.
    fn is_at(&self, wait: &Wait) -> bool {
        let is_caller = |(at, address): &(usize, u64)| wait.stack.get(*at) == Some(address);
        (self.process, self.ip) == (wait.process, wait.ip) && self.callers.iter().all(is_caller)
    }
}

impl WaitPlaces {
    /// Adds a wait that has begun.
    pub(super) fn note_wait(&mut self, tid: u32, wait: &Wait, unwinder: &mut Unwinder) {
        let entered = MonotonicNs(i64::try_from(wait.entered).unwrap_or(i64::MAX));
        let known_place = self.all.iter().position(|place| place.is_at(wait));
        if let Some(place) = known_place.or_else(|| self.add_place(wait, unwinder))
            && self.waits.len() < WAITS
        {
            self.waits.insert((tid, entered), place as u64 + 1);
        }
    }

    /// A new place, if the callers show which one it is.
    fn add_place(&mut self, wait: &Wait, unwinder: &mut Unwinder) -> Option<usize> {
        let Wait { process, ip, sp, bp, lr, .. } = *wait;
        let failures = self.failures.entry(process).or_default();
        if self.all.len() >= PLACES || *failures >= TRIES {
            return None;
        }
        let stack = wait.stack.get(..wait.words as usize).unwrap_or_default().to_vec();
        let copy = StackCopy { process, ip, sp, bp, lr, stack };
        let (stack, callers) = unwinder.unwind_callers(&copy);
        let is_in_program = |address: &u64| unwinder.is_in_program(process, *address);
        if stack.is_cut && !stack.addresses.iter().skip(1).any(is_in_program) {
            *failures += 1;
            // Its libraries may be others than when they were read.
            unwinder.forget_process(process);
            return None;
        }
        self.all.push(WaitPlace { process, ip, callers, stack });
        Some(self.all.len() - 1)
    }

    /// The number of the place at which the wait of this cycle was; 0: not known.
    pub(super) fn take_place(&mut self, cycle: &Cycle) -> u64 {
        let noted_place = self.waits.remove(&(cycle.tid, cycle.entered));
        let selected = self.selected.get(&cycle.tid);
        let is_then = |since, until| cycle.entered > since && cycle.entered <= until;
        let selected = selected.filter(|(_, since, until)| is_then(*since, *until));
        noted_place.or(selected.map(|(place, ..)| *place)).unwrap_or(0)
    }

    /// What the kernel compares with a place: of its callers the innermost ones.
    pub(super) fn fill_selection(&self, selection: &mut Selection, place: u64) {
        let Some(place) = self.place_by_number(place) else { return };
        selection.ip = place.ip;
        for (at, (offset, address)) in place.callers.iter().take(CALLERS).enumerate() {
            (selection.at[at], selection.caller[at]) = (*offset as u16, *address);
            selection.reach = selection.reach.max(8 * (*offset as u32 + 1));
            selection.callers = at as u32 + 1;
        }
    }

    /// The kernel compares this place of the thread's waits from now on.
    pub(super) fn select_place(&mut self, tid: u32, place: u64, now: MonotonicNs) {
        if self.selected.len() >= PLACES {
            self.selected.retain(|_, (.., until)| *until == NEVER);
        }
        self.selected.insert(tid, (place, now, NEVER));
        // Older ones are of waits whose record was lost; the last one has none yet.
        let of_thread = (tid, MonotonicNs(0))..=(tid, now);
        let mut old: Vec<_> = self.waits.range(of_thread).map(|(key, _)| *key).collect();
        old.pop();
        old.iter().for_each(|key| _ = self.waits.remove(key));
    }

    /// Nothing is selected for the thread from now on: it ended, or runs another program. Its
    /// cycles before that may be read later.
    pub(super) fn forget_thread(&mut self, tid: u32, now: MonotonicNs) {
        if let Some((.., until)) = self.selected.get_mut(&tid) {
            *until = now.min(*until);
        }
    }

    /// The functions at a place.
    pub(super) fn place_stack(&self, place: u64) -> Option<&UserStack> {
        self.place_by_number(place).map(|place| &place.stack)
    }

    fn place_by_number(&self, place: u64) -> Option<&WaitPlace> {
        self.all.get(usize::try_from(place.checked_sub(1)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: u64 = 0x7f00_1234;

    fn wait(entered: u64, stack: &[u64]) -> Wait {
        let mut wait = Wait::read(&[0; Wait::SIZE]);
        (wait.entered, wait.ip, wait.process, wait.words) = (entered, IP, 7, stack.len() as u32);
        wait.stack[..stack.len()].copy_from_slice(stack);
        wait
    }

    /// Two known places of a function, called with the return addresses 0x400 and 0x500 in its
    /// third word.
    fn two_places() -> WaitPlaces {
        let place = |caller| WaitPlace {
            process: 7,
            ip: IP,
            callers: vec![(0, 0x7f00_0500), (2, caller)],
            stack: UserStack { addresses: vec![IP, 0x7f00_0500, caller], is_cut: false },
        };
        WaitPlaces { all: vec![place(0x400), place(0x500)], ..WaitPlaces::default() }
    }

    #[test]
    fn waits_are_at_the_place_of_their_return_addresses() {
        let (mut places, mut unwinder) = (two_places(), Unwinder::default());
        let mut seen = |places: &mut WaitPlaces, entered, stack: &[u64]| {
            places.note_wait(3, &wait(entered, stack), &mut unwinder);
            places.waits.get(&(3, MonotonicNs(entered as i64))).copied()
        };
        // What stands between return addresses may be anything.
        assert_eq!(seen(&mut places, 10, &[0x7f00_0500, 77, 0x400]), Some(1));
        assert_eq!(seen(&mut places, 20, &[0x7f00_0500, 0x400, 0x500]), Some(2));
        // Of a process that does not exist nothing is known.
        for entered in 30..230 {
            assert_eq!(seen(&mut places, entered, &[0x7f00_0500, 0, 0x600]), None);
        }
        assert_eq!((places.all.len(), places.failures[&7]), (2, TRIES));
        assert_eq!(places.place_stack(1).map(|stack| stack.addresses.len()), Some(3));
        assert!(places.place_stack(0).is_none() && places.place_stack(9).is_none());
    }

    #[test]
    fn from_the_selection_on_records_are_of_its_place() {
        let mut places = two_places();
        let mut unwinder = Unwinder::default();
        for entered in [10, 20, 30] {
            places.note_wait(3, &wait(entered, &[0x7f00_0500, 0, 0x500]), &mut unwinder);
        }
        let mut selection = Selection::read(&[0; Selection::SIZE]);
        places.fill_selection(&mut selection, 2);
        assert_eq!((selection.ip, selection.reach, selection.callers), (IP, 24, 2));
        assert_eq!((&selection.at[..2], selection.caller[1]), (&[0, 2][..], 0x500));
        places.select_place(3, 1, MonotonicNs(40));
        assert_eq!(places.waits.len(), 1, "the others' records were lost");
        let taken = |places: &mut WaitPlaces, tid, entered| {
            let cycle = super::super::record::tests::cycle_of(tid, entered);
            places.take_place(&cycle)
        };
        assert_eq!(taken(&mut places, 3, 30), 2, "it began before that");
        assert_eq!(taken(&mut places, 3, 40), 0);
        assert_eq!((taken(&mut places, 3, 41), taken(&mut places, 4, 41)), (1, 0));
        places.forget_thread(3, MonotonicNs(42));
        assert_eq!((taken(&mut places, 3, 42), taken(&mut places, 3, 43)), (1, 0));
    }
}
