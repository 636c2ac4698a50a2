//! Protocol Buffers' wire format, the subset that a trace needs
//! (protobuf.dev/programming-guides/encoding).

/// A message under construction. Fields are appended; zeros are written too, because presence is
/// significant.
#[derive(Default)]
pub struct MessageWriter(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const DELIMITED: u64 = 2;

impl MessageWriter {
    /// Its bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Writes any of the unsigned types, bool and enumerations.
    pub(crate) fn write_uint(&mut self, field: u32, value: u64) -> &mut MessageWriter {
        self.write_tag(field, VARINT);
        self.write_varint(value);
        self
    }

    /// Writes int32 and int64: negative values take ten bytes.
    pub(crate) fn write_int(&mut self, field: u32, value: i64) -> &mut MessageWriter {
        self.write_uint(field, value as u64)
    }

    /// Writes fixed64.
    pub(crate) fn write_fixed(&mut self, field: u32, value: u64) -> &mut MessageWriter {
        self.write_tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Writes string and bytes.
    pub(crate) fn write_text(&mut self, field: u32, text: &str) -> &mut MessageWriter {
        self.write_delimited(field, text.as_bytes())
    }

    /// Writes a complete message.
    pub(crate) fn write_delimited(&mut self, field: u32, bytes: &[u8]) -> &mut MessageWriter {
        self.write_tag(field, DELIMITED);
        self.write_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes a nested message. Most are shorter than 128 bytes: one byte is reserved for the
    /// length and enlarged if needed.
    pub(crate) fn write_message(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut MessageWriter),
    ) -> &mut MessageWriter {
        self.write_tag(field, DELIMITED);
        let place = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - place - 1;
        if length < 0x80 {
            self.0[place] = length as u8;
        } else {
            let (prefix, size) = encode_varint(length as u64);
            self.0.splice(place..=place, prefix[..size].iter().copied());
        }
        self
    }

    fn write_tag(&mut self, field: u32, kind: u64) {
        self.write_varint(u64::from(field) << 3 | kind);
    }

    fn write_varint(&mut self, value: u64) {
        let (bytes, size) = encode_varint(value);
        self.0.extend_from_slice(&bytes[..size]);
    }
}

/// Seven bits per byte, the lowest first; the top bit is set if more follow.
fn encode_varint(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut size = 0;
    loop {
        bytes[size] = (value & 0x7f) as u8;
        value >>= 7;
        size += 1;
        if value == 0 {
            return (bytes, size);
        }
        bytes[size - 1] |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_specification_writes_its_examples() {
        let mut message = MessageWriter::default();
        message.write_uint(1, 150);
        assert_eq!(message.as_bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.write_text(2, "testing").write_message(3, |inner| {
            inner.write_uint(1, 150);
        });
        assert_eq!(
            message.as_bytes(),
            [b"\x12\x07testing".as_slice(), &[0x1a, 3, 0x08, 0x96, 0x01]].concat()
        );
        message.clear();
        message.write_int(1, -2);
        assert_eq!(
            message.as_bytes(),
            [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    #[test]
    fn long_messages_have_long_lengths() {
        let mut message = MessageWriter::default();
        message.write_message(1, |inner| {
            inner.write_text(2, &"x".repeat(300));
        });
        assert_eq!(message.as_bytes()[..5], [0x0a, 0xaf, 0x02, 0x12, 0xac]);
        assert_eq!(message.as_bytes().len(), 3 + 3 + 300);
    }
}
