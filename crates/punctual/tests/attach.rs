//! `punctual attach` against programs with known cycles, and against cyclictest's own output.

mod places;
mod recorded;
mod without_bpf;

use crate::common::{self, Place, has_program, is_root, text};
use crate::cyclictest;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output};

/// The number of a program's cycles; it has some hundred.
const CYCLES: &str = "400";
/// The program's exit code, unless it spins.
const OWN: Option<i32> = Some(7);
/// The program's period in ns.
const PERIOD: f64 = 2e6;

/// A directory with the program in it.
fn compiled() -> Option<Place> {
    let source = include_bytes!("attach/periodic.c");
    compiled_from(source, "periodic", &["-O1", "-fno-omit-frame-pointer", "-pthread"])
}

fn attached(place: &Place, more: &[&str], command: &[&str]) -> Output {
    place.punctual(&[&["attach", "--quiet", "--output", "bundle"], more, &["--"], command].concat())
}

/// The summary of a measurement of the program in this mode.
fn summary(mode: &str) -> Option<Value> {
    let place = compiled()?;
    let output = attached(&place, &[], &["./periodic", mode, CYCLES]);
    assert_eq!(output.status.code(), OWN, "the command's own: {}", text(&output));
    assert!(output.stdout.is_empty(), "{}", text(&output));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    Some(place.summary())
}

/// The measure of the first thread of this name.
fn measure<'v>(summary: &'v Value, name: &str) -> &'v Value {
    let measures = summary["phases"][0]["measures"].as_array().unwrap();
    let found = measures.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {measures:#?}"))
}

