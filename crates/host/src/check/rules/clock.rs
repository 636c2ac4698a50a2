//! Clocks and timers.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, require_known};
use crate::check::outcome::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "high-resolution-timers",
        group: RuleGroup::Clock,
        title: "timers fire between ticks",
        why: "Without high-resolution timers every timer waits for the next tick, up to 10 ms.",
        source: "Documentation/timers/hrtimers.rst",
        evaluate: high_resolution_timers,
    },
    Rule {
        id: "clocksource",
        group: RuleGroup::Clock,
        title: "the clock source is a register of the processor",
        why: "Reading the HPET or the ACPI timer takes a microsecond or more and a system call \
              each time.",
        source: "Documentation/timers/timekeeping.rst",
        evaluate: check_clocksource,
    },
    Rule {
        id: "tsc-stability",
        group: RuleGroup::Clock,
        title: "the time stamp counter has a constant rate in all power states",
        why: "If the counter changes its rate or stops in idle states, the kernel marks it \
              unstable and switches to another clock source at run time.",
        source: "arch/x86/kernel/tsc.c",
        evaluate: tsc_stability,
    },
    Rule {
        id: "tsc-deadline-timer",
        group: RuleGroup::Clock,
        title: "the local APIC timer has the TSC-deadline mode",
        why: "The older one-shot mode counts down with a slower clock: each expiry is rounded, and \
              programming takes longer.",
        source: "arch/x86/kernel/apic/apic.c",
        evaluate: tsc_deadline_timer,
    },
    Rule {
        id: "clock-event-device",
        group: RuleGroup::Clock,
        title: "each CPU has a timer of its own",
        why: "With a timer that all CPUs share, each expiry is forwarded to its CPU by an IPI.",
        source: "kernel/time/tick-broadcast.c",
        evaluate: clock_event_device,
    },
    Rule {
        id: "timer-migration",
        group: RuleGroup::Clock,
        title: "timers stay on the CPU that set them",
        why: "With timer migration, a busy CPU, possibly a real-time one, handles the timers of \
              idle CPUs.",
        source: "kernel/time/timer.c, timer_migration_handler; TuneD, profiles/cpu-partitioning; \
                 Red Hat, telco RAN reference design",
        evaluate: timer_migration,
    },
];

/// The state shown in /proc/timer_list; without it, the parameter parsed like the kernel does
/// (kernel/time/hrtimer.c, setup_hrtimer_hres; kstrtobool).
fn high_resolution_timers(ctx: &Context) -> Conclusion {
    let tick = &ctx.environment.kernel.tick;
    let source = &tick.high_resolution_source;
    let active = *require_known(&tick.high_resolution)?;
    let switched_off = ctx
        .command_line()
        .ok()
        .and_then(|line| line.last_value("highres"))
        .filter(|value| is_no(value) && (!active || source != "/proc/timer_list"));
    match (active, switched_off) {
        (_, Some(value)) => {
            bad_outcome("timers fire at ticks only", format!("/proc/cmdline has highres={value}"))
                .with_fix(Fix::by_hand(format!(
                    "remove `highres={value}` from the kernel's command line"
                )))
        }
        (true, None) => ok_outcome("timers have the resolution of the clock", source.to_string()),
        (false, None) => bad_outcome("timers fire at ticks only", source.to_string()).with_fix(
            Fix::by_hand("boot a kernel with CONFIG_HIGH_RES_TIMERS and a stable clock source"),
        ),
    }
    .conclude()
}

/// Values that the kernel's kstrtobool reads as false: `n`, `0`, `f` and `off`, by their
/// beginnings.
fn is_no(value: &str) -> bool {
    let mut letters = value.chars().map(|c| c.to_ascii_lowercase());
    match letters.next() {
        Some('n' | '0' | 'f') => true,
        Some('o') => letters.next() == Some('f'),
        _ => false,
    }
}

/// Clock sources behind a slow bus.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

