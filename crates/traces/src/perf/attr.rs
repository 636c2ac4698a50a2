//! perf's attributes, which describe its records (perf_event_open(2)).

use crate::bytes::ByteOrder;

/// The layout of one event's records.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RecordLayout {
    kind: u32,
    pub(super) config: u64,
    samples: u64,
    read: u64,
    flags: u64,
    clock: i32,
}

/// Bits of `sample_type`.
mod has {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
mod read {
    pub(super) const ENABLED: u64 = 1;
    pub(super) const RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

const TRACEPOINT: u32 = 2;
/// The start of a record's payload.
const PAYLOAD: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PerfSample {
    pub(super) at: i64,
    pub(super) cpu: u16,
    /// The range of the tracepoint's record.
    pub(super) raw: (usize, usize),
}

/// The time and place of another record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TimeAndPlace {
    pub(super) at: Option<i64>,
    pub(super) cpu: Option<u16>,
    pub(super) tid: Option<u32>,
}

impl RecordLayout {
    /// Reads the attributes of a file; fields that an older perf did not write are zero.
    pub(super) fn read(bytes: &[u8], order: ByteOrder) -> Option<RecordLayout> {
        let number = |at, size| order.unsigned_at(bytes, at, size).unwrap_or(0);
        let flags: [u8; 8] = bytes.get(40..48)?.try_into().ok()?;
        // On big-endian machines, the first bit of a byte is its highest.
        let flags = match order {
            ByteOrder::Little => flags,
            ByteOrder::Big => flags.map(u8::reverse_bits),
        };
        Some(RecordLayout {
            kind: number(0, 4) as u32,
            config: number(8, 8),
            samples: number(24, 8),
            read: number(32, 8),
            flags: u64::from_le_bytes(flags),
            clock: number(92, 4) as u32 as i32,
        })
    }

    pub(super) fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT
    }

    /// The requested clock.
    pub(super) fn clock_id(&self) -> Option<i32> {
        (self.flags & USE_CLOCKID != 0).then_some(self.clock)
    }

    /// Whether the kernel writes a record of each switch.
    pub(super) fn shows_switches(&self) -> bool {
        self.flags & CONTEXT_SWITCH != 0 && self.flags & SAMPLE_ID_ALL != 0
    }

    fn has_part(&self, what: u64) -> bool {
        self.samples & what != 0
    }

    /// The id that identifies the event of a sample.
    pub(super) fn id_of_sample(&self, record: &[u8], order: ByteOrder) -> Option<u64> {
        if self.has_part(has::IDENTIFIER) {
            return order.unsigned_at(record, PAYLOAD, 8);
        }
        self.has_part(has::ID)
            .then(|| order.unsigned_at(record, self.place_of(has::ID), 8))
            .flatten()
    }

    /// The place in a sample of one of its parts of 8 bytes, or of what follows them.
    fn place_of(&self, part: u64) -> usize {
        const ORDER: [u64; 9] = [
            has::IDENTIFIER,
            has::IP,
            has::TID,
            has::TIME,
            has::ADDR,
            has::ID,
            has::STREAM_ID,
            has::CPU,
            has::PERIOD,
        ];
        let before = ORDER.into_iter().take_while(|before| *before != part);
        let before = before.fold(0, |mask, before| mask | before);
        PAYLOAD + 8 * (self.samples & before).count_ones() as usize
    }

    /// The same for other records: at their end.
    pub(super) fn id_of_other(&self, record: &[u8], order: ByteOrder) -> Option<u64> {
        if self.flags & SAMPLE_ID_ALL == 0 {
            return None;
        }
        let words_behind: usize = match (self.has_part(has::IDENTIFIER), self.has_part(has::ID)) {
            (true, _) => 0,
            (false, true) => {
                [has::STREAM_ID, has::CPU].iter().filter(|what| self.has_part(**what)).count()
            }
            (false, false) => return None,
        };
        order.unsigned_at(record, record.len().checked_sub(8 * (words_behind + 1))?, 8)
    }

    /// Reads a sample; `None` if it lacks fields that an event needs.
    pub(super) fn read_sample(&self, record: &[u8], order: ByteOrder) -> Option<PerfSample> {
        let word = |part: u64, size| {
            self.has_part(part)
                .then(|| order.unsigned_at(record, self.place_of(part), size))
                .flatten()
        };
        let (time, cpu) = (word(has::TIME, 8), word(has::CPU, 4));
        let mut at = self.place_of(has::READ);
        if self.has_part(has::READ) {
            at = self.behind_counts(record, at, order)?;
        }
        if self.has_part(has::CALLCHAIN) {
            let count = usize::try_from(order.unsigned_at(record, at, 8)?).ok()?;
            at = at.checked_add(count.checked_mul(8)?)?.checked_add(8)?;
        }
        if !self.has_part(has::RAW) {
            return None;
        }
        let size = order.unsigned_at(record, at, 4)? as usize;
        let raw = (at + 4, at.checked_add(4)?.checked_add(size)?);
        record.get(raw.0..raw.1)?;
        let at = i64::try_from(time?).ok()?;
        Some(PerfSample { at, cpu: u16::try_from(cpu?).ok()?, raw })
    }

