//! The keys of a section as entries of a manual page.

use punctual_core::{Bytes, Nanos};
use punctual_plan::{DefaultValue, SectionKey, ValueType};

/// The maximum length of a line, except for longer words.
const WIDTH: usize = 100;
const CODE_IN_ONE_LINE: usize = 60;
/// Longer lists of words are moved to the text.
const WORDS_IN_HEADING: usize = 6;

/// The entries of these keys.
pub fn entries<'k>(keys: impl IntoIterator<Item = &'k SectionKey>) -> String {
    keys.into_iter().map(entry).collect()
}

fn entry(key: &SectionKey) -> String {
    let mut text = String::new();
    let mut paragraphs = key.about.split("\n\n").map(unwrapped).peekable();
    while let Some(mut paragraph) = paragraphs.next() {
        if paragraphs.peek().is_none() {
            paragraph = format!("{paragraph}{}", afterwards(key));
        }
        match paragraph.strip_prefix("- ") {
            Some(list) => text += &items(list),
            None => {
                let break_before = if text.is_empty() { "" } else { ".IP\n" };
                text += &format!("{break_before}{}", filled(&paragraph));
            }
        }
    }
    format!(".TP\n.BR {} \" = {}\"\n{text}", key.name, notation(&key.value))
}

/// A paragraph of a doc comment in one line; a list keeps its line breaks.
fn unwrapped(paragraph: &str) -> String {
    let lines = paragraph.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// A list of `NAME: text`, and the text behind it.
fn items(list: &str) -> String {
    let item = |item: &str| {
        let (name, text) = item.split_once(": ").unwrap_or((item, ""));
        format!(".TP\n{}{}", filled(name), filled(text))
    };
    let (list, after) = list.rsplit_once(" Default: ").unwrap_or((list, ""));
    let items: String = list.split(" - ").map(item).collect();
    let after = if after.is_empty() {
        String::new()
    } else {
        format!(".IP\n{}", filled(&format!("Default: {after}")))
    };
    format!(".RS\n{items}.RE\n{after}")
}

/// The words, the bounds and the default.
fn afterwards(key: &SectionKey) -> String {
    let words = match &key.value {
        ValueType::Words(words) if words.len() > WORDS_IN_HEADING => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!(" One of {}.", words.join(", "))
        }
        _ => String::new(),
    };
    let bounds = bounds(&key.value).map_or(String::new(), |bounds| format!(" {bounds}."));
    let default = match &key.default {
        DefaultValue::Value(value) => format!(" Default: `{value}`."),
        DefaultValue::Words("") => String::new(),
        DefaultValue::Words(words) if words.ends_with('…') => format!(" Default: {words}"),
        DefaultValue::Words(words) => format!(" Default: {words}."),
        DefaultValue::Needed => " This key is needed.".to_owned(),
    };
    format!("{words}{bounds}{default}")
}

