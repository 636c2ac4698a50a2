//! The text of a metadata file, which may be divided into packets.

use super::metadata_error;
use crate::bytes::ByteOrder;
use crate::{ReadAt, TraceError};

/// More than any tracer writes.
const MAX_METADATA: u64 = 64 << 20;
/// The first bytes of a metadata packet (CTF 1.8, 7.1).
const MAGIC: u64 = 0x75d1_1d57;
/// After the magic number a UUID, a checksum, the sizes of content and packet in bits, and five
/// bytes: compression, encryption, kind of checksum, version.
const HEAD: usize = 37;

/// The byte order of metadata in packets; `None` for other bytes.
fn detect_order(head: &[u8]) -> Option<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| order.unsigned_at(head, 0, 4) == Some(MAGIC))
}

/// The text of a metadata file.
pub(super) fn read(file: &dyn ReadAt) -> Result<String, TraceError> {
    let size = file.size()?;
    let mut bytes = vec![0; size.min(MAX_METADATA) as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    if size > MAX_METADATA {
        return Err(TraceError::Unsupported("the metadata of this trace is too large".to_owned()));
    }
    let text = match detect_order(&bytes) {
        Some(order) => unpack_packets(&bytes, order)?,
        None => bytes,
    };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn unpack_packets(mut rest: &[u8], order: ByteOrder) -> Result<Vec<u8>, TraceError> {
    let mut text = Vec::new();
    while !rest.is_empty() {
        let number = |at| order.unsigned_at(rest, at, 4).unwrap_or(0);
        let (content, packet) = ((number(24) / 8) as usize, (number(28) / 8) as usize);
        let whole = (HEAD..=packet).contains(&content) && packet <= rest.len();
        if number(0) != MAGIC || !whole {
            return Err(metadata_error(0, "a packet of it has no sound size"));
        }
        if rest[32..34] != [0, 0] {
            return Err(TraceError::Unsupported(
                "the metadata of this trace is compressed or encrypted".to_owned(),
            ));
        }
        text.extend(&rest[HEAD..content]);
        rest = &rest[packet..];
    }
    Ok(text)
}
