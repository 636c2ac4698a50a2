//! Names of interrupts, system calls, devices and idle states on this machine.

use punctual_core::Nanos;
use punctual_core::entry::SOFTIRQS;
use punctual_core::event::Names;
use std::collections::BTreeMap;
use std::fs;

/// Adds everything except tasks, functions and points. Numbers without a readable name are kept.
pub(crate) fn name_machine(names: &mut Names) {
    names.syscalls = syscall_names();
    names.softirqs = (0..).zip(SOFTIRQS).map(|(vector, name)| (vector, name.to_owned())).collect();
    names.vectors = VECTORS.iter().map(|(vector, name)| (*vector, (*name).to_owned())).collect();
    names.irqs = parse_interrupts(&fs::read_to_string("/proc/interrupts").unwrap_or_default());
    names.devices = parse_devices(&fs::read_to_string("/proc/partitions").unwrap_or_default());
    names.idle_states = idle_states("name").collect();
    let latency = |text: String| text.parse::<i64>().ok().map(Nanos::from_micros);
    names.idle_latencies =
        idle_states("latency").filter_map(|(state, text)| Some((state, latency(text)?))).collect();
}

/// The names of system calls of this architecture, by number.
pub fn syscall_names() -> BTreeMap<u32, String> {
    let name =
        |call: syscalls::Sysno| Some((u32::try_from(call.id()).ok()?, call.name().to_owned()));
    syscalls::Sysno::iter().filter_map(name).collect()
}

/// The system call of this name on this architecture.
pub fn syscall_number(name: &str) -> Option<u32> {
    name.parse::<syscalls::Sysno>().ok().and_then(|call| u32::try_from(call.id()).ok())
}

/// arch/x86/include/asm/irq_vectors.h; other architectures have no such tracepoints.
const VECTORS: [(u8, &str); 11] = [
    (0xec, "local_timer"),
    (0xf4, "deferred_error_apic"),
    (0xf6, "irq_work"),
    (0xf7, "x86_platform_ipi"),
    (0xf9, "threshold_apic"),
    (0xfa, "thermal_apic"),
    (0xfb, "call_function_single"),
    (0xfc, "call_function"),
    (0xfd, "reschedule"),
    (0xfe, "error_apic"),
    (0xff, "spurious_apic"),
];

/// ` 24:  1  0  PCI-MSIX-0000:00:01.0  0-edge  virtio0-config`: the handlers follow the counts, the
/// chip and the kind.
fn parse_interrupts(text: &str) -> BTreeMap<u32, String> {
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    let irq = |line: &str| {
        let (number, rest) = line.trim_start().split_once(':')?;
        let number = number.parse().ok()?;
        let mut words = rest.split_whitespace().skip(cpus);
        let _chip = words.next()?;
        let rest: Vec<&str> = words.collect();
        // `0-edge`, `2-edge timer`, or on arm64 `27 Level arch_timer`.
        let kind = rest.iter().position(|word| {
            let word = word.to_ascii_lowercase();
            word.ends_with("edge")
                || word.ends_with("level")
                || word.ends_with("fasteoi")
                || word.ends_with("none")
        });
        let handlers = rest.get(kind.map_or(0, |kind| kind + 1)..).unwrap_or_default().join(" ");
        Some((number, if handlers.is_empty() { rest.join(" ") } else { handlers }))
    };
    lines.filter_map(irq).collect()
}

/// `/proc/partitions`: major, minor, blocks, name; the number is the kernel's dev_t (20 bits of
/// minor).
fn parse_devices(text: &str) -> BTreeMap<u32, String> {
    let device = |line: &str| {
        let mut words = line.split_whitespace();
        let (major, minor): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((major << 20 | minor & 0xf_ffff, words.nth(1)?.to_owned()))
    };
    text.lines().filter_map(device).collect()
}

/// The idle states of CPU 0 (Documentation/ABI/testing/sysfs-devices-system-cpu): all CPUs of one
/// kind have the same.
fn idle_states(file: &str) -> impl Iterator<Item = (u32, String)> {
    (0..32).map_while(move |state: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/{file}");
        Some((state, fs::read_to_string(path).ok()?.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_named_by_their_handlers() {
        let text = "           CPU0       CPU1\n  0:  5  0  IO-APIC   2-edge      timer\n 24:  0  \
                    9  PCI-MSIX-0000:00:01.0   0-edge      virtio0-config\n 11:  5 6  GICv3  27 \
                    Level     arch_timer\nNMI:  0  0  Non-maskable interrupts\n";
        let names = parse_interrupts(text);
        assert_eq!(names[&0], "timer");
        assert_eq!(names[&24], "virtio0-config");
        assert_eq!(names[&11], "arch_timer");
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn block_devices_are_named_by_their_device_number() {
        let names = parse_devices(
            "major minor  #blocks  name\n\n 254        0   10485760 vda\n 254        1   10485759 \
             vda1\n",
        );
        assert_eq!(names[&(254 << 20 | 1)], "vda1");
    }

    #[test]
    fn system_calls_are_named() {
        let mut names = Names::default();
        name_machine(&mut names);
        assert_eq!(names.syscall_name(libc::SYS_getpid as u32), "getpid");
        assert_eq!(names.softirq_name(3), "NET_RX");
    }
}
