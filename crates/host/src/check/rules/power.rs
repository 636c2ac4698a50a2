//! Frequency, idle states and other power saving.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, require_known};
use crate::check::outcome::*;
use crate::environment::{CpuInfo, IdleState, KernelCommandLine};
use crate::files::Files;
use punctual_core::{Fact, Nanos};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "governor",
        group: RuleGroup::Power,
        title: "the frequency governor is performance",
        why: "Other governors lower the frequency of an idle CPU, and the first work after idle \
              runs at that frequency.",
        source: "Documentation/admin-guide/pm/cpufreq.rst",
        evaluate: check_governor,
    },
    Rule {
        id: "energy-preference",
        group: RuleGroup::Power,
        title: "the energy-performance preference is performance",
        why: "Processors that select their own frequency use this preference to trade performance \
              for energy.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst",
        evaluate: energy_preference,
    },
    Rule {
        id: "frequency-cap",
        group: RuleGroup::Power,
        title: "the maximum frequency is not limited",
        why: "A limit left by a power profile makes everything slower than the hardware allows.",
        source: "Documentation/admin-guide/pm/cpufreq.rst",
        evaluate: frequency_cap,
    },
    Rule {
        id: "turbo",
        group: RuleGroup::Power,
        title: "turbo is off",
        why: "With turbo, the frequency of a CPU depends on the load of the other CPUs and on the \
              temperature.",
        source: "Documentation/admin-guide/pm/cpufreq.rst, Frequency Boost Support",
        evaluate: check_turbo,
    },
    Rule {
        id: "idle-states",
        group: RuleGroup::Power,
        title: "no enabled idle state has a long exit latency",
        why: "An interrupt waits until the CPU has left its idle state, up to hundreds of µs.",
        source: "Documentation/admin-guide/pm/cpuidle.rst",
        evaluate: idle_states,
    },
    Rule {
        id: "pcie-power-saving",
        group: RuleGroup::Power,
        title: "PCIe links do not enter low-power states",
        why: "A link in a low-power state delays the next interrupt by some µs.",
        source: "drivers/pci/pcie/aspm.c",
        evaluate: pcie_power_saving,
    },
];

/// The highest exit latency without a remark: about the cost of a wake-up itself.
const SHALLOW: Nanos = Nanos(10_000);

/// A value of each judged CPU, with its file; unknown if one cannot be read.
fn of_each<'a, T>(
    ctx: &'a Context,
    read: impl Fn(&'a CpuInfo) -> &'a Fact<T>,
) -> Result<Vec<(usize, &'a T)>, CheckOutcome> {
    let infos = ctx.cpu_infos()?;
    let values = infos.into_iter().map(|info| Ok((info.cpu, require_known(read(info))?))).collect();
    ctx.unless_guest(values, "the frequency")
}

