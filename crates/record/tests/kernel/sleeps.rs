//! The planned ends of threads' sleeps, for any clock, and the effect of signals on them.

use crate::attach::cycles_of;
use crate::common::{gettid, now, online};
use punctual_core::cycle::{Cycle, WokenBy};
use punctual_record::attach::Attacher;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const MILLI: i64 = 1_000_000;
const SLEEPS: usize = 25;
/// The maximum time from the call in the program to its entry in the kernel, as others may run
/// meanwhile.
const FAR: i64 = 400 * MILLI;

fn time(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

fn sleep(clock: libc::clockid_t, flags: i32, ns: i64) -> i32 {
    // SAFETY: the time lives through the call.
    unsafe { libc::clock_nanosleep(clock, flags, &time(ns), std::ptr::null_mut()) }
}

fn clock_now(clock: libc::clockid_t) -> i64 {
    let mut at = time(0);
    // SAFETY: the kernel writes the time.
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut at) }, 0);
    at.tv_sec * 1_000_000_000 + at.tv_nsec
}

/// Those released by a sleep, all of which are known.
fn known(cycles: &[Cycle]) -> Vec<&Cycle> {
    let sleeps = cycles.iter().filter(|cycle| cycle.by == WokenBy::Sleep).collect::<Vec<_>>();
    assert!(sleeps.len() + 3 >= SLEEPS, "{} of {SLEEPS}: {cycles:#?}", sleeps.len());
    sleeps
}

#[test]
fn a_sleep_for_a_time_ends_so_long_after_its_entry() {
    for clock in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME] {
        let work = |_| (0..SLEEPS).for_each(|_| _ = sleep(clock, 0, MILLI));
        let Some(cycles) = cycles_of(work) else { return };
        for cycle in known(&cycles) {
            let asked = (cycle.release - cycle.entered).ns();
            assert!((MILLI..MILLI + FAR).contains(&asked), "clock {clock}: {cycle:#?}");
            assert!(cycle.returned > cycle.release, "clock {clock}: {cycle:#?}");
        }
    }
}

#[test]
fn absolute_sleeps_on_other_clocks_are_converted_by_their_offset() {
    for clock in [libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME, libc::CLOCK_TAI] {
        let asked = Mutex::new(Vec::new());
        let work = |_| {
            for _ in 0..SLEEPS {
                let (here, there) = (now(), clock_now(clock));
                asked.lock().expect("one at a time").push(here + MILLI);
                sleep(clock, libc::TIMER_ABSTIME, there + MILLI);
            }
        };
        let Some(cycles) = cycles_of(work) else { return };
        let asked = asked.into_inner().expect("it is over");
        for cycle in known(&cycles) {
            let off = asked.iter().map(|at| (cycle.release.ns() - at).abs()).min();
            assert!(off.is_some_and(|off| off < MILLI), "clock {clock}: {off:?}, {cycle:#?}");
        }
    }
}

#[test]
fn releases_of_relative_tai_sleeps_are_unknown_instead_of_zero() {
    let work = |_| (0..SLEEPS).for_each(|_| _ = sleep(libc::CLOCK_TAI, 0, MILLI));
    let Some(cycles) = cycles_of(work) else { return };
    for cycle in &cycles {
        let is_known = cycle.is_release_known();
        assert!(!is_known || (cycle.release - cycle.entered).ns() >= MILLI / 2, "{cycle:#?}");
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// A thread sleeps until periodic instants, and another one sends it signals.
#[test]
fn a_signal_that_ends_a_sleep_is_no_release() {
    let first = AtomicI64::new(0);
    let work = |begin: i64| {
        first.store(begin, Ordering::Relaxed);
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
        let (tid, is_over) = (gettid().0 as i32, AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(300));
                    // SAFETY: the thread lives as long as this scope.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
                }
            });
            for k in 0..SLEEPS as i64 {
                let until = begin + 2 * k * MILLI;
                while sleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, until) == libc::EINTR {}
            }
            is_over.store(true, Ordering::Relaxed);
        });
    };
    let Some(cycles) = cycles_of(work) else { return };
    let first = first.load(Ordering::Relaxed);
    let sleeps = cycles.iter().filter(|cycle| cycle.call.operation == 1).collect::<Vec<_>>();
    assert!(sleeps.len() <= SLEEPS, "{sleeps:#?}");
    for cycle in known(&cycles) {
        assert_eq!((cycle.release.ns() - first) % (2 * MILLI), 0, "{cycle:#?}");
    }
}

/// Sleeps of 60 ms, one after the other.
const SLEEPER: &str = "import ctypes\nc = ctypes.CDLL(None)\nfor _ in range(5): c.usleep(60000)";

/// A stopped process continues its sleep when it is continued: the kernel restarts the call.
#[test]
fn a_sleep_continues_after_a_stop() {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return;
    }
    let Ok(mut child) = Command::new("python3").args(["-c", SLEEPER]).spawn() else {
        println!("SKIPPED: python3");
        return;
    };
    let mut attacher = Attacher::start(&online(), false, true).expect("it starts");
    let pid = child.id();
    attacher.watch_process(pid).expect("it is watched");
    let signal = |signal| {
        // SAFETY: plain numbers; its exit status has not been collected yet.
        unsafe { libc::kill(pid as i32, signal) };
        std::thread::sleep(Duration::from_millis(7));
    };
    for _ in 0..20 {
        signal(libc::SIGSTOP);
        signal(libc::SIGCONT);
    }
    child.wait().expect("it ends");
    let mut cycles = Vec::new();
    attacher.drain(&mut |cycle| cycles.push(cycle));
    println!("{} cycles", cycles.len());
    for cycle in cycles.iter().filter(|cycle| cycle.by == WokenBy::Sleep) {
        let asked = (cycle.release - cycle.entered).ns();
        assert!(asked >= 60 * MILLI, "{cycle:#?}");
    }
}
