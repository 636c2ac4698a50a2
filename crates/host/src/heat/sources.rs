//! The files of the sensors: thermal zones and cooling devices (Documentation/ABI/testing/
//! sysfs-class-thermal), cpufreq (admin-guide/pm/cpufreq.rst), alarms of hwmon drivers, and the
//! counters of x86 (Documentation/ABI/testing/sysfs-devices-system-cpu).

use crate::environment::{read_number, read_text};
use crate::files::Files;
use punctual_core::heat::UNDER_VOLTAGE;
use punctual_core::{CpuSet, SensorKind};
use std::collections::BTreeSet;

/// A file with a number.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) kind: SensorKind,
    pub(super) name: String,
    pub(super) path: String,
    /// Whether reading it can disturb a measured CPU.
    pub(super) disturbs: bool,
}

impl Source {
    fn new(kind: SensorKind, name: impl Into<String>, path: impl Into<String>) -> Source {
        Source { kind, name: name.into(), path: path.into(), disturbs: false }
    }

    /// Its number; `None` if it cannot be read now (zones of a Jetson return EAGAIN while their
    /// part is off).
    pub(super) fn read(&self, files: &dyn Files) -> Option<i64> {
        read_number(files, &self.path).known_value().copied()
    }
}

/// All of them; about all CPUs if `cpus` is empty.
pub(super) fn find_sources(files: &dyn Files, cpus: &CpuSet) -> Vec<Source> {
    let mut all_sources = find_zones(files, cpus);
    all_sources.extend(find_frequencies(files, cpus));
    all_sources.extend(find_cooling(files));
    all_sources.extend(find_alarms(files));
    all_sources.extend(find_counters(files, cpus));
    all_sources
}

/// The entries of a directory that are this word and a number, in the order of the numbers.
fn numbered_entries(files: &dyn Files, directory: &str, word: &str) -> Vec<(u32, String)> {
    let names = files.list(directory).unwrap_or_default();
    let number = |name: &String| {
        Some((name.strip_prefix(word)?.parse().ok()?, format!("{directory}/{name}")))
    };
    let mut entries: Vec<(u32, String)> = names.iter().filter_map(number).collect();
    entries.sort_unstable();
    entries
}

fn known_text(files: &dyn Files, path: &str) -> Option<String> {
    read_text(files, path).known_value().cloned()
}

/// The zones have no fixed numbers: their type is their name.
fn find_zones(files: &dyn Files, cpus: &CpuSet) -> Vec<Source> {
    let leads = cpus.iter().any(|cpu| leads_its_package(files, cpu));
    let zone = |(_, directory): (u32, String)| {
        let name = known_text(files, &format!("{directory}/type"))?;
        // A reading asks the card's firmware, and tells nothing about CPUs.
        if name.starts_with("iwlwifi") {
            return None;
        }
        // Evaluating ACPI's method can enter the firmware; the driver of packages reads a register
        // on one of their CPUs, usually the first (drivers/thermal/intel/x86_pkg_temp_thermal.c).
        let disturbs = name.starts_with("acpi") || name == "x86_pkg_temp" && leads;
        let path = format!("{directory}/temp");
        Some(Source { disturbs, ..Source::new(SensorKind::Temperature, name, path) })
    };
    numbered_entries(files, "/sys/class/thermal", "thermal_zone")
        .into_iter()
        .filter_map(zone)
        .collect()
}

fn leads_its_package(files: &dyn Files, cpu: usize) -> bool {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/package_cpus_list");
    let package_cpus = known_text(files, &path).and_then(|list| list.parse::<CpuSet>().ok());
    package_cpus.is_some_and(|all| all.first_cpu() == Some(cpu))
}

fn find_frequencies(files: &dyn Files, cpus: &CpuSet) -> Vec<Source> {
    let interrupts = reads_by_interrupts(files);
    let mut frequency_sources = Vec::new();
    for (_, directory) in numbered_entries(files, "/sys/devices/system/cpu/cpufreq", "policy") {
        let list = known_text(files, &format!("{directory}/affected_cpus")).unwrap_or_default();
        let list = list.split_whitespace().collect::<Vec<_>>().join(",");
        let Ok(of) = list.parse::<CpuSet>() else { continue };
        if of.is_empty() || !cpus.is_empty() && of.intersection(cpus).is_empty() {
            continue;
        }
        let source =
            |kind, file| Source::new(kind, format!("CPU {of}"), format!("{directory}/{file}"));
        let current = source(SensorKind::Frequency, "scaling_cur_freq");
        frequency_sources.push(Source { disturbs: interrupts, ..current });
        frequency_sources.push(source(SensorKind::FrequencyLimit, "scaling_max_freq"));
    }
    frequency_sources
}

