//! Bundles in the formats of other tools.

use punctual_bundle::{Bundle, BundleError};
use std::io::{self, Write};

mod json;

/// A format to export to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The summary as JSON.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 1] = [Format::Json];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
        }
    }

    /// What it is, in one line.
    pub fn description(self) -> &'static str {
        match self {
            Format::Json => "the summary as JSON (docs/json.md)",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// A part of the bundle that the format needs cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The bundle does not hold what the format is made of.
    #[error("{format} cannot be written from this bundle: {why}")]
    Impossible {
        /// The format.
        format: &'static str,
        /// What is missing, and what to do.
        why: String,
    },
}

/// Writes a bundle in a format as one stream.
pub fn export(bundle: &Bundle, format: Format, out: &mut dyn Write) -> Result<(), ExportError> {
    match format {
        Format::Json => json::write(bundle, out),
    }
}
