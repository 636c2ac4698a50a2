//! punctual's own processes on this machine: this one, and others that measure. A process that
//! measures says so by a socket without a file (unix(7), abstract): it needs no right, is seen by
//! all of the same network namespace in /proc/net/unix, and goes with its process, also after
//! kill -9.

use std::collections::BTreeSet;
use std::fs;

/// What all names begin with; the process and its CPUs follow.
pub const PREFIX: &str = "punctual/measures/";
/// Where the kernel lists the names.
pub const SOCKETS: &str = "/proc/net/unix";

/// What the threads are called that a measurement consists of: what they do to each other is what
/// is measured.
const MEASURING: [&str; 4] = ["measure", "ring", "raiser", "target"];

/// The processes that say so in a text of [`SOCKETS`], each with its CPUs as it wrote them.
pub fn announced(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.lines().filter_map(|line| {
        let name = line.split_ascii_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX)?;
        let (pid, list) = name.split_once('/')?;
        Some((pid.parse().ok()?, list))
    })
}

/// This process and all others that measure now.
pub fn processes() -> BTreeSet<u32> {
    let text = fs::read_to_string(SOCKETS).unwrap_or_default();
    announced(&text).map(|(pid, _)| pid).chain([std::process::id()]).collect()
}

/// The threads that these processes have now.
pub fn threads(processes: &BTreeSet<u32>) -> impl Iterator<Item = u32> {
    let of = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
    let entries = processes.iter().flat_map(of).flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a thread of this name in one of these processes is none of what this process measures.
pub fn observes(process: u32, comm: &str, processes: &BTreeSet<u32>) -> bool {
    let measures = process == std::process::id() && MEASURING.contains(&comm);
    processes.contains(&process) && !measures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_measuring_threads_are_no_observers() {
        let me = std::process::id();
        let processes = BTreeSet::from([me, me + 1]);
        assert!(!observes(me, "measure", &processes) && observes(me, "punctual", &processes));
        assert!(
            observes(me + 1, "measure", &processes) && !observes(me + 2, "punctual", &processes)
        );
        assert!(threads(&super::processes()).any(|tid| tid as i32 == crate::attributes::tid()));
    }

    #[test]
    fn names_of_others_are_passed_over() {
        let text = "0: 2 0 0 2 01 123 @punctual/measures/41/0-1\n0: 2 0 0 2 01 5 \
                    @punctual/measures/x/1\n0: 2 0 1 1 01 126 /run/x\n";
        assert_eq!(announced(text).collect::<Vec<_>>(), [(41, "0-1")]);
    }
}
