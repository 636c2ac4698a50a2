//! Whether a file's process still runs the program that made the file.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

/// The PID namespace of this process; 0 if it cannot be read.
pub fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// The effective user of a process or thread; `None` if nothing has this number, or it cannot be
/// read.
pub fn effective_user(number: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    // Real, effective, saved, file system (proc_pid_status(5)).
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the process that began at `start` (field 22 of /proc/PID/stat) with this number runs and
/// has a file of this name mapped. If that is unknown, the answer is yes: its file stays.
pub(crate) fn has_file_mapped(pid: u32, start: u64, name: &[u8]) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    let Some((state, began)) = state_and_start(&stat) else { return true };
    if start != 0 && began != start {
        return false;
    }
    // A thread group leader that ended before its threads is a zombie, too.
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(1, Iterator::count);
    if matches!(state, b'Z' | b'X') && threads() <= 1 {
        return false;
    }
    // execve(2) keeps number and start time, but drops the mappings.
    match std::fs::File::open(format!("/proc/{pid}/maps")) {
        Ok(maps) => find_mapped_name(BufReader::new(maps), name).unwrap_or(true),
        Err(_) => true,
    }
}

/// State and start time; the name before them is in parentheses and may hold anything.
fn state_and_start(stat: &[u8]) -> Option<(u8, u64)> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = stat.get(name_end + 2..)?.split(|&byte| byte == b' ');
    let state = *fields.next()?.first()?;
    Some((state, std::str::from_utf8(fields.nth(18)?).ok()?.parse().ok()?))
}

/// `None`: nothing is mapped at all, or it cannot be read.
fn find_mapped_name(maps: impl BufRead, name: &[u8]) -> Option<bool> {
    let mut is_found = None;
    for line in maps.split(b'\n') {
        let line = line.ok()?;
        is_found = Some(false);
        let path = line.strip_suffix(b" (deleted)").unwrap_or(&line);
        if path.rsplit(|&byte| byte == b'/').next() == Some(name) {
            return Some(true);
        }
    }
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinguished_from_another_with_its_pid() {
        let stat = std::fs::read("/proc/self/stat").unwrap();
        let (state, start) = state_and_start(&stat).unwrap();
        assert!(b"RSD".contains(&state) && start > 0);
        assert_eq!(state_and_start(b"12 (a) b) S 1 2 3"), None);
        assert!(!has_file_mapped(std::process::id(), start + 1, b"x"));
        assert!(!has_file_mapped(std::process::id(), start, b"a file that nobody has mapped"));
        assert!(!has_file_mapped(u32::MAX, 0, b"x"));
    }

    #[test]
    fn a_mapping_is_found_by_its_name() {
        let maps =
            b"7f00-7f01 rw-s 00000000 00:1a 77 /run/punctual/points/1.2.0.points (deleted)\n\
              7f02-7f03 r--p 0 0 0\n";
        assert_eq!(find_mapped_name(&maps[..], b"1.2.0.points"), Some(true));
        assert_eq!(find_mapped_name(&maps[..], b"2.2.0.points"), Some(false));
        assert_eq!(find_mapped_name(&b""[..], b"1.2.0.points"), None);
    }
}
