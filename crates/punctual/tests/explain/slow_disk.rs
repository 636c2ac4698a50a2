//! A disk blocked for longer than rings hold samples loses none of them.

use crate::common::disk::Disk;
use crate::common::{Place, punctual, text, words};
use std::process::Stdio;
use std::time::Duration;

/// The time without completed writes; a ring holds two seconds.
const FROZEN: Duration = Duration::from_secs(5);

#[test]
fn a_disk_that_hangs_causes_no_lost_samples() {
    let place = Place::with("");
    let Some(disk) = Disk::at(place.path()) else { return };
    let bundle = format!("{}/bundle", disk.path());
    let mut command = punctual();
    command.args(words(&format!(
        "measure timer --quiet --explain -s period=1ms --duration 12s -o {bundle}"
    )));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("punctual");
    let measures = || {
        std::fs::read_dir(format!("{bundle}/phases/000")).is_ok_and(|all| {
            all.flatten().any(|file| {
                let is_log = file.path().extension().is_some_and(|ending| ending == "log");
                is_log && file.metadata().is_ok_and(|meta| meta.len() > 256)
            })
        })
    };
    crate::common::eventually("samples in the log", measures);
    disk.freeze();
    std::thread::sleep(FROZEN);
    disk.thaw();
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    let shown = place.punctual(&["show", "--json", &bundle]);
    let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let losses: Vec<u64> = summary["phases"][0]["series"]
        .as_array()
        .expect("series")
        .iter()
        .map(|series| series["lost"].as_u64().unwrap_or_else(|| panic!("{series}")))
        .collect();
    assert!(
        !losses.is_empty() && losses.iter().all(|lost| *lost == 0),
        "lost {losses:?}: {}",
        text(&ended)
    );
}
