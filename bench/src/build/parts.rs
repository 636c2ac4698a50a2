//! The parts of a program: its sections, and the code and data of each crate by its symbols.

use elf::ElfBytes;
use elf::endian::AnyEndian;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest of each, in order.
const SHOWN: usize = 25;

pub fn measure_parts(program: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(program).map_err(|why| format!("{}: {why}", program.display()))?;
    let file = ElfBytes::<AnyEndian>::minimal_parse(&bytes)
        .map_err(|why| format!("{}: {why}", program.display()))?;
    let sections = section_sizes(&file).map_err(|why| why.to_string())?;
    let crates = crate_sizes(&file).map_err(|why| why.to_string())?;
    Ok(json!({ "bytes": bytes.len(), "sections": largest_parts(sections),
            "crates": largest_parts(crates) }))
}

fn largest_parts(parts: BTreeMap<String, u64>) -> Vec<Value> {
    let mut parts: Vec<(String, u64)> = parts.into_iter().collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    parts.truncate(SHOWN);
    parts.into_iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect()
}

/// Sections that take room in the file.
fn section_sizes(file: &ElfBytes<AnyEndian>) -> Result<BTreeMap<String, u64>, elf::ParseError> {
    let (headers, names) = file.section_headers_with_strtab()?;
    let (Some(headers), Some(names)) = (headers, names) else { return Ok(BTreeMap::new()) };
    let mut sizes = BTreeMap::new();
    for header in headers.iter().filter(|header| header.sh_type != elf::abi::SHT_NOBITS) {
        *sizes.entry(names.get(header.sh_name as usize)?.to_owned()).or_default() += header.sh_size;
    }
    Ok(sizes)
}

/// Code and data with symbols, by the crate in the symbol's name: for a generic function, the crate
/// that defines it.
fn crate_sizes(file: &ElfBytes<AnyEndian>) -> Result<BTreeMap<String, u64>, elf::ParseError> {
    let mut sizes = BTreeMap::new();
    let Some((symbols, names)) = file.symbol_table()? else { return Ok(sizes) };
    for symbol in
        symbols.iter().filter(|symbol| symbol.st_size > 0 && symbol.st_shndx != elf::abi::SHN_UNDEF)
    {
        let name = names.get(symbol.st_name as usize)?;
        *sizes.entry(crate_of(name)).or_default() += symbol.st_size;
    }
    Ok(sizes)
}

/// `<alloc::vec::Vec<T> as core::fmt::Debug>::fmt` is alloc's.
fn crate_of(symbol: &str) -> String {
    let Ok(name) = rustc_demangle::try_demangle(symbol) else { return "C and compiler".to_owned() };
    let name = name.to_string();
    let path = name.trim_start_matches(['<', '&', '*', '[', '(']);
    let path =
        ["mut ", "dyn ", "const "].iter().fold(path, |path, word| path.trim_start_matches(word));
    let first = |path: &str| {
        path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
    };
    // A type without a path, such as `T` or `u64`, belongs to the trait's crate: `<T as
    // alloc::string::ToString>::to_string`.
    let of_trait = path.split_once(" as ").filter(|(own, _)| !own.contains("::"));
    first(of_trait.map_or(path, |(_, of_trait)| of_trait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_of_the_crate_that_wrote_them() {
        assert_eq!(crate_of("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core");
        assert_eq!(crate_of("_RNvCs1234_7mycrate3foo"), "mycrate");
        assert_eq!(crate_of("memcpy"), "C and compiler");
        // <T as alloc::string::ToString>::to_string
        let blanket =
            "_ZN45_$LT$T$u20$as$u20$alloc..string..ToString$GT$9to_string17h0123456789abcdefE";
        assert_eq!(crate_of(blanket), "alloc");
        // <alloc::vec::Vec<T> as core::fmt::Debug>::fmt
        let implementation = "_ZN65_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..fmt..\
                              Debug$GT$3fmt17h0123456789abcdefE";
        assert_eq!(crate_of(implementation), "alloc");
    }

    #[test]
    fn a_program_has_sections_and_crates() {
        let own = std::env::current_exe().unwrap();
        let parts = measure_parts(&own).unwrap();
        let names = |key: &str| {
            parts[key].as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
        };
        assert!(names("sections").contains(&".text".into()), "{parts}");
        assert!(names("crates").contains(&"core".into()), "{parts}");
    }
}
