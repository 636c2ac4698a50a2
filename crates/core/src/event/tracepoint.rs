//! Tracepoints recorded by name: their records as written by the kernel, and the decoding of these.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The index of a tracepoint in [`super::Names::tracepoints`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TracepointId(pub u32);

/// The bytes of a record after its common fields, up to a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordBytes {
    count: u8,
    bytes: [u8; RecordBytes::MAX],
}

impl RecordBytes {
    /// The maximum number of bytes kept: nearly all kernel records are shorter.
    pub const MAX: usize = 72;
    /// The size of the common fields before them: number of the tracepoint, flags, thread.
    pub const COMMON: usize = 8;

    /// Keeps the first of these bytes.
    pub fn new(bytes: &[u8]) -> RecordBytes {
        let count = bytes.len().min(RecordBytes::MAX);
        let mut record = RecordBytes { count: count as u8, bytes: [0; RecordBytes::MAX] };
        record.bytes[..count].copy_from_slice(&bytes[..count]);
        record
    }
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count).min(RecordBytes::MAX)]
    }
    /// A range of the whole record, including common fields; `None` if it was not completely kept.
    fn record_range(&self, offset: usize, size: usize) -> Option<&[u8]> {
        let from = offset.checked_sub(RecordBytes::COMMON)?;
        self.as_bytes().get(from..from.checked_add(size)?)
    }
}

impl std::fmt::Debug for RecordBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordBytes({:02x?})", self.as_bytes())
    }
}

/// The encoding of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    Signed,
    Unsigned,
    /// A pointer, in the kernel or in user space.
    Address,
    /// Characters up to the first NUL.
    Text,
    /// The position of characters in the record: `__data_loc`.
    TextAt,
    /// The same, relative to the end of the field: `__rel_loc`.
    TextBehind,
    Bytes,
}

/// A field of a tracepoint, as its format file describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordField {
    /// Its name in the tracepoint's format.
    pub name: String,
    /// Its offset in the whole record.
    pub offset: u16,
    pub size: u16,
    pub kind: FieldKind,
}

/// A tracepoint recorded by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TracepointFormat {
    /// `kmem:kmalloc`.
    pub name: String,
    pub fields: Vec<RecordField>,
}

impl TracepointFormat {
    /// The fields of a record in the format of trace-cmd(1): `bytes_req=20 bytes_alloc=32`. Fields
    /// that were not kept are `?`.
    pub fn format_fields(&self, record: &RecordBytes) -> String {
        let mut text = String::new();
        for field in &self.fields {
            let space = if text.is_empty() { "" } else { " " };
            let value = field.format_value(record).unwrap_or_else(|| "?".to_owned());
            // Writing to a String cannot fail.
            let _ = write!(text, "{space}{}={value}", field.name);
            if text.len() > MOST_TEXT {
                text.push_str(" …");
                break;
            }
        }
        text
    }
}

/// The maximum length of a description: longer than for any kernel record, as a hostile bundle may
/// have thousands of fields.
const MOST_TEXT: usize = 1000;

impl RecordField {
    /// Its value as an unsigned number; `None` if it was not kept or is not a number.
    pub fn read_number(&self, record: &RecordBytes) -> Option<u64> {
        let is_number =
            matches!(self.kind, FieldKind::Signed | FieldKind::Unsigned | FieldKind::Address);
        let bytes = record.record_range(self.offset.into(), self.size.into())?;
        (is_number && (1..=8).contains(&bytes.len())).then(|| decode_unsigned(bytes))
    }

