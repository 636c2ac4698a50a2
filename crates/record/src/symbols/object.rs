//! The functions that one ELF file defines.

use super::demangle_symbol;
use super::{Site, SymbolError};
use elf::ElfBytes;
use elf::abi::{ET_DYN, ET_EXEC, PF_X, PT_LOAD, SHF_EXECINSTR, STT_FUNC, STT_GNU_IFUNC};
use elf::endian::AnyEndian;
use elf::note::Note;
use elf::segment::ProgramHeader;
use std::path::{Path, PathBuf};

/// The maximum size of a file: larger than any program, and than fits in memory.
const FILE_MAX: u64 = 4 << 30;
/// The directory of separate debug files in distributions (GDB's documentation, "Separate Debug
/// Files").
pub(super) const DEBUG_DIR: &str = "/usr/lib/debug";

/// The largest size of a page: segments are aligned to it.
#[cfg(feature = "lines")]
const PAGE: u64 = 1 << 16;

/// A function in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its demangled name, with parameters if the symbol has them.
    pub name: String,
    pub bare: String,
    /// Its linker symbol.
    pub symbol: String,
    pub object: PathBuf,
    /// Its offset in that file, in bytes.
    pub offset: u64,
    /// Its length in bytes; 0 if the symbol does not state it.
    pub size: u64,
    /// The kind of probe site, which determines the cost.
    pub site: Site,
}

/// The definitions and imports of an ELF file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ElfObject {
    pub functions: Vec<Function>,
    /// Functions that it imports.
    pub imported: Vec<String>,
    /// Symbols whose code is selected at program start (STT_GNU_IFUNC).
    pub indirect: Vec<String>,
    /// Whether all its functions are known, from itself or from its debug file; otherwise only
    /// those it exports.
    pub has_symbol_table: bool,
    /// The build id in hexadecimal.
    pub build_id: Option<String>,
}

impl ElfObject {
    /// Reads a file's symbols, and those of its separate debug file if installed.
    pub fn read(path: &Path) -> Result<ElfObject, SymbolError> {
        ElfObject::of_bytes(path, &read(path)?)
    }

    /// The same from the content of a file.
    pub fn of_bytes(path: &Path, data: &[u8]) -> Result<ElfObject, SymbolError> {
        let malformed = |why: String| SymbolError::Malformed { path: path.to_owned(), why };
        if !data.starts_with(b"\x7fELF") {
            let reason = if data.starts_with(b"#!") {
                "a script: name its interpreter"
            } else {
                "not an ELF file"
            };
            return Err(malformed(reason.to_owned()));
        }
        ElfObject::parse(path, data).map_err(|why| malformed(format!("a broken ELF file: {why}")))
    }

    pub(super) fn parse(path: &Path, data: &[u8]) -> Result<ElfObject, elf::ParseError> {
        let file = ElfBytes::<AnyEndian>::minimal_parse(data)?;
        let mut object = ElfObject::default();
        if !matches!(file.ehdr.e_type, ET_EXEC | ET_DYN) {
            return Ok(object);
        }
        let code = CodePositions::from_file(path, data, &file);
        if let Some((symbols, names)) = file.dynamic_symbol_table()? {
            object.add(
                &code,
                symbols
                    .iter()
                    .filter_map(|symbol| Some((names.get(symbol.st_name as usize).ok()?, symbol))),
            );
        }
        if let Some((symbols, names)) = file.symbol_table()? {
            object.has_symbol_table = true;
            object.add(
                &code,
                symbols
                    .iter()
                    .filter_map(|symbol| Some((names.get(symbol.st_name as usize).ok()?, symbol))),
            );
        }
        object.build_id = build_id(&file);
        if !object.has_symbol_table
            && let Some(debug) = object.build_id.as_deref().and_then(debug_file)
        {
            object.add_debug_file(&code, &debug);
        }
        // Of several names for one place, the simplest is first.
        let plainness = |f: &Function| (f.offset, f.symbol.starts_with('_'), f.symbol.clone());
        object.functions.sort_by_cached_key(plainness);
        object.functions.dedup_by(|a, b| a.offset == b.offset && a.symbol == b.symbol);
        Ok(object)
    }

    fn add<'a>(
        &mut self,
        code: &CodePositions,
        symbols: impl Iterator<Item = (&'a str, elf::symbol::Symbol)>,
    ) {
        for (name, symbol) in symbols {
            match (symbol.st_symtype(), symbol.is_undefined()) {
                _ if name.is_empty() => {}
                (STT_FUNC, true) => self.imported.push(name.to_owned()),
                (STT_GNU_IFUNC, false) => self.indirect.push(name.to_owned()),
                (STT_FUNC, false) => {
                    self.functions.extend(code.function_at(name, symbol.st_value, symbol.st_size))
                }
                _ => {}
            }
        }
    }

