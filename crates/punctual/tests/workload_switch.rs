//! `punctual measure switch`: claims match the kernel's counters, and shapes hold on any machine.

use crate::common::measured::{self, endless, measured, notes, rows};
use crate::common::{self, Place, text};
use serde_json::Value;

/// With real-time scheduling the validation of the whole run by the kernel's counters agrees.
fn agrees(summary: &Value, what: &str) {
    let validations = notes(summary)["validations"].as_array().unwrap();
    assert_eq!(validations.len(), 2, "{what}");
    let real_time = summary["phases"][0]["series"][0]["real_time"] != false;
    for validation in validations.iter().filter(|_| real_time) {
        if validation["counted"].get("known").is_none() {
            println!(
                "SKIPPED: {} are not counted here: {}",
                validation["what"], validation["counted"]
            );
            continue;
        }
        // A yield cannot be distinguished from a preemption by others.
        let may_be_open = what.ends_with("yield") && validation["agrees"].is_null();
        assert!(validation["agrees"] == true || may_be_open, "{what}: {validation}");
        assert!(validation["tolerance"].is_object(), "{what}: {validation}");
    }
}

#[test]
fn every_mechanism_switches_as_often_as_it_says() {
    let place = Place::with("");
    for tasks in ["threads", "processes"] {
        for (mechanism, count) in [
            ("pipe", 4_000),
            ("eventfd", 4_000),
            ("futex", 4_000),
            ("signal", 4_000),
            ("sleep", 1_000),
            ("yield", 4_000),
        ] {
            let what = format!("{tasks}-{mechanism}");
            let line = format!("switch -s tasks={tasks} -s mechanism={mechanism} --count {count}");
            let summary = measured(&place, &line);
            assert_eq!(summary["phases"][0]["series"][0]["count"], count, "{what}");
            agrees(&summary, &what);
            // Counting one of two tasks gives half: a factor of two.
            let [one, all] = [0, 1].map(|row| rows(&summary, "switch-counts")[row][1].as_f64());
            if let (Some(one), Some(all)) = (one, all) {
                assert!(one > 0.3 * all && one < 0.7 * all, "{what}: {one} of {all}");
            }
        }
    }
}

/// A ring of processes that measures for an hour, and one of its processes.
fn ring(place: &Place) -> (std::process::Child, u32) {
    let child = endless(place, "switch -s tasks=processes", "bundle");
    let find = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
        let lists = tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let pids: Vec<u32> = lists
            .flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        // Named after the forking thread.
        let name =
            |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.into_iter().find(|pid| name(pid).trim() == "measure")
    };
    let member = find().expect("a process of the ring");
    (child, member)
}

#[test]
fn no_process_of_the_ring_outlives_punctual() {
    let place = Place::with("");
    let (mut child, member) = ring(&place);
    common::kill(child.id(), "KILL");
    child.wait().unwrap();
    common::eventually("its end", || {
        // The adoptive parent may be slow to reap the process: Z.
        let stat = std::fs::read_to_string(format!("/proc/{member}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::with("");
    for (settings, said) in [
        (&["ring=1"][..], "out of bounds"),
        (&["working_set=['17MiB']"], "out of bounds"),
        (&["working_set=['99999999999999999999MiB']"], ""),
        (&["ring=1024", "working_set=['16MiB']"], "more than 1 GiB"),
        (&["mechanism=yield", "distance=other-cpu"], "same CPU"),
        (&["mechanism=sleep", "distance=other-cpu"], "on one CPU"),
        (&["mechanism=sleep", "ring=3"], "a pair"),
    ] {
        let settings: Vec<&str> = settings.iter().flat_map(|setting| ["-s", setting]).collect();
        let refused = place.punctual(&[&["measure", "switch", "-q"], &settings[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{settings:?}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{settings:?}: {}", text(&refused));
    }
    let refused = place.punctual(&["measure", "switch", "-q", "--cpus", "1023"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    // With one CPU there is no other.
    let refused = measured::refused(&place, "switch --cpus 0 -s distance=other-cpu --count 10");
    assert!(refused.contains("0 has fewer than two CPUs"), "{refused}");
}
