//! Results of other tools made into bundles, so that old ones stand beside new ones in one report.
//!
//! What the other tool did not keep stays absent; what had to be assumed is said in a finding. Input is read and checked as a whole
//! before anything is written.

mod cmdline;
mod histogram;
mod json;
mod recorded;
mod write;

use crate::summary::Summary;
use crate::{Bundle, BundleError};
use recorded::Recorded;
use std::io::{self, Read};
use std::path::Path;

/// The largest file that is read: 256 MiB.
pub const MAX_INPUT: u64 = 1 << 28;

/// A format that can be imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportFormat {
    /// The file of cyclictest's `--json`.
    CyclictestJson,
    /// The output of cyclictest's `-h`, `-H` or `--histfile`.
    CyclictestHistogram,
}

impl ImportFormat {
    /// Every format.
    pub const ALL: [ImportFormat; 2] = [ImportFormat::CyclictestJson, ImportFormat::CyclictestHistogram];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ImportFormat::CyclictestJson => "cyclictest-json",
            ImportFormat::CyclictestHistogram => "cyclictest-histogram",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<ImportFormat> {
        ImportFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that a text looks like: JSON begins with a brace.
    fn detect(text: &str) -> ImportFormat {
        if text.trim_start().starts_with('{') {
            ImportFormat::CyclictestJson
        } else {
            ImportFormat::CyclictestHistogram
        }
    }
}

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The name of the experiment; usually the file's.
    pub name: String,
    /// The format; recognised from the text where it is not given.
    pub format: Option<ImportFormat>,
    /// Whether a histogram text is in ns (cyclictest's `-N`): the text itself does not say, JSON does.
    pub nanoseconds: bool,
}

/// Why an import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read the input: {0}")]
    Read(#[from] io::Error),
    /// The input is larger than [`MAX_INPUT`].
    #[error("the input is larger than {} MiB: no tool writes such a file", MAX_INPUT >> 20)]
    TooLarge,
    /// The input is not what it should be.
    #[error("line {line}: {why} (read as {}; another format is chosen with --format)", format.name())]
    Malformed {
        /// What it was read as.
        format: ImportFormat,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// What is wrong with an input, and in which line; the format is added by [`parse`].
#[derive(Debug, PartialEq, Eq)]
struct Malformed {
    line: usize,
    why: String,
}

impl Malformed {
    fn at(line: usize, why: impl Into<String>) -> Malformed {
        Malformed { line, why: why.into() }
    }
}

/// Reads the results of another tool and writes them as a bundle into `directory`, which must not exist. `summarize` makes the
/// figures of the finished bundle (`punctual_analyze::summarize`).
pub fn import(
    input: &mut dyn Read,
    directory: &Path,
    options: &ImportOptions,
    summarize: fn(&Bundle) -> Summary,
) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    input.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    let recorded = parse(&bytes, options)?;
    write::write(&recorded, directory, options, summarize)?;
    Ok(())
}

/// Reads and checks an input without writing anything.
pub fn check(bytes: &[u8], options: &ImportOptions) -> Result<(), ImportError> {
    parse(bytes, options).map(|recorded| recorded.threads.iter().for_each(|thread| drop(thread.data(recorded.unit))))
}

fn parse(bytes: &[u8], options: &ImportOptions) -> Result<Recorded, ImportError> {
    if bytes.len() as u64 > MAX_INPUT {
        return Err(ImportError::TooLarge);
    }
    let text = std::str::from_utf8(bytes);
    let format = options.format.unwrap_or(text.map_or(ImportFormat::CyclictestHistogram, ImportFormat::detect));
    let malformed = |Malformed { line, why }| ImportError::Malformed { format, line, why };
    let text = text.map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        malformed(Malformed::at(line, "the text is not UTF-8"))
    })?;
    match format {
        ImportFormat::CyclictestJson => json::parse(text),
        ImportFormat::CyclictestHistogram => histogram::parse(text, options.nanoseconds),
    }
    .map_err(malformed)
}

#[cfg(test)]
mod tests;
