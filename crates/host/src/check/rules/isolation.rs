//! Isolated CPUs.

use super::{Rule, RuleGroup};
use crate::check::context::{Chosen, Context, require_known, unknown_reason};
use crate::check::outcome::*;
use crate::check::systemd::Affinity;
use crate::environment::{BootList, IsolCpus};
use crate::isolate::lasting::{LastingState, lasting_state};
use punctual_core::{CpuSet, Fact};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "isolated-cpus",
        group: RuleGroup::Isolation,
        title: "the real-time CPUs are isolated",
        why: "The scheduler may place any task on a CPU that is not isolated, and real-time tasks \
              share the CPU with it.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition",
        evaluate: isolated_cpus,
    },
    Rule {
        id: "isolation-request",
        group: RuleGroup::Isolation,
        title: "the isolation requested at boot is in force",
        why: "The kernel ignores a list that it cannot read, or that leaves no CPU for other work, \
              with no more than a line in its log.",
        source: "kernel/sched/isolation.c, housekeeping_setup; lib/bitmap-str.c, bitmap_parselist",
        evaluate: isolation_request,
    },
    Rule {
        id: "isolation-lasts",
        group: RuleGroup::Isolation,
        title: "the isolation is made again at each boot",
        why: "A partition ends with the boot; what is measured in it holds until then only.",
        source: "kernel-command-line(7); systemd.service(5); systemd.resource-control(5)",
        evaluate: isolation_lasts,
    },
    Rule {
        id: "cpus-online",
        group: RuleGroup::Isolation,
        title: "the real-time CPUs are online",
        why: "A task cannot run on a CPU that is offline or does not exist.",
        source: "Documentation/core-api/cpu_hotplug.rst",
        evaluate: cpus_online,
    },
    Rule {
        id: "housekeeping-cpus",
        group: RuleGroup::Isolation,
        title: "housekeeping CPUs remain, the first CPU among them",
        why: "Interrupts, kernel threads and all other tasks need housekeeping CPUs, and some work \
              stays on the first CPU from boot on.",
        source: "kernel/sched/isolation.c",
        evaluate: housekeeping_cpus,
    },
    Rule {
        id: "nohz-full",
        group: RuleGroup::Isolation,
        title: "the tick stops on real-time CPUs while one task runs",
        why: "Each tick interrupts the task for some µs, 100 to 1000 times a second.",
        source: "Documentation/timers/no_hz.rst",
        evaluate: nohz_full,
    },
    Rule {
        id: "nohz-full-isolated",
        group: RuleGroup::Isolation,
        title: "every CPU in nohz_full= is isolated",
        why: "The tick stops only while a single task is runnable; without isolation the load \
              balancer adds others.",
        source: "Documentation/timers/no_hz.rst",
        evaluate: nohz_full_isolated,
    },
    Rule {
        id: "rcu-callbacks",
        group: RuleGroup::Isolation,
        title: "RCU callbacks of real-time CPUs run elsewhere",
        why: "Otherwise the callbacks, many of which free memory, run in a softirq on the \
              real-time CPU.",
        source: "kernel/rcu/tree_nocb.h, rcu_nocb_setup and rcu_init_nohz",
        evaluate: rcu_callbacks,
    },
    Rule {
        id: "systemd-affinity",
        group: RuleGroup::Isolation,
        title: "systemd starts services on housekeeping CPUs only",
        why: "Services inherit the affinity of systemd, which is all CPUs unless they are \
              isolated or CPUAffinity= says otherwise.",
        source: "systemd-system.conf(5), CPUAffinity=; kernel-command-line(7)",
        evaluate: systemd_affinity,
    },
];

/// The CPUs isolated at boot or by a partition, with the files that show it.
fn set_apart(ctx: &Context) -> Result<(CpuSet, String), CheckOutcome> {
    let isolated = &ctx.environment.topology.isolated;
    let groups = &ctx.cgroups;
    if isolated.known_value().is_none() && groups.partitioned.is_empty() {
        return Err(unknown_outcome(unknown_reason(isolated)));
    }
    let isolated = isolated.known_value().cloned().unwrap_or_default();
    let mut evidence = format_evidence("/sys/devices/system/cpu/isolated", &isolated);
    if !groups.partitioned.is_empty() {
        let (file, cpus) = (&groups.partition_evidence, &groups.partitioned);
        evidence = format!("{evidence}; partitions of {file}: {cpus}");
    }
    if let Some(unseen) = &groups.unseen {
        evidence = format!("{evidence}; {unseen}");
    }
    Ok((isolated.union(&groups.partitioned), evidence))
}

