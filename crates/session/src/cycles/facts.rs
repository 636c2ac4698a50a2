//! The settings of threads and of the system for the lint.

use punctual_core::{Bytes, Fact, Nanos, Policy};
use punctual_explain::cycles::lint::{Asks, HostFacts, LintViolation, ProcessMemory, ThreadFacts};
use punctual_explain::cycles::{CallNames, WaitSite};
use punctual_host::check::rights::{Obstacle, find_refusal};
use punctual_host::check::{self, Context, RuleVerdict};
use punctual_host::environment::Environment;
use punctual_host::files::Files;
use punctual_sys::attributes::{self, Scheduling};
use std::collections::BTreeMap;

/// The current settings of a thread; `None` if it has ended. `site`: the wait of its cycles.
pub fn of_thread(
    files: &dyn Files,
    tid: u32,
    site: &WaitSite,
    calls: &CallNames,
) -> Option<ThreadFacts> {
    let scheduling = attributes::read_scheduling(tid as i32).ok()?;
    let status = files.read(&format!("/proc/{tid}/status")).ok()?;
    let slack = files.read_trimmed(&format!("/proc/{tid}/timerslack_ns"));
    let slack = slack.map_err(|why| why.to_string()).and_then(|text| {
        text.parse().map(Nanos).map_err(|_| format!("/proc/{tid}/timerslack_ns has no number"))
    });
    Some(ThreadFacts {
        policy: Fact::Known(scheduling.policy),
        affinity: attributes::read_affinity(tid as i32).unwrap_or_default(),
        timer_slack: Fact::from(slack),
        memory: parse_memory(&status),
        realtime_timerfd: site.is_of_file(calls)
            && is_realtime_timerfd(files, tid, site.call.argument),
        asks: Asks { for_timer: site.asks_for_timer(calls), first: is_first(&status) },
        waits_in: calls.get(&site.call.number).cloned().unwrap_or_default(),
        runtime: runtime_of_thread(files, tid),
        ..ThreadFacts::default()
    })
}

/// Programs that run others.
const RUNTIMES: [&str; 7] = ["python", "pypy", "node", "java", "ruby", "perl", "lua"];

/// The interpreter or virtual machine that a thread belongs to, by its program's name.
fn runtime_of_thread(files: &dyn Files, tid: u32) -> Option<String> {
    let program = files.read_link(&format!("/proc/{tid}/exe")).ok()?;
    let name = program.rsplit('/').next()?;
    // `python3.13`, and not `javascript-engine`.
    let is = |known: &str| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    RUNTIMES.iter().any(|known| is(known)).then(|| name.to_owned())
}

/// The refusal of a real-time policy to a thread, and the change that grants it.
pub(crate) fn real_time_refusal(files: &dyn Files, tid: u32) -> Option<LintViolation> {
    let (Obstacle { message, evidence, .. }, remedy) = find_refusal(files, tid)?;
    Some(LintViolation { message, evidence, remedy })
}

/// The kernel threads among these with a lower priority than a real-time thread with this one:
/// their scheduling in words.
pub(crate) fn lower_kernel_threads(
    files: &dyn Files,
    tids: impl Iterator<Item = u32>,
    own: &Scheduling,
) -> BTreeMap<u32, String> {
    let words = |tid: u32| {
        // A kernel thread has no memory of its own.
        let status = files.read(&format!("/proc/{tid}/status")).ok()?;
        let scheduling = attributes::read_scheduling(tid as i32).ok()?;
        let is_one = parse_memory(&status).known_value().is_none()
            && scheduling_rank(&scheduling) < scheduling_rank(own);
        is_one.then(|| (tid, scheduling.to_string()))
    };
    if own.policy.is_real_time() { tids.filter_map(words).collect() } else { BTreeMap::new() }
}

/// The scheduler picks the higher one first.
fn scheduling_rank(scheduling: &Scheduling) -> u32 {
    match (scheduling.policy, scheduling.priority) {
        (Policy::Deadline, _) => u32::MAX,
        (_, priority) => priority.map_or(0, |priority| u32::from(priority.get())),
    }
}

/// Whether a thread is its process's main thread.
fn is_first(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    field("Tgid:").is_some_and(|process| field("Pid:") == Some(process))
}

/// The fields `VmSize` and `VmLck` of proc_pid_status(5).
fn parse_memory(status: &str) -> Fact<ProcessMemory> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(Bytes::kib(kib))
    };
    match (field("VmSize:"), field("VmLck:")) {
        (Some(mapped), Some(locked)) => Fact::Known(ProcessMemory { mapped, locked }),
        _ => Fact::Unavailable("/proc/PID/status has no VmLck".to_owned()),
    }
}

