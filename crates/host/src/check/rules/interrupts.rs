//! Interrupts and their CPUs.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, as_mask, require_known};
use crate::check::irqbalance::Ban;
use crate::check::outcome::*;
use crate::check::tasks::CheckedTask;
use crate::environment::{BootList, IsolCpus, cpu_list};
use punctual_core::{CpuSet, Fact};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "interrupts-elsewhere",
        group: RuleGroup::Interrupts,
        title: "device interrupts go to other CPUs",
        why: "Each interrupt on a real-time CPU delays its task at least by the hard interrupt \
              handler, also with PREEMPT_RT.",
        source: "Documentation/core-api/irq/irq-affinity.rst",
        evaluate: interrupts_elsewhere,
    },
    Rule {
        id: "default-irq-affinity",
        group: RuleGroup::Interrupts,
        title: "new interrupts go to other CPUs",
        why: "A device that is plugged in or opened later gets its interrupts on the CPUs of the \
              default mask.",
        source: "Documentation/core-api/irq/irq-affinity.rst",
        evaluate: default_irq_affinity,
    },
    Rule {
        id: "irqaffinity-parameter",
        group: RuleGroup::Interrupts,
        title: "the boot parameter irqaffinity= leaves the real-time CPUs out",
        why: "It holds for interrupts that are set up before any script runs.",
        source: "kernel/irq/irqdesc.c, irq_affinity_setup",
        evaluate: irqaffinity_parameter,
    },
    Rule {
        id: "managed-interrupts",
        group: RuleGroup::Interrupts,
        title: "isolcpus=managed_irq keeps managed interrupts away",
        why: "The kernel sets the affinity of managed interrupts (queues of NVMe and virtio disks) \
              itself; only the flag managed_irq keeps them off isolated CPUs.",
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=",
        evaluate: managed_interrupts,
    },
    Rule {
        id: "irqbalance",
        group: RuleGroup::Interrupts,
        title: "irqbalance does not move interrupts to real-time CPUs",
        why: "It spreads interrupts over all CPUs but the banned ones, and overrides manual \
              settings; only where no ban is set, it leaves isolated and nohz_full CPUs out.",
        source: "irqbalance(1); cputree.c, setup_banned_cpus",
        evaluate: check_irqbalance,
    },
    Rule {
        id: "irq-thread-priorities",
        group: RuleGroup::Interrupts,
        title: "interrupt threads are real-time tasks below the highest priorities",
        why: "A handler thread above the task's priority delays it like an interrupt; one without \
              real-time priority delays its device.",
        source: "kernel/irq/manage.c, setup_irq_thread",
        evaluate: irq_thread_priorities,
    },
    Rule {
        id: "packet-steering",
        group: RuleGroup::Interrupts,
        title: "network queues are not steered to real-time CPUs",
        why: "RPS and XPS hand the processing of packets to the CPUs in their masks, as softirqs.",
        source: "Documentation/networking/scaling.rst",
        evaluate: packet_steering,
    },
];

/// The maximum number of interrupts whose affinity is read.
const MAX_INTERRUPTS: usize = 4096;
/// At most this many interfaces and queues are examined.
const MAX_QUEUES: usize = 4096;
/// Priorities from here on belong to the kernel's own watchdogs and migration threads.
const HIGHEST: u32 = 90;

/// Interrupts of per-CPU devices; no file distinguishes them from others
/// (drivers/clocksource/arm_arch_timer.c, drivers/perf/arm_pmu.c, arch/arm64/kvm/arch_timer.c).
fn is_per_cpu(name: &str) -> bool {
    ["arch_timer", "arm-pmu", "kvm guest"].iter().any(|device| name.starts_with(device))
}

fn interrupts_elsewhere(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let interrupts = require_known(&ctx.environment.before.interrupts)?;
    let (mut landing, mut writes, mut asked, mut silent) = (Vec::new(), Vec::new(), 0, 0);
    let rest = ctx.housekeeping_cpus()?;
    for line in interrupts.lines.iter().take(MAX_INTERRUPTS) {
        let Some(irq) = line.irq_number().filter(|_| !is_per_cpu(&line.requester_name())) else {
            continue;
        };
        // The effective affinity is the CPU that the controller really uses; kernels without it use
        // any allowed CPU.
        let (effective, wanted) = (
            format!("/proc/irq/{irq}/effective_affinity_list"),
            format!("/proc/irq/{irq}/smp_affinity_list"),
        );
        let mask = match cpu_list(ctx.files(), &effective) {
            Fact::Known(mask) if !mask.is_empty() => mask,
            _ => match cpu_list(ctx.files(), &wanted) {
                Fact::Known(mask) => mask,
                _ => {
                    silent += 1;
                    continue;
                }
            },
        };
        asked += 1;
        if !mask.intersection(cpus).is_empty() {
            landing.push(format!("{irq} {}", line.requester_name()));
            writes.push((wanted, rest.to_string()));
        }
    }
    if landing.is_empty() && (asked == 0 || silent > 0) {
        return unknown_outcome(format!(
            "{silent} interrupts have no readable /proc/irq/*/smp_affinity_list"
        ))
        .conclude();
    }
    if landing.is_empty() {
        return ok_outcome(
            "no device interrupt lands on the real-time CPUs",
            format!("{asked} files /proc/irq/*/effective_affinity_list"),
        )
        .conclude();
    }
    let message = format!("{} of {asked} interrupts land on the real-time CPUs", landing.len());
    let outcome = warning_outcome(
        message,
        format!("/proc/irq/*/effective_affinity_list: {}", join_some(&landing)),
    );
    if rest.is_empty() {
        Ok(outcome)
    } else {
        outcome.with_fix(Fix::from_writes(writes)).conclude()
    }
}