    /// Its value as text; `None` if it was not kept.
    fn format_value(&self, record: &RecordBytes) -> Option<String> {
        let bytes = record.record_range(self.offset.into(), self.size.into())?;
        let number = || decode_unsigned(bytes);
        Some(match self.kind {
            FieldKind::Unsigned if (1..=8).contains(&bytes.len()) => number().to_string(),
            FieldKind::Signed if (1..=8).contains(&bytes.len()) => {
                let unused = 64 - 8 * bytes.len() as u32;
                ((number() << unused) as i64 >> unused).to_string()
            }
            FieldKind::Address if (1..=8).contains(&bytes.len()) => format!("{:#x}", number()),
            FieldKind::Text => decode_text(bytes),
            FieldKind::TextAt | FieldKind::TextBehind => {
                let (offset, size) = (number() as usize & 0xffff, number() as usize >> 16 & 0xffff);
                let from = match self.kind {
                    FieldKind::TextBehind => {
                        usize::from(self.offset) + usize::from(self.size) + offset
                    }
                    _ => offset,
                };
                let kept = record.as_bytes().len() + RecordBytes::COMMON;
                let cut = size > kept.saturating_sub(from);
                let size = size.min(kept.saturating_sub(from));
                decode_text(record.record_range(from, size)?) + if cut { "…" } else { "" }
            }
            _ => bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
        })
    }
}

/// Recorded kernels are little-endian.
fn decode_unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn decode_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(name: &str, offset: u16, size: u16, kind: FieldKind) -> RecordField {
        RecordField { name: name.to_owned(), offset, size, kind }
    }

    #[test]
    fn tracepoint_fields_are_decoded_by_their_format() {
        let fields = vec![
            field("call_site", 8, 8, FieldKind::Address),
            field("bytes_req", 16, 4, FieldKind::Unsigned),
            field("node", 20, 4, FieldKind::Signed),
            field("comm", 24, 4, FieldKind::Text),
            field("name", 28, 4, FieldKind::TextAt),
            field("label", 32, 4, FieldKind::TextBehind),
            field("flags", 36, 3, FieldKind::Bytes),
            field("late", 60, 8, FieldKind::Unsigned),
        ];
        let format = TracepointFormat { name: "a:b".to_owned(), fields };
        let mut record = vec![0; 52];
        record[..8].copy_from_slice(&0xffff_8880_0000_1000u64.to_le_bytes());
        record[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        record[12..16].copy_from_slice(&(-1i32).to_le_bytes());
        record[16..20].copy_from_slice(b"cat\0");
        record[20..24].copy_from_slice(&(5u32 << 16 | 40).to_le_bytes());
        // From byte 36 of the record on.
        record[24..28].copy_from_slice(&(30u32 << 16 | 9).to_le_bytes());
        record[28..31].copy_from_slice(&[1, 2, 0xff]);
        record[32..37].copy_from_slice(b"vda1\0");
        record[37..52].copy_from_slice(b"abcdefghijklmno");
        let text = format.format_fields(&RecordBytes::new(&record));
        let expected = "call_site=0xffff888000001000 bytes_req=4294967295 node=-1 comm=cat \
                        name=vda1 label=abcdefghijklmno… flags=0102ff late=?";
        assert_eq!(text, expected);
        let number = |place: usize| format.fields[place].read_number(&RecordBytes::new(&record));
        assert_eq!((number(0), number(1)), (Some(0xffff_8880_0000_1000), Some(0xffff_ffff)));
        assert_eq!((number(3), number(6), number(7)), (None, None, None), "none, bytes, not kept");
    }

    proptest! {
        #[test]
        fn no_record_and_no_format_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            fields in proptest::collection::vec((any::<u16>(), any::<u16>(), 0usize..7), 0..40),
            near in any::<bool>(),
        ) {
            use FieldKind::*;
            let kinds = [Signed, Unsigned, Address, Text, TextAt, TextBehind, Bytes];
            let bound = if near { 80 } else { u16::MAX };
            let fields = fields
                .into_iter()
                .map(|(at, size, kind)| field("f", at % bound, size % bound, kinds[kind]));
            let format = TracepointFormat { name: String::new(), fields: fields.collect() };
            let record = RecordBytes::new(&bytes);
            prop_assert_eq!(record.as_bytes(), &bytes[..bytes.len().min(RecordBytes::MAX)]);
            prop_assert!(format.format_fields(&record).len() < MOST_TEXT + 1000);
        }
    }
}
