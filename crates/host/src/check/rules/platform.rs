//! Firmware, processor, hypervisor.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, require_known};
use crate::check::outcome::*;
use punctual_core::Nanos;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "hypervisor",
        group: RuleGroup::Platform,
        title: "the kernel runs on bare metal",
        why: "A hypervisor can take the CPU at any time and for any duration, and the guest does \
              not see it.",
        source: "Documentation/virt/kvm/x86/cpuid.rst",
        evaluate: check_hypervisor,
    },
    Rule {
        id: "steal-time",
        group: RuleGroup::Platform,
        title: "there is no steal time",
        why: "Steal time is latency that no setting of the guest removes.",
        source: "proc_stat(5)",
        evaluate: steal_time,
    },
    Rule {
        id: "smi-count",
        group: RuleGroup::Platform,
        title: "no system management interrupt (SMI) has occurred",
        why: "A system management interrupt stops all CPUs for up to milliseconds, and the kernel \
              cannot see it.",
        source: "Documentation/trace/hwlat_detector.rst",
        evaluate: smi_count,
    },
    Rule {
        id: "microcode",
        group: RuleGroup::Platform,
        title: "the processor has the microcode that its mitigations need",
        why: "Without it, the mitigation has its cost, but no effect.",
        source: "Documentation/arch/x86/microcode.rst",
        evaluate: check_microcode,
    },
    Rule {
        id: "mitigations",
        group: RuleGroup::Platform,
        title: "no mitigation makes entering the kernel expensive",
        why: "Some mitigations flush buffers or switch page tables at every system call and \
              interrupt.",
        source: "Documentation/admin-guide/hw-vuln/index.rst",
        evaluate: check_mitigations,
    },
    Rule {
        id: "thermal-throttling",
        group: RuleGroup::Platform,
        title: "the processor was not thermally throttled",
        why: "A hot processor lowers its frequency by itself, regardless of the governor.",
        source: "Documentation/ABI/testing/sysfs-devices-system-cpu, thermal_throttle",
        evaluate: thermal_throttling,
    },
];

fn check_hypervisor(ctx: &Context) -> Conclusion {
    let hypervisor = require_known(&ctx.environment.machine.hypervisor)?;
    let name = hypervisor.name.as_deref().unwrap_or("an unknown hypervisor");
    match hypervisor.present {
        false => ok_outcome("no hypervisor was detected", &hypervisor.evidence),
        true => warning_outcome(format!("the kernel is a guest of {name}"), &hypervisor.evidence)
            .with_fix(Fix::by_hand(
                "measure on the hardware; in a guest compare settings, do not trust maxima",
            )),
    }
    .conclude()
}

fn steal_time(ctx: &Context) -> Conclusion {
    let steal = require_known(&ctx.environment.before.steal)?;
    let ours = || steal.iter().filter(|(cpu, _)| ctx.cpus.contains(**cpu));
    if ours().next().is_none() {
        return unknown_outcome(format!("/proc/stat has no line for the CPUs {}", ctx.cpus))
            .conclude();
    }
    let total = ours().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
    let files = format!("/proc/stat, CPUs {}, since boot", ctx.cpus);
    match total.ns() > 0 {
        false => ok_outcome("no steal time since boot", files),
        true => warning_outcome(
            format!("{total} of steal time since boot"),
            format!("{files}: {total}"),
        )
        .with_fix(Fix::by_hand("give the guest CPUs of its own on the host")),
    }
    .conclude()
}

fn smi_count(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let vendor = require_known(&ctx.environment.machine.vendor)?;
    if vendor != "GenuineIntel" {
        return not_applicable(
            "only Intel processors count them",
            format_evidence("/proc/cpuinfo", vendor),
        )
        .conclude();
    }
    let counts = ctx
        .unless_guest(require_known(&ctx.environment.before.smi), "the firmware")
        .map_err(|unread| match unread.applies {
            true => unread.with_fix(Fix::by_hand("modprobe msr, and run as root")),
            false => unread,
        })?;
    let highest_count = counts.values().max().copied().unwrap_or_default();
    match highest_count {
        0 => ok_outcome("none since power-on", format_evidence("/dev/cpu/*/msr register 0x34", 0)),
        n => advice_outcome(
            format!("up to {n} per CPU since power-on; compare before and after a run"),
            format_evidence("/dev/cpu/*/msr register 0x34", n),
        )
        .with_fix(Fix::by_hand(
            "switch off USB legacy support, power management and logging in the firmware's setup",
        )),
    }
    .conclude()
}

