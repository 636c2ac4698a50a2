//! The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding).

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    pub(super) fn as_number(self) -> Option<u64> {
        match self {
            WireValue::Number(number) => Some(number),
            WireValue::Bytes(_) => None,
        }
    }

    pub(super) fn as_bytes(self) -> &'a [u8] {
        match self {
            WireValue::Bytes(bytes) => bytes,
            WireValue::Number(_) => &[],
        }
    }
}

/// The fields of a message, up to its end or to invalid data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// The rest is invalid.
    pub(super) damaged: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes, damaged: false }
    }

    fn read_field(&mut self) -> Option<(u32, WireValue<'a>)> {
        let tag = read_varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => WireValue::Number(read_varint(&mut self.rest)?),
            1 => WireValue::Number(u64::from_le_bytes(*self.rest.split_off(..8)?.first_chunk()?)),
            2 => {
                let length = usize::try_from(read_varint(&mut self.rest)?).ok()?;
                WireValue::Bytes(self.rest.split_off(..length)?)
            }
            5 => {
                let bytes = self.rest.split_off(..4)?.first_chunk()?;
                WireValue::Number(u32::from_le_bytes(*bytes).into())
            }
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, WireValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_none() {
            (self.rest, self.damaged) = (&[], true);
        }
        field
    }
}

/// A number of at most 64 bits, seven per byte.
pub(super) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10 {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The numbers of a packed field.
pub(super) fn packed_numbers(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || read_varint(&mut bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_in_every_form() {
        let bytes = [
            &b"\x08\x96\x01"[..],
            b"\x12\x03cat",
            b"\x19\x01\0\0\0\0\0\0\0",
            b"\x25\x02\0\0\0",
            b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ]
        .concat();
        let expected = [
            (1, WireValue::Number(150)),
            (2, WireValue::Bytes(b"cat")),
            (3, WireValue::Number(1)),
            (4, WireValue::Number(2)),
            (5, WireValue::Number(u64::MAX)),
        ];
        assert_eq!(Fields::from_bytes(&bytes).collect::<Vec<_>>(), expected);
        let mut cut = Fields::from_bytes(b"\x12\x05cat");
        assert_eq!(cut.next(), None);
        assert!(cut.damaged);
        assert_eq!(packed_numbers(b"\x01\x96\x01\x80").collect::<Vec<_>>(), [1, 150]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, value) in Fields::from_bytes(&bytes) {
                prop_assert!(value.as_bytes().len() < bytes.len());
            }
            packed_numbers(&bytes).count();
        }
    }
}
