//! The kernel's own periodic work.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, as_mask};
use crate::check::outcome::*;
use punctual_core::CpuSet;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "workqueues",
        group: RuleGroup::Housekeeping,
        title: "unbound workqueues run on other CPUs",
        why: "Workers of unbound workqueues run on any CPU of this mask.",
        source: "Documentation/core-api/workqueue.rst, Affinity Scopes",
        evaluate: check_workqueues,
    },
    Rule {
        id: "writeback-workqueue",
        group: RuleGroup::Housekeeping,
        title: "writeback runs on other CPUs",
        why: "The writeback workqueue has a mask of its own, beside that of all unbound ones.",
        source: "Documentation/core-api/workqueue.rst",
        evaluate: writeback_workqueue,
    },
    Rule {
        id: "nmi-watchdog",
        group: RuleGroup::Housekeeping,
        title: "the hard-lockup watchdog is off",
        why: "It takes a performance counter and sends a non-maskable interrupt to each CPU every \
              few seconds.",
        source: "Documentation/admin-guide/lockup-watchdogs.rst",
        evaluate: nmi_watchdog,
    },
    Rule {
        id: "soft-watchdog",
        group: RuleGroup::Housekeeping,
        title: "the soft-lockup watchdog excludes real-time CPUs",
        why: "Its thread runs on each CPU of its mask every few seconds, above every real-time \
              task.",
        source: "Documentation/admin-guide/lockup-watchdogs.rst",
        evaluate: soft_watchdog,
    },
    Rule {
        id: "hung-task-detector",
        group: RuleGroup::Housekeeping,
        title: "the hung-task detector is off or has a long timeout",
        why: "It walks all tasks, and reports tasks as hung that wait behind real-time tasks.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, hung_task_timeout_secs",
        evaluate: hung_task_detector,
    },
    Rule {
        id: "machine-check-polling",
        group: RuleGroup::Housekeeping,
        title: "corrected machine checks are not polled",
        why: "Each CPU reads its error banks in a timer, by default every five minutes.",
        source: "Documentation/arch/x86/x86_64/machinecheck.rst, check_interval",
        evaluate: machine_check_polling,
    },
    Rule {
        id: "vm-statistics",
        group: RuleGroup::Housekeeping,
        title: "vm statistics are updated rarely",
        why: "A worker on each CPU folds its counters into the global ones at this interval.",
        source: "Documentation/admin-guide/sysctl/vm.rst, stat_interval",
        evaluate: vm_statistics,
    },
    Rule {
        id: "console-messages",
        group: RuleGroup::Housekeeping,
        title: "kernel messages do not flood the console",
        why: "Kernels before 6.12 write messages to a slow console with interrupts disabled, and \
              many console drivers still do.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, printk",
        evaluate: console_messages,
    },
    Rule {
        id: "serial-console",
        group: RuleGroup::Housekeeping,
        title: "no serial port is a console",
        why: "At 115,200 baud a line of 80 characters takes 7 ms, during which the writing CPU may \
              be blocked.",
        source: "Documentation/admin-guide/serial-console.rst",
        evaluate: serial_console,
    },
    Rule {
        id: "access-times",
        group: RuleGroup::Housekeeping,
        title: "reading a file does not write to the output's file system",
        why: "With strict access times every read becomes a write to the journal, and a \
              synchronous mount waits for the disk each time.",
        source: "mount(8), relatime",
        evaluate: access_times,
    },
];

/// The default is one second; tuned's real-time profiles set ten.
const STAT_INTERVAL: i64 = 10;
/// tuned's real-time profiles set ten minutes instead of two.
const HUNG_TASK: i64 = 600;
/// KERN_WARNING is 4: a level of 5 shows warnings and worse (include/linux/kern_levels.h).
const QUIET: i64 = 5;

fn mask_leaves_out(ctx: &Context, path: &str, work: &str) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let text = ctx.read_setting(path)?;
    let rest = ctx.housekeeping_cpus()?;
    match as_mask(path, &text)?.intersection(cpus).is_empty() {
        true => ok_outcome(format!("{work} runs on other CPUs"), format_evidence(path, text)),
        false if rest.is_empty() => advice_outcome(
            format!("{work} may run on the real-time CPUs"),
            format_evidence(path, text),
        ),
        false => advice_outcome(
            format!("{work} may run on the real-time CPUs"),
            format_evidence(path, text),
        )
        .with_fix(Fix::write(path, rest.to_mask())),
    }
    .conclude()
}

fn check_workqueues(ctx: &Context) -> Conclusion {
    mask_leaves_out(ctx, "/sys/devices/virtual/workqueue/cpumask", "unbound work")
}

fn writeback_workqueue(ctx: &Context) -> Conclusion {
    mask_leaves_out(ctx, "/sys/devices/virtual/workqueue/writeback/cpumask", "writeback")
}

