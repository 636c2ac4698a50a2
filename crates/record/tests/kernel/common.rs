//! Helpers for tests of recorders.

use punctual_core::event::{Event, Tid};
use punctual_core::{CpuSet, Policy, Priority};
use punctual_record::{Recorder, Request, StartError, Stopped};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::{clock, status};
use std::collections::BTreeMap;

pub fn online() -> CpuSet {
    std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap()
}

/// The last CPU that this process may use: others may be in another user's partition.
pub fn a_cpu() -> usize {
    attributes::read_affinity(0).unwrap().iter().last().unwrap()
}

/// A recorder; `None`, with a message, if this machine cannot record.
pub fn start(request: Request) -> Option<Recorder> {
    match Recorder::start(request) {
        Ok(recorder) => Some(recorder),
        Err(why @ StartError::Request(_)) => panic!("{why}"),
        Err(why) => {
            println!("SKIPPED: {why}");
            None
        }
    }
}

/// Records while `work` runs; the events of each CPU are in order.
pub fn record(request: Request, work: impl FnOnce()) -> Option<(Vec<Event>, Stopped)> {
    let mut streams: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let mut sink =
        |cpu: u16, bytes: &[u8]| streams.entry(cpu).or_default().extend_from_slice(bytes);
    let mut recorder = start(request)?;
    work();
    recorder.drain(&mut sink);
    let stopped = recorder.stop(&mut sink);
    let events = streams
        .values()
        .flat_map(|bytes| punctual_record::wire::decode(bytes).map(Result::unwrap))
        .collect();
    Some((events, stopped))
}

pub fn gettid() -> Tid {
    Tid(attributes::thread_id() as u32)
}

/// CLOCK_MONOTONIC, in ns.
pub fn now() -> i64 {
    clock::monotonic_now().0
}

pub fn sleep_until(at: i64) {
    clock::sleep_until(libc::CLOCK_MONOTONIC, at).unwrap();
}

/// Binds the calling thread to this CPU.
pub fn bind(cpu: usize) {
    attributes::set_affinity(0, &CpuSet::from_cpu(cpu)).unwrap();
}

/// Makes the calling thread SCHED_FIFO; returns whether that is permitted.
pub fn set_fifo(priority: u8) -> bool {
    let fifo = Scheduling::new(Policy::Fifo, Priority::new(priority));
    attributes::set_scheduling(0, &fifo).is_ok()
}

/// Voluntary and involuntary switches of this thread.
pub fn switches() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let field = |name: &str| status::find_field(&status, name).unwrap().parse().unwrap();
    (field("voluntary_ctxt_switches"), field("nonvoluntary_ctxt_switches"))
}

/// Runs `work` in a thread with that name on that CPU.
pub fn named_thread_on(cpu: usize, name: &str, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let body = move || {
            bind(cpu);
            work();
        };
        std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body).unwrap();
    });
}