fn default_irq_affinity(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let path = "/proc/irq/default_smp_affinity";
    let text = ctx.read_setting(path)?;
    let rest = ctx.housekeeping_cpus()?;
    match as_mask(path, &text)?.intersection(cpus).is_empty() {
        true => ok_outcome("new interrupts go to other CPUs", format_evidence(path, text)),
        false if rest.is_empty() => advice_outcome(
            "new interrupts may land on the real-time CPUs",
            format_evidence(path, text),
        ),
        false => advice_outcome(
            "new interrupts may land on the real-time CPUs",
            format_evidence(path, text),
        )
        .with_fix(Fix::write(path, rest.to_mask())),
    }
    .conclude()
}

/// The last one counts, and the kernel adds the boot CPU, which is the first (kernel/irq/irqdesc.c,
/// irq_affinity_setup).
fn irqaffinity_parameter(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let rest = ctx.housekeeping_cpus()?;
    let fix = ctx.boot_parameter("irqaffinity", &rest.to_string()).filter(|_| !rest.is_empty());
    let Some(asked) = ctx.command_line()?.last_value("irqaffinity") else {
        return advice_outcome(
            "interrupts of early drivers go anywhere",
            "/proc/cmdline has no irqaffinity=",
        )
        .fix_by(fix)
        .conclude();
    };
    let evidence = format!("/proc/cmdline has irqaffinity={asked}");
    match ctx.boot_list(&asked) {
        BootList::Unknown(why) => unknown_outcome(format!("{evidence}: {why}")),
        BootList::Refused(why) => warning_outcome(
            "irqaffinity= is not in force: this kernel cannot read its list",
            format!("{evidence}: {why}"),
        )
        .fix_by(fix),
        BootList::Cpus(set) => {
            let boot: CpuSet = CpuSet::from_cpu(0);
            let set = set.union(&boot);
            match set.intersection(cpus).is_empty() {
                true => ok_outcome("irqaffinity= leaves the real-time CPUs out", evidence),
                false => warning_outcome(
                    "irqaffinity= sends interrupts to the real-time CPUs",
                    format!("{evidence}, and the kernel adds CPU {boot}"),
                )
                .fix_by(fix.filter(|_| !cpus.contains(0))),
            }
        }
    }
    .conclude()
}

/// The rule `isolation-request` judges whether `isolcpus=` isolates; no file shows the CPUs in
/// force for managed interrupts.
fn managed_interrupts(ctx: &Context) -> Conclusion {
    let values = ctx.command_line()?.values_of("isolcpus");
    if values.is_empty() {
        return not_applicable("isolcpus= is not used", "/proc/cmdline has no isolcpus=")
            .conclude();
    }
    let evidence = format!("/proc/cmdline has isolcpus={}", values.join(" isolcpus="));
    if values.iter().any(|value| IsolCpus::read(value).has_flag("managed_irq")) {
        return ok_outcome("managed interrupts are kept off isolated CPUs", evidence).conclude();
    }
    let isolated = require_known(&ctx.environment.topology.isolated)?;
    if isolated.is_empty() {
        let evidence = format!("{evidence}; /sys/devices/system/cpu/isolated is empty");
        return not_applicable("isolcpus= is not in force", evidence).conclude();
    }
    let nohz = values.iter().any(|value| IsolCpus::read(value).has_flag("nohz"));
    let flags = if nohz { "nohz,managed_irq,domain" } else { "managed_irq,domain" };
    advice_outcome("managed interrupts may land on isolated CPUs", evidence)
        .fix_by(ctx.boot_parameter("isolcpus", &format!("{flags},{isolated}")))
        .conclude()
}

