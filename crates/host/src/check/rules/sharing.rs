//! Resources that real-time CPUs share with others: cores, caches, memory.

use super::{Rule, RuleGroup};
use crate::check::context::{Chosen, Context, require_known};
use crate::check::outcome::*;
use crate::environment::Cache;
use punctual_core::{CpuSet, Fact};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "smt-siblings",
        group: RuleGroup::Isolation,
        title: "no real-time CPU shares its core with another",
        why: "Hardware threads of one core share execution units and caches: a task slows down \
              when the sibling is busy.",
        source: "Documentation/admin-guide/cputopology.rst",
        evaluate: smt_siblings,
    },
    Rule {
        id: "shared-cache",
        group: RuleGroup::Isolation,
        title: "real-time CPUs share no second-level cache with others",
        why: "Memory accesses of other CPUs evict the task's data from a shared cache.",
        source: "Documentation/ABI/testing/sysfs-devices-system-cpu, cache",
        evaluate: shared_cache,
    },
    Rule {
        id: "one-memory-node",
        group: RuleGroup::Isolation,
        title: "the real-time CPUs belong to one NUMA node",
        why: "Access to memory of another node takes longer, and the latency depends on where a \
              page is.",
        source: "Documentation/admin-guide/mm/numa_memory_policy.rst",
        evaluate: one_memory_node,
    },
];

fn smt_siblings(ctx: &Context) -> Conclusion {
    let infos = require_known(&ctx.environment.topology.cpus)?;
    let mut shared = CpuSet::new();
    for place in infos.iter().filter(|place| ctx.cpus.contains(place.cpu)) {
        if require_known(&place.siblings)?.len() > 1 {
            shared.insert(place.cpu);
        }
    }
    let files = "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list";
    let Some(first) = shared.first_cpu() else {
        return ok_outcome("each has a core of its own", format!("{files} name one CPU each"))
            .conclude();
    };
    let siblings =
        ctx.environment.topology.siblings_of(first).map(CpuSet::to_string).unwrap_or_default();
    let evidence = format_evidence(
        &format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list"),
        siblings,
    );
    let message = format!("CPUs {shared} share their cores");
    let fix = Fix::by_hand(
        "echo off > /sys/devices/system/cpu/smt/control (takes every second hardware thread \
         offline)",
    );
    match ctx.chosen {
        Chosen::All => advice_outcome(message, evidence).with_fix(fix),
        Chosen::Named | Chosen::Isolated => warning_outcome(message, evidence).with_fix(fix),
    }
    .conclude()
}

fn shared_cache(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let caches = require_known(&ctx.environment.topology.caches)?;
    if caches.is_empty() {
        return unknown_outcome("/sys/devices/system/cpu/cpu*/cache shows no cache").conclude();
    }
    let shared = |cache: &&Cache| {
        cache.level == 2
            && !cache.shared.intersection(cpus).is_empty()
            && !cache.shared.is_subset(cpus)
    };
    match caches.iter().find(shared) {
        None => ok_outcome(
            "no second-level cache is shared with other CPUs",
            "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
        ),
        Some(cache) => {
            let first = cache.shared.first_cpu().unwrap_or_default();
            let path = format!("/sys/devices/system/cpu/cpu{first}/cache/index*/shared_cpu_list");
            advice_outcome(
                "a second-level cache is shared with other CPUs",
                format_evidence(&path, &cache.shared),
            )
            .with_fix(Fix::by_hand(format!(
                "take all of the CPUs {} for real time, or none",
                cache.shared
            )))
        }
    }
    .conclude()
}

fn one_memory_node(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let nodes = match &ctx.environment.topology.nodes {
        Fact::Unavailable(why)
            if ctx.kernel_config().is_ok_and(|config| !config.has_option("NUMA")) =>
        {
            return not_applicable("the system has one NUMA node only", why).conclude();
        }
        nodes => require_known(nodes)?,
    };
    let mut of_ours = Vec::new();
    for node in nodes {
        if !require_known(&node.cpus)?.intersection(cpus).is_empty() {
            of_ours.push(node.node.to_string());
        }
    }
    let evidence = format!("/sys/devices/system/node/node*/cpulist: nodes {}", join_some(&of_ours));
    match of_ours.len() {
        0 => unknown_outcome("/sys/devices/system/node/node*/cpulist name none of the CPUs"),
        1 => ok_outcome("they belong to one NUMA node", evidence),
        n => advice_outcome(format!("they are spread over {n} NUMA nodes"), evidence)
            .with_fix(Fix::by_hand("punctual isolate create --node N")),
    }
    .conclude()
}
