//! Finds the code of a line in the debug information of a program.

use super::budget::StepBudget;
use super::debug::{DebugSections, Dwarf, Slice, has_lines, read_separate};
use super::{LinePlace, LineSpec, PLACES_MAX, SourceLine, copies, source};
use crate::symbols::object::{CodePositions, read};
use crate::symbols::{Site, SymbolError, short_name};
use elf::ElfBytes;
use elf::endian::AnyEndian;
use gimli::{AttributeValue, LineProgramHeader};
use punctual_core::words;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of instructions of one line, before copies are distinguished.
const ADDRESSES_MAX: usize = 1 << 20;
/// The maximum number of source file names kept for suggestions.
const NAMES_MAX: usize = 1 << 16;
/// The maximum number of consecutive nops that a probe is placed after.
const NOPS_MAX: u64 = 16;
const NOP5_BYTES: u64 = 5;

/// The debug information of one file on a line.
#[derive(Default)]
struct LineAnswer {
    addresses: Vec<u64>,
    /// Whether it contains the source file.
    has_source: bool,
    /// The nearest lines with code, below and above.
    below: Option<u64>,
    above: Option<u64>,
    sources: BTreeSet<String>,
}

/// The line, in the first of these files that has code of it.
pub(crate) fn find_line(spec: &LineSpec, files: &[PathBuf]) -> Result<SourceLine, SymbolError> {
    let text = || spec.text.clone();
    let named = spec.binary.as_ref().and_then(|binary| binary.path.clone());
    let mut all_files: Vec<&PathBuf> = files.iter().chain(&named).collect();
    all_files.dedup();
    let known_files =
        || all_files.iter().map(|path| short_name(path)).collect::<Vec<_>>().join(", ");
    let searched: Vec<&PathBuf> = all_files
        .iter()
        .copied()
        .filter(|path| spec.binary.as_ref().is_none_or(|binary| binary.is_in(path)))
        .collect();
    if searched.is_empty() {
        let object =
            spec.binary.as_ref().and_then(|binary| binary.object.clone()).unwrap_or_default();
        if object.is_empty() {
            let reason =
                "name the program or library that has it, as in ./PROGRAM:FILE:LINE".to_owned();
            return Err(SymbolError::NoDebugInformation { spec: text(), why: reason });
        }
        return Err(SymbolError::NoObject { spec: text(), object, known: known_files() });
    }
    let (mut without, mut with, mut sources) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut no_code = None;
    for path in searched {
        let answer = match of_file(path, spec)? {
            Ok(answer) => answer,
            Err(why) => {
                without.push(why);
                continue;
            }
        };
        with.push(short_name(path));
        if !answer.places.is_empty() {
            return Ok(SourceLine {
                name: spec.display_name(),
                object: path.clone(),
                places: answer.places,
            });
        }
        if answer.found.has_source && no_code.is_none() {
            no_code =
                Some((short_name(path), describe_nearest(answer.found.below, answer.found.above)));
        }
        sources.extend(answer.found.sources);
    }
    if let Some((object, near)) = no_code {
        return Err(SymbolError::NoCode {
            spec: text(),
            line: spec.line,
            file: spec.file.clone(),
            object,
            near,
        });
    }
    if with.is_empty() {
        // The C library usually has none: the program's own reason is reported.
        let reason = without.into_iter().next().unwrap_or_default();
        return Err(SymbolError::NoDebugInformation { spec: text(), why: reason });
    }
    let hint =
        words::nearest_word(source::file_name(&spec.file), sources.iter().map(String::as_str));
    let hint = hint.map(|near| format!("; did you mean `{near}:{}`?", spec.line));
    let no_symbols = without.first().map(|why| format!("; {why}"));
    let hint = hint.or(no_symbols).unwrap_or_default();
    Err(SymbolError::NoSource {
        spec: text(),
        file: spec.file.clone(),
        searched: with.join(", "),
        hint,
    })
}

struct OfFile {
    found: LineAnswer,
    places: Vec<LinePlace>,
}

/// The information of this program or library on the line; the inner error is why there is none.
fn of_file(path: &Path, spec: &LineSpec) -> Result<Result<OfFile, String>, SymbolError> {
    let found = with_dwarf(path, |dwarf, code| {
        let found = search_units(dwarf, spec, code)?;
        let places: Vec<LinePlace> =
            found.addresses.iter().filter_map(|address| probe_place(code, *address)).collect();
        Ok(OfFile { found, places })
    })?;
    let Ok(mut answer) = found else { return Ok(found) };
    answer.places.sort_unstable_by_key(|place| place.offset);
    answer.places.dedup();
    if answer.places.len() > PLACES_MAX {
        return Err(SymbolError::TooMany { spec: spec.text.clone(), found: answer.places.len() });
    }
    Ok(Ok(answer))
}

