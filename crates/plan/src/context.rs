//! Facts about the system that resolving needs. The caller supplies them: this crate reads no
//! system.

use punctual_core::CpuSet;
use std::path::PathBuf;

/// Finds the file of a program by name. The error completes "cannot run `NAME`: ".
pub type FindProgram<'a> = dyn Fn(&str) -> Result<PathBuf, String> + 'a;

/// The system that an experiment is resolved for.
pub struct ResolveContext<'a> {
    /// The online CPUs (/sys/devices/system/cpu/online).
    pub online: CpuSet,
    /// The present CPUs (/sys/devices/system/cpu/present).
    pub present: CpuSet,
    /// The memory of the system in bytes: it limits the size of histograms.
    pub memory_bytes: u64,
    /// Finds the programs of loads, like execvp(3).
    pub find_program: &'a FindProgram<'a>,
    /// The timestamp in the default name of the bundle: `20261103-141500`.
    pub stamp: String,
    /// Whether settings that could make the system unusable are allowed (`--force`).
    pub force: bool,
}

/// How strictly a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadOptions {
    /// Unknown sections and keys are warnings (`--allow-unknown`).
    pub allow_unknown: bool,
}
