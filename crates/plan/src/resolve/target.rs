//! The target: checks that the keys belong to its kind, and has the defaults and limits of virtual
//! machines.

use super::{place_or, value_or};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::section::FileSection;
use crate::target::{
    Acceleration, Architecture, Board, Device, KernelChoice, SshBoot, SshPlan, TargetKind,
    TargetPlan, TargetSpec, VmPlan,
};
use crate::text::{At, Span, list_items};
use crate::words::{ByteSize, SshAddress, Word};
use std::path::PathBuf;

const VM_KEYS: [&str; 12] = [
    "kernel", "modules", "cmdline", "cpus", "memory", "accel", "arch", "machine", "devices",
    "drivers", "timeout", "binary",
];
const SSH_KEYS: [&str; 12] = [
    "host",
    "hosts",
    "user",
    "port",
    "identity",
    "known_hosts",
    "binary",
    "kernel",
    "cmdline",
    "power_off",
    "power_on",
    "boot_time",
];

/// Why a virtual machine in virtual time has one CPU.
const ONE_CPU: &str = "virtual time needs 1 CPU: several take turns in one thread of QEMU, and \
                       under load their latencies are the length of those turns, not the kernel's";
const GIB: ByteSize = ByteSize(1 << 30);

/// The resolved target; an error is noted, and the nearest valid value is used.
pub(crate) fn resolve_target(spec: Option<&TargetSpec>, problems: &mut Problems) -> TargetPlan {
    let Some((spec, kind)) = spec.and_then(|spec| Some((spec, spec.kind?.value))) else {
        return TargetPlan::Host;
    };
    let known_keys: &[&str] = match kind {
        TargetKind::Host => &[],
        TargetKind::Vm => &VM_KEYS,
        TargetKind::Ssh => &SSH_KEYS,
    };
    let places = spec.key_places().into_iter().filter(|(key, _)| *key != "kind");
    for (key, span) in places.filter(|(key, _)| !known_keys.contains(key)) {
        let message = format!("`{key}` does not apply to a target of the kind `{}`", kind.word());
        let other_kinds =
            [TargetKind::Vm, TargetKind::Ssh].into_iter().zip([&VM_KEYS[..], &SSH_KEYS]);
        let owner = other_kinds
            .filter(|(_, keys)| keys.contains(&key))
            .map(|(kind, _)| format!("`{}`", kind.word()));
        let help = format!(
            "leave it out; it belongs to the kind {}",
            owner.collect::<Vec<_>>().join(" or ")
        );
        report_conflict(problems, span, message, &help);
    }
    match kind {
        TargetKind::Host => TargetPlan::Host,
        TargetKind::Vm => TargetPlan::Vm(resolve_vm(spec, problems)),
        TargetKind::Ssh => TargetPlan::Ssh(resolve_ssh(spec, problems)),
    }
}

fn report_conflict(problems: &mut Problems, span: Span, message: impl Into<String>, help: &str) {
    problems.push(Problem::error(ProblemKind::Combination, Some(span), message).with_help(help));
}

fn resolve_vm(spec: &TargetSpec, problems: &mut Problems) -> VmPlan {
    let board = spec.machine.map(|at| at.value);
    let arch = value_or(
        &spec.arch,
        if matches!(board, None | Some(Board::Pc)) {
            Architecture::X86_64
        } else {
            Architecture::Aarch64
        },
    );
    let usual = match arch {
        Architecture::X86_64 => Board::Pc,
        Architecture::Aarch64 => Board::Virt,
    };
    let cpus = spec.cpus();
    let several = if cpus == 1 { Acceleration::VirtualTime } else { Acceleration::Tcg };
    let mut devices: Vec<Device> = list_items(&spec.devices).iter().map(|at| at.value).collect();
    devices.sort();
    devices.dedup();
    let plan = VmPlan {
        kernel: resolve_kernel(spec, problems),
        cmdline: spec.cmdline(),
        cpus,
        memory: spec.memory(),
        accel: value_or(&spec.accel, several),
        arch,
        machine: board.unwrap_or(usual),
        devices,
        drivers: list_items(&spec.drivers).iter().map(|at| PathBuf::from(&at.value)).collect(),
        timeout: spec.timeout.map(|at| at.value),
        binary: spec.binary.as_ref().map(|at| PathBuf::from(&at.value)),
    };
    check_vm(spec, &plan, problems);
    plan
}

fn resolve_kernel(spec: &TargetSpec, problems: &mut Problems) -> KernelChoice {
    let Some(written) = &spec.kernel else {
        report_conflict(
            problems,
            spec.span,
            "a virtual machine needs a kernel",
            "write `kernel = \"6.1-rt\"`, or the path of an image",
        );
        return KernelChoice::Named(String::new());
    };
    if written.value.contains('/') {
        let modules = spec.modules.as_ref().map(|at| PathBuf::from(&at.value));
        return KernelChoice::Image { image: PathBuf::from(&written.value), modules };
    }
    if let Some(modules) = &spec.modules {
        let help = "leave `modules` out, or name the kernel by the path of its image";
        report_conflict(problems, modules.span, "a kernel by name brings its own modules", help);
    }
    KernelChoice::Named(written.value.clone())
}

