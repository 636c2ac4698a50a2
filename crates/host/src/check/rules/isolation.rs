//! CPUs set apart.

use super::{Group, Rule};
use crate::check::context::{Chosen, Context, known, reason};
use crate::check::outcome::*;
use punctual_core::{CpuSet, Fact};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "isolated-cpus",
        group: Group::Isolation,
        title: "the real-time CPUs are isolated",
        why: "The scheduler may place any task on a CPU that is not isolated, and real-time tasks \
              share the CPU with it.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition",
        evaluate: isolated_cpus,
    },
    Rule {
        id: "cpus-online",
        group: Group::Isolation,
        title: "the real-time CPUs are online",
        why: "A task cannot run on a CPU that is offline or does not exist.",
        source: "Documentation/core-api/cpu_hotplug.rst",
        evaluate: cpus_online,
    },
    Rule {
        id: "housekeeping-cpus",
        group: Group::Isolation,
        title: "housekeeping CPUs remain, the first CPU among them",
        why: "Interrupts, kernel threads and all other tasks need housekeeping CPUs, and some work \
              stays on the first CPU from boot on.",
        source: "kernel/sched/isolation.c",
        evaluate: housekeeping_cpus,
    },
    Rule {
        id: "nohz-full",
        group: Group::Isolation,
        title: "the tick stops on real-time CPUs while one task runs",
        why: "Each tick interrupts the task for some µs, 100 to 1000 times a second.",
        source: "Documentation/timers/no_hz.rst",
        evaluate: nohz_full,
    },
    Rule {
        id: "nohz-full-isolated",
        group: Group::Isolation,
        title: "every CPU in nohz_full= is isolated",
        why: "The tick stops only while a single task is runnable; without isolation the load \
              balancer adds others.",
        source: "Documentation/timers/no_hz.rst",
        evaluate: nohz_full_isolated,
    },
    Rule {
        id: "rcu-callbacks",
        group: Group::Isolation,
        title: "RCU callbacks of real-time CPUs run elsewhere",
        why: "Otherwise the callbacks, many of which free memory, run in a softirq on the \
              real-time CPU.",
        source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        evaluate: rcu_callbacks,
    },
    Rule {
        id: "systemd-affinity",
        group: Group::Isolation,
        title: "systemd starts services on housekeeping CPUs only",
        why: "Services inherit the affinity of systemd, which is all CPUs unless they are \
              isolated or CPUAffinity= says otherwise.",
        source: "systemd-system.conf(5)",
        evaluate: systemd_affinity,
    },
];

/// Isolated at boot or by a partition, with the files that say so.
fn set_apart(ctx: &Context) -> Result<(CpuSet, String), Outcome> {
    let isolated = &ctx.environment.topology.isolated;
    let groups = &ctx.cgroups;
    if isolated.known().is_none() && groups.partitioned.is_empty() {
        return Err(unknown(reason(isolated)));
    }
    let isolated = isolated.known().cloned().unwrap_or_default();
    let evidence = format_evidence("/sys/devices/system/cpu/isolated", &isolated);
    let evidence = match groups.partitioned.is_empty() {
        true => evidence,
        false => format!(
            "{evidence}; partitions of {}: {}",
            groups.partition_evidence, groups.partitioned
        ),
    };
    Ok((isolated.union(&groups.partitioned), evidence))
}

fn isolated_cpus(ctx: &Context) -> Conclusion {
    let (apart, evidence) = set_apart(ctx)?;
    if ctx.chosen == Chosen::All {
        return advice("no CPU is isolated for real time", evidence)
            .fix(Fix::by_hand("punctual isolate create CPUS"))
            .conclude();
    }
    let shared = ctx.cpus.difference(&apart);
    if shared.is_empty() {
        return ok(format!("CPUs {} are isolated", ctx.cpus), evidence).conclude();
    }
    let cpus =
        if shared.len() == 1 { format!("CPU {shared} is") } else { format!("CPUs {shared} are") };
    warning(format!("{cpus} shared with all other tasks"), evidence)
        .fix(Fix::by_hand(format!("punctual isolate create {}", ctx.cpus)))
        .conclude()
}

