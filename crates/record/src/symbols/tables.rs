//! The unwind tables of an ELF file.

use super::object::{self, CodePositions};
use elf::ElfBytes;
use elf::endian::AnyEndian;
use elf::segment::ProgramHeader;
use std::path::Path;

/// The unwind tables of a file, with their addresses.
pub(crate) struct Tables {
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) debug_frame: Option<Section>,
    pub(crate) text: Option<std::ops::Range<u64>>,
    pub(crate) got: Option<std::ops::Range<u64>>,
    segments: Vec<ProgramHeader>,
}

/// The address of a section, and its bytes.
pub(crate) type Section = (u64, std::sync::Arc<[u8]>);

impl Tables {
    /// `None` if the file is none of this machine's.
    pub(crate) fn from_elf(data: &[u8]) -> Option<Tables> {
        let file = ElfBytes::<AnyEndian>::minimal_parse(data).ok()?;
        let header = |name| file.section_header_by_name(name).ok().flatten();
        let section = |name| {
            let header = header(name).filter(|header| header.sh_type != elf::abi::SHT_NOBITS)?;
            // Compressed ones are rare, and no tables that a program needs itself.
            let (bytes, compressed) = file.section_data(&header).ok()?;
            compressed.is_none().then(|| (header.sh_addr, bytes.into()))
        };
        let range = |name| {
            let header = header(name)?;
            Some(header.sh_addr..header.sh_addr.saturating_add(header.sh_size))
        };
        Some(Tables {
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame"),
            text: range(".text"),
            got: range(".got"),
            segments: CodePositions::from_file(Path::new(""), data, &file).segments,
        })
    }

    /// The address of the code at this offset in the file.
    pub(crate) fn address_at(&self, offset: u64) -> Option<u64> {
        object::address_at(&self.segments, offset)
    }
}
