//! Memory management (Documentation/admin-guide/mm, Documentation/admin-guide/sysctl/vm.rst).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::Machine;

/// The counters are folded every 1,000 s, as partrt has it.
pub fn vmstat(files: &dyn Files, _: &Machine, draft: &mut Draft) -> Result<(), String> {
    draft.want(files, "/proc/sys/vm/stat_interval", "1000");
    Ok(())
}

/// No new transparent huge pages.
pub fn transparent_hugepages(
    files: &dyn Files,
    _: &Machine,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.want(files, "/sys/kernel/mm/transparent_hugepage/enabled", "never");
    Ok(())
}

/// No merging of equal pages. Pages that are merged stay so: `2` would take them apart at once,
/// which is what hurts.
pub fn ksm(files: &dyn Files, _: &Machine, draft: &mut Draft) -> Result<(), String> {
    let path = "/sys/kernel/mm/ksm/run";
    if files.read_trimmed(path).is_ok_and(|run| run == "2") {
        return Ok(());
    }
    draft.want(files, path, "0");
    Ok(())
}

pub fn numa_balancing(files: &dyn Files, _: &Machine, draft: &mut Draft) -> Result<(), String> {
    draft.want(files, "/proc/sys/kernel/numa_balancing", "0");
    Ok(())
}
