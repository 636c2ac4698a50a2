//! Facilities that punctual can use to find the cause of a latency and to isolate.

use super::{Rule, RuleGroup};
use crate::check::Capability;
use crate::check::context::{Context, require_known};
use crate::check::outcome::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cpuset-controller",
        group: RuleGroup::Tools,
        title: "the cpuset controller is available",
        why: "`punctual isolate` uses the cpuset controller, of cgroup version 2 or 1.",
        source: "Documentation/admin-guide/cgroup-v2.rst, Cpuset",
        evaluate: cpuset_controller,
    },
    Rule {
        id: "kernel-recorder",
        group: RuleGroup::Tools,
        title: "kernel events are recorded at the lowest cost",
        why: "`punctual trace` and `explain` fall back to backends with a higher cost and fewer \
              details if the kernel or the rights do not allow more.",
        source: "docs/reference/recorder.md",
        evaluate: kernel_recorder,
    },
    Rule {
        id: "bpf",
        group: RuleGroup::Tools,
        title: "this process may load BPF programs",
        why: "BPF programs count and record in the kernel at the lowest cost.",
        source: "bpf(2), capabilities(7)",
        evaluate: check_bpf,
    },
    Rule {
        id: "kernel-types",
        group: RuleGroup::Tools,
        title: "the kernel describes its types (BTF)",
        why: "BPF programs built elsewhere use BTF to find the fields of kernel structures.",
        source: "Documentation/bpf/btf.rst",
        evaluate: kernel_types,
    },
    Rule {
        id: "lockdown",
        group: RuleGroup::Tools,
        title: "the kernel is not locked down",
        why: "Lockdown refuses kprobes, debugfs and register access even to root; \
              `confidentiality` refuses tracing altogether.",
        source: "kernel_lockdown(7)",
        evaluate: check_lockdown,
    },
    Rule {
        id: "tracefs",
        group: RuleGroup::Tools,
        title: "the kernel's trace buffer can be used",
        why: "It shows which tasks and interrupts ran during a late sample.",
        source: "Documentation/trace/ftrace.rst",
        evaluate: check_tracefs,
    },
    Rule {
        id: "kernel-probes",
        group: RuleGroup::Tools,
        title: "functions of the kernel can be probed",
        why: "A kprobe traces kernel functions that have no tracepoint.",
        source: "Documentation/trace/kprobetrace.rst",
        evaluate: |ctx| probe_events(ctx, "kprobe_events", "KPROBES", "functions of the kernel"),
    },
    Rule {
        id: "user-probes",
        group: RuleGroup::Tools,
        title: "functions of programs can be probed",
        why: "A uprobe measures the duration of a function in an unmodified program.",
        source: "Documentation/trace/uprobetracer.rst",
        evaluate: |ctx| probe_events(ctx, "uprobe_events", "UPROBES", "functions of programs"),
    },
    Rule {
        id: "latency-tracers",
        group: RuleGroup::Tools,
        title: "the kernel has the osnoise, timerlat and hwlat tracers",
        why: "They measure noise and hardware latency from inside the kernel, without a program.",
        source: "Documentation/trace/timerlat-tracer.rst",
        evaluate: latency_tracers,
    },
    Rule {
        id: "perf-events",
        group: RuleGroup::Tools,
        title: "this process may use performance events",
        why: "Sampling and counting need this right, unless the system allows them to all users.",
        source: "Documentation/admin-guide/perf-security.rst",
        evaluate: perf_events,
    },
    Rule {
        id: "hardware-counters",
        group: RuleGroup::Tools,
        title: "the processor's counters can be used",
        why: "Cycles, cache misses and SMIs show whether a slow sample was computing or waiting \
              for memory.",
        source: "perf_event_open(2)",
        evaluate: hardware_counters,
    },
    Rule {
        id: "debugfs",
        group: RuleGroup::Tools,
        title: "debugfs can be read",
        why: "Only debugfs shows the preemption model in force and the runtime of the fair server.",
        source: "kernel/sched/debug.c",
        evaluate: check_debugfs,
    },
];

