//! Programs compiled with points at every function or step (`crates/testpoint/c/punctual/steps.c`):
//! where the compiler put them, and whose code that is.
//!
//! The places are the direct calls of the compiler's hooks, which are in the same file.

use super::lines::{LineRow, line_rows};
use super::object::{self, ElfObject};
use elf::abi::{EM_AARCH64, EM_X86_64};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// The compiler calls these at steps.
const STEPS: [&str; 2] = ["__sanitizer_cov_trace_pc", "__sanitizer_cov_trace_pc_guard"];
const ENTRY: &str = "__cyg_profile_func_enter";

/// A function with points in it. Addresses are those of the file, without load base.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstrumentedFunction {
    /// Demangled, without parameters.
    pub name: String,
    pub code: Range<u64>,
    /// Whether its entry is recorded.
    pub enters: bool,
    /// Its steps, ascending: the last byte of each call.
    pub steps: Vec<u64>,
}

/// A program or library with points at functions or steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstrumentedFile {
    /// In ascending order of their code.
    pub functions: Vec<InstrumentedFunction>,
    /// The lines of their code, ascending by address; or why there are none.
    pub rows: Result<Vec<LineRow>, String>,
}

impl InstrumentedFile {
    /// Reads a file and checks that it is of this build: the first eight bytes of its build id in
    /// hexadecimal; `0` where the program had none, which nothing is checked against.
    ///
    /// # Errors
    /// The file cannot be read, or is another one.
    pub fn read(path: &Path, build: &str) -> Result<InstrumentedFile, String> {
        let data = object::read(path).map_err(|why| why.to_string())?;
        let object_file = ElfObject::of_bytes(path, &data).map_err(|why| why.to_string())?;
        let (id, name) = (object_file.build_id.as_deref().unwrap_or("0"), path.display());
        if !id.starts_with(build) {
            return Err(format!("{name} is of another build ({id}) than what ran ({build}…)"));
        }
        let machine = data.get(18..20).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        if !matches!(machine, EM_X86_64 | EM_AARCH64) {
            return Err(format!("{name}: calls are known of x86-64 and arm64 alone"));
        }
        let parts = object::executable_parts(&data);
        let code_of = |function: &object::Function| {
            let offset = usize::try_from(function.offset).ok()?;
            let (range, address) = parts.iter().find(|(range, _)| range.contains(&offset))?;
            let size = usize::try_from(function.size).ok()?;
            let code = data.get(offset..range.end.min(offset.saturating_add(size)))?;
            Some((address.wrapping_add((offset - range.start) as u64), code))
        };
        let hooks = object_file.functions.iter().filter_map(|function| {
            let enters = function.symbol == ENTRY;
            let is_hook = enters || STEPS.contains(&function.symbol.as_str());
            is_hook.then(|| code_of(function).map(|(at, _)| (at, enters))).flatten()
        });
        let hooks: HashMap<u64, bool> = hooks.collect();
        if hooks.is_empty() {
            return Err(format!("{name} has no symbols of punctual-steps: it was stripped"));
        }
        let mut functions: Vec<InstrumentedFunction> = Vec::new();
        for function in &object_file.functions {
            let Some((begin, code)) = code_of(function) else { continue };
            let called = (0..code.len()).filter_map(|at| {
                let (last, target) = decode_call(machine, code, at)?;
                let enters = *hooks.get(&begin.wrapping_add(target))?;
                Some((begin.wrapping_add(last), enters))
            });
            let (entries, steps): (Vec<_>, Vec<_>) = called.partition(|(_, enters)| *enters);
            // Of several names for one place the first is the simplest.
            let is_new = functions.last().is_none_or(|last| last.code.end <= begin);
            if is_new && !(entries.is_empty() && steps.is_empty()) {
                functions.push(InstrumentedFunction {
                    name: function.bare.clone(),
                    code: begin..begin.saturating_add(code.len() as u64),
                    enters: !entries.is_empty(),
                    steps: steps.into_iter().map(|(at, _)| at).collect(),
                });
            }
        }
        let ranges: Vec<_> = functions.iter().map(|one| one.code.clone()).collect();
        let mut rows = line_rows(path, &data, &ranges);
        rows.iter_mut().for_each(|rows| rows.sort_by_key(|row| (row.code.start, row.code.end)));
        Ok(InstrumentedFile { functions, rows })
    }

    /// The function at an address.
    pub fn function_at(&self, address: u64) -> Option<&InstrumentedFunction> {
        let place = self.functions.partition_point(|one| one.code.end <= address);
        self.functions.get(place).filter(|one| one.code.contains(&address))
    }

    /// The rows of the line table that begin in this code.
    pub fn rows_of(&self, code: &Range<u64>) -> &[LineRow] {
        let rows = self.rows.as_deref().unwrap_or_default();
        let place = |at: u64| rows.partition_point(|row| row.code.start < at);
        &rows[place(code.start)..place(code.end)]
    }

    /// The line of an address.
    pub fn row_at(&self, address: u64) -> Option<&LineRow> {
        let last = self.rows_of(&(0..address.saturating_add(1))).last();
        last.filter(|row| row.code.contains(&address))
    }
}

/// The last byte of a direct call that begins here, and its target, relative to the code's begin.
fn decode_call(machine: u16, code: &[u8], at: usize) -> Option<(u64, u64)> {
    let word = |at: usize| Some(u32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?));
    let (last, target) = match machine {
        EM_X86_64 if code[at] == 0xe8 => (4, 5 + i64::from(word(at + 1)?.cast_signed())),
        EM_AARCH64 if at.is_multiple_of(4) && word(at)? >> 26 == 0b10_0101 => {
            (3, i64::from((word(at)? << 6).cast_signed() >> 6) * 4)
        }
        _ => return None,
    };
    Some((at as u64 + last, (at as u64).wrapping_add_signed(target)))
}
