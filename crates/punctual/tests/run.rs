//! `punctual run`, end to end: the binary on this kernel.

use crate::common::disk::Disk;
use crate::common::{
    Place, eventually, has_program, is_root, kill, processes_in, processes_with, punctual, text,
};
use crate::openmetrics;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

const TIMER: &str = r#"
[[measure]]
name = "timer"
kind = "timer"
cpus = "0"
period = "1ms"
"#;

fn experiment(measure: &str, rest: &str) -> String {
    format!("{TIMER}{measure}\n{rest}")
}

#[test]
fn every_sample_is_in_the_bundle_and_in_the_summary() {
    let place = Place::with(&experiment("samples = 500", ""));
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = place.summary();
    assert_eq!(summary["schema"], "punctual-summary/2");
    let series = &summary["phases"][0]["series"][0];
    assert_eq!(series["count"], 500);
    assert_eq!(series["lost"], 0);
    assert_eq!(series["expected"].as_u64(), Some(500 + series["overruns"].as_u64().unwrap()));
    let figure = |name: &str| series[name].as_f64().unwrap_or_else(|| panic!("{name}: {series}"));
    assert!(
        figure("min") > 0.0
            && figure("min") <= figure("median")
            && figure("median") <= figure("max")
    );
    assert!(figure("min") <= figure("mean") && figure("mean") <= figure("max"));
    // The run's printed output equals the summary in its bundle.
    let again =
        place.punctual(&["run", "--quiet", "experiment.toml", "--output", "second", "--json"]);
    let mut printed: serde_json::Value =
        serde_json::from_slice(&again.stdout).expect("JSON on standard output");
    // The answer is computed for display, and not stored.
    assert!(printed.as_object_mut().is_some_and(|of| of.remove("answer").is_some()));
    let saved = std::fs::read(place.path().join("second/summary.json")).expect("summary.json");
    assert_eq!(printed, serde_json::from_slice::<serde_json::Value>(&saved).unwrap());
    many_threads_have_no_page_fault();
}

/// Threads that begin at one instant touch the same pages.
fn many_threads_have_no_page_fault() {
    let threads = TIMER.replace("cpus = \"0\"", "cpus = \"all\"\nthreads = 32");
    let place = Place::with(&format!("{}samples = 20\n", threads.replace("1ms", "10ms")));
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = place.summary();
    if summary["findings"].to_string().contains("memory-not-locked") {
        return println!("SKIPPED: memory could not be locked");
    }
    let series = summary["phases"][0]["series"].as_array().expect("series");
    assert_eq!(series.len(), 32);
    for one in series {
        let usage = &one["usage"]["known"];
        assert!(usage["minor_faults"] == 0 && usage["major_faults"] == 0, "{one}");
    }
}

#[test]
fn every_method_clock_and_policy_measures() {
    for method in ["nanosleep-absolute", "nanosleep-relative", "timerfd", "posix-timer"] {
        for clock in ["monotonic", "realtime", "tai"] {
            if (method, clock) == ("timerfd", "tai") {
                continue; // timerfd_create(2) takes no CLOCK_TAI, and the plan says so
            }
            let lines = format!(
                "samples = 50\nmethod = \"{method}\"\nclock = \"{clock}\"\npolicy = \"other\""
            );
            let place = Place::with(&experiment(&lines, ""));
            let ran = place.run();
            assert_eq!(ran.status.code(), Some(0), "{method} {clock}: {}", text(&ran));
            assert_eq!(place.summary()["phases"][0]["series"][0]["count"], 50, "{method} {clock}");
        }
    }
    for policy in ["fifo", "rr", "other", "batch"] {
        let place = Place::with(&experiment(&format!("samples = 50\npolicy = \"{policy}\""), ""));
        let ran = place.run();
        assert_eq!(ran.status.code(), Some(0), "{policy}: {}", text(&ran));
        let scheduling = place.summary()["phases"][0]["series"][0]["scheduling"].to_string();
        if is_root("the policy in force") {
            assert!(scheduling.contains(&policy.to_uppercase()), "{policy}: {scheduling}");
        }
    }
}

