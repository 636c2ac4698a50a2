//! The recorder on the kernel that runs, as root.

use punctual_core::CpuSet;
use punctual_core::event::{Event, Group, TaskState, Tid, What};
use punctual_record::{Recorder, Request, StartError, Stopped};
use std::collections::BTreeMap;

fn online() -> CpuSet {
    std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap()
}

fn start(request: Request) -> Option<Recorder> {
    match Recorder::start(request) {
        Ok(recorder) => Some(recorder),
        Err(why @ StartError::Request(_)) => panic!("{why}"),
        Err(why) => {
            println!("SKIPPED: {why}");
            None
        }
    }
}

/// Records while `work` runs.
fn record(request: Request, work: impl FnOnce()) -> Option<(Vec<Event>, Stopped)> {
    let mut streams: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let mut sink = |cpu: u16, bytes: &[u8]| streams.entry(cpu).or_default().extend_from_slice(bytes);
    let mut recorder = start(request)?;
    work();
    recorder.drain(&mut sink);
    let stopped = recorder.stop(&mut sink);
    let events = streams.values().flat_map(|bytes| punctual_record::wire::decode(bytes).map(Result::unwrap)).collect();
    Some((events, stopped))
}

fn gettid() -> Tid {
    // SAFETY: takes nothing, cannot fail.
    Tid(unsafe { libc::gettid() } as u32)
}

/// Voluntary and involuntary switches of this thread.
fn switches() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap();
    (field("voluntary_ctxt_switches:"), field("nonvoluntary_ctxt_switches:"))
}

#[test]
fn switches_are_those_that_the_kernel_counts() {
    let me = gettid();
    let mut kernel = (0, 0);
    let Some((events, stopped)) = record(Request::new(&[Group::Sched], online()), || {
        let before = switches();
        for _ in 0..500 {
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
        let after = switches();
        kernel = (after.0 - before.0, after.1 - before.1);
    }) else {
        return;
    };
    let mine = |preempted: bool| {
        let switch = |event: &&Event| match event.what {
            What::Switch { prev_state, .. } => event.tid == me && (prev_state == TaskState::Preempted) == preempted,
            _ => false,
        };
        events.iter().filter(switch).count()
    };
    assert_eq!(stopped.recorded.lost(), 0);
    // Starting and stopping switch too, a few times.
    let (voluntary, preempted) = (mine(false), mine(true));
    assert!((kernel.0..kernel.0 + 60).contains(&voluntary), "{voluntary} of {kernel:?}");
    assert!((kernel.1..kernel.1 + 60).contains(&preempted), "{preempted} of {kernel:?}");
    assert_eq!(stopped.recorded.sources.iter().map(|source| source.recorded).sum::<u64>(), events.len() as u64);
    assert!(stopped.names.tasks.contains_key(&me));
}

#[test]
fn system_calls_are_those_that_were_made() {
    let me = gettid();
    let getppid = libc::SYS_getppid as u32;
    let mut request = Request::new(&[Group::Syscall, Group::Futex], online());
    request.syscalls = vec![getppid];
    request.pids = vec![std::process::id()];
    let Some((events, _)) = record(request, || {
        for _ in 0..1000 {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::getppid() };
        }
    }) else {
        return;
    };
    let count =
        |wanted: fn(&What) -> bool| events.iter().filter(|event| event.tid == me && wanted(&event.what)).count();
    assert_eq!(count(|what| matches!(what, What::SyscallEnter { .. })), 1000);
    assert_eq!(count(|what| matches!(what, What::SyscallExit { .. })), 1000);
    assert!(
        events.iter().all(
            |event| !matches!(event.what, What::SyscallEnter { number, .. } if number != libc::SYS_getppid as u32)
        )
    );
}
