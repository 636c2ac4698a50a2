//! Configuration files of systress: their meaning, and their errors.

use crate::support::{cfg_problems, context, resolved};
use punctual_core::{Nanos, Policy};
use punctual_plan::{
    Length, LoadOptions, LoadOutput, OnExit, SystressFormat, load_and_resolve, load_experiment,
};
use std::path::Path;

const TIMER: &str = "timer_thread[0] {\n}\n";

#[test]
fn everything_that_systress_knows_is_understood() {
    let cfg = "\
main # comment
{
  cpu_affinity 0-1 # and here
  stats.period 1500 ms
  stats.format csv
  stats.cpu_load all
  memlock
}
timer_thread[3]{
  sched.policy  SCHED_RR
  sched.priority 42
  cpu_affinity  0-1,2
  lifetime.duration 10 min
  stats.histo_size 20 us
  stats.filename  results/my file.csv
}
timer_thread [1] {
}
program[0] {
  cmdline sh -c 'echo \"{ a; b }\"; exit 1' ; $HOME
  sched.policy FIFO
  cpu_affinity 2
  output.out  out.txt
  output.err  null
  termination.ok respawn
  termination.ko STOP
}
program[7] {
  cmdline \"/usr/bin/stress-ng\" --fork 2 # not a part of it
}
";
    let plan = resolved("test.cfg", cfg).unwrap_or_else(|problems| panic!("{problems}")).plan;
    assert_eq!(
        (plan.controller_cpus.to_string().as_str(), plan.refresh),
        ("0-1", Nanos::from_millis(1500))
    );
    assert!(plan.memory_lock && plan.cpu_load && plan.dma_latency.0.is_none());
    let [first, second] = plan.phases[0].measures.as_slice() else { panic!("{plan:?}") };
    assert_eq!(
        (first.name.as_str(), second.name.as_str()),
        ("timer_thread01", "timer_thread03"),
        "in order of the index"
    );
    let file = first.systress.as_ref().unwrap();
    assert_eq!((file.path.as_path(), file.index), (Path::new("timer_thread01.csv"), 1));
    assert_eq!(
        (first.length, first.threads[0].scheduling.policy()),
        (Length::UntilInterrupted, Policy::Other)
    );
    let file = second.systress.as_ref().unwrap();
    assert_eq!(
        (file.path.as_path(), file.format),
        (Path::new("results/my file.csv"), SystressFormat::Csv)
    );
    assert_eq!(second.length, Length::Duration(Nanos::from_secs(600)));
    assert_eq!(
        (second.histogram.range, second.histogram.resolution),
        (Nanos::from_micros(20), Nanos::MICRO)
    );
    let thread = &second.threads[0];
    assert_eq!((thread.cpus.to_string().as_str(), thread.scheduling.policy()), ("0-2", Policy::Rr));
    assert_eq!(
        (second.threads.len(), thread.scheduling.priority().map(|p| p.get())),
        (1, Some(42))
    );
    let [shell, stress] = plan.phases[0].loads.as_slice() else { panic!("{plan:?}") };
    assert_eq!(shell.argv, ["sh", "-c", "echo \"{ a; b }\"; exit 1", ";", "$HOME"]);
    assert_eq!((shell.on_success, shell.on_failure), (OnExit::Respawn, OnExit::Stop));
    assert_eq!(shell.stdout, LoadOutput::File("out.txt".into()));
    assert_eq!(shell.stderr, LoadOutput::File("./null".into()), "a file like any other");
    assert_eq!((stress.name.as_str(), stress.argv.len()), ("stress-ng", 3));
    assert_eq!((stress.on_success, stress.on_failure), (OnExit::Ignore, OnExit::Ignore));
}

#[test]
fn a_systress_file_without_main_has_no_global_settings() {
    let plan = resolved("test.cfg", TIMER).unwrap().plan;
    assert!(!plan.memory_lock && !plan.cpu_load);
    assert_eq!(plan.phases[0].measures[0].cpus.to_string(), "0-2");
    assert_eq!(plan.refresh, Nanos::from_millis(500));
}

