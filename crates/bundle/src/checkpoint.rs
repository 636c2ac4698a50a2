//! `NNNN.checkpoint`: the statistics of a series during its run, saved about once a second.
//!
//! The file is a sequence of slots. Frames are written alternately into the two slots of one size,
//! so that the previous frame is intact whenever the writer dies. When a frame outgrows its slots,
//! it and all later ones use the next two, which follow and are twice as large. A frame holds its
//! sequence number; the intact one with the highest number counts.
//!
//! Writing a frame takes a few small functions without allocation, and one pwrite(2): code that
//! runs beside a measurement stays in memory and in the caches, while JSON would add much more
//! code.
//!
//! Frame: [`MAGIC`], sequence number (u64 LE), payload length (u32 LE), CRC-32 of sequence number,
//! length and payload (u32 LE), payload. The payload holds the content of [`SeriesState`], as
//! integers of the log's kind. docs/reference/bundle.md lists them.

use crate::hdr::Pairs;
use crate::state::{self, MAX_BINS, SeriesState, ThreadUsage};
use crate::varint::{PayloadCursor, put_signed, put_varint};
use hdrhistogram::Histogram;
use punctual_core::{
    ClockNs, Fact, LinearHistogram, Losses, Nanos, Sample, SeriesData, Unfinished,
};

/// The first bytes of every frame.
pub const MAGIC: &[u8; 8] = b"PNCTCKP1";
/// The size of the first two slots: several times that of an ordinary frame.
const FIRST_SLOT: u64 = 8 << 10;
/// The number of slot pairs that a reader tries: the last have 128 MiB, more than any state within
/// its bounds.
const SIZES: u32 = 15;
const HEADER: usize = 24;

/// The slots for the frames of one series.
#[derive(Debug, Default)]
pub(crate) struct FrameSlots {
    written: u64,
    /// The pair of slots in use.
    size: u32,
}

/// The position of the first slot of a pair; the second follows it. Earlier pairs take twice the
/// sum of their sizes.
fn pair_place(size: u32) -> u64 {
    2 * FIRST_SLOT * ((1 << size) - 1)
}

fn slot_capacity(size: u32) -> u64 {
    FIRST_SLOT << size
}

impl FrameSlots {
    /// Encodes the next frame into `frame` and returns its position in the file. The slot of the
    /// newest intact frame is preserved until [`FrameSlots::confirm_written`] confirms the new one.
    pub(crate) fn next(&mut self, state: &SeriesState, frame: &mut Vec<u8>) -> u64 {
        frame.clear();
        encode_frame(frame, self.written, state);
        while frame.len() as u64 > slot_capacity(self.size) {
            self.size += 1;
        }
        pair_place(self.size) + (self.written & 1) * slot_capacity(self.size)
    }

    /// Confirms that the last frame is in the file.
    pub(crate) fn confirm_written(&mut self) {
        self.written += 1;
    }
}

pub fn encode_frame(out: &mut Vec<u8>, sequence: u64, state: &SeriesState) {
    let start = out.len();
    out.extend(MAGIC);
    out.extend(sequence.to_le_bytes());
    out.extend([0; 8]);
    put_state(out, state);
    let frame = &mut out[start..];
    let length = (frame.len() - HEADER) as u32;
    frame[16..20].copy_from_slice(&length.to_le_bytes());
    let crc = frame_checksum(frame, length);
    frame[20..24].copy_from_slice(&crc.to_le_bytes());
}

/// The checksum of sequence number, length and payload.
fn frame_checksum(frame: &[u8], length: u32) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&frame[8..20]);
    crc.update(&frame[HEADER..HEADER + length as usize]);
    crc.finalize()
}

fn put_state(out: &mut Vec<u8>, state: &SeriesState) {
    let data = &state.data;
    put_optional(out, data.period);
    put_signed(out, data.exact.resolution.ns());
    put_varint(out, data.exact.bins.len() as u64);
    put_varint(out, data.exact.above);
    put_varint(out, data.exact.below);
    put_bins(out, &data.exact.bins);
    put_hdr(out, &data.whole);
    put_varint(out, data.corrected.is_some().into());
    if let Some(corrected) = &data.corrected {
        put_hdr(out, corrected);
    }
    put_optional(out, data.min);
    put_optional(out, data.max);
    put_varint(out, data.sum as u64);
    put_signed(out, (data.sum >> 64) as i64);
    put_varint(out, data.sum_squares.is_some().into());
    if let Some(squares) = data.sum_squares {
        put_varint(out, squares as u64);
        put_varint(out, (squares >> 64) as u64);
    }
    put_varint(out, data.worst.len() as u64);
    for sample in &data.worst {
        put_varint(out, sample.seq);
        put_signed(out, sample.due.ns());
        put_signed(out, sample.woke.ns().wrapping_sub(sample.due.ns()));
        put_varint(out, sample.cpu.into());
    }
    put_varint(out, data.losses.recorded);
    put_varint(out, data.losses.skipped);
    put_varint(out, data.losses.dropped);
    put_usage(out, &state.usage);
    put_varint(out, state.samples_kept);
    put_varint(out, state.log_bytes);
    // Versions that did not distinguish them end here.
    put_varint(out, data.losses.overruns.map_or(0, |overruns| overruns.saturating_add(1)));
    // Older versions that do end here.
    match &data.unfinished {
        Some(one) => {
            put_varint(out, 1 + u64::from(one.ended));
            put_signed(out, one.due.ns());
            put_signed(out, one.at_least.ns());
            put_signed(out, one.lasted.ns());
            put_varint(out, one.passed);
        }
        None if data.losses.lost_records > 0 => put_varint(out, 0),
        None => {}
    }
    // Or here.
    if data.losses.lost_records > 0 {
        put_varint(out, data.losses.lost_records);
    }
}

