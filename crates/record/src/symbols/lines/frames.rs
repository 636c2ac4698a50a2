//! Resolves instructions to functions with source lines, those of inlined functions too.

use super::debug::{Slice, with_sections};
use crate::symbols::SourceFrame;
use crate::symbols::demangle_symbol;
use crate::symbols::object::{self, CodePositions};
use addr2line::Context;
use elf::ElfBytes;
use elf::endian::AnyEndian;
use std::collections::HashMap;
use std::path::Path;

/// The functions of instructions at these offsets in a file: what is inlined first. Empty for those
/// that debug information does not cover.
///
/// # Errors
/// The reason why line information is missing.
pub(crate) fn frames_at(
    path: &Path,
    data: &[u8],
    offsets: &[u64],
) -> Result<HashMap<u64, Vec<SourceFrame>>, String> {
    let broken = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = ElfBytes::<AnyEndian>::minimal_parse(data).map_err(|why| broken(&why))?;
    let code = CodePositions::from_file(path, data, &file);
    with_sections(path, data, |sections| {
        let context = Context::from_dwarf(sections.as_dwarf()).map_err(|why| broken(&why))?;
        Ok(resolve_frames(&context, &code, offsets))
    })
}

fn resolve_frames(
    context: &Context<Slice<'_>>,
    code: &CodePositions<'_>,
    offsets: &[u64],
) -> HashMap<u64, Vec<SourceFrame>> {
    let mut found = HashMap::new();
    for offset in offsets {
        let Some(address) = object::address_at(&code.segments, *offset) else { continue };
        // An unreadable unit does not affect the others.
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { continue };
        let mut source_frames = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let Some(name) = name else { break };
            let place = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
            source_frames.push(SourceFrame {
                function: demangle_symbol(&name).1,
                line: place.filter(|(_, line)| *line > 0),
            });
        }
        found.insert(*offset, source_frames);
    }
    found
}