/// The kernel's report on each vulnerability of the processor.
fn read_weaknesses(ctx: &Context) -> Result<Vec<(String, String)>, CheckOutcome> {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let names = ctx.files().list(directory).map_err(|why| unknown_outcome(why.to_string()))?;
    names
        .into_iter()
        .take(256)
        .map(|name| Ok((name.clone(), ctx.read(&format!("{directory}/{name}"))?)))
        .collect()
}

fn check_microcode(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let revision = require_known(&ctx.environment.machine.microcode)?;
    let without_microcode: Vec<String> = read_weaknesses(ctx)?
        .into_iter()
        .filter(|(_, text)| text.to_lowercase().contains("no microcode"))
        .map(|(name, _)| name)
        .collect();
    if without_microcode.is_empty() {
        return ok_outcome(
            "no mitigation lacks its microcode",
            format_evidence("/proc/cpuinfo microcode", revision),
        )
        .conclude();
    }
    let evidence = format!(
        "/sys/devices/system/cpu/vulnerabilities: {}; {}",
        join_some(&without_microcode),
        format_evidence("/proc/cpuinfo microcode", revision)
    );
    advice_outcome(
        format!("{} mitigation(s) need newer microcode", without_microcode.len()),
        evidence,
    )
    .with_fix(Fix::by_hand(
        "apt install intel-microcode or amd64-microcode, and reboot (in a guest: on the host)",
    ))
    .conclude()
}

/// The kernel's words for mitigations that cost at each entry (arch/x86/kernel/cpu/bugs.c). Plain
/// IBRS is written each time, unlike the enhanced one.
const EXPENSIVE: [&str; 6] = [
    "PTI",
    "Clear CPU buffers",
    "IBRS",
    "IBPB: always-on",
    "IBPB on entry",
    "untrained return thunk",
];

fn check_mitigations(ctx: &Context) -> Conclusion {
    let weaknesses = read_weaknesses(ctx)?;
    let costs = |text: &str| {
        let parts = text.strip_prefix("Mitigation: ").unwrap_or_default().split(';');
        parts.map(str::trim).any(|part| EXPENSIVE.contains(&part))
    };
    let expensive: Vec<String> = weaknesses
        .iter()
        .filter(|(_, text)| costs(text))
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    if expensive.is_empty() {
        return ok_outcome(
            "no mitigation slows down kernel entry much",
            format!("{directory}: {} files", weaknesses.len()),
        )
        .conclude();
    }
    advice_outcome(
        format!("{} mitigation(s) slow down each entry to the kernel", expensive.len()),
        format!("{directory}: {}", join_some(&expensive)),
    )
    .with_fix(Fix::by_hand(
        "only where all code on the machine is trusted: boot with `mitigations=off`",
    ))
    .conclude()
}

fn thermal_throttling(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let vendor = require_known(&ctx.environment.machine.vendor)?;
    if vendor != "GenuineIntel" {
        return not_applicable(
            "only Intel processors count it",
            format_evidence("/proc/cpuinfo", vendor),
        )
        .conclude();
    }
    let mut highest_count = 0;
    for cpu in ctx.cpus.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
        let count = ctx.unless_guest(ctx.read(&path), "the temperature")?;
        highest_count = highest_count.max(crate::check::context::as_number(&path, &count)?);
    }
    let files = "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count";
    match highest_count {
        0 => ok_outcome("never since boot", format_evidence(files, 0)),
        n => warning_outcome(
            format!("up to {n} times per CPU since boot"),
            format_evidence(files, n),
        )
        .with_fix(Fix::by_hand("improve the cooling")),
    }
    .conclude()
}
