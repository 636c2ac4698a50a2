//! Integers of variable length (LEB128), signed ones zigzag-coded first: both as in Protocol
//! Buffers.

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// A reader over a payload; `None` if it ends too early or an integer exceeds 64 bits.
pub(crate) struct PayloadCursor<'a>(pub &'a [u8]);

impl<'a> PayloadCursor<'a> {
    pub(crate) fn take_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn take_signed(&mut self) -> Option<i64> {
        let value = self.take_varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next `count` bytes.
    pub(crate) fn take_bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}
