//! Lab files: an experiment with axes. Every combination of their values is a cell, a separate
//! experiment.
//!
//! A lab file is an experiment file with three more sections: `[lab]`, `[axes]`, and any number of
//! `[[exclude]]` (docs/reference/lab.md). Reading order: [`read`] the file, the [`change`]s of a
//! value, the resulting [`cells`].

mod axis;
mod cells;
mod change;
mod published;
mod read;
mod seeds;
mod settings;

pub use axis::{Axis, AxisValue, CellSelection};
pub use cells::{CellError, LabCell};
pub use change::with_command_line;
pub use published::{PublishedRowSpec, PublishedTable};
pub use seeds::{Seeds, SeedsError};

use crate::context::LoadOptions;
use crate::experiment::SectionKeys;
use crate::problem::Problems;
use crate::section::FileSection;
use crate::text::{At, SourceText};
use punctual_core::Requirement;
use settings::LabSettings;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Cells of a lab.
pub const MAX_CELLS: usize = 4_096;
/// Axes of a lab.
pub(crate) const MAX_AXES: usize = 16;
/// Values of an axis.
pub const MAX_VALUES: usize = 256;
/// Repetitions of a cell.
pub(crate) const MAX_REPEAT: u64 = 1_000;
/// Cells that may run at the same time.
pub(crate) const MAX_PARALLEL: u64 = 1_024;

/// A whole lab file, from [`load_lab`].
#[derive(Clone, Debug)]
pub struct Lab {
    /// The file's name and text, as read.
    pub source: Arc<SourceText>,
    /// Its name: `name` of `[lab]`, else of the experiment, else of the file.
    pub name: String,
    /// The axes, in the order of the file; without any there is one cell.
    pub axes: Vec<Axis>,
    /// Excluded combinations.
    pub excludes: Vec<CellSelection>,
    /// The number of runs of each cell with each seed; at least one.
    pub repeat: u32,
    /// The seeds; `None`: that of the experiment.
    pub seeds: Option<Seeds>,
    /// Requirements on every cell.
    pub requirements: Vec<LabRequirementSpec>,
    /// Cells that may run at the same time; `None`: as many as do not disturb each other.
    pub parallel: Option<usize>,
    /// Published figures to show beside the measured ones.
    pub published: Vec<PublishedTable>,
    /// The experiment's own file, if it is not in the lab file.
    pub experiment: Option<PathBuf>,
    /// The experiment that the axes change.
    base: toml::Table,
}

impl Lab {
    /// A lab with cells from another source.
    pub fn of_cells(name: &str) -> Lab {
        let text = format!("# The cells of this lab were made by `punctual {name}`.\n");
        Lab {
            source: Arc::new(SourceText { path: PathBuf::from(name), text }),
            name: name.to_owned(),
            axes: Vec::new(),
            excludes: Vec::new(),
            repeat: 1,
            seeds: None,
            requirements: Vec::new(),
            parallel: None,
            published: Vec::new(),
            experiment: None,
            base: toml::Table::new(),
        }
    }
}

/// The declared sections that only a lab file has; `[axes]` and `[[exclude]]` have arbitrary keys.
pub fn lab_sections() -> Vec<SectionKeys> {
    vec![SectionKeys { header: "[lab]", keys: LabSettings::section_keys() }]
}

/// A requirement on the series of a measure, or of all.
#[derive(Clone, PartialEq, Debug)]
pub struct LabRequirementSpec {
    /// The measure; `None`: every one.
    pub measure: Option<String>,
    /// The requirement.
    pub requirement: At<Requirement>,
}

/// Reads the file of an experiment that a lab names, by its path as written beside the lab file.
/// The error is why it cannot be read.
pub type ReadFile<'a> = dyn Fn(&Path) -> Result<Vec<u8>, String> + 'a;

/// Reads a lab file. `read_file` reads the experiment that it names.
///
/// # Errors
/// All errors in the file at once.
pub fn load_lab(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions,
    read_file: &ReadFile,
) -> Result<Lab, Problems> {
    let source = crate::load::decode_text(path, bytes)?;
    let (lab, mut problems) = read::read(source, options, read_file);
    problems.sort();
    match lab.filter(|_| problems.error_count() == 0) {
        Some(lab) => Ok(lab),
        None => Err(problems),
    }
}

/// Whether a text is a lab file, not an experiment: it has a `[lab]` or `[axes]`.
pub fn is_lab(text: &str) -> bool {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let document = document.get_ref();
    document.contains_key("lab") || document.contains_key("axes")
}
