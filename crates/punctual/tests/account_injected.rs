//! The breakdown of every sample's time, with causes injected by the test: threads that migrate,
//! clocks and ways to sleep, and a group's quota.

use crate::common;
use crate::common::quota::Quota;
use crate::common::text;
use crate::injected;
use crate::injected::{ALWAYS, Arena, Disturber, arena};
use punctual_core::CpuSet;
use punctual_sys::{attributes, children};
use punctual_testing::HiddenSamples;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The period of the measured threads.
const PERIOD: i64 = 1_000_000;

/// Takes these CPUs from all tasks of lower priority, at the same instants, while `work` runs.
fn hogged<T>(cpus: &[usize], work: impl FnOnce() -> T) -> T {
    let hog = |cpu: &usize| Disturber::start("hog", *cpu, Some(90), 3, 20);
    let hogs: Vec<Disturber> = cpus.iter().map(hog).collect();
    let done = work();
    hogs.into_iter().for_each(|hog| drop(hog.stop()));
    done
}

/// punctual with the kernel's types hidden, as on a kernel that does not export them.
fn without_types() -> Command {
    let mut command = Command::new("unshare");
    let hidden = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_punctual")]);
    command
}

/// The accounts of all series, and the maximum number of samples of each without one.
struct Accounts {
    /// The accounts by the names of their measures.
    all: Vec<(String, Value)>,
    hidden: usize,
}

/// `None`, with the reason printed, if unavailable.
fn accounts(arena: &Arena, experiment: &str, untyped: bool) -> Option<Accounts> {
    accounts_beside(arena, experiment, untyped, |_| ())
}

/// Like `accounts`, with an action on the measuring process.
fn accounts_beside(
    arena: &Arena,
    experiment: &str,
    untyped: bool,
    beside: impl FnOnce(i32),
) -> Option<Accounts> {
    arena.place.write("experiment.toml", experiment.as_bytes());
    let _ = std::fs::remove_dir_all(arena.place.bundle());
    let mut command = if untyped { without_types() } else { common::punctual() };
    command.args(["run", "--quiet", "experiment.toml", "--output", "bundle"]);
    let hidden = HiddenSamples::begin();
    command.current_dir(arena.place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("punctual starts");
    beside(child.id() as i32);
    let ran = child.wait_with_output().expect("punctual ends");
    let hidden = hidden.samples(PERIOD);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran));
    let summary = arena.place.summary();
    assert!(!untyped || summary.to_string().contains("account-untyped"), "{}", text(&ran));
    let series = summary["phases"][0]["series"].as_array().unwrap();
    let report = series.iter().map(|series| {
        let account = &series["account"];
        if let Some(why) = account["unavailable"].as_str() {
            println!("SKIPPED: {why}");
            return None;
        }
        assert_eq!(account["known"]["samples"], series["count"]);
        Some((series["measure"].as_str().unwrap().to_owned(), account["known"].clone()))
    });
    Some(Accounts { all: report.collect::<Option<_>>()?, hidden })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// A hog that runs 43 times a second makes a sample late each time: those are attributed to it, and
/// nearly none to others. Samples are counted rather than their time: other tasks on a busy machine
/// contribute to the time.
fn assert_the_hog_is_blamed(name: &str, account: &Value, hidden: usize) {
    let whole = &account["whole"];
    let (samples, missing) = (number(&account["samples"]), number(&account["unattributed"]));
    let longest = |part: &str| number(&whole["longest"][part]);
    let sum: f64 = whole["mean_ns"].as_object().unwrap().values().map(number).sum();
    let unknown = number(&whole["mean_ns"]["unknown"]) / sum;
    let report = format!(
        "{name}: {} of {samples} samples are the hog's, {} nobody's, {missing} without kernel \
         events; {unknown:.3} of the time is unknown; {hidden} samples may have been kept from \
         BPF programs",
        longest("preempted"),
        longest("unknown")
    );
    println!("{report}");
    // The hog itself may be late if the kernel does not switch.
    assert!((30.0..=60.0).contains(&longest("preempted")), "{report} {whole}");
    let hidden = hidden as f64;
    assert!(
        (missing - hidden) * 20.0 < samples && (longest("unknown") - hidden) * 20.0 < samples,
        "{report} {whole}"
    );
    assert!(unknown < 0.05 + hidden / samples, "{report} {whole}");
}

/// A measure of this name with these keys, whose samples are broken down.
fn measure(name: &str, cpus: &str, more: &str) -> String {
    format!(
        "[[measure]]\nname = '{name}'\nkind = 'timer'\ncpus = '{cpus}'\nperiod = \
         '{PERIOD}ns'\n{more}\n"
    )
}

const FIFO: &str = "policy = 'fifo'\npriority = 80\nduration = '1s'\n";
const EXPLAIN: &str = "[explain]\nworst = 0\n";

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn on_any_clock_and_however_it_sleeps_the_hog_is_blamed() {
    let Some(arena) = arena("on_any_clock_and_however_it_sleeps_the_hog_is_blamed") else { return };
    let ways = [
        ("wall", "clock = 'realtime'"),
        ("relative", "method = 'nanosleep-relative'"),
        ("relative-wall", "method = 'nanosleep-relative'\nclock = 'realtime'"),
        ("timerfd", "method = 'timerfd'"),
        ("signal", "method = 'posix-timer'"),
    ];
    let cpu = arena.cpu.to_string();
    let measures: String =
        ways.iter().map(|(name, how)| measure(name, &cpu, &format!("{FIFO}{how}"))).collect();
    let experiment = format!("{EXPLAIN}{measures}");
    for untyped in [false, true] {
        let Some(report) = hogged(&[arena.cpu], || accounts(&arena, &experiment, untyped)) else {
            continue;
        };
        assert_eq!(report.all.len(), ways.len());
        for (name, account) in &report.all {
            assert_the_hog_is_blamed(
                &format!("{name}, untyped: {untyped}"),
                account,
                report.hidden,
            );
        }
    }
}

