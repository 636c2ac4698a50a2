//! What resolving needs to know of the system, handed in: this crate asks the system nothing.

use punctual_core::CpuSet;
use std::path::PathBuf;

/// How a program's name becomes its file. The error is why there is none, in words that follow
/// "cannot run `NAME`: ".
pub type FindProgram<'a> = dyn Fn(&str) -> Result<PathBuf, String> + 'a;

/// The system that an experiment is resolved for.
pub struct ResolveContext<'a> {
    /// The CPUs that run (/sys/devices/system/cpu/online).
    pub online: CpuSet,
    /// The CPUs that there are (/sys/devices/system/cpu/present).
    pub present: CpuSet,
    /// The memory of the system in bytes: bounds what histograms may take.
    pub memory_bytes: u64,
    /// Finds the programs of loads, as execvp(3) would.
    pub find_program: &'a FindProgram<'a>,
    /// The time for the default name of the bundle, as it should stand there: `20261103-141500`.
    pub stamp: String,
    /// Whether what could make the system unusable is allowed (`--force`).
    pub force: bool,
}

/// How strictly a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadOptions {
    /// Unknown sections and keys are warnings (`--allow-unknown`).
    pub allow_unknown: bool,
}
