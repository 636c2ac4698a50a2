//! Checks and tracers that take time.

use super::{Rule, RuleGroup};
use crate::check::context::Context;
use crate::check::outcome::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "lock-debugging",
        group: RuleGroup::Debugging,
        title: "the kernel is built without lock debugging",
        why: "Each lock operation is recorded and checked, which makes kernel code several times \
              slower.",
        source: "Documentation/locking/lockdep-design.rst",
        evaluate: |ctx| {
            built_with(
                ctx,
                bad_outcome,
                &[
                    "LOCKDEP",
                    "PROVE_LOCKING",
                    "DEBUG_LOCK_ALLOC",
                    "LOCK_STAT",
                    "DEBUG_SPINLOCK",
                    "DEBUG_MUTEXES",
                    "DEBUG_RT_MUTEXES",
                    "PROVE_RCU",
                ],
            )
        },
    },
    Rule {
        id: "sanitizers",
        group: RuleGroup::Debugging,
        title: "the kernel is built without sanitizers and coverage",
        why: "They add code to every memory access or every branch.",
        source: "Documentation/dev-tools/kasan.rst, kcsan.rst, kcov.rst",
        evaluate: |ctx| {
            built_with(ctx, bad_outcome, &["KASAN", "KCSAN", "KMSAN", "KCOV", "GCOV_KERNEL"])
        },
    },
    Rule {
        id: "memory-debugging",
        group: RuleGroup::Debugging,
        title: "the kernel is built without memory debugging",
        why: "The kernel fills, checks and scans memory during allocations.",
        source: "mm/Kconfig.debug",
        evaluate: |ctx| {
            built_with(
                ctx,
                warning_outcome,
                &["SLUB_DEBUG_ON", "DEBUG_OBJECTS", "DEBUG_KMEMLEAK", "DEBUG_VM"],
            )
        },
    },
    Rule {
        id: "preemption-debugging",
        group: RuleGroup::Debugging,
        title: "the kernel is built without checks of preemption and sleeping",
        why: "Each use of per-CPU data and each function that may sleep is checked.",
        source: "lib/Kconfig.debug, DEBUG_PREEMPT and DEBUG_ATOMIC_SLEEP",
        evaluate: |ctx| built_with(ctx, warning_outcome, &["DEBUG_PREEMPT", "DEBUG_ATOMIC_SLEEP"]),
    },
    Rule {
        id: "irqsoff-tracers-built",
        group: RuleGroup::Debugging,
        title: "the kernel is built without the irqsoff and preemptoff tracers",
        why: "Even if they are not used, each change of the interrupt flag calls a function.",
        source: "kernel/trace/Kconfig, IRQSOFF_TRACER",
        evaluate: |ctx| built_with(ctx, advice_outcome, &["IRQSOFF_TRACER", "PREEMPT_TRACER"]),
    },
    Rule {
        id: "current-tracer",
        group: RuleGroup::Debugging,
        title: "no tracer is enabled",
        why: "The function tracers record every call in the kernel.",
        source: "Documentation/trace/ftrace.rst, current_tracer",
        evaluate: current_tracer,
    },
    Rule {
        id: "trace-events",
        group: RuleGroup::Debugging,
        title: "no trace event is enabled",
        why: "Each enabled event is written to the trace buffer where it occurs.",
        source: "Documentation/trace/events.rst",
        evaluate: trace_events,
    },
    Rule {
        id: "stack-tracer",
        group: RuleGroup::Debugging,
        title: "the stack tracer is off",
        why: "It checks the stack at every function call.",
        source: "Documentation/trace/ftrace.rst, Stack trace",
        evaluate: stack_tracer,
    },
    Rule {
        id: "scheduler-statistics",
        group: RuleGroup::Debugging,
        title: "scheduler statistics are off",
        why: "They are updated at each wake-up and each context switch.",
        source: "Documentation/scheduler/sched-stats.rst",
        evaluate: scheduler_statistics,
    },
];

/// One of the constructors of an outcome.
type Judge = fn(String, String) -> CheckOutcome;

fn built_with(ctx: &Context, judge: Judge, options: &[&str]) -> Conclusion {
    let config = ctx.kernel_config()?;
    let on: Vec<String> = options
        .iter()
        .filter(|option| config.has_option(option))
        .map(|option| format!("CONFIG_{option}"))
        .collect();
    if on.is_empty() {
        return ok_outcome(
            "none of these is built in",
            format!("{} sets none of CONFIG_{}", config.source.0, options.join(", ")),
        )
        .conclude();
    }
    judge(
        format!("the kernel is built with {}", join_some(&on)),
        format!("{} sets them", config.source.0),
    )
    .with_fix(Fix::by_hand("boot a kernel that is built without them"))
    .conclude()
}

fn stack_tracer(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/kernel/stack_tracer_enabled";
    match ctx.number_of(path, "STACK_TRACER")? {
        0 => ok_outcome("the stack tracer is off", format_evidence(path, 0)),
        on => warning_outcome("the stack tracer is on", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn scheduler_statistics(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/kernel/sched_schedstats";
    match ctx.number_of(path, "SCHEDSTATS")? {
        0 => ok_outcome("scheduler statistics are off", format_evidence(path, 0)),
        on => advice_outcome("scheduler statistics are counted", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn current_tracer(ctx: &Context) -> Conclusion {
    let (path, tracer) = ctx.read_tracefs("current_tracer")?;
    if tracer == "nop" {
        return ok_outcome("no tracer is enabled", format_evidence(&path, tracer)).conclude();
    }
    if tracer.is_empty() {
        return unknown_outcome(format!("{path} is empty")).conclude();
    }
    let (switch, on) = ctx.read_tracefs("tracing_on")?;
    let evidence =
        format!("{}; {}", format_evidence(&path, &tracer), format_evidence(&switch, &on));
    let fix = Fix::write(path, "nop");
    // The hooks of a selected tracer take time even if the buffer is off.
    match on == "0" {
        true => advice_outcome(format!("the tracer {tracer} is selected, but stopped"), evidence)
            .with_fix(fix),
        false => warning_outcome(format!("the tracer {tracer} is enabled"), evidence).with_fix(fix),
    }
    .conclude()
}

fn trace_events(ctx: &Context) -> Conclusion {
    let (path, events) = ctx.read_tracefs("set_event")?;
    let on: Vec<String> =
        events.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    if on.is_empty() {
        return ok_outcome("no trace event is enabled", format!("{path} is empty")).conclude();
    }
    advice_outcome(
        format!("{} trace events are enabled", on.len()),
        format!("{path}: {}", join_some(&on)),
    )
    .with_fix(Fix::by_hand(format!("echo > {path}")))
    .conclude()
}
