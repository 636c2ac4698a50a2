//! Tracepoints as their `format` files describe them (Documentation/trace/events.rst).

use crate::bytes::ByteOrder;

/// Where a field lies in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// From the beginning of the record.
    pub offset: usize,
    /// All of its bytes.
    pub size: usize,
    /// Whether it has a sign.
    pub signed: bool,
    /// Where its value lies.
    pub place: Place,
}

/// Where the value of a field lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the field.
    Here,
    /// `__data_loc`: offset and length are in the field.
    At,
    /// `__rel_loc`: the offset is from the end of the field on.
    Behind,
}

/// A tracepoint's description.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Format {
    /// `sched_switch`.
    pub name: String,
    /// As in `common_type` of its records.
    pub id: u16,
    fields: Vec<(String, usize, Field)>,
    /// How it is shown as text.
    pub print: String,
}

/// No tracepoint of the kernel has as many fields.
const MOST_FIELDS: usize = 256;

impl Format {
    /// Reads the file's text; `None` when it has no id or no field.
    pub fn parse(text: &str) -> Option<Format> {
        let mut format = Format::default();
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
                format.fields.extend(field(line));
            }
        }
        format.id = id?;
        (!format.fields.is_empty()).then_some(format)
    }

    /// Where a field lies; `args[1]` is an element of an array.
    pub fn field(&self, name: &str) -> Option<Field> {
        let whole = |name: &str| self.fields.iter().find(|(other, ..)| other == name);
        if let Some((_, _, field)) = whole(name) {
            return Some(*field);
        }
        let (name, place) = name.strip_suffix(']')?.split_once('[')?;
        let (_, count, field) = whole(name)?;
        let place: usize = place.parse().ok().filter(|place| place < count)?;
        let size = field.size / count;
        Some(Field { offset: field.offset + place * size, size, ..*field })
    }

    /// The fields of its own, without those common to all, in their order.
    pub fn own_fields(&self) -> impl Iterator<Item = (&str, Field)> {
        let own = |(name, _, _): &&(String, usize, Field)| !name.starts_with("common_");
        self.fields.iter().filter(own).map(|(name, _, field)| (name.as_str(), *field))
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn field(line: &str) -> Option<(String, usize, Field)> {
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
        () if declaration.starts_with("__data_loc") => Place::At,
        () if declaration.starts_with("__rel_loc") => Place::Behind,
        () => Place::Here,
    };
    Some((name.to_owned(), count.max(1), Field { offset, size, signed, place }))
}

impl Field {
    /// The number in this field; `None` where the record is too short, or it is no number.
    #[inline]
    pub fn number(self, record: &[u8], order: ByteOrder) -> Option<i64> {
        if !(1..=8).contains(&self.size) {
            return None;
        }
        let number = order.at(record, self.offset, self.size)? as i64;
        let unused = 64 - 8 * self.size as u32;
        Some(if self.signed { number << unused >> unused } else { number })
    }

    /// The bytes that the field holds or names, up to the first NUL.
    #[inline]
    pub fn text(self, record: &[u8], order: ByteOrder) -> &[u8] {
        let place = || {
            let there = order.at(record, self.offset, self.size.min(4))?;
            let (offset, length) = (there as usize & 0xffff, there as usize >> 16 & 0xffff);
            let from = match self.place {
                Place::Behind => self.offset + self.size + offset,
                _ => offset,
            };
            record.get(from..(from + length).min(record.len()))
        };
        let bytes = match self.place {
            Place::Here => record.get(self.offset..self.offset + self.size),
            _ => place(),
        };
        let bytes = bytes.unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        &bytes[..end]
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
    fn fields_lie_where_the_kernel_says_in_either_byte_order() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!((format.id, format.name.as_str()), (316, "sched_switch"));
        assert_eq!(format.print, "\"x\"");
        assert_eq!(format.field("args[1]").map(|field| (field.offset, field.size)), Some((48, 8)));
        assert_eq!(format.field("args[2]"), None);
        let mut record = [0; 76];
        record[8..11].copy_from_slice(b"cat");
        record[24..28].copy_from_slice(&(-3i32).to_le_bytes());
        record[56..60].copy_from_slice(&(4u32 << 16 | 64).to_le_bytes());
        record[60..64].copy_from_slice(&(9u32 << 16 | 4).to_le_bytes());
        record[64..76].copy_from_slice(b"eth\0label\0..");
        let text = |name: &str| format.field(name).unwrap().text(&record, ByteOrder::Little);
        assert_eq!((text("prev_comm"), text("name")), (&b"cat"[..], &b"eth"[..]));
        assert_eq!(text("label"), b"label");
        let pid = format.field("prev_pid").unwrap();
        assert_eq!(pid.number(&record, ByteOrder::Little), Some(-3));
        assert_eq!(pid.number(&record, ByteOrder::Big), Some(-0x0200_0001));
        assert_eq!(pid.number(&record[..20], ByteOrder::Little), None);
        let own: Vec<&str> = format.own_fields().map(|(name, _)| name).collect();
        assert_eq!(own, ["prev_comm", "prev_pid", "hrtimer", "args", "name", "label"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "(ID: [0-9]{1,6}\n)?(\tfield:(__data_loc |__rel_loc )?[a-z *\\[\\]0-9]{0,20};\
                     \toffset:[0-9]{0,9};\tsize:[0-9]{0,9};\tsigned:[01];\n){0,5}",
            record in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Some(format) = Format::parse(&text) {
                for (_, _, field) in &format.fields {
                    field.number(&record, ByteOrder::Big);
                    field.text(&record, ByteOrder::Little);
                }
                format.field("a[1]");
            }
        }
    }
}
