//! The messages between punctual and the guard: one JSON object per line.

use punctual_core::{CpuSet, Nanos, Policy, Priority};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The action when a load ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LoadExitAction {
    Respawn,
    Ignore,
    Stop,
}

/// A program that loads the system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Its name in the experiment.
    pub name: String,
    pub program: PathBuf,
    /// All arguments, the program's own name first.
    pub argv: Vec<String>,
    /// Variables besides those of punctual's own environment.
    pub environment: Vec<(String, String)>,
    /// The file of the cgroup that it joins (`tasks`, `cgroup.procs`); `None`: it stays in the
    /// guard's.
    pub joins: Option<PathBuf>,
    pub cpus: CpuSet,
    pub policy: Policy,
    /// Its priority under SCHED_FIFO and SCHED_RR.
    pub priority: Option<Priority>,
    /// Its nice value under the other policies.
    pub nice: i32,
    /// The file of its output; `None` is /dev/null.
    pub stdout: Option<PathBuf>,
    /// The file of its errors; `None` is /dev/null.
    pub stderr: Option<PathBuf>,
    /// The action on exit status 0.
    pub on_success: LoadExitAction,
    pub on_failure: LoadExitAction,
    /// The delay of its start after the start of the phase.
    pub start_delay: Nanos,
}

/// From punctual to the guard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum GuardRequest {
    /// Start this load with this number.
    Start(usize, Box<LoadSpec>),
    EndAll,
}

/// From the guard to punctual.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GuardEvent {
    Started {
        load: usize,
        pid: i32,
    },
    /// A load could not be started.
    NotStarted {
        load: usize,
        why: String,
    },
    /// A load ended by itself.
    Ended {
        load: usize,
        how: String,
        /// The signal that ended it; otherwise its status is valid.
        signal: Option<i32>,
        status: i32,
        /// Whether it ended with status 0.
        success: bool,
        /// The action taken.
        then: LoadExitAction,
    },
    /// This many events were dropped, because punctual did not read them.
    Lost {
        events: u64,
    },
    AllEnded {
        problem: Option<String>,
    },
}
