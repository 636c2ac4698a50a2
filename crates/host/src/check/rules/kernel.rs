//! Preemption and scheduling.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, as_number, require_known};
use crate::check::outcome::*;
use crate::check::parameters::{Reader, Readers, words_to_check};
use crate::environment::PreemptionModel;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "preemption-model",
        group: RuleGroup::Kernel,
        title: "the kernel is PREEMPT_RT",
        why: "A woken task waits while the kernel is not preemptible; a PREEMPT_RT kernel is \
              preemptible nearly everywhere, interrupt handlers included.",
        source: "kernel/Kconfig.preempt",
        evaluate: preemption_model,
    },
    Rule {
        id: "preemption-request",
        group: RuleGroup::Kernel,
        title: "the preemption model requested at boot is in force",
        why: "The kernel silently ignores an unknown value of `preempt=`, and architectures \
              without PREEMPT_DYNAMIC ignore the parameter.",
        source: "kernel/sched/core.c, sched_dynamic_mode",
        evaluate: preemption_request,
    },
    Rule {
        id: "threaded-interrupts",
        group: RuleGroup::Kernel,
        title: "interrupt handlers run as threads",
        why: "A threaded handler has a priority, and tasks of higher priority preempt it; other \
              handlers interrupt every task.",
        source: "kernel/irq/manage.c, force_irqthreads",
        evaluate: threaded_interrupts,
    },
    Rule {
        id: "rt-throttling",
        group: RuleGroup::Kernel,
        title: "real-time tasks may use the whole CPU",
        why: "When real-time tasks together reach the limit, and the kernel enforces it, all of \
              them are throttled for the rest of the period.",
        source: "Documentation/scheduler/sched-rt-group.rst",
        evaluate: rt_throttling,
    },
    Rule {
        id: "fair-server",
        group: RuleGroup::Kernel,
        title: "no time is reserved for other tasks on real-time CPUs",
        why: "Since Linux 6.12, a deadline server runs starved fair tasks for up to 50 ms of each \
              second, ahead of real-time tasks.",
        source: "kernel/sched/debug.c, debugfs_fair_server_init",
        evaluate: fair_server,
    },
    Rule {
        id: "rt-group-budget",
        group: RuleGroup::Kernel,
        title: "the task's control group may run real-time tasks",
        why: "With RT_GROUP_SCHED a control group has a real-time budget of its own, and a new \
              one has none: sched_setscheduler(2) fails with EPERM.",
        source: "Documentation/scheduler/sched-rt-group.rst",
        evaluate: rt_group_budget,
    },
    Rule {
        id: "parameter-nobody-reads",
        group: RuleGroup::Kernel,
        title: "every word of the kernel's command line is read by somebody",
        why: "The kernel drops a misspelled parameter, or one of a module that it lacks, with no \
              more than a line in its log: the setting is not in force.",
        source: "init/main.c, unknown_bootoption and print_unknown_bootoptions",
        evaluate: parameter_nobody_reads,
    },
];

fn preemption_model(ctx: &Context) -> Conclusion {
    let preemption = require_known(&ctx.environment.kernel.preemption)?;
    let message = match preemption.stated {
        true => format!("the preemption model is {}", preemption.model),
        false => format!(
            "the preemption model is, by configuration and command line, {}; the kernel itself \
             does not state it",
            preemption.model
        ),
    };
    let evidence = &preemption.evidence;
    let rt = Fix::by_hand(
        "install a kernel with PREEMPT_RT (Debian: apt install linux-image-rt-amd64 or -rt-arm64)",
    );
    match preemption.model {
        PreemptionModel::RealTime => ok_outcome(message, evidence),
        PreemptionModel::Full | PreemptionModel::Lazy => {
            advice_outcome(message, evidence).with_fix(rt)
        }
        PreemptionModel::None | PreemptionModel::Voluntary if preemption.dynamic => {
            bad_outcome(message, evidence).fix_by(ctx.boot_parameter("preempt", "full"))
        }
        PreemptionModel::None | PreemptionModel::Voluntary => {
            bad_outcome(message, evidence).with_fix(rt)
        }
    }
    .conclude()
}

fn debugfs_fix() -> Fix {
    Fix::by_hand("mount -t debugfs debugfs /sys/kernel/debug, and run as root")
}

