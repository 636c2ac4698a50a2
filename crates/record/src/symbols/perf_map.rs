//! Functions that a runtime compiled while the program runs: Node, Java and .NET write them to
//! /tmp/perf-PID.map (tools/perf/Documentation/jit-interface.txt), Python with `-X perf`.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// The maximum size of such a file that is read.
const LARGEST: u64 = 64 << 20;

/// The compiled functions of a process, by address.
#[derive(Default)]
pub(super) struct PerfMap {
    functions: Vec<CompiledFunction>,
}

struct CompiledFunction {
    begin: u64,
    size: u64,
    name: String,
}

impl PerfMap {
    /// Reads the file of this thread's process, if it is that user's or root's; empty otherwise.
    pub(super) fn read_of_thread(tid: u32) -> PerfMap {
        let path = inner_process(tid).map(|process| {
            // As the process sees it: it may have its own root.
            format!("/proc/{tid}/root/tmp/perf-{process}.map")
        });
        let owner = std::fs::metadata(format!("/proc/{tid}")).map(|of| of.uid());
        let (Some(path), Ok(owner)) = (path, owner) else { return PerfMap::default() };
        let is_its_own = |of: &Metadata| {
            of.is_file() && (of.uid() == owner || of.uid() == 0) && of.len() <= LARGEST
        };
        // A link could lead to any file of the host.
        let is_trusted = std::fs::symlink_metadata(&path).is_ok_and(|of| is_its_own(&of));
        let Some(file) = is_trusted.then(|| File::open(&path).ok()).flatten() else {
            return PerfMap::default();
        };
        let mut text = Vec::new();
        let _ = file.take(LARGEST).read_to_end(&mut text);
        PerfMap::parse(&String::from_utf8_lossy(&text))
    }

    /// `7f3b5c000000 40 LazyCompile:*step loop.js:12`, in hexadecimal. The last of several
    /// functions at one address is there: the runtime reused the memory.
    fn parse(text: &str) -> PerfMap {
        let line = |line: &str| {
            let (begin, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            let (begin, size) = (hex(begin)?, hex(size)?);
            Some(CompiledFunction { begin, size, name: name.trim().to_owned() })
        };
        let mut functions: Vec<CompiledFunction> = text.lines().filter_map(line).collect();
        functions.sort_by_key(|function| function.begin);
        functions.reverse();
        functions.dedup_by_key(|function| function.begin);
        functions.reverse();
        PerfMap { functions }
    }

    pub(super) fn function_name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.begin <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address - function.begin < function.size).then_some(function.name.as_str())
    }
}

/// The id of the thread's process in its own PID namespace.
fn inner_process(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    let last = |ids: &str| ids.split_whitespace().next_back()?.parse().ok();
    line("NStgid:").or_else(|| line("Tgid:")).and_then(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_functions_are_named_by_their_addresses() {
        let text = "1000 20 old\nbroken\n0x2000 0x10 java.lang.String::hashCode\n1000 20 step \
                    loop.js:12\nffff 1\n";
        let map = PerfMap::parse(text);
        assert_eq!(map.function_name(0x101f), Some("step loop.js:12"), "the memory was reused");
        assert_eq!(map.function_name(0x2000), Some("java.lang.String::hashCode"));
        let nothing =
            [0, 0xfff, 0x1020, 0x2010, u64::MAX].map(|address| map.function_name(address));
        assert_eq!(nothing, [None; 5]);
    }

    #[test]
    fn the_map_of_this_process_is_found_and_a_link_is_refused() {
        let process = std::process::id();
        let path = format!("/tmp/perf-{process}.map");
        std::fs::write(&path, "5000 8 compiled\n").expect("written");
        let found = PerfMap::read_of_thread(process).function_name(0x5004).map(str::to_owned);
        std::fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", &path).expect("made");
        let refused = PerfMap::read_of_thread(process).functions.len();
        std::fs::remove_file(&path).expect("removed");
        assert_eq!((found.as_deref(), refused), (Some("compiled"), 0));
    }
}
