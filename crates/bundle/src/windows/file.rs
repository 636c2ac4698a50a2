//! A window's file: 24 bytes, a head in JSON, then the records of each CPU.
//!
//! ```text
//!  0  "PNCTWIN1"
//!  8  length of the head        12  CRC-32 of the head
//! 16  length of the records     20  CRC-32 of the records
//! 24  the head, then the records
//! ```
//! All integers are little-endian and of 32 bits.

use punctual_core::event::Tid;
use punctual_core::{CpuSet, MonotonicNs, Nanos, Sample};
use serde::{Deserialize, Serialize};

/// The first bytes of every window.
pub const MAGIC: &[u8; 8] = b"PNCTWIN1";
/// The maximum length of a head; a larger one is damage.
const MAX_HEAD: usize = 1 << 20;
/// The maximum size of a window's records in bytes.
pub(crate) const MAX_RECORDS: usize = 1 << 28;
pub(super) const FIXED: usize = 24;

/// The description of a window.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowHead {
    /// The phase of its series.
    pub phase: String,
    /// The name of its series.
    pub series: String,
    /// The sample, as in the series and on the clock of the series.
    pub sample: Sample,
    /// When it was due or began, on the clock of the events (CLOCK_MONOTONIC).
    pub due: MonotonicNs,
    /// When it arrived. `woke - due` is the sample's latency.
    pub woke: MonotonicNs,
    /// The measured thread.
    pub tid: Tid,
    pub waited: Waited,
    /// The CPUs, in the order of their records.
    pub lanes: Vec<WindowLane>,
    /// CPUs whose records did not fit in this window.
    pub left_out: CpuSet,
    /// The growth of the steal clock of the sample's CPU (/proc/stat, in ticks) from the poll
    /// before the sample until the copy of its window; `None` if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<Nanos>,
}

/// The meaning of a sample's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waited {
    /// The expiry of a timer that was to wake the thread.
    Timer,
    /// A point that the thread passed.
    Interval,
}

/// The records of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WindowLane {
    pub cpu: u16,
    /// From this instant on no record is missing.
    pub whole_from: MonotonicNs,
    /// The size of its records in bytes.
    pub bytes: u32,
}

/// Why bytes are not a window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WindowError {
    /// They do not begin with [`MAGIC`].
    #[error("it does not begin as a window")]
    NotAWindow,
    /// They are too short or too long.
    #[error("its length differs from its header")]
    Length,
    /// A checksum does not match.
    #[error("the checksum of its {0} is wrong")]
    Checksum(&'static str),
    /// The head holds something impossible.
    #[error("its head: {0}")]
    Head(String),
}

impl WindowHead {
    /// The latency of the sample, at least 0.
    pub fn latency(&self) -> Nanos {
        Nanos(self.woke.0.saturating_sub(self.due.0).max(0))
    }

    /// Whether events are missing after the sample's begin.
    pub fn is_partial(&self) -> bool {
        self.lanes.iter().any(|lane| lane.whole_from > self.due)
    }

    /// Encodes a file from this head and the records of its lanes.
    pub(super) fn encode(&self, records: &[&[u8]]) -> Result<Vec<u8>, WindowError> {
        let head = serde_json::to_vec(self).map_err(|why| WindowError::Head(why.to_string()))?;
        let length: usize = records.iter().map(|lane| lane.len()).sum();
        let agrees = records.len() == self.lanes.len()
            && self
                .lanes
                .iter()
                .zip(records)
                .all(|(lane, records)| lane.bytes as usize == records.len());
        if !agrees || head.len() > MAX_HEAD || length > MAX_RECORDS {
            return Err(WindowError::Length);
        }
        let mut crc = crc32fast::Hasher::new();
        records.iter().for_each(|lane| crc.update(lane));
        let mut bytes = Vec::with_capacity(FIXED + head.len() + length);
        bytes.extend_from_slice(MAGIC);
        for word in [head.len() as u32, crc32fast::hash(&head), length as u32, crc.finalize()] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&head);
        records.iter().for_each(|lane| bytes.extend_from_slice(lane));
        Ok(bytes)
    }

    /// Decodes the head from the beginning of a file; also returns the sizes of head and records.
    /// `size` is the file's length.
    pub(super) fn decode(bytes: &[u8], size: u64) -> Result<(WindowHead, usize, u32), WindowError> {
        let (magic, fixed) = bytes.split_at_checked(MAGIC.len()).ok_or(WindowError::NotAWindow)?;
        if magic != MAGIC {
            return Err(WindowError::NotAWindow);
        }
        let word = |at: usize| fixed.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let words = word(0).zip(word(4)).zip(word(8).zip(word(12)));
        let ((length, crc), (records, records_crc)) = words.ok_or(WindowError::Length)?;
        let end = FIXED + length as usize;
        if length as usize > MAX_HEAD
            || records as usize > MAX_RECORDS
            || end as u64 + u64::from(records) != size
        {
            return Err(WindowError::Length);
        }
        let text = bytes.get(FIXED..end).ok_or(WindowError::Length)?;
        if crc32fast::hash(text) != crc {
            return Err(WindowError::Checksum("head"));
        }
        let head: WindowHead =
            serde_json::from_slice(text).map_err(|why| WindowError::Head(why.to_string()))?;
        let listed = head.lanes.iter().fold(0u64, |sum, lane| sum + u64::from(lane.bytes));
        if listed != u64::from(records) {
            return Err(WindowError::Length);
        }
        Ok((head, end, records_crc))
    }

    /// The maximum number of bytes that [`WindowHead::decode`] reads.
    pub(super) const BEGIN: usize = FIXED + MAX_HEAD;

    /// Reads a whole file: its head, and the records of each lane.
    pub fn read(bytes: &[u8]) -> Result<(WindowHead, Vec<&[u8]>), WindowError> {
        let (head, end, crc) = WindowHead::decode(bytes, bytes.len() as u64)?;
        let mut rest = &bytes[end..];
        if crc32fast::hash(rest) != crc {
            return Err(WindowError::Checksum("records"));
        }
        let mut lanes = Vec::with_capacity(head.lanes.len());
        for lane in &head.lanes {
            let (records, after) =
                rest.split_at_checked(lane.bytes as usize).ok_or(WindowError::Length)?;
            lanes.push(records);
            rest = after;
        }
        Ok((head, lanes))
    }
}
