//! The buffers written by kernel programs, one per recorded CPU, mapped into this process; see
//! `bpf/buffer.h`.

use crate::wire::encode;
use crate::wire::layout::{self as wire, Buffer};
use punctual_core::event::{Event, EventKind, Tid};
use punctual_core::{CpuSet, MonotonicNs};
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The size of buffers: powers of two, in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSizes {
    words: u64,
    flight: bool,
}

impl BufferSizes {
    /// At least `bytes` large, within the limits of a map's value (below 512 MiB: the verifier's
    /// limit of an offset) and of what is reasonable.
    pub(crate) fn with_capacity(bytes: usize, flight: bool) -> BufferSizes {
        let bytes = bytes.clamp(64 << 10, 256 << 20).next_power_of_two();
        BufferSizes { words: bytes as u64 / 8, flight }
    }
    pub(crate) fn index_mask(self) -> u64 {
        self.words - 1
    }
    /// The size of a map's value: the control block, the data, and in flight mode the index of
    /// blocks.
    pub(crate) fn value_size(self) -> u32 {
        let index = if self.flight { self.words / wire::BLOCK_WORDS } else { 0 };
        (Buffer::SIZE as u64 + (self.words + index) * 8) as u32
    }
}

/// The constants of `bpf/buffer.h` that assign buffers to CPUs.
pub(crate) fn slot_constants(cpus: &CpuSet) -> [(&'static str, Vec<u8>); 4] {
    let (first, count) = (cpus.iter().next().unwrap_or(0), cpus.len());
    let gaps = cpus.iter().last().is_some_and(|last| last - first + 1 != count);
    let mut slots = vec![0xff; wire::MAX_CPUS as usize * 2];
    for (slot, cpu) in cpus.iter().enumerate() {
        slots[cpu * 2..cpu * 2 + 2].copy_from_slice(&(slot as u16).to_ne_bytes());
    }
    let number = |number: usize| (number as u32).to_ne_bytes().to_vec();
    [
        ("slots", slots),
        ("first_cpu", number(first)),
        ("cpu_count", number(count)),
        ("gaps", vec![u8::from(gaps)]),
    ]
}

/// Constants as [`super::BpfObject::open`] takes them.
pub(crate) fn borrow_constants<'a>(
    constants: &'a [(&'static str, Vec<u8>)],
) -> Vec<(&'a str, &'a [u8])> {
    constants.iter().map(|(name, value)| (*name, value.as_slice())).collect()
}

/// All buffers of one recorder. Words are accessed as atomics; records are copied by the one thread
/// that owns the recorder, and copying writes only its own tail.
pub(crate) struct Buffers {
    memory: Mapping,
    shape: BufferSizes,
    count: u32,
}

/// The maximum number of retries to find an instant without an active writer. At a million events
/// per second and 50 ns each, one poll in twenty meets a writer.
const POLLS: usize = 200;

impl Buffers {
    /// Maps the first `count` values of the map.
    pub(crate) fn map_buffers(
        map: &OwnedFd,
        shape: BufferSizes,
        count: u32,
    ) -> io::Result<Buffers> {
        let length = (shape.value_size() as usize).saturating_mul(count as usize);
        Ok(Buffers { memory: Mapping::of_file(map, 0, length, READ_WRITE, 0)?, shape, count })
    }

    fn control_word(&self, slot: u32, offset: usize) -> &AtomicU64 {
        assert!(slot < self.count && offset < Buffer::SIZE);
        let at = slot as usize * self.shape.value_size() as usize + offset;
        self.memory.word_at(at)
    }

    /// The number of records lost by this buffer so far.
    pub(crate) fn lost_records(&self, slot: u32) -> u64 {
        self.control_word(slot, LOST).load(Ordering::Relaxed)
    }

    /// The number of instants within cycles without space in this buffer.
    pub(crate) fn refused_moments(&self, slot: u32) -> u64 {
        self.control_word(slot, REFUSED).load(Ordering::Relaxed)
    }

    /// The losses since the last record with space, and their start: not yet in any record.
    fn pending_loss(&self, slot: u32) -> (u64, u64) {
        let count = self.control_word(slot, MISSED).load(Ordering::Acquire);
        (count, self.control_word(slot, MISSED_SINCE).load(Ordering::Relaxed))
    }

    /// Appends a record of the losses that no later record reported, for the end of a CPU's stream.
    pub(crate) fn last_loss(&self, slot: u32, cpu: u16, at: MonotonicNs, to: &mut Vec<u8>) {
        let (count, since) = self.pending_loss(slot);
        if count > 0 {
            let since = MonotonicNs(since as i64);
            encode(
                &Event {
                    at: at.max(since),
                    cpu,
                    tid: Tid(0),
                    what: EventKind::Lost { count, since },
                },
                to,
            );
        }
    }

