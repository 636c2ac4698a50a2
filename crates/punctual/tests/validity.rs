//! Removes each removable proof of validity on this kernel: the run is invalid, exit code 4, never
//! met.

use crate::common::{Place, eventually, has_program, is_root, kill, punctual, text, words};
use std::process::{Child, Command, Output, Stdio};

/// A timer with a requirement that any run meets.
fn experiment(length: &str, rest: &str) -> String {
    format!(
        "[[measure]]\nname = \"timer\"\nkind = \"timer\"\ncpus = \"0\"\nperiod = \
         \"1ms\"\n{length}\nrequire = [\"max < 100s\"]\n{rest}"
    )
}

fn start(place: &Place) -> Child {
    let mut command = punctual();
    command.args(words("run --quiet experiment.toml --output bundle --junit j.xml --lava l"));
    command
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("punctual starts")
}

/// The measuring thread of a run, once it measures.
fn measuring(place: &Place) -> String {
    let meta = place.bundle().join("phases/000/0000.meta.json");
    eventually("a second checkpoint", || {
        let log = place.bundle().join("phases/000/0000.log");
        std::fs::metadata(log).is_ok_and(|log| log.len() > 1_000)
    });
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
    meta["tid"].to_string()
}

fn command(words: &[&str]) {
    let done = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status();
    assert!(done.is_ok_and(|status| status.success()), "{words:?}");
}

/// Asserts exit code 4, an invalid requirement, and the failed proof with this reason in each
/// output.
fn assert_invalid(place: &Place, ran: &Output, proof: &str, why: &str) {
    assert_eq!(ran.status.code(), Some(4), "{}", text(ran));
    assert!(text(ran).contains("INVALID"), "{}", text(ran));
    let summary = place.summary();
    assert_eq!(summary["verdict"], "invalid", "{summary}");
    assert_eq!(summary["validity"]["verdict"], "invalid");
    let proofs = summary["validity"]["proofs"].as_array().unwrap();
    let fails = |one: &serde_json::Value| one["proof"] == proof && one["outcome"] == "fails";
    let failed = proofs
        .iter()
        .find(|one| fails(one))
        .unwrap_or_else(|| panic!("{proof} is not in {proofs:#?}"));
    assert!(failed["why"].as_str().unwrap().contains(why), "{failed}");
    let junit = std::fs::read_to_string(place.path().join("j.xml")).unwrap();
    assert!(
        junit.contains("type=\"invalid\"") && junit.contains(&format!("valid: {proof}")),
        "{junit}"
    );
    let lava = std::fs::read_to_string(place.path().join("l")).unwrap();
    assert!(lava.contains("max-lt-100s fail\n") && lava.contains(why), "{lava}");
}

fn outcome(summary: &serde_json::Value, proof: &str) -> String {
    let proofs = summary["validity"]["proofs"].as_array().unwrap().clone();
    let found = proofs.into_iter().find(|one| one["proof"] == proof);
    found.map_or("absent".to_owned(), |one| {
        format!("{} {}", one["outcome"].as_str().unwrap(), one["why"])
    })
}

#[test]
fn what_is_proved_is_met_with_a_load_that_works() {
    if !is_root("what_is_proved_is_met_with_a_load_that_works") {
        return;
    }
    let load =
        "[[load]]\nname = \"busy\"\ncommand = [\"sh\", \"-c\", \"while :; do sleep 0.01; done\"]\n";
    let place = Place::with(&experiment("duration = \"2s\"", load));
    let ran = start(&place).wait_with_output().unwrap();
    let summary = place.summary();
    for proof in ["scheduling", "affinity", "memory", "clock", "load"] {
        assert!(
            outcome(&summary, proof).starts_with("holds"),
            "{proof}: {}",
            outcome(&summary, proof)
        );
    }
    let lost = summary["phases"][0]["series"][0]["lost"].as_u64().unwrap();
    if lost == 0 {
        assert_eq!(
            (ran.status.code(), &summary["verdict"]),
            (Some(0), &"met".into()),
            "{}",
            text(&ran)
        );
    }
}

/// The proof of a load, by the load's name: its result and reason.
fn of_load(summary: &serde_json::Value, name: &str) -> (String, String) {
    let proofs = summary["validity"]["proofs"].as_array().expect("proofs");
    let is_its = |one: &&serde_json::Value| {
        let subject = one["subject"].as_str().unwrap_or_default();
        one["proof"] == "load" && subject.ends_with(&format!("/{name}"))
    };
    let proof = proofs.iter().find(is_its).unwrap_or_else(|| panic!("{name}: {proofs:#?}"));
    let word = |key: &str| proof[key].as_str().unwrap_or_default().to_owned();
    (word("outcome"), word("why"))
}

