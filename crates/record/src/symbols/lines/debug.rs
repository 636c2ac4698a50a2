//! The sections with debug information: of the program itself, or of its separate file (GDB's
//! documentation, "Separate Debug Files").

use crate::symbols::object::{self, DEBUG_DIR};
use elf::ElfBytes;
use elf::abi::SHT_NOBITS;
use elf::endian::AnyEndian;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The maximum total size of a file's compressed sections.
const UNPACKED_MAX: u64 = 2 << 30;
const ELFCOMPRESS_ZLIB: u32 = 1;

/// Sections as they are read.
pub type Slice<'data> = EndianSlice<'data, RunTimeEndian>;
pub type Dwarf<'data> = gimli::Dwarf<Slice<'data>>;

/// Sections of a file, decompressed if necessary.
pub struct DebugSections<'data> {
    sections: DwarfSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

impl<'data> DebugSections<'data> {
    /// The sections of this file; missing ones are empty.
    pub fn from_file(file: &ElfBytes<'data, AnyEndian>) -> Result<DebugSections<'data>, String> {
        let mut room = UNPACKED_MAX;
        let sections = DwarfSections::load(|id| read_section(file, id, &mut room))?;
        let is_big = matches!(file.ehdr.endianness, AnyEndian::Big);
        Ok(DebugSections {
            sections,
            endian: if is_big { RunTimeEndian::Big } else { RunTimeEndian::Little },
        })
    }

    pub(crate) fn as_dwarf(&self) -> Dwarf<'_> {
        self.sections.borrow(|section| EndianSlice::new(section, self.endian))
    }
}

fn read_section<'data>(
    file: &ElfBytes<'data, AnyEndian>,
    id: SectionId,
    room: &mut u64,
) -> Result<Cow<'data, [u8]>, String> {
    let broken = |why: elf::ParseError| format!("section {}: {why}", id.name());
    let Some(header) = file.section_header_by_name(id.name()).map_err(broken)? else {
        return Ok(Cow::default());
    };
    if header.sh_type == SHT_NOBITS {
        return Ok(Cow::default());
    }
    let (data, compressed) = file.section_data(&header).map_err(broken)?;
    let Some(compressed) = compressed else { return Ok(Cow::Borrowed(data)) };
    if compressed.ch_type != ELFCOMPRESS_ZLIB {
        let how = if compressed.ch_type == 2 { "by zstd" } else { "in an unknown way" };
        let help =
            "unpack a copy with `objcopy --decompress-debug-sections`, or compile with -gz=zlib";
        return Err(format!("section {} is compressed {how}: {help}", id.name()));
    }
    let too_large =
        || format!("section {} unpacks to more than {} GiB", id.name(), UNPACKED_MAX >> 30);
    *room = room.checked_sub(compressed.ch_size).ok_or_else(too_large)?;
    // The size in the header is a bound, not a size to allocate.
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::ZlibDecoder::new(data).take(compressed.ch_size);
    reader.read_to_end(&mut unpacked).map_err(|why| format!("section {}: {why}", id.name()))?;
    Ok(Cow::Owned(unpacked))
}

/// Calls this with the sections of a program's debug information, its own or of its separate file.
///
/// # Errors
/// The reason why line information is missing.
pub fn with_sections<T>(
    path: &Path,
    data: &[u8],
    read: impl FnOnce(&DebugSections<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let broken = |why: elf::ParseError| format!("{}: {why}", path.display());
    let file = ElfBytes::<AnyEndian>::minimal_parse(data).map_err(broken)?;
    if has_lines(&file) {
        return read(&DebugSections::from_file(&file)?);
    }
    let separated = read_separate(path, &file)?;
    read(&DebugSections::from_file(&ElfBytes::minimal_parse(&separated).map_err(broken)?)?)
}

/// Whether the file has line information.
pub fn has_lines(file: &ElfBytes<'_, AnyEndian>) -> bool {
    let has = |name| {
        let header = file.section_header_by_name(name).ok().flatten();
        header.is_some_and(|header| header.sh_type != SHT_NOBITS && header.sh_size > 0)
    };
    has(".debug_line") && has(".debug_info")
}

/// The contents of the separate debug file of a program; otherwise why there is none.
pub(crate) fn read_separate(
    path: &Path,
    file: &ElfBytes<'_, AnyEndian>,
) -> Result<Vec<u8>, String> {
    let build_id = object::build_id(file);
    let mut tried: Vec<String> = Vec::new();
    if let Some(id) = &build_id {
        match object::debug_file(id) {
            Some(debug) => match object::read(&debug) {
                Ok(data) if is_usable(&data, Some(id)) => return Ok(data),
                _ => tried.push(format!("{} (not usable)", debug.display())),
            },
            None => tried.push(format!("{DEBUG_DIR}/.build-id/{}.debug", slash_build_id(id))),
        }
    }
    if let Some((name, checksum)) = debug_link(file) {
        for candidate in linked_candidates(path, &name) {
            let Ok(data) = object::read(&candidate) else {
                tried.push(candidate.display().to_string());
                continue;
            };
            // By build id if both have one, else by the checksum of the link: a file of another
            // build would give wrong instructions.
            if is_usable(&data, build_id.as_deref())
                || crc32fast::hash(&data) == checksum && is_usable(&data, None)
            {
                return Ok(data);
            }
            tried.push(format!("{} (of another build)", candidate.display()));
        }
    }
    let tried = if tried.is_empty() {
        String::new()
    } else {
        format!(" (not found: {})", tried.join(", "))
    };
    Err(format!(
        "{} has no debug information{tried}: compile with -g and do not strip it, or install its \
         debug symbols (on Debian the package NAME-dbgsym of the archive debian-debug)",
        path.display()
    ))
}

/// Whether these are the bytes of an ELF file with lines, and of this build if given.
fn is_usable(data: &[u8], build_id: Option<&str>) -> bool {
    let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(data) else { return false };
    has_lines(&file) && build_id.is_none_or(|id| object::build_id(&file).as_deref() == Some(id))
}

fn slash_build_id(build_id: &str) -> String {
    build_id
        .split_at_checked(2)
        .map_or_else(|| build_id.to_owned(), |(head, tail)| format!("{head}/{tail}"))
}

/// `.gnu_debuglink`: a file name, padded to four bytes, and the checksum of that file.
fn debug_link(file: &ElfBytes<'_, AnyEndian>) -> Option<(String, u32)> {
    let header = file.section_header_by_name(".gnu_debuglink").ok()??;
    let (data, _) = file.section_data(&header).ok()?;
    let length = data.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&data[..length]).ok()?;
    // Only a name, not a path elsewhere.
    if name.is_empty() || name.contains('/') || name == ".." {
        return None;
    }
    let checksum = data.get((length + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    let is_big = matches!(file.ehdr.endianness, AnyEndian::Big);
    Some((
        name.to_owned(),
        if is_big { u32::from_be_bytes(*checksum) } else { u32::from_le_bytes(*checksum) },
    ))
}

/// The locations where GDB searches for a linked debug file.
fn linked_candidates(path: &Path, name: &str) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let global =
        Path::new(DEBUG_DIR).join(directory.strip_prefix("/").unwrap_or(directory)).join(name);
    let mut candidates = vec![directory.join(name), directory.join(".debug").join(name), global];
    candidates.retain(|candidate| candidate != path);
    candidates
}
