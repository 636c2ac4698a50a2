//! Names: checks that each is unique, and resolves references.

use super::Resolver;
use crate::escape::{clip_text, is_unprintable};
use crate::problem::{Problem, ProblemKind};
use crate::text::{At, Setting, Span};
use punctual_core::words::nearest_word;
use std::collections::{HashMap, HashSet};

/// Room for the number that makes a name unique.
const SUFFIX_CHARS: usize = 8;

/// Converts a text to a valid name: slashes and unprintable characters become `-`, and the end is
/// cut.
pub(super) fn made_fit(text: &str, most_chars: usize, otherwise: &str) -> String {
    let fit = |c: char| if c == '/' || is_unprintable(c) { '-' } else { c };
    let name: String = text.trim().chars().map(fit).take(most_chars).collect();
    match name.trim() {
        "" | "." | ".." => otherwise.to_owned(),
        name => name.to_owned(),
    }
}

impl Resolver<'_> {
    /// A name for each section: as written, else the default made unique with `-2`, `-3`, …. Equal
    /// written names are an error.
    pub(super) fn resolve_names<'s>(
        &mut self,
        what: &str,
        sections: impl Iterator<Item = (&'s Setting<String>, String)>,
    ) -> Vec<String> {
        let sections: Vec<(&Setting<String>, String)> = sections.collect();
        let mut written: HashMap<&str, Span> = HashMap::new();
        for at in sections.iter().filter_map(|(name, _)| name.as_ref()) {
            match written.get(at.value.as_str()) {
                Some(first) => {
                    let message = format!("there are two {what}s called `{}`", at.value);
                    let problem = Problem::error(ProblemKind::Reference, Some(at.span), message);
                    self.note_problem(
                        problem
                            .with_related(*first, "the first is here")
                            .with_help("give one another name"),
                    );
                }
                None => {
                    written.insert(&at.value, at.span);
                }
            }
        }
        let mut taken_names: HashSet<String> = written.into_keys().map(str::to_owned).collect();
        let mut used: HashMap<String, usize> = HashMap::new();
        let mut name = |(written, default): (&Setting<String>, String)| match written {
            Some(at) => at.value.clone(),
            None => make_unique(
                &made_fit(&default, crate::limits::MAX_NAME_CHARS - SUFFIX_CHARS, what),
                &mut taken_names,
                &mut used,
            ),
        };
        sections.into_iter().map(&mut name).collect()
    }

    /// The indices in `known` of the names in a list. Unknown and ambiguous names are errors.
    pub(super) fn look_up(
        &mut self,
        what: &str,
        list: &[At<String>],
        known: &[&str],
    ) -> Vec<usize> {
        let places: HashMap<&str, usize> =
            known.iter().rev().enumerate().map(|(k, name)| (*name, known.len() - 1 - k)).collect();
        let mut found: Vec<usize> = Vec::new();
        let mut seen_places: HashSet<usize> = HashSet::new();
        for at in list {
            match places.get(at.value.as_str()) {
                Some(place) if seen_places.insert(*place) => found.push(*place),
                Some(_) => {
                    let message = format!("the {what} `{}` is named twice in this list", at.value);
                    self.note_error(ProblemKind::Reference, at.span, message, "name it once");
                }
                None => {
                    let message = format!("there is no {what} called `{}`", at.value);
                    let known_names = if self.problems.is_full() { &[] } else { known };
                    let help = no_such_name(what, &at.value, known_names);
                    self.note_error(ProblemKind::Reference, at.span, message, &help);
                }
            }
        }
        found
    }
}

fn make_unique(
    base: &str,
    taken: &mut HashSet<String>,
    used: &mut HashMap<String, usize>,
) -> String {
    let count = used.entry(base.to_owned()).or_insert(0);
    loop {
        *count += 1;
        let name = if *count == 1 { base.to_owned() } else { format!("{base}-{count}") };
        if taken.insert(name.clone()) {
            return name;
        }
    }
}

fn no_such_name(what: &str, word: &str, known: &[&str]) -> String {
    match nearest_word(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("the file has no `[[{what}]]`"),
        None => format!("known {what}s: {}", clip_text(&known.join(", "))),
    }
}
