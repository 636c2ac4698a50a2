//! The text of an experiment file, and places in it.

use std::path::PathBuf;
use std::sync::Arc;

/// A span of a file's text, in bytes from its start; `end` is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The span from `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The span of `part` in `whole`, which it must be a slice of; else the start.
    pub(crate) fn from_slice(part: &str, whole: &str) -> Span {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if start > whole.len() { Span::default() } else { Span { start, end: start + part.len() } }
    }
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Span {
        Span { start: range.start, end: range.end }
    }
}

/// A value and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At<T> {
    /// The place.
    pub span: Span,
    /// The value.
    pub value: T,
}

impl<T> At<T> {
    /// A value written at `span`.
    pub fn new(span: Span, value: T) -> At<T> {
        At { span, value }
    }
    /// Another value at the same place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { span: self.span, value: change(self.value) }
    }
}

/// An optional setting of a file: the value with its place, or nothing.
pub type Setting<T> = Option<At<T>>;

/// Each value of a list; empty if it is not set.
pub(crate) fn list_items<T>(list: &Setting<Vec<At<T>>>) -> &[At<T>] {
    list.as_ref().map_or(&[], |at| &at.value)
}

/// A value that is in no file.
pub(crate) fn to_setting<T>(value: T) -> Setting<T> {
    Some(At::new(Span::default(), value))
}

/// A list that is in no file; `None` if it is empty.
pub(crate) fn to_list_setting<T>(items: impl Iterator<Item = T>) -> Setting<Vec<At<T>>> {
    let items: Vec<At<T>> = items.map(|item| At::new(Span::default(), item)).collect();
    if items.is_empty() { None } else { to_setting(items) }
}

/// The language of an experiment file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceFormat {
    /// punctual's own: see punctual-experiment(5).
    Toml,
    /// The configuration language of systress.
    Systress,
}

/// An experiment file: its name as the user gave it and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceText {
    /// The path as given, for messages.
    pub path: PathBuf,
    /// The whole text; empty if the file could not be read as text.
    pub text: String,
}

/// A text as a TOML string, escaped.
pub fn quote_toml(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A place for display: line and column from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TextPlace {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl SourceText {
    /// A text shared by the experiment and its problems.
    pub(crate) fn new_shared(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<SourceText> {
        Arc::new(SourceText { path: path.into(), text: text.into() })
    }

    /// Line and column of a byte; the end for a byte beyond it.
    pub(crate) fn place_at(&self, offset: usize) -> TextPlace {
        let line_start = self.line_start(offset);
        let line = self.text[..line_start].bytes().filter(|b| *b == b'\n').count() + 1;
        let column = self.text[line_start..self.floor_char_boundary(offset)].chars().count() + 1;
        TextPlace { line, column }
    }

    /// The first byte of the line that holds `offset`.
    pub(crate) fn line_start(&self, offset: usize) -> usize {
        self.text[..self.floor_char_boundary(offset)].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The line that starts at this byte, without its end.
    pub(crate) fn line_at(&self, line_start: usize) -> &str {
        let rest = &self.text[line_start..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// The nearest character boundary at or before this byte.
    pub(crate) fn floor_char_boundary(&self, offset: usize) -> usize {
        let mut at = offset.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let text = SourceText::new_shared("x.toml", "a = 1\r\nµs = é\n");
        assert_eq!(text.place_at(0), TextPlace { line: 1, column: 1 });
        assert_eq!(text.place_at(7), TextPlace { line: 2, column: 1 });
        assert_eq!(text.place_at(13), TextPlace { line: 2, column: 6 });
        assert_eq!(
            text.place_at(14),
            TextPlace { line: 2, column: 6 },
            "inside a character is its start"
        );
        assert_eq!(text.place_at(1_000), TextPlace { line: 3, column: 1 });
        assert_eq!(text.line_at(0), "a = 1");
    }
}
