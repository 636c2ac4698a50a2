//! Tracepoints as described by their `format` files (Documentation/trace/events.rst).

use crate::bytes::{ByteOrder, until_nul};
use punctual_core::event::{FieldKind, RecordBytes, RecordField, TracepointFormat};

/// The position of a field in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldPosition {
    /// From the start of the record.
    pub offset: usize,
    /// All of its bytes.
    pub size: usize,
    /// Whether it is signed.
    pub signed: bool,
    pub place: ValuePlace,
}

/// The position of a field's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValuePlace {
    /// In the field.
    Here,
    /// `__data_loc`: offset and length are in the field.
    At,
    /// `__rel_loc`: the offset is relative to the end of the field.
    Behind,
}

/// A tracepoint's description.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordFormat {
    /// `sched_switch`.
    pub name: String,
    /// The `common_type` of its records.
    pub id: u16,
    fields: Vec<Declared>,
    /// The print format.
    pub print: String,
}

/// A field as the file declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Declared {
    name: String,
    /// The number of array elements; else 1.
    count: usize,
    field: FieldPosition,
    kind: FieldKind,
}

/// More fields than any kernel tracepoint has.
const MOST_FIELDS: usize = 256;

impl RecordFormat {
    /// Parses the file's text; `None` without an id or a field.
    pub fn parse(text: &str) -> Option<RecordFormat> {
        let mut format = RecordFormat::default();
        let mut id = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.print = print.trim().to_owned();
            } else if format.fields.len() < MOST_FIELDS {
                format.fields.extend(parse_field(line));
            }
        }
        format.id = id?;
        (!format.fields.is_empty()).then_some(format)
    }

    /// The position of a field; `args[1]` is an element of an array.
    pub fn find_field(&self, name: &str) -> Option<FieldPosition> {
        let whole = |name: &str| self.fields.iter().find(|declared| declared.name == name);
        if let Some(declared) = whole(name) {
            return Some(declared.field);
        }
        let (name, place) = name.strip_suffix(']')?.split_once('[')?;
        let Declared { count, field, .. } = whole(name)?;
        let place: usize = place.parse().ok().filter(|place| place < count)?;
        let size = field.size / count;
        Some(FieldPosition { offset: field.offset + place * size, size, ..*field })
    }

    /// Its own fields in order, without the common ones.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = (&str, FieldPosition)> {
        self.specific_fields().map(|declared| (declared.name.as_str(), declared.field))
    }

    fn specific_fields(&self) -> impl Iterator<Item = &Declared> {
        self.fields.iter().filter(|declared| !declared.name.starts_with("common_"))
    }

    /// The format for displaying records of this tracepoint.
    pub fn to_tracepoint_format(&self, name: String) -> TracepointFormat {
        let behind_common = |declared: &&Declared| declared.field.offset >= RecordBytes::COMMON;
        let fields = self.specific_fields().filter(behind_common).filter_map(|declared| {
            let (offset, size) = (declared.field.offset, declared.field.size);
            let (offset, size) = (u16::try_from(offset).ok()?, u16::try_from(size).ok()?);
            Some(RecordField { name: declared.name.clone(), offset, size, kind: declared.kind })
        });
        TracepointFormat { name, fields: fields.collect() }
    }

    /// The names of its own fields.
    pub fn field_names(&self) -> Vec<&str> {
        self.specific_fields().map(|declared| declared.name.as_str()).collect()
    }

    /// The number of bytes after the common fields needed to display a record.
    pub fn shown_bytes(&self) -> usize {
        let is_text = |of: &Declared| matches!(of.kind, FieldKind::TextAt | FieldKind::TextBehind);
        if self.specific_fields().any(is_text) {
            return RecordBytes::MAX;
        }
        let ends =
            self.specific_fields().map(|declared| declared.field.offset + declared.field.size);
        ends.max().unwrap_or(0).saturating_sub(RecordBytes::COMMON).min(RecordBytes::MAX)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn parse_field(line: &str) -> Option<Declared> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |part: Option<&str>, key: &str| {
        part?.strip_prefix(key)?.parse::<usize>().ok().filter(|number| *number < 1 << 16)
    };
    let (offset, size) = (number(parts.next(), "offset:")?, number(parts.next(), "size:")?);
    let signed = number(parts.next(), "signed:").unwrap_or(0) != 0;
    let name = declaration.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let (name, count) = match name.split_once('[') {
        Some((name, count)) => (name, count.trim_end_matches(']').parse().unwrap_or(1)),
        None => (name, 1),
    };
    let place = match () {
        () if declaration.starts_with("__data_loc") => ValuePlace::At,
        () if declaration.starts_with("__rel_loc") => ValuePlace::Behind,
        () => ValuePlace::Here,
    };
    let field = FieldPosition { offset, size, signed, place };
    let kind = field_kind(declaration, field);
    Some(Declared { name: name.to_owned(), count: count.max(1), field, kind })
}

/// The display of a field, by its type in C.
fn field_kind(declaration: &str, field: FieldPosition) -> FieldKind {
    let is_text = declaration
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == "char");
    let is_array = declaration.contains('[');
    match field.place {
        ValuePlace::At if is_text => FieldKind::TextAt,
        ValuePlace::Behind if is_text => FieldKind::TextBehind,
        ValuePlace::At | ValuePlace::Behind => FieldKind::Bytes,
        ValuePlace::Here if is_text && is_array => FieldKind::Text,
        ValuePlace::Here if is_array || !matches!(field.size, 1 | 2 | 4 | 8) => FieldKind::Bytes,
        ValuePlace::Here if declaration.contains('*') => FieldKind::Address,
        ValuePlace::Here if field.signed => FieldKind::Signed,
        ValuePlace::Here => FieldKind::Unsigned,
    }
}