#[test]
fn a_plan_is_printed_and_nothing_starts() {
    let loads = "[[load]]\nname = \"touch\"\ncommand = \"touch started\"";
    let place = Place::with(&experiment("duration = \"1s\"", loads));
    let planned = place.punctual(&["run", "--plan", "experiment.toml"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned));
    assert!(
        text(&planned).contains("SCHED_FIFO 80") && text(&planned).contains("touch"),
        "{}",
        text(&planned)
    );
    let names: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["experiment.toml"]);
}

#[test]
fn requirements_decide_the_exit_code() {
    for (require, code) in [
        ("max < 100s", 0),
        ("max < 1ns", 3),
        ("p90 < 1s", 0),
        ("p99.999 < 1s", 4),
        ("p99.999 < 1ns", 4),
    ] {
        let place =
            Place::with(&experiment(&format!("samples = 100\nrequire = [\"{require}\"]"), ""));
        let ran = place.line("run -q experiment.toml -o bundle --junit j.xml --lava l");
        assert_eq!(ran.status.code(), Some(code), "{require}: {}", text(&ran));
        let junit = std::fs::read_to_string(place.path().join("j.xml")).unwrap();
        let lava = std::fs::read_to_string(place.path().join("l")).unwrap();
        assert_eq!(
            (junit.contains("<failure"), junit.contains("<error")),
            (code == 3, code == 4),
            "{junit}"
        );
        assert_eq!(lava.contains(" fail "), code == 3, "{lava}");
    }
}

#[test]
fn metrics_have_the_figures_of_the_summary() {
    let place = Place::with(&experiment("samples = 300", ""));
    let run = |file: &str| {
        let _ = std::fs::remove_dir_all(place.bundle());
        let arguments = ["run", "--quiet", "experiment.toml", "--output", "bundle"];
        place.punctual(&[&arguments[..], &["--metrics", file]].concat())
    };
    let ran = run("x.prom");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let written = std::fs::read_to_string(place.path().join("x.prom")).unwrap();
    let samples = openmetrics::read(&written).unwrap_or_else(|why| panic!("{why}\n{written}"));
    let series = &place.summary()["phases"][0]["series"][0];
    for (metric, key, unit) in [
        ("punctual_latency_seconds_count", "count", 1.0),
        ("punctual_samples_total", "count", 1.0),
        ("punctual_missed_periods_total", "overruns", 1.0),
        ("punctual_samples_lost_total", "lost", 1.0),
        ("punctual_latency_worst_seconds", "max", 1e9),
    ] {
        let all = &samples[metric];
        assert_eq!(all.len(), 1, "{metric}");
        assert_eq!(all[0].labels["series"], series["name"].as_str().unwrap(), "{metric}");
        assert_eq!(all[0].value, series[key].as_f64().unwrap() / unit, "{metric}: {series:#}");
    }
    let held = samples["punctual_verdict"].iter().filter(|one| one.value == 1.0);
    let held: Vec<&str> = held.map(|one| one.labels["verdict"].as_str()).collect();
    assert_eq!((held, samples["punctual_exit_code"][0].value), (vec!["none-asked"], 0.0));
    let failed = run("none/x.prom");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    assert!(text(&failed).contains("cannot write none/x.prom"), "{}", text(&failed));
    let summary = place.summary();
    let findings = summary["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["id"] == "metrics-not-written");
    let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
    assert!(found["evidence"].as_str().unwrap().contains("No such file"), "{found:#}");
    let arguments = ["run", "experiment.toml", "--target", "vm:6.1", "--metrics", "x.prom"];
    let refused = place.punctual(&arguments);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("--metrics is for a run on this host"), "{}", text(&refused));
}

