//! A plan written as TOML and parsed again is the same plan; and no file makes the parser panic.

use crate::support;
use crate::support::{context, resolved};
use proptest::prelude::*;
use proptest::sample::select;
use punctual_plan::{LoadOptions, load_and_resolve, load_experiment};
use std::path::Path;

/// A line `key = value`, or nothing.
fn line(key: &'static str, values: &'static [&'static str]) -> BoxedStrategy<String> {
    proptest::option::of(select(values))
        .prop_map(move |v| v.map_or(String::new(), |v| format!("{key} = {v}\n")))
        .boxed()
}

fn lines(header: &'static str, parts: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    parts.prop_map(move |parts| format!("{header}\n{}", parts.concat())).boxed()
}

fn settings() -> BoxedStrategy<String> {
    lines(
        "[experiment]",
        vec![
            line("name", &["'a b'", "\"größe\"", "'..x'"]),
            line("cpus", &["'0'", "'all'"]),
            line("refresh", &["'10ms'", "'1 h'"]),
            line("memory_lock", &["true", "false"]),
            line("dma_latency", &["'leave'", "'0'", "'10us'"]),
            line("seed", &["0", "9_223_372_036_854_775_807", "0x10"]),
            line("output", &["'a/b'", "\"with \\\"quotes\\\" and \\n\"", "'''it's'''"]),
            line("governor", &["'performance'"]),
            line("frequency", &["'1.5GHz'", "'1234567 kHz'"]),
            line("smt", &["true", "false"]),
            line("cpu_load", &["true", "false"]),
            line("keep_samples", &["0", "5"]),
            line("require_real_time", &["true", "false"]),
            line("on_violation", &["'a \"$b\" c'", "\"x\\ny\""]),
        ],
    )
}

fn measure() -> BoxedStrategy<String> {
    let scheduling = select(
        &[
            "",
            "policy = 'fifo'\npriority = 99\n",
            "policy = 'rr'\n",
            "policy = 'SCHED_OTHER'\n",
            "policy = 'batch'\nmethod = 'timerfd'\n",
            "policy = 'idle'\nmethod = 'posix-timer'\nclock = 'tai'\n",
            "policy = 'deadline'\n",
            "method = 'deadline'\nruntime = '2us'\ndeadline = '50us'\n",
            "method = 'nanosleep-relative'\nclock = 'realtime'\npolicy = 'deadline'\n",
        ][..],
    );
    let length = select(&["", "duration = '10s'\n", "duration = '1500us'\n", "samples = 7\n"][..]);
    let shape = [
        "{ range = '1s' }",
        "{ resolution = '1ns' }",
        "{ range = '10us', resolution = '3us' }",
        "{}",
    ];
    let shape: &'static [&'static str] = Box::leak(Box::new(shape));
    lines(
        "[[measure]]\nkind = 'timer'",
        vec![
            line("cpus", &["'0-1'", "'all'", "'2'"]),
            line("threads", &["'per-cpu'", "1", "3"]),
            scheduling.prop_map(str::to_owned).boxed(),
            line("period", &["'100us'", "'0.5s'"]),
            line("offset", &["'0us'", "'7 us'"]),
            length.prop_map(str::to_owned).boxed(),
            line("histogram", shape),
            line("stop_above", &["'1ms'"]),
            line("counters", &["['cycles', 'cache-misses', 'sched:sched_switch']", "[]"]),
            line(
                "require",
                &["['max < 1ms', 'p99.999 <= 10us', 'corrected p50 > 1ns', 'overruns == 0']", "[]"],
            ),
            line("phases", &["['a']", "['b', 'a']", "['c']"]),
        ],
    )
}

fn load_section() -> BoxedStrategy<String> {
    let scheduling = select(
        &[
            "",
            "policy = 'fifo'\ncpus = '0'\n",
            "nice = -20\n",
            "policy = 'idle'\n",
            "cpus = '1-2'\n",
        ][..],
    );
    lines(
        "[[load]]",
        vec![
            select(
                &[
                    "'x'",
                    "['y', \"\\\"'\\n\\t\\u001b\", '']",
                    "\"sh -c 'a; b' # c\"",
                    "'''/a/b c'''",
                ][..],
            )
            .prop_map(|command| format!("command = {command}\n"))
            .boxed(),
            scheduling.prop_map(str::to_owned).boxed(),
            line("stdout", &["'null'", "'./null'", "\"a\\u0001\""]),
            line("on_success", &["'ignore'", "'stop'"]),
            line("on_failure", &["'respawn'"]),
            line("start_delay", &["'1ms'"]),
            line("may_rest", &["true", "false"]),
        ],
    )
}

const PHASES: [&str; 3] = [
    "",
    "[[phase]]\nname = 'a'\nduration = '10s'\n[[phase]]\nname = 'b'\nduration = \
     '20s'\n[[phase]]\nname = 'c'\nduration = '1h'\n",
    "[[phase]]\nname = 'c'\nduration = '30s'\nloads = ['l1']\n[[phase]]\nname = 'a'\nduration = \
     '10s'\nloads = ['l1', 'l0']\n[[phase]]\nname = 'b'\n",
];

