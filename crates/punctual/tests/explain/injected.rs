//! Causes made by a test, and the required explanations of the samples that they delayed.

#![allow(dead_code)] // each test file uses its share

use crate::common::{Place, is_root, text};
use punctual_core::{CpuSet, MonotonicNs, Nanos, Policy, Priority};
use punctual_host::files::{Files, Root};
use punctual_host::journal::{JournalDirectory, JournalLock, Store};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::clock;
use serde_json::Value;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A CPU reserved among the tests of this and of other processes that disturb CPUs on purpose.
/// `None`: the test is skipped, with a message.
pub struct Arena {
    /// The CPU: never the first, on which the system does its own work.
    pub cpu: usize,
    pub place: Place,
    pub test: String,
    _turn: JournalLock,
}

pub fn arena(test: &str) -> Option<Arena> {
    if !is_root(test) {
        return None;
    }
    let online: CpuSet =
        Root::system().read_trimmed("/sys/devices/system/cpu/online").unwrap().parse().unwrap();
    let Some(cpu) = online.iter().last().filter(|_| online.len() > 1) else {
        println!("SKIPPED: {test} lacks a second CPU");
        return None;
    };
    // The same lock as for tests that change the machine.
    let turns = JournalDirectory::at("/run/punctual-tests");
    let turn = (0..3000).find_map(|_| {
        let turn = turns.lock().expect("a lock under /run");
        if turn.is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        turn
    });
    let turn = turn.expect("a turn within five minutes");
    Some(Arena { cpu, place: Place::with(""), test: test.to_owned(), _turn: turn })
}

impl Arena {
    /// `punctual ARGS… --explain` into `bundle`; `None` if kernel events are unavailable.
    pub fn measure(&self, arguments: &str) -> Option<Output> {
        let all = format!("{arguments} --explain --quiet --output bundle");
        let output = self.place.punctual(&all.split(' ').collect::<Vec<_>>());
        if text(&output).contains("the worst samples cannot be explained here") {
            println!("SKIPPED: {} lacks kernel events: {}", self.test, text(&output).trim());
            return None;
        }
        Some(output)
    }

    /// The same of an experiment.
    pub fn run(&self, experiment: &str) -> Option<Output> {
        self.place.write("experiment.toml", experiment.as_bytes());
        self.measure("run experiment.toml")
    }

    /// The same of a timer on the arena's CPU, at priority 80.
    pub fn timer(&self, more: &str) -> Option<Output> {
        self.measure(&format!("measure timer --cpus {} --priority 80 {more}", self.cpu))
    }

