//! Names of the kernel functions at the addresses that occur.

use punctual_core::Fact;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// The functions at these addresses, as `function` or, not at its start, `function+0x1f`.
///
/// The kernel shows zero addresses to unprivileged users (kernel.kptr_restrict, missing
/// CAP_SYSLOG), which is reported.
pub fn kernel_symbols(addresses: &BTreeSet<u64>) -> Fact<BTreeMap<u64, String>> {
    if addresses.is_empty() {
        return Fact::Known(BTreeMap::new());
    }
    match File::open("/proc/kallsyms") {
        Ok(file) => find_symbols(addresses, BufReader::new(file)),
        Err(why) => Fact::Unavailable(format!("/proc/kallsyms: {why}")),
    }
}

/// One pass: for each requested address the nearest symbol at or below it. The file is not sorted:
/// modules come last.
fn find_symbols(addresses: &BTreeSet<u64>, symbols: impl BufRead) -> Fact<BTreeMap<u64, String>> {
    let mut nearest: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut has_address = false;
    for line in symbols.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split_whitespace();
        let (Some(Ok(start)), Some(kind), Some(name)) =
            (words.next().map(|word| u64::from_str_radix(word, 16)), words.next(), words.next())
        else {
            continue;
        };
        has_address |= start != 0;
        if start == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
            continue;
        }
        for address in addresses.range(start..start.saturating_add(LONGEST)) {
            match nearest.get(address) {
                Some((other, _)) if *other >= start => {}
                _ => drop(nearest.insert(*address, (start, name.to_owned()))),
            }
        }
    }
    if !has_address {
        return Fact::Unavailable(
            "/proc/kallsyms hides its addresses: see kernel.kptr_restrict, or run as root"
                .to_owned(),
        );
    }
    let text = |(address, (start, name)): (u64, (u64, String))| match address - start {
        0 => (address, name),
        offset => (address, format!("{name}+{offset:#x}")),
    };
    Fact::Known(nearest.into_iter().map(text).collect())
}

/// The addresses of these functions; 0: unknown or hidden.
pub(crate) fn kernel_functions<const N: usize>(names: [&str; N]) -> [u64; N] {
    let file = File::open("/proc/kallsyms");
    file.map_or([0; N], |file| find_addresses(names, BufReader::new(file)))
}

fn find_addresses<const N: usize>(names: [&str; N], symbols: impl BufRead) -> [u64; N] {
    let mut found = [0; N];
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next(), words.nth(1));
        let Some(at) = names.iter().position(|one| name == Some(one)) else { continue };
        found[at] = address.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    }
    found
}

/// The maximum distance of an address from its symbol: longer than any kernel function.
const LONGEST: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_addresses_are_named_by_their_function() {
        let text = "ffffffff81000000 T _text\nffffffff81000200 t do_idle\nffffffff81000300 T \
                    schedule\nffffffff81000400 D data\nffffffffc0000000 t far\t[module]\n";
        let wanted = [0xffff_ffff_8100_0200, 0xffff_ffff_8100_0210, 0xffff_ffff_c000_0010, 0x1000]
            .into_iter()
            .collect();
        let Fact::Known(names) = find_symbols(&wanted, text.as_bytes()) else { panic!() };
        let names: Vec<&str> = names.values().map(String::as_str).collect();
        assert_eq!(names, ["do_idle", "do_idle+0x10", "far+0x10"]);
    }

    #[test]
    fn functions_are_found_by_name() {
        let text =
            "ffffffff81000000 T _text\nffffffff81000200 t do_idle\n0000000000000000 T hidden\n";
        let names = ["do_idle", "hidden", "missing"];
        assert_eq!(find_addresses(names, text.as_bytes()), [0xffff_ffff_8100_0200, 0, 0]);
    }

    #[test]
    fn hidden_kernel_addresses_are_reported_as_unavailable() {
        let text = "0000000000000000 T schedule\n";
        assert!(matches!(
            find_symbols(&[1].into_iter().collect(), text.as_bytes()),
            Fact::Unavailable(_)
        ));
    }
}
