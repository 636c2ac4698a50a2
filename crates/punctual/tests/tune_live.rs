//! `punctual tune` on this machine: a setting is tried, and all is restored, even after kill -9.

use crate::common::{self, HANG, Place, text};
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A setting that takes effect at once and does no harm.
const SETTING: &str = "/proc/sys/kernel/timer_migration";

const EXPERIMENT: &str = "[[measure]]\nkind = \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\n\
                          duration = \"60ms\"\n";

fn held() -> String {
    fs::read_to_string(SETTING).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[test]
fn a_tuning_that_is_killed_is_taken_back_and_goes_on() {
    if !common::is_root("tune_live") {
        return;
    }
    if held() != "1" {
        println!("SKIPPED: {SETTING} is `{}`, and nothing to change", held());
        return;
    }
    let place = Place::with(EXPERIMENT);
    let tune = |words: &[&str]| {
        let mut command = common::punctual();
        command.arg("tune").args(words).current_dir(place.path());
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("punctual starts")
    };
    let blocks = place.path().join("t/blocks.jsonl");
    let measured = || fs::read_to_string(&blocks).map_or(0, |text| text.lines().count());
    let until = |tuning: &mut Child, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            let goes_on = began.elapsed() < HANG && tuning.try_wait().unwrap().is_none();
            assert!(goes_on, "after {} blocks", measured());
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let mut tuning =
        tune(&["experiment.toml", "-o", "t", "--only", "timer-migration", "--require", "max"]);
    until(&mut tuning, &|| measured() >= 8 && held() == "0");
    tuning.kill().unwrap();
    tuning.wait().unwrap();
    assert_eq!(held(), "0", "nobody takes it back but who is asked to");
    let undone = place.punctual(&["isolate", "undo"]);
    assert_eq!((undone.status.code(), held().as_str()), (Some(0), "1"), "{}", text(&undone));
    let kept = measured();
    let mut resumed = tune(&["--resume", "t"]);
    until(&mut resumed, &|| measured() > kept);
    common::kill(resumed.id(), "INT");
    assert_eq!(resumed.wait().unwrap().code(), Some(1), "interrupted");
    assert_eq!(held(), "1");
    let found = place.punctual(&["tune", "report", "t", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!(found["settings"][0]["name"], "timer-migration");
    assert_eq!(found["ended"], "interrupted");
    assert!(found["blocks"].as_u64() > Some(8), "{found:#}");
    let undone = place.punctual(&["isolate", "undo"]);
    assert_eq!(String::from_utf8_lossy(&undone.stdout), "nothing to undo\n");
}
