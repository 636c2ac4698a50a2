//! Terminals that close or never answer: measured data is kept, and no process is left running.

use crate::common::{Place, eventually, has_program, kill, processes_with, punctual};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs a line in a terminal made by util-linux' script(1): one that never answers, like a serial
/// console. Its SIGHUP ends the processes in it, even if the tests run under `nohup`.
fn in_a_terminal(place: &Place, line: &str) -> Child {
    let mut script = Command::new("env");
    script
        .args(["--default-signal=HUP", "script"])
        .args(["--quiet", "--flush", "--return", "--command", line, "/dev/null"])
        .current_dir(place.path());
    script.env("TERM", "xterm").env("PUNCTUAL", punctual().get_program());
    script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("script(1) starts")
}

/// Closes the terminal, like a window.
fn close(mut terminal: Child) {
    terminal.kill().expect("it runs");
    terminal.wait().expect("it ends");
}

fn ending(bundle: &Path) -> serde_json::Value {
    let manifest = std::fs::read(bundle.join("bundle.json")).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(&manifest).unwrap_or_default()["ending"].clone()
}

fn available() -> bool {
    has_program("script", "script") && has_program("setsid", "setsid")
}

#[test]
fn no_queries_are_sent_to_the_terminal() {
    if !available() {
        return;
    }
    let place = Place::with("");
    let mut terminal =
        in_a_terminal(&place, "\"$PUNCTUAL\" measure timer --duration 1s --output bundle");
    let (mut written, mut stdout) = (Vec::new(), terminal.stdout.take().expect("it is piped"));
    stdout.read_to_end(&mut written).unwrap();
    // Another test may measure the same CPU meanwhile: invalid.
    assert!(matches!(terminal.wait().unwrap().code(), Some(0 | 4)));
    let written = String::from_utf8_lossy(&written);
    // The view was shown, and was cleared.
    assert!(written.contains("phase 1 of 1") && written.contains("\u{1b}[J"), "{written}");
    assert!(!written.contains("[6n"), "it asked where the cursor is: {written}");
}

#[test]
fn closing_the_terminal_ends_the_run_cleanly() {
    if !available() {
        return;
    }
    // The duration is the mark: no other process has it.
    let (place, mark) = (Place::with(""), "1234.567s");
    let line = format!("\"$PUNCTUAL\" measure timer --duration {mark} --output bundle");
    let mut terminal = in_a_terminal(&place, &line);
    let mut stdout = terminal.stdout.take().expect("it is piped");
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    eventually("a checkpoint", || place.bundle().join("phases/000/0000.checkpoint").exists());
    close(terminal);
    eventually("its end", || processes_with(mark).is_empty());
    assert_eq!(ending(&place.bundle())["outcome"], "interrupted");
}

/// As under nohup(1): SIGHUP is ignored, and stays ignored.
#[test]
fn a_hangup_ignored_from_the_start_does_not_end_the_run() {
    let place = Place::with("");
    let line =
        "trap '' HUP; exec \"$PUNCTUAL\" measure timer --quiet --duration 4s --output bundle";
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PUNCTUAL", punctual().get_program()).current_dir(place.path());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh");
    eventually("a checkpoint", || place.bundle().join("phases/000/0000.checkpoint").exists());
    kill(child.id(), "HUP");
    child.wait().expect("it ends");
    assert_eq!(ending(&place.bundle())["outcome"], "completed", "{}", ending(&place.bundle()));
}

/// Outside of the terminal's session no signal reports its end: every write fails with EIO.
#[test]
fn writing_to_a_closed_terminal_never_panics() {
    if !available() {
        return;
    }
    let place = Place::with("");
    let traced = "\"$PUNCTUAL\" trace --events none --duration 3s --output trace; echo $? > traced";
    let measured = "\"$PUNCTUAL\" measure timer --duration 3s --output bundle; echo $? > measured";
    let line =
        format!("setsid --fork sh -c '{traced}'; setsid --fork sh -c '{measured}'; sleep 100");
    let mut terminal = in_a_terminal(&place, &line);
    let mut stdout = terminal.stdout.take().expect("it is piped");
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    eventually("two bundles", || place.path().join("trace").exists() && place.bundle().exists());
    close(terminal);
    let code = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap_or_default();
    eventually("both ends", || !code("traced").is_empty() && !code("measured").is_empty());
    // 134 is a shell's code for SIGABRT. The figures go to standard output, and could not be
    // written.
    assert_eq!((code("traced").trim(), code("measured").trim()), ("0", "1"));
    assert_eq!(ending(&place.bundle())["outcome"], "completed");
}
