//! Resolves instructions to their source lines: the inverse of [`super::search`].

use super::budget::StepBudget;
use super::debug::{Dwarf, Slice, with_sections};
use super::{LineRow, SourceFile, source};
use gimli::LineProgramHeader;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The rows of the line table with code in these ascending ranges of addresses, in its order.
///
/// # Errors
/// The reason why line information is missing.
pub(crate) fn line_rows(
    path: &Path,
    data: &[u8],
    code: &[Range<u64>],
) -> Result<Vec<LineRow>, String> {
    with_sections(path, data, |sections| {
        let mut found = Vec::new();
        // Results before an unreadable part are kept.
        let _ = collect_rows(&sections.as_dwarf(), code, &mut found);
        Ok(found)
    })
}

fn collect_rows(dwarf: &Dwarf, code: &[Range<u64>], found: &mut Vec<LineRow>) -> gimli::Result<()> {
    let mut budget = StepBudget::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        budget.spend_step()?;
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = unit.line_program.clone() else { continue };
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, u64)> = None;
        let mut files: HashMap<u64, Arc<SourceFile>> = HashMap::new();
        while let Ok(Some((header, row))) = rows.next_row() {
            budget.spend_step()?;
            if let Some((from, file, line)) = before.filter(|(from, ..)| *from < row.address()) {
                let place = code.partition_point(|wanted| wanted.end <= from);
                if code.get(place).is_some_and(|wanted| wanted.start < row.address()) {
                    let name = || Arc::new(source_file(dwarf, &unit, header, file));
                    let source = files.entry(file).or_insert_with(name).clone();
                    found.push(LineRow { code: from..row.address(), source, line });
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

/// A source file by its number.
fn source_file(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    header: &LineProgramHeader<Slice>,
    number: u64,
) -> SourceFile {
    let text = |value| {
        let bytes = dwarf.attr_string(unit, value).ok()?;
        Some(bytes.to_string_lossy().into_owned())
    };
    let compiled_in =
        unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default();
    let file = header.file(number);
    let name = file.and_then(|file| text(file.path_name())).unwrap_or_else(|| "?".to_owned());
    let directory = file.and_then(|file| file.directory(header)).and_then(text).unwrap_or_default();
    let path = source::join_parts(&[&compiled_in, &directory, &name]);
    let below = path.strip_prefix(&compiled_in).and_then(|rest| rest.strip_prefix('/'));
    let name = below.unwrap_or(&path).trim_start_matches("./").to_owned();
    SourceFile { path, name }
}