/// The thread is woken on one CPU and may run on the other: a hog on both is the culprit anywhere.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_thread_that_wanders_is_followed() {
    let Some(arena) = arena("a_thread_that_wanders_is_followed") else { return };
    let cpus = [arena.cpu - 1, arena.cpu];
    let both = format!("{}-{}", cpus[0], cpus[1]);
    let experiment = |more: &str| {
        format!("{EXPLAIN}{}", measure("wandering", &both, &format!("threads = 1\n{FIFO}{more}")))
    };
    for (untyped, more) in
        [(false, ""), (false, "method = 'nanosleep-relative'\nclock = 'realtime'"), (true, "")]
    {
        let report = hogged(&cpus, || accounts(&arena, &experiment(more), untyped));
        let Some(report) = report else { continue };
        for (name, account) in &report.all {
            assert_the_hog_is_blamed(
                &format!("{name} {more:?}, untyped: {untyped}"),
                account,
                report.hidden,
            );
        }
    }
}

/// The number of stops of a run, and the length of each.
const STOPS: usize = 20;
const STOPPED: Duration = Duration::from_millis(4);

/// Stops a process repeatedly while it measures.
fn stop_and_let_go_on(pid: i32) {
    let measures = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.flatten().any(|name| name.trim_end() == "measure")
    };
    common::eventually("measuring", measures);
    for _ in 0..STOPS {
        std::thread::sleep(STOPPED * 4);
        children::send(pid, libc::SIGSTOP).unwrap();
        std::thread::sleep(STOPPED);
        children::send(pid, libc::SIGCONT).unwrap();
    }
}

/// The time of a stop is not a delay of the timer by another task.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_stopped_thread_is_stopped_and_no_cpu_is_blamed() {
    let Some(arena) = arena("a_stopped_thread_is_stopped_and_no_cpu_is_blamed") else { return };
    let how = "policy = 'fifo'\npriority = 80\nduration = '2s'\n";
    let experiment = format!("{EXPLAIN}{}", measure("stopped", &arena.cpu.to_string(), how));
    for untyped in [false, true] {
        let report = accounts_beside(&arena, &experiment, untyped, stop_and_let_go_on);
        let Some(report) = report else { continue };
        let (_, account) = &report.all[0];
        let longest = |part: &str| number(&account["whole"]["longest"][part]);
        let shown = format!(
            "untyped: {untyped}: {} of {STOPS} stops are such; {} {}",
            longest("stopped"),
            account["whole"],
            report.hidden
        );
        println!("{shown}");
        // A stop may coincide with another delay, or a sample be hidden from the BPF programs.
        let least = STOPS as f64 / 2.0 - report.hidden as f64;
        assert!((least..=STOPS as f64 + 2.0).contains(&longest("stopped")), "{shown}");
    }
}

/// A process that is killed with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A task of the group uses up its quota on the CPU of the measured thread, which is in the group
/// too; a task outside of it has the CPU meanwhile.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_groups_quota_is_named_although_others_run() {
    let test = "a_groups_quota_is_named_although_others_run";
    let Some(arena) = arena(test) else { return };
    let Some(quota) = Quota::new(test) else { return };
    let cpu = CpuSet::single(arena.cpu);
    let outside = Disturber::start("outside", arena.cpu, None, ALWAYS, 0);
    let how = "policy = 'other'\nduration = '2s'";
    arena.place.write(
        "experiment.toml",
        format!("[explain]\n{}", measure("quota", &arena.cpu.to_string(), how)).as_bytes(),
    );
    let mut punctual = Ended(arena.place.start());
    quota.take(&punctual.0);
    common::eventually("measuring", || arena.place.bundle().join("phases/000").exists());
    let spinner = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
    let spinner = Ended(spinner);
    attributes::set_affinity(spinner.0.id() as i32, &cpu).unwrap();
    quota.take(&spinner.0);
    let ended = punctual.0.wait().expect("it ends");
    drop(spinner);
    outside.stop();
    assert!(matches!(ended.code(), Some(0 | 4)), "{ended}");
    let times = quota.times();
    let summary = arena.place.summary();
    let account = &summary["phases"][0]["series"][0]["account"];
    if let Some(why) = account["unavailable"].as_str() {
        return println!("SKIPPED: {why}");
    }
    let whole = &account["known"]["whole"];
    let blamed = number(&whole["longest"]["throttled"]);
    let sum: f64 = whole["mean_ns"].as_object().unwrap().values().map(number).sum();
    let of = |part: &str| number(&whole["mean_ns"][part]) / sum;
    let report = format!(
        "held back {times} times; {blamed} samples are laid there, {:.3} of all time, {:.3} \
         unknown",
        of("throttled"),
        of("unknown")
    );
    println!("{report} {whole}");
    assert!(times >= 10 && blamed >= 10.0 && blamed <= times as f64 * 2.0, "{report}");
    assert!(of("unknown") < 0.05, "{report}");
    // The windows of the worst show the same, and the task that ran meanwhile.
    let explained = arena.explained(&[]);
    let held = explained["samples"].as_array().unwrap().iter();
    let held: Vec<&Value> = held.filter(|sample| number(&sample["latency_ns"]) >= 4e7).collect();
    injected::assert_right(&held, 5, |part| part["cause"] == "throttled");
    let by_outside =
        held.iter().filter(|sample| sample["parts"].to_string().contains("outside")).count();
    assert!(by_outside * 10 >= held.len() * 9, "{by_outside} of {}", held.len());
}
