//! Tweaks that are part of the partition itself.

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::Machine;

/// Version 1: the root balances no more, so that the domains of the scheduler are those of its
/// children. Version 2 has this in the type of the partition.
pub fn load_balance(files: &dyn Files, machine: &Machine, draft: &mut Draft) -> Result<(), String> {
    if machine.cpusets.is_v1() {
        let path = machine.cpusets.file(&machine.cpusets.hierarchy.mount, "sched_load_balance");
        draft.want(files, &path, "0");
    }
    Ok(())
}

/// For a tweak that the plan makes at a place of its own.
pub fn nothing_here(_: &dyn Files, _: &Machine, _: &mut Draft) -> Result<(), String> {
    Ok(())
}
