//! Measures of the kind `program`: cyclictest, without knowledge of punctual, in experiments.

use crate::attach::compiled_from;
use crate::common::{
    Place, assert_refused, eventually, has_program, is_root, kill, processes_with, text,
};
use crate::cyclictest;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

fn can_measure() -> bool {
    is_root("measuring programs") && has_program("cyclictest", "rt-tests")
}

fn run(place: &Place, more: &[&str]) -> Output {
    let run = ["run", "--quiet", "experiment.toml", "--output", "bundle"];
    place.punctual(&[&run[..], more].concat())
}

fn series<'v>(phase: &'v Value, name: &str) -> &'v Value {
    let all = phase["series"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {phase:#}"))
}

fn finding<'v>(summary: &'v Value, id: &str) -> &'v Value {
    let all = summary["findings"].as_array().unwrap();
    all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("no {id}: {all:#?}"))
}

#[test]
fn a_program_that_ends_early_leaves_the_verdict_undecided() {
    if !can_measure() {
        return;
    }
    let place = Place::with(
        "[[measure]]\nkind = 'program'\nduration = '4s'\nname = 'short'\ncommand = \"sh -c \
         'cyclictest -q -m -p95 -i1000 -l1000; exit 9'\"\nrequire = ['response max < 1h']\n",
    );
    let output = run(&place, &[]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let summary = place.summary();
    assert_eq!(summary["verdict"], "undecided");
    let ended = finding(&summary, "program-ended");
    assert_eq!((&ended["severity"], &ended["subject"]), (&"bad".into(), &"main/short".into()));
    assert!(ended["message"].as_str().unwrap().contains("ended with status 9"), "{ended:#}");
    let phase = std::fs::read(place.bundle().join("phases/000/phase.json")).unwrap();
    let phase: Value = serde_json::from_slice(&phase).unwrap();
    let program = &phase["evidence"]["known"]["programs"][0];
    assert_eq!(program["ended"], "ended with status 9", "{phase:#}");
    assert_eq!(program["reached_end"], false, "{phase:#}");
}

#[test]
fn what_is_not_there_is_refused() {
    if !can_measure() {
        return;
    }
    let refused = |keys: &str, why: &str| {
        let place =
            Place::with(&format!("[[measure]]\nkind = 'program'\nduration = '1s'\n{keys}\n"));
        let output = run(&place, &[]);
        assert_refused(&output, &place.bundle());
        assert!(text(&output).contains(why), "{keys}: {}", text(&output));
    };
    refused("comm = 'no-such-name'", "no process has the name `no-such-name`");
    refused("pid = 2", "kernel thread");
    refused("command = 'no-such-program'", "cannot run `no-such-program`");
    refused("", "this measure has no program");
    refused("comm = 'x'\npid = 7", "only one of them");
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Programs that do not catch SIGTERM, have forked when it comes, and ignore it.
const ENDED: [&str; 3] = [
    "./periodic relative 100000 0",
    "sh -c './periodic relative 100000 0 & wait'",
    "sh -c \"trap '' TERM; exec ./periodic relative 100000 0\"",
];

/// What punctual ends itself has not failed.
#[test]
fn a_process_that_was_there_goes_on_and_one_that_was_started_ends() {
    if !can_measure() {
        return;
    }
    let source = include_bytes!("attach/periodic.c");
    let Some(place) = compiled_from(source, "periodic", &["-O1", "-pthread"]) else { return };
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-p95", "-i1000"]).stdout(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    let (there, started) = (format!("pid = {}", running.0.id()), ENDED.iter());
    let started = started.map(|command| format!("command = {command:?}"));
    let measures = std::iter::once(there).chain(started).enumerate().map(|(number, keys)| {
        let start = "[[measure]]\nkind = 'program'\nduration = '2s'\n";
        format!("{start}name = 'p{number}'\n{keys}\n")
    });
    place.write("experiment.toml", measures.collect::<String>().as_bytes());
    let output = run(&place, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(running.0.try_wait().unwrap().is_none(), "it was ended");
    let stored = std::fs::read(place.bundle().join("phases/000/phase.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert!(stored.get("ended").is_none(), "{stored:#}");
    for program in stored["evidence"]["known"]["programs"].as_array().unwrap() {
        assert!(program.get("ended").is_none() && program["reached_end"] == true, "{program:#}");
    }
    let phase = &place.summary()["phases"][0];
    let thread = cyclictest::measuring_thread(phase);
    assert!(series(phase, &format!("{thread}/period"))["count"].as_u64() > Some(100));
}

#[test]
fn kill_9_leaves_no_program_behind() {
    if !can_measure() {
        return;
    }
    let word = format!("punctual-program-test-{}", std::process::id());
    let place = Place::with(&format!(
        "[[measure]]\nkind = 'program'\nduration = '10min'\ncommand = \"sh -c 'cyclictest -q -m \
         -p95 -i1000; : {word}'\"\n"
    ));
    let mut child = place.start();
    eventually("a bundle with a series", || {
        place.bundle().join("phases/000/0000.checkpoint").exists()
    });
    let started = processes_with(&word);
    assert!(!started.is_empty());
    let children = |pid: i32| {
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
    };
    let theirs: Vec<i32> = started
        .iter()
        .flat_map(|pid| children(*pid).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect();
    assert!(!theirs.is_empty(), "cyclictest runs");
    kill(child.id(), "KILL");
    child.wait().unwrap();
    let is_there = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    eventually("the end of the program", || {
        processes_with(&word).is_empty() && !theirs.iter().any(is_there)
    });
    let shown = place.punctual(&["show", "bundle"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    assert!(text(&shown).to_lowercase().contains("cut off"), "{}", text(&shown));
}
