//! `punctual trace` end to end: its counts match the kernel's, and the bundle opens after any end.

use crate::common::{self, Place, eventually, has_program, is_root, kill, punctual, text};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program that yields its CPU, calls getppid, and prints the kernel's counters of it: voluntary
/// and involuntary switches.
const KNOWN: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    struct rusage before, after;
    struct timespec pause = {0, 1000000};
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 200; i++) nanosleep(&pause, NULL);
    for (int i = 0; i < 3000; i++) syscall(SYS_getppid);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld %ld\n", after.ru_nvcsw, after.ru_nivcsw);
    return 5;
}
"#;

fn summary(place: &Place) -> serde_json::Value {
    place.summary()["recording"].clone()
}

fn count(recording: &serde_json::Value, group: &str, kind: &str) -> u64 {
    recording["events"][group][kind].as_u64().unwrap_or_default()
}

fn findings(place: &Place) -> String {
    place.summary()["findings"].to_string()
}

/// Whether kernel events can be recorded here; prints the missing prerequisite if not.
fn can_record(test: &str) -> bool {
    if !is_root(test) {
        return false;
    }
    let listed = punctual().args(["trace", "--events", "list"]).output().expect("punctual starts");
    let possible = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .any(|line| line.starts_with("sched     * yes"));
    if !possible {
        println!(
            "SKIPPED: {test} lacks a kernel that lets scheduling events be recorded: {}",
            text(&listed)
        );
    }
    possible
}

