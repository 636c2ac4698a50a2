//! The functions of programs in the guest. A user block is found by its bytes: code is mapped from
//! files in whole pages and not modified, so it has the same offset in a page as in its file. The
//! guest itself need not be queried.

use super::dump::CodeBlock;
use std::collections::HashMap;
use std::sync::Arc;

const PAGE: u64 = 4096;
/// The minimum number of known bytes for a block to show where a file is mapped.
const BYTES_MIN: usize = 8;

/// Executable bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutableBytes {
    /// Their offset in the file.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A program or library of the guest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The name of its file, without directories.
    pub name: String,
    /// The parts mapped as code.
    pub code: Vec<ExecutableBytes>,
    /// Its functions: offset in the file, length in bytes (0: to the next one), name; by offset.
    pub functions: Vec<(u64, u64, String)>,
}

/// A mapped file: the difference between addresses and offsets in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MappedFile {
    program: usize,
    bias: u64,
}

/// The functions of user blocks, by the index of the block in the dump.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserFunctions {
    names: HashMap<usize, Arc<str>>,
    /// The index of the program, and the offset in its file.
    found: HashMap<usize, (usize, u64)>,
}

impl UserFunctions {
    /// Finds these blocks in these files.
    pub(crate) fn find_blocks(
        blocks: &[CodeBlock],
        wanted: &[usize],
        programs: &[Program],
    ) -> UserFunctions {
        let mut known_files: Vec<MappedFile> = Vec::new();
        let mut found: HashMap<usize, (usize, u64)> = HashMap::new();
        let user = |place: &&usize| blocks.get(**place).is_some_and(|block| block.is_user());
        // The second pass finds the small blocks in the mappings found by the first.
        for founds in [true, false] {
            for place in wanted.iter().filter(user) {
                let block = &blocks[*place];
                if found.contains_key(place) || block.kept_code().is_empty() {
                    continue;
                }
                let fits = |mapping: &&MappedFile| mapping.has_block(block, programs);
                let mapping = known_files.iter().rev().find(fits).copied().or_else(|| {
                    let new = founds.then(|| only_one(block, programs)).flatten()?;
                    known_files.push(new);
                    Some(new)
                });
                if let Some(mapping) = mapping {
                    let offset = block.pc.wrapping_sub(mapping.bias);
                    found.insert(*place, (mapping.program, offset));
                }
            }
        }
        let mut names: HashMap<(usize, usize), Arc<str>> = HashMap::new();
        let named = found.iter().map(|(place, (number, offset))| {
            let program = &programs[*number];
            let function = program.function_index(*offset);
            let key = (*number, function.unwrap_or(usize::MAX));
            let name = names.entry(key).or_insert_with(|| program.format_title(function).into());
            (*place, Arc::clone(name))
        });
        UserFunctions { names: named.collect(), found }
    }

    /// The function of the block with this index: `libc.so.6:memset`; only the file's name without
    /// a symbol; `None` if no file has this code.
    pub(crate) fn function_of_block(&self, place: usize) -> Option<&str> {
        self.names.get(&place).map(|name| &**name)
    }

    /// The positions of blocks: index, program, and offset in its file.
    pub fn block_positions(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.found.iter().map(|(place, (program, offset))| (*place, *program, *offset))
    }
}

impl Program {
    /// The index of the function that contains an offset.
    fn function_index(&self, offset: u64) -> Option<usize> {
        let place =
            self.functions.partition_point(|(begin, ..)| *begin <= offset).checked_sub(1)?;
        let (begin, size, _) = self.functions[place];
        (size == 0 || offset - begin < size).then_some(place)
    }

    fn format_title(&self, function: Option<usize>) -> String {
        match function {
            Some(place) => format!("{}:{}", self.name, self.functions[place].2),
            None => self.name.clone(),
        }
    }

    fn has_code(&self, offset: u64, wanted: &[u8]) -> bool {
        self.code.iter().any(|code| {
            let begin = offset.checked_sub(code.offset).and_then(|at| usize::try_from(at).ok());
            begin.and_then(|at| code.bytes.get(at..)?.get(..wanted.len())) == Some(wanted)
        })
    }
}

impl MappedFile {
    fn has_block(&self, block: &CodeBlock, programs: &[Program]) -> bool {
        programs[self.program].has_code(block.pc.wrapping_sub(self.bias), block.kept_code())
    }
}

