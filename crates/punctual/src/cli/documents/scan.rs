//! The commands that documents show.

use std::fs;
use std::path::{Path, PathBuf};

/// A command in a document.
pub struct Shown {
    pub place: String,
    pub words: Vec<String>,
    /// Within a sentence, which may leave out what the command needs beside.
    pub is_mention: bool,
}

/// The README and all documents.
pub fn documents() -> Vec<PathBuf> {
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
pub fn commands(path: &Path) -> Vec<Shown> {
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
