//! Compressed records of perf.data: one zstd frame over all of them, which perf never ends.

use ruzstd::decoding::FrameDecoder;
use std::io;

/// Decompresses consecutive records.
pub(super) struct Packed {
    decoder: FrameDecoder,
    /// An incomplete block.
    waiting: Vec<u8>,
    begun: bool,
    /// The maximum amount that the decoder holds back.
    pub(super) window: u64,
    pub(super) given: u64,
}

/// More than perf uses: its highest level has 8 MiB.
const MOST_WINDOW: u64 = 64 << 20;
/// The maximum size of a block is 128 KiB plus its header.
const MOST_WAITING: usize = 1 << 18;
/// An empty raw block marked as the last of its frame, and space for a checksum.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl Packed {
    pub(super) fn new() -> Packed {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MOST_WINDOW);
        Packed { decoder, waiting: Vec::new(), begun: false, window: 0, given: 0 }
    }

    /// Takes a record's content, and appends the decompressed data available.
    pub(super) fn unpack_record(&mut self, packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.waiting.extend_from_slice(packed);
        if self.waiting.len() > MOST_WAITING {
            return Err(invalid_data("a block has no end"));
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = waiting.as_slice();
        if !self.begun {
            if rest.len() < MOST_HEAD {
                self.waiting = waiting;
                return Ok(());
            }
            self.decoder.reset(&mut rest).map_err(|why| invalid_data(&why.to_string()))?;
            self.window = window_size(&waiting).unwrap_or(MOST_WINDOW);
            self.begun = true;
        }
        let used = self.decode(rest, out)?;
        if self.decoder.is_finished() {
            self.begun = false;
        }
        self.waiting = rest.get(used..).unwrap_or_default().to_vec();
        Ok(())
    }

    /// Whether an incomplete block is left.
    pub(super) fn has_rest(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends the input: the decoder returns the rest.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if std::mem::take(&mut self.begun) {
            self.decode(&END, out)?;
        }
        Ok(())
    }

    fn decode(&mut self, mut from: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let whole = from.len();
        let mut bytes = vec![0; 1 << 16];
        loop {
            let (read, written) = self
                .decoder
                .decode_from_to(from, &mut bytes)
                .map_err(|why| invalid_data(&why.to_string()))?;
            from = from.get(read..).unwrap_or_default();
            out.extend_from_slice(&bytes[..written]);
            self.given += written as u64;
            if written == 0 && (read == 0 || from.is_empty()) {
                return Ok(whole - from.len());
            }
        }
    }
}

/// RFC 8878, 3.1.1.1: magic, descriptor, window, dictionary, content size.
const MOST_HEAD: usize = 18;

/// The window in a frame's header; `None` if its size is that of the content.
fn window_size(head: &[u8]) -> Option<u64> {
    let (descriptor, window) = (head.get(4)?, u64::from(*head.get(5)?));
    let base = 1u64 << (10 + (window >> 3));
    (descriptor & 1 << 5 == 0).then(|| base + base / 8 * (window & 7))
}

fn invalid_data(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {why}"))
}
