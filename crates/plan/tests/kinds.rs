//! Kinds of workload: errors in their parameters are reported, every default is written out, and
//! the output can be parsed again.

use crate::support::{plan, problems, resolved};
use proptest::prelude::*;
use proptest::sample::select;
use punctual_plan::{Word, Workload, WorkloadKind};

fn of(kind: &str, more: &str) -> String {
    problems(&format!("[[measure]]\nkind = '{kind}'\n{}\n", more.replace("; ", "\n")))
}

#[test]
fn what_cannot_be_is_refused_in_its_place() {
    insta::assert_snapshot!(of("switch", "ring = 1; working_set = ['17MiB', '1KiB']; mechanism = 'pip'"), @r#"
    3:8: error: `ring`: 1 is out of bounds: 2 to 1024
    4:15: error: `working_set`: 17MiB is out of bounds: 0B to 16MiB
    5:13: error: `mechanism`: `pip` is not a way to hand over; did you mean `pipe`?
    "#);
    insta::assert_snapshot!(of("switch", "ring = 1024; working_set = ['16MiB', '0', '0B']"), @r#"
    4:15: error: 1024 tasks with 16MiB each need more than 1 GiB; choose fewer tasks or smaller working sets
    4:15: error: a working set is listed twice; name each size once
    "#);
    insta::assert_snapshot!(of("switch", "mechanism = 'yield'; distance = 'other-cpu'; threads = 2"), @r#"
    1:1: error: a switch is measured by one ring; leave `threads` out; `ring` is the number of tasks
    4:12: error: sched_yield yields only to tasks of the same CPU; choose `distance = "same-cpu"`, or another mechanism
    "#);
    insta::assert_snapshot!(of("heap", "sizes = 'list'; nodes = 1000000; size = '99999999999GiB'; size_max = 4"), @r#"
    5:8: error: `size`: `99999999999GiB` is too large a size
    "#);
    insta::assert_snapshot!(of("heap", "sizes = 'random'; size = '2MiB'; size_max = '1MiB'; nodes = 3"), @r#"
    4:8: error: the least size (2MiB) is larger than the largest (1MiB); exchange them
    6:9: error: `nodes` has no effect here: only `sizes = "list"` has a number of nodes; leave `nodes` out
    "#);
    insta::assert_snapshot!(of("storage", "mode = 'forced'; forcing = 'o-direct'; record = 100; batch = 3"), @r#"
    5:10: error: O_DIRECT writes whole blocks; choose a multiple of 512 B (of 4 KiB on most disks)
    6:9: error: `batch` has no effect here: only `buffered` collects records; leave `batch` out
    "#);
    insta::assert_snapshot!(of("netio", "transport = 'udp'; message = '64KiB'; port = 70000; writing = 'none'; directory = '/x'"), @r#"
    5:8: error: `port`: 70000 is out of bounds: 0 to 65535
    "#);
    insta::assert_snapshot!(of("irq", "source = 'gpio'; device = '/dev/gpiochip0'; out_line = 3; in_line = 3; target_cpu = 1"), @r#"
    5:12: error: a GPIO loop needs two different lines; write `out_line = 17` and `in_line = 27`, two lines that are wired together
    7:14: error: `target_cpu` has no effect here: only `membarrier` interrupts another CPU; leave `target_cpu` out
    "#);
    insta::assert_snapshot!(of("irq", "source = 'uio'"), @r#"
    3:10: error: this source needs a device; write `device = "/dev/uio0"` or `device = "/dev/gpiochip0"`
    "#);
    insta::assert_snapshot!(of("mutex", "threads = 4; terms = 3; priorities = [1, 2, 3, 4, 5]; lock = 'pthread'"), @r#"
    6:8: error: `lock`: `pthread` is not a lock; one of `normal`, `pi`, `robust`, `adaptive`, `spin`, `ticket`, `rwlock`
    "#);
    insta::assert_snapshot!(of("spin", "threshold = '1ns'; attribute = 1"), @r#"
    3:13: error: `threshold`: `1ns` is too short: at least 100ns
    4:13: error: `attribute`: expected true or false, found an integer
    "#);
    insta::assert_snapshot!(of("testpoint-cost", "mechanisms = ['ring', 'uprobes']; payload = '1MiB'"), @r#"
    3:14: error: `mechanisms`: `uprobes` is not a way to write a test point; did you mean `uprobe`?
    4:11: error: `payload`: 1MiB is out of bounds: 1B to 4KiB
    "#);
    insta::assert_snapshot!(of("testpoint-cost", "mechanisms = ['ring', 'ring']"), @"3:14: error: a mechanism is listed twice; name each once");
    insta::assert_snapshot!(of("program", "comm = 'x'; pid = 7; threads = 2; samples = 5; histogram = { range = '1s' }"), @r#"
    1:1: error: a program is a `command`, a `pid` or a `comm`, and only one of them; write `command = "cyclictest -m -p95"`, `pid = 4711` or `comm = "linuxcnc"`
    1:1: error: a program has its own threads; leave `threads` out; `thread` names one of them
    6:11: error: `samples` has no effect here: its threads are the program's own; leave `samples` out
    7:23: error: `histogram` has no effect here: it follows from the period; leave `histogram` out
    "#);
    insta::assert_snapshot!(of("program", "pid = 7; cpus = '1'; policy = 'fifo'; stdout = 'x'; counters = ['cycles']"), @r#"
    1:1: error: `policy` has no effect here: punctual does not start this program; leave `policy` out
    4:8: error: `cpus` has no effect here: punctual does not start this program; leave `cpus` out
    6:10: error: `stdout` has no effect here: punctual does not start this program; leave `stdout` out
    7:12: error: `counters` has no effect here: its threads are the program's own; leave `counters` out
    "#);
    insta::assert_snapshot!(of("program", ""), @r#"
    1:1: error: this measure has no program; write `command = "cyclictest -m -p95"`, `pid = 4711` or `comm = "linuxcnc"`
    "#);
    insta::assert_snapshot!(of("program", "pid = 7; require = ['entries < 3']"), @r#"
    4:12: error: a program has no series `entry`: that is of `entries`; write `count < 3`, or `response`
    "#);
    insta::assert_snapshot!(of("entries", "threads = 2; samples = 5; counters = ['cycles']; policy = 'fifo'; deadline = '1ms'"), @r#"
    1:1: error: `policy` has no effect here: no thread measures; leave `policy` out
    3:11: error: `threads` has no effect here: no thread measures; leave `threads` out
    4:11: error: `samples` has no effect here: no thread measures; leave `samples` out
    5:12: error: `counters` has no effect here: no thread measures; leave `counters` out
    7:12: error: `deadline` belongs to SCHED_DEADLINE, and the policy is SCHED_FIFO; choose the policy `deadline`, or leave `deadline` out
    "#);
    insta::assert_snapshot!(of("entries", "cpus = '1'; require = ['cpu0/entries == 0', 'wakeup max < 1ms', 'overruns == 0', 'max < 1ms']"), @r#"
    4:12: error: it is about CPU 0, which is not measured (CPU 1 is); write `interruption max < 50us`, `entries < 10` or `cpu3/entry p99 < 20us`
    4:33: error: CPUs have no series `wakeup`: that is of a `program`; write `interruption max < 50us`, `entries < 10` or `cpu3/entry p99 < 20us`
    4:53: error: entries into the kernel have no `overruns`; write `interruption max < 50us`, `entries < 10` or `cpu3/entry p99 < 20us`
    "#);
    insta::assert_snapshot!(of("spin", "require = ['interruption max < 1ms']"), @r#"
    3:12: error: only a measure of `entries` has series of these names; write `max < 1ms`, which is about each series
    "#);
    insta::assert_snapshot!(of("timer", "require = ['wakeup max < 1ms']; deadline = '1ms'"), @r#"
    3:12: error: only the threads of a `program` have series of these names; write `max < 1ms`, which is about each series
    4:12: error: `deadline` belongs to SCHED_DEADLINE, and the policy is SCHED_FIFO; choose the policy `deadline`, or leave `deadline` out
    "#);
    insta::assert_snapshot!(of("syscall", "number = 39; arguments = [1, 2, 3, 4, 5, 6, 7]; target = 'pipe'"), @r#"
    4:13: error: `arguments`: 7 values are out of bounds: 0 to 6
    "#);
    insta::assert_snapshot!(of("syscall", "policy = 'deadline'; systress = {}"), @r#"
    1:1: warning: the kernel refuses SCHED_DEADLINE to a thread that may not run on all CPUs of its root domain; measure with `threads = 1` on all CPUs, or on all those of a `[partition]`
    1:1: error: systress files hold the latencies of timers alone; leave `systress` out; `punctual export` writes other formats
    3:10: error: only timers are measured under SCHED_DEADLINE; choose another policy
    "#);
}

#[test]
fn harmful_measures_are_refused_without_force() {
    if cfg!(target_arch = "x86_64") {
        let reboot = "call = 'number'; number = 169";
        insta::assert_snapshot!(of("syscall", reboot), @r#"
    4:10: error: system call 169 is not known to be harmless; to call it anyway, use --force (in a file: `force = true` in [experiment])
    "#);
        let forced = format!(
            "[experiment]\nforce = true\n[[measure]]\nkind = 'syscall'\n{}\n",
            reboot.replace("; ", "\n")
        );
        insta::assert_snapshot!(problems(&forced), @r#"
    6:10: warning: system call 169 is not known to be harmless; allowed because of --force or `force = true`
    "#);
        assert!(plan(&forced).force && plan(&forced).to_toml().contains("force = true"));
    }
    insta::assert_snapshot!(of("spin", "cpus = 'all'"), @r#"
    1:1: error: in the phase `main` real-time tasks could keep every CPU busy and lock the system up; leave a CPU out of their `cpus`, or run with `--force`
    "#);
}

#[test]
fn each_workload_kind_defines_its_threads_and_series() {
    let measure = |kind: &str, more: &str| {
        let plan = plan(&format!("[[measure]]\nkind = '{kind}'\n{more}\n"));
        let measure = &plan.phases[0].measures[0];
        let series =
            measure.threads.iter().flat_map(|thread| measure.workload.series_of(&thread.name));
        let threads: Vec<String> = measure
            .threads
            .iter()
            .map(|thread| format!("{}@{}", thread.name, thread.cpus))
            .collect();
        format!("{} | {}", threads.join(" "), series.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(measure("syscall", ""), "syscall@2 | syscall");
    assert_eq!(
        measure("syscall", "threads = 'per-cpu'\ncpus = 'all'\nperiod = '1ms'"),
        "syscall/cpu0@0 syscall/cpu1@1 syscall/cpu2@2 | syscall/cpu0 syscall/cpu1 syscall/cpu2"
    );
    assert_eq!(measure("spin", ""), "spin/cpu1@1 spin/cpu2@2 | spin/cpu1 spin/cpu2");
    assert_eq!(measure("mutex", "threads = 2"), "mutex/0@0 mutex/1@1 | mutex/0 mutex/1");
    assert_eq!(
        measure("entries", "cpus = '1-2'"),
        "entries/cpu1@1 entries/cpu2@2 | entries/cpu1/interruption entries/cpu1/entry \
         entries/cpu2/interruption entries/cpu2/entry"
    );
    assert_eq!(measure("heap", "touch = false"), "heap@2 | heap/malloc heap/free");
    assert_eq!(
        measure("switch", "working_set = ['0', '64KiB']"),
        "switch@2 | switch/ws-0B switch/ws-64KiB"
    );
    assert_eq!(
        measure("netio", "writing = 'none'\ncipher = 'none'"),
        "netio@2 | netio/whole netio/send netio/recv"
    );
}

#[test]
fn every_default_is_printed_and_described() {
    for (word, kind) in WorkloadKind::WORDS {
        let needed = if *kind == WorkloadKind::Program { "comm = 'x'\n" } else { "" };
        let plan = plan(&format!("[[measure]]\nkind = '{word}'\n{needed}"));
        let workload = &plan.phases[0].measures[0].workload;
        assert_eq!(workload.kind(), *kind);
        let (toml, page) = (plan.to_toml(), plan.describe());
        for (key, value) in workload.facts() {
            assert!(toml.contains(&format!("\n{key} = ")), "{word}: {key} is not in\n{toml}");
            assert!(page.contains(&value), "{word}: {value} is not in\n{page}");
        }
    }
}

/// Settings of each kind, most of them valid.
fn settings(kind: &'static str) -> &'static [&'static str] {
    match kind {
        "syscall" => &[
            "call = 'read'",
            "target = 'pipe'",
            "period = '10us'",
            "rest = '0'",
            "call = 'number'\nnumber = 39\narguments = [-1, 0x10]",
        ],
        "switch" => &[
            "mechanism = 'futex'",
            "tasks = 'processes'",
            "ring = 7",
            "distance = 'smt'",
            "working_set = ['0', 4096, '16MiB']",
            "walk = 'pages'",
            "rest = '2ms'",
        ],
        "irq" => &[
            "source = 'membarrier'\ntarget_cpu = 1",
            "period = '100us'",
            "source = 'gpio'\ndevice = \"/dev/\\u0001'\"\nout_line = 1\nin_line = 2",
        ],
        "mutex" => &[
            "lock = 'pi'",
            "sums = 'own'",
            "terms = 100",
            "rounds = 3",
            "hold = '1us'",
            "spread = false",
            "priorities = [5, 6]",
            "threads = 3",
        ],
        "heap" => &[
            "sizes = 'random'",
            "size = 40",
            "size_max = '1GiB'",
            "touch = false",
            "mlockall = true",
            "allocator = '/a b'",
            "sizes = 'list'\nnodes = 9\nsize_max = '1MiB'",
        ],
        "storage" => &[
            "mode = 'buffered'",
            "batch = 2",
            "mode = 'forced'\nforcing = 'io-uring'",
            "directory = \"é\\\"\"",
            "record = '4KiB'",
            "file_max = '1GiB'",
            "period = '1s'",
        ],
        "netio" => &[
            "transport = 'udp'",
            "port = 80",
            "interface = 'veth'\nshares = true",
            "interface = 'eth0'\nserver = '192.0.2.1:7'",
            "message = '2B'",
            "request = 'last'",
            "cipher = 'none'",
            "writing = 'forced'\nforcing = 'fsync'",
            "period = '100ms'",
        ],
        "spin" => &["threshold = '5us'", "attribute = false", "cpus = '1'"],
        "program" => &[
            "command = 'prog \"a b\" -x'\nstdout = 'out.txt'",
            "comm = 'servo'\nthread = 'a/b c'",
            "pid = 7",
            "cycle = 'posix-timer'\ndeadline = '900us'",
            "require = ['servo/response p99.9 < 800us', 'wakeup max < 1ms', 'max < 1s']",
        ],
        "testpoint-cost" => &["mechanisms = ['lttng', 'clock']", "payload = 1"],
        "entries" => &[
            "cpus = '1-2'",
            "threads = 'per-cpu'",
            "require = ['interruption max < 50us', 'entries < 10', 'cpu1/entry p99 < 20us']",
        ],
        "timer" => &["method = 'timerfd'", "period = '3ms'", "clock = 'realtime'"],
        _ => &[],
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        max_global_rejects: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_plan_of_any_workload_kind_is_parsed_as_printed(
        (_, picked) in select(WorkloadKind::WORDS).prop_flat_map(|(kind, _)| {
            (
                Just(kind),
                proptest::sample::subsequence(settings(kind), 0..=settings(kind).len())
                    .prop_map(move |s| (kind, s)),
            )
        }),
        common in select(
            &[
                "",
                "samples = 9\n",
                "duration = '3s'\npolicy = 'other'\n",
                "histogram = { range = '1s' }\n",
            ][..],
        ),
    ) {
        let (kind, picked) = picked;
        let toml = format!("[[measure]]\nkind = '{kind}'\n{common}{}\n", picked.join("\n"));
        let first = resolved("test.toml", &toml);
        prop_assume!(first.is_ok());
        let plan = first.unwrap().plan;
        let written = plan.to_toml();
        let again = resolved("other.toml", &written)
            .map(|again| again.plan)
            .map_err(|problems| format!("{problems}\n{written}"));
        prop_assert_eq!(
            again.map(|mut again| {
                again.name.clone_from(&plan.name);
                again
            }),
            Ok(plan)
        );
    }
}

#[test]
fn the_kind_timer_is_a_timer_workload() {
    let plan = plan("[[measure]]\nkind = 'timer'\n");
    assert!(matches!(plan.phases[0].measures[0].workload, Workload::Timer(_)));
}
