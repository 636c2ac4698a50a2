//! Tweaks that are part of the partition itself.

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;

/// Version 1: disables balancing in the root, so that the domains of the scheduler are those of its
/// children. In version 2 the type of the partition includes this.
pub(crate) fn load_balance(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    if machine.cpusets.is_v1() {
        let path =
            machine.cpusets.file_path(&machine.cpusets.hierarchy.mount, "sched_load_balance");
        draft.request_value(files, &path, "0");
    }
    Ok(())
}

/// For a tweak that the plan executes itself.
pub(crate) fn nothing_here(_: &dyn Files, _: &MachineSplit, _: &mut Draft) -> Result<(), String> {
    Ok(())
}
