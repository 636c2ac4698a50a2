//! Copies of user stacks that the programs in the kernel make (bpf/attach.bpf.c), unwound while
//! the process exists.

use crate::bpf::{BpfObject, LoadError};
use crate::unwind::{StackCopy, Unwinder, UserStack};
use crate::wire::layout::{self as wire, StackCopy as Head};
use punctual_core::MonotonicNs;
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

const SIZE: usize = Head::SIZE + wire::STACK_BYTES as usize;
/// Numbers of stacks from here on are of copies.
const FIRST: u32 = 1 << 31;
/// The maximum number of unwound stacks that wait for their cycle's end.
const KEPT_STACKS: usize = 1 << 14;
/// The age at which the record of a copy was lost.
const STALE: i64 = 30_000_000_000;

pub(super) struct Copies {
    memory: Mapping,
    kept: BTreeMap<u32, UserStack>,
    next: u32,
    /// Stacks that found no room here.
    pub(super) lost: u64,
}

impl Copies {
    pub(super) fn from_object(object: &BpfObject) -> Result<Copies, LoadError> {
        let bytes = SIZE * wire::STACK_COPIES as usize;
        let memory = Mapping::of_file(object.map_fd("copies")?, 0, bytes, READ_WRITE, 0)
            .map_err(|why| LoadError::Map { bytes: bytes as u64, why })?;
        Ok(Copies::new(memory))
    }

    fn new(memory: Mapping) -> Copies {
        Copies { memory, kept: BTreeMap::new(), next: 0, lost: 0 }
    }

    fn read(&self, offset: usize, words: usize) -> Vec<u64> {
        let word = |at| self.memory.word_at(offset + at * 8).load(Ordering::Relaxed);
        (0..words).map(word).collect()
    }

    /// Takes the copy with this number + 1 of a thread, made at this instant, unwinds it and frees
    /// it. Returns the number of the stack.
    pub(super) fn take_copy(
        &mut self,
        number: u16,
        tid: u32,
        taken: u64,
        unwinder: &mut Unwinder,
    ) -> Option<u32> {
        let offset = usize::from(number.checked_sub(1)?);
        let offset = (offset < wire::STACK_COPIES as usize).then_some(offset * SIZE)?;
        if self.memory.word_at(offset).load(Ordering::Acquire) != taken {
            return None;
        }
        let head: Vec<u8> =
            self.read(offset, Head::SIZE / 8).iter().flat_map(|word| word.to_ne_bytes()).collect();
        let head = Head::read(head.first_chunk()?);
        let words = (head.bytes.min(wire::STACK_BYTES) / 8) as usize;
        let stack = self.read(offset + Head::SIZE, words);
        self.memory.word_at(offset).store(0, Ordering::Release);
        if head.tid != tid {
            return None;
        }
        if self.kept.len() >= KEPT_STACKS {
            self.lost += 1;
            return None;
        }
        let copy = StackCopy {
            process: head.process,
            ip: head.ip,
            sp: head.sp,
            bp: head.bp,
            lr: head.lr,
            stack,
        };
        let number = FIRST | self.next;
        self.next = (self.next + 1) % FIRST;
        self.kept.insert(number, unwinder.unwind_stack(&copy));
        Some(number)
    }

    /// The functions of a stack, if it is one of these.
    pub(super) fn kept_stack(&self, number: u32) -> Option<&UserStack> {
        self.kept.get(&number)
    }

    /// Keeps those that are needed, and frees the copies whose record never came.
    pub(super) fn free_unneeded(&mut self, needed: &BTreeSet<u32>, now: MonotonicNs) {
        self.kept.retain(|number, _| needed.contains(number));
        for slot in 0..wire::STACK_COPIES as usize {
            let copy_stamp = self.memory.word_at(slot * SIZE);
            let at = copy_stamp.load(Ordering::Acquire);
            if at != 0 && now.0.saturating_sub_unsigned(at) > STALE {
                let _ = copy_stamp.compare_exchange(at, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a copy as the kernel does.
    fn written(copies: &Copies, slot: usize, head: Head) {
        let mut bytes = [0; Head::SIZE];
        head.write(&mut bytes);
        for (at, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            copies.memory.word_at(slot * SIZE + at * 8).store(word, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_copy_belongs_to_the_moment_at_which_it_was_made_and_is_freed_once() {
        let memory = Mapping::new_anonymous(SIZE * wire::STACK_COPIES as usize).unwrap();
        let (mut copies, mut unwinder) = (Copies::new(memory), Unwinder::default());
        let mut take =
            |copies: &mut Copies, number, taken| copies.take_copy(number, 5, taken, &mut unwinder);
        let mut head = Head::read(&[0; Head::SIZE]);
        (head.taken, head.tid, head.process, head.ip, head.bytes) =
            (7_000, 5, u32::MAX, 0x4000, 64);
        written(&copies, 3, head);
        assert_eq!(take(&mut copies, 4, 6_999), None, "another moment's");
        assert_eq!(take(&mut copies, 0, 0), None);
        assert_eq!(take(&mut copies, u16::MAX, 7_000), None);
        let number = take(&mut copies, 4, 7_000).expect("it is there");
        let stack = copies.kept_stack(number).expect("it was unwound");
        assert_eq!((stack.addresses.as_slice(), stack.is_cut), (&[0x4000][..], true), "no process");
        assert_eq!(take(&mut copies, 4, 7_000), None, "it is freed");
        written(&copies, 9, head);
        copies.free_unneeded(&BTreeSet::from([number]), MonotonicNs(7_000 + STALE));
        assert!(copies.kept_stack(number).is_some());
        assert_eq!(copies.memory.word_at(9 * SIZE).load(Ordering::Relaxed), 7_000);
        copies.free_unneeded(&BTreeSet::new(), MonotonicNs(7_001 + STALE));
        assert!(copies.kept_stack(number).is_none());
        assert_eq!(
            copies.memory.word_at(9 * SIZE).load(Ordering::Relaxed),
            0,
            "its record was lost"
        );
    }
}
