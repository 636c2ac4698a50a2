//! `NNNN.log`: samples and one-second windows, appended block by block. A truncated last block is
//! recognised and dropped.
//!
//! File: the 8 bytes of [`MAGIC`], then blocks. Block: payload length (u32 LE), CRC-32 of kind and
//! payload (u32 LE), kind (u8), payload. Integers in payloads are LEB128 varints; signed ones are
//! zigzag-coded first (both as in Protocol Buffers).

use crate::varint::{PayloadCursor, put_signed, put_varint};
pub use punctual_core::SampleWindow;
use punctual_core::{ClockNs, Nanos, Sample};
use std::io::{self, Read};

/// The first bytes of every log.
pub const MAGIC: &[u8; 8] = b"PNCTLOG1";
/// A longer block is damage.
const MAX_BLOCK: usize = 1 << 24;
const HEADER: usize = 9;
const KIND_SAMPLES: u8 = 1;
const KIND_WINDOW: u8 = 2;
/// In `NNNN.lines` ([`crate::lines`]).
pub(crate) const KIND_LINE: u8 = 3;

/// The content of a log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LogContents {
    /// The kept samples in order.
    pub samples: Vec<Sample>,
    pub windows: Vec<SampleWindow>,
    /// Bytes of an incomplete block at the end, which the writer was writing when it died.
    pub torn_bytes: u64,
}

/// Appends a block; `fill` writes the payload in place.
pub(crate) fn append_block(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEADER - 1]);
    out.push(kind);
    fill(out);
    let (length, crc) = (out.len() - start - HEADER, crc32fast::hash(&out[start + HEADER - 1..]));
    out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Appends samples as blocks, with a new one at each gap in the numbering (dropped samples).
pub fn encode_samples(out: &mut Vec<u8>, samples: &[Sample]) {
    for run in samples.chunk_by(|a, b| a.seq.checked_add(1) == Some(b.seq)) {
        // 1 Mi samples of at most 21 bytes could exceed MAX_BLOCK; 256 Ki cannot.
        run.chunks(1 << 18).for_each(|run| encode_run(out, run));
    }
}

fn encode_run(out: &mut Vec<u8>, run: &[Sample]) {
    let Some(first) = run.first() else { return };
    append_block(out, KIND_SAMPLES, |payload| {
        put_varint(payload, run.len() as u64);
        put_varint(payload, first.seq);
        let (mut due, mut step) = (0i64, 0i64);
        for sample in run {
            // The distance of periodic samples repeats: the second difference of `due` is nearly
            // always 0, one byte.
            let this_step = sample.due.ns().wrapping_sub(due);
            put_signed(payload, this_step.wrapping_sub(step));
            put_signed(payload, sample.woke.ns().wrapping_sub(sample.due.ns()));
            put_varint(payload, u64::from(sample.cpu));
            (due, step) = (sample.due.ns(), this_step);
        }
    });
}

pub fn encode_window(out: &mut Vec<u8>, window: &SampleWindow) {
    append_block(out, KIND_WINDOW, |payload| {
        put_signed(payload, window.start.ns());
        put_varint(payload, window.count);
        [window.min, window.max, window.sum].into_iter().for_each(|n| put_signed(payload, n.ns()));
    });
}

fn decode_samples(payload: &[u8], samples: &mut Vec<Sample>) -> Option<()> {
    let mut cursor = PayloadCursor(payload);
    let (count, first) = (cursor.take_varint()?, cursor.take_varint()?);
    // A sample takes at least three bytes: a larger count is false.
    if count > payload.len() as u64 / 3 {
        return None;
    }
    let (mut due, mut step) = (0i64, 0i64);
    let before = samples.len();
    for k in 0..count {
        let sample = (|| {
            step = step.wrapping_add(cursor.take_signed()?);
            due = due.wrapping_add(step);
            let woke = due.wrapping_add(cursor.take_signed()?);
            let cpu = u32::try_from(cursor.take_varint()?).ok()?;
            Some(Sample { seq: first.checked_add(k)?, due: ClockNs(due), woke: ClockNs(woke), cpu })
        })();
        match sample {
            Some(sample) => samples.push(sample),
            None => {
                samples.truncate(before);
                return None;
            }
        }
    }
    Some(())
}

fn decode_window(payload: &[u8]) -> Option<SampleWindow> {
    let mut cursor = PayloadCursor(payload);
    Some(SampleWindow {
        start: ClockNs(cursor.take_signed()?),
        count: cursor.take_varint()?,
        min: Nanos(cursor.take_signed()?),
        max: Nanos(cursor.take_signed()?),
        sum: Nanos(cursor.take_signed()?),
    })
}

/// Splits off the next valid block.
pub(crate) fn next_block(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let word = |at: usize| header[at..at + 4].try_into().map(u32::from_le_bytes).ok();
    let (length, expected, kind) = (word(0)? as usize, word(4)?, header[8]);
    let (payload, rest) = rest.split_at_checked(length).filter(|_| length <= MAX_BLOCK)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind]);
    crc.update(payload);
    (crc.finalize() == expected).then_some((kind, payload, rest))
}

