//! Numbers in either byte order.

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ByteOrder {
    /// The lowest byte first.
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// The number in at most 8 bytes.
    #[inline]
    pub fn unsigned(self, bytes: &[u8]) -> u64 {
        let mut wide = [0; 8];
        let length = bytes.len().min(8);
        match self {
            ByteOrder::Little => {
                wide[..length].copy_from_slice(&bytes[..length]);
                u64::from_le_bytes(wide)
            }
            ByteOrder::Big => {
                wide[8 - length..].copy_from_slice(&bytes[..length]);
                u64::from_be_bytes(wide)
            }
        }
    }

    /// The number of `size` bytes at `at`; `None` if that is out of range.
    #[inline]
    pub fn at(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        Some(self.unsigned(bytes.get(at..at.checked_add(size)?)?))
    }
}
