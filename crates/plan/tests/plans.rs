//! The plans of experiments: defaults, names, CPUs, lengths, and the text of `punctual run --plan`.

use crate::support;
use crate::support::plan;
use punctual_core::Nanos;
use punctual_plan::{Length, SchedulingSpec, TimerMethod, Workload};

const TIMER: &str = "[[measure]]\nkind = 'timer'\n";

fn with_timer(more: &str) -> punctual_plan::Plan {
    plan(&format!("{TIMER}{more}"))
}

#[test]
fn the_smallest_file_has_a_default_for_everything() {
    insta::assert_snapshot!(with_timer("").describe(), @r"
    experiment test
      estimated time     until interrupted
      cpus               0-2
      refresh            500ms
      memory_lock        true
      dma_latency        0s
      output             punctual-test-20261103-141500
      cool_wait          600s
      cpu_load           true
      keep_samples       1000000
      require_real_time  false
      force              false

    phase main (until interrupted)
      measure timer: timer
        measures           from the expiry of a timer to the thread that waits for it
        method             nanosleep-absolute
        clock              monotonic
        period             1ms
        offset             0s
        cpus               0-2
        threads            per-cpu
        policy             fifo
        priority           80
        lasts              until interrupted
        histogram          0 to 1ms in steps of 1us: 1001 bins, 8008 B
        thread      CPUs  policy         starts
        timer/cpu0  0     SCHED_FIFO 80  +0s
        timer/cpu1  1     SCHED_FIFO 80  +0s
        timer/cpu2  2     SCHED_FIFO 80  +0s
      no load
    ");
}

#[test]
fn everything_that_can_be_set_is_described() {
    let toml = r#"
[experiment]
name = "all"
cpus = "0"
refresh = "1s"
memory_lock = false
dma_latency = "leave"
seed = 7
output = "results/tonight"
cpu_load = false
keep_samples = 0
require_real_time = true

[partition]
cpus = "2"
name = "quiet"
disable = ["rps", "watchdog"]

[[measure]]
kind = "timer"
method = "timerfd"
clock = "realtime"
policy = "rr"
priority = 42
period = "100us"
offset = "10us"
threads = 2
samples = 5000
histogram = { range = "2ms", resolution = "500ns" }
stop_above = "20ms"
require = ["max < 100us", "p99.9 < 60us", "overruns == 0"]
phases = ["worked"]

[[measure]]
name = "others"
kind = "timer"
cpus = "0-1"
policy = "batch"

[[measure]]
kind = "timer"
threads = 1
policy = "deadline"
period = "10ms"
phases = ["worked"]
systress = { file = "result.csv", format = "csv", index = 4 }

[[load]]
command = "sh -c 'stress-ng --fork 2; exit 1'"
cpus = "1"
policy = "fifo"
priority = 3
stdout = "out\u001b.txt"
on_success = "stop"
on_failure = "ignore"
start_delay = "100ms"

[[load]]
command = ["/usr/bin/sh", "a b", ""]
nice = -5
policy = "batch"

[[phase]]
duration = "1min"

[[phase]]
name = "worked"
duration = "90s"
loads = ["sh-2", "sh"]
"#;
    insta::assert_snapshot!(plan(toml).describe(), @r"
    experiment all
      estimated time     150s
      cpus               0
      refresh            1s
      memory_lock        false
      dma_latency        leave
      seed               7
      output             results/tonight
      cool_wait          600s
      cpu_load           false
      keep_samples       0
      require_real_time  true
      force              false
      partition
        cpus               2
        name               quiet
        found              false
        disable            rps, watchdog

    phase phase-1 (60s)
      measure others: timer
        measures           from the expiry of a timer to the thread that waits for it
        method             nanosleep-absolute
        clock              monotonic
        period             1ms
        offset             0s
        cpus               0-1
        threads            per-cpu
        policy             batch
        lasts              60s
        histogram          0 to 1ms in steps of 1us: 1001 bins, 8008 B
        thread       CPUs  policy               starts
        others/cpu0  0     SCHED_BATCH, nice 0  +425744ns
        others/cpu1  1     SCHED_BATCH, nice 0  +425744ns
      no load

    phase worked (90s)
      measure timer: timer
        measures           from the expiry of a timer to the thread that waits for it
        method             timerfd
        clock              realtime
        period             100us
        offset             10us
        cpus               2
        threads            2
        policy             rr
        priority           42
        stop_above         20ms
        require            max < 100us, p99.9 < 60us, overruns == 0
        lasts              5000 samples
        histogram          0 to 2ms in steps of 500ns: 4001 bins, 31 KiB
        thread   CPUs  policy       starts
        timer/0  2     SCHED_RR 42  +12594ns
        timer/1  2     SCHED_RR 42  +22594ns
      measure others: timer
        measures           from the expiry of a timer to the thread that waits for it
        method             nanosleep-absolute
        clock              monotonic
        period             1ms
        offset             0s
        cpus               0-1
        threads            per-cpu
        policy             batch
        lasts              90s
        histogram          0 to 1ms in steps of 1us: 1001 bins, 8008 B
        thread       CPUs  policy               starts
        others/cpu0  0     SCHED_BATCH, nice 0  +897153ns
        others/cpu1  1     SCHED_BATCH, nice 0  +897153ns
      measure timer-2: timer
        measures           from the expiry of a timer to the thread that waits for it
        method             deadline
        clock              monotonic
        period             10ms
        offset             0s
        cpus               2
        threads            1
        policy             deadline
        runtime            1ms
        systress           file result.csv, format csv, index 4
        lasts              90s
        histogram          0 to 1ms in steps of 1us: 1001 bins, 8008 B
        thread   CPUs  policy                                     starts
        timer-2  2     SCHED_DEADLINE, 1ms of each 10ms, by 10ms  +9578861ns
      load sh-2: /usr/bin/sh 'a b' ''
        program            /usr/bin/sh
        cpus               0-1
        policy             batch
        nice               -5
        stdout             null
        stderr             null
        on_success         respawn
        on_failure         stop
        start_delay        2104333ns
        may_rest           false
      load sh: sh -c 'stress-ng --fork 2; exit 1'
        program            /usr/bin/sh
        cpus               1
        policy             fifo
        priority           3
        stdout             out\u{1b}.txt
        stderr             null
        on_success         stop
        on_failure         ignore
        start_delay        101577256ns
        may_rest           false
    ");
}

#[test]
fn the_controller_runs_on_cpus_that_are_not_measured() {
    let controller = |more: &str| with_timer(more).controller_cpus.to_string();
    assert_eq!(controller("cpus = '1-2'"), "0");
    assert_eq!(controller("cpus = '0'\n[[measure]]\nkind = 'timer'\ncpus = '2'"), "1");
    assert_eq!(controller(""), "0-2", "nothing is left but all of them");
    assert_eq!(controller("[experiment]\ncpus = 'all'"), "0-2");
    assert_eq!(controller("[partition]\ncpus = '1-2'"), "0");
    assert_eq!(controller("cpus = 'all'\n[partition]\ncpus = '1-2'"), "0");
}

#[test]
fn measures_run_in_the_partition_and_loads_outside() {
    let plan = with_timer("[[load]]\ncommand = 'x'\n[partition]\ncpus = '2'");
    assert_eq!(plan.phases[0].measures[0].cpus.to_string(), "2");
    assert_eq!(plan.phases[0].loads[0].cpus.to_string(), "0-1");
    assert_eq!(
        plan.partition.map(|p| (p.name, p.cpus.to_string())),
        Some(("rt".to_owned(), "2".to_owned()))
    );
}

#[test]
fn threads_have_names_and_staggered_start_offsets() {
    let threads = |more: &str| {
        let plan = with_timer(more);
        let threads = plan.phases[0].measures[0].threads.iter();
        threads.map(|t| format!("{} on {} +{}", t.name, t.cpus, t.start_offset)).collect::<Vec<_>>()
    };
    assert_eq!(
        threads("offset = '10us'"),
        ["timer/cpu0 on 0 +0s", "timer/cpu1 on 1 +10us", "timer/cpu2 on 2 +20us"]
    );
    assert_eq!(
        threads("threads = 2\noffset = '1us'"),
        ["timer/0 on 0-2 +0s", "timer/1 on 0-2 +1us"]
    );
    assert_eq!(threads("threads = 1"), ["timer on 0-2 +0s"]);
}

#[test]
fn duplicate_default_names_are_numbered() {
    let toml = format!(
        "{TIMER}{TIMER}name = 'timer-2'\n{TIMER}[[load]]\ncommand = '/bin/x'\n[[load]]\ncommand = \
         'x'\n"
    );
    let phase = &plan(&toml).phases[0];
    let names: Vec<&str> = phase.measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(names, ["timer", "timer-2", "timer-3"]);
    assert_eq!((phase.loads[0].name.as_str(), phase.loads[1].name.as_str()), ("x", "x-2"));
    let name = |path: &str| support::resolved(path, TIMER).unwrap().plan.name;
    assert_eq!(name("dir/my test.toml"), "my test");
    assert_eq!(name("a\u{1b}b.toml"), "a-b");
    assert_eq!(name(&"é".repeat(100)), "é".repeat(64));
    assert_eq!(name(".."), "experiment");
}

#[test]
fn the_deadline_method_implies_the_deadline_policy_and_vice_versa() {
    for more in ["method = 'deadline'", "policy = 'deadline'"] {
        let plan = with_timer(&format!("{more}\nperiod = '10ms'"));
        let measure = &plan.phases[0].measures[0];
        let Workload::Timer(timer) = &measure.workload else { panic!("{measure:?}") };
        assert_eq!(timer.method, TimerMethod::Deadline);
        assert_eq!(
            measure.threads.len(),
            1,
            "the kernel refuses SCHED_DEADLINE to a pinned thread"
        );
        let SchedulingSpec::Deadline(p) = measure.threads[0].scheduling else {
            panic!("{measure:?}")
        };
        assert_eq!(
            (p.runtime, p.deadline, p.period),
            (Nanos::MILLI, Nanos::from_millis(10), Nanos::from_millis(10))
        );
    }
    let plan =
        with_timer("policy = 'deadline'\nmethod = 'timerfd'\nperiod = '200us'\ndeadline = '5us'");
    let SchedulingSpec::Deadline(p) = plan.phases[0].measures[0].threads[0].scheduling else {
        panic!("{plan:?}")
    };
    assert_eq!((p.runtime, p.deadline), (Nanos::from_micros(5), Nanos::from_micros(5)));
}

#[test]
fn a_measure_without_a_length_lasts_as_long_as_its_phase() {
    let phases = "[[phase]]\nduration = '2s'\n[[phase]]\nduration = '3s'\n[[phase]]\n";
    let lengths = |more: &str| {
        let plan = with_timer(&format!("{more}\n{phases}"));
        let lengths: Vec<Length> =
            plan.phases.iter().map(|phase| phase.measures[0].length).collect();
        (lengths, plan.estimated_time())
    };
    let secs = |n| Length::Duration(Nanos::from_secs(n));
    assert_eq!(lengths(""), (vec![secs(2), secs(3), Length::UntilInterrupted], None));
    assert_eq!(lengths("duration = '1s'"), (vec![secs(1); 3], Some(Nanos::from_secs(6))));
    assert_eq!(
        lengths("samples = 500"),
        (vec![Length::Samples(500); 3], Some(Nanos::from_millis(5_500)))
    );
    let offset = with_timer("samples = 500\noffset = '500us'\n").estimated_time();
    assert_eq!(
        offset,
        Some(Nanos::from_millis(501)),
        "the last of three threads starts a millisecond later"
    );
}

#[test]
fn thread_limits_apply_to_each_phase_separately() {
    // 128 phases with one measure each: the limit of threads holds for each phase, not for all
    // together.
    let mut toml = String::new();
    for k in 0..100 {
        toml += &format!(
            "[[measure]]\nkind = 'timer'\nthreads = 100\nphases = ['p{k}']\n[[phase]]\nname = \
             'p{k}'\nduration = '1s'\n"
        );
    }
    assert_eq!(plan(&toml).phases.len(), 100);
}

#[test]
fn event_groups_for_explain_depend_on_the_workloads() {
    let events = |text: &str| {
        let explain = plan(text).explain.expect("asked for");
        explain.events.iter().map(|group| group.word()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        events("[explain]\n[[measure]]\nkind = 'timer'\n"),
        "sched irq vectors softirq ipi hrtimer fault idle",
        "beside timers, interrupts show which system call they interrupted"
    );
    assert_eq!(
        events("[explain]\n[[measure]]\nkind = 'timer'\n[[measure]]\nkind = 'mutex'\n"),
        "sched irq vectors softirq ipi hrtimer syscall futex lock fault idle"
    );
    let timers_only = |text: &str| plan(text).explain.expect("asked for").timers_only;
    assert!(timers_only("[explain]\n[[measure]]\nkind = 'timer'\n"));
    assert!(!timers_only("[explain]\nevents = ['sched']\n[[measure]]\nkind = 'timer'\n"));
    assert!(!timers_only("[explain]\n[[measure]]\nkind = 'timer'\n[[measure]]\nkind = 'mutex'\n"));
    // Recording system calls would disturb measurements of them.
    assert_eq!(
        events("[explain]\n[[measure]]\nkind = 'syscall'\n[[measure]]\nkind = 'mutex'\n"),
        "sched irq vectors softirq ipi hrtimer futex lock fault idle"
    );
    assert_eq!(
        events("[explain]\nevents = ['sched', 'block']\n[[measure]]\nkind = 'timer'\n"),
        "sched block"
    );
}

#[test]
fn an_impossible_explain_section_is_refused() {
    insta::assert_snapshot!(support::problems(
        "[explain]\nworst = 1001\nbefore = '2s'\nbuffer = '1KiB'\nevents = ['irq']\n[[measure]]\nkind = 'timer'\n"
    ), @r"
    2:9: error: `worst`: 1001 is out of bounds: 0 to 1000
    3:10: error: `before`: `2s` is too long: at most 1s
    4:10: error: `buffer`: `1KiB` is too small: at least 64KiB
    ");
}

#[test]
fn explain_without_sched_events_is_refused() {
    insta::assert_snapshot!(support::problems("[explain]\nevents = ['irq']\n[[measure]]\nkind = 'timer'\n"), @r"
    2:10: error: without the events of `sched` the recording does not show what ran; add `sched`, or leave `events` out
    ");
}
