//! Unlocked memory: each first touch of a page is a page fault.
//!
//! The program is this file: its own test starts it again, with a variable that selects the role.

use super::case::{Case, judge};
use crate::common::{punctual, text};
use crate::injected::Arena;
use punctual_testpoint::{begin, end};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::process::Stdio;
use std::time::Duration;

const ROLE: &str = "PUNCTUAL_TEST_TOUCHES";
/// The size touched in one go.
const SIZE: usize = 512 << 10;

/// Not a test but the program, if requested.
#[test]
fn the_program_that_touches_memory() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut blocks = Vec::new();
    for round in 0..40u64 {
        let mut block: Vec<u8> = Vec::with_capacity(SIZE);
        begin!("touch", round);
        block.resize(SIZE, 1);
        end!("touch", round);
        blocks.push(block);
        std::thread::sleep(Duration::from_millis(2));
    }
    std::hint::black_box(&blocks);
}

pub fn measure(arena: &Arena) -> Option<Value> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "riscv64")) {
        println!("SKIPPED: {} lacks tracepoints of page faults on this architecture", arena.test);
        return None;
    }
    let place = &arena.place;
    let mut command = punctual();
    command.args(["trace", "--events", "sched,irq,vectors,softirq,syscall,fault,page"]);
    command
        .args(["-q", "--output", "bundle", "--"])
        .arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", "explain_causes::faults::the_program_that_touches_memory"]);
    let points = place.path().join("points");
    std::fs::DirBuilder::new().mode(0o700).create(&points).expect("a directory of points");
    command
        .env(ROLE, "1")
        .env("PUNCTUAL_POINTS_DIR", points)
        .current_dir(place.path())
        .stdin(Stdio::null());
    let traced = command.output().expect("punctual starts");
    assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
    Some(serde_json::json!({}))
}

pub fn are_page_faults(case: &Case) {
    let document = case.json("explain", &["--pair", "touch", "--worst", "40"]);
    let all = document["samples"].as_array().unwrap().iter();
    // CPU time taken by others is not made by this test.
    let own = |sample: &&Value| {
        let foreign = ["preempted", "runqueue", "steal", "throttled"];
        let parts = sample["parts"].as_array().unwrap().iter();
        let foreign = parts.filter(|part| foreign.iter().any(|word| part["cause"] == *word));
        let foreign: i64 = foreign.map(|part| part["ns"].as_i64().unwrap()).sum();
        foreign * 20 < sample["latency_ns"].as_i64().unwrap()
    };
    let late: Vec<&Value> = all.filter(own).collect();
    judge(case, &late, 10, |part| part["cause"] == "page-fault");
}