#[test]
fn an_interrupt_ends_the_run_with_full_results() {
    for signal in ["INT", "TERM"] {
        // A period of an hour: the thread must be woken from its sleep.
        let place = Place::with(&experiment("duration = \"10h\"", "").replace("1ms", "1h"));
        let child = place.start();
        eventually("a bundle with a series", || {
            place.bundle().join("phases/000/0000.checkpoint").exists()
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        kill(child.id(), signal);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
        assert!(text(&ended).contains("interrupted"), "{}", text(&ended));
        assert!(place.summary()["ending"].is_object());
    }
}

#[test]
fn kill_9_leaves_no_load_and_a_bundle_that_opens() {
    if !has_program("stress-ng", "stress-ng") {
        return;
    }
    let word = format!("punctual-kill-test-{}", std::process::id());
    let load = |k: u32| {
        format!(
            "[[load]]\nname = \"l{k}\"\ncommand = \"sh -c 'stress-ng --fork 2 --timeout 1s; : \
             {word}'\"\n"
        )
    };
    // A load that escapes into a new session, as daemons do.
    let daemon = format!(
        "[[load]]\nname = \"daemon\"\ncommand = \"sh -c 'setsid sleep 1000.{word} & wait'\"\n"
    );
    let daemon = daemon
        .replace(&format!("1000.{word}"), "4242")
        .replace("& wait", &format!("& wait; : {word}"));
    let loads: String = (0..3).map(load).collect::<String>() + &daemon;
    for victim in ["punctual", "guard"] {
        let place = Place::with(&experiment("duration = \"10min\"", &loads));
        let mut child = place.start();
        eventually("loads", || {
            processes_with(&word).len() >= 4 && !processes_with("sleep\u{0}4242").is_empty()
        });
        std::thread::sleep(std::time::Duration::from_millis(1500));
        // Other tests have guards, too.
        let mut guard = processes_with("__guard-loads");
        guard.retain(|pid| parent(*pid) == Some(child.id()));
        assert!(!guard.is_empty(), "the guard runs");
        eventually("the processes of the loads", || processes_in(place.path()).len() > 6);
        match victim {
            "punctual" => kill(child.id(), "KILL"),
            _ => guard.iter().for_each(|pid| kill(*pid as u32, "KILL")),
        }
        // stress-ng's workers do not keep their arguments; others may run it, too.
        eventually("the end of all loads", || processes_in(place.path()).is_empty());
        child.wait().unwrap();
        let shown = place.punctual(&["show", "bundle"]);
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
        let count = place.summary()["phases"][0]["series"][0]["count"].as_u64();
        assert!(count > Some(100), "{count:?} samples survived");
        if victim == "punctual" {
            assert!(text(&shown).to_lowercase().contains("cut off"), "{}", text(&shown));
        }
    }
}

#[test]
fn loads_are_respawned_ignored_or_end_the_run_as_told() {
    // Long enough for samples, and never idle: otherwise the run is invalid.
    let load = "[[load]]\nname = \"short\"\ncommand = \"sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep \
                0.05; done'\"\non_success = \"stop\"";
    let place = Place::with(&experiment("duration = \"10min\"", load));
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(text(&ran).contains("short"), "{}", text(&ran));

    let load = "[[load]]\nname = \"echo\"\ncommand = [\"sh\", \"-c\", \"echo once; exit \
                1\"]\non_failure = \"respawn\"\nstdout = \"said\"";
    let place = Place::with(&experiment("duration = \"1s\"", load));
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(4), "a load that dies is no load: {}", text(&ran));
    let said = std::fs::read_to_string(place.path().join("said")).unwrap();
    assert!(said.lines().count() > 1, "it was respawned: {said}");
    assert!(place.summary()["findings"].to_string().contains("load-failed"));
}

#[test]
fn a_plain_user_measures_and_is_told_what_is_missing() {
    if !is_root("a_plain_user_measures_and_is_told_what_is_missing") {
        return;
    }
    let place = Place::with(&experiment("samples = 200", ""));
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    // The build directory may be inaccessible to others: the user gets a copy of the binary.
    let binary = place.path().join("punctual-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_punctual"), &binary).unwrap();
    let run = |name: &str, more: &str| {
        place.write(name, experiment("samples = 200", more).as_bytes());
        let mut command = std::process::Command::new(&binary);
        command
            .args(["run", "-q", name, "-o", &format!("{name}.out")])
            .current_dir(place.path())
            .uid(65534)
            .gid(65534);
        command.output().unwrap()
    };
    let ran = run("experiment.toml", "");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    for word in ["CAP_SYS_NICE", "real-time", "SCHED_OTHER"] {
        assert!(text(&ran).contains(word), "{word} is missing in {}", text(&ran));
    }
    let strict = run("strict.toml", "[experiment]\nrequire_real_time = true");
    assert_eq!(strict.status.code(), Some(4), "{}", text(&strict));
}