/// The result of checking a log, without its content in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// The number of samples in its valid blocks, up to the first invalid one.
    pub samples: u64,
    /// Whether every block is valid.
    pub is_whole: bool,
}

/// Checks a log: one that ended is valid to its last byte.
pub(crate) fn check_log(mut log: impl Read) -> io::Result<Checked> {
    let mut checked = Checked::default();
    let mut read = |most: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        log.by_ref().take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    if read(MAGIC.len() as u64)? != MAGIC {
        return Ok(checked);
    }
    loop {
        let mut bytes = read(HEADER as u64)?;
        if bytes.is_empty() {
            checked.is_whole = true;
            return Ok(checked);
        }
        let length = bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word) as usize);
        if bytes.len() < HEADER || length > MAX_BLOCK {
            return Ok(checked);
        }
        bytes.append(&mut read(length as u64)?);
        let Some((kind, payload, _)) = next_block(&bytes) else { return Ok(checked) };
        if kind == KIND_SAMPLES {
            let count = PayloadCursor(payload).take_varint().unwrap_or_default();
            checked.samples = checked.samples.saturating_add(count);
        }
    }
}

/// Reads a log up to its first invalid block. Skips blocks of unknown kind (of a later minor
/// version). Fails only if the file is not a log.
pub fn decode_log(bytes: &[u8]) -> Result<LogContents, String> {
    let mut contents = LogContents::default();
    if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
        contents.torn_bytes = bytes.len() as u64;
        return Ok(contents);
    }
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a log of samples")?;
    while let Some((kind, payload, after)) = next_block(rest) {
        let sound = match kind {
            KIND_SAMPLES => decode_samples(payload, &mut contents.samples).is_some(),
            KIND_WINDOW => {
                decode_window(payload).map(|window| contents.windows.push(window)).is_some()
            }
            _ => true,
        };
        if !sound {
            break;
        }
        rest = after;
    }
    contents.torn_bytes = rest.len() as u64;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sample() -> impl Strategy<Value = Sample> {
        (0..5u64, any::<i64>(), any::<i64>(), 0..4u32).prop_map(|(seq, due, woke, cpu)| Sample {
            seq,
            due: ClockNs(due),
            woke: ClockNs(woke),
            cpu,
        })
    }

    proptest! {
        #[test]
        fn samples_and_windows_are_decoded_as_encoded(
            mut samples in proptest::collection::vec(any_sample(), 0..40),
            start in any::<i64>(),
        ) {
            let mut seq = 0;
            samples.iter_mut().for_each(|s| {
                seq += s.seq;
                s.seq = seq;
                seq += 1;
            });
            let window = SampleWindow {
                start: ClockNs(start),
                count: 5,
                min: Nanos(-3),
                max: Nanos(9),
                sum: Nanos(12),
            };
            let mut bytes = MAGIC.to_vec();
            encode_samples(&mut bytes, &samples);
            encode_window(&mut bytes, &window);
            let whole = decode_log(&bytes).unwrap();
            prop_assert_eq!(&whole.samples, &samples);
            prop_assert_eq!(whole.windows, vec![window]);
            prop_assert_eq!(whole.torn_bytes, 0);
        }

        #[test]
        fn a_truncated_log_yields_its_complete_blocks(
            count in 1usize..30,
            cut in 0usize..400,
        ) {
            let samples: Vec<Sample> = (0..count as u64)
                .map(|k| {
                    let due = k as i64 * 1_000;
                    // A gap after each third sample produces several blocks.
                    Sample { seq: k + k / 3, due: ClockNs(due), woke: ClockNs(due + 7), cpu: 0 }
                })
                .collect();
            let mut bytes = MAGIC.to_vec();
            encode_samples(&mut bytes, &samples);
            let cut = cut.min(bytes.len());
            let read = decode_log(&bytes[..cut]).unwrap();
            prop_assert!(samples.starts_with(&read.samples));
            prop_assert!(
                cut < bytes.len() || (read.torn_bytes == 0 && read.samples.len() == count)
            );
        }

        #[test]
        fn a_flipped_bit_anywhere_is_found(count in 1usize..30, at in 0usize..400, bit in 0u8..8) {
            let samples: Vec<Sample> = (0..count as u64)
                .map(|seq| {
                    let due = seq as i64 * 1_000;
                    Sample { seq: seq * 2, due: ClockNs(due), woke: ClockNs(due + 7), cpu: 0 }
                })
                .collect();
            let mut bytes = MAGIC.to_vec();
            encode_samples(&mut bytes, &samples);
            let whole = Checked { samples: count as u64, is_whole: true };
            prop_assert_eq!(check_log(&*bytes).unwrap(), whole);
            let at = at % bytes.len();
            bytes[at] ^= 1u8 << bit;
            prop_assert!(!check_log(&*bytes).unwrap().is_whole);
        }

        #[test]
        fn no_bytes_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            proper in any::<bool>(),
        ) {
            if proper {
                bytes.splice(0..0, *MAGIC);
            }
            let _ = decode_log(&bytes);
            let _ = check_log(&*bytes);
        }
    }
}