impl FieldPosition {
    /// The number in this field; `None` if the record is too short, or it is not a number.
    #[inline]
    pub fn read_number(self, record: &[u8], order: ByteOrder) -> Option<i64> {
        if !(1..=8).contains(&self.size) {
            return None;
        }
        let number = order.unsigned_at(record, self.offset, self.size)? as i64;
        let unused = 64 - 8 * self.size as u32;
        Some(if self.signed { number << unused >> unused } else { number })
    }

    /// The bytes in the field, or referred to by it, up to the first NUL.
    #[inline]
    pub fn read_text(self, record: &[u8], order: ByteOrder) -> &[u8] {
        let place = || {
            let location = order.unsigned_at(record, self.offset, self.size.min(4))?;
            let (offset, length) = (location as usize & 0xffff, location as usize >> 16 & 0xffff);
            let from = match self.place {
                ValuePlace::Behind => self.offset + self.size + offset,
                _ => offset,
            };
            record.get(from..(from + length).min(record.len()))
        };
        let bytes = match self.place {
            ValuePlace::Here => record.get(self.offset..self.offset + self.size),
            _ => place(),
        };
        until_nul(bytes.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SWITCH: &str = "name: sched_switch\nID: 316\nformat:\n\tfield:unsigned short \
                          common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int \
                          common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:char \
                          prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t \
                          prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:void * \
                          hrtimer;\toffset:32;\tsize:8;\tsigned:0;\n\tfield:unsigned long \
                          args[2];\toffset:40;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] \
                          name;\toffset:56;\tsize:4;\tsigned:0;\n\tfield:__rel_loc char[] \
                          label;\toffset:60;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n";

    #[test]
    fn fields_are_decoded_by_their_format_in_either_byte_order() {
        let format = RecordFormat::parse(SWITCH).unwrap();
        assert_eq!((format.id, format.name.as_str()), (316, "sched_switch"));
        assert_eq!(format.print, "\"x\"");
        assert_eq!(
            format.find_field("args[1]").map(|field| (field.offset, field.size)),
            Some((48, 8))
        );
        assert_eq!(format.find_field("args[2]"), None);
        let mut record = [0; 76];
        record[8..11].copy_from_slice(b"cat");
        record[24..28].copy_from_slice(&(-3i32).to_le_bytes());
        record[56..60].copy_from_slice(&(4u32 << 16 | 64).to_le_bytes());
        record[60..64].copy_from_slice(&(9u32 << 16 | 4).to_le_bytes());
        record[64..76].copy_from_slice(b"eth\0label\0..");
        let text =
            |name: &str| format.find_field(name).unwrap().read_text(&record, ByteOrder::Little);
        assert_eq!((text("prev_comm"), text("name")), (&b"cat"[..], &b"eth"[..]));
        assert_eq!(text("label"), b"label");
        let pid = format.find_field("prev_pid").unwrap();
        assert_eq!(pid.read_number(&record, ByteOrder::Little), Some(-3));
        assert_eq!(pid.read_number(&record, ByteOrder::Big), Some(-0x0200_0001));
        assert_eq!(pid.read_number(&record[..20], ByteOrder::Little), None);
        let own: Vec<&str> = format.own_fields().map(|(name, _)| name).collect();
        assert_eq!(own, ["prev_comm", "prev_pid", "hrtimer", "args", "name", "label"]);
    }

    #[test]
    fn fields_are_shown_as_they_are_declared() {
        let text = "name: kmalloc\nID: 5\nformat:\n\tfield:int \
                    common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:unsigned long \
                    call_site;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:const void * \
                    ptr;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:int \
                    node;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:char \
                    comm[16];\toffset:28;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] \
                    filename;\toffset:44;\tsize:4;\tsigned:0;\n\tfield:unsigned long \
                    args[2];\toffset:48;\tsize:16;\tsigned:0;\n\tfield:__data_loc cpumask_t \
                    mask;\toffset:64;\tsize:4;\tsigned:0;\n\tfield:bool \
                    late;\toffset:200;\tsize:1;\tsigned:0;\n";
        let format = RecordFormat::parse(text).unwrap();
        use FieldKind::*;
        let shown = format.to_tracepoint_format("kmem:kmalloc".to_owned()).fields;
        let kinds: Vec<(&str, FieldKind)> =
            shown.iter().map(|field| (field.name.as_str(), field.kind)).collect();
        let expected = [
            ("call_site", Unsigned),
            ("ptr", Address),
            ("node", Signed),
            ("comm", Text),
            ("filename", TextAt),
            ("args", Bytes),
            ("mask", Bytes),
            ("late", Unsigned),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(format.shown_bytes(), RecordBytes::MAX);
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "(ID: [0-9]{1,6}\n)?(\tfield:(__data_loc |__rel_loc )?[a-z *\\[\\]0-9]{0,20};\
                     \toffset:[0-9]{0,9};\tsize:[0-9]{0,9};\tsigned:[01];\n){0,5}",
            record in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Some(format) = RecordFormat::parse(&text) {
                for Declared { field, .. } in &format.fields {
                    field.read_number(&record, ByteOrder::Big);
                    field.read_text(&record, ByteOrder::Little);
                }
                format.find_field("a[1]");
                prop_assert!(format.shown_bytes() <= RecordBytes::MAX);
                format.to_tracepoint_format(String::new())
                    .format_fields(&RecordBytes::new(&record));
            }
        }
    }
}
