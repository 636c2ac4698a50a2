//! The real-time budget of a process's control group (Documentation/scheduler/sched-rt-group.rst).

use super::subject::Subject;
use crate::check::cgroups::Mounts;
use crate::environment::{KernelCommandLine, KernelConfig, read_text};
use crate::files::Files;

/// The group without a budget, and the groups above it that have none either.
pub(super) struct NoBudget {
    /// Files `cpu.rt_runtime_us` to write, from the top down; empty with version 2.
    pub files: Vec<String>,
    pub evidence: String,
    pub message: String,
}

/// The obstacle, if it is one: the kernel refuses a real-time policy with EPERM
/// (kernel/sched/syscalls.c, __sched_setscheduler).
///
/// # Errors
/// Why it is not known.
pub(super) fn without_budget(
    files: &dyn Files,
    subject: &Subject,
) -> Result<Option<NoBudget>, String> {
    let release = read_text(files, "/proc/sys/kernel/osrelease");
    let config = KernelConfig::read(files, release.known_value().map(String::as_str));
    let configured = config.known_value().map(|config| config.has_option("RT_GROUP_SCHED"));
    let line = files.read("/proc/cmdline").map(KernelCommandLine).unwrap_or_default();
    let off = line.last_value("rt_group_sched").is_some_and(|value| value == "0");
    // Without a limit for all, no group's is asked for (rt_bandwidth_enabled).
    let global_limit = files.read_trimmed("/proc/sys/kernel/sched_rt_runtime_us");
    if configured == Some(false) || off || global_limit.is_ok_and(|all| all == "-1") {
        return Ok(None);
    }
    let own_group = |controller: &dyn Fn(&str) -> bool| {
        subject.groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':').filter(|(names, _)| controller(names)).map(|(_, path)| path)
        })
    };
    let mounts = Mounts::read(files).ok();
    if let Some(mount) = mounts.as_ref().and_then(|mounts| mounts.find_v1("cpu")) {
        let group = own_group(&|names| names.split(',').any(|name| name == "cpu"));
        let directory = group.and_then(|group| mount.directory_of(group));
        // The root of a version 1 hierarchy has the file, too, if the kernel knows budgets at all.
        let Some(directory) = directory else { return Ok(None) };
        return find_empty_budgets(files, &mount.point, &directory);
    }
    // Version 2 has no budgets: every group with the controller but the root has none.
    let (Some(true), Some(mount)) = (configured, mounts.and_then(|mounts| mounts.find_v2())) else {
        return Ok(None);
    };
    let directory = own_group(&str::is_empty).and_then(|group| mount.directory_of(group));
    let above = directory.iter().flat_map(|directory| group_and_parents(&mount.point, directory));
    let group = above.into_iter().find(|group| files.exists(&format!("{group}/cpu.max")));
    Ok(group.map(|group| NoBudget {
        files: Vec::new(),
        evidence: format!("{group}/cpu.max is there, and the kernel has CONFIG_RT_GROUP_SCHED"),
        message: "its control group has no real-time budget, as none has in version 2".to_owned(),
    }))
}

/// The files of the group and of those above it that hold 0.
fn find_empty_budgets(
    files: &dyn Files,
    point: &str,
    directory: &str,
) -> Result<Option<NoBudget>, String> {
    let path = |group: &str| format!("{group}/cpu.rt_runtime_us");
    let own_budget = path(directory);
    match files.read_trimmed(&own_budget) {
        Ok(budget) if budget == "0" => {}
        Ok(_) => return Ok(None),
        Err(why) if why.is_missing() => return Ok(None),
        Err(why) => return Err(why.to_string()),
    }
    let empty = |group: &String| files.read_trimmed(&path(group)).is_ok_and(|of| of == "0");
    let mut empty: Vec<String> =
        group_and_parents(point, directory).into_iter().filter(empty).collect();
    empty.reverse();
    Ok(Some(NoBudget {
        files: empty.iter().map(|group| path(group)).collect(),
        evidence: format!("{own_budget} is `0`"),
        message: "its control group has no real-time budget: a new one has none".to_owned(),
    }))
}

/// A group and those above it, without the root.
fn group_and_parents(point: &str, directory: &str) -> Vec<String> {
    let point = point.trim_end_matches('/');
    let mut groups = Vec::new();
    let mut group = directory;
    while group.len() > point.len() {
        groups.push(group.to_owned());
        let Some((above, _)) = group.rsplit_once('/') else { break };
        group = above;
    }
    groups
}
