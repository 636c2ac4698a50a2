//! A task that forces data to a disk, on a journalled file system where another does the same.

use super::case::{Case, judge};
use crate::common::has_program;
use crate::injected::arena;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file system in a file; unmounted when the test ends.
struct Mounted(PathBuf);

impl Mounted {
    fn at(place: &Path) -> Option<Mounted> {
        let (image, at) = (place.join("image"), place.join("mounted"));
        std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
        std::fs::create_dir(&at).expect("a place for it");
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(&image)
            .status()
            .expect("mkfs.ext4 runs");
        assert!(made.success());
        let mounted = Command::new("mount")
            .args(["-o", "loop"])
            .args([&image, &at])
            .output()
            .expect("mount runs");
        if !mounted.status.success() {
            println!(
                "SKIPPED: lacks loop devices: {}",
                String::from_utf8_lossy(&mounted.stderr).trim()
            );
            return None;
        }
        Some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

const NAME: &str = "storage";

fn measure() -> Option<Case> {
    let arena = arena(NAME)?;
    if !has_program("mkfs.ext4", "e2fsprogs") || !has_program("mount", "mount") {
        return None;
    }
    let mounted = Mounted::at(arena.place.path())?;
    let stop = Arc::<AtomicBool>::default();
    let (its_stop, other) = (Arc::clone(&stop), mounted.0.join("other"));
    let writer = std::thread::spawn(move || {
        let mut file = std::fs::File::create(other).expect("a file");
        while !its_stop.load(Ordering::Relaxed) {
            file.write_all(&[1; 16 << 10]).and_then(|()| file.sync_all()).expect("it is written");
            file.set_len(0).expect("it is emptied");
        }
    });
    let directory = format!("directory={}", mounted.0.display());
    let cpu = arena.cpu.to_string();
    let arguments =
        ["measure", "storage", "--cpus", &cpu, "-s", "mode=forced", "-s", "forcing=fsync", "-s"];
    let measured =
        arena.measure(NAME, &[&arguments[..], &[&directory, "--duration", "3s"]].concat());
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("it has written");
    measured?;
    drop(mounted);
    Some(Case::measured(NAME, arena.place, serde_json::json!({ "judged": "storage/force" })))
}

#[test]
fn disk_waits_are_attributed_to_the_disk_or_its_workers() {
    are_the_disks(&Case::recorded(NAME));
}

#[test]
#[ignore = "a score: on a busy machine others cause it; ./x test --all"]
fn disk_waits_are_attributed_to_the_disk_or_its_workers_live() {
    measure().iter().for_each(are_the_disks);
}

fn are_the_disks(case: &Case) {
    let document = case.explained(&["--series", "storage/force"]);
    let late: Vec<&Value> = document["samples"].as_array().unwrap().iter().collect();
    // The device itself, or tasks that finish writes for it: the journal's thread, and workers of
    // the file system and of the loop device, which have no other work that this thread could wait
    // for.
    let carries_it = |who: &str| who.starts_with("jbd2/") || who.starts_with("kworker/");
    judge(case, &late, 10, |part| {
        let who = part["who"].as_str().unwrap_or_default();
        part["cause"] == "io" && who.starts_with("loop")
            || part["cause"] == "waiting" && carries_it(who)
    });
    let device = |sample: &&Value| {
        sample["parts"].as_array().unwrap().iter().any(|part| part["cause"] == "io")
    };
    let named = late.iter().filter(|sample| device(sample)).count();
    assert!(named * 10 >= late.len() * 9, "{named} of {} name the device", late.len());
}
