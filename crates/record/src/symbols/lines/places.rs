//! Resolves instructions to their source lines: the inverse of [`super::search`].

use super::budget::StepBudget;
use super::debug::{Dwarf, Slice, with_sections};
use super::source;
use gimli::LineProgramHeader;
use std::collections::HashMap;
use std::path::Path;

/// The lines of instructions at these ascending addresses of a program: `mm/page_alloc.c:1123`,
/// without the compile directory. Addresses without a line are omitted.
///
/// # Errors
/// The reason why line information is missing.
pub fn lines_at(
    path: &Path,
    data: &[u8],
    addresses: &[u64],
) -> Result<HashMap<u64, String>, String> {
    with_sections(path, data, |sections| {
        let mut found = HashMap::new();
        // Results before an unreadable part are kept.
        let _ = search(&sections.dwarf(), addresses, &mut found);
        Ok(found)
    })
}

fn search(dwarf: &Dwarf, wanted: &[u64], found: &mut HashMap<u64, String>) -> gimli::Result<()> {
    let mut budget = StepBudget::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        budget.spend()?;
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = unit.line_program.clone() else { continue };
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, u64)> = None;
        while let Ok(Some((header, row))) = rows.next_row() {
            budget.spend()?;
            if let Some((from, file, line)) = before {
                let begin = wanted.partition_point(|address| *address < from);
                let inside = wanted[begin..].iter().take_while(|at| **at < row.address());
                for address in inside {
                    let name = || format!("{}:{line}", file_name(dwarf, &unit, header, file));
                    found.entry(*address).or_insert_with(name);
                }
            }
            // Line 0 is code without a line (DWARF 5, 6.2.2).
            let line = row.line().map(std::num::NonZero::get);
            before = line
                .filter(|_| !row.end_sequence())
                .map(|line| (row.address(), row.file_index(), line));
        }
    }
    Ok(())
}

/// A source file by its number, relative to its compile directory.
fn file_name(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    header: &LineProgramHeader<Slice>,
    number: u64,
) -> String {
    let text = |value| {
        let bytes = dwarf.attr_string(unit, value).ok()?;
        Some(bytes.to_string_lossy().into_owned())
    };
    let compiled_in =
        unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(file) = header.file(number) else { return "?".to_owned() };
    let name = text(file.path_name()).unwrap_or_default();
    let directory = file.directory(header).and_then(text).unwrap_or_default();
    let path = source::join(&[&compiled_in, &directory, &name]);
    let below = path.strip_prefix(&compiled_in).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(&path).trim_start_matches("./").to_owned()
}
