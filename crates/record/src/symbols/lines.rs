//! Source lines: from `loop.c:42` to the instructions at which its code begins, by the debug
//! information of the program (DWARF).

#[cfg(feature = "lines")]
mod budget;
#[cfg(feature = "lines")]
mod copies;
#[cfg(feature = "lines")]
mod debug;
#[cfg(feature = "lines")]
mod frames;
#[cfg(feature = "lines")]
mod list;
#[cfg(feature = "lines")]
mod places;
mod rows;
#[cfg(feature = "lines")]
mod search;
#[cfg(feature = "lines")]
mod source;
mod spec;

#[cfg(feature = "lines")]
pub(crate) use frames::frames_at;
#[cfg(feature = "lines")]
pub(super) use places::line_rows;
pub use rows::{LineRow, SourceFile, lines_at};
pub use spec::LineSpec;

use super::{Site, SymbolError};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The maximum number of places of one line: each costs a probe.
pub(crate) const PLACES_MAX: usize = 4_096;

/// A source line of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// Its name in figures: `loop.c:42`.
    pub name: String,
    /// The object file.
    pub object: PathBuf,
    /// The starts of its code: one per copy made by the compiler.
    pub places: Vec<LinePlace>,
}

/// An instruction at which the code of a line begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePlace {
    /// Its offset in the file.
    pub offset: u64,
    /// The kind of probe site, which determines the cost.
    pub site: Site,
}

/// The selection of lines to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichLines {
    All,
    /// Those of a source file: its name, the end of its path, or its path.
    Source(String),
    /// Those with code at these offsets in the file.
    Code(Vec<Range<u64>>),
}

/// The lines of a source file that have code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLines {
    pub object: PathBuf,
    /// The path of the source file at compile time.
    pub file: String,
    /// Each line, with its number of copies: each takes a probe.
    pub lines: BTreeMap<u64, usize>,
}

/// Lists the lines of a program or library at which probes are possible. The inner error is why
/// nothing is known of them.
///
/// # Errors
/// An unreadable file.
#[cfg(feature = "lines")]
pub fn list_lines(
    path: &Path,
    which: &WhichLines,
) -> Result<Result<Vec<SourceLines>, String>, SymbolError> {
    list::of_file(path, which)
}

/// Built without support for debug information.
#[cfg(not(feature = "lines"))]
pub fn list_lines(
    _: &Path,
    _: &WhichLines,
) -> Result<Result<Vec<SourceLines>, String>, SymbolError> {
    Ok(Err(WITHOUT_LINES.to_owned()))
}

/// Finds the code of every line among these files, the program first: the first one with code of it
/// counts. All failures are reported together.
#[cfg(feature = "lines")]
pub fn resolve_lines(
    specs: &[LineSpec],
    files: &[PathBuf],
) -> Result<Vec<SourceLine>, Vec<SymbolError>> {
    let (mut lines, mut errors) = (Vec::<SourceLine>::new(), Vec::new());
    for spec in specs {
        match search::find_line(spec, files) {
            Ok(line) if lines.contains(&line) => {}
            Ok(line) => lines.push(line),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(lines) } else { Err(errors) }
}

/// The message of a program built without support for debug information.
#[cfg(not(feature = "lines"))]
const WITHOUT_LINES: &str = "this punctual was built without the feature `lines`, which reads \
                             debug information, as ./x build --board does: name a function, or \
                             use the whole program (./x build)";

/// Built without support for debug information.
#[cfg(not(feature = "lines"))]
pub fn resolve_lines(
    specs: &[LineSpec],
    _: &[PathBuf],
) -> Result<Vec<SourceLine>, Vec<SymbolError>> {
    let refused = |spec: &LineSpec| SymbolError::NoDebugInformation {
        spec: spec.text.clone(),
        why: WITHOUT_LINES.to_owned(),
    };
    if specs.is_empty() { Ok(Vec::new()) } else { Err(specs.iter().map(refused).collect()) }
}

/// Built without support for debug information.
#[cfg(not(feature = "lines"))]
pub(super) fn line_rows(_: &Path, _: &[u8], _: &[Range<u64>]) -> Result<Vec<LineRow>, String> {
    Err(WITHOUT_LINES.to_owned())
}

#[cfg(all(test, feature = "lines"))]
mod tests;

#[cfg(not(feature = "lines"))]
/// The functions of instructions: here none.
pub(crate) fn frames_at(
    _: &Path,
    _: &[u8],
    _: &[u64],
) -> Result<std::collections::HashMap<u64, Vec<super::SourceFrame>>, String> {
    Err("this build reads no debug information".to_owned())
}
