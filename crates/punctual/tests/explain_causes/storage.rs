//! A task that forces data to a disk, on a journalled file system where another does the same.

use super::case::{Case, judge};
use crate::common::disk::Disk;
use crate::injected::Arena;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn measure(arena: &Arena) -> Option<Value> {
    let disk = Disk::at(arena.place.path())?;
    let stop = Arc::<AtomicBool>::default();
    let (its_stop, other) = (Arc::clone(&stop), Path::new(disk.path()).join("other"));
    let writer = std::thread::spawn(move || {
        let mut file = std::fs::File::create(other).expect("a file");
        while !its_stop.load(Ordering::Relaxed) {
            file.write_all(&[1; 16 << 10]).and_then(|()| file.sync_all()).expect("it is written");
            file.set_len(0).expect("it is emptied");
        }
    });
    let measured = arena.measure(&format!(
        "measure storage --cpus {} -s mode=forced -s forcing=fsync -s directory={} --duration 3s",
        arena.cpu,
        disk.path()
    ));
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("it has written");
    measured.map(|_| serde_json::json!({ "judged": "storage/force" }))
}

pub fn are_the_disks(case: &Case) {
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
