//! Names of threads: existing ones at the start from /proc, new or renamed ones from the kernel,
//! and at the end again from /proc, for their final scheduling.

use crate::wire::layout::{Header, NAME, Name};
use punctual_core::Priority;
use punctual_core::event::{Names, TaskName, Tid};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::{observers, status};
use std::collections::BTreeMap;
use std::fs;

/// The maximum number of names kept; further threads are shown by number. The kernel's own limit is
/// 2²² threads (include/linux/threads.h).
const MAX_TASK_NAMES: usize = 1 << 20;

pub(crate) struct TaskNameCollector {
    tasks: BTreeMap<Tid, TaskName>,
}

impl TaskNameCollector {
    pub(crate) fn start() -> TaskNameCollector {
        let mut collector = TaskNameCollector { tasks: BTreeMap::new() };
        collector.scan_proc();
        collector
    }

    fn keep_name(&mut self, tid: Tid, name: TaskName) {
        if self.tasks.len() < MAX_TASK_NAMES || self.tasks.contains_key(&tid) {
            self.tasks.insert(tid, name);
        }
    }

    /// Takes names written by the kernel's programs.
    pub(crate) fn take_names(&mut self, mut bytes: &[u8]) {
        while let Some((header, rest)) = bytes.split_first_chunk() {
            let header = Header::read(header);
            let size = usize::from(header.words) * 8;
            let Some(payload) = rest.get(..size) else { return };
            if let (true, Ok(payload)) = (u64::from(header.kind) == NAME, payload.try_into()) {
                let name = Name::read(payload);
                let priority =
                    u8::try_from(100 - i32::from(name.prio)).ok().and_then(Priority::new);
                let scheduling = attributes::policy_from_number(name.policy.into())
                    .map(|policy| Scheduling::new(policy, priority).to_string());
                let process = Some(name.process).filter(|process| *process != 0);
                let process = process.unwrap_or_else(|| process_of(header.tid));
                let name = TaskName { process, comm: text_until_nul(&name.comm), scheduling };
                self.keep_name(Tid(header.tid), name);
            }
            bytes = &rest[size..];
        }
    }

    /// Reads all threads of all processes from /proc.
    pub(crate) fn scan_proc(&mut self) {
        let numbers = |path: &str| -> Vec<u32> {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        };
        for process in numbers("/proc") {
            for tid in numbers(&format!("/proc/{process}/task")) {
                if let Ok(comm) = fs::read(format!("/proc/{process}/task/{tid}/comm")) {
                    let name = TaskName {
                        process,
                        comm: text_until_nul(comm.trim_ascii_end()),
                        scheduling: scheduling_of(tid),
                    };
                    self.keep_name(Tid(tid), name);
                }
            }
        }
    }

    /// The most recent name.
    pub(crate) fn comm_of(&self, tid: Tid) -> Option<&str> {
        self.tasks.get(&tid).map(|name| name.comm.as_str())
    }

    /// One name, with its current scheduling if the thread is alive.
    pub(crate) fn refresh_task(&mut self, tid: Tid) -> Option<&TaskName> {
        if let (Some(known), Some(scheduling)) = (self.tasks.get_mut(&tid), scheduling_of(tid.0)) {
            known.scheduling = Some(scheduling);
        }
        self.tasks.get(&tid)
    }

    /// The names known by now.
    pub(crate) fn so_far(&self) -> Names {
        names_of_tasks(self.tasks.clone())
    }

    /// All known names, with the current names and scheduling of living threads.
    pub(crate) fn into_names(mut self) -> Names {
        self.scan_proc();
        names_of_tasks(self.tasks)
    }
}

fn names_of_tasks(tasks: BTreeMap<Tid, TaskName>) -> Names {
    let processes = observers::measuring_processes();
    let observes = |(_, task): &(&Tid, &TaskName)| {
        observers::is_observer(task.process, &task.comm, &processes)
    };
    let observers = tasks.iter().filter(observes).map(|(tid, _)| *tid).collect();
    let mut names = Names { tasks, observers, ..Names::default() };
    super::name_machine(&mut names);
    names
}

/// The bytes up to the first NUL, with invalid UTF-8 replaced; escape the result for output.
fn text_until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The thread group, if the recorder did not know it; for an ended thread the thread itself.
fn process_of(tid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    status::find_field(&status, "Tgid").and_then(|group| group.parse().ok()).unwrap_or(tid)
}

/// `SCHED_FIFO 80`.
fn scheduling_of(tid: u32) -> Option<String> {
    let now = attributes::read_scheduling(tid as i32).ok()?;
    Some(Scheduling::new(now.policy, now.priority).to_string())
}