/// Reads the debug information of a file, embedded or separate; the inner error is why there is
/// none.
pub(super) fn with_dwarf<T>(
    path: &Path,
    read_dwarf: impl FnOnce(&Dwarf, &CodePositions) -> gimli::Result<T>,
) -> Result<Result<T, String>, SymbolError> {
    let malformed = |why: String| SymbolError::Malformed { path: path.to_owned(), why };
    let data = read(path)?;
    let broken = |why: elf::ParseError| malformed(format!("a broken ELF file: {why}"));
    let file = ElfBytes::<AnyEndian>::minimal_parse(&data).map_err(broken)?;
    let code = CodePositions::from_file(path, &data, &file);
    let separated;
    let debug = if has_lines(&file) {
        ElfBytes::<AnyEndian>::minimal_parse(&data)
    } else {
        match read_separate(path, &file) {
            Ok(found) => {
                separated = found;
                ElfBytes::minimal_parse(&separated)
            }
            Err(why) => return Ok(Err(why)),
        }
    };
    let debug = debug.map_err(broken)?;
    let sections = DebugSections::from_file(&debug).map_err(malformed)?;
    let found = read_dwarf(&sections.as_dwarf(), &code)
        .map_err(|why| malformed(format!("debug information that cannot be read: {why}")))?;
    Ok(Ok(found))
}

/// The position of the probe. Linux 6.18 replaces a five-byte nop by a call, which overwrites data
/// below the stack pointer: within a function that may be in use (the red zone of the x86-64 ABI),
/// so the probe is placed after it.
fn probe_place(code: &CodePositions, mut address: u64) -> Option<LinePlace> {
    for _ in 0..NOPS_MAX {
        let (offset, site) = code.place_of(address)?;
        if site != Site::Nop5 {
            return Some(LinePlace { offset, site });
        }
        address = address.checked_add(NOP5_BYTES)?;
    }
    None
}

pub(super) fn describe_nearest(below: Option<u64>, above: Option<u64>) -> String {
    match (below, above) {
        (Some(below), Some(above)) => {
            format!("the nearest lines that have are {below} and {above}")
        }
        (Some(line), None) | (None, Some(line)) => format!("the nearest line that has is {line}"),
        (None, None) => {
            "no line of it has: all of it was optimized away or is declarations".to_owned()
        }
    }
}

fn search_units(dwarf: &Dwarf, spec: &LineSpec, code: &CodePositions) -> gimli::Result<LineAnswer> {
    let mut answer = LineAnswer::default();
    let mut budget = StepBudget::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        budget.spend_step()?;
        // An unreadable unit does not affect the others.
        let Ok(unit) = dwarf.unit(header) else { continue };
        let before = answer.addresses.len();
        let _ = of_unit(dwarf, &unit, spec, code, &mut answer, &mut budget);
        budget.spend_step()?;
        if answer.addresses.len() > before {
            let of_unit = answer.addresses.split_off(before);
            // Without readable entries every instruction counts as a copy: more are passed, none is
            // missed.
            let first = copies::first_of_each(dwarf, &unit, of_unit.clone(), &mut budget)
                .unwrap_or(of_unit);
            answer.addresses.extend(first);
        }
    }
    Ok(answer)
}

/// The rows of the line program of one unit.
fn of_unit(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    spec: &LineSpec,
    code: &CodePositions,
    answer: &mut LineAnswer,
    budget: &mut StepBudget,
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let meant = meant_files(dwarf, unit, program.header(), spec, answer, budget)?;
    if meant.is_empty() {
        return Ok(());
    }
    answer.has_source = true;
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        budget.spend_step()?;
        if row.end_sequence() || !row.is_stmt() || !meant.contains(&row.file_index()) {
            continue;
        }
        // Functions removed by the linker leave rows with addresses outside of any code.
        let (Some(line), Some(_)) = (row.line(), code.place_of(row.address())) else { continue };
        let line = line.get();
        match line.cmp(&spec.line) {
            std::cmp::Ordering::Less => answer.below = answer.below.max(Some(line)),
            std::cmp::Ordering::Greater => {
                answer.above = Some(answer.above.map_or(line, |above| above.min(line)))
            }
            std::cmp::Ordering::Equal if answer.addresses.len() >= ADDRESSES_MAX => {
                return Err(gimli::Error::TooManyIterations);
            }
            std::cmp::Ordering::Equal => answer.addresses.push(row.address()),
        }
    }
    Ok(())
}

/// The numbers by which rows refer to the requested source file.
fn meant_files(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    header: &LineProgramHeader<Slice>,
    spec: &LineSpec,
    answer: &mut LineAnswer,
    budget: &mut StepBudget,
) -> gimli::Result<BTreeSet<u64>> {
    let mut meant = BTreeSet::new();
    for (number, path) in source_files(dwarf, unit, header, budget)? {
        if source::is_meant(&spec.file, &path) {
            meant.insert(number);
        }
        if answer.sources.len() < NAMES_MAX {
            answer.sources.insert(source::file_name(&path).to_owned());
        }
    }
    Ok(meant)
}

/// The source files of a unit, with the numbers by which rows refer to them.
pub(super) fn source_files(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Slice>,
    header: &LineProgramHeader<Slice>,
    budget: &mut StepBudget,
) -> gimli::Result<Vec<(u64, String)>> {
    let text = |value: AttributeValue<Slice>| {
        let bytes = dwarf.attr_string(unit, value).ok()?;
        Some(bytes.to_string_lossy().into_owned())
    };
    let compiled_in =
        unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default();
    let mut files = Vec::new();
    // Numbers begin at 0 since DWARF 5, at 1 before.
    for number in 0..=header.file_names().len() as u64 {
        budget.spend_step()?;
        let Some(file) = header.file(number) else { continue };
        let Some(name) = text(file.path_name()) else { continue };
        let directory = file.directory(header).and_then(text).unwrap_or_default();
        files.push((number, source::join_parts(&[&compiled_in, &directory, &name])));
    }
    Ok(files)
}