fn experiment() -> impl Strategy<Value = String> {
    let measures = proptest::collection::vec(measure(), 1..5);
    let loads = proptest::collection::vec(load_section(), 2..4);
    let partition = select(&["", "[partition]\ncpus = '2'\ndisable = ['x y']\n"][..]);
    let record = select(
        &[
            "",
            "[record]\n",
            "[record]\nevents = []\nmax_size = '1 MiB'\n",
            "[record]\nevents = ['irq', 'kmem:kmalloc', 'sched']\npids = [7, 1]\npoints = \
             false\ncpus = '0'\nlimits = ['a->b < 5us']\n",
        ][..],
    );
    let explain = select(
        &[
            "",
            "[explain]\n",
            "[explain]\nworst = 3\nabove = '50us'\nbefore = '0s'\naccount = false\nbuffer = '64 \
             KiB'\n",
            "[explain]\nevents = ['irq', 'sched']\nstacks = false\nbuffer = '256 MiB'\n",
        ][..],
    );
    let target = select(
        &[
            "",
            "[target]\nkind = 'host'\n",
            "[target]\nkind = 'vm'\nkernel = '6.1-rt'\n",
            "[target]\nkind = 'vm'\nkernel = './Image'\nmodules = '/m'\ncpus = 3\nmemory = \
             '512MiB'\narch = 'aarch64'\ndevices = ['edu', 'edu']\ntimeout = '1h'\ncmdline = \
             'a=\"b c\"'\n",
            "[target]\nkind = 'ssh'\nhost = 'fe80::1'\nuser = 'root'\nport = 22\nidentity = 'a \
             b'\nknown_hosts = '/k'\nbinary = 'p'\n",
            "[target]\nkind = 'ssh'\nhosts = ['u@a:22', '[fe80::1]:23', 'b']\nuser = \
             'root'\npower_off = 'off \"$PUNCTUAL_HOST\"'\npower_on = 'on'\ncmdline = 'quiet'\n",
        ][..],
    );
    let published = select(
        &[
            "",
            "[published]\nsource = 'a \"b\"'\n",
            "[published]\nsource = 's'\n[[published.result]]\nwhat = 'w'\nvalue = '1 \
             µs'\n[[published.result]]\nwhat = 'x'\nvalue = '2'\nhere = 'timer: p99'\nshape = \
             'timer: max ~ 3.5 * timer/cpu0: min'\n",
        ][..],
    );
    (
        settings(),
        measures,
        loads,
        select(&PHASES[..]),
        (partition, record, explain, target, published),
    )
        .prop_map(
            |(
                settings,
                measures,
                loads,
                phases,
                (partition, record, explain, target, published),
            )| {
                let named = |load: (usize, &String)| format!("{}name = 'l{}'\n", load.1, load.0);
                let loads: String = loads.iter().enumerate().map(named).collect();
                format!(
                    "{settings}{}{loads}{phases}{partition}{record}{explain}{target}{published}",
                    measures.concat()
                )
            },
        )
}

/// Words of both languages, so that random files pass the first line.
fn fragment() -> impl Strategy<Value = String> {
    let words = select(
        &[
            "[[measure]]\n",
            "[experiment]\n",
            "[[load]]\n",
            "[[phase]]\n",
            "kind = 'timer'\n",
            "cpus = ",
            "'0-2'\n",
            "\"",
            "'",
            "{",
            "}\n",
            "main {\n",
            "timer_thread[0]\n",
            "program[",
            "cmdline x ;\n",
            "period = '1ms'\n",
            "samples = 3\n",
            "1",
            "ms",
            "=",
            "\n",
            "#",
            "]",
            "threads = 1\n",
            "systress = {}\n",
            "histogram = { range = '1s' }\n",
            "phases = ['a']\n",
            "name = 'a'\n",
            "duration = '1s'\n",
            "loads = []\n",
            "command = 'x'\n",
            "policy = 'deadline'\n",
            "sched.policy RR\n",
            "memlock\n",
            "\u{feff}",
            "\0",
            "\r\n",
        ][..],
    );
    prop_oneof![9 => words.prop_map(str::to_owned), 1 => "(?s).{0,3}"]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        max_global_rejects: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_plan_is_parsed_as_printed(toml in experiment()) {
        let first = resolved("test.toml", &toml);
        prop_assume!(first.is_ok());
        let plan = first.unwrap().plan;
        prop_assert!(!plan.describe().is_empty());
        let written = plan.to_toml();
        match resolved("other.toml", &written) {
            Ok(again) => prop_assert_eq!(&again.plan, &plan, "{}", written),
            Err(problems) => prop_assert!(false, "{}\n{}", problems, written),
        }
        let experiment =
            load_experiment(Path::new("test.toml"), toml.as_bytes(), &LoadOptions::default())
                .unwrap();
        let written = experiment.to_toml();
        prop_assert_eq!(
            resolved("test.toml", &written).map(|again| again.plan).map_err(|p| p.to_string()),
            Ok(plan),
            "{}",
            written
        );
    }

    #[test]
    fn no_experiment_file_panics(
        parts in proptest::collection::vec(fragment(), 0..40),
        allow_unknown: bool,
    ) {
        let text = parts.concat();
        for path in ["a.toml", "a.cfg", "a"] {
            match load_and_resolve(
                Path::new(path),
                text.as_bytes(),
                &LoadOptions { allow_unknown },
                &context(),
            ) {
                Ok((experiment, resolved)) => {
                    prop_assert_eq!(resolved.warnings.error_count(), 0);
                    let again = support::resolved("a.toml", &resolved.plan.to_toml());
                    prop_assert_eq!(
                        again.map(|again| again.plan).map_err(|p| p.to_string()),
                        Ok(resolved.plan)
                    );
                    prop_assert!(!experiment.to_toml().is_empty());
                }
                Err(problems) => prop_assert!(
                    problems.error_count() > 0
                        && !problems.to_string().is_empty()
                        && !problems.format_lines().is_empty()
                ),
            }
        }
    }

    #[test]
    fn no_input_bytes_panic(bytes: Vec<u8>) {
        let _ = load_experiment(Path::new("a"), &bytes, &LoadOptions::default())
            .map_err(|problems| problems.to_string());
    }
}
