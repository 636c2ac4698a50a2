//! A guest that is repeatedly stopped as a whole: the time is attributed to the hypervisor, in
//! every sample and in the windows.

use crate::common::{Place, kill, text};
use punctual_lab::{GuestControl, GuestFile, GuestOutcome, GuestPhase, GuestResult, Job};
use punctual_testing as testing;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The length of each stop, and the time between two.
const STOPPED: Duration = Duration::from_millis(250);
const RUNNING: Duration = Duration::from_millis(900);
/// The latencies of samples due during a stop. Longer ones were delayed further by a busy host.
const LATE: std::ops::Range<u64> = 125_000_000..325_000_000;

/// Timers of different periods: a stop during one CPU's sample finds the other waiting, as proof.
const EXPERIMENT: &str = r#"
[experiment]
name = "stopped"
calibrate = false
[explain]
worst = 40
[[measure]]
name = "timer"
kind = "timer"
cpus = "0"
period = "20ms"
policy = "fifo"
priority = 80
duration = "12s"
[[measure]]
name = "other"
kind = "timer"
cpus = "1"
period = "23ms"
policy = "fifo"
priority = 80
duration = "12s"
"#;

/// The emulator started by this process.
fn emulator() -> Option<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = children
        .flat_map(|line| line.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let named = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("qemu-system"))
    };
    pids.into_iter().find(named)
}

/// Runs the guest, and stops it repeatedly.
fn stopped() -> Option<GuestResult> {
    let mut guest =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.12-rt", "", 2)?;
    guest.files = vec![GuestFile::from_text("/experiment.toml", EXPERIMENT)];
    guest.job = Job::Script(
        "punctual run --quiet /experiment.toml --output /results/bundle; echo $? >/results/status"
            .into(),
    );
    let (began, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(RUNNING);
                // A booting kernel does not tolerate it.
                let Some(pid) = emulator().filter(|_| began.load(Ordering::Relaxed)) else {
                    continue;
                };
                kill(pid, "STOP");
                std::thread::sleep(STOPPED);
                kill(pid, "CONT");
            }
        });
        let result = guest.run_watched(&mut |progress| {
            began.store(matches!(progress.phase, GuestPhase::Job), Ordering::Relaxed);
            GuestControl::GoOn
        });
        ended.store(true, Ordering::Relaxed);
        result
    });
    let result = testing::or_skip(result)?;
    assert!(
        result.outcome == GuestOutcome::Finished && result.exit_status == Some(0),
        "{}",
        testing::story(&result)
    );
    Some(result)
}

#[test]
fn a_guest_that_stands_still_is_stolen_time() {
    let Some(result) = stopped() else { return };
    let place = Place::with("");
    for (name, bytes) in result.results.iter().filter(|(name, _)| name.starts_with("bundle/")) {
        std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
        place.write(name, bytes);
    }
    let summary = place.summary();
    let (mut late, mut stolen, mut unknown_ns, mut all_ns) = (0, 0, 0, 0);
    for series in 0..2 {
        let path = place.bundle().join(format!("phases/000/{series:04}.account.json"));
        let account: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let account = &account["known"];
        let parts: Vec<&str> =
            account["parts"].as_array().unwrap().iter().filter_map(|part| part.as_str()).collect();
        let of = |row: &serde_json::Value, key: &str, part: &str| {
            row[key][parts.iter().position(|word| *word == part).unwrap()].as_u64().unwrap()
        };
        for row in account["buckets"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["from"].as_u64().is_some_and(|from| LATE.contains(&from)))
        {
            late += row["count"].as_u64().unwrap();
            stolen += of(row, "longest", "steal");
            unknown_ns += of(row, "ns", "unknown");
            all_ns +=
                row["ns"].as_array().unwrap().iter().filter_map(|ns| ns.as_u64()).sum::<u64>();
        }
    }
    println!(
        "{stolen} of {late} late samples are stolen time, {unknown_ns} of {all_ns} ns unknown: {}",
        summary["phases"][0]["series"]
    );
    if late < 8 {
        return println!(
            "SKIPPED: this machine is too busy for a guest that is stopped to be late by that \
             alone ({late} samples)"
        );
    }
    assert!(stolen * 10 >= late * 9, "{stolen} of {late}: {summary}");
    assert!(unknown_ns * 20 < all_ns, "{unknown_ns} of {all_ns}: {summary}");

    let explained = place.punctual(&["explain", "--json", "bundle"]);
    let document: serde_json::Value = serde_json::from_slice(&explained.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&explained)));
    let samples = document["samples"].as_array().unwrap();
    let late: Vec<_> = samples
        .iter()
        .filter(|sample| sample["latency_ns"].as_u64().is_some_and(|ns| LATE.contains(&ns)))
        .collect();
    let blamed = |sample: &&&serde_json::Value| {
        let parts = sample["parts"].as_array().unwrap();
        let sum = |word: &str| {
            parts
                .iter()
                .filter(|part| part["cause"] == word)
                .filter_map(|part| part["ns"].as_u64())
                .sum::<u64>()
        };
        sum("steal") * 2 > sample["latency_ns"].as_u64().unwrap()
    };
    let right = late.iter().filter(blamed).count();
    println!("{right} of {} windows of late samples are stolen time", late.len());
    assert!(
        !late.is_empty() && right * 10 >= late.len() * 9,
        "{right} of {}: {}",
        late.len(),
        text(&explained)
    );
}
