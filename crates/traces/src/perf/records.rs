//! The records of perf.data in sequence, decompressed if necessary.

use super::packed::Packed;
use super::window::Window;
use crate::bytes::ByteOrder;
use std::collections::VecDeque;
use std::io::{self, Read};

/// Kinds of records (include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h).
pub(super) mod kind {
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const UNTHROTTLE: u32 = 6;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    pub(crate) const ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const ID_INDEX: u32 = 69;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED_2: u32 = 83;

    /// Kinds of the kernel and of perf, with space for later ones.
    pub(crate) fn is_known(kind: u32) -> bool {
        matches!(kind, 1..32 | 64..128)
    }
}

/// The minimum size of a record: its header.
const HEADER: usize = 8;
/// The maximum number of round ends ahead of the decompressed data.
const MOST_ROUNDS: usize = 1 << 16;
/// Descriptions of tracepoints: some thousand, of some kilobytes each.
pub(super) const MOST_TRACING_DATA: u64 = 64 << 20;

/// The next item of the file.
#[derive(Debug)]
pub(super) enum PerfRecord<'a> {
    /// A record with its header.
    Of(u32, &'a [u8]),
    /// The descriptions of tracepoints, in a pipe.
    TracingData(Vec<u8>),
    /// A round over the buffers of all CPUs ends; compressed data may still contain more of it.
    RoundEnds,
    /// The oldest ended round is complete.
    RoundComplete,
}

pub(super) struct Records {
    from: Window,
    order: ByteOrder,
    packed: Option<Packed>,
    /// Decompressed records, and the amount returned so far.
    unpacked: Vec<u8>,
    next: usize,
    /// Round ends among decompressed records, by the number of bytes before them.
    rounds: VecDeque<u64>,
    /// The size of the current record, which is passed with the next call.
    record: usize,
    ended: bool,
    /// The file ends within a record.
    pub(super) cut_off: bool,
}

impl Records {
    pub(super) fn new(from: Box<dyn Read>, order: ByteOrder) -> Records {
        Records {
            from: Window::new(from),
            order,
            packed: None,
            unpacked: Vec::new(),
            next: 0,
            rounds: VecDeque::new(),
            record: 0,
            ended: false,
            cut_off: false,
        }
    }

    /// The next record; `None` after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<PerfRecord<'_>>> {
        loop {
            if self.round_is_complete() {
                return Ok(Some(PerfRecord::RoundComplete));
            }
            if let Some((kind, size)) = self.head_of_unpacked()? {
                let from = self.next;
                self.next += size;
                return Ok(Some(PerfRecord::Of(kind, &self.unpacked[from..from + size])));
            }
            if self.ended {
                self.cut_off |= self.next < self.unpacked.len();
                return Ok(None);
            }
            let Some(kind) = self.read_record()? else {
                self.finish()?;
                continue;
            };
            match kind {
                kind::COMPRESSED => self.unpack_range(HEADER, self.record)?,
                kind::COMPRESSED_2 => {
                    let end =
                        self.number_behind_header(8).saturating_add(16).min(self.record as u64);
                    self.unpack_range(16, end as usize)?;
                }
                kind::TRACING_DATA => {
                    let size = self.number_behind_header(4);
                    self.pass_record();
                    let mut bytes = Vec::new();
                    (&mut self.from).take(size.min(MOST_TRACING_DATA)).read_to_end(&mut bytes)?;
                    self.skip_bytes(size.saturating_sub(bytes.len() as u64))?;
                    return Ok(Some(PerfRecord::TracingData(bytes)));
                }
                kind::AUXTRACE => {
                    let size = self.number_behind_header(8);
                    self.pass_record();
                    self.skip_bytes(size)?;
                }
                kind::FINISHED_ROUND => {
                    // The decoder holds back up to its window, which may belong before this end.
                    let end = self.packed.as_ref().map_or(0, |of| of.given + of.window);
                    let is_new = end == 0 || self.rounds.back() != Some(&end);
                    if is_new && self.rounds.len() < MOST_ROUNDS {
                        self.rounds.push_back(end);
                        return Ok(Some(PerfRecord::RoundEnds));
                    }
                }
                kind => {
                    return Ok(Some(PerfRecord::Of(
                        kind,
                        &self.from.available_bytes()[..self.record],
                    )));
                }
            }
        }
    }

    fn round_is_complete(&mut self) -> bool {
        let given_bytes = self.packed.as_ref().map_or(0, |packed| packed.given);
        let passed_bytes = given_bytes - (self.unpacked.len() - self.next) as u64;
        let complete = self.rounds.front().is_some_and(|round| *round <= passed_bytes);
        complete && self.rounds.pop_front().is_some()
    }

    fn head_of_unpacked(&mut self) -> io::Result<Option<(u32, usize)>> {
        let rest = &self.unpacked[self.next..];
        match parse_head(rest, self.order) {
            Some((kind, size)) if usize::from(size) >= HEADER => {
                Ok((rest.len() >= size.into()).then_some((kind, size.into())))
            }
            Some(_) => Err(short_record_error()),
            None => Ok(None),
        }
    }

    fn read_record(&mut self) -> io::Result<Option<u32>> {
        self.pass_record();
        self.from.fill_at_least(HEADER as u16)?;
        let Some((kind, size)) = parse_head(self.from.available_bytes(), self.order) else {
            self.cut_off |= !self.from.available_bytes().is_empty();
            return Ok(None);
        };
        if usize::from(size) < HEADER {
            return Err(short_record_error());
        }
        self.cut_off = self.from.fill_at_least(size)? < size.into();
        self.record = size.into();
        Ok((!self.cut_off).then_some(kind))
    }

    fn pass_record(&mut self) {
        self.from.consume_bytes(std::mem::take(&mut self.record));
    }

    /// A number behind the header of the record.
    fn number_behind_header(&self, size: usize) -> u64 {
        self.order
            .unsigned_at(&self.from.available_bytes()[..self.record], HEADER, size)
            .unwrap_or(0)
    }

    fn unpack_range(&mut self, from: usize, to: usize) -> io::Result<()> {
        self.unpacked.drain(..self.next);
        self.next = 0;
        let bytes = self.from.available_bytes().get(from..to).unwrap_or_default();
        self.packed.get_or_insert_with(Packed::new).unpack_record(bytes, &mut self.unpacked)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.ended = true;
        self.unpacked.drain(..self.next);
        self.next = 0;
        let Some(packed) = &mut self.packed else { return Ok(()) };
        self.cut_off |= packed.has_rest();
        packed.finish(&mut self.unpacked)
    }

    fn skip_bytes(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.from).take(count), &mut io::sink())?;
        self.cut_off |= skipped < count;
        Ok(())
    }
}

/// The kind and size of the record that begins here.
fn parse_head(bytes: &[u8], order: ByteOrder) -> Option<(u32, u16)> {
    Some((order.unsigned_at(bytes, 0, 4)? as u32, order.unsigned_at(bytes, 6, 2)? as u16))
}

fn short_record_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a record is shorter than its header")
}
