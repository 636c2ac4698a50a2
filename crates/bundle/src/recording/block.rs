//! A block: a header of 64 bytes, then the records as received from their recorder.
//!
//! ```text
//!  0  "PBLK"
//!  4  CRC-32 of bytes 8 to 63
//!  8  length of the payload        12  CRC-32 of the payload
//! 16  source                       20  encoding (16 bits)   22  0 (16 bits)
//! 24  events in the payload        28  0
//! 32  events of this source in earlier blocks, including unwritten ones (64 bits)
//! 40  events that the source had lost when this block was taken (64 bits)
//! 48  instant of the first event   56  of the last, ns on CLOCK_MONOTONIC (64 bits, signed)
//! ```
//! All integers are little-endian and of 32 bits unless noted.

use punctual_core::MonotonicNs;

/// The first bytes of every segment.
pub const MAGIC: &[u8; 8] = b"PNCTREC1";
/// The maximum payload of a block; a larger one is damage.
pub(crate) const MAX_PAYLOAD: usize = 1 << 26;
pub(super) const HEADER: usize = 64;
const MARK: &[u8; 4] = b"PBLK";

/// The encoding of a payload's records: a number chosen by their recorder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Encoding(pub u16);

impl Encoding {
    /// Kernel events as written by the BPF programs.
    pub const KERNEL: Encoding = Encoding(1);
    /// Test points as written by applications.
    pub const POINTS: Encoding = Encoding(2);
    /// Events decoded before storage.
    pub const EVENTS: Encoding = Encoding(3);
}

/// The header of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// The source of the events: the index in `Recorded::sources`.
    pub source: u32,
    pub encoding: Encoding,
    pub count: u32,
    /// The number of earlier events of the same source, written or not.
    pub before: u64,
    /// The number of events lost by the source until this block.
    pub lost: u64,
    /// The instant of the first event; a hint for finding windows, together with `last`.
    pub first: MonotonicNs,
    /// The instant of the last event.
    pub last: MonotonicNs,
}

impl BlockHeader {
    pub(super) fn encode_header(&self, payload: &[u8]) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(MARK);
        header[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[12..16].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        header[16..20].copy_from_slice(&self.source.to_le_bytes());
        header[20..22].copy_from_slice(&self.encoding.0.to_le_bytes());
        header[24..28].copy_from_slice(&self.count.to_le_bytes());
        header[32..40].copy_from_slice(&self.before.to_le_bytes());
        header[40..48].copy_from_slice(&self.lost.to_le_bytes());
        header[48..56].copy_from_slice(&self.first.0.to_le_bytes());
        header[56..64].copy_from_slice(&self.last.0.to_le_bytes());
        let crc = crc32fast::hash(&header[8..]);
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Decodes a header, with the length of the payload and its checksum; `None` if it is invalid.
    pub(super) fn read(header: &[u8; HEADER]) -> Option<(BlockHeader, u32, u32)> {
        let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let long = |at: usize| header.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let instant = |at: usize| long(at).map(|bits| MonotonicNs(bits as i64));
        if header[..4] != MARK[..] || word(4)? != crc32fast::hash(&header[8..]) {
            return None;
        }
        let length = word(8).filter(|length| *length as usize <= MAX_PAYLOAD)?;
        let block = BlockHeader {
            source: word(16)?,
            encoding: Encoding(u16::from_le_bytes([header[20], header[21]])),
            count: word(24)?,
            before: long(32)?,
            lost: long(40)?,
            first: instant(48)?,
            last: instant(56)?,
        };
        Some((block, length, word(12)?))
    }
}
