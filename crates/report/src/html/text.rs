//! Formatting of the report beyond [`crate::format`], which terminal and page share.

use crate::format::escape_unsafe;

/// Names of tasks, series and files are cut at this many characters: the page has a size limit.
const NAME_LENGTH: usize = 120;
const SENTENCE_LENGTH: usize = 400;

/// A multi-line text without hidden content: control characters and those that reorder or hide text
/// are written out ([`plain`]); foreign line breaks become line breaks.
pub(crate) fn escape_hidden(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| escape_unsafe(&line.trim_end_matches('\r').replace('\t', "    ")))
        .collect();
    lines.join("\n")
}

/// A sentence: visible, on one line, of bounded length.
pub fn format_sentence(text: &str) -> String {
    clip_text(&escape_unsafe(&clip_text(text, SENTENCE_LENGTH)), SENTENCE_LENGTH)
}

/// At most `limit` characters, with an ellipsis if some are missing.
pub fn clip_text(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name: visible, on one line, of bounded length.
pub(crate) fn format_name(text: &str) -> String {
    if text.trim().is_empty() {
        return "(no name)".to_owned();
    }
    clip_text(&escape_unsafe(&clip_text(text, NAME_LENGTH)), NAME_LENGTH)
}

/// An instant, UTC, to the second.
pub(crate) fn format_instant(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_made_visible() {
        assert_eq!(escape_hidden("plain äöü 🐧\r\n\tline"), "plain äöü 🐧\n    line");
        assert_eq!(escape_hidden("a\u{202e}b\u{1b}[31m\0"), "a\\u{202e}b\\u{1b}[31m\\u{0}");
        assert_eq!(
            (format_name("two\nlines"), format_name(" ")),
            ("two\\nlines".to_owned(), "(no name)".to_owned())
        );
        assert_eq!(format_name(&"\0".repeat(1_000)).chars().count(), NAME_LENGTH + 1);
    }
}