fn isolated_cpus(ctx: &Context) -> Conclusion {
    let (apart, evidence) = set_apart(ctx)?;
    let shared = ctx.cpus.difference(&apart);
    if ctx.cgroups.unseen.is_some() && !shared.is_empty() {
        // The partition that holds them may be outside of this container's view.
        return unknown_outcome(evidence)
            .with_fix(Fix::by_hand("run `punctual check` outside of the container"))
            .conclude();
    }
    if ctx.chosen == Chosen::All {
        return advice_outcome("no CPU is isolated for real time", evidence)
            .with_fix(Fix::by_hand("punctual isolate create CPUS"))
            .conclude();
    }
    if shared.is_empty() {
        return ok_outcome(format!("CPUs {} are isolated", ctx.cpus), evidence).conclude();
    }
    let cpus =
        if shared.len() == 1 { format!("CPU {shared} is") } else { format!("CPUs {shared} are") };
    warning_outcome(format!("{cpus} shared with all other tasks"), evidence)
        .fix_by(ctx.isolation_fix())
        .conclude()
}

/// A list of CPUs requested at boot, and the file with the CPUs in force.
struct RequestedCpus<'a> {
    /// `isolcpus=2-3`, as written.
    words: String,
    list: String,
    path: &'static str,
    in_force: &'a Fact<CpuSet>,
}

/// The requests of `isolcpus=` and `nohz_full=`. The kernel processes each of several, and refuses
/// a later one with other CPUs (kernel/sched/isolation.c, housekeeping_setup).
fn requested_cpus<'a>(ctx: &'a Context) -> Result<Vec<RequestedCpus<'a>>, CheckOutcome> {
    let line = ctx.command_line()?;
    let isolated = &ctx.environment.topology.isolated;
    let full = &ctx.environment.kernel.tick.nohz_full;
    let mut all_requests = Vec::new();
    let mut request = |words: String, list: &str, path, in_force| {
        all_requests.push(RequestedCpus { words, list: list.to_owned(), path, in_force });
    };
    let (isolated_path, full_path) =
        ("/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full");
    for value in line.values_of("isolcpus").iter().filter(|value| !value.is_empty()) {
        let isolcpus = IsolCpus::read(value);
        let words = format!("isolcpus={value}");
        if isolcpus.isolates_domains() {
            request(words.clone(), &isolcpus.list, isolated_path, isolated);
        }
        if isolcpus.has_flag("nohz") {
            request(words, &isolcpus.list, full_path, full);
        }
    }
    for value in line.values_of("nohz_full").iter().filter(|value| !value.is_empty()) {
        request(format!("nohz_full={value}"), value, full_path, full);
    }
    Ok(all_requests)
}

/// Judged by the CPUs in force, never by the value: with several CPUs `isolcpus=0` isolates the
/// first, with one it isolates none.
fn isolation_request(ctx: &Context) -> Conclusion {
    let all_requests = requested_cpus(ctx)?;
    if all_requests.is_empty() {
        let evidence = "/proc/cmdline has neither isolcpus= nor nohz_full=";
        return ok_outcome("no isolation was requested at boot", evidence).conclude();
    }
    let (mut not, mut open, mut evidence) = (Vec::new(), None, Vec::new());
    for RequestedCpus { words, list, path, in_force } in &all_requests {
        let Fact::Known(in_force) = in_force else {
            open = Some(format!("/proc/cmdline has {words}; {}", unknown_reason(in_force)));
            continue;
        };
        let mut line_evidence =
            format!("/proc/cmdline has {words}; {}", format_evidence(path, in_force));
        match ctx.boot_list(list) {
            BootList::Cpus(cpus) if cpus.is_subset(in_force) && !cpus.is_empty() => {}
            // For the kernel, `isolcpus=all` is a flag without a list.
            BootList::Cpus(_) => not.push(words.clone()),
            BootList::Refused(why) | BootList::Unknown(why) if in_force.is_empty() => {
                not.push(words.clone());
                line_evidence = format!("{line_evidence}: {why}");
            }
            BootList::Refused(why) => {
                not.push(words.clone());
                line_evidence = format!("{line_evidence}, by another parameter: {why}");
            }
            BootList::Unknown(why) => open = Some(format!("{line_evidence}: {why}")),
        }
        evidence.push(line_evidence);
    }
    let evidence = evidence.join("; ");
    if not.is_empty() {
        return match open {
            Some(why) => unknown_outcome(why),
            None => ok_outcome("the requested isolation is in force", evidence),
        }
        .conclude();
    }
    let possible = ctx.environment.topology.possible.known_value().map(CpuSet::to_string);
    let of_possible = possible.map_or(String::new(), |cpus| format!(" of {cpus}"));
    warning_outcome(format!("asked for and not in force: {}", not.join(", ")), evidence)
        .with_fix(Fix::by_hand(format!(
            "see why the kernel refused it: dmesg | grep -iE 'housekeeping|isolcpus'; name CPUs\
             {of_possible} by their numbers and leave at least one out, or remove the parameter"
        )))
        .conclude()
}

