//! Network queues (Documentation/networking/scaling.rst).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;
use punctual_core::CpuSet;

/// Removes the partition's CPUs from every queue's mask.
pub(crate) fn limit_queue_masks(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    let devices =
        files.list("/sys/class/net").map_err(|_| "this kernel has no network".to_owned())?;
    let mut without_xps = 0;
    for device in devices {
        let queues = format!("/sys/class/net/{device}/queues");
        for queue in files.list(&queues).unwrap_or_default() {
            let file = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
            let path = format!("{queues}/{queue}/{file}");
            match files.read(&path) {
                Ok(text) => keep_off(machine, draft, &path, &text),
                // A device with one transmit queue has no choice: the kernel returns ENOENT.
                Err(error) if error.is_missing() => without_xps += 1,
                Err(error) => draft.skipped.push(error.to_string()),
            }
        }
    }
    if without_xps > 0 {
        draft.skipped.push(format!("{without_xps} queues have no mask: their device has but one"));
    }
    Ok(())
}

fn keep_off(machine: &MachineSplit, draft: &mut Draft, path: &str, text: &str) {
    let Ok(set) = CpuSet::from_mask(text) else {
        draft.skipped.push(format!("{path} is not a mask"));
        return;
    };
    if !set.intersection(&machine.rt).is_empty() {
        draft.write(None, path, text, &machine.keep_off(&set).to_mask());
    }
}
