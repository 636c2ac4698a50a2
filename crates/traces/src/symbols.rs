//! The functions of a kernel, by the lines of /proc/kallsyms.

/// Functions by address.
#[derive(Default, Debug)]
pub(crate) struct Symbols {
    /// In the order of their addresses.
    all: Vec<(u64, Box<str>)>,
}

/// More than any kernel has.
const MOST: usize = 1 << 20;
/// An address this far behind the last function below it is in none that is known.
const LONGEST: u64 = 1 << 16;

impl Symbols {
    pub(crate) fn read(kallsyms: &[u8]) -> Symbols {
        let function = |line: &[u8]| {
            let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|at| *at != 0)?;
            matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
            Some((address, words.next()?.into()))
        };
        let lines = kallsyms.split(|byte| *byte == b'\n');
        let mut sorted_symbols: Vec<(u64, Box<str>)> =
            lines.filter_map(function).take(MOST).collect();
        // Of several names of an address, the first.
        sorted_symbols.sort_by_key(|(address, _)| *address);
        sorted_symbols.dedup_by_key(|(address, _)| *address);
        Symbols { all: sorted_symbols }
    }

    /// The function that an address is in.
    pub(crate) fn function_at(&self, address: u64) -> Option<&str> {
        let above = self.all.partition_point(|(begin, _)| *begin <= address);
        let (begin, name) = self.all.get(above.checked_sub(1)?)?;
        (address - begin < LONGEST).then_some(name)
    }
}