fn cpuset_controller(ctx: &Context) -> Conclusion {
    match &ctx.cgroups.cpuset {
        punctual_core::Fact::Known((version, point)) => ok_outcome(
            format!("version {version} owns the cpuset controller"),
            format!("/proc/self/mounts: {point}"),
        ),
        other => advice_outcome(
            "no cgroup hierarchy has the cpuset controller",
            crate::check::context::unknown_reason(other),
        )
        .with_fix(Fix::by_hand(
            "mount -t cgroup2 cgroup2 /sys/fs/cgroup; where version 1 holds it: mount -t cgroup \
             -o cpuset cpuset /sys/fs/cgroup/cpuset",
        )),
    }
    .conclude()
}

/// The backends of crates/record, the best first. The recorder mounts tracefs privately if it is
/// not mounted.
fn kernel_recorder(ctx: &Context) -> Conclusion {
    if let Ok(text) = ctx.read("/sys/kernel/security/lockdown")
        && text.contains("[confidentiality]")
    {
        return warning_outcome(
            "no kernel events can be recorded",
            format_evidence("/sys/kernel/security/lockdown", &text),
        )
        .with_fix(Fix::by_hand("boot without `lockdown=`, and without Secure Boot"))
        .conclude();
    }
    let process = ctx.process_facts();
    let has = |capability| require_known(&process.has_capability(capability)).copied();
    let may = has(Capability::SysAdmin)? || has(Capability::Bpf)? && has(Capability::Perfmon)?;
    if !may {
        return advice_outcome(
            "this process cannot record kernel events",
            "/proc/self/status, CapEff: neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON",
        )
        .with_fix(by_root())
        .conclude();
    }
    let lacks = |option: &str| {
        ctx.environment.kernel.config.known_value().is_some_and(|config| !config.has_option(option))
    };
    let types = readable_types(ctx);
    if !lacks("BPF_SYSCALL")
        && let Some(Err(unread)) = types
    {
        return unread.conclude();
    }
    match (lacks("BPF_SYSCALL"), types.is_some(), lacks("FTRACE")) {
        (false, true, _) => ok_outcome(
            "by BPF programs with BTF",
            format!("{BTF} can be read; /proc/self/status, CapEff"),
        ),
        (false, false, false) => advice_outcome(
            "by BPF programs that copy records as tracefs describes them",
            format!("{BTF} is not there"),
        )
        .with_fix(Fix::by_hand("boot a kernel with CONFIG_DEBUG_INFO_BTF (Debian's have it)")),
        (true, _, false) => advice_outcome(
            "by the kernel's trace buffers",
            "the kernel has CONFIG_BPF_SYSCALL not set",
        )
        .with_fix(Fix::by_hand(
            "boot a kernel with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF (Debian's \
                     have them)",
        )),
        (_, _, true) => warning_outcome(
            "no kernel events can be recorded",
            "the kernel has neither BPF with BTF nor CONFIG_FTRACE",
        )
        .with_fix(Fix::by_hand(
            "boot a kernel with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF (Debian's have them)",
        )),
    }
    .conclude()
}

fn check_bpf(ctx: &Context) -> Conclusion {
    let config = ctx.kernel_config()?;
    if !config.has_option("BPF_SYSCALL") {
        return advice_outcome(
            "the kernel has no BPF",
            format!("{} has CONFIG_BPF_SYSCALL not set", config.source.0),
        )
        .with_fix(Fix::by_hand("boot a kernel with CONFIG_BPF_SYSCALL"))
        .conclude();
    }
    let process = ctx.process_facts();
    let (admin, bpf) =
        (process.has_capability(Capability::SysAdmin), process.has_capability(Capability::Bpf));
    match *require_known(&admin)? || *require_known(&bpf)? {
        true => ok_outcome(
            "BPF programs may be loaded",
            "/proc/self/status, CapEff; CONFIG_BPF_SYSCALL=y",
        ),
        false => advice_outcome(
            "this process has neither CAP_BPF nor CAP_SYS_ADMIN",
            "/proc/self/status, CapEff",
        )
        .with_fix(by_root()),
    }
    .conclude()
}

