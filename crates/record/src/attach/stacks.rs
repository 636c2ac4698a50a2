//! User stacks: a place in the kernel's map is freed once it is no longer needed.

use super::wire;
use crate::bpf::sys;
use punctual_core::cycle::Moment;
use punctual_core::{MonotonicNs, Nanos};
use punctual_sys::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

const STACK: usize = wire::USER_STACK_DEPTH as usize * 8;
/// The number of used places from which they are freed: one new stack in 16 then collides, and
/// frequent stacks keep their place.
const MANY: usize = wire::USER_STACKS as usize / 16;
/// The minimum interval.
const DISTANCE: Nanos = Nanos::SECOND;
/// The kernel's result if another stack has the place.
const TAKEN: i32 = -libc::EEXIST;

/// The state of the map.
#[derive(Default)]
pub(super) struct UserStacks {
    /// The stacks of instants since places were last freed.
    seen: BTreeSet<u32>,
    /// When these were freed: stacks of earlier instants no longer exist.
    freed: BTreeMap<u32, MonotonicNs>,
    swept: Option<MonotonicNs>,
    any_taken: bool,
    /// The number of stacks lost to a collision.
    pub(super) lost: u64,
}

impl UserStacks {
    /// Adds the kernel's result for a stack.
    pub(super) fn note_stack(&mut self, stack: i32) {
        self.any_taken |= stack == TAKEN;
        self.lost += u64::from(stack == TAKEN);
        self.seen.extend(u32::try_from(stack).ok());
    }

    /// Whether the stack of this instant is still in the map.
    fn has_stack(&self, stack: u32, moment: &Moment) -> bool {
        self.freed.get(&stack).is_none_or(|freed| moment.begin > *freed)
    }

    /// The addresses, innermost function first; `None` if the place was freed already.
    pub(super) fn stack_addresses(&self, map: &OwnedFd, moment: &Moment) -> Option<Vec<u64>> {
        let Some(stack) = moment.stack else { return Some(Vec::new()) };
        let is_there = |stack: &u32| self.has_stack(*stack, moment);
        let addresses = sys::read_stack::<STACK>(map, Some(stack).filter(is_there)?);
        Some(addresses).filter(|all| !all.is_empty())
    }

    fn is_due(&self, now: MonotonicNs) -> bool {
        (self.any_taken || self.seen.len() >= MANY)
            && self.swept.is_none_or(|swept| now - swept >= DISTANCE)
    }

    /// Frees places when due, except those returned by `needed`.
    pub(super) fn free_unneeded(&mut self, map: &OwnedFd, needed: impl FnOnce() -> BTreeSet<u32>) {
        if !self.is_due(clock::monotonic_now()) {
            return;
        }
        let needed = needed();
        // Including those without an instant, whose records were lost for lack of space.
        let (mut all, mut key, mut next) = (Vec::new(), None::<[u8; 4]>, [0; 4]);
        while all.len() < wire::USER_STACKS as usize
            && sys::next_key(map, key.as_ref().map(|key| &key[..]), &mut next).is_ok()
        {
            all.push(u32::from_ne_bytes(next));
            key = Some(next);
        }
        for stack in all.into_iter().filter(|stack| !needed.contains(stack)) {
            if sys::delete_key(map, &stack.to_ne_bytes()).is_ok() {
                self.freed.insert(stack, clock::monotonic_now());
            }
        }
        self.seen.clear();
        self.any_taken = false;
        self.swept = Some(clock::monotonic_now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::cycle::MomentKind;

    #[test]
    fn stack_slots_are_freed_if_many_are_used_or_one_is_missing() {
        let mut stacks = UserStacks::default();
        (0..MANY as i32 - 1).for_each(|stack| stacks.note_stack(stack));
        [-libc::EFAULT, 0, 1].into_iter().for_each(|stack| stacks.note_stack(stack));
        assert!(!stacks.is_due(MonotonicNs(7)), "the same ones are no more");
        assert_eq!(stacks.lost, 0);
        stacks.note_stack(MANY as i32);
        assert!(stacks.is_due(MonotonicNs(7)));
        let mut stacks = UserStacks::default();
        stacks.note_stack(-17);
        assert_eq!(stacks.lost, 1);
        assert!(stacks.is_due(MonotonicNs(7)));
        stacks.swept = Some(MonotonicNs(7));
        assert!(!stacks.is_due(MonotonicNs(8)));
        assert!(stacks.is_due(MonotonicNs(7) + DISTANCE));
    }

    #[test]
    fn a_reused_stack_slot_is_not_attributed_to_earlier_moments() {
        let mut stacks = UserStacks::default();
        stacks.freed.insert(5, MonotonicNs(1_000));
        let at = |begin| {
            let (begin, end) = (MonotonicNs(begin), MonotonicNs(2_000));
            Moment { end, stack: Some(5), ..Moment::new(7, begin, MomentKind::Ran) }
        };
        assert!(stacks.has_stack(4, &at(900)));
        assert!(!stacks.has_stack(5, &at(900)) && !stacks.has_stack(5, &at(1_000)));
        assert!(stacks.has_stack(5, &at(1_001)));
    }
}
