//! The commands in documents.

use std::fs;
use std::path::{Path, PathBuf};

/// A command in a document.
pub struct DocumentCommand {
    pub place: String,
    pub words: Vec<String>,
    /// Within a sentence, which may omit required arguments.
    pub is_mention: bool,
}

/// The README and all documents.
pub fn document_paths() -> Vec<PathBuf> {
    [vec![repository_root().join("README.md")], files_below(repository_root().join("docs"), "md")]
        .concat()
}

/// The sources of all crates.
pub fn source_paths() -> Vec<PathBuf> {
    let crates = fs::read_dir(repository_root().join("crates")).unwrap();
    crates.flat_map(|entry| files_below(entry.unwrap().path().join("src"), "rs")).collect()
}

fn repository_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn files_below(directory: PathBuf, end: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![directory]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|of| of == end) {
                found.push(path);
            }
        }
    }
    found
}

/// Commands in the texts of the program: its messages and remedies. Those are marked as code, or
/// are a fix of `check`. What is filled in stands for a value.
pub fn advised_commands(path: &Path) -> Vec<DocumentCommand> {
    let text = fs::read_to_string(path).unwrap();
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut joined = String::new();
    for line in code {
        let (begin, end) = match line.strip_suffix('\\') {
            Some(continued) => (continued, ""),
            None => (line, "\n"),
        };
        joined += if joined.ends_with('\n') { begin } else { begin.trim_start() };
        joined += end;
    }
    let place = path.display().to_string();
    let marked_code = |mark: char| {
        let marked = joined.split(mark).skip(1).filter(|code| code.starts_with("punctual "));
        marked.map(|code| code.replace('{', "X{").replace('\n', " ")).collect::<Vec<_>>()
    };
    // A fix of `check` is a command by itself.
    let whole = if place.contains("/check/rules/") { marked_code('"') } else { Vec::new() };
    let texts = [marked_code('`'), whole].concat();
    let filled_in = |text: &String| {
        let pieces =
            text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, rest)| rest));
        pieces.collect::<String>()
    };
    let is_named = |text: &String| !text.starts_with("punctual X");
    let command_texts = texts.iter().map(filled_in).filter(is_named);
    command_texts.filter_map(|text| read_command(&place, &text, true)).collect()
}

/// Lines of code blocks that begin with `punctual`, and such code within sentences. A capitalised
/// word is a placeholder for a value; `…` for more of them, and `[]` for optional parts.
pub fn document_commands(path: &Path) -> Vec<DocumentCommand> {
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
                found.extend(read_command(&place, part, false));
            }
        } else {
            let code = line.split('`').skip(1).step_by(2);
            found.extend(code.filter_map(|code| read_command(&place, code, true)));
        }
    }
    found
}

fn read_command(place: &str, code: &str, is_mention: bool) -> Option<DocumentCommand> {
    let code = code.trim_start_matches("sudo ");
    let rest = code.strip_prefix("punctual ")?;
    // The parts of the line for the shell.
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
    (words.len() > 1).then(|| DocumentCommand { place: place.to_owned(), words, is_mention })
}
