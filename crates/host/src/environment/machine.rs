//! The machine under the kernel: processor, clock source, hypervisor, memory.

use super::read::{clip_text, read_text};
use crate::files::Files;
use punctual_core::{Fact, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemorySize(pub u64);

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1)];
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| self.0 >= *size).unwrap_or(("bytes", 1));
        f.pad(&format!("{} {unit}", self.0 / size))
    }
}

/// The processor and the platform below the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// `AMD EPYC …`; on arm64, if /proc/cpuinfo has no name, implementer and part; on riscv64
    /// `sifive,u74-mc`, or the extensions.
    pub cpu_model: Fact<String>,
    /// `GenuineIntel`, `AuthenticAMD`.
    pub vendor: Fact<String>,
    /// The revision of the processor's microcode; x86 only.
    pub microcode: Fact<String>,
    /// The board: from DMI or from the device tree.
    pub board: Fact<String>,
    /// The properties of the processor's time stamp counter; x86 only.
    pub tsc: Fact<TscFlags>,
    /// Whether this is a virtual machine.
    pub hypervisor: Fact<Hypervisor>,
}

/// Flags of /proc/cpuinfo (arch/x86/include/asm/cpufeatures.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TscFlags {
    /// Ticks at one rate at any CPU frequency.
    pub constant: bool,
    /// Continues in deep idle states.
    pub nonstop: bool,
    /// Can raise the timer's interrupt at a given count.
    pub deadline_timer: bool,
    /// Its rate is reported by hardware or hypervisor, not measured.
    pub known_frequency: bool,
}

/// A hypervisor, or its absence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hypervisor {
    /// Whether the kernel is a guest.
    pub present: bool,
    /// The name of the hypervisor, if known.
    pub name: Option<String>,
    /// The file and the words that show it.
    pub evidence: String,
}

impl Machine {
    pub(super) fn read(files: &dyn Files) -> Machine {
        let path = "/proc/cpuinfo";
        let cpuinfo: Fact<String> = files.read(path).into();
        let field = |names: &[&str]| match &cpuinfo {
            Fact::Known(text) => match names.iter().find_map(|name| first_field(text, name)) {
                Some(value) => Fact::Known(value),
                None => Fact::Unavailable(format!("{path} has no line `{}`", names.join("` or `"))),
            },
            other => other.clone(),
        };
        let flags = field(&["flags"]);
        Machine {
            cpu_model: cpu_model(field),
            vendor: field(&["vendor_id"]),
            microcode: field(&["microcode"]),
            board: read_board(files),
            hypervisor: detect_hypervisor(files, &flags),
            tsc: flags.map(|flags| tsc_flags(&flags)),
        }
    }
}

/// The value of the first line `name : value`.
fn first_field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, v)| clip_text(v.trim()))
}

/// arm64 has two numbers instead of a name (arch/arm64/kernel/cpuinfo.c), riscv64 its extensions
/// and, with a device tree, the core's name (arch/riscv/kernel/cpu.c).
fn cpu_model(field: impl Fn(&[&str]) -> Fact<String>) -> Fact<String> {
    let name = field(&["model name"]);
    match (&name, field(&["CPU implementer"]), field(&["CPU part"]), field(&["uarch", "isa"])) {
        (Fact::Unavailable(_), Fact::Known(implementer), Fact::Known(part), _) => {
            Fact::Known(format!("implementer {implementer}, part {part}"))
        }
        (Fact::Unavailable(_), _, _, Fact::Known(core)) => Fact::Known(core),
        _ => name,
    }
}

fn tsc_flags(flags: &str) -> TscFlags {
    let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
    TscFlags {
        constant: has("constant_tsc"),
        nonstop: has("nonstop_tsc"),
        deadline_timer: has("tsc_deadline_timer"),
        known_frequency: has("tsc_known_freq"),
    }
}

fn read_board(files: &dyn Files) -> Fact<String> {
    let vendor = read_text(files, "/sys/class/dmi/id/sys_vendor");
    let product = read_text(files, "/sys/class/dmi/id/product_name");
    match (vendor, product) {
        (Fact::Known(vendor), Fact::Known(product)) => Fact::Known(format!("{vendor} {product}")),
        (_, Fact::Known(product)) => Fact::Known(product),
        (_, Fact::Unavailable(no_dmi)) => match read_text(files, "/proc/device-tree/model") {
            Fact::Unavailable(no_tree) => Fact::Unavailable(format!("{no_dmi}; {no_tree}")),
            model => model,
        },
        (_, Fact::NotAsked) => Fact::NotAsked,
    }
}

/// DMI vendors and products of hypervisors (as in systemd's src/basic/virt.c).
const VIRTUAL_BOARDS: [&str; 12] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "Xen",
    "Bochs",
    "Parallels",
    "BHYVE",
    "Hyper-V",
    "Virtual Machine",
    "Google Compute Engine",
    "Amazon EC2",
];

