//! Reads the bits of a packet by a layout.

use super::layout::{ElementCount, IntegerLayout, PacketStep};
use crate::bytes::ByteOrder;

/// A number or a text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum CtfValue {
    #[default]
    None,
    Number(i64),
    /// The range of a text's bytes in the packet.
    Text(u64, u64),
}

impl CtfValue {
    pub(super) fn as_number(self) -> Option<i64> {
        match self {
            CtfValue::Number(number) => Some(number),
            _ => None,
        }
    }
}

/// Why reading stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadStop {
    /// More bytes are needed than available.
    Further,
    /// It exceeds the packet, or contradicts the metadata.
    Broken,
}

/// A part of a packet. All positions are in bits from the packet's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'a> {
    /// The available bytes, and their position: at a whole byte.
    pub(super) bytes: &'a [u8],
    pub(super) from: u64,
    pub(super) at: u64,
    /// The end of the packet's content.
    pub(super) end: u64,
}

impl<'a> Bits<'a> {
    pub(super) fn read(
        &mut self,
        layout: &PacketStep,
        values: &mut [CtfValue],
    ) -> Result<(), ReadStop> {
        match layout {
            PacketStep::Number { form, place } => {
                self.align_to(form.align);
                values[*place as usize] = CtfValue::Number(self.read_number(*form)?);
            }
            PacketStep::Skipped { bits, align } => {
                self.align_to(*align);
                self.skip_bits(*bits)?;
            }
            PacketStep::Text { place } => {
                self.align_to(8);
                let rest = self.remaining_bytes();
                let length = rest.iter().position(|byte| *byte == 0).ok_or_else(|| {
                    let is_complete = self.from + self.bytes.len() as u64 * 8 >= self.end;
                    if is_complete { ReadStop::Broken } else { ReadStop::Further }
                })?;
                let from = self.at / 8;
                values[*place as usize] = CtfValue::Text(from, from + length as u64);
                self.skip_bits(length as u64 * 8 + 8)?;
            }
            PacketStep::Characters { count, place } => {
                self.align_to(8);
                let from = self.at / 8;
                let count = resolve_count(*count, values)?;
                self.skip_bits(count.checked_mul(8).ok_or(ReadStop::Broken)?)?;
                values[*place as usize] = CtfValue::Text(from, from + count);
            }
            PacketStep::Struct { align, fields } => {
                self.align_to(*align);
                for field in fields {
                    self.read(field, values)?;
                }
            }
            PacketStep::Array { element, count } => self.read_array(element, *count, values)?,
            PacketStep::Variant { tag, cases } => {
                let tag = values[*tag as usize].as_number().ok_or(ReadStop::Broken)?;
                let is_of = |(first, last): &(i64, i64)| (*first..=*last).contains(&tag);
                let case = cases.iter().find(|(ranges, _)| ranges.iter().any(is_of));
                self.read(&case.ok_or(ReadStop::Broken)?.1, values)?;
            }
        }
        Ok(())
    }

    fn read_array(
        &mut self,
        element: &PacketStep,
        count: ElementCount,
        values: &mut [CtfValue],
    ) -> Result<(), ReadStop> {
        let count = resolve_count(count, values)?;
        self.align_to(element.alignment());
        if let PacketStep::Skipped { bits, .. } = element {
            return self.skip_bits(bits.checked_mul(count).ok_or(ReadStop::Broken)?);
        }
        for _ in 0..count {
            let before = self.at;
            self.read(element, values)?;
            // Empty elements may have any count.
            if self.at == before {
                break;
            }
        }
        Ok(())
    }

    fn align_to(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(align.into());
    }

    /// Skips bits, which must exist.
    fn skip_bits(&mut self, bits: u64) -> Result<(), ReadStop> {
        let to = self.at.checked_add(bits).filter(|to| *to <= self.end).ok_or(ReadStop::Broken)?;
        if to > self.from + self.bytes.len() as u64 * 8 {
            return Err(ReadStop::Further);
        }
        self.at = to;
        Ok(())
    }

