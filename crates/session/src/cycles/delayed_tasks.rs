//! The tasks that a program's threads delayed: they waited for the CPU while one ran, and got it
//! next.

use punctual_core::cycle::{DelayedTask, id_here};
use punctual_core::{Cell, Column, Finding, Nanos, Severity, Table, format};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SHOWN_TASKS: usize = 15;
/// A wait of a thread of the kernel from which on it is a finding: its work is late for others.
const LONG_WAIT: Nanos = Nanos::SECOND;
/// Threads of the kernel that serve every task of their CPU, by the beginning of their names.
const OF_KERNEL: [&str; 7] =
    ["kworker/", "ksoftirqd/", "rcu", "ktimers/", "migration/", "irq/", "kcompactd"];

/// A table of them, the longest total first.
pub(super) fn task_table(all: &[DelayedTask], name: impl Fn(u32) -> String) -> Option<Table> {
    let mut sorted_tasks: Vec<&DelayedTask> = all.iter().collect();
    sorted_tasks.sort_by_key(|task| Reverse(task.total));
    let row = |task: &&DelayedTask| {
        vec![
            Cell::from(format::escape_unsafe(&name(task.thread))),
            Cell::from(format::escape_unsafe(&task.name.to_string())),
            id_here(task.tid).map_or(Cell::Nothing, |tid| Cell::from(u64::from(tid))),
            Cell::from(task.times),
            Cell::from(task.total),
            Cell::from(task.longest),
        ]
    };
    (!sorted_tasks.is_empty()).then(|| Table {
        name: "delayed-tasks".to_owned(),
        title: "who waited while a thread of the program ran, and ran next".to_owned(),
        columns: vec![
            Column::new("thread", ""),
            Column::new("task", ""),
            Column::new("tid", "count"),
            Column::new("times", "count"),
            Column::new("total", "ns"),
            Column::new("longest", "ns"),
        ],
        rows: sorted_tasks.iter().take(SHOWN_TASKS).map(row).collect(),
    })
}

/// A finding for each thread that kept a thread of the kernel from running for too long.
pub(super) fn kernel_delay_findings(
    all: &[DelayedTask],
    subject: impl Fn(u32) -> String,
) -> Vec<Finding> {
    let mut longest: BTreeMap<u32, &DelayedTask> = BTreeMap::new();
    let is_of_kernel = |task: &&DelayedTask| {
        let name = task.name.to_string();
        task.longest >= LONG_WAIT && OF_KERNEL.iter().any(|begin| name.starts_with(begin))
    };
    for task in all.iter().filter(is_of_kernel) {
        let longest_task = longest.entry(task.thread).or_insert(task);
        if task.longest > longest_task.longest {
            *longest_task = task;
        }
    }
    let finding = |(thread, task): (u32, &DelayedTask)| {
        let name = format::escape_unsafe(&task.name.to_string());
        let message = format!("{name} waited {} for its CPU", task.longest.to_readable());
        let (times, total) =
            (format::count_with_noun(task.times, "wait"), task.total.to_readable());
        Finding::new("delays-kernel-thread", Severity::Warning, subject(thread), message)
            .with_evidence(format!("{times} of at least 10 µs, {total} altogether"))
            .with_remedy(
                "let the thread sleep in between, or move this work to other CPUs (punctual \
                 isolate create): what waits for it stalls meanwhile",
            )
    };
    longest.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::cycle::TaskComm;

    fn task(name: &str, longest: Nanos) -> DelayedTask {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let (times, total) = (2, longest + Nanos(20_000));
        DelayedTask { thread: 7, tid: 9, name: TaskComm(comm), times, total, longest }
    }

    #[test]
    fn a_thread_of_the_kernel_that_waited_for_a_second_is_a_finding() {
        let bash = task("bash", Nanos::from_secs(9));
        let short = task("kworker/1:2", Nanos::from_millis(999));
        let long = task("ksoftirqd/1", Nanos::from_secs(2));
        let of = |all: &[DelayedTask]| kernel_delay_findings(all, |tid| format!("a/{tid}"));
        assert!(of(&[bash, short]).is_empty());
        let found = of(&[bash, short, long]).pop().expect("a finding");
        assert_eq!(found.subject, "a/7");
        assert!(found.message.starts_with("ksoftirqd/1 waited 2"), "{}", found.message);
        assert_eq!(found.evidence.as_deref(), Some("2 waits of at least 10 µs, 2 s altogether"));
        let drawn = |all: &[DelayedTask]| task_table(all, |_| "poller".to_owned());
        let rows = drawn(&[short, bash]).expect("a table").rows;
        assert_eq!(rows[0][..2], [Cell::from("poller"), Cell::from("bash")]);
        assert!(drawn(&[]).is_none());
    }
}
