//! Reading `events/SYSTEM/NAME/format` (Documentation/trace/events.rst).

use punctual_core::event::{FieldKind, RecordBytes, RecordField, TracepointFormat};

/// Where a field lies in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) signed: bool,
}

/// The fields of a tracepoint, by name.
pub(crate) trait Fields {
    fn field(&self, name: &str) -> Option<Field>;
}

/// A tracepoint's description.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Format {
    /// As in `common_type` of its records.
    pub(crate) id: u16,
    fields: Vec<(String, Field)>,
    /// All that are not common to all tracepoints, for who shows them.
    described: Vec<RecordField>,
}

impl Format {
    /// Reads the file's text; `None` when it has no id or no field.
    pub(crate) fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: Vec<(String, Field)> = text.lines().filter_map(field).collect();
        let described = text.lines().filter_map(described).take(MOST_FIELDS).collect();
        (!fields.is_empty()).then_some(Format { id, fields, described })
    }

    /// How records of this tracepoint are shown.
    pub(crate) fn describe(&self, name: String) -> TracepointFormat {
        TracepointFormat { name, fields: self.described.clone() }
    }

    /// How many bytes behind the common fields a record needs to be shown.
    pub(crate) fn shown_bytes(&self) -> usize {
        let is_text =
            |field: &RecordField| matches!(field.kind, FieldKind::TextAt | FieldKind::TextBehind);
        if self.described.iter().any(is_text) {
            return RecordBytes::MOST;
        }
        let end = |field: &RecordField| usize::from(field.offset) + usize::from(field.size);
        let end = self.described.iter().map(end).max().unwrap_or(RecordBytes::COMMON);
        end.saturating_sub(RecordBytes::COMMON).min(RecordBytes::MOST)
    }
}

impl Fields for Format {
    fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, field)| *field)
    }
}

/// No tracepoint of the kernel has as many.
const MOST_FIELDS: usize = 128;

/// The same line, with how the field is to be shown; `None` for common fields.
fn described(line: &str) -> Option<RecordField> {
    let (name, at) = field(line)?;
    let declaration = line.trim().strip_prefix("field:")?.split(';').next()?.trim();
    if name.starts_with("common_") || at.offset < RecordBytes::COMMON {
        return None;
    }
    let is_text = declaration
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == "char");
    let (at_place, behind) =
        (declaration.starts_with("__data_loc"), declaration.starts_with("__rel_loc"));
    let is_array = declaration.contains('[');
    let kind = match () {
        () if is_text && at_place => FieldKind::TextAt,
        () if is_text && behind => FieldKind::TextBehind,
        () if at_place || behind => FieldKind::Bytes,
        () if is_text && is_array => FieldKind::Text,
        () if is_array || !matches!(at.size, 1 | 2 | 4 | 8) => FieldKind::Bytes,
        () if declaration.contains('*') => FieldKind::Address,
        () if at.signed => FieldKind::Signed,
        () => FieldKind::Unsigned,
    };
    let (offset, size) = (u16::try_from(at.offset).ok()?, u16::try_from(at.size).ok()?);
    Some(RecordField { name, offset, size, kind })
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |part: Option<&str>, key: &str| {
        part?.strip_prefix(key)?.parse::<usize>().ok().filter(|number| *number < 1 << 16)
    };
    let (offset, size) = (number(parts.next(), "offset:")?, number(parts.next(), "size:")?);
    let signed = number(parts.next(), "signed:").unwrap_or(0) != 0;
    let name = declaration.trim().rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let name = name.split('[').next()?;
    Some((name.to_owned(), Field { offset, size, signed }))
}

impl Field {
    /// The number in this field; 0 where the record is too short.
    pub(crate) fn number(self, record: &[u8]) -> i64 {
        let Some(bytes) = record.get(self.offset..self.offset + self.size.min(8)) else { return 0 };
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let number = i64::from_le_bytes(wide);
        match bytes.len() {
            n @ 1..8 if self.signed => number << (64 - n * 8) >> (64 - n * 8),
            _ => number,
        }
    }

    /// The bytes in this field.
    pub(crate) fn bytes(self, record: &[u8]) -> &[u8] {
        record.get(self.offset..self.offset + self.size).unwrap_or_default()
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
                          hrtimer;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"x\"\n";

    #[test]
    fn fields_lie_where_the_kernel_says() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!(format.id, 316);
        assert_eq!(format.field("prev_comm"), Some(Field { offset: 8, size: 16, signed: false }));
        assert_eq!(format.field("hrtimer"), Some(Field { offset: 32, size: 8, signed: false }));
        let mut record = [0; 40];
        record[24..28].copy_from_slice(&(-3i32).to_le_bytes());
        assert_eq!(format.field("prev_pid").unwrap().number(&record), -3);
        assert_eq!(format.field("prev_pid").unwrap().number(&record[..20]), 0);
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
        let format = Format::parse(text).unwrap();
        use FieldKind::*;
        let shown = format.describe("kmem:kmalloc".to_owned()).fields;
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
        assert_eq!(format.shown_bytes(), RecordBytes::MOST);
        assert_eq!(Format::parse(SWITCH).unwrap().shown_bytes(), 32);
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "(ID: [0-9]{1,6}\n)?(\tfield:[a-z *\\[\\]0-9]{0,20};\toffset:[0-9]{0,9};\
                     \tsize:[0-9]{0,9};\tsigned:[01];\n){0,5}",
            record in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Some(format) = Format::parse(&text) {
                for (_, field) in &format.fields {
                    field.number(&record);
                    field.bytes(&record);
                }
                prop_assert!(format.shown_bytes() <= RecordBytes::MOST);
                format.describe(String::new()).describe(&RecordBytes::new(&record));
            }
        }
    }
}
