//! The cycles of threads, timed and divided from the outside.

use crate::kernel::common::{bind, gettid, now, online, set_fifo, sleep_until};
use punctual_core::cycle::{Cycle, WokenBy};
use punctual_core::{CauseKind, Nanos, Policy};
use punctual_record::attach::Attacher;
use punctual_sys::attributes::{self, DeadlineAttributes, Scheduling};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The period of all releases here, in ns.
const PERIOD: i64 = 2_000_000;

/// The cycles of a thread that runs `work`, which gets its start time.
pub fn cycles_of(work: impl FnOnce(i64) + Send) -> Option<Vec<Cycle>> {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return None;
    }
    let mut attacher = Attacher::start(&online(), false, true).expect("it starts");
    attacher.findings.iter().for_each(|finding| println!("{finding:?}"));
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
        while !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
            attacher.drain_cycles(&mut |cycle| cycles.push(cycle));
        }
        thread.join().expect("it ends");
    });
    attacher.drain_cycles(&mut |cycle| cycles.push(cycle));
    cycles.sort_by_key(|cycle: &Cycle| cycle.again);
    assert_eq!(attacher.lost_cycles(), 0);
    for cycle in &cycles {
        assert_eq!(cycle.wake.total_time(), cycle.wakeup_latency(), "{cycle:?}");
        assert_eq!(cycle.total_split().total_time(), cycle.response_time(), "{cycle:?}");
    }
    Some(cycles)
}

fn spin(time: Nanos) {
    let until = now() + time.ns();
    while now() < until {}
}

#[test]
fn an_absolute_sleeper_is_released_when_it_said() {
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
    // The last one is not over when the thread ends.
    assert!(timed.len() >= 95, "{} of 100", timed.len());
    for cycle in &timed {
        assert_eq!((cycle.release.ns() - first) % PERIOD, 0, "{cycle:?}");
        assert!(cycle.response_time() >= Nanos::from_micros(300), "{cycle:?}");
    }
    let unknown: i64 =
        timed.iter().map(|cycle| cycle.total_split().time_of(CauseKind::Unknown).ns()).sum();
    let whole: i64 = timed.iter().map(|cycle| cycle.response_time().ns()).sum();
    println!("unknown {unknown} of {whole} ns; the first: {:#?}", timed[0]);
    assert!(unknown * 20 < whole, "{unknown} of {whole} ns are unknown");
}

fn timerfd(first: i64) -> i32 {
    let at = |ns: i64| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    let times = libc::itimerspec { it_interval: at(PERIOD), it_value: at(first) };
    // SAFETY: the times live through the call.
    unsafe {
        let file = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        libc::timerfd_settime(file, libc::TFD_TIMER_ABSTIME, &times, std::ptr::null_mut());
        file
    }
}

fn read_expiries(file: i32) -> u64 {
    let mut count = 0u64;
    // SAFETY: the kernel writes 8 bytes.
    let read = unsafe { libc::read(file, (&raw mut count).cast(), 8) };
    assert_eq!(read, 8);
    count
}

/// Whatever the clock, and although nobody saw the start of its timer.
#[test]
fn a_sleep_for_a_time_ends_so_long_after_its_entry() {
    const ASKED: i64 = 1_000_000;
    /// From the call in the program to its entry in the kernel, as others may run meanwhile.
    const FAR: i64 = 400_000_000;
    for clock in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME] {
        let sleep = || {
            let time = libc::timespec { tv_sec: 0, tv_nsec: ASKED };
            // SAFETY: the time lives through the call.
            unsafe { libc::clock_nanosleep(clock, 0, &time, std::ptr::null_mut()) }
        };
        let Some(cycles) = cycles_of(|_| (0..25).for_each(|_| _ = sleep())) else { return };
        let slept: Vec<_> = cycles.iter().filter(|cycle| cycle.by == WokenBy::Sleep).collect();
        assert!(slept.len() >= 22, "clock {clock}: {cycles:#?}");
        for cycle in slept {
            let asked = (cycle.release - cycle.entered).ns();
            assert!((ASKED..ASKED + FAR).contains(&asked), "clock {clock}: {cycle:#?}");
            assert!(cycle.returned > cycle.release, "clock {clock}: {cycle:#?}");
        }
    }
}