fn series<'v>(summary: &'v Value, name: &str) -> &'v Value {
    let all = summary["phases"][0]["series"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn figure(measure: &Value, name: &str) -> f64 {
    let figures = measure["notes"]["figures"].as_array().unwrap();
    let found = figures.iter().find(|one| one["name"] == name);
    found.and_then(|one| one["value"].as_f64()).unwrap_or_else(|| panic!("no {name}: {figures:#?}"))
}

/// ns of a part in the mean response time.
fn part(summary: &Value, series_name: &str, part: &str) -> f64 {
    let account = &series(summary, series_name)["account"]["known"];
    account["whole"]["mean_ns"][part].as_f64().unwrap_or(0.0)
}

#[track_caller]
fn assert_kind(summary: &Value, kind: &str, periodic: bool) {
    let parameters = &measure(summary, "periodic")["parameters"];
    assert_eq!(parameters["cycle"], kind, "{parameters:#}");
    let median = series(summary, "periodic/period")["median"].as_f64().unwrap();
    if periodic {
        assert!((median - PERIOD).abs() < PERIOD / 50.0, "{median}");
    }
    let response = series(summary, "periodic/response");
    let all = response["count"].as_u64().unwrap() + response["skipped"].as_u64().unwrap();
    let wanted: u64 = CYCLES.parse().unwrap();
    // The last one ends with the thread, and a late program may skip some by itself.
    assert!(all + 20 >= wanted, "{all} cycles of {wanted}");
    assert!(response["min"].as_i64().unwrap() >= 100_000, "{response:#}");
}

#[test]
fn an_absolute_sleeper() {
    let Some(summary) = summary("absolute") else { return };
    assert_kind(&summary, "absolute", true);
    let response = "periodic/response";
    let account = &series(&summary, response)["account"]["known"]["whole"];
    let parts: f64 =
        account["mean_ns"].as_object().unwrap().values().map(|ns| ns.as_f64().unwrap()).sum();
    let mean = series(&summary, response)["mean"].as_f64().unwrap();
    assert!((parts - mean).abs() < 1.0, "the parts add up to {parts}, the mean is {mean}");
    let unknown = part(&summary, response, "unknown");
    assert!(unknown < mean / 20.0, "{unknown} of {mean} ns are not attributed: {account:#}");
}

/// One program for each, at once: the last one sleeps relatively, then executes itself to sleep
/// until instants.
#[test]
fn each_way_to_wait_is_recognised() {
    let Some(place) = compiled() else { return };
    let each = ["timerfd", "posix-timer", "event", "exec"];
    let script = each.map(|mode| format!("./periodic {mode} {CYCLES} &")).concat() + " wait";
    let output = attached(&place, &[], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let summary = place.summary();
    let measures = summary["phases"][0]["measures"].as_array().unwrap().iter();
    let periodic = measures.filter(|one| one["name"].as_str().unwrap().starts_with("periodic"));
    let kinds: BTreeSet<&str> =
        periodic.map(|one| one["parameters"]["cycle"].as_str().unwrap()).collect();
    let expected = ["absolute", "event", "posix-timer", "relative", "timerfd"];
    assert_eq!(kinds, BTreeSet::from(expected), "{summary:#}");
}

#[test]
fn cycles_of_a_late_timerfd_loop_are_overruns() {
    let Some(summary) = summary("timerfd-late") else { return };
    assert_kind(&summary, "timerfd", true);
    // Every tenth cycle takes longer than a period: the read after it returns at once.
    let measure = measure(&summary, "periodic");
    assert!(figure(measure, "overruns") >= 35.0, "{measure:#}");
    let skipped = figure(measure, "skipped-releases");
    let count = series(&summary, "periodic/response")["count"].as_f64().unwrap();
    assert!(count >= 380.0 - skipped, "{count} cycles, {skipped} skipped: {measure:#}");
    assert!(part(&summary, "periodic/wakeup", "overrun") > 10_000.0, "{summary:#}");
}

#[test]
fn the_owner_of_a_mutex_is_named() {
    let Some(summary) = summary("lock") else { return };
    let measure = measure(&summary, "periodic");
    let tables = measure["notes"]["tables"].as_array().unwrap();
    let held = tables.iter().find(|table| table["name"] == "lock-holders");
    let row = &held.unwrap_or_else(|| panic!("{measure:#}"))["rows"][0];
    assert_eq!((&row[0], &row[2]), (&"holder".into(), &"owner in the mutex".into()), "{held:#?}");
    let (waits, total) = (row[3].as_f64().unwrap(), row[4].as_f64().unwrap());
    assert!(waits > 10.0 && total > waits * 1_000.0, "{held:#?}");
    // All locks are held by one thread: its holding time is the waiting time.
    let cycles = series(&summary, "periodic/response")["count"].as_f64().unwrap();
    let locks = part(&summary, "periodic/response", "lock") * cycles;
    assert!(total <= locks * 1.01 && total > locks * 0.5, "{total} of {locks}: {held:#?}");
}

/// Starts a command in a new PID namespace.
const UNSHARE: [&str; 4] = ["unshare", "--pid", "--fork", "--mount-proc"];

fn can_unshare() -> bool {
    let can = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output();
    let can = can.is_ok_and(|output| output.status.success());
    if !can {
        println!("SKIPPED: no PID namespace can be made here");
    }
    can
}

#[test]
fn within_a_container_it_is_refused() {
    let Some(place) = compiled().filter(|_| can_unshare()) else { return };
    // Options that need thread ids: events would have none of the program's, or those of strangers.
    let refused: [&[&str]; 5] = [
        &["attach", "--backend", "tracefs", "--", "./periodic", "absolute", CYCLES],
        &["attach", "--explain", "--", "./periodic", "absolute", CYCLES],
        &["trace", "--pid", "1", "--duration", "100ms"],
        &["probe", "libc:malloc", "--", "true"],
        &["measure", "timer", "--explain", "--duration", "100ms"],
    ];
    for words in refused {
        let mut command = Command::new(UNSHARE[0]);
        command.args(&UNSHARE[1..]).arg(env!("CARGO_BIN_EXE_punctual")).args(words);
        let output = command.current_dir(place.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output));
        assert!(text(&output).contains("runs in a PID namespace"), "{}", text(&output));
    }
}

#[test]
fn within_a_container_its_own_programs_are_measured() {
    let Some(place) = compiled().filter(|_| can_unshare()) else { return };
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).arg(env!("CARGO_BIN_EXE_punctual"));
    command.args(["attach", "--output", "bundle", "--", "./periodic", "absolute", CYCLES]);
    let output = command.current_dir(place.path()).output().unwrap();
    if text(&output).contains("BPF") && output.status.code() == Some(2) {
        println!("SKIPPED: attaching needs BPF: {}", text(&output));
        return;
    }
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let summary = place.summary();
    assert_kind(&summary, "absolute", true);
    let measured = &summary["phases"][0]["measures"];
    let series = measured.to_string();
    assert!(!series.contains("-2147"), "an id of outside: {series}");
}

