//! Forms of values: the parser of a value with its bounds, and its description for documents.

use crate::notes::{Read, Wrong};
use crate::table::{
    read_boolean, read_duration_text as duration_text, read_integer, read_string as string,
    type_mismatch,
};
use crate::values;
use crate::words::{ByteSize, CommandLine, Placement, Word};
use punctual_core::event::Group;
use punctual_core::{Bytes, Clock, Nanos, Policy};
use std::path::PathBuf;
use toml::de::DeValue;

/// The valid values of a key: for the man page, and for editors.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// A whole number within inclusive bounds.
    Integer {
        /// The minimum.
        least: i64,
        /// The maximum.
        most: i64,
    },
    /// A string with a duration within inclusive bounds.
    Duration {
        /// The shortest.
        least: Nanos,
        /// The longest.
        most: Nanos,
    },
    /// A string with a size within inclusive bounds.
    Size {
        /// The minimum.
        least: u64,
        /// The maximum; `u64::MAX`: no bound.
        most: u64,
        /// Whether a plain number of bytes is also valid.
        bare: bool,
    },
    /// One of a closed list of strings.
    Words(Vec<&'static str>),
    /// One of these strings, or another usual spelling of one.
    Spellings(Vec<&'static str>),
    /// A string; its name in the man page.
    Text(&'static str),
    /// An array of values of one type.
    List {
        /// The type of each.
        of: Box<ValueType>,
        /// The maximum length; `None`: unlimited.
        most: Option<usize>,
    },
    /// One of these.
    Either(Vec<ValueType>),
    /// A table of values of one type, by any names.
    Named(Box<ValueType>),
    /// A table with these keys.
    Table(Vec<SectionKey>),
    /// Any number of sections with these keys.
    Sections(Vec<SectionKey>),
}

/// A key of a section.
#[derive(Clone, PartialEq, Debug)]
pub struct SectionKey {
    /// The text before the `=`.
    pub name: &'static str,
    /// Its purpose, in Markdown.
    pub about: &'static str,
    /// Its valid values.
    pub value: ValueType,
    /// Its default.
    pub default: DefaultValue,
}

/// The value of an omitted key.
#[derive(Clone, PartialEq, Debug)]
pub enum DefaultValue {
    /// This value, in TOML.
    Value(String),
    /// A value derived from other settings or from the system, in words; empty: `about` describes
    /// it.
    Words(&'static str),
    /// No default: the key is required.
    Needed,
}

type KeyReader<T> = dyn Fn(&DeValue<'_>) -> Read<T>;

/// The parser of a value of this type.
pub(crate) struct Form<T> {
    read: Box<KeyReader<T>>,
    pub(crate) value: ValueType,
}

impl<T> Form<T> {
    fn new(value: ValueType, read: impl Fn(&DeValue<'_>) -> Read<T> + 'static) -> Form<T> {
        Form { read: Box::new(read), value }
    }
    /// The value, or why it is invalid.
    pub(crate) fn read(&self, value: &DeValue<'_>) -> Read<T> {
        (self.read)(value)
    }
}

/// The valid values of this form.
pub(crate) fn value_type<T>(form: Form<T>) -> ValueType {
    form.value
}

/// `true` or `false`.
pub(crate) fn flag_form() -> Form<bool> {
    Form::new(ValueType::Boolean, read_boolean)
}

/// A string checked by `read`; `name` is its name in the man page.
pub(crate) fn text_form<T>(name: &'static str, read: fn(&str) -> Read<T>) -> Form<T>
where
    T: 'static,
{
    Form::new(ValueType::Text(name), move |v| read(string(v)?))
}

/// A path, as it is written.
pub(crate) fn path_text() -> Form<String> {
    text_form("PATH", values::check_path)
}

pub(crate) fn path_form() -> Form<PathBuf> {
    text_form("PATH", |text| values::check_path(text).map(PathBuf::from))
}

/// One of a closed list of words; `what` completes "… is not".
pub(crate) fn word_form<W: Word>(what: &'static str) -> Form<W> {
    let words = W::WORDS.iter().map(|(word, _)| *word).collect();
    Form::new(ValueType::Words(words), move |v| values::parse_word(string(v)?, what))
}

/// A scheduling policy, in any usual spelling.
pub(crate) fn policy_form() -> Form<Policy> {
    let words = Policy::WORDS.iter().map(|(word, _)| *word).collect();
    Form::new(ValueType::Spellings(words), |v| values::parse_policy(string(v)?))
}

/// A group of kernel events.
pub(crate) fn group_form() -> Form<Group> {
    let words = Group::ALL.iter().map(|group| group.word()).collect();
    Form::new(ValueType::Words(words), |v| values::parse_group(string(v)?))
}

/// A clock, in any usual spelling.
pub(crate) fn clock_form() -> Form<Clock> {
    let words = Clock::WORDS.iter().map(|(word, _)| *word).collect();
    Form::new(ValueType::Spellings(words), |v| values::parse_clock(string(v)?))
}

/// A string, or one word with a special meaning.
pub(crate) fn text_or<T: 'static>(
    name: &'static str,
    word: &'static str,
    read: fn(&str) -> Read<T>,
) -> Form<T> {
    let value = ValueType::Either(vec![ValueType::Text(name), ValueType::Words(vec![word])]);
    Form::new(value, move |v| read(string(v)?))
}

/// A whole number.
pub(crate) fn count_form<N: TryFrom<u64>>(least: u64, most: u64) -> Form<N> {
    let bound = |bound: u64| i64::try_from(bound).unwrap_or(i64::MAX);
    let value = ValueType::Integer { least: bound(least), most: bound(most) };
    Form::new(value, move |v| {
        let number = values::check_count(read_integer(v)?, least, most)?;
        N::try_from(number)
            .map_err(|_| Wrong::new(format!("{number} is out of bounds: {least} to {most}")))
    })
}

/// A whole number checked by `read`.
pub(crate) fn number_form<T: 'static>(least: i64, most: i64, read: fn(i64) -> Read<T>) -> Form<T> {
    Form::new(ValueType::Integer { least, most }, move |v| read(read_integer(v)?))
}

/// Any whole number of 64 bits.
pub(crate) fn any_number() -> Form<i64> {
    number_form(i64::MIN, i64::MAX, Ok)
}

/// A span of time.
pub(crate) fn duration_form(least: Nanos, most: Nanos) -> Form<Nanos> {
    Form::new(ValueType::Duration { least, most }, move |v| {
        values::parse_duration(duration_text(v)?, least, most)
    })
}

/// A size: `"4KiB"`, or a number of bytes.
pub(crate) fn bytes_form(least: Bytes, most: Bytes) -> Form<Bytes> {
    let value = ValueType::Size { least: least.get(), most: most.get(), bare: true };
    Form::new(value, move |v| {
        let size = match v {
            DeValue::Integer(_) => {
                Bytes(values::check_count(read_integer(v)?, 0, i64::MAX as u64)?)
            }
            _ => string(v)?
                .parse()
                .map_err(|why: punctual_core::bytes::BytesError| Wrong::new(why.to_string()))?,
        };
        match (least..=most).contains(&size) {
            true => Ok(size),
            false => Err(Wrong::new(format!("{size} is out of bounds: {least} to {most}"))),
        }
    })
}

/// A size checked by `read`: `"4MiB"`.
pub(crate) fn size_form(least: u64, most: u64, read: fn(&str) -> Read<ByteSize>) -> Form<ByteSize> {
    Form::new(ValueType::Size { least, most, bare: false }, move |v| read(string(v)?))
}

/// A string, or an array of such.
pub(crate) fn one_or_more(name: &'static str) -> ValueType {
    let list = ValueType::List { of: Box::new(ValueType::Text(name)), most: None };
    ValueType::Either(vec![ValueType::Text(name), list])
}

/// A value of a form that none of those above describes.
pub(crate) fn custom_form<T: 'static>(
    value: ValueType,
    read: fn(&DeValue<'_>) -> Read<T>,
) -> Form<T> {
    Form::new(value, read)
}

/// An optional value.
pub(crate) fn optional_form<T: 'static>(form: Form<T>) -> Form<Option<T>> {
    Form { value: form.value, read: Box::new(move |v| (form.read)(v).map(Some)) }
}

/// An array of this many values.
pub(crate) fn list_form<T: 'static>(least: usize, most: usize, form: Form<T>) -> Form<Vec<T>> {
    let value = ValueType::List { of: Box::new(form.value), most: Some(most) };
    let read = form.read;
    Form::new(value, move |v| {
        let DeValue::Array(items) = v else { return Err(type_mismatch(v, "an array")) };
        if !(least..=most).contains(&items.len()) {
            return Err(Wrong::new(format!(
                "{} values are out of bounds: {least} to {most}",
                items.len()
            )));
        }
        items.iter().map(|item| read(item.get_ref())).collect()
    })
}

/// An array of process ids.
pub(crate) fn pid_list_form(most: usize) -> Form<Vec<u32>> {
    let pid = count_form::<u32>(1, i32::MAX as u64);
    let value = ValueType::List { of: Box::new(pid.value.clone()), most: Some(most) };
    Form::new(value, move |v| {
        let Some(items) = v.as_array() else {
            return Err(type_mismatch(v, "an array of process ids"));
        };
        if items.len() > most {
            let count = items.len();
            return Err(Wrong::new(format!("{count} processes are too many: at most {most}")));
        }
        items.iter().map(|item| pid.read(item.get_ref())).collect()
    })
}

/// A string to be split, or an array of arguments as they are.
pub(crate) fn command_form() -> Form<Vec<String>> {
    let string_type = ValueType::Text("STRING");
    let array = ValueType::List { of: Box::new(string_type.clone()), most: None };
    Form::new(ValueType::Either(vec![string_type, array]), |v| match v {
        DeValue::String(line) => values::split_command(line),
        DeValue::Array(items) => {
            let argv = items.iter().map(|item| string(item.get_ref()).map(str::to_owned));
            values::check_arguments(argv.collect::<Read<Vec<_>>>()?)
        }
        other => Err(type_mismatch(other, "a command line or an array of arguments")),
    })
}

/// The same as a parameter.
pub(crate) fn command_line() -> Form<CommandLine> {
    let Form { read, value } = command_form();
    Form { read: Box::new(move |v| read(v).map(CommandLine)), value }
}

/// `per-cpu`, or a number of threads.
pub(crate) fn placement_form(most: u64) -> Form<Placement> {
    let value = ValueType::Either(vec![
        ValueType::Words(vec!["per-cpu"]),
        ValueType::Integer { least: 1, most: i64::try_from(most).unwrap_or(i64::MAX) },
    ]);
    Form::new(value, move |v| match v {
        DeValue::String(word) if word == "per-cpu" => Ok(Placement::PerCpu),
        DeValue::String(_) => {
            Err(Wrong::new("this is not a number of threads")
                .with_help("`\"per-cpu\"`, or a number"))
        }
        DeValue::Integer(_) => values::check_count(read_integer(v)?, 1, most)
            .map(|count| Placement::Shared(count as u32)),
        other => Err(type_mismatch(other, "`per-cpu` or a number of threads")),
    })
}