    /// The available bytes from here to the end of the packet.
    fn remaining_bytes(&self) -> &'a [u8] {
        let from = (self.at.saturating_sub(self.from) / 8) as usize;
        let to = (self.end.saturating_sub(self.from) / 8) as usize;
        let to = to.min(self.bytes.len());
        self.bytes.get(from..to).unwrap_or_default()
    }

    fn read_number(&mut self, form: IntegerLayout) -> Result<i64, ReadStop> {
        if form.size == 0 {
            return self.read_leb128(form.signed);
        }
        let at = self.at;
        self.skip_bits(form.size.into())?;
        let (place, size) = (at - self.from, u64::from(form.size));
        let number = if place % 8 == 0 && size % 8 == 0 {
            let from = (place / 8) as usize;
            form.order.read_unsigned(&self.bytes[from..from + (size / 8) as usize])
        } else {
            self.odd_bits(place, size, form.order)
        };
        let unused = 64 - form.size;
        Ok(match form.signed {
            true => (number as i64) << unused >> unused,
            false => number as i64,
        })
    }

    /// Groups of seven bits, the lowest first; the highest bit of a byte is set if more follow
    /// (LEB128).
    fn read_leb128(&mut self, signed: bool) -> Result<i64, ReadStop> {
        let (mut number, mut size) = (0, 0);
        loop {
            let at = self.at;
            self.skip_bits(8)?;
            let byte = self.bytes[((at - self.from) / 8) as usize];
            number |= i64::from(byte & 0x7f) << size;
            size += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if size >= 64 {
                return Err(ReadStop::Broken);
            }
        }
        let unused = 64u32.saturating_sub(size);
        Ok(if signed { number << unused >> unused } else { number })
    }

    /// Bits that are not whole bytes: counted from the lowest of a byte in little-endian order,
    /// from the highest in big-endian order (CTF 1.8, 4.1.5).
    fn odd_bits(&self, place: u64, size: u64, order: ByteOrder) -> u64 {
        let bit = |at: u64| match order {
            ByteOrder::Little => self.bytes[(at / 8) as usize] >> (at % 8) & 1,
            ByteOrder::Big => self.bytes[(at / 8) as usize] >> (7 - at % 8) & 1,
        };
        (0..size).fold(0, |number, at| match order {
            ByteOrder::Little => number | u64::from(bit(place + at)) << at,
            ByteOrder::Big => number << 1 | u64::from(bit(place + at)),
        })
    }
}

fn resolve_count(count: ElementCount, values: &[CtfValue]) -> Result<u64, ReadStop> {
    match count {
        ElementCount::Fixed(count) => Ok(count),
        ElementCount::At(place) => {
            let number = values[place as usize].as_number();
            number.and_then(|number| u64::try_from(number).ok()).ok_or(ReadStop::Broken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(bytes: &[u8]) -> Bits<'_> {
        Bits { bytes, from: 0, at: 0, end: bytes.len() as u64 * 8 }
    }

    #[test]
    fn bits_count_from_either_end_of_a_byte() {
        // id = 2 in 5 bits, 0x123456 in 27: lttng-modules' event_header_compact.
        let little = (2u32 | 0x123456 << 5).to_le_bytes();
        let big = (2u32 << 27 | 0x123456).to_be_bytes();
        for (bytes, order) in [(little, ByteOrder::Little), (big, ByteOrder::Big)] {
            let mut bits = bits(&bytes);
            let form = |size| IntegerLayout { size, align: 1, signed: false, order };
            assert_eq!(bits.read_number(form(5)), Ok(2));
            assert_eq!(bits.read_number(form(27)), Ok(0x123456));
            assert_eq!(bits.read_number(form(1)), Err(ReadStop::Broken));
        }
    }

    #[test]
    fn reading_beyond_the_buffer_asks_for_more_bytes() {
        let form = IntegerLayout { size: 16, align: 8, signed: true, order: ByteOrder::Little };
        let mut part = Bits { bytes: b"\xff\xff\x01", from: 0, at: 0, end: 40 };
        assert_eq!(part.read_number(form), Ok(-1));
        assert_eq!(part.read_number(form), Err(ReadStop::Further));
        let mut values = [CtfValue::None; 2];
        let text = PacketStep::Text { place: 0 };
        assert_eq!(part.read(&text, &mut values), Err(ReadStop::Further));
        part.end = 24;
        assert_eq!(part.read(&text, &mut values), Err(ReadStop::Broken));
        let mut whole = bits(b"ab\0cd");
        whole.read(&text, &mut values).unwrap();
        let rest = PacketStep::Characters { count: ElementCount::Fixed(2), place: 1 };
        whole.read(&rest, &mut values).unwrap();
        assert_eq!(values, [CtfValue::Text(0, 2), CtfValue::Text(3, 5)]);
        let nothing = Box::new(PacketStep::Struct { align: 1, fields: Vec::new() });
        let many = PacketStep::Array { element: nothing, count: ElementCount::Fixed(u64::MAX) };
        assert_eq!(whole.read(&many, &mut values), Ok(()));
    }
}
