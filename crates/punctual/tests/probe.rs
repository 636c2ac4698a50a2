//! `punctual probe` on real programs, with the real kernel.

use crate::common::{Place, has_program, is_root, text};
use std::process::{Command, Stdio};

fn compiled(place: &Place, source: &str) -> bool {
    if !has_program("gcc", "gcc") {
        return false;
    }
    place.write("program.c", source.as_bytes());
    let built = Command::new("gcc")
        .args(["-O1", "-o", "program", "program.c"])
        .current_dir(place.path())
        .status();
    assert!(built.expect("gcc runs").success());
    true
}

/// Whether probes are impossible here; prints the reason.
fn refused(output: &std::process::Output) -> bool {
    let said = text(output);
    let refused = output.status.code() == Some(2) && said.contains("is not possible");
    if refused {
        println!("SKIPPED: {said}");
    }
    refused
}

#[test]
fn a_stock_program_is_timed_in_a_library_and_the_count_is_right() {
    if !is_root("probing") {
        return;
    }
    let place = Place::with("");
    // cat(1) opens each file once; the shell that starts it is another program.
    let files = ["a", "b", "c"];
    files.iter().for_each(|name| place.write(name, b"x"));
    let output = place.line("probe --json --output bundle 'libc:open*' -- cat a b c");
    if refused(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let functions = json["functions"].as_array().unwrap();
    let calls: u64 = functions.iter().filter_map(|function| function["count"].as_u64()).sum();
    assert!(calls >= 3, "{json:#}");
    let ids: Vec<&str> =
        json["findings"].as_array().unwrap().iter().filter_map(|f| f["id"].as_str()).collect();
    assert!(ids.contains(&"probe-cost"), "{ids:?}");
    // The command's output is not lost among the messages.
    assert!(String::from_utf8_lossy(&output.stderr).contains("xxx"));
}

#[test]
fn probes_handle_limits_recursion_and_calls_without_return() {
    if !is_root("probing") {
        return;
    }
    let place = Place::with("");
    let source = "#include <stdlib.h>\n#include <unistd.h>\n\
         __attribute__((noinline)) void slow(void) { usleep(2000); }\n\
         __attribute__((noinline)) int deep(int n) { return n ? deep(n - 1) + 1 : 0; }\n\
         __attribute__((noinline)) void leave(void) { exit(7); }\n\
         void step(int) __asm__(\"_Z12control_stepi\");\n\
         __attribute__((noinline)) void step(int n) { usleep(n); }\n\
         int main(void) { for (int i = 0; i < 20; i++) slow(); deep(9); step(1); leave(); }\n";
    if !compiled(&place, source) {
        return;
    }
    let probe = |more: &[&str]| {
        let words = ["probe", "--events", "none", "program:slow", "deep", "./program:leave"];
        place.punctual(&[&words[..], more, &["--", "./program"]].concat())
    };
    let output = probe(&["--json", "--output", "one"]);
    if refused(&output) {
        return;
    }
    // The command's own exit code.
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| {
        json["functions"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (of("slow")["count"].as_u64(), of("leave")["left"].as_u64()),
        (Some(20), Some(1)),
        "{json:#}"
    );
    assert!(of("slow")["min"].as_i64().unwrap() >= 2_000_000);
    let violated = probe(&["--output", "two", "--limit", "slow < 1ms"]);
    assert_eq!(violated.status.code(), Some(3), "{}", text(&violated));
    // A C++ name without its parameters, in a program and in a limit.
    let short = ["probe", "--events", "none", "./program:control_step", "--output", "short"];
    let short = place
        .punctual(&[&short[..], &["--limit", "control_step < 1h", "--", "./program"]].concat());
    assert_eq!(short.status.code(), Some(7), "{}", text(&short));
    // Certain errors are refused before anything starts.
    for wrong in ["slo < 1ms", "slow", "slow:entry < 1ms", "sched_wakig->slow:entry < 1ms"] {
        let refused = probe(&["--output", "wrong", "--limit", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {}", text(&refused));
        assert!(text(&refused).contains(&format!("--limit '{wrong}'")), "{}", text(&refused));
        assert!(!place.path().join("wrong").exists());
    }
}

#[test]
fn a_running_process_is_probed_until_it_ends() {
    if !is_root("probing") {
        return;
    }
    let place = Place::with("");
    let source = "#include <unistd.h>\n__attribute__((noinline)) void step(void) { usleep(1000); \
                  }\nint main(void) { for (;;) step(); }\n";
    if !compiled(&place, source) {
        return;
    }
    let mut child = Command::new("./program")
        .current_dir(place.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = child.id().to_string();
    let output = place.line(&format!("probe --quiet --output b -p {pid} --duration 200ms ste?"));
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
    if refused(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let shown = place.punctual(&["pairs", "--json", "b"]);
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(json["functions"][0]["count"].as_u64().unwrap() > 3, "{json:#}");
}

#[test]
fn what_cannot_be_probed_is_refused_with_the_reason_and_leaves_nothing() {
    let place = Place::with("");
    let refused = |words: &[&str], reason: &str| {
        let output = place.punctual(&[&["probe", "--output", "bundle"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output));
        assert!(text(&output).contains(reason), "{words:?}: {}", text(&output));
        assert!(!place.bundle().exists(), "{words:?}");
    };
    refused(&["libc:fopenn", "--", "ls"], "did you mean `fopen`?");
    refused(&["libm:sin", "--", "true"], "the program has no file `libm`");
    refused(&["main"], "no target");
    refused(&["main", "-p", "4194305"], "there is no process 4194305");
    refused(&["main", "--", "/no/such/program"], "cannot run `/no/such/program`");
    refused(&["/no/such/file:main", "--everyone"], "cannot read /no/such/file");
    refused(&["./experiment.toml:main", "--everyone"], "not an ELF file");
    refused(&["loop.c:4", "--everyone"], "./PROGRAM:FILE:LINE");
    refused(&["loop.c:0", "--", "true"], "lines count from 1");
    refused(&["step", "--events-pid", "x", "--", "true"], "neither a process number nor");
    refused(&["libm:sin.c:4", "--", "true"], "the program has no file `libm`");
    place.write("program.c", b"int main(void) {\n    return 0;\n\n}\n");
    for (options, reason) in
        [(&["-s"][..], "compile with -g"), (&["-g"], "line 3 of program.c has no code")]
    {
        let gcc = Command::new("gcc")
            .args(options)
            .args(["-o", "program", "program.c"])
            .current_dir(place.path())
            .status();
        if gcc.is_ok_and(|status| status.success()) {
            refused(&["program.c:3", "--", "./program"], reason);
        }
    }
}

#[test]
fn probes_on_source_lines_form_points_and_intervals() {
    if !is_root("probing") || !has_program("gcc", "gcc") {
        return;
    }
    let place = Place::with("");
    let source = "#include <pthread.h>
#include <unistd.h>
static volatile int sum;
static inline __attribute__((always_inline)) void add(int n) { sum += n; }
static void *work(void *unused) {
    for (int i = 0; i < 25; i++) {
        add(i);
        usleep(2000);
        add(1);
    }
    return unused;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    work(0);
    return pthread_join(other, 0);
}
";
    place.write("program.c", source.as_bytes());
    let gcc = ["-g", "-O1", "-pthread", "-o", "program", "program.c"];
    assert!(
        Command::new("gcc")
            .args(gcc)
            .current_dir(place.path())
            .status()
            .expect("gcc runs")
            .success()
    );
    let lines = |words: &[&str]| {
        let output = place.punctual(&[&["probe", "--lines"], words, &["--", "./program"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // The line with its text; a line with two copies; the file with the number of its lines.
    let listed = lines(&["program.c"]);
    let row = |number: &str| {
        let row = listed.lines().find(|row| row.trim_start().split(' ').next() == Some(number));
        row.unwrap_or_else(|| panic!("no line {number}: {listed}"))
    };
    assert!(row("8").ends_with("  usleep(2000);"), "{listed}");
    assert!(row("4").contains('×'), "inlined twice: {listed}");
    assert!(lines(&["work"]).contains("usleep") && !lines(&["work"]).contains("pthread_create"));
    assert!(lines(&[]).contains("/program.c"), "{}", lines(&[]));
    let json: serde_json::Value = serde_json::from_str(&lines(&["--json", "program.c"])).unwrap();
    assert_eq!(json["schema"], "punctual-lines/1", "{json:#}");
    let probe = |words: &[&str]| {
        let words =
            [&["probe", "--events", "none", "--json", "--quiet"], words, &["--", "./program"]]
                .concat();
        place.punctual(&words)
    };
    let limit = "program.c:8->program.c:11 < 1h";
    let output = probe(&[
        "--output",
        "one",
        "program.c:8",
        "./program:program.c:9",
        "program.c:11",
        "program.c:4",
        "--limit",
        limit,
    ]);
    if refused(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = place.punctual(&["show", "--json", "one"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    // Two threads, 25 rounds: once at each line, at each of two inlined copies, and at the end.
    assert_eq!(shown["recording"]["points"], 2 * 25 * (1 + 1 + 2) + 2, "{shown:#}");
    let ids: Vec<&str> =
        json["findings"].as_array().unwrap().iter().filter_map(|f| f["id"].as_str()).collect();
    assert!(ids.contains(&"probe-cost-lines"), "{ids:?}");

    let pairs = place.punctual(&["pairs", "--json", "one", "program.c:8->program.c:9"]);
    let pairs: serde_json::Value = serde_json::from_slice(&pairs.stdout).unwrap();
    let pair = &pairs["pairs"][0];
    assert_eq!(
        (&pair["count"], &pair["by"], &pair["unmatched_from"]),
        (&50.into(), &"thread".into(), &0.into()),
        "{pair}"
    );
    assert!(pair["min"].as_i64().unwrap() >= 2_000_000, "usleep takes no less: {pair}");
    // A running process, with a violation.
    let violated = probe(&[
        "--output",
        "two",
        "program.c:8",
        "program.c:9",
        "--limit",
        "program.c:8->program.c:9 < 1ms",
    ]);
    assert_eq!(violated.status.code(), Some(3), "{}", text(&violated));
    let wrong =
        probe(&["--output", "three", "program.c:8", "--limit", "program.c:8->program.c:99 < 1ms"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}
