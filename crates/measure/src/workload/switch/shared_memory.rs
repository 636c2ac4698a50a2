//! The memory shared by all tasks of a ring, threads or processes: the turn, the times of arrival
//! and departure of each, and the working sets.

use punctual_plan::kinds::Walk;
use punctual_sys::mapping::Mapping;
use punctual_sys::usage::Usage;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The work of a task in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum TurnMode {
    /// Walks through its working set and hands over.
    Run = 0,
    /// Like `Run`; the first task after the leader walks through its working set a second time,
    /// without a task between, and reports both times.
    Twice = 1,
    /// Reports how often the kernel has switched it out so far.
    Count = 2,
    /// Hands over for the last time.
    End = 3,
}

/// The common part. The leader writes it while it has the turn, so it does not change while it is
/// read.
#[repr(C, align(128))]
struct SwitchHead {
    mode: AtomicU32,
    size: AtomicU64,
    /// Members that have reached their first wait, or failed.
    ready: AtomicU32,
    /// A member has ended: no task will hand over any more.
    broken: AtomicU32,
    /// The leader rests: members that wait by yielding or sleeping wait on their futex instead.
    parking: AtomicU32,
}

/// The turn, for mechanisms that do not carry it themselves: on its own cache line.
#[repr(C, align(128))]
struct SwitchTurn(AtomicU32);

/// A task of the ring.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct RingTask {
    /// 1: its turn has come, or it must leave its park.
    pub word: AtomicU32,
    /// Whether it waits on `word` because the leader rests.
    pub parked: AtomicU32,
    /// The first instruction after its turn had come.
    pub arrived: AtomicI64,
    /// The last one before it handed over.
    pub left: AtomicI64,
    pub due: AtomicI64,
    /// For `TurnMode::Twice`: the time of the walk through the working set after the switch.
    pub after: AtomicI64,
    /// The time of the second walk, without a task between.
    pub alone: AtomicI64,
    pub pid: AtomicI32,
    /// As `pid`.
    pub tid: AtomicI32,
    /// Why it could not be prepared: an errno.
    pub error: AtomicI32,
    /// Whether the requested scheduling was refused: an errno.
    pub refused: AtomicI32,
    /// The number of times that it got the CPU when it was not its turn.
    pub strays: AtomicU64,
    /// The number of times that it waited for the end of a rest.
    pub parks: AtomicU64,
    /// From the last `TurnMode::Count`.
    voluntary: AtomicU64,
    involuntary: AtomicU64,
}

impl RingTask {
    /// Reports how often the kernel has switched the calling task out.
    pub(crate) fn publish_switches(&self) {
        let usage = Usage::of_this_thread();
        self.voluntary.store(usage.voluntary_switches, Ordering::Relaxed);
        self.involuntary.store(usage.involuntary_switches, Ordering::Release);
    }
    pub(crate) fn switch_counts(&self) -> (u64, u64) {
        (self.voluntary.load(Ordering::Relaxed), self.involuntary.load(Ordering::Acquire))
    }
}

/// The mapping. Processes forked from this one share it. The control part consists of atomics; each
/// working set is accessed through raw pointers, only by the task that owns it.
pub struct SwitchMemory {
    memory: Mapping,
    tasks: usize,
    largest: usize,
    walk: Walk,
}

const HEAD: usize = size_of::<SwitchHead>();
const TURN: usize = size_of::<SwitchTurn>();
const SLOT: usize = size_of::<RingTask>();
const PAGE: usize = 4096;
/// A cache line of most processors.
const LINE: usize = 64;

/// The two ways of a branch: calls, so that no compiler makes a conditional move of them.
#[inline(never)]
fn even_branch(sum: u64) -> u64 {
    std::hint::black_box(sum).wrapping_add(1)
}
#[inline(never)]
fn odd_branch(sum: u64) -> u64 {
    std::hint::black_box(sum).rotate_left(1)
}

