//! The flight recorder: windows of what happened, while it goes on.

use crate::common::{a_cpu, named_thread_on, start};
use punctual_core::event::{Event, Group, What};
use punctual_core::{CpuSet, MonotonicNs};
use punctual_record::{Backend, Mode, Request, wire};
use std::sync::atomic::{AtomicBool, Ordering};

/// Of one thread: other tests make system calls meanwhile.
fn request(backend: Backend, thread: &str) -> Request {
    let mut request = Request::new(&[Group::Syscall], CpuSet::single(a_cpu()));
    request.backend = backend;
    request.mode = Mode::Flight;
    request.buffer = 64 << 10;
    request.syscalls = vec![libc::SYS_getppid as u32, libc::SYS_getuid as u32];
    request.comms = vec![thread.to_owned()];
    request
}

fn now() -> MonotonicNs {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid structure to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut at) };
    MonotonicNs(at.tv_sec * 1_000_000_000 + at.tv_nsec)
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
fn a_window_holds_what_happened_in_it_and_no_old_one() {
    for backend in [Backend::Btf, Backend::Tracepoint] {
        let Some(mut recorder) = start(request(backend, "flyer-1")) else { return };
        let cpu = a_cpu();
        let (mut from, mut to) = (now(), now());
        named_thread_on(cpu, "flyer-1", || {
            // Several times round the buffer.
            calls(libc::SYS_getppid, 20_000);
            from = now();
            calls(libc::SYS_getuid, 50);
            to = now();
        });
        let window = recorder.window(cpu as u16, from, to).unwrap();
        let events = decoded(&window.records);
        assert_eq!(window.whole_from, from);
        let within = |event: &&Event| event.at >= from && event.at <= to;
        let enter = events.iter().filter(within).filter(
            |event| matches!(event.what, What::SyscallEnter { number, .. } if i64::from(number) == libc::SYS_getuid),
        );
        assert_eq!(enter.count(), 50, "{backend:?}");
        assert!(events.len() < 2000, "only a little more than the window: {}", events.len());
        // What was overwritten is said to be missing.
        let early = recorder.window(cpu as u16, MonotonicNs(from.0 - 1_000_000_000), to).unwrap();
        assert!(early.whole_from.0 > from.0 - 1_000_000_000);
        assert!(decoded(&early.records).first().unwrap().at >= early.whole_from);
        assert!(recorder.window(cpu as u16 + 1, from, to).is_none());
        let mut any = false;
        recorder.stop(&mut |_, _| any = true);
        assert!(!any, "nothing is streamed");
    }
}

#[test]
fn windows_are_taken_while_writers_write() {
    let Some(mut recorder) = start(request(Backend::Btf, "flyer-2")) else { return };
    let cpu = a_cpu();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            named_thread_on(cpu, "flyer-2", || {
                while !stop.load(Ordering::Relaxed) {
                    calls(libc::SYS_getppid, 1000);
                }
            })
        });
        for _ in 0..300 {
            let to = now();
            let from = MonotonicNs(to.0 - 100_000_000);
            // Each record that is handed over is whole: decoding would tell.
            if let Some(window) = recorder.window(cpu as u16, from, to) {
                let events = decoded(&window.records);
                let in_turns = |pair: &[Event]| {
                    !matches!((&pair[0].what, &pair[1].what), (What::SyscallEnter { .. }, What::SyscallEnter { .. }))
                };
                assert!(events.windows(2).all(in_turns));
                assert!(events.iter().all(|event| event.at.0 > to.0 - 60_000_000_000 && usize::from(event.cpu) == cpu));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