    /// The fill level of the fullest buffer in percent.
    pub(crate) fn fill_percent(&self) -> u64 {
        let used = |slot| {
            let head = self.control_word(slot, HEAD).load(Ordering::Relaxed);
            head.saturating_sub(self.control_word(slot, TAIL).load(Ordering::Relaxed))
        };
        (0..self.count).map(used).max().unwrap_or(0) * 100 / self.shape.words
    }

    /// The number of complete passes over this buffer.
    pub(crate) fn completed_laps(&self, slot: u32) -> f64 {
        self.control_word(slot, HEAD).load(Ordering::Relaxed) as f64 / self.shape.words as f64
    }

    /// A position before which every record is complete; `None` if writers were active each time.
    fn settled_position(&self, slot: u32) -> Option<u64> {
        for _ in 0..POLLS {
            let done = self.control_word(slot, DONE).load(Ordering::Acquire);
            fence(Ordering::SeqCst);
            // `done` never exceeds `head`, and both only grow: if head equals the earlier done, no
            // writer was active then.
            if self.control_word(slot, HEAD).load(Ordering::Acquire) == done {
                return Some(done);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Appends all whole records to `to` and frees their space. Returns `false`, without taking
    /// any, if some were overwritten before they were taken, which happens only in flight mode.
    pub(crate) fn take_records(&self, slot: u32, to: &mut Vec<u8>) -> bool {
        let Some(end) = self.settled_position(slot) else { return true };
        let tail = self.control_word(slot, TAIL);
        let begin = tail.load(Ordering::Relaxed);
        let whole = end.wrapping_sub(begin) <= self.shape.words;
        if whole {
            self.copy_records(slot, begin, end, to);
        }
        tail.store(end, Ordering::Release);
        whole
    }

    /// Flight mode: appends the records between the last known position at or before `from` and
    /// now, without stopping writers. Drops records that writers may have overwritten meanwhile.
    /// The first record is the buffer's oldest if that is later.
    pub(crate) fn copy_newest(&self, slot: u32, from: MonotonicNs, to: &mut Vec<u8>) -> Option<()> {
        let end = self.settled_position(slot)?;
        let begin = self.block_begin(slot, from, self.oldest_position(end), end);
        let mark = to.len();
        self.copy_records(slot, begin, end, to);
        fence(Ordering::SeqCst);
        // Space reserved by now may be written already; it overlaps the words one buffer length
        // earlier.
        let safe = self.oldest_position(self.control_word(slot, HEAD).load(Ordering::Acquire));
        if safe > begin {
            let begin_again = self.block_begin(slot, MonotonicNs(i64::MIN), safe, end).min(end);
            to.drain(mark..mark + (begin_again - begin) as usize * 8);
        }
        Some(())
    }

    /// The first position that a buffer with this head still contains.
    fn oldest_position(&self, head: u64) -> u64 {
        head.saturating_sub(self.shape.words)
    }

    /// The start of the newest block that begins at or before `from`; else of the oldest one from
    /// `least` on.
    fn block_begin(&self, slot: u32, from: MonotonicNs, least: u64, end: u64) -> u64 {
        let mut begin = end;
        let mut block = end / wire::BLOCK_WORDS;
        loop {
            let first = self.data_word(
                slot,
                self.shape.words + (block & (self.shape.index_mask() / wire::BLOCK_WORDS)),
            );
            if first < least {
                break;
            }
            // An entry of another round, or of a block in which no record begins.
            if first / wire::BLOCK_WORDS == block && first < end {
                begin = first;
                if self.data_word(slot, first & self.shape.index_mask()) as i64 <= from.0 {
                    break;
                }
            }
            match block.checked_sub(1) {
                Some(before) if before * wire::BLOCK_WORDS + wire::BLOCK_WORDS > least => {
                    block = before
                }
                _ => break,
            }
        }
        begin
    }

    /// A word of the data or, after it, of the index.
    fn data_word(&self, slot: u32, at: u64) -> u64 {
        let at = slot as usize * self.shape.value_size() as usize + Buffer::SIZE + at as usize * 8;
        self.memory.word_at(at).load(Ordering::Relaxed)
    }

    fn copy_records(&self, slot: u32, begin: u64, end: u64, to: &mut Vec<u8>) {
        let (words, mask) = (self.shape.words, self.shape.index_mask());
        let first = (end - begin).min(words - (begin & mask));
        for (at, count) in [(begin & mask, first), (0, end - begin - first)] {
            let at =
                slot as usize * self.shape.value_size() as usize + Buffer::SIZE + at as usize * 8;
            let bytes = count as usize * 8;
            to.reserve(bytes);
            // SAFETY: the source is within this slot's data, which is within the mapping; writers
            // do not touch it before the tail has passed it (in flight mode they may, and the
            // caller discards everything they could have touched). The destination has just been
            // reserved and cannot overlap a mapping of the kernel's.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.memory.start_address().as_ptr().add(at),
                    to.as_mut_ptr().add(to.len()),
                    bytes,
                );
                to.set_len(to.len() + bytes);
            }
        }
    }
}

/// Offsets in `struct wire_buffer`; a test compares.
const HEAD: usize = 0;
const DONE: usize = 8;
const MISSED: usize = 16;
const MISSED_SINCE: usize = 24;
const LOST: usize = 32;
const REFUSED: usize = 56;
const TAIL: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_from_the_first_unless_some_are_left_out() {
        let of = |list: &str| slot_constants(&list.parse().unwrap()).map(|(_, value)| value);
        let [table, first, count, gaps] = of("2-4");
        assert_eq!((first, count, gaps), (vec![2, 0, 0, 0], vec![3, 0, 0, 0], vec![0]));
        assert_eq!(table[..12], [0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 2, 0, 0xff, 0xff]);
        let [table, first, count, gaps] = of("1,3");
        assert_eq!((first, count, gaps), (vec![1, 0, 0, 0], vec![2, 0, 0, 0], vec![1]));
        assert_eq!(table[..10], [0xff, 0xff, 0, 0, 0xff, 0xff, 1, 0, 0xff, 0xff]);
    }