impl SwitchMemory {
    /// Memory for this many tasks with working sets of at most `size` bytes.
    pub fn new(tasks: usize, largest: usize, walk: Walk) -> io::Result<SwitchMemory> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let largest = largest.checked_next_multiple_of(PAGE).ok_or_else(too_large)?;
        let control = (HEAD + TURN + SLOT * tasks).next_multiple_of(PAGE);
        let length = largest
            .checked_mul(tasks)
            .and_then(|sets| sets.checked_add(control))
            .ok_or_else(too_large)?;
        Ok(SwitchMemory { memory: Mapping::new_anonymous(length)?, tasks, largest, walk })
    }

    fn memory_head(&self) -> &SwitchHead {
        // SAFETY: the mapping begins with a `SwitchHead`; zeroes are a valid one, and it lives as
        // long as `self`.
        unsafe { self.memory.start_address().cast().as_ref() }
    }
    fn turn_word(&self) -> &AtomicU32 {
        // SAFETY: the `SwitchTurn` follows the `SwitchHead`, with the same alignment.
        unsafe { &self.memory.start_address().add(HEAD).cast::<SwitchTurn>().as_ref().0 }
    }
    /// The number of tasks.
    pub(crate) fn task_count(&self) -> usize {
        self.tasks
    }
    /// A task, by its position in the ring, modulo the number of tasks.
    #[inline(always)]
    pub(crate) fn task_slot(&self, task: usize) -> &RingTask {
        // SAFETY: there are `tasks` slots after the `SwitchTurn`, and the place is one of them.
        unsafe {
            self.memory
                .start_address()
                .add(HEAD + TURN + SLOT * (task % self.tasks))
                .cast()
                .as_ref()
        }
    }
    /// All tasks, the leader first.
    pub(crate) fn task_slots(&self) -> impl Iterator<Item = &RingTask> {
        (0..self.tasks).map(|task| self.task_slot(task))
    }

    /// The current mode.
    #[inline(always)]
    pub(crate) fn turn_mode(&self) -> TurnMode {
        match self.memory_head().mode.load(Ordering::Acquire) {
            0 => TurnMode::Run,
            1 => TurnMode::Twice,
            2 => TurnMode::Count,
            _ => TurnMode::End,
        }
    }
    /// Sets the mode from the next hand-over on.
    pub(crate) fn set_mode(&self, mode: TurnMode) {
        self.memory_head().mode.store(mode as u32, Ordering::Release);
    }
    /// Sets the size of working sets from the next hand-over on.
    pub(crate) fn set_size(&self, bytes: usize) {
        self.memory_head().size.store(bytes.min(self.largest) as u64, Ordering::Release);
    }
    /// The task that has the turn.
    #[inline(always)]
    pub(crate) fn turn_owner(&self) -> u32 {
        self.turn_word().load(Ordering::Acquire)
    }
    /// Passes the turn on.
    #[inline(always)]
    pub(crate) fn set_turn(&self, task: usize) {
        self.turn_word().store((task % self.tasks) as u32, Ordering::Release);
    }
    /// Members that are ready or failed.
    pub(crate) fn ready_count(&self) -> usize {
        self.memory_head().ready.load(Ordering::Acquire) as usize
    }
    pub(crate) fn add_ready(&self) {
        self.memory_head().ready.fetch_add(1, Ordering::AcqRel);
    }
    /// Whether a member is gone.
    pub fn is_broken(&self) -> bool {
        self.memory_head().broken.load(Ordering::Acquire) != 0
    }
    pub(crate) fn set_broken(&self) {
        self.memory_head().broken.store(1, Ordering::Release);
    }
    pub(crate) fn is_parking(&self) -> bool {
        self.memory_head().parking.load(Ordering::Acquire) != 0
    }
    /// Begins or ends the leader's rest.
    pub(crate) fn set_parking(&self, parking: bool) {
        self.memory_head().parking.store(parking.into(), Ordering::Release);
    }

    /// The beginning of a task's working set, which no other task touches.
    fn working_set(&self, task: usize) -> NonNull<u8> {
        // SAFETY: the working sets follow the control part, page by page; the index is one of them.
        unsafe {
            self.memory
                .start_address()
                .add(self.memory.length() - self.largest * (self.tasks - task % self.tasks))
        }
    }

    fn go_through(&self, task: usize, bytes: usize) {
        let (set, bytes) = (self.working_set(task), bytes.min(self.largest));
        let change = |at: usize| {
            // SAFETY: within the task's own working set, aligned, and touched by no other task.
            unsafe {
                let word = set.add(at).cast::<u64>().as_ptr();
                word.write_volatile(word.read_volatile().wrapping_add(1));
            }
        };
        match self.walk {
            Walk::Lines => (0..bytes).step_by(LINE).for_each(change),
            // Another line of each page: lines at one place of all pages share few sets of a cache.
            Walk::Pages => {
                (0..bytes / PAGE)
                    .for_each(|page| change(page * PAGE + page % (PAGE / LINE) * LINE));
            }
            Walk::Branches | Walk::Straight => {
                let mut sum = task as u64;
                for at in 0..bytes {
                    // SAFETY: within the task's own working set.
                    let byte = unsafe { set.add(at).as_ptr().read_volatile() };
                    sum = if byte & 1 == 0 { even_branch(sum) } else { odd_branch(sum) };
                }
                std::hint::black_box(sum);
            }
        }
    }
    /// Goes through the task's working set, in its current size.
    #[inline(always)]
    pub(crate) fn walk_working_set(&self, task: usize) {
        let bytes = self.memory_head().size.load(Ordering::Acquire) as usize;
        if bytes > 0 {
            self.go_through(task, bytes);
        }
    }
    /// Makes all pages of the set resident, and fills it with what its branches depend on.
    pub(crate) fn touch_working_set(&self, task: usize) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(task as u64);
        for at in (0..self.largest).step_by(size_of::<u64>()) {
            let word = if self.walk == Walk::Branches { random.next_u64() } else { 0 };
            // SAFETY: within the task's own working set, aligned, and touched by no other task.
            unsafe { self.working_set(task).add(at).cast::<u64>().as_ptr().write_volatile(word) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a set that a walk changes.
    fn changed(walk: Walk) -> Vec<usize> {
        let memory = SwitchMemory::new(2, 16 * PAGE, walk).unwrap();
        (0..2).for_each(|task| memory.touch_working_set(task));
        let words = |task: usize| -> Vec<u64> {
            // SAFETY: within the set.
            let read = |k| unsafe {
                memory.working_set(task).cast::<u64>().add(k).as_ptr().read_volatile()
            };
            (0..16 * PAGE / 8).map(read).collect()
        };
        let (before, other) = (words(1), words(0));
        memory.set_size(16 * PAGE);
        memory.walk_working_set(1);
        assert_eq!(words(0), other, "{walk:?}: only its own");
        let after = words(1);
        (0..before.len()).filter(|k| before[*k] != after[*k]).map(|k| k * 8).collect()
    }

    #[test]
    fn a_walk_changes_every_line_or_one_line_of_each_page_or_nothing() {
        let lines: Vec<usize> = (0..16 * PAGE / LINE).map(|k| k * LINE).collect();
        assert_eq!(changed(Walk::Lines), lines);
        let pages: Vec<usize> = (0..16).map(|k| k * PAGE + k * LINE).collect();
        assert_eq!(changed(Walk::Pages), pages);
        assert!(changed(Walk::Branches).is_empty() && changed(Walk::Straight).is_empty());
    }
}
