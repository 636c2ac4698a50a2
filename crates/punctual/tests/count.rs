//! `punctual count` against a program whose counts are known, and against perf stat.

use crate::common::{Place, has_program, is_root, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

/// With N: moves N / 10 times between two CPUs, makes N plain calls, N of futex, N / 10 signals and
/// as many sleeps, touches N pages, and lets a child make N calls. Exit code 5.
const KNOWN: &str = r#"
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void ignore(int number) { (void)number; }
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 0, word = 0;
    struct timespec pause = {0, 100000};
    signal(SIGUSR1, ignore);
    for (int i = 0; i < n / 10; i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(i % 2, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    for (int i = 0; i < n; i++) syscall(SYS_getppid);
    for (int i = 0; i < n; i++) syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
    for (int i = 0; i < n / 10; i++) syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
    for (int i = 0; i < n / 10; i++) nanosleep(&pause, 0);
    long page = sysconf(_SC_PAGESIZE), bytes = 1000 * page;
    char *area = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(area, bytes, MADV_NOHUGEPAGE);
    for (int i = 0; i < n; i++) area[i * page] = 1;
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < n; i++) syscall(SYS_getppid);
        _exit(0);
    }
    waitpid(child, 0, 0);
    return 5;
}
"#;
const N: u64 = 1000;
/// Differences in faults and switches of two runs: memory layout differs, and other tasks preempt.
const NOISE: u64 = 40;

