//! Frequency and idle states of the partition's CPUs (Documentation/admin-guide/pm/).

use super::Draft;
use crate::files::Files;
use crate::isolate::machine::MachineSplit;

/// The maximum wake-up time of a CPU of the partition. The first halt state of most machines takes
/// 1 or 2 µs; the next tens.
const WAKE_MICROS: u64 = 2;

fn cpu_directory(cpu: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}")
}

/// Sets full speed. CPUs that share a clock share the setting.
pub(crate) fn set_governor(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    for cpu in machine.rt.iter() {
        let link = format!("{}/cpufreq", cpu_directory(cpu));
        // `../cpufreq/policy3`: one path per policy, from any of its CPUs.
        let policy = files
            .read_link(&link)
            .ok()
            .and_then(|target| target.rsplit('/').next().map(str::to_owned));
        let directory =
            policy.map_or(link, |policy| format!("/sys/devices/system/cpu/cpufreq/{policy}"));
        let path = format!("{directory}/scaling_governor");
        if draft.writes.iter().any(|(_, write)| write.path == path) {
            continue;
        }
        let known_governors =
            files.read(&format!("{directory}/scaling_available_governors")).unwrap_or_default();
        if !files.exists(&path) {
            draft.skipped.push(format!("CPU {cpu} has no frequency governor"));
        } else if known_governors.split_whitespace().any(|governor| governor == "performance") {
            draft.request_value(files, &path, "performance");
        } else {
            draft.skipped.push(format!(
                "CPU {cpu} has no governor `performance`, only: {}",
                known_governors.trim()
            ));
        }
    }
    Ok(())
}

/// Disables idle states with a long exit latency.
pub fn idle_states(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    for cpu in machine.rt.iter() {
        let directory = format!("{}/cpuidle", cpu_directory(cpu));
        let Ok(states) = files.list(&directory) else {
            draft.skipped.push(format!("CPU {cpu} has no idle states to choose from"));
            continue;
        };
        for state in states.iter().filter(|name| name.starts_with("state")) {
            let read = |file: &str| files.read_trimmed(&format!("{directory}/{state}/{file}"));
            let slow = read("latency")
                .is_ok_and(|latency| latency.parse().is_ok_and(|us: u64| us > WAKE_MICROS));
            if slow {
                draft.request_value(files, &format!("{directory}/{state}/disable"), "1");
            }
        }
    }
    Ok(())
}

/// Requests the same from drivers without states to disable. `0` is no request; `n/a` is the
/// strictest.
pub(crate) fn resume_latency(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    for cpu in machine.rt.iter() {
        let path = format!("{}/power/pm_qos_resume_latency_us", cpu_directory(cpu));
        let strict = |now: String| {
            now == "n/a" || now.parse().is_ok_and(|us: u64| (1..=WAKE_MICROS).contains(&us))
        };
        if !files.read_trimmed(&path).is_ok_and(strict) {
            draft.request_value(files, &path, &WAKE_MICROS.to_string());
        }
    }
    Ok(())
}
