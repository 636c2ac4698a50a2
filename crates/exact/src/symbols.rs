//! The functions of a kernel and of programs by address.

use super::dump::{Dump, DumpEntry};
use super::programs::{Program, UserFunctions};
use std::collections::HashMap;

/// The functions of a run.
pub struct FunctionTable {
    /// Those of the kernel, by address.
    pub kernel: KernelSymbols,
    pub user: UserFunctions,
    /// Source lines, by block; empty unless requested.
    pub lines: HashMap<usize, String>,
}

impl FunctionTable {
    /// The functions for a dump, from the kernel's symbols and the files of programs.
    pub fn from_dump(dump: &Dump, kernel: KernelSymbols, programs: &[Program]) -> FunctionTable {
        let user = UserFunctions::find_blocks(&dump.blocks, &executed_blocks(dump), programs);
        FunctionTable { kernel, user, lines: HashMap::new() }
    }
}

/// The indices of all blocks in windows, each once.
pub fn executed_blocks(dump: &Dump) -> Vec<usize> {
    let windows = dump.worst.iter().chain(&dump.ordinary).map(|window| &window.entries);
    let all_entries = windows.chain(dump.longest.iter().map(|stretch| &stretch.entries));
    let mut is_executed = vec![false; dump.blocks.len()];
    for entry in all_entries.flatten() {
        if let DumpEntry::Block(place) = entry {
            is_executed[*place] = true;
        }
    }
    is_executed.iter().enumerate().filter_map(|(place, seen)| seen.then_some(place)).collect()
}

/// The functions of a kernel.
pub struct KernelSymbols {
    /// In order of address.
    functions: Vec<(u64, String)>,
}

impl KernelSymbols {
    /// Reads the text of /proc/kallsyms (proc_kallsyms(5)): functions are those of type `t`, `T`,
    /// `w` and `W` (nm(1)). Parts that the compiler moved away (`.cold`, `.part.0`) get the name of
    /// their function.
    pub fn parse(kallsyms: &str) -> KernelSymbols {
        let function = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let name = words.next()?;
            let is_function = matches!(kind, "t" | "T" | "w" | "W") && address >> 63 == 1;
            // The alias of a function that early startup code uses (arch/x86/boot/startup).
            let name = name.strip_prefix("__pi_").unwrap_or(name);
            is_function.then(|| (address, function_of(name).to_owned()))
        };
        let mut functions: Vec<(u64, String)> = kallsyms.lines().filter_map(function).collect();
        // Of two names for one address, the first is the usual one.
        functions.sort_by_key(|(address, _)| *address);
        functions.dedup_by_key(|(address, _)| *address);
        KernelSymbols { functions }
    }

    /// The function that contains an address; `None` before the first one.
    pub fn function_at(&self, address: u64) -> Option<&str> {
        let next_place = self.functions.partition_point(|(begin, _)| *begin <= address);
        Some(&self.functions.get(next_place.checked_sub(1)?)?.1)
    }
}

/// The name without compiler suffixes: `free_pcppages_bulk.isra.0.cold` is free_pcppages_bulk.
fn function_of(symbol: &str) -> &str {
    match symbol.find(".cold").or_else(|| symbol.find(".isra.")).or_else(|| symbol.find(".part.")) {
        Some(0) | None => symbol.split(".constprop.").next().unwrap_or(symbol),
        Some(end) => function_of(&symbol[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_preceding_symbol() {
        let symbols = KernelSymbols::parse(
            "ffffffff81000000 T _text\nffffffff81000100 t rmqueue.isra.0\nffffffff81000100 t x\n\
             ffffffff81000180 T __pi___x86_indirect_thunk_rax\n\
             ffffffff81000200 D data\nffffffffc0000000 t probe.cold\t[virtio]\n0 A __preempt",
        );
        assert_eq!(symbols.function_at(0xffff_ffff_8100_00ff), Some("_text"));
        assert_eq!(symbols.function_at(0xffff_ffff_8100_0150), Some("rmqueue"));
        assert_eq!(symbols.function_at(0xffff_ffff_8100_0250), Some("__x86_indirect_thunk_rax"));
        assert_eq!(symbols.function_at(0xffff_ffff_c000_0001), Some("probe"));
        assert_eq!(symbols.function_at(0x1000), None);
    }
}
