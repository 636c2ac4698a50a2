//! A long non-preemptible section of the kernel: one call that wakes hundreds of threads.

use super::case::{Case, judge, stretches};
use crate::injected::{Arena, within};
use punctual_core::{CpuSet, MonotonicNs};
use punctual_sys::attributes;
use punctual_sys::clock;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const WAITERS: usize = 600;

/// The gate that they wait for: a growing number, and its end.
#[derive(Default)]
struct Gate {
    turn: Mutex<u64>,
    opened: Condvar,
    ends: AtomicBool,
}

fn waits(gate: &Gate) {
    let mut seen = 0;
    while !gate.ends.load(Ordering::Relaxed) {
        let turn = gate.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let waited = gate
            .opened
            .wait_while(turn, |turn| *turn == seen && !gate.ends.load(Ordering::Relaxed));
        seen = *waited.unwrap_or_else(|poisoned| poisoned.into_inner());
    }
}

pub fn measure(arena: &Arena) -> Option<Value> {
    let gate = Arc::<Gate>::default();
    let elsewhere = CpuSet::single(arena.cpu - 1);
    let waiter = |_| {
        let (gate, elsewhere) = (Arc::clone(&gate), elsewhere.clone());
        let body = move || {
            attributes::set_affinity(0, &elsewhere).unwrap();
            waits(&gate);
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(body).expect("a thread")
    };
    let waiters: Vec<_> = (0..WAITERS).map(waiter).collect();
    let (its_gate, cpu) = (Arc::clone(&gate), arena.cpu);
    let body = move || {
        attributes::set_affinity(0, &CpuSet::single(cpu)).unwrap();
        let mut bursts: Vec<(MonotonicNs, MonotonicNs)> = Vec::new();
        while !its_gate.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(40));
            *its_gate.turn.lock().unwrap() += 1;
            let from = clock::monotonic();
            its_gate.opened.notify_all();
            bursts.push((from, clock::monotonic()));
        }
        bursts
    };
    let waker = std::thread::Builder::new().name("wakes-them-all".to_owned()).spawn(body).unwrap();
    let measured = arena.timer("-s period=200us --duration 3s");
    gate.ends.store(true, Ordering::Relaxed);
    let bursts = waker.join().unwrap();
    *gate.turn.lock().unwrap() += 1;
    gate.opened.notify_all();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    measured.map(|_| stretches(&bursts))
}

pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "150us"]);
    let late = within(&document, &case.stretches());
    let causes = ["non-preemptible", "timer-irq-delay"];
    judge(case, &late, 5, |part| {
        causes.iter().any(|cause| part["cause"] == *cause) && part["who"] == "wakes-them-all"
    });
    let named = |sample: &&&Value| {
        sample["parts"].as_array().unwrap().iter().any(|part| part["syscall"] == "futex")
    };
    let count = late.iter().filter(named).count();
    assert!(count * 10 >= late.len() * 9, "{count} of {} name the system call", late.len());
}
