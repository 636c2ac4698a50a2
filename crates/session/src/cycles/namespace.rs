//! Maps threads of a PID namespace to their global ids (pid_namespaces(7)).

use super::names::read_comm;
use punctual_core::cycle::{Cycle, TaskComm};
use std::collections::BTreeMap;
use std::fs;

/// The maximum number of cached threads.
const MAX_CACHED_THREADS: usize = 1_024;

/// The mapping from ids in a namespace to global ones.
#[derive(Default)]
pub struct NamespaceIds {
    /// The global ids by a thread of the process, and the id within; `None`: no thread of the
    /// process has it.
    known: BTreeMap<(u32, u32), Option<(u32, TaskComm)>>,
}

impl NamespaceIds {
    /// Sets the global id and the name of a lock's holder. A holder that is not a thread of the
    /// process holds no lock.
    pub(crate) fn translate_holder(&mut self, cycle: &mut Cycle) {
        let Some(holder) = cycle.holder.as_mut().filter(|holder| holder.in_namespace) else {
            return;
        };
        if self.known.len() >= MAX_CACHED_THREADS {
            self.known.clear();
        }
        let inside = holder.tid;
        let found = *self
            .known
            .entry((cycle.tid, inside))
            .or_insert_with(|| find_thread(cycle.tid, inside));
        match found {
            Some((tid, name)) => {
                (holder.tid, holder.name, holder.in_namespace) = (tid, name, false)
            }
            None => cycle.holder = None,
        }
    }
}

/// The thread of the same process as `of` that has this id within.
fn find_thread(of: u32, inside: u32) -> Option<(u32, TaskComm)> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).ok()?.flatten();
    let mut tids = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
    let tid = tids.find(|tid| {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        innermost_id(&status) == Some(inside)
    })?;
    let mut name = TaskComm::default();
    let text = read_comm(tid).unwrap_or_default();
    name.0.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
    Some((tid, name))
}

/// The last id of `NSpid:\t4711\t3`, which has one for each namespace.
fn innermost_id(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::cycle_at;
    use super::*;
    use punctual_core::Nanos;
    use punctual_core::cycle::{LockEvidence, LockHolder};

    #[test]
    fn the_id_within_a_namespace_is_the_last_nspid() {
        assert_eq!(innermost_id("Name:\ta\nNSpid:\t4711\t30\t3\nx"), Some(3));
        assert_eq!(innermost_id("NSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost_id("Pid:\t4711\n"), None);
    }

    #[test]
    fn a_lock_holder_outside_of_the_process_is_dropped() {
        let mut held = cycle_at(0);
        held.tid = std::process::id();
        let holder = |tid, in_namespace| LockHolder {
            tid,
            name: TaskComm::default(),
            evidence: LockEvidence::MutexOwner,
            in_namespace,
            waits: 1,
            time: Nanos(1),
        };
        let mut ids = NamespaceIds::default();
        held.holder = Some(holder(1, false));
        ids.translate_holder(&mut held);
        assert_eq!(held.holder, Some(holder(1, false)), "it has that id here");
        held.holder = Some(holder(u32::MAX, true));
        ids.translate_holder(&mut held);
        assert_eq!(held.holder, None);
    }
}
