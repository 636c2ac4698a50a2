//! The tasks of the system that /proc lists at its top level.

use crate::files::Files;
use punctual_core::{CpuSet, Fact};

/// The maximum number of tasks read: the largest PID (PID_MAX_LIMIT, include/linux/threads.h) would
/// take minutes.
const MAX_TASKS: usize = 65_536;
/// `PF_KTHREAD`, include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `PF_NO_SETAFFINITY`, ibidem.
const NOT_MOVABLE: u64 = 0x0400_0000;

/// A process's main thread, or a kernel thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedTask {
    pub pid: u32,
    pub name: String,
    pub kernel: bool,
    /// Whether its affinity may be changed: the kernel refuses it for its own workers and rescuers.
    pub movable: bool,
    /// 1 to 99 under SCHED_FIFO and SCHED_RR, else 0.
    pub rt_priority: u32,
    /// The CPU that it ran on last.
    pub ran_on: Option<u32>,
    /// The CPUs that it may run on; `None` if it ended before they were read.
    pub allowed: Option<CpuSet>,
}

/// Tasks that end while they are read are omitted.
pub fn read(files: &dyn Files) -> Fact<Vec<CheckedTask>> {
    let names = match files.list("/proc") {
        Ok(names) => names,
        Err(why) => return Fact::Unavailable(why.to_string()),
    };
    let pids = names.iter().filter_map(|name| name.parse::<u32>().ok()).take(MAX_TASKS);
    let tasks: Vec<CheckedTask> = pids.filter_map(|pid| read_task(files, pid)).collect();
    if tasks.is_empty() {
        Fact::Unavailable("/proc shows no task".into())
    } else {
        Fact::Known(tasks)
    }
}

fn read_task(files: &dyn Files, pid: u32) -> Option<CheckedTask> {
    let TaskStat { name, flags, rt_priority, processor: ran_on, .. } =
        TaskStat::parse(&files.read(&format!("/proc/{pid}/stat")).ok()?)?;
    let status = files.read(&format!("/proc/{pid}/status")).ok();
    let list = |status: String| {
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
    };
    let (kernel, movable) = (flags & KERNEL_THREAD != 0, flags & NOT_MOVABLE == 0);
    let allowed = status.and_then(list);
    Some(CheckedTask { pid, name, kernel, movable, rt_priority, ran_on, allowed })
}

/// The fields of /proc/PID/stat that are used here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TaskStat {
    pub name: String,
    pub parent: u32,
    /// The process that began its session.
    pub session: u32,
    pub flags: u64,
    /// Its running time, and its start after boot, in ticks of USER_HZ.
    pub ran: u64,
    pub started: u64,
    pub nice: i32,
    /// The CPU that it ran on last.
    pub processor: Option<u32>,
    /// 1 to 99 under SCHED_FIFO and SCHED_RR, else 0.
    pub rt_priority: u32,
    /// The kernel's number; captured trees may lack it.
    pub policy: Option<u32>,
}

impl TaskStat {
    /// `pid (name) state ppid pgrp session … flags …` (proc_pid_stat(5)); a name may hold spaces
    /// and parentheses.
    pub(super) fn parse(stat: &str) -> Option<TaskStat> {
        fn parse_field<T: std::str::FromStr>(fields: &[&str], at: usize) -> Option<T> {
            fields.get(at)?.parse().ok()
        }
        let (start, end) = (stat.find('(')? + 1, stat.rfind(')')?);
        let fields: Vec<&str> = stat.get(end + 1..)?.split_whitespace().collect();
        Some(TaskStat {
            name: stat.get(start..end)?.to_owned(),
            parent: parse_field(&fields, 1)?,
            // 0 or -1 for a kernel thread, and beyond the own namespace.
            session: parse_field(&fields, 3).unwrap_or(0),
            flags: parse_field(&fields, 6)?,
            ran: parse_field::<u64>(&fields, 11)?.saturating_add(parse_field(&fields, 12)?),
            started: parse_field(&fields, 19)?,
            nice: parse_field(&fields, 16)?,
            processor: parse_field(&fields, 36),
            rt_priority: parse_field(&fields, 37)?,
            policy: parse_field(&fields, 38),
        })
    }
}

impl CheckedTask {
    /// Name and number, for evidence.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }
    /// Whether it may run on one of these CPUs.
    pub(crate) fn may_run_on(&self, cpus: &CpuSet) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| !allowed.intersection(cpus).is_empty())
    }
    /// Whether it is bound to a single CPU, as the kernel's own per-CPU threads are.
    pub fn is_bound(&self) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| allowed.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hostile_task_name_does_not_shift_the_fields_of_stat() {
        let stat = "7 (a) S 1 (b) ) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 5 0 0 \
                    18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 50 1 0 0 0";
        let read = TaskStat::parse(stat).expect("a stat");
        assert_eq!((read.name.as_str(), read.flags, read.parent), ("a) S 1 (b) ", 2_129_984, 2));
        assert_eq!((read.rt_priority, read.policy, read.nice), (50, Some(1), 0));
    }

    proptest! {
        #[test]
        fn no_stat_panics(text in "\\PC{0,80}") {
            TaskStat::parse(&text);
        }
    }
}