fn by_root() -> Fix {
    Fix::by_hand(
        "run as root, or give the program the capabilities: setcap \
         cap_bpf,cap_perfmon,cap_sys_nice,cap_ipc_lock+ep",
    )
}

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Whether the kernel's types can be read, not only listed: `None` if there are none.
fn readable_types(ctx: &Context) -> Option<Result<(), CheckOutcome>> {
    match ctx.files().read_at(BTF, 0, 0) {
        Ok(_) => Some(Ok(())),
        Err(why) if why.is_missing() => None,
        Err(why) => Some(Err(advice_outcome(
            "the kernel describes its types, but this user may not read them",
            why.to_string(),
        )
        .with_fix(Fix::by_hand("run as root, or chmod a+r /sys/kernel/btf/vmlinux")))),
    }
}

fn kernel_types(ctx: &Context) -> Conclusion {
    match readable_types(ctx) {
        Some(Ok(())) => ok_outcome("the kernel describes its types", format!("{BTF} can be read")),
        Some(Err(unread)) => unread,
        None => {
            advice_outcome("the kernel does not describe its types", format!("{BTF} is not there"))
                .with_fix(Fix::by_hand(
                    "boot a kernel with CONFIG_DEBUG_INFO_BTF (Debian's have it)",
                ))
        }
    }
    .conclude()
}

/// securityfs is often not mounted in small systems; without the module there is nothing to lock
/// down.
fn check_lockdown(ctx: &Context) -> Conclusion {
    let path = "/sys/kernel/security/lockdown";
    let text =
        ctx.setting_of(path, "SECURITY_LOCKDOWN_LSM").map_err(|unread| match unread.applies {
            true => {
                unread.with_fix(Fix::by_hand("mount -t securityfs securityfs /sys/kernel/security"))
            }
            false => unread,
        })?;
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word) {
        Some("none") => ok_outcome("the kernel is not locked down", format_evidence(path, &text)),
        Some("integrity") => advice_outcome(
            "kprobes, debugfs and registers are refused",
            format_evidence(path, &text),
        )
        .with_fix(Fix::by_hand("boot without `lockdown=`, and without Secure Boot")),
        Some("confidentiality") => {
            warning_outcome("tracing is refused", format_evidence(path, &text))
                .with_fix(Fix::by_hand("boot without `lockdown=`, and without Secure Boot"))
        }
        _ => unknown_outcome(format_evidence(path, &text)),
    }
    .conclude()
}

fn check_tracefs(ctx: &Context) -> Conclusion {
    let config = ctx.environment.kernel.config.known_value();
    if let Some(config) = config.filter(|config| !config.has_option("FTRACE")) {
        return advice_outcome(
            "the kernel has no tracing",
            format!("{} has CONFIG_FTRACE not set", config.source.0),
        )
        .with_fix(Fix::by_hand("boot a kernel with CONFIG_FTRACE (Debian's have it)"))
        .conclude();
    }
    match ctx.read_tracefs("tracing_on") {
        Ok((path, value)) => {
            ok_outcome("the trace buffer can be used", format_evidence(&path, value))
        }
        Err(unread) => {
            advice_outcome("tracefs is not mounted, or this user may not read it", unread.evidence)
                .with_fix(Fix::by_hand(
                    "mount -t tracefs tracefs /sys/kernel/tracing, and run as root",
                ))
        }
    }
    .conclude()
}

