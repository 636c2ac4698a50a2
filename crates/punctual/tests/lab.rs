//! `punctual lab` on this machine's cells: plans, failing cells, interruptions, JUnit, the report.

use crate::common::{Place, eventually, kill, processes_with, punctual, text};
use std::process::Stdio;

/// Two cells of half a second on this machine, one with a missing program.
const LAB: &str = r#"
[lab]
name = "small"
require = { timer = "p100 < 10s" }

[axes]
"measure.timer.period" = ["1ms", "2ms"]

[[measure]]
name = "timer"
kind = "timer"
cpus = "0"
duration = "300ms"
"#;

fn document(place: &Place, lab: &str) -> serde_json::Value {
    let bytes = std::fs::read(place.path().join(lab).join("lab.json")).expect("lab.json");
    serde_json::from_slice(&bytes).expect("lab.json is JSON")
}

#[test]
fn a_plan_lists_the_cells_and_starts_nothing() {
    let place = Place::with("");
    place.write("lab.toml", LAB.as_bytes());
    let planned = place.punctual(&["lab", "run", "--plan", "lab.toml", "--seeds", "1..5"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned));
    let exact = place.punctual(&["lab", "run", "--plan", "--exact", "lab.toml"]);
    assert_eq!(exact.status.code(), Some(2), "{}", text(&exact));
    assert!(text(&exact).contains("--exact needs virtual time"), "{}", text(&exact));
    for word in [
        "2 cells × 5 seeds × 1 repetition = 10 runs",
        "1ms  this machine",
        "estimated time",
        "max < 10s of timer",
    ] {
        assert!(text(&planned).contains(word), "{word}: {}", text(&planned));
    }
    assert!(!place.path().join("punctual-lab-small").exists());
}

#[test]
fn a_failed_cell_does_not_stop_the_others() {
    let place = Place::with("");
    let lab = "[lab]\nname = 'f'\nrequire = 'p100 < 10s'\n[axes.way]\nbroken = { measure.'*' = { \
               cpus = '0', stop_above = '1ns' }, experiment = { require_real_time = true } \
               }\nmissing = { measure.'*'.kind = 'storage', measure.'*'.directory = \
               '/nowhere/at/all' }\ngood = {}\n[[measure]]\nkind = 'syscall'\nsamples = 100\n";
    place.write("lab.toml", lab.as_bytes());
    let run = place.punctual(&["lab", "run", "lab.toml", "-o", "f"]);
    let lab = document(&place, "f");
    let state = |k: usize| lab["cells"][k]["state"].as_str().unwrap().to_owned();
    // A run ended by `stop_above` is not met, which outweighs a failure.
    assert_eq!(
        (run.status.code(), state(1), state(2)),
        (Some(3), "failed".into(), "done".into()),
        "{}",
        text(&run)
    );
    assert!(
        text(&run).contains("FAILED") && text(&run).contains("missing failed"),
        "{}",
        text(&run)
    );
}

#[test]
fn mistakes_of_all_cells_come_before_the_first_run() {
    let place = Place::with("");
    place.write("lab.toml", LAB.replace("\"2ms\"", "\"2 parsecs\"").as_bytes());
    let refused = place.punctual(&["lab", "run", "lab.toml", "-o", "small"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("2 parsecs") && !place.path().join("small").exists(),
        "{}",
        text(&refused)
    );
    // A directory with other contents is left alone.
    place.write("lab.toml", LAB.as_bytes());
    let taken = place.punctual(&["lab", "run", "lab.toml", "-o", "."]);
    assert_eq!(taken.status.code(), Some(2), "{}", text(&taken));
}

#[test]
fn ctrl_c_ends_what_runs_and_the_same_command_goes_on() {
    let place = Place::with("");
    let mark = format!("lab-mark-{}", std::process::id());
    let lab = format!(
        "{}\n[[load]]\nname = 'l'\ncommand = ['sh', '-c', 'while :; do sleep 0.02; done']\n",
        LAB.replace("300ms", "2s").replace("small", &mark)
    );
    place.write("lab.toml", lab.as_bytes());
    let mut command = punctual();
    command.args(["lab", "run", "lab.toml", "-o", &mark]).current_dir(place.path());
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let cells = place.path().join(&mark).join("cells");
    eventually("a run that writes", || {
        let entries = std::fs::read_dir(cells.join("1ms")).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with('.'))
    });
    kill(child.id(), "INT");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended));
    assert!(text(&ended).contains("run the same command again"), "{}", text(&ended));
    assert_eq!(processes_with(&mark), [0i32; 0], "nothing runs on");
    assert_eq!(document(&place, &mark)["finished"], false);
    let whole = place.punctual(&["lab", "run", "lab.toml", "-o", &mark]);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole));
    assert_eq!(document(&place, &mark)["finished"], true);
}