/// Before Linux 5.18, reading the frequency of an x86 CPU interrupted it (commit "x86/aperfmperf:
/// Replace arch_freq_get_on_cpu()"); later kernels remember what the tick saw.
fn reads_by_interrupts(files: &dyn Files) -> bool {
    let is_x86 = |driver: String| {
        ["intel", "acpi", "amd", "pcc", "powernow"].iter().any(|word| driver.starts_with(word))
    };
    let policies = numbered_entries(files, "/sys/devices/system/cpu/cpufreq", "policy");
    let mut drivers = policies
        .iter()
        .filter_map(|(_, directory)| known_text(files, &format!("{directory}/scaling_driver")));
    let release = known_text(files, "/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version < (5, 18) && drivers.any(is_x86)
}

/// What slows CPUs to cool them: `cpufreq-cpu0` (`thermal-cpufreq-0` before Linux 5.12),
/// `idle-cpu0`, ACPI's `Processor`; a fan slows nothing.
fn find_cooling(files: &dyn Files) -> Vec<Source> {
    let slows = |name: &str| {
        let starts = ["cpufreq-", "thermal-cpufreq-", "idle-", "thermal-idle-"];
        starts.iter().any(|start| name.starts_with(start))
            || ["Processor", "intel_powerclamp"].contains(&name)
            || name.ends_with("throttle-alert")
    };
    let device = |(_, directory): (u32, String)| {
        let name = known_text(files, &format!("{directory}/type")).filter(|name| slows(name))?;
        Some(Source::new(SensorKind::Cooling, name, format!("{directory}/cur_state")))
    };
    numbered_entries(files, "/sys/class/thermal", "cooling_device")
        .into_iter()
        .filter_map(device)
        .collect()
}

/// Alarms of the supply. The driver of the Raspberry Pi polls the firmware every two seconds and
/// clears what it saw (drivers/hwmon/raspberrypi-hwmon.c); those of the Jetson Orin count
/// (`soctherm_oc`, tegra234-oc-event): its first is the supply's voltage.
fn find_alarms(files: &dyn Files) -> Vec<Source> {
    let mut alarm_sources = Vec::new();
    for (_, directory) in numbered_entries(files, "/sys/class/hwmon", "hwmon") {
        let mut add = |kind, name: String, file: String| {
            let path = format!("{directory}/{file}");
            alarm_sources.extend(files.exists(&path).then(|| Source::new(kind, name, path)));
        };
        match known_text(files, &format!("{directory}/name")).as_deref() {
            Some("rpi_volt") => {
                add(SensorKind::Alarm, UNDER_VOLTAGE.to_owned(), "in0_lcrit_alarm".to_owned());
            }
            Some("soctherm_oc") => {
                for number in 1..=3 {
                    let alarm_kind = if number == 1 { UNDER_VOLTAGE } else { "over-current" };
                    let name = format!("{alarm_kind} (oc{number})");
                    add(SensorKind::Events, name, format!("oc{number}_event_cnt"));
                }
            }
            Some("ina3221") => {
                for number in 1..=3 {
                    let name = format!("over-current (channel {number})");
                    add(SensorKind::Alarm, name, format!("curr{number}_crit_alarm"));
                }
            }
            _ => {}
        }
    }
    alarm_sources
}

/// The counters of Intel processors: of each core, and once of each package.
fn find_counters(files: &dyn Files, cpus: &CpuSet) -> Vec<Source> {
    let cpus = match cpus.is_empty() {
        true => numbered_entries(files, "/sys/devices/system/cpu", "cpu"),
        false => cpus
            .iter()
            .map(|cpu| (cpu as u32, format!("/sys/devices/system/cpu/cpu{cpu}")))
            .collect(),
    };
    let (mut all, mut packages) = (Vec::new(), BTreeSet::new());
    for (cpu, directory) in cpus {
        let mut add = |name: String, file: &str| {
            let path = format!("{directory}/thermal_throttle/{file}");
            let is_there = files.exists(&path);
            all.extend(is_there.then(|| Source::new(SensorKind::Events, name, path)));
        };
        add(format!("throttling of CPU {cpu}"), "core_throttle_count");
        let package = known_text(files, &format!("{directory}/topology/physical_package_id"));
        let package = package.unwrap_or_default();
        if packages.insert(package.clone()) {
            add(format!("throttling of package {package}"), "package_throttle_count");
        }
    }
    all
}