    /// Two buffers in a file, with the layout of a map.
    fn in_a_file() -> Buffers {
        let shape = BufferSizes::with_capacity(0, false);
        let file = tempfile::tempfile().expect("a file");
        file.set_len(2 * u64::from(shape.value_size())).expect("as long");
        Buffers::map_buffers(&OwnedFd::from(file), shape, 2).expect("it is mapped")
    }

    #[test]
    fn a_loss_that_no_record_reported_is_reported_at_the_end() {
        for count in [0, 1, 7] {
            let buffers = in_a_file();
            buffers.control_word(1, MISSED).store(count, Ordering::Relaxed);
            buffers.control_word(1, MISSED_SINCE).store(500, Ordering::Relaxed);
            let mut records = Vec::new();
            buffers.last_loss(1, 3, MonotonicNs(400), &mut records);
            let found: Vec<_> = crate::wire::decode(&records).flatten().collect();
            let since = MonotonicNs(500);
            let lost =
                Event { at: since, cpu: 3, tid: Tid(0), what: EventKind::Lost { count, since } };
            assert_eq!(found, if count > 0 { vec![lost] } else { Vec::new() });
            records.clear();
            buffers.last_loss(0, 3, MonotonicNs(400), &mut records);
            assert!(records.is_empty(), "the other buffer lost none");
        }
    }

    #[test]
    fn records_that_wrap_around_the_buffer_are_read_once() {
        let buffers = in_a_file();
        let words = buffers.shape.words;
        let place = |at: u64| {
            buffers.shape.value_size() as usize + Buffer::SIZE + (at % words) as usize * 8
        };
        let (begin, end) = (words - 3, words + 5);
        buffers.control_word(1, TAIL).store(begin, Ordering::Relaxed);
        (begin..end).for_each(|at| buffers.memory.word_at(place(at)).store(at, Ordering::Relaxed));
        buffers.control_word(1, HEAD).store(end, Ordering::Relaxed);
        let mut taken = Vec::new();
        assert!(buffers.take_records(1, &mut taken) && taken.is_empty(), "a writer is at work");
        buffers.control_word(1, DONE).store(end, Ordering::Relaxed);
        assert!(buffers.take_records(1, &mut taken));
        let words_of = |bytes: &[u8]| -> Vec<u64> {
            bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
        };
        assert_eq!(words_of(&taken), (begin..end).collect::<Vec<_>>());
        assert_eq!(buffers.control_word(1, TAIL).load(Ordering::Relaxed), end);
        taken.clear();
        assert!(buffers.take_records(1, &mut taken) && taken.is_empty(), "once");
    }

    #[test]
    fn the_control_block_matches_the_layout_of_the_c_header() {
        let mut bytes = [0; Buffer::SIZE];
        let block = Buffer {
            head: 1,
            done: 2,
            missed: 3,
            missed_since: 4,
            lost: 5,
            held: 0,
            held_tid: 0,
            refused: 7,
            writers_line: [0; 64],
            tail: 6,
            readers_line: [0; 120],
        };
        block.write(&mut bytes);
        let first = [(HEAD, 1), (DONE, 2), (MISSED, 3), (MISSED_SINCE, 4), (LOST, 5)];
        for (offset, value) in first.into_iter().chain([(TAIL, 6), (REFUSED, 7)]) {
            assert_eq!(bytes[offset], value);
        }
    }
}
