//! Every error in a TOML file is reported with its place and a remedy.

use crate::support;
use crate::support::{context, plan};

/// `; ` is replaced by a line break.
const TIMER: &str = "[[measure]]; kind = 'timer'";

fn problems(toml: &str) -> String {
    support::problems(&toml.replace("; ", "\n"))
}

fn with_timer(more: &str) -> String {
    problems(&format!("{TIMER}; {more}"))
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    insta::assert_snapshot!(with_timer("priorty = 3; quux = 1; [experimnt]"), @r"
    3:1: error: `priorty` is not known in `[[measure]]`; did you mean `priority`?
    4:1: error: `quux` is not known in `[[measure]]`; known are kind, name, cpus, threads, policy, priority, runtime, deadline, duration, samples, histogram, stop_above, counters, require, equivalence, phases, systress, method, clock, period, offset
    5:2: error: `experimnt` is not known in an experiment file; did you mean `experiment`?
    ");
}

#[test]
fn wrong_types_are_refused_with_the_expected_type() {
    insta::assert_snapshot!(with_timer("cpus = 1; period = 1.5; priority = 'high'; require = 'max < 1ms'; histogram = 3; threads = true"), @r#"
    3:8: error: `cpus`: expected a string, found an integer; put it in quotes: `"1"`
    4:10: error: `period`: expected a duration, found a float; put a unit behind it and both in quotes: `"1.5s"`, `"1.5ms"` or `"1.5us"`
    5:12: error: `priority`: expected an integer, found a string
    6:11: error: `require`: expected an array of strings, found a string; write `require = ["…"]`
    7:13: error: `histogram`: expected a table, found an integer
    8:11: error: `threads`: expected `per-cpu` or a number of threads, found a boolean
    "#);
    insta::assert_snapshot!(problems("measure = 3; experiment = []; [load]"), @r#"
    1:11: error: `measure`: expected a table, found an integer; write `[[measure]]` on a line of its own
    2:14: error: there can be only one `[experiment]`
    3:1: error: there can be several sections `load`; write `[[load]]`
    3:1: error: this load has no command; write `command = "stress-ng --fork 2"`
    "#);
    insta::assert_snapshot!(with_timer("[[load]]; command = ['x', 3]; [[load]]; command = []; [[load]]; command = 3; [experiment]; memory_lock = 1979-05-27"), @r#"
    4:11: error: `command`: expected a string, found an integer; put it in quotes: `"3"`
    6:11: error: `command`: a command needs a program
    8:11: error: `command`: expected a command line or an array of arguments, found an integer
    10:15: error: `memory_lock`: expected true or false, found a date-time
    "#);
}

#[test]
fn unknown_and_duplicate_counters_are_refused() {
    insta::assert_snapshot!(with_timer("counters = ['cycle', 'sched:', 'faults', 'page-faults']"), @r"
    3:13: error: `counters`: `cycle` is not an event; did you mean `cycles`?
    3:22: error: `counters`: `sched:` is not an event; a tracepoint is GROUP:NAME, an event of a PMU r1a8 or PMU/TERMS/, other events have the names of perf-list(1), such as context-switches or cycles
    3:42: error: `counters`: page-faults is there twice
    ");
    insta::assert_snapshot!(with_timer("counters = 'cycles'"), @r#"
    3:12: error: `counters`: expected an array of strings, found a string; write `counters = ["…"]`
    "#);
}

#[test]
fn wrong_units_and_durations_out_of_range_are_refused() {
    insta::assert_snapshot!(with_timer("period = '1 msec'; offset = '5'; duration = '-1s'; stop_above = '2h'"), @r"
    3:10: error: `period`: `msec` is not a unit of time (ns, us, ms, s, min, h, d): did you mean `sec`?
    4:10: error: `offset`: `5` has no unit: write `5ns`, `5us`, `5ms`, `5s`, `5min`, `5h` or `5d`
    5:12: error: `duration`: a duration cannot be negative
    6:14: error: `stop_above`: `2h` is too long: at most 3600s
    ");
    insta::assert_snapshot!(with_timer("period = '0'; duration = '500d'"), @r"
    3:10: error: `period`: `0` is too short: at least 1us
    4:12: error: `duration`: `500d` is too long: at most 31622400s
    ");
    insta::assert_snapshot!(with_timer("period = 'nan'; duration = 'inf'; samples = nan"), @r"
    3:10: error: `period`: `nan` is not a number
    4:12: error: `duration`: `inf` is not a number
    5:11: error: `samples`: expected an integer, found a float
    ");
    insta::assert_snapshot!(with_timer("period = '999ns'; [experiment]; refresh = '1ms'; dma_latency = '1h'"), @r"
    3:10: error: `period`: `999ns` is too short: at least 1us
    5:11: error: `refresh`: `1ms` is too short: at least 10ms
    6:15: error: `dma_latency`: `1h` is too long: at most 2147483647us; `leave` does not touch /dev/cpu_dma_latency
    ");
    insta::assert_snapshot!(with_timer("period = '2h'; [[phase]]; duration = '0s'"), @r"
    3:10: error: `period`: `2h` is too long: at most 3600s
    5:12: error: `duration`: `0s` is too short: at least 1us
    ");
}

#[test]
fn missing_and_offline_cpus_are_refused() {
    insta::assert_snapshot!(with_timer("cpus = '0-5'"), @r"
    3:8: error: CPUs 4-5 do not exist; this system has CPUs 0-3
    3:8: error: CPU 3 is offline; online are 0-2
    ");
    insta::assert_snapshot!(with_timer("cpus = ''"), @"3:8: error: `cpus`: this list of CPUs is empty; write a list like `0-2,4`, or `all`");
    insta::assert_snapshot!(with_timer("cpus = '2-1'"), @"3:8: error: `cpus`: the range `2-1` runs backwards; write a list like `0-2,4`, or `all`");
    insta::assert_snapshot!(with_timer("cpus = '0x3'"), @"3:8: error: `cpus`: `0x3` is not a CPU number or a range like `0-3`; write a list like `0-2,4`, or `all`");
    insta::assert_snapshot!(with_timer("[experiment]; cpus = '3'"), @"4:8: error: CPU 3 is offline; online are 0-2");
}

#[test]
fn priorities_that_do_not_fit_their_policy_are_refused() {
    insta::assert_snapshot!(with_timer("priority = 0"), @"3:12: error: `priority`: 0 is not a priority; 1 (lowest) to 99 (highest)");
    insta::assert_snapshot!(with_timer("policy = 'fifo'; priority = 100"), @"4:12: error: `priority`: 100 is not a priority; 1 (lowest) to 99 (highest)");
    insta::assert_snapshot!(with_timer("policy = 'other'; priority = 5"), @"4:12: error: SCHED_OTHER has no priority; choose the policy fifo or rr, or leave the priority out");
    insta::assert_snapshot!(with_timer("policy = 'fivo'"), @"3:10: error: `policy`: `fivo` is not a scheduling policy; did you mean `fifo`?");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; priority = 5; nice = 20"), @"6:8: error: `nice`: 20 is not a nice value; -20 (highest) to 19 (lowest)");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; cpus = '0'; policy = 'rr'; nice = 5"), @"7:8: error: a nice value has no effect with SCHED_RR; leave `nice` out");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; policy = 'deadline'"), @"5:10: error: a load cannot have SCHED_DEADLINE; a deadline task may not fork (sched(7)): choose fifo, rr, other, batch or idle");
}

#[test]
fn contradictory_methods_clocks_and_deadlines_are_refused() {
    insta::assert_snapshot!(with_timer("method = 'deadline'; policy = 'fifo'"), @"3:10: error: the method `deadline` waits for the period of SCHED_DEADLINE, and the policy is SCHED_FIFO; choose the policy `deadline`, or another method");
    insta::assert_snapshot!(with_timer("method = 'timerfd'; clock = 'tai'"), @"4:9: error: the method `timerfd` cannot use CLOCK_TAI: timerfd_create(2) takes no CLOCK_TAI; choose another clock or method");
    insta::assert_snapshot!(with_timer("method = 'deadline'; clock = 'realtime'"), @"4:9: error: the method `deadline` cannot use CLOCK_REALTIME: SCHED_DEADLINE counts its periods on no such clock; choose another clock or method");
    insta::assert_snapshot!(with_timer("runtime = '10us'; deadline = '1ms'"), @r"
    3:11: error: `runtime` belongs to SCHED_DEADLINE, and the policy is SCHED_FIFO; choose the policy `deadline`, or leave `runtime` out
    4:12: error: `deadline` belongs to SCHED_DEADLINE, and the policy is SCHED_FIFO; choose the policy `deadline`, or leave `deadline` out
    ");
    insta::assert_snapshot!(with_timer("policy = 'deadline'; runtime = '1ms'; deadline = '500us'; period = '400us'"), @r"
    4:11: error: the runtime is longer than the deadline: runtime 1ms, deadline 500us, period 400us; SCHED_DEADLINE requires runtime <= deadline <= period
    5:12: error: the deadline is later than the period: runtime 1ms, deadline 500us, period 400us; SCHED_DEADLINE requires runtime <= deadline <= period
    ");
    insta::assert_snapshot!(with_timer("policy = 'deadline'; period = '50us'; cpus = '0'"), @r"
    1:1: warning: the kernel takes a period of SCHED_DEADLINE from 100us to 4194304us by default; see sched_deadline_period_min_us and sched_deadline_period_max_us in /proc/sys/kernel
    5:8: warning: the kernel refuses SCHED_DEADLINE to a thread that may not run on all CPUs of its root domain; measure with `threads = 1` on all CPUs, or on all those of a `[partition]`
    ");
    insta::assert_snapshot!(with_timer("offset = '1ms'"), @"3:10: error: the offset between threads (1ms) is not shorter than the period (1ms); an offset shifts the phase of each thread against the one before: less than a period");
}

#[test]
fn contradictory_durations_are_refused() {
    insta::assert_snapshot!(with_timer("duration = '1s'; samples = 10"), @"4:11: error: a measure ends after a duration or after a number of samples, not both; leave one of them out");
    insta::assert_snapshot!(with_timer("samples = 0"), @"3:11: error: `samples`: 0 is out of bounds: 1 to 1000000000000");
    insta::assert_snapshot!(with_timer("samples = 5000; [[phase]]; duration = '1s'"), @"3:11: error: this measure takes 5s, and the phase `phase-1` only 1s; lengthen the phase, or shorten the measure");
    insta::assert_snapshot!(with_timer("[[phase]]; name = 'a'; [[phase]]; name = 'b'; duration = '1s'"), @"3:1: error: the phase `a` never ends: the ones after it would not be reached; give it a `duration`, or each of its measures a `duration` or `samples`");
    insta::assert_snapshot!(with_timer("phases = ['a']; [[phase]]; name = 'a'; duration = '1s'; [[phase]]; name = 'b'"), @"7:1: error: the phase `b` has no duration and nothing to measure: it would end at once; give it a `duration`");
    insta::assert_snapshot!(with_timer("offset = '900us'; threads = 3; [[phase]]; duration = '1ms'"), @"1:1: error: the last thread would start 1800us into the phase `phase-1`, after its end; choose a shorter offset, fewer threads or a longer phase");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; start_delay = '2s'; [[phase]]; duration = '1s'; loads = ['x']"), @"5:15: error: the load `x` would start after the end of the phase `phase-1`; choose a shorter `start_delay`");
}

#[test]
fn histograms_too_large_for_memory_are_refused() {
    insta::assert_snapshot!(with_timer("histogram = { range = '1s', resolution = '1ns' }"), @"3:23: error: a histogram of 1s in steps of 1ns has 1000000001 bins (7629 MiB): at most 16777216; choose a resolution of 60ns, or a range of 16777215ns");
    insta::assert_snapshot!(with_timer("threads = 1000; histogram = { range = '10s' }"), @"4:23: error: the histograms of all series need 74 GiB, and may take 2048 MiB (1/4 of this system's memory); choose a coarser resolution, a shorter range, fewer threads or fewer phases");
    insta::assert_snapshot!(with_timer("histogram = { resolution = '2ms' }"), @"3:28: error: a bin of the histogram (2ms) is wider than all of it (1ms); choose a finer resolution or a larger range");
    insta::assert_snapshot!(with_timer("histogram = { range = '0s' }"), @"3:23: error: `range`: `0s` is too short: at least 1ns");
}

#[test]
fn too_many_threads_or_series_are_refused() {
    insta::assert_snapshot!(with_timer("threads = 0"), @"3:11: error: `threads`: 0 is out of bounds: 1 to 1024");
    insta::assert_snapshot!(with_timer("threads = 1025"), @"3:11: error: `threads`: 1025 is out of bounds: 1 to 1024");
    insta::assert_snapshot!(with_timer(&format!("threads = 1024; {TIMER}; ")), @"4:1: error: with this measure 1027 threads would run at the same time: at most 1024; measure on fewer CPUs, with fewer threads, or in fewer phases");
    let phases = "[[phase]]; duration = '1s'; ".repeat(17);
    insta::assert_snapshot!(with_timer(&format!("threads = 1000; histogram = {{ range = '1us' }}; {phases}")), @"3:11: error: with this measure there would be 17000 series: at most 16384; measure on fewer CPUs, with fewer threads, or in fewer phases");
    insta::assert_snapshot!(problems(&format!("{TIMER}; ").repeat(1_025)), @"2049:1: error: 1025 sections `[[measure]]` are too many: at most 1024");
    insta::assert_snapshot!(with_timer(&"[[phase]]; duration = '1s'; ".repeat(129)), @"259:1: error: 129 sections `[[phase]]` are too many: at most 128");
    let many = vec!["\"max < 1s\""; 65].join(",");
    insta::assert_snapshot!(with_timer(&format!("require = [{many}]")), @"3:11: error: more than 64 requirements are too many");
}

#[test]
fn missing_programs_are_refused() {
    insta::assert_snapshot!(with_timer("[[load]]; command = 'no-such --fork 2'"), @"4:11: error: cannot run `no-such`: no such program in PATH; install it, or write the path of the program");
    insta::assert_snapshot!(with_timer("[[load]]"), @r#"3:1: error: this load has no command; write `command = "stress-ng --fork 2"`"#);
    insta::assert_snapshot!(with_timer("[[load]]; command = \"x 'y\""), @"4:11: error: `command`: a quote is never closed");
    insta::assert_snapshot!(with_timer("[[load]]; command = ['']"), @"4:11: error: `command`: the program's name is empty");
    insta::assert_snapshot!(with_timer(r#"[[load]]; command = "x \u0000"; stdout = ""; stderr = "\u0000""#), @r"
    4:11: error: `command`: an argument cannot hold a NUL character
    5:10: error: `stdout`: a path cannot be empty
    6:10: error: `stderr`: a path cannot hold a NUL character
    ");
}

#[test]
fn duplicate_and_unknown_names_are_refused() {
    insta::assert_snapshot!(with_timer(&format!("name = 'a'; {TIMER}; name = 'a'")), @"6:8: error: there are two measures called `a`; give one another name");
    insta::assert_snapshot!(with_timer("[[load]]; name = 'x'; command = 'x'; [[load]]; name = 'x'; command = 'y'"), @"7:8: error: there are two loads called `x`; give one another name");
    insta::assert_snapshot!(with_timer("phases = ['idel']; [[phase]]; name = 'idle'; duration = '1s'; loads = ['frok', 'frok']; [[load]]; name = 'fork'; command = 'x'"), @r"
    3:11: error: there is no phase called `idel`; did you mean `idle`?
    7:10: error: there is no load called `frok`; did you mean `fork`?
    7:18: error: there is no load called `frok`; did you mean `fork`?
    8:1: warning: the load `fork` is in no phase: it is never started; name it in the `loads` of a `[[phase]]`
    ");
    insta::assert_snapshot!(with_timer("phases = []"), @"3:10: error: this measure is in no phase: it would never run; name a phase, or leave `phases` out for all");
    insta::assert_snapshot!(with_timer("phases = ['main', 'main']"), @"3:19: error: the phase `main` is named twice in this list; name it once");
    for bad in ["a/b", "..", "a\\nb", " a", "", &"x".repeat(65)] {
        assert!(with_timer(&format!("name = \"{bad}\"")).contains("cannot be a name"), "{bad}");
    }
}

#[test]
fn a_file_that_measures_nothing_is_refused() {
    insta::assert_snapshot!(problems("[experiment]; name = 'x'"), @r#"error: the file measures nothing; add a section `[[measure]]` with `kind = "timer"` (in a systress file: `timer_thread[0]`)"#);
    insta::assert_snapshot!(problems("[[measure]]"), @r#"1:1: error: this measure has no kind; write `kind = "timer"`"#);
    insta::assert_snapshot!(problems("[[measure]]; kind = 'tiemr'; priorty = 3"), @r"
    2:8: error: `kind`: `tiemr` is not a kind of measure; did you mean `timer`?
    3:1: error: `priorty` is not known in `[[measure]]`; did you mean `priority`?
    ");
    let lone = with_timer(
        "[[load]]; name = 'load'; command = 'x'; [[phase]]; duration = '1s'; loads = ['zzzz']",
    );
    assert!(lone.contains("there is no load called `zzzz`; known loads: load"), "{lone}");
    // An unknown kind hides no error in the keys of every measure.
    let all =
        problems("[[measure]]; kind = 'xyz'; priority = 300; mode = 'x'; require = ['p99 <']");
    for start in ["2:8: error: `kind`", "3:12: error: `priority`", "5:12: error: `require`"] {
        assert!(all.contains(start), "{start} in {all}");
    }
    assert!(!all.contains("mode"), "its keys are unknown: {all}");
}

#[test]
fn a_load_in_no_phase_is_a_warning() {
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; [[phase]]; duration = '1s'"), @"3:1: warning: the load `x` is in no phase: it is never started; name it in the `loads` of a `[[phase]]`");
}

#[test]
fn two_loads_do_not_share_a_file() {
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; stdout = 'f'; stderr = 'f'; [[load]]; command = 'y'; stderr = 'f'"), @"9:10: warning: two loads of a phase write to f; give each a file of its own");
}

#[test]
fn systress_files_hold_one_thread() {
    insta::assert_snapshot!(with_timer("systress = {}"), @"3:12: error: a systress result file holds one thread in one phase; set `threads = 1` (or one CPU), and name one phase in `phases`");
    insta::assert_snapshot!(with_timer(&format!("threads = 1; systress = {{}}; {TIMER}; threads = 1; systress = {{ index = 0 }}")), @"8:12: error: two measures write to timer_thread00.txt; give each a file of its own");
    insta::assert_snapshot!(with_timer("threads = 1; systress = { format = 'cvs', index = 10000, file = '' }"), @r"
    4:23: error: `format`: `cvs` is not a layout of systress; did you mean `csv`?
    4:38: error: `index`: 10000 is out of bounds: 0 to 9999
    4:52: error: `file`: a path cannot be empty
    ");
}

#[test]
fn partitions_without_remaining_cpu_or_straddled_are_refused() {
    insta::assert_snapshot!(with_timer("[partition]; cpus = '0-2'"), @"4:8: error: a partition of CPUs 0-2 leaves no CPU for everything else; leave one of 0-2 out");
    insta::assert_snapshot!(with_timer("[partition]; name = '../x'"), @r#"
    3:1: error: `[partition]` needs the CPUs to set apart; write `cpus = "3"`
    4:8: error: `name`: `../x` cannot be a name: a `/` separates directories
    "#);
    insta::assert_snapshot!(with_timer("threads = 2; cpus = 'all'; [partition]; cpus = '2'"), @"4:8: error: CPUs 0-2 are partly in the partition (2) and partly not; choose from 2 or from 0-1");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; cpus = '1-2'; [partition]; cpus = '2'"), @"5:8: error: CPUs 1-2 are partly in the partition (2) and partly not; choose from 2 or from 0-1");
}

#[test]
fn real_time_everywhere_needs_force() {
    let spinning = format!("{TIMER}; period = '2us'");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; policy = 'fifo'"), @"5:10: error: in the phase `main` real-time tasks could keep every CPU busy and lock the system up; leave a CPU out of their `cpus`, or run with `--force`");
    insta::assert_snapshot!(with_timer("[[load]]; command = 'x'; policy = 'fifo'; cpus = '0-1'; [[load]]; command = 'y'; policy = 'rr'; cpus = '2'"), @"5:10: error: in the phase `main` real-time tasks could keep every CPU busy and lock the system up; leave a CPU out of their `cpus`, or run with `--force`");
    insta::assert_snapshot!(problems(&spinning), @"1:1: error: in the phase `main` real-time tasks could keep every CPU busy and lock the system up; leave a CPU out of their `cpus`, or run with `--force`");
    assert_eq!(with_timer("[[load]]; command = 'x'; policy = 'fifo'; cpus = '0-1'"), "");
    let force = punctual_plan::ResolveContext { force: true, ..context() };
    let experiment = punctual_plan::load_experiment(
        "x.toml".as_ref(),
        spinning.replace("; ", "\n").as_bytes(),
        &Default::default(),
    )
    .unwrap();
    assert!(
        punctual_plan::resolve_experiment(&experiment, &context()).unwrap_err().force_suffices()
    );
    let resolved = punctual_plan::resolve_experiment(&experiment, &force).unwrap();
    insta::assert_snapshot!(resolved.warnings.format_lines(), @"x.toml:1:1: warning: in the phase `main` real-time tasks could keep every CPU busy and lock the system up; allowed because of --force or `force = true`");
}

#[test]
fn a_correct_file_has_no_problems() {
    plan(&TIMER.replace("; ", "\n"));
}

#[test]
fn published_results_of_unknown_measures_are_refused() {
    let timer = "[[measure]]; kind = 'timer'; name = 'timer'; duration = '1s'";
    let result = "[published]; source = 'x'; [[published.result]]; what = 'w'; value = 'v'";
    insta::assert_snapshot!(problems(&format!("{result}; here = 'timr: max'; shape = 'timer@no: p50 > 2 * timer: p50'; {timer}")), @r"
    6:8: error: there is no measure `timr`; did you mean `timer`?
    7:9: error: there is no measure `timer` in a phase `no`
    ");
    let incomplete =
        "[published]; [[published.result]]; what = 'w'; value = 'v'; shape = 'timer: p50 2'";
    insta::assert_snapshot!(problems(&format!("{incomplete}; {timer}")), @r#"
    1:1: error: the source of this result is missing; write `source = "who, which system"`
    5:9: error: `shape`: a shape is a figure, one of < <= > >= ~, and a figure or a number, like `forces/whole: p50 > 2 * writes/whole: p50`
    "#);
}