fn nmi_watchdog(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/kernel/nmi_watchdog";
    match ctx.number_of(path, "LOCKUP_DETECTOR")? {
        0 => ok_outcome("the hard-lockup watchdog is off", format_evidence(path, 0)),
        on => advice_outcome("every CPU gets the watchdog's interrupts", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn soft_watchdog(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let (switch, soft) = ("/proc/sys/kernel/watchdog", "/proc/sys/kernel/soft_watchdog");
    for path in [switch, soft] {
        if ctx.number_of(path, "LOCKUP_DETECTOR")? == 0 {
            return ok_outcome("the soft-lockup watchdog is off", format_evidence(path, 0))
                .conclude();
        }
    }
    let path = "/proc/sys/kernel/watchdog_cpumask";
    let text = ctx.read_setting(path)?;
    let mask: CpuSet = text.parse().map_err(|why| unknown_outcome(format!("{path}: {why}")))?;
    let rest = ctx.housekeeping_cpus()?;
    let fix =
        if rest.is_empty() { Fix::write(switch, "0") } else { Fix::write(path, rest.to_string()) };
    match mask.intersection(cpus).is_empty() {
        true => ok_outcome(
            "the soft-lockup watchdog excludes the real-time CPUs",
            format_evidence(path, text),
        ),
        false => advice_outcome(
            "the soft-lockup watchdog runs on the real-time CPUs",
            format_evidence(path, text),
        )
        .with_fix(fix),
    }
    .conclude()
}

fn hung_task_detector(ctx: &Context) -> Conclusion {
    ctx.dedicated_cpus()?;
    let path = "/proc/sys/kernel/hung_task_timeout_secs";
    match ctx.number_of(path, "DETECT_HUNG_TASK")? {
        0 => ok_outcome("the hung-task detector is off", format_evidence(path, 0)),
        seconds if seconds >= HUNG_TASK => {
            ok_outcome("the hung-task detector has a long timeout", format_evidence(path, seconds))
        }
        seconds => advice_outcome(
            format!("the hung-task detector reports a task as hung after {seconds} s"),
            format_evidence(path, seconds),
        )
        .with_fix(Fix::write(path, HUNG_TASK.to_string())),
    }
    .conclude()
}

fn machine_check_polling(ctx: &Context) -> Conclusion {
    ctx.only_x86()?;
    let path = "/sys/devices/system/machinecheck/machinecheck0/check_interval";
    let text = ctx.unless_guest(ctx.setting_of(path, "X86_MCE"), "the state of the hardware")?;
    match text.as_str() {
        "" => unknown_outcome(format!("{path} is empty")),
        "0" => ok_outcome("nothing is polled", format_evidence(path, text)),
        _ => advice_outcome("every CPU polls for errors", format_evidence(path, text))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn vm_statistics(ctx: &Context) -> Conclusion {
    ctx.dedicated_cpus()?;
    let path = "/proc/sys/vm/stat_interval";
    match ctx.read_number(path)? {
        seconds if seconds >= STAT_INTERVAL => {
            ok_outcome("vm statistics are updated rarely", format_evidence(path, seconds))
        }
        seconds => advice_outcome(
            format!("every CPU folds its counters every {seconds} s"),
            format_evidence(path, seconds),
        )
        .with_fix(Fix::write(path, STAT_INTERVAL.to_string())),
    }
    .conclude()
}

fn console_messages(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/kernel/printk";
    let text = ctx.read_setting(path)?;
    let level: i64 = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| unknown_outcome(format_evidence(path, &text)))?;
    match level <= QUIET {
        true => ok_outcome(
            format!("only messages below level {level} are shown"),
            format_evidence(path, text),
        ),
        false => advice_outcome(
            format!("messages below level {level} are shown, notices among them"),
            format_evidence(path, text),
        )
        .with_fix(Fix::write(path, "4")),
    }
    .conclude()
}

fn serial_console(ctx: &Context) -> Conclusion {
    let path = "/sys/class/tty/console/active";
    let active = ctx.read(path)?;
    let serial: Vec<String> = active
        .split_whitespace()
        .filter(|name| name.starts_with("tty") && name.contains(['S', 'A', 'U', 'O', 'H']))
        .map(str::to_owned)
        .collect();
    if serial.is_empty() {
        return ok_outcome("no serial port is a console", format_evidence(path, active)).conclude();
    }
    advice_outcome(
        format!("{} carries kernel messages", join_some(&serial)),
        format_evidence(path, active),
    )
    .with_fix(Fix::by_hand(
        "remove `console=` of the serial port from the kernel's command line, or boot with \
             `quiet`",
    ))
    .conclude()
}

fn access_times(ctx: &Context) -> Conclusion {
    let mounts = ctx.read("/proc/self/mounts")?;
    let Some(mount) = super::super::cgroups::mount_of(&mounts, &ctx.output) else {
        return unknown_outcome(format!(
            "/proc/self/mounts has no mount that holds {}",
            ctx.output
        ))
        .conclude();
    };
    let has = |option: &str| mount.options.split(',').any(|o| o == option);
    if ["tmpfs", "ramfs", "rootfs"].contains(&mount.kind.as_str()) {
        let evidence =
            format_evidence("/proc/self/mounts", format!("{} {}", mount.point, mount.kind));
        return not_applicable("the output is in memory", evidence).conclude();
    }
    let evidence = format_evidence(
        "/proc/self/mounts",
        format!("{} {} {}", mount.point, mount.kind, mount.options),
    );
    let remount = |option: &str| Fix::by_hand(format!("mount -o remount,{option} {}", mount.point));
    if has("sync") {
        return warning_outcome("every write of the output waits for the disk", evidence)
            .with_fix(remount("async"))
            .conclude();
    }
    match ["relatime", "noatime", "ro", "lazytime"].into_iter().any(has) {
        true => ok_outcome("reading does not write each time", evidence),
        false => advice_outcome("every read of a file writes its access time", evidence)
            .with_fix(remount("noatime")),
    }
    .conclude()
}
