//! The flight recorder: windows of events, copied during recording.

use crate::kernel::common::{a_cpu, gettid, named_thread_on, start};
use punctual_core::event::{Event, EventKind, Group, Tid};
use punctual_core::{CpuSet, MonotonicNs};
use punctual_record::{Backend, RecordMode, Request, wire};
use punctual_sys::clock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time: the events of all threads are in the buffer, and one test would overwrite
/// those of another.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn request(backend: Backend) -> Request {
    let mut request = Request::new(&[Group::Syscall], CpuSet::from_cpu(a_cpu()));
    request.backend = backend;
    request.mode = RecordMode::Flight;
    request.buffer = 64 << 10;
    request.syscalls = vec![libc::SYS_getppid as u32, libc::SYS_getuid as u32];
    request
}

fn calls(number: libc::c_long, times: usize) {
    for _ in 0..times {
        // SAFETY: takes nothing, cannot fail.
        unsafe { libc::syscall(number) };
    }
}

fn decoded(records: &[u8]) -> Vec<Event> {
    wire::decode(records).map(Result::unwrap).collect()
}

#[test]
fn a_window_contains_only_events_of_its_interval() {
    let _turn = turn();
    let cpu = a_cpu();
    // Programs look up a CPU's buffer in another way if the requested CPUs have gaps.
    let with_a_gap: CpuSet = [cpu, cpu + 5].into_iter().collect();
    let each = [Backend::Btf, Backend::Tracepoint]
        .map(|backend| [CpuSet::from_cpu(cpu), with_a_gap.clone()].map(|cpus| (backend, cpus)));
    for (backend, cpus) in each.into_iter().flatten() {
        let Some(mut recorder) = start(Request { cpus, ..request(backend) }) else { return };
        let (mut from, mut to, mut tid) = (clock::monotonic_now(), clock::monotonic_now(), Tid(0));
        named_thread_on(cpu, "flyer-1", || {
            tid = gettid();
            // Several passes over the buffer.
            calls(libc::SYS_getppid, 20_000);
            from = clock::monotonic_now();
            calls(libc::SYS_getuid, 50);
            to = clock::monotonic_now();
        });
        let window = recorder.copy_window(cpu as u16, from, to).unwrap();
        let events = decoded(&window.records);
        assert_eq!(window.whole_from, from);
        let within = |event: &&Event| event.tid == tid && event.at >= from && event.at <= to;
        let number = libc::SYS_getuid as u32;
        let enter = events.iter().filter(within).filter(
            |event| matches!(event.what, EventKind::SyscallEnter { number: n, .. } if n == number),
        );
        assert_eq!(enter.count(), 50, "{backend:?}");
        assert!(events.len() < 2000, "only a little more than the window: {}", events.len());
        // Overwritten events are reported as missing.
        let early =
            recorder.copy_window(cpu as u16, MonotonicNs(from.0 - 1_000_000_000), to).unwrap();
        assert!(early.whole_from.0 > from.0 - 1_000_000_000);
        assert!(decoded(&early.records).first().unwrap().at >= early.whole_from);
        assert!(recorder.copy_window(cpu as u16 + 1, from, to).is_none());
        let mut any = false;
        recorder.stop(&mut |_, _| any = true);
        assert!(!any, "nothing is streamed");
    }
}

#[test]
fn windows_are_taken_while_writers_write() {
    let _turn = turn();
    let Some(mut recorder) = start(request(Backend::Btf)) else { return };
    let cpu = a_cpu();
    let (stop, tid) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            named_thread_on(cpu, "flyer-2", || {
                tid.store(gettid().0, Ordering::Relaxed);
                while !stop.load(Ordering::Relaxed) {
                    calls(libc::SYS_getppid, 1000);
                }
            })
        });
        for _ in 0..300 {
            let to = clock::monotonic_now();
            let from = MonotonicNs(to.0 - 100_000_000);
            // Each returned record is complete, or decoding would fail.
            if let Some(window) = recorder.copy_window(cpu as u16, from, to) {
                let events = decoded(&window.records);
                let of_thread = |event: &&Event| event.tid.0 == tid.load(Ordering::Relaxed);
                let its: Vec<Event> = events.iter().filter(of_thread).copied().collect();
                let in_turns = |pair: &[Event]| {
                    !matches!(
                        (&pair[0].what, &pair[1].what),
                        (EventKind::SyscallEnter { .. }, EventKind::SyscallEnter { .. })
                    )
                };
                assert!(its.windows(2).all(in_turns));
                assert!(events.iter().all(
                    |event| event.at.0 > to.0 - 60_000_000_000 && usize::from(event.cpu) == cpu
                ));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
