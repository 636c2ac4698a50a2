//! What tests of recorders share.

use punctual_core::CpuSet;
use punctual_core::event::{Event, Tid};
use punctual_record::{Recorder, Request, StartError, Stopped};
use std::collections::BTreeMap;

pub fn online() -> CpuSet {
    std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap()
}

/// The last CPU that this process may use: others may be in somebody's partition.
pub fn a_cpu() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().parse::<CpuSet>().unwrap().iter().last().unwrap()
}

/// A recorder; `None`, after saying why, where this machine cannot.
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

/// Records while `work` runs; each CPU's events in their order.
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
    // SAFETY: takes nothing, cannot fail.
    Tid(unsafe { libc::gettid() } as u32)
}

/// Voluntary and involuntary switches of this thread.
pub fn switches() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    (field("voluntary_ctxt_switches:"), field("nonvoluntary_ctxt_switches:"))
}

/// Runs `work` in a thread of that name on that CPU.
pub fn named_thread_on(cpu: usize, name: &str, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let body = move || {
            // SAFETY: a valid set of the size that is said; a set of all zeros is empty.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
            }
            work();
        };
        std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body).unwrap();
    });
}
