//! Reads one value from one file; every reason for a missing value has the path.

use crate::files::Files;
use punctual_core::{CpuSet, Fact};
use std::str::FromStr;

/// The maximum length of a text value; longer ones are cut. COMMAND_LINE_SIZE is at most 4096
/// (arch/s390/include/asm/setup.h; 2048 on x86 and arm64).
const MAX_TEXT: usize = 4096;

/// At most [`MAX_TEXT`] bytes of a text, cut at a character boundary.
pub fn clip_text(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The start of a value, for a reason.
fn quote_start(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A small file's text without surrounding white space.
pub fn read_text(files: &dyn Files, path: &str) -> Fact<String> {
    // The device tree's strings end in a NUL byte (Documentation/devicetree/usage-model.rst).
    files
        .read(path)
        .map(|text| clip_text(text.trim_matches(|c: char| c.is_whitespace() || c == '\0')))
        .into()
}

/// A file that holds one number, or another value parsed from text.
pub fn read_number<T: FromStr>(files: &dyn Files, path: &str) -> Fact<T> {
    parse_fact(path, read_text(files, path), |text| text.parse().ok(), "a number")
}

/// A file that holds a list of CPUs; an empty text, and `(null)` for a mask that was never
/// allocated, are the empty set.
pub(crate) fn cpu_list(files: &dyn Files, path: &str) -> Fact<CpuSet> {
    let list = |text: &str| if text == "(null)" { Some(CpuSet::new()) } else { text.parse().ok() };
    parse_fact(path, read_text(files, path), list, "a list of CPUs")
}

/// Parses a known text; unavailable, with the path, if that fails.
pub(crate) fn parse_fact<T>(
    path: &str,
    fact: Fact<String>,
    parse: impl Fn(&str) -> Option<T>,
    what: &str,
) -> Fact<T> {
    match fact {
        Fact::Known(text) => match parse(&text) {
            Some(value) => Fact::Known(value),
            None => Fact::Unavailable(format!("{path} holds `{}`, not {what}", quote_start(&text))),
        },
        Fact::Unavailable(why) => Fact::Unavailable(why),
        Fact::NotAsked => Fact::NotAsked,
    }
}
