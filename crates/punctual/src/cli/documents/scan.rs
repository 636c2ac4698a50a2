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
pub fn documents() -> Vec<PathBuf> {
    [vec![root().join("README.md")], below(root().join("docs"), "md")].concat()
}

/// The sources of all crates.
pub fn sources() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    crates.flat_map(|entry| below(entry.unwrap().path().join("src"), "rs")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn below(directory: PathBuf, end: &str) -> Vec<PathBuf> {
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
pub fn advised(path: &Path) -> Vec<DocumentCommand> {
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
    let of = |mark: char| {
        let marked = joined.split(mark).skip(1).filter(|code| code.starts_with("punctual "));
        marked.map(|code| code.replace('{', "X{").replace('\n', " ")).collect::<Vec<_>>()
    };
    // A fix of `check` is a command by itself.
    let whole = if place.contains("/check/rules/") { of('"') } else { Vec::new() };
    let texts = [of('`'), whole].concat();
    let filled_in = |text: &String| {
        let pieces =
            text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, rest)| rest));
        pieces.collect::<String>()
    };
    let is_named = |text: &String| !text.starts_with("punctual X");
    let all = texts.iter().map(filled_in).filter(is_named);
    all.filter_map(|text| shown(&place, &text, true)).collect()
}

/// Lines of code blocks that begin with `punctual`, and such code within sentences. A capitalised
/// word is a placeholder for a value; `…` for more of them, and `[]` for optional parts.
pub fn commands(path: &Path) -> Vec<DocumentCommand> {
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

fn shown(place: &str, code: &str, is_mention: bool) -> Option<DocumentCommand> {
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
