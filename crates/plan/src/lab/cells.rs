//! Every combination of the axes' values.

use super::{Lab, MAX_CELLS};
use crate::context::LoadOptions;
use crate::experiment::Experiment;
use crate::problem::Problems;
use std::collections::BTreeSet;
use std::path::PathBuf;
use toml::{Table, Value};

/// The longest name of a cell's directory: with suffixes, it stays below NAME_MAX.
const NAME_BYTES: usize = 120;

/// A combination.
#[derive(Clone, PartialEq, Debug)]
pub struct LabCell {
    /// Its directory's name: the values, joined; only letters, digits, `.`, `-`, `_` and `+`. The
    /// same values have the same name.
    pub name: String,
    /// The value of each axis, in the order of the axes.
    pub axes: Vec<(String, String)>,
    experiment: Table,
}

/// Why there are no cells.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CellError {
    /// Too many combinations.
    #[error("these axes make {0} cells, more than {MAX_CELLS}: leave some out")]
    TooMany(u128),
    /// All combinations are excluded.
    #[error("every cell is excluded by an `[[exclude]]`")]
    None,
    /// A value that cannot be applied to the experiment.
    #[error("the value `{value}` of the axis `{axis}` cannot be applied: {why}")]
    Apply {
        /// The name in the lab file.
        axis: String,
        /// The label.
        value: String,
        /// The reason, in words that follow a colon.
        why: String,
    },
}

impl LabCell {
    /// A separate cell without axes, from its directory's name and the text of its experiment.
    ///
    /// # Errors
    /// The text is not TOML.
    pub fn from_text(name: String, experiment: &str) -> Result<LabCell, String> {
        let experiment = experiment.parse().map_err(|why: toml::de::Error| why.to_string())?;
        Ok(LabCell { name, axes: Vec::new(), experiment })
    }

    /// The experiment in TOML, with this seed if there is one. The same cell and seed have the same
    /// text.
    pub fn experiment_with_seed(&self, seed: Option<u64>) -> String {
        let mut experiment = self.experiment.clone();
        if let Some(seed) = seed {
            let settings =
                experiment.entry("experiment").or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(settings) = settings {
                settings.insert(
                    "seed".to_owned(),
                    Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX)),
                );
            }
        }
        experiment.to_string()
    }

    /// Parses the cell's experiment.
    ///
    /// # Errors
    /// All errors in it at once.
    pub fn check_experiment(
        &self,
        lab: &Lab,
        options: &LoadOptions,
    ) -> Result<Experiment, Problems> {
        let path = PathBuf::from(format!("{}, cell {}.toml", lab.source.path.display(), self.name));
        crate::load_experiment(&path, self.experiment_with_seed(None).as_bytes(), options)
    }
}

impl Lab {
    /// The cells; the last axis changes fastest.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn list_cells(&self) -> Result<Vec<LabCell>, CellError> {
        let total = self
            .axes
            .iter()
            .fold(1u128, |total, axis| total.saturating_mul(axis.values.len() as u128));
        if total > MAX_CELLS as u128 {
            return Err(CellError::TooMany(total));
        }
        let mut cells = Vec::new();
        let mut names = BTreeSet::new();
        for number in 0..total as usize {
            let choice = self.axis_choice(number);
            let axes: Vec<(String, String)> = self
                .axes
                .iter()
                .zip(&choice)
                .map(|(axis, k)| (axis.name.clone(), axis.values[*k].label.clone()))
                .collect();
            if self.excludes.iter().any(|exclude| exclude.has_cell(&axes)) {
                continue;
            }
            let mut name = cell_name(&axes);
            if !names.insert(name.clone()) {
                name = format!("{name}+{number}");
                names.insert(name.clone());
            }
            cells.push(LabCell { name, axes, experiment: self.apply_choice(&choice)? });
        }
        if cells.is_empty() { Err(CellError::None) } else { Ok(cells) }
    }

    /// The index of the value of each axis in the `number`th combination.
    fn axis_choice(&self, mut number: usize) -> Vec<usize> {
        let mut choice: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let k = number % axis.values.len();
                number /= axis.values.len();
                k
            })
            .collect();
        choice.reverse();
        choice
    }

    fn apply_choice(&self, choice: &[usize]) -> Result<Table, CellError> {
        let mut experiment = self.base.clone();
        for late in [false, true] {
            for (axis, k) in self.axes.iter().zip(choice) {
                let value = &axis.values[*k];
                for step in value.steps.iter().filter(|step| step.is_late() == late) {
                    step.apply(&mut experiment).map_err(|why| CellError::Apply {
                        axis: axis.name.clone(),
                        value: value.label.clone(),
                        why,
                    })?;
                }
            }
        }
        Ok(experiment)
    }
}

/// A directory's name for these values.
fn cell_name(axes: &[(String, String)]) -> String {
    if axes.is_empty() {
        return "cell".to_owned();
    }
    let words: Vec<String> = axes.iter().map(|(_, label)| to_slug(label)).collect();
    let whole: String = axes.iter().map(|(_, label)| format!("{label}\0")).collect();
    let mut name = words.join("_");
    // A checksum of the full name makes a shortened name unique.
    if name.len() > NAME_BYTES || axes.iter().zip(&words).any(|((_, label), word)| label != word) {
        name.truncate(NAME_BYTES);
        name = format!("{name}+{:08x}", fnv_hash(&whole));
    }
    if name.starts_with('.') { format!("_{name}") } else { name }
}

/// Only characters without special meaning in shells, URLs and file systems.
fn to_slug(label: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    let text: String = label.chars().map(safe).collect();
    let parts: Vec<&str> = text.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "x".to_owned() } else { parts.join("-") }
}

/// Fowler, Noll and Vo's hash, 32 bits, variant 1a (draft-eastlake-fnv).
fn fnv_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(labels: &[&str]) -> String {
        cell_name(
            &labels
                .iter()
                .map(|label| ("axis".to_owned(), (*label).to_owned()))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn names_of_cells_are_safe_file_names() {
        assert_eq!(named(&["6.1", "rt", "idle"]), "6.1_rt_idle");
        assert_eq!(named(&[]), "cell");
        for hostile in
            ["../../etc", "a b", "-x", "\u{202e}", "", "x".repeat(400).as_str(), "..", "a_b"]
        {
            let name = named(&[hostile, "y"]);
            assert!(name.len() < 140 && !name.starts_with(['.', '-']), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b)),
                "{name}"
            );
        }
        assert_ne!(named(&["a b"]), named(&["a/b"]), "similar names are distinguished");
        assert_ne!(named(&["a_b", "c"]), named(&["a", "b_c"]));
    }
}