/// By the kernel's command line, or by the service that `isolate unit` writes.
fn isolation_lasts(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let line = ctx.command_line()?;
    let words = ["isolcpus", "irqaffinity", "nohz_full", "rcu_nocbs"];
    let (there, lacking): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| line.has_parameter(word));
    let mut evidence = match there.is_empty() {
        true => format!("/proc/cmdline has none of {}=", words.join("=, ")),
        false => format!("/proc/cmdline has {}=", there.join("=, ")),
    };
    if !there.is_empty() && !lacking.is_empty() {
        evidence += &format!(", not {}=", lacking.join("=, "));
    }
    let state = lasting_state(ctx.files());
    evidence += match &state {
        LastingState::None => "; there is no punctual-isolate.service",
        LastingState::NotStarted => "; punctual-isolate.service is there without its link",
        LastingState::Started(_) => "; punctual-isolate.service is started at each boot",
    };
    let (apart, _) = set_apart(ctx)?;
    let isolated = requested_cpus(ctx)?.into_iter().any(|one| {
        let is_isolcpus = one.words.starts_with("isolcpus=");
        is_isolcpus
            && matches!(ctx.boot_list(&one.list), BootList::Cpus(all) if cpus.is_subset(&all))
    });
    let install = Fix::by_hand(format!("punctual isolate unit {cpus} --install"));
    match state {
        LastingState::Started(all) if !cpus.is_subset(&all) && !isolated => warning_outcome(
            format!("the service is for CPUs {all}, these are {cpus}"),
            evidence,
        )
        .with_fix(Fix::by_hand(format!(
            "`punctual isolate unit --remove`, then `punctual isolate unit {cpus} --install`"
        ))),
        LastingState::Started(_) if !cpus.is_subset(&apart) => warning_outcome(
            "a service makes the partition at each boot, and it is not in force",
            evidence,
        )
        .with_fix(Fix::by_hand("systemctl status punctual-isolate")),
        LastingState::Started(_) => {
            ok_outcome("a service makes the partition at each boot", evidence)
        }
        LastingState::NotStarted => warning_outcome(
            "the service is there, and no boot starts it",
            evidence,
        )
        .with_fix(Fix::by_hand(format!(
            "`punctual isolate unit --remove`, then `punctual isolate unit {cpus} --install`"
        ))),
        LastingState::None if isolated => {
            ok_outcome("isolcpus= isolates them at each boot", evidence)
        }
        LastingState::None if cpus.is_subset(&apart) => {
            advice_outcome("the isolation ends with this boot", evidence).with_fix(install)
        }
        LastingState::None => not_applicable("these CPUs are not isolated", evidence),
    }
    .conclude()
}

