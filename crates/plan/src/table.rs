//! Reads a TOML table key by key, so that one pass finds every error of a file.

use crate::escape::clip_text;
use crate::notes::{ProblemNotes, Read, Wrong};
use crate::text::{At, Setting, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub(crate) type TomlValue<'i> = Spanned<DeValue<'i>>;

/// A table being read: it records the keys that were read; the others are unknown.
pub(crate) struct TomlTable<'t, 'i> {
    entries: &'t DeTable<'i>,
    /// Its header, or the whole of an inline table.
    pub(crate) span: Span,
    /// Its name in messages: "`[[measure]]`".
    pub(crate) title: &'static str,
    asked: Vec<&'static str>,
}

impl<'t, 'i> TomlTable<'t, 'i> {
    pub(crate) fn new(
        entries: &'t DeTable<'i>,
        span: Span,
        title: &'static str,
    ) -> TomlTable<'t, 'i> {
        TomlTable { entries, span, title, asked: Vec::new() }
    }

    fn read_entry(&mut self, key: &'static str) -> Option<&'t TomlValue<'i>> {
        self.asked.push(key);
        self.entries.get(key)
    }

    /// A setting, if it is present and valid.
    pub(crate) fn read_setting<T>(
        &mut self,
        notes: &mut ProblemNotes,
        key: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Read<T>,
    ) -> Setting<T> {
        let entry = self.read_entry(key)?;
        let span = Span::from(entry.span());
        match read(entry.get_ref()) {
            Ok(value) => Some(At::new(span, value)),
            Err(wrong) => {
                notes.report_wrong_value(span, wrong.with_key(key));
                None
            }
        }
    }

    /// A setting that is an array of strings; invalid ones are omitted.
    pub(crate) fn take_list<T>(
        &mut self,
        notes: &mut ProblemNotes,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Read<T>,
    ) -> Setting<Vec<At<T>>> {
        let entry = self.read_entry(key)?;
        let span = Span::from(entry.span());
        let Some(items) = entry.get_ref().as_array() else {
            let wrong = type_mismatch(entry.get_ref(), "an array of strings")
                .with_help(format!("write `{key} = [\"…\"]`"));
            notes.report_wrong_value(span, wrong.with_key(key));
            return None;
        };
        let mut list = Vec::new();
        for item in items.iter() {
            let at = Span::from(item.span());
            match read(item.get_ref()) {
                Ok(value) => list.push(At::new(at, value)),
                Err(wrong) => notes.report_wrong_value(at, wrong.with_key(key)),
            }
        }
        Some(At::new(span, list))
    }

    /// A table within this one.
    pub(crate) fn take_table(
        &mut self,
        notes: &mut ProblemNotes,
        key: &'static str,
        title: &'static str,
    ) -> Option<TomlTable<'t, 'i>> {
        let entry = self.read_entry(key)?;
        let span = Span::from(entry.span());
        match entry.get_ref() {
            DeValue::Table(entries) => Some(TomlTable::new(entries, span, title)),
            DeValue::Array(_) => {
                notes
                    .report_wrong_value(span, Wrong::new(format!("there can be only one {title}")));
                None
            }
            other => {
                notes.report_wrong_value(span, type_mismatch(other, "a table").with_key(key));
                None
            }
        }
    }

    /// The sections of one kind: `[[key]]`, any number.
    pub(crate) fn take_sections(
        &mut self,
        notes: &mut ProblemNotes,
        key: &'static str,
        title: &'static str,
    ) -> Vec<TomlTable<'t, 'i>> {
        let Some(entry) = self.read_entry(key) else { return Vec::new() };
        let span = Span::from(entry.span());
        match entry.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| read_section(notes, item, title)).collect()
            }
            DeValue::Table(entries) => {
                let wrong = Wrong::new(format!("there can be several sections `{key}`"));
                notes.report_wrong_value(span, wrong.with_help(format!("write `[[{key}]]`")));
                vec![TomlTable::new(entries, span, title)]
            }
            other => {
                let wrong = type_mismatch(other, "a table")
                    .with_help(format!("write `[[{key}]]` on a line of its own"));
                notes.report_wrong_value(span, wrong.with_key(key));
                Vec::new()
            }
        }
    }

    /// Every key with its value, in the order of the file: for tables whose keys are user-defined.
    pub(crate) fn sorted_entries(&self) -> Vec<(&'t str, Span, &'t TomlValue<'i>)> {
        let located_entries = self
            .entries
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), Span::from(key.span()), value));
        let mut entry_list: Vec<(&str, Span, &TomlValue)> = located_entries.collect();
        entry_list.sort_by_key(|(_, span, _)| span.start);
        entry_list
    }

    /// The text of a key that was read but not understood.
    pub(crate) fn key_text(&self, key: &str) -> Option<&'t str> {
        self.entries.get(key)?.get_ref().as_str()
    }

    /// Whether the key is present, valid or not.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Reports every key that was not read as unknown.
    pub(crate) fn finish(self, notes: &mut ProblemNotes) {
        for (key, _) in self.entries.iter() {
            let word: &str = key.get_ref();
            if self.asked.contains(&word) {
                continue;
            }
            notes.report_unknown_word(Span::from(key.span()), word, self.title, &self.asked);
        }
    }
}

fn read_section<'t, 'i>(
    notes: &mut ProblemNotes,
    item: &'t TomlValue<'i>,
    title: &'static str,
) -> Option<TomlTable<'t, 'i>> {
    let span = Span::from(item.span());
    match item.get_ref() {
        DeValue::Table(entries) => Some(TomlTable::new(entries, span, title)),
        other => {
            notes.report_wrong_value(span, type_mismatch(other, "a table"));
            None
        }
    }
}

/// A value of the wrong type.
pub(crate) fn type_mismatch(found: &DeValue<'_>, expected: &str) -> Wrong {
    let found = match found {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date-time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    Wrong::new(format!("expected {expected}, found {found}"))
}

pub(crate) fn read_string<'v>(value: &'v DeValue<'_>) -> Read<&'v str> {
    match value {
        DeValue::String(text) => Ok(text),
        DeValue::Integer(number) => Err(type_mismatch(value, "a string")
            .with_help(format!("put it in quotes: `\"{}\"`", clip_text(number.as_str())))),
        other => Err(type_mismatch(other, "a string")),
    }
}

/// The text of a duration.
pub(crate) fn read_duration_text<'v>(value: &'v DeValue<'_>) -> Read<&'v str> {
    let number = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return read_string(other),
    };
    let number = clip_text(number);
    let units = format!(
        "put a unit behind it and both in quotes: `\"{number}s\"`, `\"{number}ms\"` or \
         `\"{number}us\"`"
    );
    Err(type_mismatch(value, "a duration").with_help(units))
}

pub(crate) fn read_integer(value: &DeValue<'_>) -> Read<i64> {
    let DeValue::Integer(number) = value else { return Err(type_mismatch(value, "an integer")) };
    let read = i64::from_str_radix(number.as_str(), number.radix());
    read.map_err(|_| Wrong::new(format!("`{}` is too large a number", clip_text(number.as_str()))))
}

pub(crate) fn read_boolean(value: &DeValue<'_>) -> Read<bool> {
    value.as_bool().ok_or_else(|| type_mismatch(value, "true or false"))
}
