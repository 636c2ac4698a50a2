//! A scripted kernel: the cgroups, tasks, hotplug and settings that isolation uses, and their
//! refusals.
//!
//! It complements the tests on the running kernel (isolate_real.rs): it covers behaviour that the
//! machine at hand does not show, and tries every moment of a kill within seconds.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod cgroups;
pub mod killing;
pub mod machine;
pub mod serve;

use punctual_core::CpuSet;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The answer in place of an operation.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The end of the path.
    pub path: String,
    /// The error number.
    pub errno: i32,
    /// The number of refusals; afterwards the kernel accepts.
    pub times: usize,
    /// Whether the change is made anyway.
    pub after_all: bool,
}

/// The reaction of a setting to a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Stores it unchanged.
    Plain,
    /// One of several words, shown in brackets.
    Choice(Vec<&'static str>),
    /// A mask, shown in groups of eight digits.
    Mask,
    /// A list of CPUs.
    List,
    /// Accepts everything and keeps its value.
    Deaf,
    /// The switch of a CPU.
    Online(usize),
}

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub tgid: i32,
    pub start: u64,
    pub name: String,
    pub parent: i32,
    pub flags: u64,
    /// The CPUs that it may use.
    pub allowed: CpuSet,
    /// The affinity that it requested itself, if the kernel remembers it (6.2 and later).
    pub asked: Option<CpuSet>,
    pub cgroup: String,
}

/// A cgroup's cpuset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cgroup {
    pub cpus: CpuSet,
    pub mems: String,
    pub exclusive: bool,
    pub balance: bool,
    /// Version 2: `member`, `root`, `isolated`.
    pub partition: String,
    /// Version 2: whether it passes the controller on to its children.
    pub passes_on: bool,
    /// Version 2: whether its `cgroup.type` is `threaded`.
    pub threaded: bool,
}

/// The whole state.
#[derive(Clone, Debug)]
pub struct State {
    pub v1: bool,
    /// `cpuset.`, or empty.
    pub prefix: &'static str,
    pub mount: String,
    pub possible: CpuSet,
    pub online: CpuSet,
    pub settings: BTreeMap<String, (Kind, String)>,
    pub links: BTreeMap<String, String>,
    pub tasks: BTreeMap<i32, Task>,
    pub cgroups: BTreeMap<String, Cgroup>,
    /// Version 2: the number of changes after which a workqueue returns the CPUs of a removed
    /// partition.
    pub late: usize,
    /// Such CPUs, and the number of changes left.
    pub dying: Option<(CpuSet, usize)>,
    /// Whether tasks keep their requested affinity across cpusets.
    pub remembers: bool,
    pub refusals: Vec<Refusal>,
    /// The number of forks, one at each move of task 100.
    pub forks: usize,
    /// The task number of this process.
    pub own: i32,
    /// Its user and its capabilities.
    pub uid: u32,
    pub rights: String,
    /// Whether a hierarchy is mounted.
    pub mounted: bool,
}

pub struct Kernel {
    pub state: RefCell<State>,
}

impl Kernel {
    /// Accesses the same kernel as another process that is not killed.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    /// The value of a setting.
    pub fn holds(&self, path: &str) -> String {
        self.state.borrow().settings[path].1.clone()
    }

    /// Another process writes to a setting.
    pub fn set(&self, path: &str, value: &str) {
        self.with(|state| {
            state.settings.get_mut(path).expect("the setting exists").1 = value.to_owned()
        });
    }

    /// Makes the kernel refuse.
    pub fn refuse(&self, path: &str, errno: i32, times: usize) {
        self.with(|state| {
            state.refusals.push(Refusal { path: path.into(), errno, times, after_all: false })
        });
    }

    /// Everything that a change can affect.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let state = self.state.borrow();
        let mut all = BTreeMap::from([("online".to_owned(), state.online.to_string())]);
        all.extend(state.settings.iter().map(|(path, (_, value))| (path.clone(), value.clone())));
        all.extend(
            state.cgroups.iter().map(|(path, cgroup)| (path.clone(), format!("{cgroup:?}"))),
        );
        let task = |task: &Task| format!("{} in {} on {}", task.name, task.cgroup, task.allowed);
        all.extend(state.tasks.iter().map(|(tid, one)| (format!("task {tid}"), task(one))));
        all
    }
}
