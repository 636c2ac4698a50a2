//! /proc/PID/status (proc_pid_status(5)).

use std::io;

/// The status of this process.
pub fn read() -> io::Result<String> {
    std::fs::read_to_string("/proc/self/status")
}

/// The value of a field: `CapEff`, `VmLck`.
pub fn find_field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    let value = |line: &'t str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    status.lines().find_map(value)
}

/// The value of a field of 64 bits, such as a set of signals or capabilities.
pub fn parse_mask(status: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(find_field(status, name)?, 16).ok()
}

/// The value of a field in KiB.
pub fn parse_kib(status: &str, name: &str) -> Option<u64> {
    find_field(status, name)?.strip_suffix(" kB")?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_fields_are_found_by_their_complete_name() {
        let status = "Name:\tx\nVmLckX:\t1 kB\nVmLck:\t      12 kB\nSigIgn:\t0000000000001000\n";
        assert_eq!(parse_kib(status, "VmLck"), Some(12));
        assert_eq!(parse_mask(status, "SigIgn"), Some(0x1000));
        assert_eq!((find_field(status, "Name"), find_field(status, "Vm")), (Some("x"), None));
        assert!(find_field(&read().unwrap(), "CapEff").is_some());
    }
}