fn detect_hypervisor(files: &dyn Files, flags: &Fact<String>) -> Fact<Hypervisor> {
    let name = hypervisor_name(files);
    // x86: CPUID leaf 1, ECX bit 31 shows it.
    if let Fact::Known(flags) = flags {
        let present = flags.split_whitespace().any(|flag| flag == "hypervisor");
        let evidence = format!(
            "/proc/cpuinfo {} the flag `hypervisor`",
            if present { "has" } else { "lacks" }
        );
        return Fact::Known(Hypervisor {
            present,
            name: name.filter(|_| present).map(|(name, _)| name),
            evidence,
        });
    }
    if let Some((name, evidence)) = name {
        return Fact::Known(Hypervisor { present: true, name: Some(name), evidence });
    }
    // Elsewhere only the absence of every sign counts, and only if firmware described the machine
    // at all.
    match read_text(files, "/proc/device-tree/model") {
        Fact::Known(model) => Fact::Known(Hypervisor {
            present: false,
            name: None,
            evidence: format!(
                "/proc/device-tree has no node `hypervisor` and /proc/device-tree/model is \
                 `{model}`"
            ),
        }),
        _ => Fact::Unavailable(
            "neither /proc/cpuinfo, DMI nor a device tree shows whether this is a guest".into(),
        ),
    }
}

/// The hypervisor's name and its source.
fn hypervisor_name(files: &dyn Files) -> Option<(String, String)> {
    let found = |path: &str, value: &str| (value.to_owned(), format!("{path} is `{value}`"));
    if let Fact::Known(value) = read_text(files, "/sys/hypervisor/type") {
        return Some(found("/sys/hypervisor/type", &value));
    }
    // Documentation/devicetree/bindings/arm/xen.txt; QEMU's -M virt calls itself linux,dummy-virt
    // on arm64 and riscv-virtio on riscv64 (hw/arm/virt.c, hw/riscv/virt.c).
    if let Fact::Known(value) = read_text(files, "/proc/device-tree/hypervisor/compatible") {
        return Some(found("/proc/device-tree/hypervisor/compatible", &value));
    }
    if let Fact::Known(value) = read_text(files, "/proc/device-tree/compatible")
        && ["linux,dummy-virt", "riscv-virtio"].iter().any(|machine| value.contains(machine))
    {
        return Some(found("/proc/device-tree/compatible", &value));
    }
    // A guest's clock sources reveal its hypervisor (arch/x86/kernel/kvmclock.c,
    // drivers/clocksource/hyperv_timer.c).
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    if let Fact::Known(value) = read_text(files, clocks) {
        let guests = [("kvm-clock", "KVM"), ("hyperv_clocksource", "Hyper-V"), ("xen", "Xen")];
        if let Some((clock, name)) = guests.iter().find(|(clock, _)| value.contains(clock)) {
            return Some(((*name).to_owned(), format!("{clocks} has {clock}")));
        }
    }
    ["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"].into_iter().find_map(
        |path| {
            let value = read_text(files, path).known_value()?.clone();
            VIRTUAL_BOARDS.iter().any(|board| value.contains(board)).then(|| found(path, &value))
        },
    )
}

/// The kernel's clock source (/sys/devices/system/clocksource/clocksource0).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockSource {
    pub current: Fact<String>,
    /// The available ones, the best first.
    pub available: Fact<Vec<String>>,
}

impl ClockSource {
    pub(super) fn read(files: &dyn Files) -> ClockSource {
        let path = |name: &str| format!("/sys/devices/system/clocksource/clocksource0/{name}");
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        ClockSource {
            current: read_text(files, &path("current_clocksource")),
            available: read_text(files, &path("available_clocksource")).map(words),
        }
    }
}

/// The part of each period that all real-time tasks together may use
/// (Documentation/scheduler/sched-rt-group.rst).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RtThrottling {
    pub period: Nanos,
    /// sched_rt_runtime_us; `None` if it is -1, without limit.
    pub runtime: Option<Nanos>,
}

impl RtThrottling {
    pub(super) fn read(files: &dyn Files) -> Fact<RtThrottling> {
        let micros = |path: &str| super::read_number::<i64>(files, path);
        let period = micros("/proc/sys/kernel/sched_rt_period_us");
        let runtime = micros("/proc/sys/kernel/sched_rt_runtime_us");
        let nanos = |us: i64| Nanos(us.saturating_mul(1_000));
        match (period, runtime) {
            (Fact::Known(period), Fact::Known(runtime)) => Fact::Known(RtThrottling {
                period: nanos(period),
                runtime: (runtime >= 0).then(|| nanos(runtime)),
            }),
            (Fact::Unavailable(why), _) | (_, Fact::Unavailable(why)) => Fact::Unavailable(why),
            _ => Fact::NotAsked,
        }
    }
}

/// /proc/meminfo.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineMemory {
    /// The kernel's total memory.
    pub total: Fact<MemorySize>,
    /// The memory available to programs without swapping.
    pub available: Fact<MemorySize>,
    /// Swap space in use by the system.
    pub swap_total: Fact<MemorySize>,
    pub swap_free: Fact<MemorySize>,
}

impl MachineMemory {
    pub(super) fn read(files: &dyn Files) -> MachineMemory {
        let path = "/proc/meminfo";
        let meminfo: Fact<String> = files.read(path).into();
        let field = |name: &str| match &meminfo {
            Fact::Known(text) => {
                let kib = first_field(text, name)
                    .and_then(|v| v.strip_suffix(" kB")?.trim().parse::<u64>().ok());
                kib.and_then(|kib| kib.checked_mul(1024))
                    .map(|b| Fact::Known(MemorySize(b)))
                    .unwrap_or_else(|| {
                        Fact::Unavailable(format!("{path} has no line `{name}: … kB`"))
                    })
            }
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => Fact::NotAsked,
        };
        MachineMemory {
            total: field("MemTotal"),
            available: field("MemAvailable"),
            swap_total: field("SwapTotal"),
            swap_free: field("SwapFree"),
        }
    }
}