/// A ban replaces irqbalance's own detection.
fn check_irqbalance(ctx: &Context) -> Conclusion {
    let tasks = ctx.checked_tasks()?;
    let Some(task) = tasks.iter().find(|task| task.name == "irqbalance") else {
        return ok_outcome("irqbalance does not run", "/proc/*/stat name no irqbalance").conclude();
    };
    let cpus = ctx.dedicated_cpus()?;
    let ban = Ban::read(ctx.files(), task.pid);
    let empty = match &ban {
        Ban::Unknown(why) => {
            return unknown_outcome(format!("{} runs; {why}", task.label())).conclude();
        }
        Ban::Cpus(banned, setting) => {
            let evidence = format!("{} runs; {setting}: CPUs `{banned}`", task.label());
            return leaves_out(ctx, cpus.is_subset(banned), evidence);
        }
        Ban::Empty(setting) => Some(setting),
        Ban::Detected => None,
    };
    let isolated = require_known(&ctx.environment.topology.isolated)?;
    // A kernel without NO_HZ_FULL has no such file, and irqbalance no such CPUs.
    let full = ctx.environment.kernel.tick.nohz_full.known_value().cloned().unwrap_or_default();
    let found = isolated.union(&full);
    let settings = empty.map_or("no ban is set".to_owned(), |setting| setting.clone());
    let evidence =
        format!("{} runs; {settings}; isolated or nohz_full are CPUs `{found}`", task.label());
    match (cpus.is_subset(&found), empty) {
        (true, Some(_)) => {
            let reason = "whether an empty value bans no CPU depends on irqbalance's version";
            unknown_outcome(format!("{evidence}; {reason}"))
                .with_fix(Fix::by_hand("remove the empty line, and restart irqbalance"))
                .conclude()
        }
        (left_out, _) => leaves_out(ctx, left_out, evidence),
    }
}

fn leaves_out(ctx: &Context, all: bool, evidence: String) -> Conclusion {
    if all {
        return ok_outcome("irqbalance leaves the real-time CPUs out", evidence).conclude();
    }
    let ban = ctx.to_isolate().map_or(String::new(), |cpus| {
        format!(
            ", or set IRQBALANCE_BANNED_CPULIST={cpus} in /etc/default/irqbalance (Fedora, SUSE: \
             /etc/sysconfig/irqbalance) without IRQBALANCE_BANNED_CPUS, and restart it"
        )
    });
    warning_outcome("irqbalance may send interrupts to the real-time CPUs", evidence)
        .with_fix(Fix::by_hand(format!("systemctl disable --now irqbalance{ban}")))
        .conclude()
}

fn irq_thread_priorities(ctx: &Context) -> Conclusion {
    let threads: Vec<_> = ctx
        .checked_tasks()?
        .iter()
        .filter(|task| task.kernel && task.name.starts_with("irq/"))
        .collect();
    if threads.is_empty() {
        return not_applicable("no interrupt has a thread", "/proc/*/stat name no irq/ thread")
            .conclude();
    }
    let label = |task: &&&CheckedTask| format!("{} at {}", task.label(), task.rt_priority);
    let high: Vec<String> = threads
        .iter()
        .filter(|task| task.rt_priority >= HIGHEST)
        .map(|task| label(&task))
        .collect();
    if !high.is_empty() {
        return warning_outcome(
            format!("{} interrupt thread(s) run at {HIGHEST} or above", high.len()),
            join_some(&high),
        )
        .with_fix(Fix::by_hand("chrt -f -p 50 PID"))
        .conclude();
    }
    let unprioritized: Vec<String> =
        threads.iter().filter(|task| task.rt_priority == 0).map(|task| label(&task)).collect();
    if !unprioritized.is_empty() {
        return warning_outcome(
            format!("{} interrupt thread(s) have no real-time priority", unprioritized.len()),
            join_some(&unprioritized),
        )
        .with_fix(Fix::by_hand("chrt -f -p 50 PID"))
        .conclude();
    }
    let (low, top) = threads
        .iter()
        .fold((99, 1), |(low, top), t| (low.min(t.rt_priority), top.max(t.rt_priority)));
    ok_outcome(
        format!("{} threads at priorities {low} to {top}", threads.len()),
        "/proc/*/stat of irq/ threads",
    )
    .conclude()
}

fn packet_steering(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let rest = ctx.housekeeping_cpus()?;
    let (mut steered, mut writes, mut asked) = (Vec::new(), Vec::new(), 0);
    let interfaces =
        ctx.files().list("/sys/class/net").map_err(|why| unknown_outcome(why.to_string()))?;
    for interface in interfaces {
        let queues = format!("/sys/class/net/{interface}/queues");
        for queue in ctx.files().list(&queues).unwrap_or_default().iter().take(MAX_QUEUES) {
            let name = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
            let path = format!("{queues}/{queue}/{name}");
            let text = match ctx.files().read_trimmed(&path) {
                Ok(text) => text,
                // Interfaces with one queue have no XPS mask and return ENOENT
                // (net/core/net-sysfs.c).
                Err(why) if why.is_missing() => continue,
                Err(why) => return unknown_outcome(why.to_string()).conclude(),
            };
            asked += 1;
            if !as_mask(&path, &text)?.intersection(cpus).is_empty() {
                steered.push(format!("{path} {text}"));
                writes.push((path, rest.to_mask()));
            }
        }
    }
    if asked == 0 {
        return not_applicable(
            "no interface has a queue to steer",
            "/sys/class/net/*/queues/*/{rps,xps}_cpus",
        )
        .conclude();
    }
    match steered.is_empty() {
        true => ok_outcome(
            "no network queue is steered to the real-time CPUs",
            format!("{asked} masks /sys/class/net/*/queues/*/{{rps,xps}}_cpus"),
        ),
        false => advice_outcome(
            format!("{} network queues are steered to the real-time CPUs", steered.len()),
            join_some(&steered),
        )
        .with_fix(Fix::from_writes(writes)),
    }
    .conclude()
}
