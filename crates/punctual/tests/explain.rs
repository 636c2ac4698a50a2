//! A latency above the threshold ends the run, and its window explains it.

use crate::common::{Place, is_root, text};
use crate::system::last_cpu;
use punctual_core::{CpuSet, Policy, Priority};
use punctual_sys::attributes::{self, Scheduling};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Takes this CPU for 8 ms in 400, at a higher priority than that of the measured thread.
fn hog(cpu: usize, stop: &AtomicBool) {
    attributes::set_affinity(0, &CpuSet::from_cpu(cpu)).unwrap();
    let scheduling = Scheduling::new(Policy::Fifo, Priority::new(90));
    attributes::set_scheduling(0, &scheduling).unwrap();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(8) {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn a_spike_ends_the_run_and_is_there_to_be_explained() {
    if !is_root("a_spike_ends_the_run_and_is_there_to_be_explained") {
        return;
    }
    let (place, cpu, stop) = (Place::with(""), last_cpu(), AtomicBool::new(false));
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| hog(cpu.parse().unwrap(), &stop));
        let limits = "--duration 30s --stop-above 5ms --explain --no-calibration -q -o bundle";
        let ended = place.line(&format!("measure timer --cpus {cpu} --priority 80 {limits}"));
        stop.store(true, Ordering::Relaxed);
        ended
    });
    if text(&ended).contains("the worst samples cannot be explained here") {
        return println!("SKIPPED: explaining lacks kernel events: {}", text(&ended).trim());
    }
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended));
    let explained = place.line("explain bundle --json --worst 1");
    let document: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let spike = &document["samples"][0];
    assert!(spike["latency_ns"].as_i64().unwrap() > 5_000_000, "{document}");
    let worst = place.summary()["phases"][0]["series"][0]["max"].as_i64();
    assert_eq!(spike["latency_ns"].as_i64(), worst, "the one that ended it is the worst");
    // The same for users, and for Perfetto.
    let shown = place.line("explain bundle --worst 1 --perfetto trace.pftrace");
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    assert!(std::fs::metadata(place.path().join("trace.pftrace")).unwrap().len() > 1_000);
}
