//! Two measured threads on one CPU: the one waits for the other.

use crate::injected::{arena, assert_right};
use serde_json::Value;

#[test]
fn a_measured_thread_that_waits_for_another_one_blames_it() {
    let Some(arena) = arena("a_measured_thread_that_waits_for_another_one_blames_it") else {
        return;
    };
    let cpu = arena.cpu;
    // The second one works 10 ms at a time, and the first is no more important.
    arena.place.write(
        "experiment.toml",
        format!(
            "[[measure]]\nname = 'waiting'\nkind = 'timer'\ncpus = '{cpu}'\npriority = \
             80\nduration = '2s'\n[[measure]]\nname = 'working'\nkind = 'syscall'\ncpus = \
             '{cpu}'\npriority = 80\nduration = '2s'\n"
        )
        .as_bytes(),
    );
    let test = "a_measured_thread_that_waits_for_another_one_blames_it";
    if arena.measure(test, &["run", "experiment.toml"]).is_none() {
        return;
    }
    let waiting = meta(&arena.place, "waiting")["name"].as_str().unwrap().to_owned();
    let document = arena.explained(&["--series", &waiting, "--min-latency", "1ms"]);
    let late: Vec<&Value> = document["samples"].as_array().unwrap().iter().collect();
    let working = meta(&arena.place, "working")["tid"].as_u64();
    assert!(working.is_some());
    assert_right(&late, 10, |part| part["cause"] == "runqueue" && part["tid"].as_u64() == working);
}

/// What the bundle says of the one series of a measure.
fn meta(place: &crate::common::Place, measure: &str) -> Value {
    let files = std::fs::read_dir(place.bundle().join("phases/000"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let metas = files.filter(|path| path.to_string_lossy().ends_with(".meta.json"));
    let mut metas =
        metas.map(|path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap());
    metas.find(|meta| meta["measure"] == measure).unwrap()
}
