//! Memory management (Documentation/admin-guide/mm, Documentation/admin-guide/sysctl/vm.rst).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;

/// Sets the folding interval of the counters to 1,000 s, as partrt does.
pub(crate) fn slow_vmstat(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/proc/sys/vm/stat_interval", "1000");
    Ok(())
}

/// Disables new transparent huge pages.
pub(crate) fn transparent_hugepages(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/sys/kernel/mm/transparent_hugepage/enabled", "never");
    Ok(())
}

/// Stops merging equal pages. Merged pages stay merged: `2` would split them immediately, which
/// costs latency.
pub(crate) fn stop_ksm(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    let path = "/sys/kernel/mm/ksm/run";
    if files.read_trimmed(path).is_ok_and(|run| run == "2") {
        return Ok(());
    }
    draft.request_value(files, path, "0");
    Ok(())
}

pub(crate) fn numa_balancing(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/proc/sys/kernel/numa_balancing", "0");
    Ok(())
}