    fn behind_counts(&self, record: &[u8], at: usize, order: ByteOrder) -> Option<usize> {
        let with = |what: u64| usize::from(self.read & what != 0);
        let times = with(read::ENABLED) + with(read::RUNNING);
        let words_per_count = 1 + with(read::ID) + with(read::LOST);
        let words = match self.read & read::GROUP != 0 {
            false => times + words_per_count,
            true => {
                let count = usize::try_from(order.unsigned_at(record, at, 8)?).ok()?;
                count.checked_mul(words_per_count)?.checked_add(1 + times)?
            }
        };
        at.checked_add(words.checked_mul(8)?)
    }

    /// The time and place of a record that is not a sample.
    pub(super) fn read_place(&self, record: &[u8], order: ByteOrder) -> TimeAndPlace {
        let mut place = TimeAndPlace::default();
        if self.flags & SAMPLE_ID_ALL == 0 {
            return place;
        }
        let mut end = record.len();
        let from_the_end =
            [has::IDENTIFIER, has::CPU, has::STREAM_ID, has::ID, has::TIME, has::TID];
        for part in from_the_end.into_iter().filter(|part| self.has_part(*part)) {
            let Some(at) = end.checked_sub(8).filter(|at| *at >= PAYLOAD) else { return place };
            match part {
                has::CPU => {
                    place.cpu =
                        order.unsigned_at(record, at, 4).and_then(|cpu| u16::try_from(cpu).ok());
                }
                // The process, and the thread.
                has::TID => place.tid = order.unsigned_at(record, at + 4, 4).map(|tid| tid as u32),
                has::TIME => {
                    place.at =
                        order.unsigned_at(record, at, 8).and_then(|at| i64::try_from(at).ok());
                }
                _ => {}
            }
            end = at;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(order: ByteOrder, samples: u64, read: u64) -> RecordLayout {
        let mut bytes = vec![0; 64];
        let mut put = |at: usize, number: u64, size: usize| {
            let number = match order {
                ByteOrder::Little => number.to_le_bytes()[..size].to_vec(),
                ByteOrder::Big => number.to_be_bytes()[8 - size..].to_vec(),
            };
            bytes[at..at + size].copy_from_slice(&number);
        };
        put(0, 2, 4);
        put(8, 316, 8);
        put(24, samples, 8);
        put(32, read, 8);
        // sample_id_all is the third bit of the third byte, in either bit order.
        bytes[42] = if order == ByteOrder::Little { 1 << 2 } else { 1 << 5 };
        RecordLayout::read(&bytes, order).unwrap()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_perf_sample_is_decoded_by_its_attributes() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let attr = attr(order, has::TID | has::TIME | has::ID, 0);
            assert!(attr.is_tracepoint() && attr.config == 316 && attr.clock_id().is_none());
            assert_eq!(attr.flags, SAMPLE_ID_ALL);
        }
        let order = ByteOrder::Little;
        let all = has::TID
            | has::TIME
            | has::ID
            | has::CPU
            | has::PERIOD
            | has::READ
            | has::CALLCHAIN
            | has::RAW;
        let attr = attr(order, all, read::GROUP | read::ENABLED | read::ID);
        let (counts, chain) = ([2, 9, 5, 1, 6, 2], [1, 0xffff]);
        let head = [0, 7 << 32 | 7, 1_000, 42, 3, 1];
        let raw = 4 | 0x0000_0001_0000_0000;
        let record = words(&[&head[..], &counts, &chain, &[raw]].concat());
        let from = 8 * (6 + 6 + 2) + 4;
        let expected = PerfSample { at: 1_000, cpu: 3, raw: (from, from + 4) };
        assert_eq!(attr.read_sample(&record, order), Some(expected));
        assert_eq!(attr.id_of_sample(&record, order), Some(42));
        for length in 0..record.len() {
            assert_eq!(attr.read_sample(&record[..length], order), None);
        }
    }

    #[test]
    fn non_sample_records_have_time_and_cpu_at_the_end() {
        let order = ByteOrder::Little;
        let attr = attr(order, has::TID | has::TIME | has::CPU | has::IDENTIFIER, 0);
        let lost = words(&[2 | 56 << 48, 42, 77, 7 << 32 | 7, 1_000, 3, 42]);
        assert_eq!(
            attr.read_place(&lost, order),
            TimeAndPlace { at: Some(1_000), cpu: Some(3), tid: Some(7) }
        );
        assert_eq!(attr.id_of_other(&lost, order), Some(42));
        assert_eq!(attr.read_place(&lost[..16], order), TimeAndPlace::default());
    }
}