fn notation(value: &ValueType) -> String {
    let placeholder = |word: &str| format!("\\fI{word}\\fP");
    match value {
        ValueType::Boolean => placeholder("BOOLEAN"),
        ValueType::Integer { .. } => placeholder("INTEGER"),
        ValueType::Duration { .. } => placeholder("DURATION"),
        ValueType::Size { .. } => placeholder("SIZE"),
        ValueType::Words(words) if words.len() > WORDS_IN_HEADING => placeholder("WORD"),
        ValueType::Words(words) | ValueType::Spellings(words) => {
            alternatives(words.iter().map(|word| bold(&format!("\"{word}\""))).collect())
        }
        ValueType::Text(name) => placeholder(name),
        ValueType::List { of, .. } => format!("[{}, \\&...]", notation(of)),
        ValueType::Either(types) => alternatives(types.iter().map(notation).collect()),
        ValueType::Table(keys) => {
            let keys = keys.iter().map(|key| format!("{} = {}", key.name, notation(&key.value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        ValueType::Named(of) => format!("{{ {} = {}, \\&... }}", placeholder("NAME"), notation(of)),
        ValueType::Sections(_) => String::new(),
    }
}

fn alternatives(mut all: Vec<String>) -> String {
    let last = all.pop().unwrap_or_default();
    if all.is_empty() { last } else { format!("{} or {last}", all.join(", ")) }
}

/// The bounds of a value, if it has any.
fn bounds(value: &ValueType) -> Option<String> {
    match value {
        ValueType::Integer { least: i64::MIN, .. } => None,
        ValueType::Integer { least, most: i64::MAX } => Some(format!("At least {least}")),
        ValueType::Integer { least, most } => Some(format!("From {least} to {most}")),
        ValueType::Duration { least: Nanos::ZERO, most } => {
            Some(format!("At most {}", span(*most)))
        }
        ValueType::Duration { least, most } => {
            Some(format!("From {} to {}", span(*least), span(*most)))
        }
        ValueType::Size { least, most: u64::MAX, .. } => {
            Some(format!("At least {}", Bytes(*least)))
        }
        ValueType::Size { least, most, .. } => {
            Some(format!("From {} to {}", Bytes(*least), Bytes(*most)))
        }
        ValueType::List { of, most } => {
            let each = bounds(of).map(|each| format!("each {}", each.to_lowercase_first()));
            let all = most.map(|most| format!("at most {most}"));
            let both: Vec<String> = all.into_iter().chain(each).collect();
            (!both.is_empty()).then(|| both.join(", ").to_uppercase_first())
        }
        ValueType::Either(types) => types.iter().find_map(bounds),
        ValueType::Table(keys) => {
            let keys = keys.iter().filter_map(|key| {
                Some(format!("`{}`: {}", key.name, bounds(&key.value)?.to_lowercase_first()))
            });
            let keys: Vec<String> = keys.collect();
            (!keys.is_empty()).then(|| keys.join("; "))
        }
        _ => None,
    }
}

trait FirstLetter {
    fn to_lowercase_first(&self) -> String;
    fn to_uppercase_first(&self) -> String;
}

impl FirstLetter for String {
    fn to_lowercase_first(&self) -> String {
        self[..1].to_lowercase() + &self[1..]
    }
    fn to_uppercase_first(&self) -> String {
        self[..1].to_uppercase() + &self[1..]
    }
}

/// In days, hours or minutes if these are whole.
fn span(span: Nanos) -> String {
    let seconds = span.ns() / 1_000_000_000;
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    let whole = |(_, size): &&(&str, i64)| {
        seconds > 0 && seconds % size == 0 && span.ns() % 1_000_000_000 == 0
    };
    match units.iter().find(whole) {
        Some((unit, size)) => format!("{}{unit}", seconds / size),
        None => span.to_string(),
    }
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fP", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out += "\\e",
            '-' => out += "\\-",
            '"' => out += "\\[dq]",
            '\'' => out += "\\[aq]",
            '~' => out += "\\[ti]",
            'µ' => out += "\\[mc]",
            '×' => out += "\\[mu]",
            '²' => out += "\\[S2]",
            '…' => out += "\\&...",
            other => out.push(other),
        }
    }
    out
}

/// Markdown as lines of a manual page: `code` and names of pages are bold, *words* are italic.
fn filled(markdown: &str) -> String {
    let mut words = String::new();
    for (place, part) in markdown.split('`').enumerate() {
        let is_code = place % 2 == 1;
        // Short code stays on one line.
        let blank = if part.len() < CODE_IN_ONE_LINE { "\u{a0}" } else { " " };
        words += &if is_code { bold(&part.replace(' ', blank)) } else { plain(part) };
    }
    let (mut out, mut line) = (String::new(), String::new());
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &format!("{line}\n");
            line.clear();
        }
        // groff reads a line that begins with a dot as a request.
        let guard = if line.is_empty() && word.starts_with('.') { "\\&" } else { "" };
        line += &format!("{}{guard}{word}", if line.is_empty() { "" } else { " " });
        if is_end(word) {
            out += &format!("{line}\n");
            line.clear();
        }
    }
    if !line.is_empty() {
        out += &format!("{line}\n");
    }
    out.replace('\u{a0}', "\\ ")
}

/// A sentence ends its line, so that groff recognises it.
fn is_end(word: &str) -> bool {
    word.ends_with('.') && !word.ends_with("...")
}

/// Text outside of code.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('*').enumerate() {
        if place % 2 == 1 {
            out += &format!("\\fI{}\\fP", escaped(part));
            continue;
        }
        for (number, word) in part.split(' ').enumerate() {
            out += if number > 0 { " " } else { "" };
            out += &page(word).unwrap_or_else(|| escaped(word));
        }
    }
    out
}

/// `sched(7)` with its name in bold.
fn page(word: &str) -> Option<String> {
    let (name, rest) = word.split_once('(')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let is_section = rest.starts_with(|c: char| c.is_ascii_digit()) && rest[1..].starts_with(')');
    (is_name && is_section).then(|| format!("{}({}", bold(name), escaped(rest)))
}
