//! A disk that answers nobody for longer than rings hold samples costs none of them.

use crate::common::{Place, has_program, is_root, punctual, text};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A ring holds two seconds, and this is how long no write returns.
const FROZEN: Duration = Duration::from_secs(5);

fn run(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program).args(arguments).output().expect("a program of util-linux or e2fsprogs");
    if !done.status.success() {
        println!("{program} {arguments:?}: {}", text(&done));
    }
    done.status.success()
}

/// A file system of its own, thawed and taken away at the end, whatever happens.
struct Mounted(String);

impl Mounted {
    fn at(place: &Path) -> Option<Mounted> {
        let (image, at) = (place.join("image"), place.join("disk"));
        std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a sparse file");
        std::fs::create_dir(&at).expect("a directory");
        let (image, at) = (image.to_string_lossy().into_owned(), at.to_string_lossy().into_owned());
        let mounted = run("mkfs.ext4", &["-q", &image]) && run("mount", &["-o", "loop", &image, &at]);
        mounted.then_some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").args(["-u", &self.0]).output();
        run("umount", &[&self.0]);
    }
}

#[test]
fn a_disk_that_answers_nobody_costs_no_sample() {
    let test = "a frozen file system";
    if !is_root(test) || !has_program("fsfreeze", "util-linux") || !has_program("mkfs.ext4", "e2fsprogs") {
        return;
    }
    let place = Place::with("");
    let Some(disk) = Mounted::at(place.path()) else {
        println!("SKIPPED: {test} lacks loop devices and mounts");
        return;
    };
    let bundle = format!("{}/bundle", disk.0);
    let mut command = punctual();
    command.args(["measure", "timer", "--quiet", "--explain", "-s", "period=1ms", "--duration", "12s", "-o", &bundle]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("punctual");
    let measures = || {
        std::fs::read_dir(format!("{bundle}/phases/000")).is_ok_and(|all| {
            all.flatten().any(|file| {
                let is_log = file.path().extension().is_some_and(|ending| ending == "log");
                is_log && file.metadata().is_ok_and(|meta| meta.len() > 256)
            })
        })
    };
    crate::common::eventually("samples in the log", measures);
    assert!(run("fsfreeze", &["-f", &disk.0]));
    std::thread::sleep(FROZEN);
    assert!(run("fsfreeze", &["-u", &disk.0]));
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
    assert!(!losses.is_empty() && losses.iter().all(|lost| *lost == 0), "lost {losses:?}: {}", text(&ended));
}
