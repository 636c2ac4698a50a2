//! Stacks in user mode: a place in the kernel's map is free again once nobody needs it.

use super::wire;
use crate::bpf::sys;
use punctual_core::cycle::Moment;
use punctual_core::{MonotonicNs, Nanos};
use punctual_sys::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

const STACK: usize = wire::USER_STACK_DEPTH as usize * 8;
/// So many places may be taken before they are made free: one new stack in 16 then finds its own
/// taken, and what a program always does stays where it is.
const MANY: usize = wire::USER_STACKS as usize / 16;
/// Not more often than this.
const DISTANCE: Nanos = Nanos::SECOND;
/// What the kernel says where another stack has the place.
const TAKEN: i32 = -libc::EEXIST;

/// What is known of the map.
#[derive(Default)]
pub(super) struct UserStacks {
    /// Those that instants had since places were made free.
    seen: BTreeSet<u32>,
    /// When these were made free: what an earlier instant names is no longer there.
    freed: BTreeMap<u32, MonotonicNs>,
    swept: Option<MonotonicNs>,
    any_taken: bool,
    /// Stacks that found another one in their place.
    pub(super) lost: u64,
}

impl UserStacks {
    /// Takes in what the kernel said of a stack.
    pub(super) fn see(&mut self, stack: i32) {
        self.any_taken |= stack == TAKEN;
        self.lost += u64::from(stack == TAKEN);
        self.seen.extend(u32::try_from(stack).ok());
    }

    /// Whether the stack of this instant is still the one in the map.
    fn has(&self, stack: u32, moment: &Moment) -> bool {
        self.freed.get(&stack).is_none_or(|freed| moment.begin > *freed)
    }

    /// The addresses, the innermost function first; `None` where the place was made free too early.
    pub(super) fn addresses(&self, map: &OwnedFd, moment: &Moment) -> Option<Vec<u64>> {
        let Some(stack) = moment.stack else { return Some(Vec::new()) };
        let is_there = |stack: &u32| self.has(*stack, moment);
        let all = sys::stack::<STACK>(map, Some(stack).filter(is_there)?);
        Some(all).filter(|all| !all.is_empty())
    }

    fn is_due(&self, now: MonotonicNs) -> bool {
        (self.any_taken || self.seen.len() >= MANY)
            && self.swept.is_none_or(|swept| now - swept >= DISTANCE)
    }

    /// Makes places free where it is time to, all but those that `needed` gives.
    pub(super) fn sweep(&mut self, map: &OwnedFd, needed: impl FnOnce() -> BTreeSet<u32>) {
        if !self.is_due(clock::monotonic()) {
            return;
        }
        let needed = needed();
        // Those too that no instant came of: their records found no room.
        let (mut all, mut key, mut next) = (Vec::new(), None::<[u8; 4]>, [0; 4]);
        while all.len() < wire::USER_STACKS as usize
            && sys::next_key(map, key.as_ref().map(|key| &key[..]), &mut next).is_ok()
        {
            all.push(u32::from_ne_bytes(next));
            key = Some(next);
        }
        for stack in all.into_iter().filter(|stack| !needed.contains(stack)) {
            if sys::delete(map, &stack.to_ne_bytes()).is_ok() {
                self.freed.insert(stack, clock::monotonic());
            }
        }
        self.seen.clear();
        self.any_taken = false;
        self.swept = Some(clock::monotonic());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::cycle::MomentKind;

    #[test]
    fn places_are_made_free_where_many_or_one_too_few_are() {
        let mut stacks = UserStacks::default();
        (0..MANY as i32 - 1).for_each(|stack| stacks.see(stack));
        [-libc::EFAULT, 0, 1].into_iter().for_each(|stack| stacks.see(stack));
        assert!(!stacks.is_due(MonotonicNs(7)), "the same ones are no more");
        assert_eq!(stacks.lost, 0);
        stacks.see(MANY as i32);
        assert!(stacks.is_due(MonotonicNs(7)));
        let mut stacks = UserStacks::default();
        stacks.see(-17);
        assert_eq!(stacks.lost, 1);
        assert!(stacks.is_due(MonotonicNs(7)));
        stacks.swept = Some(MonotonicNs(7));
        assert!(!stacks.is_due(MonotonicNs(8)));
        assert!(stacks.is_due(MonotonicNs(7) + DISTANCE));
    }

    #[test]
    fn what_has_taken_a_free_place_is_not_the_stack_of_an_earlier_instant() {
        let mut stacks = UserStacks::default();
        stacks.freed.insert(5, MonotonicNs(1_000));
        let at = |begin| {
            let (begin, end) = (MonotonicNs(begin), MonotonicNs(2_000));
            Moment { tid: 7, begin, end, what: MomentKind::Ran, call: None, stack: Some(5) }
        };
        assert!(stacks.has(4, &at(900)));
        assert!(!stacks.has(5, &at(900)) && !stacks.has(5, &at(1_000)));
        assert!(stacks.has(5, &at(1_001)));
    }
}