fn check_clocksource(ctx: &Context) -> Conclusion {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = require_known(&ctx.environment.clock.current)?;
    let tsc_is_there = ctx
        .environment
        .clock
        .available
        .known_value()
        .is_some_and(|all| all.iter().any(|name| name == "tsc"));
    let slow = SLOW.contains(&current.as_str());
    let outcome = match (slow, current != "tsc" && tsc_is_there) {
        (true, _) => bad_outcome(
            format!("reading the clock {current} is slow"),
            format_evidence(path, current),
        ),
        (false, true) => advice_outcome(
            format!("the clock source is {current}, although the processor's own is available"),
            format_evidence(path, current),
        ),
        (false, false) => {
            return ok_outcome(
                format!("the clock source is {current}"),
                format_evidence(path, current),
            )
            .conclude();
        }
    };
    match tsc_is_there {
        true => outcome.with_fix(Fix::write(path, "tsc")),
        false => outcome.with_fix(Fix::by_hand(
            "see why the kernel refused the processor's counter: dmesg | grep -i clocksource",
        )),
    }
    .conclude()
}

fn tsc_stability(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let tsc = require_known(&ctx.environment.machine.tsc)?;
    match (tsc.constant, tsc.nonstop) {
        (true, true) => ok_outcome(
            "the counter is constant and never stops",
            "/proc/cpuinfo has constant_tsc and nonstop_tsc",
        ),
        (false, _) => warning_outcome(
            "the counter changes its rate with the CPU's frequency",
            "/proc/cpuinfo lacks constant_tsc",
        ),
        (true, false) => warning_outcome(
            "the counter stops in deep idle states",
            "/proc/cpuinfo lacks nonstop_tsc",
        )
        .fix_by(ctx.boot_parameter("processor.max_cstate", "1")),
    }
    .conclude()
}

fn tsc_deadline_timer(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    match require_known(&ctx.environment.machine.tsc)?.deadline_timer {
        true => ok_outcome(
            "the timer has the TSC-deadline mode",
            "/proc/cpuinfo has tsc_deadline_timer",
        ),
        false => advice_outcome(
            "the timer has no TSC-deadline mode",
            "/proc/cpuinfo lacks tsc_deadline_timer",
        ),
    }
    .conclude()
}

/// Devices that are not per CPU (drivers/clocksource, arch/x86/kernel/hpet.c, i8253.c).
fn clock_event_device(ctx: &Context) -> Conclusion {
    let path = "/sys/devices/system/clockevents/clockevent0/current_device";
    let device = require_known(&ctx.environment.kernel.tick.event_device)?;
    if device.is_empty() {
        return unknown_outcome(format!("{path} is empty")).conclude();
    }
    let shared = ["hpet", "pit"].contains(&device.as_str());
    match shared {
        false => ok_outcome(format!("the timer device is {device}"), format_evidence(path, device)),
        true => warning_outcome(
            format!("the timer device {device} is slow and shared"),
            format_evidence(path, device),
        )
        .with_fix(Fix::by_hand(
            "remove `nolapic`, `noapic` and `nolapic_timer` from the kernel's command line",
        )),
    }
    .conclude()
}

/// On PREEMPT_RT vendors disagree. TuneD's profile cpu-partitioning and Ubuntu's real-time
/// documentation set 0; Red Hat's reference for telecommunication (RAN) sets 1: unpinned timers
/// then move from nohz_full CPUs to the housekeeping ones (kernel/sched/core.c,
/// get_nohz_timer_target). Neither is advised there.
fn timer_migration(ctx: &Context) -> Conclusion {
    ctx.dedicated_cpus()?;
    let path = "/proc/sys/kernel/timer_migration";
    let value = ctx.number_of(path, "NO_HZ_COMMON")?;
    let evidence = format_evidence(path, value);
    let real_time = ctx.environment.kernel.is_real_time() == Some(true);
    let disagreement = "vendors disagree for PREEMPT_RT: 0 (TuneD's cpu-partitioning, Ubuntu) \
                keeps timers on the CPU that set them, 1 (Red Hat's RAN reference) moves them \
                from nohz_full CPUs to housekeeping CPUs";
    match (value, real_time) {
        (0, false) => ok_outcome("timers do not migrate", evidence),
        (0, true) => ok_outcome(format!("timers do not migrate; {disagreement}"), evidence),
        (_, false) => advice_outcome("timers of idle CPUs migrate to busy ones", evidence)
            .with_fix(Fix::write(path, "0")),
        (_, true) => advice_outcome(format!("timers migrate; {disagreement}"), evidence)
            .with_fix(Fix::by_hand(format!("measure with both: echo 0 > {path}; echo 1 > {path}"))),
    }
    .conclude()
}