fn probe_events(ctx: &Context, file: &str, option: &str, what: &str) -> Conclusion {
    if let Some(config) =
        ctx.environment.kernel.config.known_value().filter(|config| !config.has_option(option))
    {
        return advice_outcome(
            format!("{what} cannot be probed"),
            format!("{} has CONFIG_{option} not set", config.source.0),
        )
        .with_fix(Fix::by_hand(format!("boot a kernel with CONFIG_{option} (Debian's have it)")))
        .conclude();
    }
    let (path, _) = ctx.read_tracefs(file)?;
    ok_outcome(format!("{what} can be probed"), format!("{path} can be read")).conclude()
}

fn latency_tracers(ctx: &Context) -> Conclusion {
    let wanted = ["osnoise", "timerlat", "hwlat"];
    let (path, text) = ctx.read_tracefs("available_tracers")?;
    let missing: Vec<String> = wanted
        .iter()
        .filter(|tracer| !text.split_whitespace().any(|t| t == **tracer))
        .map(|t| (*t).to_owned())
        .collect();
    match missing.is_empty() {
        true => ok_outcome("the kernel has all three", format_evidence(&path, text)),
        false => advice_outcome(
            format!("{} are missing", join_some(&missing)),
            format_evidence(&path, text),
        )
        .with_fix(Fix::by_hand(
            "Debian builds them into its -rt kernels: apt install linux-image-rt-amd64 or \
                     -rt-arm64",
        )),
    }
    .conclude()
}

fn perf_events(ctx: &Context) -> Conclusion {
    let process = ctx.process_facts();
    let path = "/proc/sys/kernel/perf_event_paranoid";
    let paranoid = ctx.number_of(path, "PERF_EVENTS")?;
    for capability in [Capability::Perfmon, Capability::SysAdmin] {
        if *require_known(&process.has_capability(capability))? {
            let name = capability.name();
            return ok_outcome(format!("this process has {name}"), "/proc/self/status, CapEff")
                .conclude();
        }
    }
    match paranoid <= -1 {
        true => ok_outcome("all users may use them", format_evidence(path, paranoid)),
        false => advice_outcome("only a part of them may be used", format_evidence(path, paranoid))
            .with_fix(by_root()),
    }
    .conclude()
}

/// `cpu` on x86, `armv8_pmuv3_0` and similar on arm64, `cpu_core` and `cpu_atom` on hybrid
/// processors.
fn hardware_counters(ctx: &Context) -> Conclusion {
    let path = "/sys/bus/event_source/devices";
    let devices = ctx.files().list(path).map_err(|why| unknown_outcome(why.to_string()))?;
    let is_cpu = |name: &&String| {
        *name == "cpu"
            || name.starts_with("cpu_")
            || name.contains("pmuv3")
            || name.starts_with("armv")
    };
    match devices.iter().find(is_cpu) {
        Some(device) => ok_outcome("the counters are available", format!("{path}/{device}")),
        None => advice_outcome(
            "the processor has no counters",
            format!("{path} has {}", join_some(&devices)),
        )
        .with_fix(Fix::by_hand(
            "in a guest: let the host pass them through (QEMU: -cpu host,pmu=on)",
        )),
    }
    .conclude()
}

fn check_debugfs(ctx: &Context) -> Conclusion {
    let path = "/sys/kernel/debug";
    match ctx.files().list(path) {
        Ok(names) if !names.is_empty() => {
            ok_outcome("it can be read", format!("{path} has {} entries", names.len()))
        }
        Ok(_) => advice_outcome("debugfs is not mounted", format!("{path} is empty"))
            .with_fix(Fix::by_hand("mount -t debugfs debugfs /sys/kernel/debug")),
        Err(why) if why.is_forbidden() => {
            advice_outcome("this user may not read debugfs", why.to_string())
                .with_fix(Fix::by_hand("run as root"))
        }
        Err(why) => advice_outcome("debugfs is not mounted", why.to_string())
            .with_fix(Fix::by_hand("mount -t debugfs debugfs /sys/kernel/debug")),
    }
    .conclude()
}