fn compiled() -> Option<Place> {
    if !has_program("cc", "gcc") {
        return None;
    }
    let place = Place::with("");
    place.write("known.c", KNOWN.as_bytes());
    let built = Command::new("cc")
        .args(["-O1", "-o", "known", "known.c"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    Some(place)
}

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", text(output)))
}

fn counts(place: &Place, n: u64) -> Value {
    let output = place.punctual(&["count", "--json", "--", "./known", &n.to_string()]);
    assert_eq!(output.status.code(), Some(5), "the command's own: {}", text(&output));
    parsed(&output)
}

fn of<'v>(counts: &'v Value, name: &str) -> &'v Value {
    let all = counts["counts"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {counts:#}"))
}

fn known(counts: &Value, name: &str) -> u64 {
    of(counts, name)["count"]["known"]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} is not known: {counts:#}"))
}

fn why_not(counts: &Value, name: &str) -> String {
    let one = &of(counts, name)["count"];
    one["unavailable"].as_str().unwrap_or_else(|| panic!("{name} is known: {counts:#}")).to_owned()
}

/// Whether the program can move between CPUs 0 and 1.
fn has_two_cpus() -> bool {
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or_default();
    list.trim().parse::<punctual_core::CpuSet>().is_ok_and(|set| set.iter().take(2).eq([0, 1]))
}

#[test]
fn a_program_with_known_counts_has_these() {
    let Some(place) = compiled().filter(|_| is_root("counting in the kernel")) else { return };
    let (without, with) = (counts(&place, 0), counts(&place, N));
    let more = |name: &str| known(&with, name).saturating_sub(known(&without, name));
    // The program's own calls, those of its child, one to move; a signal is sent and returned from,
    // with two additional getpid.
    let calls = N + N + N + N / 10 + 4 * (N / 10) + N / 10;
    assert_eq!(more("system-calls"), calls, "{with:#}");
    assert_eq!(more("futex-calls"), N, "{with:#}");
    assert_eq!(more("signals"), N / 10, "{with:#}");
    for (name, least) in [("minor-faults", N), ("page-faults", N), ("voluntary-switches", N / 10)] {
        let counted = more(name);
        // A timer that expires before the sleeper has left its CPU causes no switch.
        assert!(
            counted + NOISE >= least && counted <= least + 4 * NOISE,
            "{name}: {counted} for {least}: {with:#}"
        );
    }
    if has_two_cpus() {
        let moved = more("cpu-migrations");
        // The scheduler sometimes moves the run without moves as well.
        assert!(moved.abs_diff(N / 10) <= NOISE, "{moved} migrations: {with:#}");
    }
    // Counted twice: by perf events from the first instruction, and by wait4 with the start before.
    let sum = known(&with, "voluntary-switches") + known(&with, "involuntary-switches");
    assert!(sum.abs_diff(known(&with, "context-switches")) <= 10, "{with:#}");
    let share = of(&with, "futex-calls")["share"]["share"].as_f64().unwrap();
    let quotient = N as f64 / known(&with, "system-calls") as f64;
    assert!((share - quotient).abs() < 1e-9, "{with:#}");
    let (wall, cpu) = (with["wall"].as_i64().unwrap(), &with["cpu"]);
    assert!(wall >= (N as i64 / 10) * 100_000, "it sleeps as long: {with:#}");
    let total = cpu["total"].as_i64().unwrap();
    assert_eq!(total, cpu["user"].as_i64().unwrap() + cpu["system"].as_i64().unwrap());
    // Software events are never multiplexed.
    assert!(
        with["counts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["scaled"] == false || one["event"] == "cycles")
    );
}

#[test]
fn the_exit_code_is_the_commands_own_and_wrong_requests_start_nothing() {
    let place = Place::with("");
    let count = |more: &[&str]| place.punctual(&[&["count"], more].concat());
    let code = |more: &[&str]| count(more).status.code();
    assert_eq!(code(&["--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["--", "sh", "-c", "kill -KILL $$"]), Some(137));
    assert_eq!(code(&["--", "true"]), Some(0));
    let shown = count(&["--", "sh", "-c", "echo its own; exit 3"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "its own\n");
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(said.contains("context-switches") && said.contains("wall time"), "{said}");
    let json = count(&["--json", "--", "sh", "-c", "echo its own"]);
    assert_eq!(parsed(&json)["schema"], "punctual-counts/1");
    assert!(String::from_utf8_lossy(&json.stderr).contains("its own"));
    let file = count(&["--output", "counts.json", "--", "sh", "-c", "echo its own"]);
    assert_eq!(text(&file), "its own\n");
    let written = std::fs::read(place.path().join("counts.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&written).unwrap()["counts"].is_array());
    let touch = place.path().join("started");
    let wrong = [
        (&["--events", "cylces"][..], "cycles"),
        (&["--events", "contextswitches,cylces"], "cycles"),
        (&["--events", ""], "perf-list"),
    ];
    for (arguments, word) in wrong {
        let refused = count(&[arguments, &["--", "touch", touch.to_str().unwrap()]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(word), "{}", text(&refused));
        assert!(!touch.exists());
    }
    assert_eq!(code(&["--", "no-such-command"]), Some(2));
    assert_eq!(code(&[]), Some(2));
    let listed = count(&["--events", "list"]);
    assert!(text(&listed).contains("branch-misses"), "{}", text(&listed));
    if is_root("the names of tracepoints") {
        let refused = count(&["--events", "sched:sched_swich", "--", "true"]);
        assert!(
            text(&refused).contains("did you mean `sched:sched_switch`?"),
            "{}",
            text(&refused)
        );
        let one = count(&[
            "--json",
            "--events",
            "sched:sched_process_exit",
            "--",
            "sh",
            "-c",
            "true; true",
        ]);
        assert_eq!(known(&parsed(&one), "sched:sched_process_exit"), 1);
    }
}

#[test]
fn a_process_that_runs_is_counted_from_then_on() {
    let Some(place) = compiled().filter(|_| is_root("counting in the kernel")) else { return };
    // Activity before it is stopped is not counted; the id stays that of the process.
    let mut known_counts = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec ./known 1000"])
        .current_dir(place.path())
        .spawn()
        .unwrap();
    let pid = known_counts.id().to_string();
    let mut counting = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["count", "--json", "--live=200ms", "--pid", &pid])
        .current_dir(place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of an interval shows that it counts.
    let mut lines = BufReader::new(counting.stderr.take().unwrap()).lines();
    let heading = lines.next().unwrap().unwrap();
    assert!(heading.contains("context-switches") && heading.ends_with("(a second)"), "{heading}");
    lines.next().unwrap().unwrap();
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    assert_eq!(known_counts.wait().unwrap().code(), Some(5));
    drop(lines);
    let output = counting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "a process has its own code: {}", text(&output));
    let counts = parsed(&output);
    assert_eq!(known(&counts, "futex-calls"), N, "{counts:#}");
    assert_eq!((&counts["pid"], &counts["exit_code"]), (&pid.parse().unwrap(), &Value::Null));
    assert!(why_not(&counts, "voluntary-switches").contains("have ended"), "{counts:#}");
    let gone = place.punctual(&["count", "--pid", &pid]);
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone));
    assert!(text(&gone).contains(&format!("no process {pid}")), "{}", text(&gone));
}

/// Counts the call that a measure claims to make, by a counter other than its own validation's.
#[test]
fn counters_of_a_measure_are_of_its_thread_and_of_its_samples() {
    let place = Place::with("");
    let events = "raw_syscalls:sys_enter,task-clock,cycles";
    let output = place.line(&format!(
        "measure syscall --quiet --json --policy other --count 20000 \
         --set call=getpid --counters {events}"
    ));
    let summary: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let tables = summary["phases"][0]["measures"][0]["notes"]["tables"].as_array().unwrap().clone();
    let table = tables
        .iter()
        .find(|table| table["name"] == "counters")
        .unwrap_or_else(|| panic!("{summary}"));
    let rows: Vec<_> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_array().unwrap().clone())
        .collect();
    let names: Vec<_> = rows.iter().map(|row| row[1].as_str().unwrap()).collect();
    assert_eq!(names, ["raw_syscalls:sys_enter", "task-clock (ns)", "cycles"]);
    let known = |row: &[Value]| match row[2].as_f64() {
        Some(count) => Some(count),
        None if row[5].as_str().unwrap().starts_with("unavailable: ") => None,
        None => panic!("neither a count nor a reason: {row:?}"),
    };
    match known(&rows[0]) {
        // In addition to the calls at its begin and end, and those caused by ticks.
        Some(calls) => {
            assert!((20_000.0..20_200.0).contains(&calls), "{table}");
            assert!((rows[0][3].as_f64().unwrap() - calls / 20_000.0).abs() < 1e-9, "{table}");
        }
        None => println!("SKIPPED: system calls are not counted here: {}", rows[0][5]),
    }
    let sum: f64 = summary["phases"][0]["series"][0]["mean"].as_f64().unwrap() * 20_000.0;
    assert!(
        known(&rows[1]).is_some_and(|ns| ns > 0.0),
        "the kernel's clock of the task is always there: {table}"
    );
    assert!(known(&rows[1]).unwrap() > sum / 100.0, "the calls of {sum} ns are in it: {table}");
    assert!(known(&rows[2]).is_none_or(|cycles| cycles > 20_000.0), "{table}");
}
