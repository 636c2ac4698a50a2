//! What attaching costs: the kernel counts how long its programs run.

use super::Attacher;
use crate::bpf::{Attach, sys};
use std::os::fd::OwnedFd;

/// The kernel counts the run time of BPF programs as long as this lives.
pub struct Counting {
    _enabled: OwnedFd,
}

impl Attacher {
    /// Makes the kernel count how long the programs run, which itself takes two readings of the
    /// clock a run.
    pub fn count_cost(&self) -> Result<Counting, std::io::Error> {
        sys::enable_run_time().map(|enabled| Counting { _enabled: enabled })
    }

    /// ns and runs of all programs so far; `None` where the kernel does not count them.
    pub fn run_time(&self) -> Option<(u64, u64)> {
        Attach::run_time_of(&self.attached)
    }
}
