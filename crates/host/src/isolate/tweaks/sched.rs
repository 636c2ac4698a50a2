//! The scheduler's, the timers' and the watchdogs' settings
//! (Documentation/admin-guide/sysctl/kernel.rst).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;
use punctual_core::CpuSet;

/// Disables throttling of real-time tasks.
pub(crate) fn disable_throttling(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/proc/sys/kernel/sched_rt_runtime_us", "-1");
    Ok(())
}

/// Removes the limit on the time of a CPU without tick.
pub(crate) fn tick_deferment(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/sys/kernel/debug/sched_tick_max_deferment", "-1");
    Ok(())
}

/// Keeps timers on the CPU that armed them.
pub(crate) fn timer_migration(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.request_value(files, "/proc/sys/kernel/timer_migration", "0");
    Ok(())
}

/// Keeps the lockup detectors off the partition, if the kernel allows the choice.
pub(crate) fn limit_watchdog(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    let path = "/proc/sys/kernel/watchdog_cpumask";
    if !files.exists(path) {
        draft.request_value(files, "/proc/sys/kernel/watchdog", "0");
        return Ok(());
    }
    // A list, despite its name.
    let text = files.read(path).map_err(|error| error.to_string())?;
    let set: CpuSet = text.parse().map_err(|error| format!("{path}: {error}"))?;
    if !set.intersection(&machine.rt).is_empty() {
        draft.write(None, path, &text, &machine.keep_off(&set).to_string());
    }
    Ok(())
}

/// Disables polling for corrected machine checks. The setting is global; each CPU shows it.
pub(crate) fn machine_check(
    files: &dyn Files,
    _: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    let directory = "/sys/devices/system/machinecheck";
    let no_polling =
        || "this machine has no machine-check polling (x86 with CONFIG_X86_MCE only)".to_owned();
    let names = files.list(directory).map_err(|_| no_polling())?;
    let first =
        names.iter().find(|name| name.starts_with("machinecheck")).ok_or_else(no_polling)?;
    draft.request_value(files, &format!("{directory}/{first}/check_interval"), "0");
    Ok(())
}
