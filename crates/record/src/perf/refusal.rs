//! Why an event cannot be counted, with a remedy.

use punctual_core::PerfEvent;
use std::io;

/// Whether more privileges would help.
pub(super) fn is_of_rights(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// The reason, as perf_event_open(2) explains the error.
pub(super) fn describe_refusal(event: &PerfEvent, why: &io::Error) -> String {
    match why.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "this process may not count it: {}run as root, or give the program CAP_PERFMON",
            paranoid_level()
                .map_or(String::new(), |level| format!("kernel.perf_event_paranoid is {level}; "))
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO)
            if event.is_hardware() =>
        {
            match has_pmu() {
                true => {
                    "the performance monitoring unit (PMU) of this CPU does not count it".to_owned()
                }
                false => "the CPU offers no performance monitoring unit (PMU); virtual machines \
                          often hide it"
                    .to_owned(),
            }
        }
        Some(libc::EINVAL) if event.is_hardware() => "this CPU does not count it".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
        Some(libc::EMFILE) => "too many open files (`ulimit -n`)".to_owned(),
        _ => format!("perf_event_open of {event}: {why}"),
    }
}

fn paranoid_level() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .ok()
        .map(|level| level.trim().to_owned())
}

/// Whether a PMU of the CPUs has a driver: `cpu` on x86, `armv8_pmuv3_0`, `cpu_core` and others
/// elsewhere.
fn has_pmu() -> bool {
    let devices =
        std::fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    devices.map(|device| device.file_name()).any(|name| name.to_str().is_some_and(is_pmu))
}

fn is_pmu(name: &str) -> bool {
    name == "cpu" || name.starts_with("cpu_") || (name.starts_with("armv") && name.contains("pmu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_perf_event_open_are_explained() {
        let of = |event: PerfEvent, number| {
            describe_refusal(&event, &io::Error::from_raw_os_error(number))
        };
        assert!(of(PerfEvent::CONTEXT_SWITCHES, libc::EACCES).contains("CAP_PERFMON"));
        assert!(of(PerfEvent::CYCLES, libc::ENOENT).contains("PMU"));
        assert!(of(PerfEvent::from_tracepoint("a", "b"), libc::EINVAL).contains("a:b"));
    }

    #[test]
    fn a_pmu_is_detected_by_its_driver() {
        assert!(
            ["cpu", "cpu_core", "armv8_pmuv3_0", "armv8_cortex_a72_pmu"].into_iter().all(is_pmu)
        );
        assert!(!["breakpoint", "software", "tracepoint", "uprobe", "msr"].into_iter().any(is_pmu));
    }
}
