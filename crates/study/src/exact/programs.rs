//! The programs of a guest and its kernel, for functions and source lines in the exact explanation.

use punctual_core::{Finding, MadeOf, Severity};
use punctual_exact::dump::Dump;
use punctual_exact::programs::{ExecutableBytes, Program};
use punctual_exact::symbols::{FunctionTable, KernelSymbols, executed_blocks};
use punctual_lab::exact::GuestProgram;
use punctual_record::symbols::lines::lines_at;
use punctual_record::symbols::{ElfObject, executable_parts};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The kernel's mapping in each program.
const VDSO: &str = "[vdso]";
/// The paths of kernels with debug information in distributions.
const KERNELS: [&str; 2] = ["/usr/lib/debug/boot/vmlinux-", "/usr/lib/debug/lib/modules/"];

/// The code mappings of a file: ranges of offsets, with the address of the first offset.
type Mapped = Vec<(Range<usize>, u64)>;

/// The files of a run, each with its code and functions.
pub(crate) struct RunPrograms {
    files: Vec<(GuestProgram, Mapped)>,
    programs: Vec<Program>,
}

impl RunPrograms {
    /// The programs of a run, with the kernel's vDSO.
    pub(crate) fn from_inputs(made_of: Option<&MadeOf>, vdso: &[u8]) -> RunPrograms {
        let vdso = GuestProgram { path: VDSO.to_owned(), bytes: vdso.to_owned() };
        let files = made_of.map(punctual_lab::exact::list_programs).unwrap_or_default();
        let mut run_programs = RunPrograms { files: Vec::new(), programs: Vec::new() };
        for file in std::iter::once(vdso).chain(files) {
            let mapped = executable_parts(&file.bytes);
            if let Some(program) = read_program(&file, &mapped) {
                run_programs.files.push((file, mapped));
                run_programs.programs.push(program);
            }
        }
        run_programs
    }

    /// All names for a run.
    pub(crate) fn function_table(&self, dump: &Dump, kallsyms: &str) -> FunctionTable {
        FunctionTable::from_dump(dump, KernelSymbols::parse(kallsyms), &self.programs)
    }

    /// Adds the source lines of all code with debug information. The findings list the rest.
    pub(crate) fn add_lines(
        &self,
        names: &mut FunctionTable,
        dump: &Dump,
        release: &str,
    ) -> Vec<Finding> {
        let mut places: Vec<Vec<(u64, usize)>> = vec![Vec::new(); self.files.len()];
        for (place, program, offset) in names.user.block_positions() {
            let (_, mapped) = &self.files[program];
            places[program]
                .extend(address_of_offset(mapped, offset).map(|address| (address, place)));
        }
        let mut missing: Vec<String> = Vec::new();
        for ((file, _), places) in self.files.iter().zip(places) {
            // The C library usually has none.
            if let Err(why) = add(names, places, Path::new(&file.path), &file.bytes) {
                missing.push(why);
            }
        }
        let kernel: Vec<(u64, usize)> = executed_blocks(dump)
            .into_iter()
            .map(|place| (dump.blocks[place].pc, place))
            .filter(|(pc, _)| pc >> 63 == 1)
            .collect();
        let without_kernel = add_kernel(names, kernel, release).err();
        let finding = |what: &str, why: String| {
            Finding::new("exact-lines", Severity::Note, "system", what).with_evidence(why)
        };
        let kernel = without_kernel.map(|why| {
            finding("source lines of the kernel are not known", why).with_remedy(format!(
                "install linux-image-{release}-dbg (about 1 GB, unpacked 7 GB)"
            ))
        });
        let programs = missing.into_iter().next().filter(|_| names.lines.is_empty()).map(|why| {
            finding("source lines of programs are not known", why)
                .with_remedy("compile them with -g")
        });
        kernel.into_iter().chain(programs).collect()
    }
}

