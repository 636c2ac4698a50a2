//! Recordings of this test's own threads, compared with the kernel's counters of them.

use crate::common::{self, Place, punctual, text};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Text of ftrace: pages of a large request, and a slab object that is freed and given again.
#[test]
fn pages_given_and_objects_given_again_are_those_of_a_trace() {
    let sizes = |asked, given| format!(" bytes_req={asked} bytes_alloc={given} gfp_flags=0");
    let (large, page) = (sizes(65 << 12, 128 << 12), sizes(4_096, 4_480));
    let lines = [
        ("kmalloc", 0xa1, &*large),
        ("kmem_cache_alloc", 0xcef4_0c80_u64, &page),
        ("kmem_cache_free", 0xcef4_0c80, ""),
        ("kmem_cache_alloc", 0xcef4_0c80, &page),
        ("kfree", 0xa1, ""),
    ];
    let line = |(at, (what, object, sizes)): (usize, (&str, u64, &str))| {
        format!(
            "  a-7 [000] .... 1.00000{at}: {what}: call_site=x+0x1/0x2 ptr={object:016x}{sizes}\n"
        )
    };
    let trace: String = lines.into_iter().enumerate().map(line).collect();
    let place = Place::with("");
    place.write("trace.txt", trace.as_bytes());
    let shown = place.punctual(&["occupancy", "trace.txt", "--memory", "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let given = serde_json::json!([{"asked": 65, "given": 128, "requests": 1}]);
    assert_eq!(shown["pages"], given, "{shown:#}");
    let slab = ["requests", "requested", "allocated", "known", "reused", "freed"];
    let slab = slab.map(|key| shown["slab"][key].as_u64().expect(key));
    assert_eq!(slab, [2, 8_192, 8_960, 2, 1, 1], "{shown:#}");
    assert_eq!(shown["kmalloc"]["freed"], 1, "{shown:#}");
    let page = text(&place.punctual(&["occupancy", "trace.txt", "--memory"]));
    assert!(page.contains("reused") && page.contains("128"), "{page}");
    place.write("other.txt", b"  a-7 [000] .... 1.000001: softirq_entry: vec=1 [action=TIMER]\n");
    let refused = place.punctual(&["occupancy", "other.txt", "--memory"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("--events kmalloc,page"), "{}", text(&refused));
}

/// The kernel's counters of the calling thread.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    running: i64,
    ready: i64,
    voluntary: i64,
    involuntary: i64,
}

impl Kernel {
    fn of_this_thread() -> Kernel {
        let schedstat =
            fs::read_to_string("/proc/thread-self/schedstat").expect("CONFIG_SCHED_INFO");
        let status = fs::read_to_string("/proc/thread-self/status").expect("procfs");
        let mut times = schedstat.split_whitespace().map(|n| n.parse().unwrap());
        let count = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim().parse().unwrap()
        };
        let (running, ready) = (times.next().unwrap(), times.next().unwrap());
        let (voluntary, involuntary) =
            (count("voluntary_ctxt_switches:"), count("nonvoluntary_ctxt_switches:"));
        Kernel { running, ready, voluntary, involuntary }
    }
}

fn tid() -> u64 {
    let link = fs::read_link("/proc/thread-self").expect("procfs");
    link.file_name().unwrap().to_string_lossy().parse().unwrap()
}

/// Sleeps and runs in turn, then reads the kernel's counters.
fn work(sleeps: u32, spin: Duration) -> (u64, Kernel) {
    for _ in 0..sleeps {
        std::thread::sleep(Duration::from_micros(500));
        let began = Instant::now();
        while began.elapsed() < spin {
            std::hint::spin_loop();
        }
    }
    (tid(), Kernel::of_this_thread())
}

/// `punctual trace` in force, until the file `go` is removed; `None` if impossible here.
fn trace(place: &Place) -> Option<Child> {
    let script = "touch go; while [ -e go ]; do sleep 0.02; done";
    let arguments = [
        "trace",
        "--quiet",
        "--output",
        "bundle",
        "--events",
        "sched,irq,softirq,vectors",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut command = punctual();
    command
        .args(arguments)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("punctual starts");
    let timeout = Instant::now();
    while !place.path().join("go").exists() {
        if child.try_wait().unwrap().is_some() {
            let output = child.wait_with_output().unwrap();
            println!("SKIPPED: events cannot be recorded here: {}", text(&output).trim());
            return None;
        }
        assert!(timeout.elapsed() < common::HANG, "the command is not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child)
}

/// Steal time of this machine, over all CPUs.
fn stolen() -> i64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: i64 =
        stat.lines().next().unwrap().split_whitespace().nth(8).map_or(0, |n| n.parse().unwrap());
    ticks * 10_000_000
}

fn document(place: &Place, arguments: &[&str]) -> serde_json::Value {
    let output = place.punctual(arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

#[test]
fn occupancy_and_switches_match_the_counts_of_the_kernel() {
    let place = Place::with("");
    let Some(recorder) = trace(&place) else { return };
    let stolen_before = stolen();
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    // Twice as many as CPUs, so that some are ready without running.
    let workers = (0..2 * cpus)
        .map(|k| std::thread::spawn(move || work(20, Duration::from_micros(500 + 500 * k as u64))));
    let report: BTreeMap<u64, Kernel> =
        workers.collect::<Vec<_>>().into_iter().map(|worker| worker.join().unwrap()).collect();
    // Ticks of 10 ms: one at either end.
    let stolen = stolen() - stolen_before + 20_000_000;
    fs::remove_file(place.path().join("go")).unwrap();
    let recorded = recorder.wait_with_output().unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded));

    let occupancy = document(&place, &["occupancy", "bundle", "--json"]);
    if occupancy["covered"]["lost"] != 0 {
        println!(
            "SKIPPED: events were lost, so nothing is to be compared: {}",
            occupancy["covered"]
        );
        return;
    }
    let processes = occupancy["processes"].as_array().unwrap();
    let threads: BTreeMap<u64, &serde_json::Value> = processes
        .iter()
        .flat_map(|process| process["threads"].as_array().unwrap())
        .map(|thread| (thread["tid"].as_u64().unwrap(), thread))
        .collect();
    let (asked, mut compared) = (report.len(), 0);
    for (tid, kernel) in report {
        let ours = threads[&tid];
        let ns = |key: &str| ours[key].as_i64().unwrap();
        if ns("unknown") > 0 {
            // The process was created and ended within the recording. Some machines hide the
            // switches of certain tasks from every tracer.
            assert!(
                occupancy["contradictions"].as_u64().unwrap() > 0,
                "nothing explains what is unknown: {ours}"
            );
            continue;
        }
        compared += 1;
        let near = |ours: i64| ours / 20 + 3_000_000;
        let said = format!("tid {tid}: {kernel:?}, {stolen} ns stolen, against {ours}");
        // After reading the counters the thread continues for a moment, and ends with a switch.
        let running = ns("running");
        assert!(kernel.running <= running + near(running), "more than the recording tells: {said}");
        let least = running - ns("interrupted") - stolen - near(running);
        assert!(kernel.running >= least, "less than the recording tells: {said}");
        let ready = ns("ready") - ns("waking");
        // A thread preempted after reading waits once more.
        let again = if ns("involuntary") > kernel.involuntary { ns("longest_ready") } else { 0 };
        assert!((kernel.ready - ready).abs() <= near(ready) + stolen + again, "{said}");
        assert!((0..=2).contains(&(ns("voluntary") - kernel.voluntary)), "{said}");
        // A neighbour may preempt it as often afterwards as before.
        let preempted = ns("involuntary") - kernel.involuntary;
        assert!((0..=2 + kernel.involuntary / 4).contains(&preempted), "{said}");
        assert!(ns("voluntary") >= 20, "it slept 20 times: {said}");
    }
    if compared < asked {
        println!(
            "SKIPPED: of {asked} threads, {} met tasks whose switches the kernel does not tell",
            asked - compared
        );
    }
    for cpu in occupancy["cpus"].as_array().unwrap() {
        let sum: i64 =
            ["busy", "idle", "unknown"].iter().map(|key| cpu[key].as_i64().unwrap()).sum();
        let span = occupancy["covered"]["ended"].as_i64().unwrap()
            - occupancy["covered"]["began"].as_i64().unwrap();
        assert_eq!(sum, span, "{cpu}");
    }
    wake_ups(&place);
}

/// Pairs of the same recording.
fn wake_ups(place: &Place) {
    let pair = "sched_waking->sched_switch";
    let pairs = document(place, &["pairs", "bundle", pair, "irq_entry->irq_exit", "--json"]);
    let found = &pairs["pairs"][0];
    assert!(found["count"].as_u64().unwrap() >= 40, "{found}");
    assert_eq!(found["uncertain"]["count"], 0);
    let worst = &found["worst"][0];
    assert_eq!(worst["latency"], found["max"]);
    assert!(!worst["ran"].as_array().unwrap().is_empty(), "{worst}");
    let counted: u64 = found["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket[1].as_u64().unwrap())
        .sum();
    assert_eq!(found["count"], counted);

    let lines = place.punctual(&["pairs", "bundle", pair, "--calls", "--json"]);
    let lines: Vec<serde_json::Value> = text(&lines)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one document a line"))
        .collect();
    assert_eq!(lines.len() as u64, found["count"].as_u64().unwrap());
    let longest = lines.iter().map(|line| line["latency"].as_i64().unwrap()).max();
    assert_eq!(longest, found["max"].as_i64());

    for (limit, code, verdict) in [("1ns", 3, "NOT MET"), ("1h", 0, "met")] {
        let held =
            place.punctual(&["pairs", "bundle", pair, "--limit", &format!("{pair} < {limit}")]);
        let shown = text(&held);
        // A thread woken at the very end is not yet switched to.
        let open = code == 0 && held.status.code() == Some(4) && shown.contains("no end");
        assert!(held.status.code() == Some(code) || open, "{shown}");
        assert!(shown.contains(verdict) || open, "{shown}");
    }
    let wrong = place.punctual(&["pairs", "bundle", "sched_wakin->sched_switch"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong).contains("did you mean `sched_waking`?"), "{}", text(&wrong));
}

#[test]
fn trace_fails_if_a_limit_on_its_recording_is_violated() {
    let place = Place::with("");
    let limited = |limit: &str, bundle: &str| {
        let events =
            ["trace", "--quiet", "--events", "sched", "--output", bundle, "--limit", limit];
        place.punctual(&[&events[..], &["--", "sleep", "0.05"]].concat())
    };
    let wrong = limited("sched_waking->sched_switch", "none");
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    let violated = limited("sched_waking->sched_switch < 1ns", "violated");
    if violated.status.code() == Some(2) {
        println!("SKIPPED: events cannot be recorded here: {}", text(&violated).trim());
        return;
    }
    assert_eq!(violated.status.code(), Some(3), "{}", text(&violated));
    assert!(text(&violated).contains("is violated"), "{}", text(&violated));
    let shown = document(&place, &["show", "violated", "--json"]);
    assert_eq!(shown["verdict"], "not-met");
    assert_eq!(shown["ending"]["exit_code"], 3);
    let undecided = limited("no_such_point < 1s", "undecided");
    assert_eq!(undecided.status.code(), Some(4), "{}", text(&undecided));
    assert_eq!(document(&place, &["show", "undecided", "--json"])["verdict"], "undecided");
}

#[test]
fn a_run_fails_if_a_limit_on_its_recording_is_violated() {
    let experiment = "[experiment]\nforce = true\n[record]\nevents = [\"sched\"]\nlimits = \
                      [\"sched_waking->sched_switch < 1ns\"]\n[[measure]]\nkind = \
                      \"timer\"\nperiod = \"5ms\"\n[[phase]]\nduration = \"200ms\"\n";
    let place = Place::with(experiment);
    let run = place.run();
    if !place.bundle().exists() {
        println!("SKIPPED: events cannot be recorded here: {}", text(&run).trim());
        return;
    }
    assert_eq!(run.status.code(), Some(3), "{}", text(&run));
    assert!(
        text(&run).contains("limit-violated")
            || place.summary()["findings"].to_string().contains("limit-violated")
    );
}

#[test]
fn a_bundle_without_a_recording_is_refused() {
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
    for command in ["pairs", "occupancy"] {
        let output = punctual().args([command, bundle]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output).contains("has no recording"), "{}", text(&output));
    }
}

/// Sleeps, and then prints its thread id and its switches from getrusage(2).
const SLEEPER: &str = "import os, resource, time\nfor _ in range(100): time.sleep(0.001)\nu = \
                       resource.getrusage(resource.RUSAGE_SELF)\nprint(os.getpid(), u.ru_nvcsw, \
                       u.ru_nivcsw)\n";

#[test]
fn recorded_switches_match_getrusage_and_perf_stat() {
    if !common::is_root("recording")
        || !common::has_program("perf", "linux-perf")
        || !common::has_program("python3", "python3")
    {
        return;
    }
    let place = Place::with("");
    place.write("sleeper.py", SLEEPER.as_bytes());
    let perf = [
        "perf",
        "stat",
        "--no-inherit",
        "-x",
        ",",
        "-o",
        "perf.txt",
        "-e",
        "context-switches",
        "python3",
        "sleeper.py",
    ];
    let words = ["trace", "--quiet", "--output", "bundle", "--events", "sched", "--"];
    let output = place.punctual(&[&words[..], &perf[..]].concat());
    if !output.status.success() {
        println!("SKIPPED: this cannot be recorded or counted here: {}", text(&output).trim());
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Vec<i64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [tid, voluntary, involuntary] = report[..] else { panic!("{said}") };
    let perf = fs::read_to_string(place.path().join("perf.txt")).unwrap();
    let counted =
        perf.lines().find_map(|line| line.split_once(",,context-switches")).map(|(count, _)| count);
    let Some(counted) = counted.and_then(|count| count.parse::<i64>().ok()) else {
        println!("SKIPPED: perf does not count context switches here: {perf}");
        return;
    };
    let occupancy = document(&place, &["occupancy", "bundle", "--json"]);
    let mut threads = occupancy["processes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|p| p["threads"].as_array().unwrap());
    let ours = threads.find(|thread| thread["tid"] == tid).expect("the thread was recorded");
    if occupancy["covered"]["lost"] != 0 || ours["unknown"] != 0 {
        println!(
            "SKIPPED: not every switch of the thread was told: {} {ours}",
            occupancy["covered"]
        );
        return;
    }
    let (ours_voluntary, ours_involuntary) =
        (ours["voluntary"].as_i64().unwrap(), ours["involuntary"].as_i64().unwrap());
    let what = format!("getrusage {voluntary} + {involuntary}, perf {counted}, ours {ours}");
    // After reading, Python ends: the last switch, and maybe some for its output, follow.
    assert!((voluntary..=voluntary + 20).contains(&ours_voluntary), "{what}");
    let at_most = involuntary + involuntary / 2 + 20;
    assert!((involuntary..=at_most).contains(&ours_involuntary), "{what}");
    // perf begins at the exec: before it the task was created and waited for its parent; nor does
    // perf count the switch that ends the task.
    let before = ours_voluntary + ours_involuntary - counted;
    assert!((0..=8 + involuntary / 10).contains(&before), "{what}");
}