    /// A debug file has the symbols at the same addresses, without the code. A broken one is
    /// ignored.
    fn add_debug_file(&mut self, code: &CodePositions, debug: &Path) {
        let Ok(data) = read(debug) else { return };
        let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(&data) else { return };
        let Ok(Some((symbols, names))) = file.symbol_table() else { return };
        self.has_symbol_table = true;
        self.add(
            code,
            symbols
                .iter()
                .filter_map(|symbol| Some((names.get(symbol.st_name as usize).ok()?, symbol))),
        );
    }
}

/// The positions of a file's code: from addresses to offsets.
pub(super) struct CodePositions<'data> {
    path: &'data Path,
    data: &'data [u8],
    machine: u16,
    pub(super) segments: Vec<ProgramHeader>,
    sections: Vec<(u64, u64)>,
}

impl<'data> CodePositions<'data> {
    pub(super) fn from_file(
        path: &'data Path,
        data: &'data [u8],
        file: &ElfBytes<'data, AnyEndian>,
    ) -> CodePositions<'data> {
        let executable =
            |segment: &ProgramHeader| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0;
        let sections = file.section_headers().into_iter().flatten();
        let sections = sections.filter(|section| section.sh_flags & u64::from(SHF_EXECINSTR) != 0);
        CodePositions {
            path,
            data,
            machine: file.ehdr.e_machine,
            segments: file.segments().into_iter().flatten().filter(executable).collect(),
            sections: sections
                .map(|section| (section.sh_addr, section.sh_addr.saturating_add(section.sh_size)))
                .collect(),
        }
    }

    /// The function at this address; `None` outside of the file's code.
    fn function_at(&self, symbol: &str, address: u64, size: u64) -> Option<Function> {
        let (offset, site) = self.place_of(address)?;
        let (name, bare) = demangle_symbol(symbol);
        Some(Function {
            name,
            bare,
            symbol: symbol.to_owned(),
            object: self.path.to_owned(),
            offset,
            size,
            site,
        })
    }

    /// The offset in the file of the instruction at this address, and its kind as a probe site.
    pub(super) fn place_of(&self, address: u64) -> Option<(u64, Site)> {
        if !self.sections.is_empty()
            && !self.sections.iter().any(|(from, to)| (*from..*to).contains(&address))
        {
            return None;
        }
        let inside = |s: &&ProgramHeader| {
            address.checked_sub(s.p_vaddr).is_some_and(|offset| offset < s.p_filesz)
        };
        let segment = self.segments.iter().find(inside)?;
        let offset = segment.p_offset.checked_add(address - segment.p_vaddr)?;
        let code = self.data.get(usize::try_from(offset).ok()?..)?;
        Some((offset, Site::from_code(self.machine, code)))
    }
}

/// The address of the code at this offset in the file.
#[cfg(feature = "lines")]
pub(super) fn address_at(segments: &[ProgramHeader], offset: u64) -> Option<u64> {
    let holds = |segment: &&ProgramHeader| {
        // Mapped are whole pages.
        let begin = segment.p_offset - segment.p_offset % PAGE;
        offset >= begin && offset < segment.p_offset.saturating_add(segment.p_filesz)
    };
    let segment = segments.iter().find(holds)?;
    Some(segment.p_vaddr.wrapping_add(offset.wrapping_sub(segment.p_offset)))
}

/// The parts of a file mapped as code: offsets in it, and the address of the first one.
pub fn executable_parts(data: &[u8]) -> Vec<(std::ops::Range<usize>, u64)> {
    let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(data) else { return Vec::new() };
    let segments = CodePositions::from_file(Path::new(""), data, &file).segments.into_iter();
    let range = |segment: ProgramHeader| {
        let begin = usize::try_from(segment.p_offset).ok()?;
        let end = begin.checked_add(usize::try_from(segment.p_filesz).ok()?)?;
        (end <= data.len()).then_some((begin..end, segment.p_vaddr))
    };
    segments.filter_map(range).collect()
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, SymbolError> {
    let io = |source| SymbolError::Io { path: path.to_owned(), source };
    // Opening a FIFO would block forever.
    let meta = std::fs::metadata(path).map_err(io)?;
    if !meta.is_file() || meta.len() > FILE_MAX {
        return Err(SymbolError::Malformed {
            path: path.to_owned(),
            why: "not a regular file, or too large".into(),
        });
    }
    std::fs::read(path).map_err(io)
}

pub(super) fn build_id(file: &ElfBytes<'_, AnyEndian>) -> Option<String> {
    let segments = file.segments()?;
    let notes = segments.iter().filter(|segment| segment.p_type == elf::abi::PT_NOTE);
    let mut notes = notes.filter_map(|segment| file.segment_data_as_notes(&segment).ok()).flatten();
    notes.find_map(|note| match note {
        Note::GnuBuildId(id) => Some(punctual_core::encode_hex(id.0)),
        _ => None,
    })
}

pub(super) fn debug_file(build_id: &str) -> Option<PathBuf> {
    let (head, tail) = build_id.split_at_checked(2)?;
    let path = Path::new(DEBUG_DIR).join(".build-id").join(head).join(format!("{tail}.debug"));
    path.is_file().then_some(path)
}
