//! A task that forces data to a disk, on a journalled file system where another does the same.

use super::case::{Case, judge};
use serde_json::Value;

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