fn cpus_online(ctx: &Context) -> Conclusion {
    let online = known(&ctx.environment.topology.online)?;
    let evidence = format_evidence("/sys/devices/system/cpu/online", online);
    let missing = ctx.cpus.difference(online);
    if missing.is_empty() {
        return ok(format!("CPUs {} are online", ctx.cpus), evidence).conclude();
    }
    let present = ctx.environment.topology.present.known().cloned().unwrap_or_default();
    let outcome = bad(format!("CPUs {missing} are not online"), evidence);
    match missing.is_subset(&present) {
        true => {
            let online = |cpu| (format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1".to_owned());
            outcome.fix(Fix::writes(missing.iter().map(online).collect()))
        }
        false => outcome.fix(Fix::by_hand(format!("choose among the CPUs {present}"))),
    }
    .conclude()
}

fn housekeeping_cpus(ctx: &Context) -> Conclusion {
    ctx.dedicated()?;
    let rest = ctx.housekeeping()?;
    let evidence = format!("real-time CPUs {}, housekeeping CPUs `{rest}`", ctx.cpus);
    if rest.is_empty() {
        return bad("no housekeeping CPU remains", evidence)
            .fix(Fix::by_hand("leave at least one CPU out of the real-time set"))
            .conclude();
    }
    match ctx.cpus.contains(0) {
        true => advice("the first CPU is a real-time CPU; work from boot stays on it", evidence)
            .fix(Fix::by_hand("take higher CPUs for real time")),
        false => ok("housekeeping CPUs remain", evidence),
    }
    .conclude()
}

fn nohz_full(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated()?;
    let path = "/sys/devices/system/cpu/nohz_full";
    if let Some(config) =
        ctx.environment.kernel.config.known().filter(|config| !config.has("NO_HZ_FULL"))
    {
        let evidence = format!("{} has CONFIG_NO_HZ_FULL not set", config.source.0);
        return advice("the kernel cannot stop the tick of a busy CPU", evidence)
            .fix(Fix::by_hand("boot a kernel with CONFIG_NO_HZ_FULL (Debian's have it)"))
            .conclude();
    }
    let full = known(&ctx.environment.kernel.tick.nohz_full)?;
    if cpus.is_subset(full) {
        return ok("the tick stops on all of them", format_evidence(path, full)).conclude();
    }
    let message = format!("CPUs {} are interrupted by every tick", cpus.difference(full));
    let fix = Fix::boot_parameter(&format!("nohz_full={cpus}"));
    match cpus.intersection(full).is_empty() {
        true => advice(message, format_evidence(path, full)).fix(fix),
        false => warning(message, format_evidence(path, full)).fix(fix),
    }
    .conclude()
}

fn nohz_full_isolated(ctx: &Context) -> Conclusion {
    let Fact::Known(full) = &ctx.environment.kernel.tick.nohz_full else {
        let config = ctx.config()?;
        if config.has("NO_HZ_FULL") {
            return unknown(reason(&ctx.environment.kernel.tick.nohz_full)).conclude();
        }
        return not_applicable(
            "the kernel has no CONFIG_NO_HZ_FULL",
            format!("{} has it not set", config.source.0),
        )
        .conclude();
    };
    let evidence = format_evidence("/sys/devices/system/cpu/nohz_full", full);
    if full.is_empty() {
        return not_applicable("no CPU can stop its tick while busy", evidence).conclude();
    }
    let (apart, evidence_apart) = set_apart(ctx)?;
    let shared = full.difference(&apart);
    let evidence = format!("{evidence}; {evidence_apart}");
    match shared.is_empty() {
        true => ok("all CPUs in nohz_full= are isolated", evidence),
        false => warning(format!("CPUs {shared} are in nohz_full=, but not isolated"), evidence)
            .fix(Fix::boot_parameter(&format!("isolcpus=managed_irq,domain,{full}"))),
    }
    .conclude()
}

/// `nohz_full=` implies `rcu_nocbs=` (kernel/rcu/tree_nocb.h, rcu_init_nohz); there is no file with
/// the set in force.
fn rcu_callbacks(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated()?;
    if let Some(config) = ctx.environment.kernel.config.known()
        && !config.has("RCU_NOCB_CPU")
    {
        return advice(
            "the kernel cannot move RCU callbacks",
            format!("{} has CONFIG_RCU_NOCB_CPU not set", config.source.0),
        )
        .fix(Fix::by_hand("boot a kernel with CONFIG_RCU_NOCB_CPU (Debian's have it)"))
        .conclude();
    }
    let line = ctx.command_line()?;
    let asked = line.value("rcu_nocbs").unwrap_or_default();
    let nocbs = match line.cpus("rcu_nocbs") {
        None => CpuSet::new(),
        Some(Ok(set)) => set,
        Some(Err(all)) if all == "all" => cpus.clone(),
        Some(Err(odd)) => {
            return unknown(format!(
                "/proc/cmdline has rcu_nocbs={odd}, which is not understood here"
            ))
            .conclude();
        }
    };
    let covered =
        nocbs.union(ctx.environment.kernel.tick.nohz_full.known().unwrap_or(&CpuSet::new()));
    let evidence = match line.has("rcu_nocbs") {
        true => format!("/proc/cmdline has rcu_nocbs={asked}"),
        false => {
            format!("/proc/cmdline has no rcu_nocbs=; with nohz_full that makes CPUs `{covered}`")
        }
    };
    let left = cpus.difference(&covered);
    if left.is_empty() {
        return ok("RCU callbacks run elsewhere", evidence).conclude();
    }
    let fix = Fix::boot_parameter(&format!("rcu_nocbs={cpus}"));
    advice(format!("CPUs {left} run RCU callbacks themselves"), evidence).fix(fix).conclude()
}

fn systemd_affinity(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated()?;
    if !ctx.files().exists("/run/systemd/system") {
        return not_applicable("systemd does not run here", "/run/systemd/system is not there")
            .conclude();
    }
    let (apart, apart_evidence) = set_apart(ctx)?;
    if cpus.is_subset(&apart) {
        return ok("isolation keeps services off the real-time CPUs", apart_evidence).conclude();
    }
    let path = "/etc/systemd/system.conf";
    let mut affinity = None;
    for file in configuration_files(ctx, path) {
        let text = ctx.read(&file)?;
        affinity = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("CPUAffinity="))
            .next_back()
            .map(|v| (file, v.to_owned()))
            .or(affinity);
    }
    let rest = ctx.housekeeping()?;
    let fix = Fix::by_hand(format!("set CPUAffinity={rest} in {path} and restart"));
    let Some((file, list)) = affinity.filter(|(_, list)| !list.trim().is_empty()) else {
        return advice("services start on all CPUs", format!("{path} sets no CPUAffinity="))
            .fix(fix)
            .conclude();
    };
    // Lists are separated by spaces or commas.
    let commas =
        list.split([' ', ',']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    match commas.parse::<CpuSet>() {
        Err(why) => unknown(format!("{file}: CPUAffinity={list}: {why}")),
        Ok(set) if set.intersection(cpus).is_empty() => {
            ok("services avoid these CPUs", format_evidence(&file, format!("CPUAffinity={list}")))
        }
        Ok(_) => advice(
            "services start on the real-time CPUs too",
            format_evidence(&file, format!("CPUAffinity={list}")),
        )
        .fix(fix),
    }
    .conclude()
}

/// The file and its drop-ins, as far as they exist. A distribution without the file uses the
/// compiled defaults.
fn configuration_files(ctx: &Context, path: &str) -> Vec<String> {
    let directory = format!("{path}.d");
    let drop_ins = ctx.files().list(&directory).unwrap_or_default();
    let drop_ins = drop_ins
        .iter()
        .filter(|name| name.ends_with(".conf"))
        .map(|name| format!("{directory}/{name}"));
    std::iter::once(path.to_owned())
        .chain(drop_ins)
        .filter(|file| ctx.files().exists(file))
        .take(64)
        .collect()
}