    /// `punctual explain bundle --json ARGS…`
    pub fn explained(&self, arguments: &[&str]) -> Value {
        let output = self.place.punctual(&[&["explain", "bundle", "--json"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_adds_up(&document);
        document
    }
}

/// In any case the parts are contiguous and add up to the latency.
pub fn assert_adds_up(document: &Value) {
    for sample in document["samples"].as_array().unwrap() {
        let mut at = sample["at"].as_i64().unwrap();
        for part in sample["parts"].as_array().unwrap() {
            assert_eq!(part["from"].as_i64(), Some(at), "{sample}");
            at += part["ns"].as_i64().unwrap();
        }
        let latency = at - sample["at"].as_i64().unwrap();
        assert_eq!(latency, sample["latency_ns"].as_i64().unwrap(), "{sample}");
    }
}

/// The number of these samples with the right cause for at least nine tenths of the time without
/// steal, and less than a twentieth unknown.
pub fn right<'s>(
    samples: &[&'s Value],
    is_right: impl Fn(&Value) -> bool,
) -> (usize, Vec<&'s Value>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for sample in samples {
        let latency = sample["latency_ns"].as_i64().unwrap();
        let sum = |wanted: &dyn Fn(&Value) -> bool| -> i64 {
            let parts = sample["parts"].as_array().unwrap().iter();
            parts.filter(|part| wanted(part)).map(|part| part["ns"].as_i64().unwrap()).sum()
        };
        let (blamed, unknown) = (sum(&is_right), sum(&|part| part["cause"] == "unknown"));
        let left = latency - sum(&|part| part["cause"] == "steal" && !is_right(part));
        if blamed * 10 >= left * 9 && unknown * 20 < latency {
            count += 1
        } else {
            wrong.push(*sample)
        }
    }
    (count, wrong)
}

/// Asserts that at least nine tenths of the samples, and at least this many, have the right cause.
pub fn assert_right(samples: &[&Value], at_least: usize, is_right: impl Fn(&Value) -> bool) {
    assert!(
        samples.len() >= at_least,
        "only {} samples were late by what the test did",
        samples.len()
    );
    let (count, wrong) = right(samples, is_right);
    let brief = |sample: &&Value| {
        let parts = sample["parts"].as_array().unwrap().iter();
        let parts: Vec<String> =
            parts.map(|part| format!("{} {} {}", part["ns"], part["cause"], part["who"])).collect();
        format!(
            "{} at {}: {}; {}",
            sample["latency_ns"],
            sample["at"],
            parts.join(", "),
            sample["warnings"]
        )
    };
    let wrong: Vec<String> = wrong.iter().map(brief).collect();
    assert!(
        count * 10 >= samples.len() * 9,
        "{count} of {} are right; these are not:\n{}",
        samples.len(),
        wrong.join("\n")
    );
}

/// A longer pause than this means that others ran; interrupts are shorter.
const AWAY: Nanos = Nanos::from_micros(200);

/// A disturber that is busy until it is stopped, in ms.
pub const ALWAYS: i64 = 3_600_000;

/// A thread of this test that disturbs a CPU.
pub struct Disturber {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(MonotonicNs, MonotonicNs)>>>,
}

impl Disturber {
    /// Starts a thread `name` on this CPU, SCHED_FIFO at `priority` or SCHED_OTHER: busy for so
    /// many ms from each multiple of the sum of both on; with several CPUs at the same instants.
    pub fn start(
        name: &str,
        cpu: usize,
        priority: Option<u8>,
        busy_ms: i64,
        idle_ms: i64,
    ) -> Disturber {
        let (busy, period) = (busy_ms * 1_000_000, (busy_ms + idle_ms) * 1_000_000);
        let stop = Arc::<AtomicBool>::default();
        let its_stop = Arc::clone(&stop);
        let body = move || {
            attributes::set_affinity(0, &CpuSet::single(cpu)).unwrap();
            if let Some(priority) = priority {
                attributes::set_scheduling(
                    0,
                    &Scheduling::new(Policy::Fifo, Priority::new(priority)),
                )
                .unwrap();
            }
            let mut bursts = Vec::new();
            while !its_stop.load(Ordering::Relaxed) {
                if idle_ms > 0 {
                    let now = clock::monotonic().0;
                    std::thread::sleep(Duration::from_nanos((period - now % period) as u64));
                }
                let began = clock::monotonic();
                let (mut from, mut last) = (began, began);
                while last.0 < began.0 + busy && !its_stop.load(Ordering::Relaxed) {
                    let now = clock::monotonic();
                    // The disturber did not have the CPU itself meanwhile.
                    if now - last > AWAY {
                        bursts.push((from, last));
                        from = now;
                    }
                    last = now;
                }
                bursts.push((from, last));
            }
            bursts
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
        Disturber { stop, thread: Some(thread) }
    }

    /// Ends the injector; returns its busy times.
    pub fn stop(mut self) -> Vec<(MonotonicNs, MonotonicNs)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The samples with at least nine tenths of their time in these segments.
pub fn within<'d>(document: &'d Value, stretches: &[(MonotonicNs, MonotonicNs)]) -> Vec<&'d Value> {
    let samples = document["samples"].as_array().unwrap().iter();
    let falls = |sample: &&Value| {
        let (at, latency) =
            (sample["at"].as_i64().unwrap(), sample["latency_ns"].as_i64().unwrap());
        let overlap = |(from, to): &(MonotonicNs, MonotonicNs)| {
            (to.0.min(at + latency) - from.0.max(at)).max(0)
        };
        stretches.iter().map(overlap).sum::<i64>() * 10 >= latency * 9
    };
    let found: Vec<&Value> = samples.filter(falls).collect();
    if found.is_empty() {
        println!("none of these fell into {stretches:?}: {:#}", document["samples"]);
    }
    found
}
