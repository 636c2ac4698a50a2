//! The cycles of threads, timed and divided from outside of them.

use crate::common::{gettid, online};
use punctual_core::cycle::{Cycle, WokenBy};
use punctual_core::{MainPart, Nanos};
use punctual_record::attach::Attacher;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The cycles that a thread makes of `work`, which is told when to begin.
fn cycles_of(work: impl FnOnce(i64) + Send) -> Option<Vec<Cycle>> {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return None;
    }
    let mut attacher = Attacher::start(&online(), false).expect("it starts");
    let mut cycles = Vec::new();
    std::thread::scope(|scope| {
        let (send, tid) = mpsc::channel();
        let (go, begin) = mpsc::channel();
        let thread = scope.spawn(move || {
            send.send(gettid().0).expect("somebody listens");
            begin.recv().expect("somebody says so");
            work(now() + 5_000_000);
        });
        attacher.watch_thread(tid.recv().expect("it says")).expect("it is watched");
        go.send(()).expect("it listens");
        thread.join().expect("it ends");
    });
    attacher.drain(&mut |cycle| cycles.push(cycle));
    assert_eq!(attacher.lost(), 0);
    for cycle in &cycles {
        assert_eq!(cycle.wake.sum(), cycle.wakeup_latency(), "{cycle:?}");
        assert_eq!(cycle.split().sum(), cycle.response_time(), "{cycle:?}");
    }
    Some(cycles)
}

fn sleep_until(at: i64) {
    let time = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    // SAFETY: the timespec lives through the call.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        )
    };
}

fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn spin(time: Nanos) {
    let until = now() + time.ns();
    while now() < until {}
}

#[test]
fn an_absolute_sleeper_is_released_when_it_said() {
    const PERIOD: i64 = 2_000_000;
    let started = AtomicI64::new(0);
    let work = |first: i64| {
        started.store(first, Ordering::Relaxed);
        for k in 0..100 {
            sleep_until(first + k * PERIOD);
            spin(Nanos::from_micros(300));
        }
    };
    let Some(cycles) = cycles_of(work) else { return };
    let first = started.load(Ordering::Relaxed);
    let timed: Vec<&Cycle> = cycles.iter().filter(|cycle| cycle.by == WokenBy::Sleep).collect();
    // The last is not over when the thread ends.
    assert!(timed.len() >= 95, "{} of 100", timed.len());
    for cycle in &timed {
        assert_eq!((cycle.release.ns() - first) % PERIOD, 0, "{cycle:?}");
        assert!(cycle.response_time() >= Nanos::from_micros(300), "{cycle:?}");
    }
    let unknown: i64 = timed.iter().map(|cycle| cycle.split().of(MainPart::Unknown).ns()).sum();
    let whole: i64 = timed.iter().map(|cycle| cycle.response_time().ns()).sum();
    println!("unknown {unknown} of {whole} ns; the first: {:#?}", timed[0]);
    assert!(unknown * 20 < whole, "{unknown} of {whole} ns are unknown");
}

#[test]
fn a_release_that_passed_while_late_has_its_own_cycle() {
    const PERIOD: i64 = 2_000_000;
    let started = AtomicI64::new(0);
    let work = |first: i64| {
        started.store(first, Ordering::Relaxed);
        for k in 0..30 {
            sleep_until(first + k * PERIOD);
            if k % 10 == 5 {
                spin(Nanos(PERIOD * 5 / 2));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let Some(cycles) = cycles_of(work) else { return };
    let first = started.load(Ordering::Relaxed);
    let releases: Vec<i64> = cycles
        .iter()
        .filter(|c| (c.release.ns() - first) % PERIOD == 0)
        .map(|c| (c.release.ns() - first) / PERIOD)
        .collect();
    assert_eq!(releases, (0..30).collect::<Vec<_>>());
    let late: Vec<_> = cycles.iter().filter(|c| c.entered > c.release).collect();
    assert!(late.len() >= 6, "{late:?}");
}

#[test]
fn an_event_is_a_release_and_its_waker_is_named() {
    let work = |_| {
        let (send, receive) = mpsc::channel::<u32>();
        let body = move || {
            for k in 0..50 {
                std::thread::sleep(Duration::from_millis(2));
                let _ = send.send(k);
            }
        };
        let sender =
            std::thread::Builder::new().name("sender".to_owned()).spawn(body).expect("it begins");
        receive.iter().for_each(drop);
        sender.join().expect("it ends");
    };
    let Some(cycles) = cycles_of(work) else { return };
    let by_task = cycles
        .iter()
        .filter(|cycle| cycle.by == WokenBy::Task && cycle.waker_name.to_string() == "sender");
    assert!(by_task.count() >= 45, "{cycles:#?}");
}