/// The program of a file; `None` without code.
fn read_program(file: &GuestProgram, mapped: &Mapped) -> Option<Program> {
    let path = Path::new(&file.path);
    let code: Vec<ExecutableBytes> = mapped
        .iter()
        .map(|(range, _)| ExecutableBytes {
            offset: range.start as u64,
            bytes: file.bytes[range.clone()].to_vec(),
        })
        .collect();
    let symbols = ElfObject::of_bytes(path, &file.bytes).unwrap_or_default();
    let mut functions: Vec<(u64, u64, String)> = Vec::new();
    for function in symbols.functions {
        // Of several names for one place the first is the simplest.
        if functions.last().is_none_or(|(offset, ..)| *offset != function.offset) {
            functions.push((function.offset, function.size, function.bare));
        }
    }
    let name = path.file_name()?.to_string_lossy().into_owned();
    (!code.is_empty()).then_some(Program { name, code, functions })
}

/// The address of an offset in a file, as used by its debug information.
fn address_of_offset(mapped: &Mapped, offset: u64) -> Option<u64> {
    let inside = |range: &Range<usize>| (range.start as u64..range.end as u64).contains(&offset);
    let (range, address) = mapped.iter().find(|(range, _)| inside(range))?;
    Some(address + (offset - range.start as u64))
}

/// Adds the lines of blocks at these addresses of a file.
fn add(
    names: &mut FunctionTable,
    mut places: Vec<(u64, usize)>,
    path: &Path,
    bytes: &[u8],
) -> Result<(), String> {
    if places.is_empty() {
        return Ok(());
    }
    places.sort_unstable();
    let mut addresses: Vec<u64> = places.iter().map(|(address, _)| *address).collect();
    addresses.dedup();
    let lines: HashMap<u64, String> = lines_at(path, bytes, &addresses)?;
    let known_lines =
        places.into_iter().filter_map(|(at, place)| Some((place, lines.get(&at)?.clone())));
    names.lines.extend(known_lines);
    Ok(())
}

/// Adds the lines of the kernel, which is loaded at the addresses of its debug file: guests boot
/// with `nokaslr`.
fn add_kernel(
    names: &mut FunctionTable,
    places: Vec<(u64, usize)>,
    release: &str,
) -> Result<(), String> {
    let [boot, modules] = KERNELS;
    let paths = [format!("{boot}{release}"), format!("{modules}{release}/vmlinux")];
    // The guest supplies the release.
    let file =
        paths.iter().map(PathBuf::from).find(|path| !release.contains('/') && path.is_file());
    let path = file.ok_or_else(|| format!("neither {} nor {} is there", paths[0], paths[1]))?;
    let bytes = std::fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    add(names, places, &path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_code_of_this_program_are_read() {
        let own = std::env::current_exe().expect("a path");
        let path = own.to_string_lossy().into_owned();
        let bytes = std::fs::read(&own).expect("it can be read");
        let mapped = executable_parts(&bytes);
        let file = GuestProgram { path, bytes: bytes.clone() };
        let program = read_program(&file, &mapped).expect("a program");
        assert!(program.functions.is_sorted_by_key(|(offset, ..)| *offset));
        let main = program.functions.iter().find(|(.., name)| name == "main");
        let (offset, size, _) = main.expect("main");
        let code = program
            .code
            .iter()
            .find(|code| (code.offset..code.offset + code.bytes.len() as u64).contains(offset));
        let (code, at) = (code.expect("its code"), *offset as usize);
        let from = at - code.offset as usize;
        assert_eq!(code.bytes[from..from + *size as usize], bytes[at..at + *size as usize]);
        assert!(program.functions.len() > 1_000, "{}", program.functions.len());
        assert_eq!(
            address_of_offset(&mapped, *offset).map(|address| address % 16),
            Some(*offset % 16)
        );
        let script = GuestProgram { path: "bin/script".to_owned(), bytes: b"#!/bin/sh".to_vec() };
        assert_eq!(super::read_program(&script, &executable_parts(&script.bytes)), None);
    }
}