/// Whether a descriptor is a timerfd set to a time of CLOCK_REALTIME (proc_pid_fdinfo(5)): one set
/// relatively does not move with the clock.
fn is_realtime_timerfd(files: &dyn Files, tid: u32, descriptor: u64) -> bool {
    let Ok(text) = files.read(&format!("/proc/{tid}/fdinfo/{descriptor}")) else { return false };
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = field("settime flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
    field("clockid:") == Some("0") && flags.is_some_and(|flags| flags & 1 == 1)
}

/// The results of the check rules for the system.
pub(crate) fn of_host(files: &dyn Files, environment: Environment) -> HostFacts {
    let context = Context::from_environment(files, environment, None);
    let violation = |id: &str| {
        let result = check::evaluate_rule(id, &context)?;
        let violated =
            result.applies && !matches!(result.verdict, RuleVerdict::Ok | RuleVerdict::Unknown);
        violated.then(|| LintViolation {
            message: result.message.clone(),
            evidence: result.evidence.clone(),
            remedy: result.fix,
        })
    };
    let throttled = context.environment.rt_throttling.known_value().cloned();
    let share =
        throttled.and_then(|of| Some(of.runtime?.ns() as f64 / of.period.ns().max(1) as f64));
    // In this order: if the kernel enforces the limit there is no fair server.
    let by_limit = violation("rt-throttling").and_then(|found| Some((share?, found)));
    let by_server = || Some((left_by_fair_server(files, &context)?, violation("fair-server")?));
    HostFacts {
        coarse_timers: violation("high-resolution-timers"),
        limit: by_limit.or_else(by_server),
    }
}

/// The share of a CPU that its fair server leaves to real-time threads.
fn left_by_fair_server(files: &dyn Files, context: &Context<'_>) -> Option<f64> {
    let shares = context.cpus.iter().filter_map(|cpu| {
        let number = |what: &str| {
            let path = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/{what}");
            files.read_trimmed(&path).ok()?.parse::<f64>().ok()
        };
        Some(1.0 - number("runtime")? / number("period").filter(|period| *period > 0.0)?)
    });
    shares.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::files::Root;

    fn root(tree: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in tree {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let root = Root::from_base(directory.path());
        (directory, root)
    }

    #[test]
    fn the_main_thread_is_recognised_by_its_tgid() {
        assert!(is_first("Name:\tx\nTgid:\t7\nNgid:\t0\nPid:\t7\n"));
        assert!(!is_first("Name:\tsysmon\nTgid:\t7\nNgid:\t0\nPid:\t9\n"));
        assert!(!is_first(""));
    }

    #[test]
    fn a_runtime_is_known_by_the_name_of_its_program() {
        let cases = [
            ("/usr/bin/python3.13", true),
            ("/usr/lib/jvm/java-21/bin/java", true),
            ("/usr/bin/node", true),
            ("/opt/pypy3", true),
            ("/usr/bin/javac", false),
            ("/home/u/late-loop", false),
        ];
        for (program, expected) in cases {
            let (directory, root) = root(&[("proc/7/comm", "x")]);
            let link = directory.path().join("proc/7/exe");
            std::os::unix::fs::symlink(program, link).expect("a link");
            assert_eq!(runtime_of_thread(&root, 7).is_some(), expected, "{program}");
        }
        let (_directory, root) = root(&[]);
        assert_eq!(runtime_of_thread(&root, 7), None);
    }

    #[test]
    fn memory_is_read_from_status() {
        let status = "Name:\tx\nVmSize:\t    2300 kB\nVmLck:\t       8 kB\n";
        let (mapped, locked) = (Bytes::kib(2_300), Bytes::kib(8));
        assert_eq!(parse_memory(status), Fact::Known(ProcessMemory { mapped, locked }));
        assert_eq!(parse_memory("Name:\tkthreadd\n").known_value(), None);
    }

    #[test]
    fn kernel_threads_below_a_real_time_thread_are_found() {
        use punctual_core::Priority;
        let files = Root::from_system();
        let comm = files.read_trimmed("/proc/2/comm");
        if comm.as_deref().ok() != Some("kthreadd") {
            println!("SKIPPED: process 2 is no kernel thread here");
            return;
        }
        let tids = || [2, std::process::id()].into_iter();
        let own = Scheduling::new(Policy::Fifo, Priority::new(1));
        let lower = lower_kernel_threads(&files, tids(), &own);
        assert_eq!(lower.keys().collect::<Vec<_>>(), [&2], "this process is none: {lower:?}");
        let other = Scheduling::new(Policy::Other, None);
        assert!(lower_kernel_threads(&files, tids(), &other).is_empty());
    }

    #[test]
    fn a_timerfd_moves_with_the_clock_only_when_set_to_a_time() {
        let info = |clock: u32, flags: &str| {
            format!("pos:\t0\nflags:\t02\nclockid: {clock}\nticks: 0\nsettime flags: {flags}\n")
        };
        let trees = [(info(0, "01"), true), (info(0, "00"), false), (info(1, "01"), false)];
        for (text, expected) in trees {
            let (_directory, root) = root(&[("proc/7/fdinfo/5", &text)]);
            assert_eq!(is_realtime_timerfd(&root, 7, 5), expected, "{text}");
        }
        let (_directory, root) = root(&[]);
        assert!(!is_realtime_timerfd(&root, 7, 5));
    }

    #[test]
    fn a_system_without_fine_timers_violates_the_rule() {
        let (_directory, root) = root(&[
            ("proc/timer_list", "  .hres_active    : 0\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ]);
        let facts = of_host(&root, punctual_host::environment::capture_environment(&root));
        let timers = facts.coarse_timers.expect("coarse timers");
        assert!(timers.evidence.contains("timer_list"), "{timers:?}");
        assert_eq!(facts.limit.map(|(share, _)| share), Some(0.95));
    }
}