fn cpufreq_path(cpu: usize, name: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

fn check_governor(ctx: &Context) -> Conclusion {
    let governors = of_each(ctx, |info| &info.frequency.governor)?;
    let other_governors: Vec<_> =
        governors.iter().filter(|(_, governor)| *governor != "performance").collect();
    let Some((cpu, governor)) = other_governors.first() else {
        return ok_outcome(
            "every CPU has the governor performance",
            format_evidence("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance"),
        )
        .conclude();
    };
    let writes = other_governors
        .iter()
        .map(|(cpu, _)| (cpufreq_path(*cpu, "scaling_governor"), "performance".into()))
        .collect();
    warning_outcome(
        format!("{} CPU(s) change their frequency", other_governors.len()),
        format_evidence(&cpufreq_path(*cpu, "scaling_governor"), governor),
    )
    .with_fix(Fix::from_writes(writes))
    .conclude()
}

/// Only drivers of Intel and AMD have it.
fn energy_preference(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let drivers = of_each(ctx, |info| &info.frequency.driver)?;
    let (cpu, driver) = drivers[0];
    if !["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"].contains(&driver.as_str()) {
        return not_applicable(
            "this driver has no energy preference",
            format_evidence(&cpufreq_path(cpu, "scaling_driver"), driver),
        )
        .conclude();
    }
    let name = "energy_performance_preference";
    let preferences = of_each(ctx, |info| &info.frequency.energy_preference)?;
    let other_preferences: Vec<_> =
        preferences.iter().filter(|(_, preference)| *preference != "performance").collect();
    let Some((cpu, preference)) = other_preferences.first() else {
        return ok_outcome(
            "performance is preferred",
            format_evidence(&cpufreq_path(cpu, name), "performance"),
        )
        .conclude();
    };
    let writes = other_preferences
        .iter()
        .map(|(cpu, _)| (cpufreq_path(*cpu, name), "performance".into()))
        .collect();
    advice_outcome(
        "the processor trades performance for energy",
        format_evidence(&cpufreq_path(*cpu, name), preference),
    )
    .with_fix(Fix::from_writes(writes))
    .conclude()
}

fn frequency_cap(ctx: &Context) -> Conclusion {
    let max = of_each(ctx, |info| &info.frequency.max)?;
    let hardware = of_each(ctx, |info| &info.frequency.hardware_max)?;
    let capped: Vec<_> =
        max.iter().zip(&hardware).filter(|((_, max), (_, hardware))| max < hardware).collect();
    let Some(((cpu, max), (_, hardware))) = capped.first() else {
        return ok_outcome(
            "every CPU may run at its highest frequency",
            format_evidence(&cpufreq_path(max[0].0, "scaling_max_freq"), max[0].1),
        )
        .conclude();
    };
    let writes = capped
        .iter()
        .map(|((cpu, _), (_, hw))| (cpufreq_path(*cpu, "scaling_max_freq"), hw.0.to_string()))
        .collect();
    advice_outcome(
        format!("{} CPU(s) are kept below {hardware}", capped.len()),
        format_evidence(&cpufreq_path(*cpu, "scaling_max_freq"), max),
    )
    .with_fix(Fix::from_writes(writes))
    .conclude()
}

/// intel_pstate has its own switch; the other drivers share one.
fn check_turbo(ctx: &Context) -> Conclusion {
    let intel = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    let (path, is_on, off) = match ctx.read_setting(intel) {
        Ok(value) => (intel, value == "0", "1"),
        Err(_) => {
            let path = "/sys/devices/system/cpu/cpufreq/boost";
            let value = ctx.read_setting(path).map_err(|unread| {
                match ctx.is_no_x86() && !ctx.files().exists(path) {
                    // The file exists if the driver has a boost (drivers/cpufreq/cpufreq.c,
                    // create_boost_sysfs_file); outside of x86 nothing else raises the frequency.
                    true => not_applicable("the frequency driver has no boost", unread.evidence),
                    false => unread,
                }
            });
            let value = ctx.unless_guest(value, "the frequency")?;
            (path, value != "0", "0")
        }
    };
    match is_on {
        false => ok_outcome("turbo is off", format_evidence(path, off)),
        true => advice_outcome(
            "the frequency depends on the other CPUs and the temperature",
            format!("{path} is not {off}"),
        )
        .with_fix(Fix::write(path, off)),
    }
    .conclude()
}

/// The latency that a process requests through /dev/cpu_dma_latency
/// (Documentation/power/pm_qos_interface.rst): four bytes, in µs.
fn latency_request(files: &dyn Files) -> Option<Nanos> {
    let bytes: [u8; 4] = files.read_at("/dev/cpu_dma_latency", 0, 4).ok()?.try_into().ok()?;
    Some(Nanos(i64::from(i32::from_ne_bytes(bytes)) * 1_000))
}

fn idle_states(ctx: &Context) -> Conclusion {
    // Only x86 reads the parameter (arch/x86/kernel/process.c, idle_setup).
    let line = ctx.command_line();
    let polls =
        |line: &&KernelCommandLine| line.last_value("idle").is_some_and(|value| value == "poll");
    if line.as_ref().is_ok_and(polls) && !ctx.is_no_x86() {
        return ok_outcome("idle CPUs poll", "/proc/cmdline has idle=poll").conclude();
    }
    let request = latency_request(ctx.files()).filter(|asked| *asked <= SHALLOW);
    if let Some(asked) = request {
        return ok_outcome(
            "a process keeps the CPUs out of deep idle states",
            format_evidence("/dev/cpu_dma_latency", asked),
        )
        .conclude();
    }
    let driver = &ctx.environment.idle_driver;
    if driver.known_value().is_some_and(|driver| driver == "none") {
        // The kernel then uses the architecture's own instruction: HLT, WFI (kernel/sched/idle.c,
        // default_idle_call).
        return ok_outcome(
            "an idle CPU only halts",
            format_evidence("/sys/devices/system/cpu/cpuidle/current_driver", "none"),
        )
        .conclude();
    }
    let mut deep: Vec<(usize, usize, &IdleState, Nanos)> = Vec::new();
    for info in ctx.cpu_infos()? {
        let states = ctx.unless_guest(require_known(&info.idle_states), "deep idle")?;
        for (n, state) in states.iter().enumerate() {
            let latency = *require_known(&state.exit_latency)?;
            if latency > SHALLOW && !*require_known(&state.disabled)? {
                deep.push((info.cpu, n, state, latency));
            }
        }
    }
    let path = |cpu: usize, n: usize, name: &str| {
        format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{n}/{name}")
    };
    let Some((cpu, n, state, latency)) = deep.iter().max_by_key(|(_, _, _, latency)| *latency)
    else {
        let files = "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency";
        return ok_outcome(
            "every enabled idle state has a short exit latency",
            format!("{files} are at most {SHALLOW}, or disabled"),
        )
        .conclude();
    };
    let message = format!(
        "the idle state {} has an exit latency of up to {latency}; punctual avoids the state \
         during its runs (/dev/cpu_dma_latency), an application has to do the same",
        state.name
    );
    let writes =
        deep.iter().map(|(cpu, n, _, _)| (path(*cpu, *n, "disable"), "1".into())).collect();
    warning_outcome(message, format_evidence(&path(*cpu, *n, "latency"), latency.ns() / 1_000))
        .with_fix(Fix::from_writes(writes))
        .conclude()
}

fn pcie_power_saving(ctx: &Context) -> Conclusion {
    let path = "/sys/module/pcie_aspm/parameters/policy";
    let policy = ctx.unless_guest(ctx.setting_of(path, "PCIEASPM"), "the power of links")?;
    match policy.contains("[powersave]") || policy.contains("[powersupersave]") {
        true => advice_outcome("links enter low-power states", format_evidence(path, policy))
            .with_fix(Fix::write(path, "performance")),
        false => ok_outcome(
            "links stay active, or as the firmware set them",
            format_evidence(path, policy),
        ),
    }
    .conclude()
}
