//! PID namespaces (pid_namespaces(7)): the kernel's events have the ids of the initial one.

use crate::start_error::StartError;
use std::path::Path;

/// The prefix of every namespace's link.
const KIND: &str = "pid:[";

/// The number of the initial namespace in every kernel (include/linux/proc_ns.h).
const INITIAL: &str = "pid:[4026531836]";

const FOREIGN: &str = "punctual runs in a PID namespace, and the kernel's events have the ids of \
                       the initial one; run it outside of the container, or in one that shares \
                       the PID namespace of the host (docker run --pid=host)";

/// Why events of threads cannot be found here by their ids; `None` if they can.
pub fn foreign_ids() -> Option<&'static str> {
    is_inner(std::fs::read_link("/proc/self/ns/pid").ok().as_deref()).then_some(FOREIGN)
}

/// The number of the namespace of task ids here; 0: the initial one.
pub(crate) fn inner_number() -> u32 {
    let link = std::fs::read_link("/proc/self/ns/pid").ok();
    link.filter(|of| is_inner(Some(of))).and_then(|of| parse_number(&of)).unwrap_or(0)
}

fn parse_number(link: &Path) -> Option<u32> {
    link.to_str()?.strip_prefix(KIND)?.strip_suffix(']')?.parse().ok()
}

/// Rejects requests that would find no events of their threads, or those of others.
pub(crate) fn check_ids() -> Result<(), StartError> {
    let refused = |why| Err(StartError::Request(format!("threads cannot be found: {why}")));
    foreign_ids().map_or(Ok(()), refused)
}

/// Whether this is another namespace than the initial one; an unreadable one counts as initial.
fn is_inner(namespace: Option<&Path>) -> bool {
    namespace.is_some_and(|of| of != Path::new(INITIAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_namespaces_other_than_the_initial_one_are_recognised() {
        assert!(is_inner(Some(Path::new("pid:[4026532201]"))));
        assert!(!is_inner(Some(Path::new(INITIAL))));
        assert!(!is_inner(None));
        assert_eq!(parse_number(Path::new("pid:[4026532201]")), Some(4_026_532_201));
        assert_eq!(parse_number(Path::new("net:[4026532201]")), None);
    }
}