#[test]
fn a_full_disk_costs_samples_and_a_frozen_one_nothing() {
    if !is_root("a_full_disk_costs_samples_and_a_frozen_one_nothing") {
        return;
    }
    a_frozen_disk_costs_nothing();
    let place = Place::with(&experiment("duration = \"3s\"", "").replace("1ms", "100us"));
    let disk = place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=430k", "none"])
        .arg(&disk)
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        println!("SKIPPED: cannot mount a small tmpfs (CAP_SYS_ADMIN)");
        return;
    }
    std::fs::write(disk.join("filler"), vec![0u8; 120 * 1024]).unwrap();
    let ran = place.punctual(&["run", "-q", "experiment.toml", "-o", "disk/bundle"]);
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    for word in ["No space left", "another file system", "timer/cpu0"] {
        assert!(text(&ran).contains(word), "{word} is missing in {}", text(&ran));
    }
}

/// The disk takes nothing from the second second on, until after the end of the phase.
fn a_frozen_disk_costs_nothing() {
    let place = Place::with(&experiment("duration = \"3s\"", ""));
    let Some(disk) = Disk::at(place.path()) else { return };
    let mut run = punctual();
    run.args(["run", "experiment.toml", "-o", "disk/bundle", "--metrics", "disk/x.prom"]);
    run.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let run = run.spawn().expect("punctual starts");
    eventually("a checkpoint", || {
        let log = place.path().join("disk/bundle/phases/000/0000.log");
        std::fs::metadata(log).is_ok_and(|log| log.len() > 1_000)
    });
    disk.freeze();
    std::thread::sleep(Duration::from_secs(4));
    disk.thaw();
    let ran = run.wait_with_output().expect("it ends");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = std::fs::read(place.path().join("disk/bundle/summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    assert_eq!(summary["validity"]["verdict"], "valid", "{summary}");
    let series = &summary["phases"][0]["series"][0];
    assert_eq!(series["lost"], 0, "{series}");
    let findings = summary["findings"].as_array().expect("findings");
    let is_told = |id: &str| findings.iter().any(|finding| finding["id"] == id);
    assert!(!is_told("controller-delayed") && !is_told("samples-not-saved"), "{findings:#?}");
    // Its log is whole: every sample was counted, and every counted one was written at last.
    let bundle = place.path().join("disk/bundle").to_string_lossy().into_owned();
    let csv = place.punctual(&["export", &bundle, "--format", "csv"]);
    let rows = String::from_utf8_lossy(&csv.stdout).lines().count() as u64;
    assert!(rows >= series["count"].as_u64().expect("a count"), "{rows}: {series}");
}

/// The parent of a process.
fn parent(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn the_loads_of_the_demo_work_until_they_are_ended() {
    for word in ["compute", "memory", "processes", "messages", "timers"] {
        let mut load = punctual().args(["demo-load", word]).spawn().expect("punctual starts");
        let stat = format!("/proc/{}/stat", load.id());
        // Fields 14 to 17 of proc_pid_stat(5): user and kernel CPU time of the process and its
        // children.
        let ticks = || -> u64 {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
        };
        eventually(word, || ticks() >= 3);
        assert!(load.try_wait().unwrap().is_none(), "{word} ended by itself");
        load.kill().unwrap();
        load.wait().unwrap();
    }
    assert_eq!(punctual().args(["demo-load", "nonsense"]).status().unwrap().code(), Some(2));
}

/// The directory of a history's records.
fn records(place: &Place) -> std::path::PathBuf {
    let mut directory = place.path().join("history");
    while let Some(inside) =
        std::fs::read_dir(&directory).unwrap().flatten().find(|entry| entry.path().is_dir())
    {
        directory = inside.path();
    }
    directory
}

#[test]
fn a_run_is_compared_with_its_baseline() {
    let place = Place::with(&experiment("samples = 200", ""));
    let run = |output: &str| {
        let commit = format!("commit-{output}");
        let junit = format!("{output}.xml");
        let arguments =
            ["run", "--quiet", "experiment.toml", "--output", output, "--junit", &junit];
        let more = ["--baseline", "history", "--commit", &commit, "--metrics", "metrics.prom"];
        place.punctual(&[&arguments[..], &more[..]].concat())
    };
    let first = run("first");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    assert!(text(&first).contains("not judged yet: 0 of 12 runs"), "{}", text(&first));
    let junit = std::fs::read_to_string(place.path().join("first.xml")).unwrap();
    assert!(junit.contains("<skipped") && !junit.contains("<error"), "{junit}");
    let directory = records(&place);
    let kept = std::fs::read_dir(&directory).unwrap().flatten().next().expect("a record").path();
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(kept).unwrap()).expect("JSON");
    assert_eq!((&kept["commit"], &kept["verdict"]), (&"commit-first".into(), &().into()));
    let figures = kept["figures"].as_array().unwrap();
    assert_eq!(figures.iter().filter(|of| of["is_main"] == true).count(), 1, "{kept:#}");
    // Twenty runs that were a thousand times faster, and three such as the first.
    for day in 0..23 {
        let mut earlier = kept.clone();
        earlier["created"] = format!("2026-01-{:02}T00:00:00Z", day + 1).into();
        earlier["commit"] = format!("commit-{day}").into();
        earlier.as_object_mut().unwrap().remove("found");
        for figure in earlier["figures"].as_array_mut().unwrap() {
            if day < 20 && figure["is_time"] == true {
                let faster = figure["value"].as_f64().unwrap() / 1_000.0 + f64::from(day * 7 % 5);
                figure["value"] = faster.into();
            }
        }
        std::fs::write(directory.join(format!("{day}.json")), earlier.to_string()).unwrap();
    }
    let worse = run("worse");
    assert_eq!(worse.status.code(), Some(3), "{}", text(&worse));
    for words in ["worse than its baseline", "since the run of 2026-01-21", "commit: commit-19 -> "]
    {
        assert!(text(&worse).contains(words), "{words}: {}", text(&worse));
    }
    let junit = std::fs::read_to_string(place.path().join("worse.xml")).unwrap();
    assert!(junit.contains("baseline: ") && junit.contains("<failure"), "{junit}");
    let metrics = std::fs::read_to_string(place.path().join("metrics.prom")).unwrap();
    assert!(metrics.contains("verdict=\"not-met\"} 1\n"), "{metrics}");
    let shown = place.punctual(&["show", "worse", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!((&shown["verdict"], &shown["ending"]["exit_code"]), (&"not-met".into(), &3.into()));
}

#[test]
fn a_claim_is_measured_for_as_long_as_it_takes() {
    let place = Place::with(&experiment("samples = 100", ""));
    let line = "run --quiet experiment.toml --exclude 'latency > 60s' --rate 2/second";
    let dry = place.line(&format!("{line} --dry-run"));
    assert!(text(&dry).contains("each of 1 CPU must be measured for 1.4 s without one"), "{dry:?}");
    assert!(!place.bundle().exists());
    let ran = place.line(&format!("{line} --output bundle"));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(
        text(&ran).contains("main/timer/cpu0: excluded; none above 60 s in 2."),
        "{}",
        text(&ran)
    );
    let short = place.line(&format!("{line} --output short --duration 1s"));
    assert_eq!(short.status.code(), Some(4), "{}", text(&short));
    assert!(text(&short).contains("not yet: 1.4 s in all would do"), "{}", text(&short));
    let often = line.replace("60s", "1ns");
    let often = place.line(&format!("{often} --output often"));
    assert_eq!(often.status.code(), Some(3), "{}", text(&often));
}
