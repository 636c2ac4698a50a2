//! Two measured threads on one CPU: one waits for the other.

use super::case::{Case, judge};
use crate::injected::Arena;
use serde_json::{Value, json};

/// The second one works 10 ms at a time, and the first has no higher priority.
pub fn measure(arena: &Arena) -> Option<Value> {
    let cpu = arena.cpu;
    let text = format!(
        "[[measure]]\nname = 'waiting'\nkind = 'timer'\ncpus = '{cpu}'\npriority = 80\nduration = \
         '2s'\n[[measure]]\nname = 'working'\nkind = 'syscall'\ncpus = '{cpu}'\npriority = \
         80\nduration = '2s'\n"
    );
    arena.run(&text)?;
    let waiting = meta(&arena.place, "waiting")["name"].clone();
    let working = meta(&arena.place, "working")["tid"].clone();
    Some(json!({ "judged": waiting, "working": working }))
}

pub fn is_named(case: &Case) {
    let waiting = case.truth("judged").as_str().unwrap();
    let document = case.explained(&["--series", waiting, "--min-latency", "1ms"]);
    let late: Vec<&Value> = document["samples"].as_array().unwrap().iter().collect();
    let working = case.truth("working").as_u64();
    assert!(working.is_some());
    judge(case, &late, 10, |part| part["cause"] == "runqueue" && part["tid"].as_u64() == working);
}

/// The bundle's description of the one series of a measure.
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