fn cpus_online(ctx: &Context) -> Conclusion {
    let online = require_known(&ctx.environment.topology.online)?;
    let evidence = format_evidence("/sys/devices/system/cpu/online", online);
    let missing = ctx.cpus.difference(online);
    if missing.is_empty() {
        return ok_outcome(format!("CPUs {} are online", ctx.cpus), evidence).conclude();
    }
    let present = ctx.environment.topology.present.known_value().cloned().unwrap_or_default();
    let outcome = bad_outcome(format!("CPUs {missing} are not online"), evidence);
    match missing.is_subset(&present) {
        true => {
            let online = |cpu| (format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1".to_owned());
            outcome.with_fix(Fix::from_writes(missing.iter().map(online).collect()))
        }
        false => outcome.with_fix(Fix::by_hand(format!("choose among the CPUs {present}"))),
    }
    .conclude()
}

fn housekeeping_cpus(ctx: &Context) -> Conclusion {
    ctx.dedicated_cpus()?;
    let rest = ctx.housekeeping_cpus()?;
    let evidence = format!("real-time CPUs {}, housekeeping CPUs `{rest}`", ctx.cpus);
    if rest.is_empty() {
        return bad_outcome("no housekeeping CPU remains", evidence)
            .with_fix(Fix::by_hand("leave at least one CPU out of the real-time set"))
            .conclude();
    }
    match ctx.cpus.contains(0) {
        true => warning_outcome(
            "CPU 0 is a real-time CPU: work from boot, timekeeping, and interrupts without another \
             CPU stay on it",
            evidence,
        )
        .with_fix(Fix::by_hand("take higher CPUs for real time")),
        false => ok_outcome("housekeeping CPUs remain", evidence),
    }
    .conclude()
}

fn nohz_full(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let path = "/sys/devices/system/cpu/nohz_full";
    if let Some(config) = ctx
        .environment
        .kernel
        .config
        .known_value()
        .filter(|config| !config.has_option("NO_HZ_FULL"))
    {
        let evidence = format!("{} has CONFIG_NO_HZ_FULL not set", config.source.0);
        return advice_outcome("the kernel cannot stop the tick of a busy CPU", evidence)
            .with_fix(Fix::by_hand("boot a kernel with CONFIG_NO_HZ_FULL (Debian's have it)"))
            .conclude();
    }
    let requested_word = ctx.asked_for("nohz_full");
    let full = require_known(&ctx.environment.kernel.tick.nohz_full).map_err(|unread| {
        match &requested_word {
            Some(asked) => {
                unknown_outcome(format!("/proc/cmdline asks for {asked}; {}", unread.evidence))
            }
            None => unread,
        }
    })?;
    if cpus.is_subset(full) {
        return ok_outcome("the tick stops on all of them", format_evidence(path, full)).conclude();
    }
    let mut message = format!("CPUs {} are interrupted by every tick", cpus.difference(full));
    let mut fix = None;
    match requested_word.filter(|_| full.is_empty()) {
        Some(asked) => message += &format!(": {asked} is asked for and not in force"),
        None => {
            let wanted = ctx.to_isolate().map(|cpus| cpus.union(full).to_string());
            fix = wanted.and_then(|cpus| ctx.boot_parameter("nohz_full", &cpus));
        }
    }
    match cpus.intersection(full).is_empty() {
        true => advice_outcome(message, format_evidence(path, full)).fix_by(fix),
        false => warning_outcome(message, format_evidence(path, full)).fix_by(fix),
    }
    .conclude()
}

fn nohz_full_isolated(ctx: &Context) -> Conclusion {
    let Fact::Known(full) = &ctx.environment.kernel.tick.nohz_full else {
        let config = ctx.kernel_config()?;
        if config.has_option("NO_HZ_FULL") {
            return unknown_outcome(unknown_reason(&ctx.environment.kernel.tick.nohz_full))
                .conclude();
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
        true => ok_outcome("all CPUs in nohz_full= are isolated", evidence),
        false => {
            warning_outcome(format!("CPUs {shared} are in nohz_full=, but not isolated"), evidence)
                .fix_by(
                    has_cpus_left(ctx, full)
                        .then(|| {
                            ctx.boot_parameter("isolcpus", &format!("managed_irq,domain,{full}"))
                        })
                        .flatten(),
                )
        }
    }
    .conclude()
}

/// Whether CPUs remain besides these.
fn has_cpus_left(ctx: &Context, cpus: &CpuSet) -> bool {
    ctx.environment.topology.online.known_value().is_some_and(|online| !online.is_subset(cpus))
}

/// The CPUs with offloaded callbacks: no file shows the set in force. The last list counts; the
/// kernel offloads all CPUs if it cannot parse it, which before Linux 5.14 includes `all`
/// (kernel/rcu/tree_nocb.h, rcu_nocb_setup and rcu_init_nohz).
fn offloaded_cpus(ctx: &Context) -> Result<(CpuSet, Option<String>, String), CheckOutcome> {
    let line = ctx.command_line()?;
    let possible_cpus = || require_known(&ctx.environment.topology.possible).cloned();
    let full = ctx.environment.kernel.tick.nohz_full.known_value().cloned().unwrap_or_default();
    let Some(asked) = line.last_value("rcu_nocbs") else {
        let by_default =
            ctx.kernel_config().is_ok_and(|config| config.has_option("RCU_NOCB_CPU_DEFAULT_ALL"));
        if by_default && full.is_empty() {
            let evidence = "the kernel has CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y";
            return Ok((possible_cpus()?, None, evidence.into()));
        }
        let evidence =
            format!("/proc/cmdline has no rcu_nocbs=; with nohz_full that makes CPUs `{full}`");
        return Ok((full, None, evidence));
    };
    let evidence = format!("/proc/cmdline has rcu_nocbs={asked}");
    let (cpus, open, evidence) = match ctx.boot_list(&asked) {
        BootList::Cpus(cpus) => (cpus, None, evidence),
        BootList::Refused(_) if asked.eq_ignore_ascii_case("all") => {
            (possible_cpus()?, None, evidence)
        }
        BootList::Refused(why) => (
            possible_cpus()?,
            None,
            format!("{evidence}: {why}, and the kernel takes all CPUs then"),
        ),
        BootList::Unknown(why) => (CpuSet::new(), Some(why), evidence),
    };
    let evidence = match full.is_empty() {
        true => evidence,
        false => format!("{evidence}; nohz_full= makes it CPUs `{full}` too"),
    };
    Ok((cpus.union(&full), open, evidence))
}

fn rcu_callbacks(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    if let Some(config) = ctx.environment.kernel.config.known_value()
        && !config.has_option("RCU_NOCB_CPU")
    {
        return advice_outcome(
            "the kernel cannot move RCU callbacks",
            format!("{} has CONFIG_RCU_NOCB_CPU not set", config.source.0),
        )
        .with_fix(Fix::by_hand("boot a kernel with CONFIG_RCU_NOCB_CPU (Debian's have it)"))
        .conclude();
    }
    let (covered, open, evidence) = offloaded_cpus(ctx)?;
    let left = cpus.difference(&covered);
    if left.is_empty() {
        return ok_outcome("RCU callbacks run elsewhere", evidence).conclude();
    }
    if let Some(why) = open {
        return unknown_outcome(format!("{evidence}: {why}")).conclude();
    }
    let fix = ctx.boot_parameter("rcu_nocbs", &cpus.union(&covered).to_string());
    advice_outcome(format!("CPUs {left} run RCU callbacks themselves"), evidence)
        .fix_by(fix)
        .conclude()
}

/// Isolation keeps services off CPUs only while no affinity is set: a set affinity overrides it for
/// isolated CPUs, but not for those in partitions.
fn systemd_affinity(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    if !ctx.files().exists("/run/systemd/system") {
        return not_applicable("systemd does not run here", "/run/systemd/system is not there")
            .conclude();
    }
    let line = ctx.command_line()?;
    let affinity = Affinity::read(ctx.files(), line).map_err(unknown_outcome)?;
    let rest = ctx.housekeeping_cpus()?;
    let fix = (!rest.is_empty()).then(|| {
        let instead = match line.has_parameter("systemd.cpu_affinity") {
            true => "systemd.cpu_affinity= on the kernel's command line",
            false => "CPUAffinity= in /etc/systemd/system.conf, without other lines of its kind,",
        };
        Fix::by_hand(format!("set {rest} as {instead} and restart"))
    });
    let settings = match affinity.settings.is_empty() {
        true => "/etc/systemd/system.conf sets no CPUAffinity=".to_owned(),
        false => join_some(&affinity.settings),
    };
    let free = cpus.difference(&ctx.cgroups.partitioned);
    match affinity.cpus {
        Some(set) if set.intersection(&free).is_empty() => {
            ok_outcome("services avoid these CPUs", settings)
        }
        Some(set) => {
            advice_outcome(format!("services may run on all of CPUs {set}"), settings).fix_by(fix)
        }
        None => {
            let (apart, evidence) = set_apart(ctx)?;
            match cpus.is_subset(&apart) {
                true => ok_outcome("isolation keeps services off the real-time CPUs", evidence),
                false => advice_outcome("services start on all CPUs", settings).fix_by(fix),
            }
        }
    }
    .conclude()
}
