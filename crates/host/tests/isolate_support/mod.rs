//! A kernel made of scripted answers: what isolation needs of cgroups, tasks, hotplug and settings,
//! and their refusals.
//!
//! It stands beside the tests on the running kernel (isolate_real.rs): there is what a machine at
//! hand does not do, and every moment at which a process can be killed is tried within seconds.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod cgroups;
pub mod killing;
pub mod machine;
pub mod serve;

use punctual_core::CpuSet;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What to answer instead of doing what was asked.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The path ends like this.
    pub path: String,
    /// The error number.
    pub errno: i32,
    /// How often; afterwards the kernel gives in.
    pub times: usize,
    /// Whether the change is made all the same.
    pub after_all: bool,
}

/// How a setting takes what is written to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Kept as it is.
    Plain,
    /// One of several words, shown in brackets.
    Choice(Vec<&'static str>),
    /// A mask, shown in groups of eight digits.
    Mask,
    /// A list of CPUs.
    List,
    /// Takes everything and keeps its value.
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
    /// Where it may run.
    pub allowed: CpuSet,
    /// The affinity that it requested itself, where the kernel remembers that (6.2 and later).
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

/// The whole of it.
#[derive(Clone, Debug)]
pub struct State {
    pub v1: bool,
    /// `cpuset.`, or nothing.
    pub prefix: &'static str,
    pub mount: String,
    pub possible: CpuSet,
    pub online: CpuSet,
    pub settings: BTreeMap<String, (Kind, String)>,
    pub links: BTreeMap<String, String>,
    pub tasks: BTreeMap<i32, Task>,
    pub cgroups: BTreeMap<String, Cgroup>,
    /// Version 2: after how many changes a workqueue gives the CPUs of a partition back whose
    /// cgroup was removed.
    pub late: usize,
    /// Such CPUs, and how many changes are left.
    pub dying: Option<(CpuSet, usize)>,
    /// Whether tasks keep their requested affinity across cpusets.
    pub remembers: bool,
    pub refusals: Vec<Refusal>,
    /// How many tasks are forked, one at each move of task 100.
    pub forks: usize,
    /// The task that this process is.
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
    /// Another process: the same kernel, one that was not killed.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    /// What a setting holds.
    pub fn holds(&self, path: &str) -> String {
        self.state.borrow().settings[path].1.clone()
    }

    /// Somebody writes to a setting behind our back.
    pub fn set(&self, path: &str, value: &str) {
        self.with(|state| {
            state.settings.get_mut(path).expect("the setting exists").1 = value.to_owned()
        });
    }

    /// Asks the kernel to refuse.
    pub fn refuse(&self, path: &str, errno: i32, times: usize) {
        self.with(|state| {
            state.refusals.push(Refusal { path: path.into(), errno, times, after_all: false })
        });
    }

    /// Everything that a change could have touched.
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