/// Rejects values that are valid alone but not together.
fn check_vm(spec: &TargetSpec, plan: &VmPlan, problems: &mut Problems) {
    let arm = plan.arch == Architecture::Aarch64;
    if (plan.machine == Board::Pc) == arm {
        let message = format!(
            "a machine `{}` is not of the architecture {}",
            plan.machine.word(),
            plan.arch.word()
        );
        report_conflict(
            problems,
            place_or(&spec.machine, spec.span),
            message,
            "x86_64 has `pc`; aarch64 has `virt` and `raspi3b`",
        );
    }
    if plan.accel == Acceleration::VirtualTime && plan.cpus != 1 {
        let help = "write `cpus = 1`, or `accel = \"tcg\"`, whose latencies are the host's noise";
        report_conflict(problems, place_or(&spec.cpus, spec.span), ONE_CPU, help);
    }
    if plan.machine != Board::Raspi3b {
        return;
    }
    if plan.cpus > 4 {
        report_conflict(
            problems,
            place_or(&spec.cpus, spec.span),
            "a Raspberry Pi 3 has 4 CPUs",
            "write at most `cpus = 4`",
        );
    }
    if plan.memory != GIB {
        report_conflict(
            problems,
            place_or(&spec.memory, spec.span),
            "a Raspberry Pi 3 has 1 GiB of memory",
            "leave `memory` out",
        );
    }
    if plan.accel == Acceleration::Kvm {
        report_conflict(
            problems,
            place_or(&spec.accel, spec.span),
            "QEMU imitates a Raspberry Pi 3 without kvm",
            "choose `virtual-time` or `tcg`",
        );
    }
    if !plan.devices.is_empty() {
        let message = "a Raspberry Pi 3 has no PCI bus for devices";
        report_conflict(
            problems,
            place_or(&spec.devices, spec.span),
            message,
            "leave `devices` out, or choose `machine = \"virt\"`",
        );
    }
}

fn resolve_ssh(spec: &TargetSpec, problems: &mut Problems) -> SshPlan {
    // One that is named, as by `--target` or an axis, is one of the pool's.
    let with_defaults = |at: &At<SshAddress>| SshAddress {
        user: at.value.user.clone().or_else(|| spec.user.as_ref().map(|at| at.value.clone())),
        port: at.value.port.or(spec.port.map(|at| at.value)),
        ..at.value.clone()
    };
    let pool: Vec<SshAddress> = match &spec.host {
        Some(_) => Vec::new(),
        None => list_items(&spec.hosts).iter().map(with_defaults).collect(),
    };
    if let Some(twice) = (1..pool.len()).find(|k| pool[..*k].contains(&pool[*k])) {
        let message = format!("the host {} is named twice", pool[twice]);
        report_conflict(
            problems,
            place_or(&spec.hosts, spec.span),
            message,
            "leave one of them out",
        );
    }
    if spec.host.is_none() && pool.is_empty() {
        report_conflict(
            problems,
            spec.span,
            "a target reached by ssh needs a host",
            "write `host = \"board.local\"`, or several boards as `hosts = [\"a\", \"b\"]`",
        );
    }
    let path = |setting: &crate::text::Setting<String>| {
        setting.as_ref().map(|at| PathBuf::from(&at.value))
    };
    let kernel = spec.kernel.as_ref().map(|at| at.value.clone());
    if let Some(at) = spec.kernel.as_ref().filter(|at| at.value.contains('/')) {
        let help = "write the release of a kernel that is installed there, as `uname -r` prints it";
        report_conflict(problems, at.span, "a kernel of another system is not a path", help);
    }
    let command =
        |setting: &crate::text::Setting<String>| setting.as_ref().map(|at| at.value.clone());
    let (off, on) = (command(&spec.power_off), command(&spec.power_on));
    if off.is_some() && on.is_none() {
        let help = "write the command that gives power again: `power_on = \"…\"`";
        report_conflict(
            problems,
            place_or(&spec.power_off, spec.span),
            "a board would stay without power",
            help,
        );
    }
    let asks = spec.kernel.is_some() || spec.cmdline.is_some();
    let plan = SshPlan {
        power: on.map(|on| (off, on)),
        boot_time: spec.boot_time(),
        boot: asks.then(|| SshBoot { kernel, cmdline: spec.cmdline() }),
        host: value_or(&spec.host, String::new()),
        user: spec.user.as_ref().map(|at| at.value.clone()),
        port: spec.port.map(|at| at.value),
        identity: path(&spec.identity),
        known_hosts: path(&spec.known_hosts),
        binary: path(&spec.binary),
        pool: Vec::new(),
    };
    match pool.first().cloned() {
        Some(first) => SshPlan { pool, ..plan.with_address(first) },
        None => plan,
    }
}