#[test]
fn requirements_decide_where_the_command_ended_well() {
    let Some(place) = compiled() else { return };
    let code = |require: &str| {
        let _ = std::fs::remove_dir_all(place.bundle());
        let loops = "./periodic absolute 200; true";
        attached(&place, &["--require", require], &["sh", "-c", loops]).status.code()
    };
    assert_eq!(code("response max < 1h"), Some(0));
    assert_eq!(code("response max < 1us"), Some(3));
    assert_eq!(code("wakeup count > 1000000"), Some(3));
    // Requirements on one thread, and on a missing one.
    assert_eq!(code("periodic/wakeup count > 1000000"), Some(3));
    assert_eq!(code("aperiodic/wakeup count > 1000000"), Some(4));
    let shown = place.punctual(&["show", "--json", "bundle"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["verdict"], "undecided", "what was kept says the same: {shown:#}");
    // `attach` writes the same files beside its bundle as `run`.
    let _ = std::fs::remove_dir_all(place.bundle());
    let files = ["--junit", "junit.xml", "--lava", "lava", "--baseline", "history"];
    let files = [&files[..], &["--baseline-required"]].concat();
    let more = ["--require", "response max < 1h", "--json"];
    let loops = ["sh", "-c", "./periodic absolute 200; true"];
    let output = attached(&place, &[&files[..], &more].concat(), &loops);
    assert_eq!(output.status.code(), Some(4), "the baseline has no run yet: {}", text(&output));
    let read =
        |name: &str| std::fs::read_to_string(place.path().join(name)).expect("it was written");
    assert!(read("junit.xml").contains("max &lt; 3600s"), "{}", read("junit.xml"));
    assert!(read("lava").contains("run-baseline unknown"), "{}", read("lava"));
    assert!(text(&output).contains("not judged yet: 0 of 12 runs"), "{}", text(&output));
    assert!(place.path().join("history").is_dir());
    a_second_wait_in_the_same_call_ends_no_cycle();
}

/// It waits within its cycles in the call that they begin with: known by its caller, or a question.
fn a_second_wait_in_the_same_call_ends_no_cycle() {
    const SOURCE: &str = include_str!("attach/waits.c");
    let Some(place) = compiled_from(SOURCE.as_bytes(), "waits", &["-O1", "-g"]) else { return };
    let code = |mode: &str| {
        let _ = std::fs::remove_dir_all(place.bundle());
        attached(&place, &["--require", "response max < 2ms"], &["./waits", mode]).status.code()
    };
    assert_eq!(code("rare"), Some(3), "a tenth of its cycles takes 3 ms");
    assert_eq!(code("each"), Some(4), "either wait may be its period");
    let line = |mark: &str| 1 + SOURCE.lines().position(|line| line.contains(mark)).expect(mark);
    let (first, second) = (line("/* PERIOD"), line("/* WITHIN"));
    let call = line("clock_nanosleep(");
    let shown = || {
        let shown = text(&place.punctual(&["show", "bundle"]));
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let question = format!("at 2 places (waits.c:{first}, waits.c:{second}): which one");
    assert!(shown().contains(&question), "{}", shown());
    assert_eq!(code("moves"), Some(4), "it waits elsewhere in the end");
    let question = format!("at waits.c:{call} first, and then elsewhere: which one");
    assert!(shown().contains(&question), "{}", shown());
}

#[test]
fn a_running_process_goes_on() {
    let Some(place) = compiled() else { return };
    let mut child = Command::new("./periodic")
        .args(["absolute", "100000"])
        .current_dir(place.path())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let output =
        place.punctual(&["attach", &pid, "--quiet", "--duration", "2s", "--output", "bundle"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(child.try_wait().unwrap().is_none(), "it was ended");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("periodic/response"),
        "{}",
        text(&output)
    );
    let gone = place.punctual(&["attach", &pid, "--output", "none"]);
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone));
    assert!(text(&gone).contains(&format!("there is no process {pid}")), "{}", text(&gone));
    assert!(!place.path().join("none").exists());
}

#[test]
fn killed_it_leaves_no_command_and_what_it_saved() {
    let Some(place) = compiled() else { return };
    let mut attach = common::punctual()
        .args(["attach", "--quiet", "--output", "bundle", "--", "./periodic", "absolute", "100000"])
        .current_dir(place.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let of_here = || {
        common::processes_with("./periodic").iter().any(|pid| {
            let directory = std::fs::read_link(format!("/proc/{pid}/cwd"));
            directory.is_ok_and(|directory| directory == place.path())
        })
    };
    common::eventually("a series", || place.bundle().join("phases/000").is_dir() && of_here());
    attach.kill().unwrap();
    attach.wait().unwrap();
    common::eventually("the command's end", || !of_here());
    let shown = place.punctual(&["show", "--json", "bundle"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["reasons"][0]["reason"], "cut-off", "{shown:#}");
}

/// The terminal output of attaching to a running program, recorded by script(1).
fn on_a_terminal(place: &Place, more: &str) -> String {
    let mut child = Command::new("./periodic")
        .args(["absolute", "100000"])
        .current_dir(place.path())
        .spawn()
        .unwrap();
    let attach = format!("\"$PUNCTUAL\" attach {} --duration 3s -o bundle {more}", child.id());
    let output = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &attach, "/dev/null"])
        .current_dir(place.path())
        .env("TERM", "xterm")
        .env("PUNCTUAL", common::punctual().get_program())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // On a busy machine the controller may be delayed for longer than a tenth of the phase (4).
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output));
    std::fs::remove_dir_all(place.bundle()).unwrap();
    text(&output)
}

