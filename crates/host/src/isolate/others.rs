//! Foreign cpusets: their claims, and the effects on them.

use super::Refusal;
use super::cpusets::Cpusets;
use crate::files::Files;
use crate::journal::tasks;
use punctual_core::CpuSet;

/// A cgroup with CPUs of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OtherCpuset {
    pub path: String,
    pub cpus: CpuSet,
    /// Its claim: `exclusive`, or the kind of its partition; `None` for one that shares its CPUs.
    pub claim: Option<String>,
}

/// Every cgroup with its own CPUs, except the root.
pub(crate) fn cpusets_of_others(
    files: &dyn Files,
    cpusets: &Cpusets,
) -> Result<Vec<OtherCpuset>, Refusal> {
    let mount = &cpusets.hierarchy.mount;
    let cgroups = tasks::cgroups(files, mount)?.into_iter().filter(|path| path != mount);
    Ok(cgroups.filter_map(|path| look_at(files, cpusets, path)).collect())
}

fn look_at(files: &dyn Files, cpusets: &Cpusets, path: String) -> Option<OtherCpuset> {
    let read = |name: &str| files.read_trimmed(&cpusets.file(&path, name)).ok();
    let cpus: CpuSet = read("cpus")?.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty())?;
    let claim = if cpusets.is_v1() {
        read("cpu_exclusive").filter(|flag| flag == "1").map(|_| "exclusive".to_owned())
    } else {
        // `member`, or `root`, `isolated`, or one of these with `invalid (why)`.
        read("cpus.partition").filter(|kind| kind != "member" && !kind.contains("invalid"))
    };
    Some(OtherCpuset { path, cpus, claim })
}

/// Refuses CPUs that another cpuset has claimed.
pub(crate) fn check_overlap(files: &dyn Files, cpusets: &Cpusets, rt: &CpuSet) -> Result<(), Refusal> {
    for other in cpusets_of_others(files, cpusets)? {
        let shared = other.cpus.intersection(rt);
        if let (Some(claim), false) = (other.claim, shared.is_empty()) {
            return Err(Refusal::Overlap { cpus: shared, path: other.path, claim });
        }
    }
    Ok(())
}