#[test]
fn a_systress_file_converted_to_toml_gives_the_same_plan() {
    let cfg = format!("main {{\n memlock\n}}\n{TIMER}program[0] {{\n cmdline a 'b c' d\n}}\n");
    let experiment =
        load_experiment(Path::new("test.cfg"), cfg.as_bytes(), &LoadOptions::default()).unwrap();
    insta::assert_snapshot!(experiment.to_toml(), @r#"
    [experiment]
    memory_lock = true
    dma_latency = "leave"
    cpu_load = false

    [[measure]]
    name = "timer_thread00"
    kind = "timer"
    threads = 1
    policy = "other"
    histogram = { resolution = "1us" }
    systress = { file = "timer_thread00.txt", format = "txt", index = 0 }

    [[load]]
    command = ["a", "b c", "d"]
    on_success = "ignore"
    on_failure = "ignore"
    "#);
    assert_eq!(
        resolved("test.toml", &experiment.to_toml()).unwrap().plan,
        resolved("test.cfg", &cfg).unwrap().plan
    );
}

#[test]
fn unknown_properties_are_errors_unless_allowed() {
    let cfg = format!("main {{\n  cpu_afinity 0\n}}\n{TIMER}tread[1] {{\n  x\n}}\n");
    insta::assert_snapshot!(cfg_problems(&cfg), @r"
    2:3: error: `cpu_afinity` is not known in `main`; did you mean `cpu_affinity`?
    6:1: error: `tread` is not known in a systress file; known are main, timer_thread, program
    ");
    let allowed = LoadOptions { allow_unknown: true };
    let (_, resolved) =
        load_and_resolve(Path::new("test.cfg"), cfg.as_bytes(), &allowed, &context()).unwrap();
    insta::assert_snapshot!(resolved.warnings.format_lines(), @r"
    test.cfg:2:3: warning: `cpu_afinity` is not known in `main`; did you mean `cpu_affinity`?
    test.cfg:6:1: warning: `tread` is not known in a systress file; known are main, timer_thread, program
    ");
}

#[test]
fn wrong_values_are_refused() {
    insta::assert_snapshot!(cfg_problems("main {\n memlock yes\n stats.cpu_load some\n stats.format xml\n cpu_affinity\n stats.period 1\n dbg_level high\n}\n"), @r"
    2:10: error: `memlock` takes no value
    3:17: error: `stats.cpu_load`: only the load of all CPUs can be shown; write `all`, or leave it out
    4:15: error: `stats.format`: `xml` is not a layout; one of `txt`, `csv`
    5:2: error: `cpu_affinity` needs a value
    6:15: error: `stats.period`: `1` has no unit: write `1ns`, `1us`, `1ms`, `1s`, `1min`, `1h` or `1d`
    7:12: error: `dbg_level`: `high` is not a whole number
    ");
    insta::assert_snapshot!(cfg_problems("timer_thread[0] {\n sched.policy FIVO\n sched.priority 0\n stats.histo_size 1 parsec\n lifetime.duration -1 s\n}\n"), @r"
    2:15: error: `sched.policy`: `FIVO` is not a scheduling policy; did you mean `fifo`?
    3:17: error: `sched.priority`: 0 is not a priority; 1 (lowest) to 99 (highest)
    4:19: error: `stats.histo_size`: `parsec` is not a unit of time (ns, us, ms, s, min, h, d)
    5:20: error: `lifetime.duration`: a duration cannot be negative
    ");
    insta::assert_snapshot!(cfg_problems("timer_thread[0] {\n sched.priority 100x\n cpu_affinity 0-7\n}\nprogram[0] {\n cmdline no-such \"\n}\nprogram[1] {\n}\n"), @r"
    2:17: error: `sched.priority`: `100x` is not a whole number
    3:15: error: CPUs 4-7 do not exist; this system has CPUs 0-3
    3:15: error: CPU 3 is offline; online are 0-2
    6:10: error: `cmdline`: a quote is never closed
    8:1: error: this program has no command; write `cmdline` and the command
    ");
    insta::assert_snapshot!(cfg_problems("timer_thread[0] {\n sched.priority 50\n}\nprogram[1] {\n cmdline no-such\n termination.ok RESPAN\n}\n"), @r"
    5:10: error: cannot run `no-such`: no such program in PATH; install it, or write the path of the program
    6:17: error: `termination.ok`: `respan` is not something to do when a program ends; did you mean `respawn`?
    ");
    insta::assert_snapshot!(cfg_problems(&format!("main {{\n dbg_level 3\n}}\n{TIMER}")), @"2:12: warning: `dbg_level` has no effect: punctual has its own options for verbosity");
}

#[test]
fn malformed_systress_stanzas_are_refused() {
    insta::assert_snapshot!(cfg_problems("main\n memlock\n}\ntimer_thread[0] {\n memlock\ntimer_thread[1] {\n"), @r"
    1:1: error: `main` is not followed by `{`; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    5:2: error: `memlock` is not known in `timer_thread`; known are sched.policy, sched.priority, cpu_affinity, lifetime.duration, stats.histo_size, stats.filename, period, cgroup
    6:1: error: the stanza `timer_thread` is not closed before the next one; write `}` on a line of its own before this one
    6:1: error: the stanza `timer_thread` is not closed at the end of the file; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    ");
    insta::assert_snapshot!(cfg_problems(&format!("{TIMER}stray 1\n}}\n{{\n")), @r"
    3:1: error: this belongs to no stanza; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    4:1: error: this belongs to no stanza; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    5:1: error: this belongs to no stanza; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    ");
    insta::assert_snapshot!(cfg_problems(&format!("{TIMER}{TIMER}main {{\n}}\nmain[1] {{\n}}\n")), @r"
    3:1: error: there are two `timer_thread[0]`
    7:1: error: there can be only one `main`
    7:6: error: `main` has no index
    ");
    insta::assert_snapshot!(cfg_problems("timer_thread {\n}\ntimer_thread[-1] {\n}\ntimer_thread[10000] {\n}\ntimer_thread[x] {\n}\n"), @r"
    1:1: error: `timer_thread` needs an index; write `timer_thread[0]`
    3:14: error: -1 is out of bounds: 0 to 9999
    5:14: error: 10000 is out of bounds: 0 to 9999
    7:14: error: `x` is not a whole number
    ");
    insta::assert_snapshot!(cfg_problems("timer_thread[0] {\n sched.policy RR\n sched.policy FIFO\n}\n"), @"3:2: error: this property is set twice");
    insta::assert_snapshot!(cfg_problems(&format!("{TIMER}program[0] {{ cmdline x }}\n")), @"3:1: error: this belongs to no stanza; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own");
    insta::assert_snapshot!(cfg_problems(&format!("{TIMER}program[0] {{")), @r"
    3:1: error: the stanza `program` is not closed at the end of the file; a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and `}` on a line of its own
    3:1: error: this program has no command; write `cmdline` and the command
    ");
}

#[test]
fn the_file_format_is_detected_by_extension_or_content() {
    for (path, text, right) in [
        ("a.cfg", "timer_thread[0] {\n}\n", true),
        ("a", "\n# x = 1\ntimer_thread[0]\n{\n}\n", true),
        ("a.conf", "\u{feff}timer_thread[0] { # =\n}\n", true),
        ("a", "[[measure]]\nkind = 'timer'\n", true),
        ("a.toml", "timer_thread[0] {\n}\n", false),
        ("a.cfg", "[[measure]]\nkind = 'timer'\n", false),
    ] {
        assert_eq!(resolved(path, text).is_ok(), right, "{path}: {text:?}");
    }
}

#[test]
fn periods_of_systress_are_used() {
    let cfg = "timer_thread[0] {\n period 250 us\n lifetime.duration 1 s\n}\n";
    let resolved = resolved("test.cfg", cfg).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(
        resolved.plan.phases[0].measures[0].workload.sample_period(),
        Some(Nanos::from_micros(250))
    );
    assert!(cfg_problems("timer_thread[0] {\n period 1 ns\n}\n").contains("too short"));
}

/// The partition that the groups of a file ask for, and the warnings.
fn partition(cfg: &str) -> (Option<String>, String) {
    let resolved = resolved("test.cfg", cfg).unwrap_or_else(|problems| panic!("{problems}"));
    let made = resolved.plan.partition.map(|made| {
        assert!(made.found, "a standing one is entered");
        let rest = made.housekeeping.unwrap_or("(by default)".to_owned());
        format!("{} has {}, the rest is in {rest}", made.name, made.cpus)
    });
    (made, resolved.warnings.format_lines().to_string())
}

fn thread(index: u32, properties: &str) -> String {
    format!("timer_thread[{index}] {{\n lifetime.duration 1 s\n{properties}}}\n")
}

#[test]
fn groups_of_systress_are_a_partition_made_or_found() {
    let main = "main {\n cgroup nrt\n cpu_affinity 0\n}\n";
    let threads =
        thread(0, " cpu_affinity 1\n cgroup rt\n") + &thread(1, " cpu_affinity 2\n cgroup /rt\n");
    let program = "program[0] {\n cmdline true\n cpu_affinity 0\n cgroup nrt\n}\n";
    let all = format!("{main}{threads}{program}");
    assert_eq!(partition(&all), (Some("rt has 1-2, the rest is in nrt".to_owned()), String::new()));
    let without_main = partition(&threads);
    assert_eq!(without_main.0.as_deref(), Some("rt has 1-2, the rest is in (by default)"));
}

#[test]
fn groups_of_systress_that_cannot_be_are_warned_of() {
    let warned = |cfg: &str| partition(cfg);
    let (made, warnings) = warned(&thread(0, " cgroup rt\n"));
    assert!(made.is_none() && warnings.contains("its CPUs (`cpu_affinity`) are not named"));
    let two =
        thread(0, " cpu_affinity 1\n cgroup a\n") + &thread(1, " cpu_affinity 2\n cgroup b\n");
    let (made, warnings) = warned(&two);
    assert_eq!(made.as_deref(), Some("a has 1, the rest is in (by default)"));
    assert!(warnings.contains("`cgroup b` has no effect: `a` is the partition already"));
    let (made, warnings) = warned(&format!("main {{\n cgroup nrt\n}}\n{}", thread(0, "")));
    assert!(made.is_none() && warnings.contains("no timer thread has another"), "{warnings}");
    let inside = thread(0, " cpu_affinity 1\n cgroup rt\n")
        + "program[0] {\n cmdline true\n cpu_affinity 0\n cgroup rt\n}\n";
    assert!(warned(&inside).1.contains("are another group's"), "{}", warned(&inside).1);
}