#[test]
fn a_load_that_idles_or_dies_is_none_and_one_that_rests_on_purpose_is() {
    if !is_root("a_load_that_idles_or_dies_is_none") {
        return;
    }
    let loads = r#"
        [[load]]
        name = "idle"
        command = "sleep 1000"
        [[load]]
        name = "dies"
        command = "sh -c 'sleep 0.3; exit 1'"
        on_failure = "ignore"
        [[load]]
        name = "waits"
        command = "sleep 1000"
        may_rest = true
        [[load]]
        name = "leaves"
        command = "sh -c 'sleep 0.3; exit 1'"
        on_failure = "ignore"
        may_rest = true
        "#;
    let place = Place::with(&experiment("duration = \"4s\"", loads));
    let ran = start(&place).wait_with_output().unwrap();
    assert_invalid(&place, &ran, "load", "it idled");
    let summary = place.summary();
    for (name, is, why) in [
        ("idle", "fails", "it idled"),
        ("dies", "fails", "it ended with status 1"),
        ("waits", "holds", "it rested in"),
        // This load is required nevertheless.
        ("leaves", "fails", "it ended with status 1"),
    ] {
        let (outcome, found) = of_load(&summary, name);
        assert!(outcome == is && found.contains(why), "{name}: {outcome} {found}");
    }
    let phase = std::fs::read_to_string(place.bundle().join("phases/000/phase.json"));
    let phase = phase.expect("a phase").replace(": ", ":");
    assert!(phase.contains("\"may_rest\":true"), "{phase}");
}

/// One phase, measured as requested, violates its requirement; in the other the load idles.
#[test]
fn what_is_invalid_hides_no_violation_and_is_not_hidden_by_it() {
    if !is_root("what_is_invalid_hides_no_violation_and_is_not_hidden_by_it") {
        return;
    }
    let text_of = "[[phase]]\nname = \"plain\"\nduration = \"1s\"\n[[phase]]\nname = \
                   \"idle\"\nduration = \"4s\"\nloads = [\"idle\"]\n[[load]]\nname = \
                   \"idle\"\ncommand = \"sleep 1000\"\n[[measure]]\nname = \"timer\"\nkind = \
                   \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\nrequire = [\"max < 1ns\"]\n";
    let place = Place::with(text_of);
    let ran = start(&place).wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    let said = text(&ran);
    assert!(said.contains("INVALID: load of idle/idle") && said.contains("NOT MET"), "{said}");
    let summary = place.summary();
    assert_eq!(
        (&summary["verdict"], &summary["validity"]["verdict"]),
        (&"not-met".into(), &"invalid".into())
    );
    let verdict =
        |phase: usize| summary["phases"][phase]["series"][0]["requirements"][0]["verdict"].clone();
    assert_eq!((verdict(0), verdict(1)), ("not-met".into(), "invalid".into()));
}

#[test]
fn an_affinity_or_a_policy_that_somebody_changes_is_not_the_one_asked_for() {
    let everywhere = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if !is_root("an_affinity_or_a_policy_that_somebody_changes")
        || !has_program("taskset", "util-linux")
        || !has_program("chrt", "util-linux")
    {
        return;
    }
    if everywhere.trim() == "0" {
        println!("SKIPPED: lacks a second CPU");
        return;
    }
    let place = Place::with(&experiment("duration = \"5s\"", ""));
    let child = start(&place);
    let tid = measuring(&place);
    command(&["taskset", "--cpu-list", "-p", everywhere.trim(), &tid]);
    command(&["chrt", "--fifo", "-p", "7", &tid]);
    std::thread::sleep(std::time::Duration::from_millis(2_000));
    // Restored before the end: an intermediate check detects it.
    command(&["chrt", "--fifo", "-p", "80", &tid]);
    let ran = child.wait_with_output().unwrap();
    assert_invalid(&place, &ran, "affinity", "it was allowed on CPU");
    assert_invalid(&place, &ran, "scheduling", "it ran as SCHED_FIFO 7");
}

#[test]
fn two_that_measure_one_cpu_are_found_and_decide_nothing() {
    if !is_root("two_that_measure_one_cpu") {
        return;
    }
    let (one, other) = (experiment("duration = \"6s\"", ""), experiment("duration = \"2s\"", ""));
    let (one, other) = (Place::with(&one), Place::with(&other));
    let first = one.start();
    measuring(&one);
    let ran = other.line("run -q experiment.toml -o bundle --junit j.xml --lava l");
    assert_invalid(&other, &ran, "others", "also measured on CPU 0");
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(4), "who was there before sees it too: {}", text(&first));
    assert!(text(&first).contains("another punctual measured on the same CPU"), "{}", text(&first));
}

#[test]
fn an_interrupted_run_decides_no_requirement_that_is_not_violated() {
    for (require, code) in [("max < 100s", 4), ("max < 1ns", 3)] {
        let text_of = experiment("duration = \"10min\"", "").replace("max < 100s", require);
        let place = Place::with(&text_of);
        let child = place.start();
        measuring(&place);
        kill(child.id(), "INT");
        let ran = child.wait_with_output().unwrap();
        let summary = place.summary();
        assert!(
            outcome(&summary, "samples").starts_with("unknown"),
            "{}",
            outcome(&summary, "samples")
        );
        let seen = outcome(&summary, "others").starts_with("holds")
            && outcome(&summary, "scheduling").starts_with("holds");
        if seen && outcome(&summary, "memory").starts_with("holds") {
            assert_eq!(ran.status.code(), Some(code), "{require}: {}", text(&ran));
        }
    }
}

#[test]
fn an_endless_run_is_complete_when_interrupted() {
    let place = Place::with(&experiment("", ""));
    let child = place.start();
    measuring(&place);
    kill(child.id(), "INT");
    child.wait_with_output().unwrap();
    let summary = place.summary();
    assert!(outcome(&summary, "samples").starts_with("holds"), "{}", outcome(&summary, "samples"));
}