/// The number of program runs at this tracepoint while a thread slept repeatedly.
fn runs_at(attacher: &Attacher, tracepoint: &str) -> u64 {
    let sleep = || (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
    let times = attacher.attached_programs().run_times(sleep);
    let times = times.known_value().expect("the kernel counts");
    times.iter().filter(|one| one.tracepoint == tracepoint).map(|one| one.runs).sum()
}

/// Each exit from idle starts a timer, which delays the work that the CPU wakes up for.
#[test]
fn started_timers_are_looked_at_where_timers_release_threads() {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return;
    }
    let mut attacher = Attacher::start(&online(), false, true).expect("it starts");
    let ((send, tid), (go, begin)) = (mpsc::channel(), mpsc::channel::<()>());
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            send.send(gettid().0).expect("somebody listens");
            begin.recv().expect("somebody says so");
            (0..300).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
            send.send(gettid().0).expect("somebody listens");
            begin.recv().expect("somebody says so");
            let file = timerfd(now() + PERIOD);
            (0..10).for_each(|_| _ = read_expiries(file));
        });
        attacher.watch_thread(tid.recv().expect("it says")).expect("it is watched");
        assert!(runs_at(&attacher, "hrtimer_start") > 0);
        go.send(()).expect("it listens");
        tid.recv().expect("it has slept");
        attacher.drain_cycles(&mut |_| ());
        assert_eq!(runs_at(&attacher, "hrtimer_start"), 0);
        go.send(()).expect("it listens");
        thread.join().expect("it ends");
    });
    attacher.drain_cycles(&mut |_| ());
    assert!(runs_at(&attacher, "hrtimer_start") > 0);
}

#[test]
fn a_thread_that_runs_already_when_it_is_watched_has_its_cycles() {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return;
    }
    let mut attacher = Attacher::start(&online(), false, true).expect("it starts");
    let (is_watched, (send, tid)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // No other task takes its CPU: no switch shows it.
            bind(online().iter().last().expect("this runs"));
            let is_fifo = set_fifo(80);
            send.send(gettid().0).expect("somebody listens");
            while !is_watched.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            // These do not sleep.
            (0..50).for_each(|_| sleep_until(now() - PERIOD));
            is_fifo
        });
        attacher.watch_thread(tid.recv().expect("it says")).expect("it is watched");
        is_watched.store(true, Ordering::Relaxed);
        println!("SCHED_FIFO: {}", thread.join().expect("it ends"));
    });
    let mut cycles = 0;
    attacher.drain_cycles(&mut |_| cycles += 1);
    assert!(cycles >= 45, "{cycles} of 50");
}

/// The calling thread becomes one of SCHED_DEADLINE.
fn set_deadline(runtime: Nanos, period: Nanos) -> std::io::Result<()> {
    let deadline = Some(DeadlineAttributes { runtime, deadline: period, period });
    attributes::set_scheduling(
        0,
        &Scheduling { deadline, ..Scheduling::new(Policy::Deadline, None) },
    )
}

#[test]
fn a_period_of_a_deadline_thread_is_a_release_and_its_runtime_ends_throttled() {
    // The kernel checks the runtime in its tick, some ms apart.
    const PERIOD: Nanos = Nanos::from_millis(40);
    let (send, refused) = mpsc::channel();
    let work = |_| {
        if let Err(why) = set_deadline(Nanos::from_millis(10), PERIOD) {
            let _ = send.send(why);
            return;
        }
        for k in 0..60 {
            spin(match k % 10 {
                // More than its runtime: it is throttled until the next period begins.
                4 => Nanos::from_millis(25),
                _ => Nanos::from_micros(300),
            });
            // SAFETY: takes nothing.
            unsafe { libc::sched_yield() };
        }
    };
    let Some(cycles) = cycles_of(work) else { return };
    if let Ok(why) = refused.try_recv() {
        println!("SKIPPED: SCHED_DEADLINE: {why}");
        return;
    }
    let periods: Vec<&Cycle> = cycles.iter().filter(|c| c.by == WokenBy::Period).collect();
    // The first job begins without a period's timer, the last ends with the thread.
    assert!(periods.len() >= 55, "{} of 60: {cycles:#?}", periods.len());
    let unseen = cycles.iter().filter(|c| c.by == WokenBy::Unseen).count();
    assert!(unseen < 3, "{cycles:#?}");
    let distances: Vec<i64> =
        periods.windows(2).map(|pair| (pair[1].release - pair[0].release).ns()).collect();
    // The kernel sets its timer by another clock, which it reads each time.
    let near =
        |ns: &&i64| (**ns - (**ns + PERIOD.ns() / 2) / PERIOD.ns() * PERIOD.ns()).abs() < 200_000;
    assert!(distances.iter().filter(near).count() >= 50, "{distances:?}");
    let throttled =
        |cycle: &&&Cycle| cycle.total_split().time_of(CauseKind::Throttled) > Nanos::from_millis(2);
    let late: Vec<_> = periods.iter().filter(throttled).collect();
    assert!(late.len() >= 5, "{periods:#?}");
    // The runtime is replenished once per period, so it ran in two of them.
    assert!(late.iter().all(|cycle| cycle.response_time() > PERIOD), "{late:#?}");
    let unknown: i64 =
        periods.iter().map(|cycle| cycle.total_split().time_of(CauseKind::Unknown).ns()).sum();
    let whole: i64 = periods.iter().map(|cycle| cycle.response_time().ns()).sum();
    assert!(unknown * 20 < whole, "{unknown} of {whole} ns are unknown");
}