fn put_optional(out: &mut Vec<u8>, value: Option<Nanos>) {
    put_varint(out, value.is_some().into());
    if let Some(value) = value {
        put_signed(out, value.ns());
    }
}

/// Non-zero counts, each with the distance of its bin from the previous one; terminated by a count
/// of zero.
fn put_bins(out: &mut Vec<u8>, bins: &[u64]) {
    let mut last = 0;
    for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        put_varint(out, *count);
        put_varint(out, (bin - last) as u64);
        last = bin;
    }
    put_varint(out, 0);
}

/// The same for lower edges of buckets instead of bins.
fn put_hdr(out: &mut Vec<u8>, hdr: &Histogram<u64>) {
    let mut last = 0;
    for bucket in hdr.iter_recorded() {
        let edge = hdr.lowest_equivalent(bucket.value_iterated_to());
        put_varint(out, bucket.count_at_value());
        put_varint(out, edge - last);
        last = edge;
    }
    put_varint(out, 0);
}

fn put_usage(out: &mut Vec<u8>, usage: &Fact<ThreadUsage>) {
    match usage {
        Fact::NotAsked => put_varint(out, 0),
        Fact::Known(usage) => {
            put_varint(out, 1);
            put_varint(out, usage.minor_faults);
            put_varint(out, usage.major_faults);
            put_varint(out, usage.voluntary_switches);
            put_varint(out, usage.involuntary_switches);
        }
        Fact::Unavailable(why) => {
            put_varint(out, 2);
            put_varint(out, why.len() as u64);
            out.extend(why.as_bytes());
        }
    }
}

/// A frame whose stated length fits in its slot.
struct CheckpointFrame<'a> {
    sequence: u64,
    length: u32,
    bytes: &'a [u8],
}

/// The frame in a slot of `size` at `place`, before the checksum is verified.
fn frame_at(file: &[u8], place: u64, size: u32) -> Option<CheckpointFrame<'_>> {
    let bytes = file.get(usize::try_from(place).ok()?..)?;
    let header = bytes.get(..HEADER).filter(|header| header.starts_with(MAGIC))?;
    let length = u32::from_le_bytes(header[16..20].try_into().ok()?);
    let bytes = bytes
        .get(..HEADER + length as usize)
        .filter(|frame| frame.len() as u64 <= slot_capacity(size))?;
    Some(CheckpointFrame {
        sequence: u64::from_le_bytes(header[8..16].try_into().ok()?),
        length,
        bytes,
    })
}

/// Reads the newest intact state of a file; the error is the reason without one. Everything in the
/// file is checked.
pub fn decode_newest(file: &[u8]) -> Result<SeriesState, String> {
    let slots = (0..SIZES).flat_map(|size| {
        [0, 1].map(|second| (pair_place(size) + second * slot_capacity(size), size))
    });
    let mut frames: Vec<CheckpointFrame> =
        slots.filter_map(|(place, size)| frame_at(file, place, size)).collect();
    frames.sort_by_key(|frame| std::cmp::Reverse(frame.sequence));
    let whole = frames.iter().find(|frame| {
        let expected = u32::from_le_bytes([
            frame.bytes[20],
            frame.bytes[21],
            frame.bytes[22],
            frame.bytes[23],
        ]);
        frame_checksum(frame.bytes, frame.length) == expected
    });
    let whole = whole.ok_or("it has no complete checkpoint")?;
    let state = take_state(&mut PayloadCursor(&whole.bytes[HEADER..]))
        .ok_or("its checkpoint ends too early")??;
    state::check_consistency(&state.data)?;
    Ok(state)
}

/// Outer `None`: the payload ended; inner error: its content is impossible.
type TakenPayload<T> = Option<Result<T, String>>;