fn compiled(place: &Place) -> bool {
    if !has_program("cc", "gcc") {
        return false;
    }
    place.write("known.c", KNOWN.as_bytes());
    let built = Command::new("cc")
        .args(["-O1", "-o", "known", "known.c"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    true
}

#[test]
fn counts_are_those_of_the_kernel() {
    let place = Place::with("");
    if !can_record("counts_are_those_of_the_kernel") || !compiled(&place) {
        return;
    }
    let arguments =
        ["trace", "-q", "-e", "sched,syscall", "--comm", "known", "-o", "bundle", "--", "./known"];
    let traced = place.punctual(&arguments);
    assert_eq!(traced.status.code(), Some(5), "the command's own: {}", text(&traced));
    let counted = String::from_utf8_lossy(&traced.stdout).into_owned();
    let numbers: Vec<u64> =
        counted.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let recording = summary(&place);
    assert_eq!(recording["lost"], 0);
    // Each switch out has a switch in. A few more or fewer occur before the exec, by which it got
    // its name, and at its end: on a busy machine it is preempted there, too.
    let switches = count(&recording, "sched", "sched_switch");
    let own = numbers[0] + numbers[1];
    assert!((2 * own - 60..2 * own + 60).contains(&switches), "{switches} of {own}: {recording}");
    let calls = count(&recording, "syscall", "sys_enter");
    assert!((3_200..3_600).contains(&calls), "{calls}: {recording}");
    assert_eq!(count(&recording, "sched", "sched_process_exit"), 1, "{recording}");
}

#[test]
fn the_command_ends_it_and_its_exit_code_is_passed_on() {
    if !can_record("the_command_ends_it_and_its_exit_code_is_passed_on") {
        return;
    }
    for (line, code) in [("true", 0), ("exit 42", 42), ("kill -9 $$", 137)] {
        let place = Place::with("");
        let traced =
            place.punctual(&["trace", "-e", "sched", "-o", "bundle", "--", "sh", "-c", line]);
        assert_eq!(traced.status.code(), Some(code), "{line}: {}", text(&traced));
        let said = String::from_utf8_lossy(&traced.stderr).into_owned();
        assert!(
            said.contains("no event was lost") && said.contains("punctual show       bundle"),
            "{said}"
        );
        assert!(traced.stdout.is_empty(), "standard output is the command's");
        let shown = place.punctual(&["show", "bundle"]);
        assert!(text(&shown).contains("sched"), "{}", text(&shown));
    }
}

#[test]
fn who_may_not_record_is_told_in_a_line_and_nothing_is_left() {
    if !is_root("becoming somebody else") {
        return;
    }
    let place = Place::with("");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path(), everybody).unwrap();
    let copy = place.path().join("punctual");
    std::fs::copy(env!("CARGO_BIN_EXE_punctual"), &copy).unwrap();
    let mut command = Command::new(&copy);
    std::os::unix::process::CommandExt::uid(&mut command, 65534);
    let refused = command
        .args(["trace", "-o", "bundle", "--", "true"])
        .current_dir(place.path())
        .output()
        .unwrap();
    common::assert_refused(&refused, &place.bundle());
    let said = text(&refused);
    assert!(said.trim_end().lines().count() == 1 && said.len() < 200, "{said}");
    assert!(said.contains("run as root") && said.contains("--events none"), "{said}");
}

#[test]
fn plus_adds_event_groups_and_commands_record_futex() {
    if !can_record("groups that are added") {
        return;
    }
    let groups = |arguments: &[&str]| {
        let place = Place::with("");
        let done = place.punctual(&[&["trace", "-q", "-o", "bundle"], arguments].concat());
        assert_eq!(done.status.code(), Some(0), "{}", text(&done));
        let groups = summary(&place)["groups"].as_array().unwrap().clone();
        groups.iter().map(|group| group.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let with_command = groups(&["--", "true"]);
    assert!(with_command.iter().any(|group| group == "futex"), "{with_command:?}");
    let added = groups(&["--events", "+block", "--", "true"]);
    assert!(
        ["sched", "futex", "block"].iter().all(|group| added.iter().any(|has| has == group)),
        "{added:?}"
    );
    let own = std::process::id().to_string();
    let without = groups(&["--duration", "50ms", "--pid", &own]);
    assert!(!without.iter().any(|group| group == "futex"), "{without:?}");
}

/// Recorded by name with every backend: each call of the program, and a text field of its record.
#[test]
fn a_tracepoint_is_recorded_by_its_name_with_its_fields() {
    let place = Place::with("");
    if !can_record("a_tracepoint_is_recorded_by_its_name_with_its_fields") || !compiled(&place) {
        return;
    }
    let (calls, execs) = ("syscalls:sys_enter_getppid", "sched:sched_process_exec");
    let events = format!("{calls},{execs}");
    for backend in ["btf", "tracepoint", "tracefs"] {
        let what = [
            "--backend",
            backend,
            "-e",
            &events,
            "--comm",
            "known",
            "-o",
            backend,
            "--",
            "./known",
        ];
        let traced = place.punctual(&[&["trace", "-q", "--no-points"], &what[..]].concat());
        if traced.status.code() == Some(2) && backend != "btf" {
            println!("SKIPPED: {}", text(&traced));
            continue;
        }
        assert_eq!(traced.status.code(), Some(5), "{backend}: {}", text(&traced));
        let shown = place.punctual(&["show", "--json", backend]);
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let recording = &summary["recording"];
        assert_eq!(recording["lost"], 0, "{backend}: {recording:#}");
        assert_eq!(recording["tracepoints"], serde_json::json!([calls, execs]), "{backend}");
        assert_eq!(count(recording, "tracepoints", calls), 3000, "{backend}: {recording:#}");
        assert_eq!(count(recording, "tracepoints", execs), 1, "{backend}: {recording:#}");
        let shown = text(&place.punctual(&["show", backend]));
        let line =
            shown.lines().find(|line| line.contains(calls)).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains("3,000"), "{shown}");
        // The export has the fields, including a text that the record points to.
        let file = "fields.pftrace";
        let done = place.punctual(&["export", backend, "--format", "perfetto", "-o", file]);
        assert!(done.status.success(), "{}", text(&done));
        let written = std::fs::read(place.path().join(file)).unwrap();
        let has = |word: &str| written.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        assert!(has("filename=./known pid=") && has("__syscall_nr="), "{backend}");
        let page = place.punctual(&["report", backend]);
        assert!(page.status.success(), "{}", text(&page));
        // A bundle of the same events by group has no such events by name.
        assert!(recording["events"].get("sched").is_none(), "{recording:#}");
    }
}

#[test]
fn a_filter_keeps_the_records_whose_fields_match_and_the_list_has_the_fields() {
    let place = Place::with("");
    if !can_record("a filter on fields") || !compiled(&place) {
        return;
    }
    let exec = "sched:sched_process_exec";
    let listed = text(&place.punctual(&["trace", "--events", "list"]));
    assert!(listed.contains(&format!("\n{exec}  filename pid old_pid\n")), "{listed}");
    for (operator, expected) in [("==", 1), ("!=", 0)] {
        let events = format!("{exec}/filename {operator} \"./known\"/,syscalls:sys_enter_getppid");
        let what = ["-e", &events, "--comm", "known", "-o", operator, "--", "./known"];
        let traced = place.punctual(&[&["trace", "-q", "--no-points"], &what[..]].concat());
        assert_eq!(traced.status.code(), Some(5), "{}", text(&traced));
        let shown = place.punctual(&["show", "--json", operator]);
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(count(&summary["recording"], "tracepoints", exec), expected, "{summary:#}");
    }
}

/// In an experiment, and by the overriding option, the measure's claimed calls are recorded by
/// name.
#[test]
fn an_experiment_records_tracepoints_by_name() {
    let calls = "syscalls:sys_enter_getpid";
    let measured =
        "[[measure]]\nkind = 'syscall'\ncall = 'getpid'\npolicy = 'other'\nsamples = 5000\n";
    let place = Place::with(&format!("[record]\nevents = ['{calls}']\npoints = false\n{measured}"));
    if !can_record("an_experiment_records_tracepoints_by_name") {
        return;
    }
    place.write("plain.toml", measured.as_bytes());
    for arguments in [&["experiment.toml"][..], &["plain.toml", "--trace", calls]] {
        let _ = std::fs::remove_dir_all(place.bundle());
        let ran = place.punctual(&[&["run", "--quiet", "--output", "bundle"], arguments].concat());
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
        let recording = summary(&place);
        assert_eq!(recording["tracepoints"], serde_json::json!([calls]), "{recording:#}");
        let (counted, lost) =
            (count(&recording, "tracepoints", calls), recording["lost"].as_u64().unwrap());
        assert!((5_000..50_000).contains(&(counted + lost)), "{recording:#}");
    }
    let refused =
        place.punctual(&["run", "plain.toml", "--output", "other", "--trace", "kmem:kmaloc"]);
    assert!(
        refused.status.code() == Some(2) && text(&refused).contains("did you mean `kmem:kmalloc`?")
    );
}

#[test]
fn a_tracepoint_that_is_not_there_is_refused_with_the_nearest_one() {
    let place = Place::with("");
    if !can_record("a_tracepoint_that_is_not_there_is_refused_with_the_nearest_one") {
        return;
    }
    let wrong = [
        ("kmem:kmaloc", "did you mean `kmem:kmalloc`?"),
        ("+kmen:kmalloc", "did you mean `kmem:…`?"),
        ("kmem:*", "mm_page_alloc"),
        ("+sched:sched_switch", "one of the group `sched`"),
        ("../sched:sched_switch", "is not GROUP:NAME"),
        ("sched:sched_process_exec/file == 1/", "its fields are filename, pid, old_pid"),
        ("schd", "did you mean `sched`?"),
    ];
    for (words, said) in wrong {
        let refused =
            place.punctual(&["trace", "-e", words, "-o", "bundle", "--", "touch", "started"]);
        assert_eq!(refused.status.code(), Some(2), "{words}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{words}: {}", text(&refused));
        assert!(!place.bundle().exists() && !place.path().join("started").exists(), "{words}");
    }
}

#[test]
fn wrong_requests_start_nothing_and_leave_nothing() {
    let place = Place::with("");
    for (arguments, word) in [
        (vec!["-e", "shed"], "`sched`"),
        (vec!["-e", "none", "--no-points"], "nothing to record"),
        (vec!["--cpus", "4000"], "not online"),
        (vec!["--max-size", "1KiB"], "1MiB"),
        (vec!["--syscalls", "opennat"], "opennat"),
        (vec!["--", "/nonexistent/program"], "/nonexistent/program"),
        (vec!["-e", "list", "--duration", "x"], "duration"),
    ] {
        let arguments: Vec<&str> = ["trace", "-o", "bundle"].into_iter().chain(arguments).collect();
        let refused = place.punctual(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
        assert!(text(&refused).contains(word), "{arguments:?}: {}", text(&refused));
        assert!(!place.bundle().exists(), "{arguments:?}");
    }
}

#[test]
fn an_interrupt_ends_it_cleanly_and_takes_the_command_along() {
    if !can_record("an_interrupt_ends_it_cleanly_and_takes_the_command_along") {
        return;
    }
    let place = Place::with("");
    let mut command = punctual();
    command.args(["trace", "-o", "bundle", "--", "sleep", "1234.5"]).current_dir(place.path());
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the command", || {
        !common::processes_with("1234.5").is_empty() && place.bundle().exists()
    });
    eventually("its start", || common::processes_with("1234.5").len() > 1);
    kill(child.id(), "TERM");
    let ended = child.wait_with_output().unwrap();
    // sleep was killed by SIGTERM.
    assert_eq!(ended.status.code(), Some(143), "{}", text(&ended));
    assert!(common::processes_with("1234.5").is_empty());
    assert_eq!(place.summary()["ending"]["outcome"], "interrupted");
}

#[test]
fn a_recorder_that_is_killed_leaves_a_bundle_that_opens() {
    if !can_record("a_recorder_that_is_killed_leaves_a_bundle_that_opens") {
        return;
    }
    for round in 0..4u64 {
        let place = Place::with("");
        let mut command = punctual();
        command
            .args(["trace", "-q", "-e", "sched,irq,vectors", "-o", "bundle"])
            .current_dir(place.path());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let segment = place.bundle().join("recording/00-000000.events");
        eventually("a segment", || segment.metadata().is_ok_and(|meta| meta.len() > 1_000));
        std::thread::sleep(Duration::from_millis(37 * round));
        kill(child.id(), "KILL");
        child.wait().unwrap();
        let recording = summary(&place);
        assert!(count(&recording, "sched", "sched_switch") > 0, "{recording}");
        assert!(findings(&place).contains("recording-cut-off"), "{}", findings(&place));
        for arguments in [vec!["show", "bundle"], vec!["report", "bundle", "-o", "r.html"]] {
            let answer = place.punctual(&arguments);
            assert_eq!(answer.status.code(), Some(0), "{arguments:?}: {}", text(&answer));
        }
    }
}

/// A separate file system, small enough to fill up.
struct Small<'p>(&'p Path);

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_recording_with_exact_counts() {
    if !can_record("a_full_disk_ends_the_recording_with_exact_counts") {
        return;
    }
    let place = Place::with("");
    let mount = place.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "none"])
        .arg(&mount)
        .status()
        .unwrap();
    if !mounted.success() {
        println!(
            "SKIPPED: a_full_disk_ends_the_recording_with_exact_counts lacks the right to mount a \
             tmpfs"
        );
        return;
    }
    let small = Small(&mount);
    let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); read x < /dev/null; done; true";
    let arguments = ["trace", "-e", "all", "-o", "small/b", "--", "sh", "-c", busy];
    let traced = place.punctual(&arguments);
    assert_eq!(traced.status.code(), Some(1), "{}", text(&traced));
    assert!(text(&traced).contains("could not be written"), "{}", text(&traced));
    let shown = place.punctual(&["show", "--json", "small/b"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("a summary");
    let recording = &shown["recording"];
    // The kinds recorded before the disk was full are random; the shell always makes system calls.
    assert!(
        recording["lost"].as_u64().unwrap() > 0 && count(recording, "syscall", "sys_enter") > 0,
        "{recording}"
    );
    assert!(
        shown["findings"].to_string().contains("recording-not-written"),
        "{}",
        shown["findings"]
    );
    drop(small);
}

#[test]
fn a_bounded_recording_ends_or_keeps_the_newest() {
    if !can_record("a_bounded_recording_ends_or_keeps_the_newest") {
        return;
    }
    // Pauses let the recorder keep up on a busy machine: the test is that only the bound ends the
    // recording or removes events.
    let busy = "for i in $(seq 80); do for j in $(seq 200); do read x < /dev/null; done; sleep \
                0.01; done; true";
    for (keep, finding) in [("all", "recording-full"), ("newest", "recording-oldest-removed")] {
        let place = Place::with("");
        let arguments =
            ["trace", "-q", "-e", "syscall", "--max-size", "1MiB", "--keep", keep, "-o", "bundle"];
        let arguments: Vec<&str> = arguments.into_iter().chain(["--", "sh", "-c", busy]).collect();
        let traced = place.punctual(&arguments);
        assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
        assert!(findings(&place).contains(finding), "{keep}: {}", findings(&place));
        let size: u64 = std::fs::read_dir(place.bundle().join("recording"))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        // One drain of every buffer, and the names, may exceed the bound.
        assert!(size < 40 << 20, "{keep}: {size}");
        assert_eq!(summary(&place)["lost"], 0, "{keep}");
    }
}

#[test]
fn an_experiment_records_beside_what_it_measures() {
    if !can_record("an_experiment_records_beside_what_it_measures") {
        return;
    }
    let measure = "[[measure]]\nkind = 'timer'\nduration = '400ms'\npriority = 1\ncpus = '0'\n";
    let place = Place::with(&format!("[record]\nevents = ['sched']\n{measure}"));
    let ran = place.run();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran));
    let recording = summary(&place);
    // The measuring thread alone sleeps and wakes 400 times.
    assert!(count(&recording, "sched", "sched_switch") >= 700, "{recording}");
    let shown = text(&place.punctual(&["show", "bundle"]));
    assert!(shown.contains("timer/cpu0") && shown.contains("samples"), "{shown}");
}

#[test]
fn damaged_recordings_are_read_as_far_as_they_are_whole() {
    if !can_record("damaged_recordings_are_read_as_far_as_they_are_whole") {
        return;
    }
    let place = Place::with("");
    let traced =
        place.punctual(&["trace", "-q", "-e", "sched", "-o", "bundle", "--duration", "200ms"]);
    assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
    let segment = place.bundle().join("recording/00-000000.events");
    let whole = std::fs::read(&segment).unwrap();
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for round in 0..24 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(random(whole.len())),
            1 => (0..8).for_each(|_| bytes[random(whole.len())] ^= 1 << random(8)),
            _ => bytes.extend((0..random(500)).map(|n| n as u8)),
        }
        std::fs::write(&segment, bytes).unwrap();
        let shown = place.punctual(&["show", "bundle"]);
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    }
}
