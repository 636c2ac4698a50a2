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
    pub(crate) fn read_unsigned(self, bytes: &[u8]) -> u64 {
        // The usual sizes are single loads.
        let ordered = |number: u64, unused: u32| match self {
            ByteOrder::Little => number,
            ByteOrder::Big => number.swap_bytes() >> unused,
        };
        if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
            return ordered(u64::from_le_bytes(bytes), 0);
        }
        if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
            return ordered(u32::from_le_bytes(bytes).into(), 32);
        }
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
    pub(crate) fn unsigned_at(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        Some(self.read_unsigned(bytes.get(at..at.checked_add(size)?)?))
    }
}

/// The bytes before the first NUL.
#[inline]
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut end = 0;
    while let Some(word) = bytes[end..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set is that of the first NUL.
        let nul = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if nul != 0 {
            return &bytes[..end + nul.trailing_zeros() as usize / 8];
        }
        end += 8;
    }
    let rest = bytes[end..].iter().position(|byte| *byte == 0);
    &bytes[..rest.map_or(bytes.len(), |rest| end + rest)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_text_ends_before_its_first_nul(
            bytes in proptest::collection::vec(
                prop::sample::select(vec![0, 1, 0x7f, 0x80, 255]),
                0..40,
            ),
        ) {
            let expected = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            prop_assert_eq!(until_nul(&bytes), expected);
        }
    }
}
