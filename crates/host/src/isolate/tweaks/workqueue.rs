//! Workqueues (Documentation/core-api/workqueue.rst).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;

const DIRECTORY: &str = "/sys/devices/virtual/workqueue";
const WRITEBACK: &str = "writeback";

/// The mask of all unbound workqueues.
pub(crate) fn limit_unbound(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.keep_off(files, machine, &format!("{DIRECTORY}/cpumask"));
    Ok(())
}

/// The writeback workqueue's own mask, and its NUMA affinity.
pub(crate) fn limit_writeback(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.keep_off(files, machine, &format!("{DIRECTORY}/{WRITEBACK}/cpumask"));
    let numa = format!("{DIRECTORY}/{WRITEBACK}/numa");
    if files.exists(&numa) {
        draft.request_value(files, &numa, "0");
    }
    Ok(())
}

/// Every other workqueue that shows its mask.
pub(crate) fn limit_others(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    let names = files.list(DIRECTORY).map_err(|_| format!("this kernel has no {DIRECTORY}"))?;
    let masks = names
        .iter()
        .filter(|name| *name != WRITEBACK)
        .map(|name| format!("{DIRECTORY}/{name}/cpumask"));
    let masks: Vec<String> = masks.filter(|path| files.exists(path)).collect();
    if masks.is_empty() {
        return Err("no other workqueue shows its mask".into());
    }
    masks.iter().for_each(|path| draft.keep_off(files, machine, path));
    Ok(())
}