fn preemption_request(ctx: &Context) -> Conclusion {
    let line = ctx.command_line()?;
    let Some(asked) = line.last_value("preempt") else {
        return ok_outcome("no model was requested at boot", "/proc/cmdline has no preempt=")
            .conclude();
    };
    let preemption = require_known(&ctx.environment.kernel.preemption)?;
    let evidence = format!("/proc/cmdline has preempt={asked}; {}", preemption.evidence);
    if !preemption.stated {
        let evidence = format!("{evidence}; /sys/kernel/debug/sched/preempt cannot be read");
        return unknown_outcome(evidence).with_fix(debugfs_fix()).conclude();
    }
    if asked == preemption.model.to_string() {
        return ok_outcome("the requested model is in force", evidence).conclude();
    }
    // Real-time tasks are preempted as with `full`, whatever the parameter: kernels before 6.13 do
    // not read it, later ones use it for the preemption of fair tasks.
    let known = ["none", "voluntary", "lazy", "full"].contains(&asked.as_str());
    if known && preemption.model == PreemptionModel::RealTime {
        return ok_outcome(
            "PREEMPT_RT is in force, which goes beyond every model of preempt=",
            evidence,
        )
        .conclude();
    }
    let message =
        format!("the requested model is not in force; the model in force is {}", preemption.model);
    warning_outcome(message, evidence)
        .with_fix(Fix::by_hand("remove `preempt=`, or boot a kernel that supports this model"))
        .conclude()
}

fn threaded_interrupts(ctx: &Context) -> Conclusion {
    if ctx.environment.kernel.is_real_time() == Some(true) {
        let evidence = require_known(&ctx.environment.kernel.preemption)?.evidence.clone();
        return ok_outcome("PREEMPT_RT runs interrupt handlers in threads", evidence).conclude();
    }
    if ctx.command_line()?.has_parameter("threadirqs") {
        let config = ctx.environment.kernel.config.known_value();
        if let Some(config) = config.filter(|config| !config.has_option("IRQ_FORCED_THREADING")) {
            return warning_outcome(
                "threadirqs is not in force: this kernel does not know it",
                format!("{} has CONFIG_IRQ_FORCED_THREADING not set", config.source.0),
            )
            .with_fix(Fix::by_hand("boot a kernel with CONFIG_IRQ_FORCED_THREADING"))
            .conclude();
        }
        return ok_outcome("interrupt handlers are threads", "/proc/cmdline has threadirqs")
            .conclude();
    }
    advice_outcome(
        "interrupt handlers do not run in threads",
        "/proc/cmdline has no threadirqs and the kernel is not PREEMPT_RT",
    )
    .fix_by(ctx.boot_parameter("threadirqs", ""))
    .conclude()
}

/// Linux 6.12 enforces the limit only for groups ("sched/rt: Remove default bandwidth control").
fn rt_throttling(ctx: &Context) -> Conclusion {
    let throttling = require_known(&ctx.environment.rt_throttling)?;
    let path = "/proc/sys/kernel/sched_rt_runtime_us";
    let Some(runtime) = throttling.runtime else {
        return ok_outcome("real-time tasks are not throttled", format_evidence(path, "-1"))
            .conclude();
    };
    let evidence = format_evidence(path, runtime.ns() / 1_000);
    if runtime >= throttling.period {
        return ok_outcome("the limit is the whole period", evidence).conclude();
    }
    let numbers = ctx.environment.kernel.release_numbers();
    let groups = ctx
        .environment
        .kernel
        .config
        .known_value()
        .is_some_and(|config| config.has_option("RT_GROUP_SCHED"));
    if numbers >= Some((6, 12)) && !groups {
        return ok_outcome("the limit is not enforced since Linux 6.12; see fair-server", evidence)
            .conclude();
    }
    warning_outcome(
        format!("real-time tasks together may use {runtime} of each {}", throttling.period),
        evidence,
    )
    .with_fix(Fix::write(path, "-1"))
    .conclude()
}

