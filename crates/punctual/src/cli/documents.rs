//! Every command that a document shows is one that this program takes.

use super::Cli;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::fs;
use std::path::{Path, PathBuf};

/// A command in a document.
struct Shown {
    place: String,
    words: Vec<String>,
    /// Within a sentence, which may leave out what the command needs beside.
    is_mention: bool,
}

#[test]
fn commands_in_documents_are_taken() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        for Shown { place, words, is_mention } in commands(&path) {
            count += 1;
            match Cli::try_parse_from(&words) {
                Err(why) if is_wrong(&why, is_mention) => {
                    let why = why.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    wrong.push(format!("{place}: {}: {why}", words.join(" ")));
                }
                _ => {}
            }
        }
    }
    assert!(count > 200, "{count} commands were found");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

fn is_wrong(why: &Error, is_mention: bool) -> bool {
    let placeholder = |value: &ContextValue| {
        matches!(value, ContextValue::String(text)
            if text.is_empty() || text.chars().all(|c| c.is_ascii_uppercase()))
    };
    match why.kind() {
        ErrorKind::MissingRequiredArgument => !is_mention,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !is_mention,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            !why.get(ContextKind::InvalidValue).is_some_and(placeholder)
        }
        _ => why.use_stderr(),
    }
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut found = vec![root.join("README.md")];
    let mut open = vec![root.join("docs")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Lines of code blocks that begin with `punctual`, and such code within sentences. A word with
/// capitals stands for a value; `…` for more of them, and `[]` for what may be left out.
fn commands(path: &Path) -> Vec<Shown> {
    let text = fs::read_to_string(path).unwrap();
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{}:{}", path.display(), number + 1);
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            let code = line.trim_start().trim_start_matches("$ ");
            for part in code.split(" && ") {
                found.extend(shown(&place, part, false));
            }
        } else {
            let code = line.split('`').skip(1).step_by(2);
            found.extend(code.filter_map(|code| shown(&place, code, true)));
        }
    }
    found
}

fn shown(place: &str, code: &str, is_mention: bool) -> Option<Shown> {
    let code = code.trim_start_matches("sudo ");
    let rest = code.strip_prefix("punctual ")?;
    // What the shell does with the rest of the line.
    let rest = [" # ", " | ", " > ", "; ", " \\", "  "]
        .into_iter()
        .filter_map(|end| rest.find(end))
        .min()
        .map_or(rest, |at| &rest[..at]);
    let rest = rest.replace(['[', ']'], "");
    let words = shell_words::split(&rest).unwrap_or_else(|why| panic!("{place}: {code}: {why}"));
    let words = words.into_iter().filter(|word| !matches!(word.as_str(), "…" | "..."));
    let words: Vec<String> = std::iter::once("punctual".to_owned())
        .chain(words)
        .map(|word| word.replace('…', ""))
        .collect();
    (words.len() > 1).then(|| Shown { place: place.to_owned(), words, is_mention })
}
