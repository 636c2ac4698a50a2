//! Lists the lines of a program at which probes are possible.

use super::budget::StepBudget;
use super::debug::{Dwarf, Slice};
use super::{SourceLines, WhichLines, copies, search, source};
use crate::symbols::SymbolError;
use crate::symbols::object::CodePositions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The maximum number of rows of one unit, and of lines of one file.
const ROWS_MAX: usize = 1 << 20;

/// The source files of a program or library with their lines; the inner error is why nothing is
/// known of them.
pub fn of_file(
    path: &Path,
    which: &WhichLines,
) -> Result<Result<Vec<SourceLines>, String>, SymbolError> {
    let found = search::with_dwarf(path, |dwarf, code| collect_lines(dwarf, code, which))?;
    let listed = |(file, lines)| SourceLines { object: path.to_owned(), file, lines };
    Ok(found.map(|files| files.into_iter().map(listed).collect()))
}

type UnitFiles = BTreeMap<String, BTreeMap<u64, usize>>;

fn collect_lines(
    dwarf: &Dwarf,
    code: &CodePositions,
    which: &WhichLines,
) -> gimli::Result<UnitFiles> {
    let (mut files, mut budget, mut kept) = (UnitFiles::new(), StepBudget::new(), 0);
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        budget.spend_step()?;
        // An unreadable unit does not affect the others.
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok((names, rows)) = unit_rows(dwarf, &unit, code, which, &mut budget) else { continue };
        budget.spend_step()?;
        let once_per_line = || rows.iter().map(|(_, line)| (*line, 1)).collect();
        // Without readable entries each line counts once.
        let counts =
            copies::of_each(dwarf, &unit, &rows, &mut budget).unwrap_or_else(|_| once_per_line());
        kept += counts.len();
        if kept > ROWS_MAX {
            return Err(gimli::Error::TooManyIterations);
        }
        for ((file, line), count) in counts {
            let Some(name) = names.get(&file) else { continue };
            *files.entry(name.clone()).or_default().entry(line).or_default() += count;
        }
    }
    Ok(files)
}

/// A line: the number of its file in the unit, and its own.
type Numbered = (u64, u64);
/// The names of a unit's files, and the instructions at which its lines begin.
type UnitRows = (BTreeMap<u64, String>, BTreeSet<(u64, Numbered)>);

/// The requested rows of the unit.
fn unit_rows(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    code: &CodePositions,
    which: &WhichLines,
    budget: &mut StepBudget,
) -> gimli::Result<UnitRows> {
    let (mut names, mut found) = (BTreeMap::new(), BTreeSet::new());
    let Some(program) = unit.line_program.clone() else { return Ok((names, found)) };
    for (number, name) in search::source_files(dwarf, unit, program.header(), budget)? {
        if which.is_of(&name) {
            names.insert(number, name);
        }
    }
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        budget.spend_step()?;
        if row.end_sequence() || !row.is_stmt() || !names.contains_key(&row.file_index()) {
            continue;
        }
        // Functions removed by the linker leave rows with addresses outside of any code.
        let (Some(line), Some((offset, _))) = (row.line(), code.place_of(row.address())) else {
            continue;
        };
        if !which.has_offset(offset) {
            continue;
        }
        if found.len() >= ROWS_MAX {
            return Err(gimli::Error::TooManyIterations);
        }
        found.insert((row.address(), (row.file_index(), line.get())));
    }
    Ok((names, found))
}

impl WhichLines {
    fn is_of(&self, file: &str) -> bool {
        match self {
            WhichLines::Source(asked) => source::is_meant(asked, file),
            WhichLines::All | WhichLines::Code(_) => true,
        }
    }

    fn has_offset(&self, offset: u64) -> bool {
        match self {
            WhichLines::Code(ranges) => ranges.iter().any(|range| range.contains(&offset)),
            WhichLines::All | WhichLines::Source(_) => true,
        }
    }
}