fn take_state(from: &mut PayloadCursor) -> TakenPayload<SeriesState> {
    let period = take_optional(from)?;
    let exact = match take_exact(from)? {
        Ok(exact) => exact,
        Err(why) => return Some(Err(why)),
    };
    let whole = take_pairs(from)?.into_histogram();
    let corrected =
        if from.take_varint()? == 0 { None } else { Some(take_pairs(from)?.into_histogram()) };
    let (min, max) = (take_optional(from)?, take_optional(from)?);
    let sum = i128::from(from.take_varint()?) | i128::from(from.take_signed()?) << 64;
    let squared = |from: &mut PayloadCursor| {
        Some(u128::from(from.take_varint()?) | u128::from(from.take_varint()?) << 64)
    };
    let sum_squares = if from.take_varint()? == 0 { None } else { Some(squared(from)?) };
    let worst = take_worst(from)?;
    let (recorded, skipped, dropped) =
        (from.take_varint()?, from.take_varint()?, from.take_varint()?);
    let usage = take_usage(from)?;
    let (samples_kept, log_bytes) = (from.take_varint()?, from.take_varint()?);
    let overruns = from.take_varint().and_then(|overruns| overruns.checked_sub(1));
    let unfinished = take_unfinished(from);
    let lost_records = from.take_varint().unwrap_or(0).min(dropped);
    let losses = Losses { recorded, skipped, dropped, lost_records, overruns };
    let state = || {
        let (whole, corrected) = (whole?, corrected.transpose()?);
        let data = SeriesData {
            period,
            exact,
            whole,
            corrected,
            min,
            max,
            sum,
            sum_squares,
            worst,
            losses,
            unfinished,
        };
        Ok(SeriesState { data, usage: usage?, digest: None, samples_kept, log_bytes })
    };
    Some(state())
}

fn take_unfinished(from: &mut PayloadCursor) -> Option<Unfinished> {
    let kind = from.take_varint().filter(|kind| *kind > 0)?;
    Some(Unfinished {
        due: ClockNs(from.take_signed()?),
        at_least: Nanos(from.take_signed()?),
        lasted: Nanos(from.take_signed()?),
        passed: from.take_varint()?,
        ended: kind == 2,
    })
}

fn take_optional(from: &mut PayloadCursor) -> Option<Option<Nanos>> {
    if from.take_varint()? == 0 { Some(None) } else { Some(Some(Nanos(from.take_signed()?))) }
}

fn take_exact(from: &mut PayloadCursor) -> TakenPayload<LinearHistogram> {
    let (resolution, count) = (Nanos(from.take_signed()?), from.take_varint()?);
    let (above, below) = (from.take_varint()?, from.take_varint()?);
    let pairs = take_pairs(from)?.0;
    if count == 0 || count > MAX_BINS as u64 || resolution < Nanos(1) {
        return Some(Err(format!("{count} bins of {resolution} are not a histogram")));
    }
    let mut bins = vec![0; count as usize];
    for (bin, n) in pairs {
        match usize::try_from(bin).ok().and_then(|bin| bins.get_mut(bin)) {
            Some(place) => *place = n,
            None => return Some(Err(format!("bin {bin} lies beyond the last"))),
        }
    }
    Some(Ok(LinearHistogram { resolution, bins, above, below }))
}

/// Pairs of place and count; a distance that overflows 64 bits saturates, which is rejected later.
fn take_pairs(from: &mut PayloadCursor) -> Option<Pairs> {
    let (mut pairs, mut place) = (Vec::new(), 0u64);
    loop {
        let count = from.take_varint()?;
        if count == 0 {
            return Some(Pairs(pairs));
        }
        place = place.saturating_add(from.take_varint()?);
        pairs.push((place, count));
    }
}

fn take_worst(from: &mut PayloadCursor) -> Option<Vec<Sample>> {
    let mut worst = Vec::new();
    // No allocation by the file's own count: the loop ends with its bytes.
    for _ in 0..from.take_varint()? {
        let (seq, due) = (from.take_varint()?, from.take_signed()?);
        let woke = due.wrapping_add(from.take_signed()?);
        worst.push(Sample {
            seq,
            due: ClockNs(due),
            woke: ClockNs(woke),
            cpu: u32::try_from(from.take_varint()?).ok()?,
        });
    }
    Some(worst)
}

fn take_usage(from: &mut PayloadCursor) -> TakenPayload<Fact<ThreadUsage>> {
    Some(match from.take_varint()? {
        0 => Ok(Fact::NotAsked),
        1 => Ok(Fact::Known(ThreadUsage {
            minor_faults: from.take_varint()?,
            major_faults: from.take_varint()?,
            voluntary_switches: from.take_varint()?,
            involuntary_switches: from.take_varint()?,
        })),
        2 => {
            let length = from.take_varint()?;
            let reason = std::str::from_utf8(from.take_bytes(length)?);
            reason
                .map(|why| Fact::Unavailable(why.to_owned()))
                .map_err(|_| "a reason is not UTF-8".to_owned())
        }
        other => Err(format!("{other} is not a kind of fact")),
    })
}

#[cfg(test)]
mod tests;