fn fair_server(ctx: &Context) -> Conclusion {
    let release = require_known(&ctx.environment.kernel.release)?;
    if ctx.environment.kernel.release_numbers().is_some_and(|numbers| numbers < (6, 12)) {
        return not_applicable(
            "the fair server came with Linux 6.12",
            format_evidence("/proc/sys/kernel/osrelease", release),
        )
        .conclude();
    }
    let mut lent = Vec::new();
    for cpu in ctx.cpus.iter() {
        let path = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        let runtime = ctx.read(&path).map_err(|unread| unread.with_fix(debugfs_fix()))?;
        if as_number(&path, &runtime)? != 0 {
            lent.push(path);
        }
    }
    let files = "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
    if lent.is_empty() {
        return ok_outcome("no time is reserved for other tasks", format_evidence(files, "0"))
            .conclude();
    }
    let fix = Fix::from_writes(lent.iter().map(|path| (path.clone(), "0".into())).collect());
    // With its server started a CPU has another task to run in time, so its tick goes on
    // (kernel/sched/core.c, sched_can_stop_tick).
    let full = ctx.environment.kernel.tick.nohz_full.known_value().cloned().unwrap_or_default();
    let ticking = full.intersection(&ctx.cpus);
    if !ticking.is_empty() {
        let message = format!(
            "a starved fair task preempts real-time tasks, and its server keeps the tick of CPUs \
             {ticking} alive, which nohz_full= is to stop"
        );
        let evidence = format!("not 0: {}", join_some(&lent));
        return warning_outcome(message, evidence).with_fix(fix).conclude();
    }
    advice_outcome(
        "a starved fair task preempts real-time tasks",
        format!("not 0: {}", join_some(&lent)),
    )
    .with_fix(fix)
    .conclude()
}

fn rt_group_budget(ctx: &Context) -> Conclusion {
    let config = ctx.kernel_config()?;
    if !config.has_option("RT_GROUP_SCHED") {
        let evidence = format!("{} has it not set", config.source.0);
        return not_applicable("the kernel has no CONFIG_RT_GROUP_SCHED", evidence).conclude();
    }
    if ctx.command_line()?.last_value("rt_group_sched").is_some_and(|value| value == "0") {
        return ok_outcome(
            "real-time group scheduling is disabled at boot",
            "/proc/cmdline has rt_group_sched=0",
        )
        .conclude();
    }
    let Some(mount) = &ctx.cgroups.cpu_v1 else {
        // Version 2 has no budgets: the controller refuses real-time tasks outside of the root
        // (cgroup-v2.rst, CPU).
        return advice_outcome(
            "real-time tasks cannot run in a version 2 cgroup with the cpu controller",
            format!("{} has CONFIG_RT_GROUP_SCHED=y", config.source.0),
        )
        .fix_by(ctx.boot_parameter("rt_group_sched", "0"))
        .conclude();
    };
    let groups = ctx.read("/proc/self/cgroup")?;
    let mut own_groups = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
            .filter(|(controllers, _)| controllers.split(',').any(|c| c == "cpu"))
            .map(|(_, path)| path)
    });
    let Some(group) = own_groups.next_back() else {
        return unknown_outcome("/proc/self/cgroup has no line for the controller cpu").conclude();
    };
    let Some(directory) = mount.directory_of(group) else {
        return unknown_outcome(format!(
            "/proc/self/cgroup: `{group}` is outside `{}`, the part that is mounted at {}",
            mount.root, mount.point
        ))
        .conclude();
    };
    let path = format!("{directory}/cpu.rt_runtime_us");
    let budget = as_number(&path, &ctx.read(&path)?)?;
    if budget != 0 {
        return ok_outcome("the group has a real-time budget", format_evidence(&path, budget))
            .conclude();
    }
    bad_outcome("the group of this process has no real-time budget", format_evidence(&path, budget))
        .with_fix(Fix::by_hand(format!(
            "give it one: echo 950000 > {path}; or run in a group that has one: echo $$ > \
             GROUP/tasks"
        )))
        .conclude()
}

fn parameter_nobody_reads(ctx: &Context) -> Conclusion {
    let words = ctx.command_line()?.split_words();
    let release = ctx.environment.kernel.release.known_value().map(String::as_str);
    let readers = Readers::read(ctx.files(), release, &words);
    let (mut nobody, mut open) = (Vec::new(), Vec::new());
    for word in words_to_check(&words) {
        match readers.find_reader(word) {
            Reader::Some => {}
            Reader::Nobody(None) => nobody.push(format!("`{word}`")),
            Reader::Nobody(Some(meant)) => nobody.push(format!("`{word}` (`{meant}` is meant?)")),
            Reader::Unknown(why) => open.push(format!("`{word}`: {why}")),
        }
    }
    if !nobody.is_empty() {
        let evidence = format!("/proc/cmdline has {}", join_some(&nobody));
        return warning_outcome(format!("read by nobody: {}", join_some(&nobody)), evidence)
            .with_fix(Fix::by_hand("correct or remove these words of the kernel's command line"))
            .conclude();
    }
    match open.is_empty() {
        true => ok_outcome("every word is read", "/proc/cmdline"),
        false => unknown_outcome(format!("/proc/cmdline has {}", join_some(&open))).with_fix(
            Fix::by_hand("run as root: /proc/1/environ names the words that nobody read"),
        ),
    }
    .conclude()
}
