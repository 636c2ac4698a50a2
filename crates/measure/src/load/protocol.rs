//! The messages between punctual and the guard: one JSON object a line.

use punctual_core::{CpuSet, Nanos, Policy, Priority};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What to do when a load ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OnExit {
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
    /// Variables beside those of punctual's own environment.
    pub environment: Vec<(String, String)>,
    /// The file of a cgroup that takes it in (`tasks`, `cgroup.procs`); `None`: it stays in the
    /// guard's.
    pub joins: Option<PathBuf>,
    pub cpus: CpuSet,
    pub policy: Policy,
    /// Its priority under SCHED_FIFO and SCHED_RR.
    pub priority: Option<Priority>,
    /// Its nice value under the other policies.
    pub nice: i32,
    /// Where its output goes; `None` is /dev/null.
    pub stdout: Option<PathBuf>,
    /// Where its errors go; `None` is /dev/null.
    pub stderr: Option<PathBuf>,
    /// When it ends with status 0.
    pub on_success: OnExit,
    pub on_failure: OnExit,
    /// How long after the start of the phase it starts.
    pub start_delay: Nanos,
}

/// From punctual to the guard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Start this load under this number.
    Start(usize, Box<LoadSpec>),
    EndAll,
}

/// From the guard to punctual.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
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
        /// The signal that ended it, or else its status.
        signal: Option<i32>,
        status: i32,
        /// Whether with status 0.
        success: bool,
        /// What is done about it.
        then: OnExit,
    },
    /// So many events were not kept, because punctual did not read them.
    Lost {
        events: u64,
    },
    AllEnded {
        problem: Option<String>,
    },
}