#[test]
fn a_terminal_shows_threads_while_they_are_measured() {
    let Some(place) = compiled().filter(|_| has_program("script", "script")) else { return };
    let shown = on_a_terminal(&place, "");
    for words in ["1 thread with cycles", "response, µs", "absolute", "last minute  ", "\u{1b}[J"]
    {
        assert!(shown.contains(words), "`{words}` is not in {shown}");
    }
    for more in ["--quiet", "2>/dev/null"] {
        let shown = on_a_terminal(&place, more);
        assert!(!shown.contains("last minute"), "{more}: {shown}");
        assert!(shown.contains("periodic/response"), "{more}: {shown}");
    }
}

/// Another user with the two capabilities of docs/attach.md, and one with none.
#[test]
fn two_capabilities_are_enough() {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = compiled().filter(|_| has_program("setpriv", "util-linux")) else { return };
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let with = |capabilities: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        for set in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.args([set, capabilities]);
        }
        command.arg(common::punctual().get_program()).args(arguments);
        command.current_dir(place.path()).stdin(std::process::Stdio::null()).output().unwrap()
    };
    if !with("-all", &["--version"]).status.success() {
        println!("SKIPPED: another user may not run this program, or have capabilities");
        return;
    }
    let attach =
        ["attach", "--quiet", "--output", "bundle", "--", "./periodic", "absolute", CYCLES];
    let refused = with("-all", &attach);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("lacks CAP_BPF and CAP_PERFMON"), "{}", text(&refused));
    assert!(!place.bundle().exists());
    let output = with("-all,+bpf,+perfmon", &attach);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    assert_kind(&place.summary(), "absolute", true);
}

#[test]
fn wrong_requests_start_nothing() {
    let place = Place::with("");
    let refused = |arguments: &[&str], why: &str| {
        let output = place.punctual(&[&["attach", "--output", "none"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(why), "{arguments:?}: {}", text(&output));
        assert!(!place.path().join("none").exists());
    };
    refused(&[], "nothing to attach to");
    refused(&["--comm", "no-such-name"], "no process has the name");
    refused(&["2"], "kernel thread");
    refused(&["--", "no-such-program"], "cannot run");
    refused(&["1", "--cycle", "timrfd"], "did you mean `timerfd`");
    refused(&["1", "--require", "respnse max < 1us"], "respnse");
}

/// A directory with a program of this name and text, compiled with these options.
pub(crate) fn compiled_from(source: &[u8], name: &str, options: &[&str]) -> Option<Place> {
    if !is_root("attaching to programs") || !has_program("cc", "gcc") {
        return None;
    }
    let place = Place::with("");
    let file = format!("{name}.c");
    place.write(&file, source);
    let mut cc = Command::new("cc");
    cc.args(options).args(["-o", name, &file]).current_dir(place.path());
    let built = cc.output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    Some(place)
}

#[test]
fn attach_measures_the_latencies_that_cyclictest_prints() {
    let Some(place) = compiled().filter(|_| has_program("cyclictest", "rt-tests")) else { return };
    let command = ["cyclictest", "-m", "-p95", "-i1000", "-l3000", "-v"];
    let output = attached(&place, &[], &command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs = cyclictest::latencies(&printed);
    assert!(cyclictest::taken(&printed) >= 2_990 && theirs.len() > 100, "{printed}");
    let max = theirs[theirs.len() - 1];
    let summary = place.summary();
    let name = cyclictest::measuring_thread(&summary["phases"][0]);
    let ours = series(&summary, &format!("{name}/wakeup"));
    cyclictest::assert_same_median(ours, &theirs);
    println!("theirs: max {max} µs");
    let of = |key: &str| ours[key].as_f64().unwrap() / 1_000.0;
    // Readings after the call has returned, and interruptions of them, are in its own figure alone.
    assert!(
        (of("max") - max as f64).abs() <= max as f64 * 0.1 + 50.0,
        "max {} µs, theirs {max} µs",
        of("max")
    );
    let count = ours["count"].as_u64().unwrap();
    assert!(count + 10 >= theirs.len() as u64, "{count} cycles of {}", theirs.len());
}
