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
fn completed_cells_of_a_lab_are_not_run_again() {
    let place = Place::with("");
    place.write("lab.toml", LAB.as_bytes());
    let run = |more: &[&str]| {
        place.punctual(&[&["lab", "run", "lab.toml", "-o", "small"], more].concat())
    };
    let first = run(&["--junit", "lab.xml"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    let lab = document(&place, "small");
    assert_eq!(
        (&lab["schema"], &lab["finished"], &lab["verdict"]),
        (&"punctual-lab/1".into(), &true.into(), &"met".into())
    );
    let cell = &lab["cells"][1];
    assert_eq!(cell["axes"]["measure.timer.period"], "2ms");
    assert!(
        place
            .path()
            .join("small")
            .join(cell["bundle"].as_str().unwrap())
            .join("bundle.json")
            .exists(),
        "{cell}"
    );
    assert!(cell["digest"].is_string() && cell["repeats"].as_array().unwrap().len() == 1);
    assert!(cell["series"][0]["count"].as_u64().unwrap() > 0 && cell["equal"].is_null());
    let xml = std::fs::read_to_string(place.path().join("lab.xml")).unwrap();
    assert!(xml.contains("testsuite name=\"2ms\"") && xml.contains("failures=\"0\""), "{xml}");
    // A CI system groups cases by class, independent of the suite.
    assert!(xml.contains("classname=\"1ms.") && xml.contains("classname=\"2ms."), "{xml}");
    let page = std::fs::read_to_string(place.path().join("small/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Heat map"));

    // Nothing is run again; seeds are new runs.
    let again = run(&[]);
    assert!(text(&again).contains("already done: 2 of 2 runs"), "{}", text(&again));
    assert_eq!(document(&place, "small")["cells"][1]["digest"], cell["digest"]);
    let seeds = run(&["--seeds", "3..4"]);
    assert_eq!(seeds.status.code(), Some(0), "{}", text(&seeds));
    assert_eq!(document(&place, "small")["cells"][0]["seeds"][1]["seed"], 4);

    // A changed requirement is evaluated again without a run.
    place.write("lab.toml", LAB.replace("10s", "1ns").as_bytes());
    let strict = run(&["--junit", "lab.xml"]);
    assert_eq!(strict.status.code(), Some(3), "{}", text(&strict));
    assert!(
        text(&strict).contains("already done: 2 of 2 runs") && text(&strict).contains("NOT MET"),
        "{}",
        text(&strict)
    );
    assert!(
        std::fs::read_to_string(place.path().join("lab.xml")).unwrap().contains("failures=\"2\"")
    );
    let shown = place.punctual(&["lab", "report", "small", "-o", "page.html"]);
    assert_eq!(shown.status.code(), Some(3), "{}", text(&shown));
    assert!(place.path().join("page.html").exists());

    // Once more, with a wrong request first.
    let wrong = place.punctual(&["lab", "replay", "small", "3ms"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("it has 1ms, 2ms"), "{}", text(&wrong));
    let exact = place.punctual(&["lab", "replay", "small", "1ms", "--exact", "-o", "again"]);
    assert_eq!(exact.status.code(), Some(2), "{}", text(&exact));
    assert!(text(&exact).contains("--exact needs virtual time"), "{}", text(&exact));
    let replayed = place.punctual(&["lab", "replay", "small", "1ms", "--plain", "-o", "again"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed));
    assert!(
        text(&replayed).contains("runs in real time are not repeatable"),
        "{}",
        text(&replayed)
    );
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