/// The mapping for the only position in all files that matches this block.
fn only_one(block: &CodeBlock, programs: &[Program]) -> Option<MappedFile> {
    let wanted = block.kept_code();
    let first = block.pc % PAGE;
    let mut only_match = None;
    for (program, file) in programs.iter().enumerate().filter(|_| wanted.len() >= BYTES_MIN) {
        for code in &file.code {
            let begin = (PAGE + first - code.offset % PAGE) % PAGE;
            let pages = (begin as usize..code.bytes.len()).step_by(PAGE as usize);
            for at in pages.filter(|at| code.bytes[*at..].starts_with(wanted)) {
                let bias = block.pc.wrapping_sub(code.offset + at as u64);
                if only_match.replace(MappedFile { program, bias }).is_some() {
                    return None;
                }
            }
        }
    }
    only_match
}

#[cfg(test)]
mod tests {
    use super::super::dump::{BlockEnd, CODE};
    use super::*;

    fn bytes(seed: u64, count: usize) -> Vec<u8> {
        let word = |k: u64| (seed + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (k << 7);
        (0..count as u64).map(|k| (word(k) >> 33) as u8).collect()
    }

    fn program(name: &str, offset: u64, code: Vec<u8>, functions: &[(u64, u64, &str)]) -> Program {
        let functions =
            functions.iter().map(|(at, size, name)| (*at, *size, (*name).to_owned())).collect();
        Program {
            name: name.to_owned(),
            code: vec![ExecutableBytes { offset, bytes: code }],
            functions,
        }
    }

    fn block(pc: u64, code: &[u8]) -> CodeBlock {
        let mut known = [0; CODE];
        let length = code.len().min(CODE);
        known[..length].copy_from_slice(&code[..length]);
        CodeBlock {
            pc,
            bytes: code.len() as u16,
            insns: 3,
            clock: 0,
            kind: BlockEnd::Plain,
            entry: false,
            code: known,
        }
    }

    #[test]
    fn blocks_are_assigned_to_the_program_that_contains_their_bytes() {
        let (one, two) = (bytes(1, 9_000), bytes(2, 9_000));
        let programs = [
            program("load", 0x1000, one.clone(), &[(0x1000, 0x20, "main"), (0x1100, 0, "spin")]),
            program("libc.so.6", 0x2_0040, two.clone(), &[]),
        ];
        let (low, high) = (0x5555_0000_0000, 0x7fff_0000_0000);
        let blocks = [
            block(low + 0x1000, &one[..16]),
            block(low + 0x1130, &one[0x130..0x150]),
            // Too short to find a mapping, and long enough within a known one.
            block(low + 0x1110, &one[0x110..0x113]),
            block(low + 0x1030, &one[0x30..0x40]),
            block(high + 0x2_0040, &two[..12]),
            block(high + 0x9_0000, &[0x90; 14]),
            // The same address in another process, with other code.
            block(low + 0x1000, &two[0x1000 - 0x40..][..16]),
            block(1 << 63, &one[..16]),
        ];
        let wanted: Vec<usize> = (0..blocks.len()).collect();
        let found = UserFunctions::find_blocks(&blocks, &wanted, &programs);
        let names: Vec<Option<&str>> =
            wanted.iter().map(|place| found.function_of_block(*place)).collect();
        assert_eq!(
            names,
            [
                Some("load:main"),
                Some("load:spin"),
                Some("load:spin"),
                Some("load"),
                Some("libc.so.6"),
                None,
                Some("libc.so.6"),
                None
            ]
        );
    }

    #[test]
    fn code_in_two_files_is_assigned_only_to_the_mapped_one() {
        let code = bytes(3, 5_000);
        let other = [&bytes(4, 4_096)[..], &code[4_096..]].concat();
        let programs = [program("a", 0, code.clone(), &[]), program("b", 0, other, &[])];
        let twin = block(0x40_1010, &code[0x1010..0x1020]);
        let own = block(0x40_0100, &code[0x100..0x110]);
        let names = |blocks: &[CodeBlock]| {
            let wanted: Vec<usize> = (0..blocks.len()).collect();
            let found = UserFunctions::find_blocks(blocks, &wanted, &programs);
            wanted
                .iter()
                .map(|place| found.function_of_block(*place).map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[twin]), [None]);
        assert_eq!(names(&[twin, own]), [Some("a".to_owned()), Some("a".to_owned())]);
    }
}
