//! Reads the properties of a stanza, so that one pass finds every error of a file.

use super::scan::{Stanza, SystressProperty};
use crate::notes::{ProblemNotes, Read, Wrong};
use crate::problem::{Problem, ProblemKind};
use crate::text::{At, Setting};
use std::collections::HashMap;

/// A stanza being read: it records the keys that were read; the others are unknown.
pub(super) struct Properties<'s> {
    stanza: &'s Stanza<'s>,
    by_key: HashMap<&'s str, &'s SystressProperty<'s>>,
    asked: Vec<&'static str>,
}

impl<'s> Properties<'s> {
    /// The properties by key; a duplicate is noted, and the first counts.
    pub(super) fn from_stanza(stanza: &'s Stanza<'s>, notes: &mut ProblemNotes) -> Properties<'s> {
        let mut by_key: HashMap<&str, &SystressProperty> = HashMap::new();
        for property in &stanza.properties {
            if let Some(first) = by_key.get(property.key.value) {
                let problem = Problem::error(
                    ProblemKind::Syntax,
                    Some(property.key.span),
                    "this property is set twice",
                );
                notes.problems.push(problem.with_related(first.key.span, "first here"));
            } else {
                by_key.insert(property.key.value, property);
            }
        }
        Properties { stanza, by_key, asked: Vec::new() }
    }

    /// A property with a value, if it is present and valid.
    pub(super) fn read_property<T>(
        &mut self,
        notes: &mut ProblemNotes,
        key: &'static str,
        read: impl FnOnce(&str) -> Read<T>,
    ) -> Setting<T> {
        self.asked.push(key);
        let property = self.by_key.get(key)?;
        if property.value.value.is_empty() {
            notes.report_wrong_value(
                property.key.span,
                Wrong::new(format!("`{key}` needs a value")),
            );
            return None;
        }
        match read(property.value.value) {
            Ok(value) => Some(At::new(property.value.span, value)),
            Err(wrong) => {
                notes.report_wrong_value(property.value.span, wrong.with_key(key));
                None
            }
        }
    }

    /// A property without a value.
    pub(super) fn take_flag(&mut self, notes: &mut ProblemNotes, key: &'static str) -> At<bool> {
        self.asked.push(key);
        let Some(property) = self.by_key.get(key) else { return At::new(self.stanza.span, false) };
        if !property.value.value.is_empty() {
            notes.report_wrong_value(
                property.value.span,
                Wrong::new(format!("`{key}` takes no value")),
            );
        }
        At::new(property.key.span, true)
    }

    /// Whether the key is present, valid or not.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Reports every key that was not read as unknown.
    pub(super) fn finish(self, notes: &mut ProblemNotes) {
        let place = format!("`{}`", self.stanza.name);
        for property in self
            .stanza
            .properties
            .iter()
            .filter(|property| !self.asked.contains(&property.key.value))
        {
            notes.report_unknown_word(property.key.span, property.key.value, &place, &self.asked);
        }
    }
}
