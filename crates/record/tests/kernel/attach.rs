//! The cycles of threads, timed and divided from the outside.

use crate::common::{bind, gettid, now, online, set_fifo, sleep_until};
use punctual_core::cycle::{Cycle, LockEvidence, WokenBy};
use punctual_core::{CauseKind, Nanos, Policy};
use punctual_record::attach::Attacher;
use punctual_sys::attributes::{self, DeadlineAttributes, Scheduling};
use punctual_sys::futex::{self, FutexScope};
use punctual_sys::signals;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
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
            attacher.drain(&mut |cycle| cycles.push(cycle));
        }
        thread.join().expect("it ends");
    });
    attacher.drain(&mut |cycle| cycles.push(cycle));
    cycles.sort_by_key(|cycle: &Cycle| cycle.again);
    assert_eq!(attacher.lost(), 0);
    for cycle in &cycles {
        assert_eq!(cycle.wake.sum(), cycle.wakeup_latency(), "{cycle:?}");
        assert_eq!(cycle.split().sum(), cycle.response_time(), "{cycle:?}");
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
    let unknown: i64 = timed.iter().map(|cycle| cycle.split().of(CauseKind::Unknown).ns()).sum();
    let whole: i64 = timed.iter().map(|cycle| cycle.response_time().ns()).sum();
    println!("unknown {unknown} of {whole} ns; the first: {:#?}", timed[0]);
    assert!(unknown * 20 < whole, "{unknown} of {whole} ns are unknown");
}

#[test]
fn each_release_that_passed_while_late_has_a_cycle() {
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

/// Takes expiries of a timer with period PERIOD from `first` on, some of them late; returns the
/// index of the first expiry in each call.
fn take_late(mut wait: impl FnMut() -> u64) -> Vec<i64> {
    let (mut taken, mut next) = (Vec::new(), 0);
    for k in 0..60 {
        let count = wait();
        taken.push(next);
        next += count as i64;
        spin(match k % 10 {
            // The next two expiries pass, or only one: the call after it returns at once.
            4 => Nanos(PERIOD * 5 / 2),
            8 => Nanos(PERIOD * 3 / 2),
            _ => Nanos(PERIOD / 10),
        });
    }
    taken
}

/// Every call that took an expiry begins a cycle released by it.
fn assert_each_has_a_cycle(cycles: &[Cycle], first: i64, taken: &[i64]) {
    let timed: Vec<&Cycle> = cycles.iter().filter(|cycle| cycle.by == WokenBy::Timer).collect();
    let releases: Vec<i64> = timed.iter().map(|c| (c.release.ns() - first) / PERIOD).collect();
    assert!(timed.iter().all(|c| (c.release.ns() - first) % PERIOD == 0), "{timed:#?}");
    assert!(releases.is_sorted() && releases.iter().all(|one| taken.contains(one)), "{releases:?}");
    // The last ends with the thread. Events that the kernel did not show are reported as unseen.
    let unseen = cycles.iter().filter(|cycle| cycle.by == WokenBy::Unseen).count();
    assert!(taken.len() <= releases.len() + 1 + unseen, "{releases:?} of {taken:?}");
    assert!(unseen < 10, "{unseen} unseen");
    let passed = timed.iter().filter(|c| c.entered > c.release).count();
    assert!(passed >= 10, "{passed} were released before the thread waited");
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

#[test]
fn each_expiry_of_a_timerfd_before_the_read_has_a_cycle() {
    let (started, (send, taken)) = (AtomicI64::new(0), mpsc::channel());
    let work = |first: i64| {
        started.store(first, Ordering::Relaxed);
        let file = timerfd(first);
        let _ = send.send(take_late(|| read_expiries(file)));
    };
    let Some(cycles) = cycles_of(work) else { return };
    let taken = taken.recv().expect("it ended");
    assert_each_has_a_cycle(&cycles, started.load(Ordering::Relaxed), &taken);
}

/// The number of program runs at this tracepoint while a thread slept repeatedly.
fn runs_at(attacher: &Attacher, tracepoint: &str) -> u64 {
    let sleep = || (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
    let times = attacher.attached().run_times(sleep);
    let times = times.known().expect("the kernel counts");
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
        attacher.drain(&mut |_| ());
        assert_eq!(runs_at(&attacher, "hrtimer_start"), 0);
        go.send(()).expect("it listens");
        thread.join().expect("it ends");
    });
    attacher.drain(&mut |_| ());
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
    attacher.drain(&mut |_| cycles += 1);
    assert!(cycles >= 45, "{cycles} of 50");
}

#[test]
fn each_expiry_of_a_timerfd_before_the_poll_has_a_cycle() {
    let (started, (send, taken)) = (AtomicI64::new(0), mpsc::channel());
    let work = |first: i64| {
        started.store(first, Ordering::Relaxed);
        let file = timerfd(first);
        // SAFETY: the events live through the calls.
        let poll = unsafe {
            let poll = libc::epoll_create1(0);
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            libc::epoll_ctl(poll, libc::EPOLL_CTL_ADD, file, &mut event);
            poll
        };
        let wait = || {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for one event.
            while unsafe { libc::epoll_wait(poll, &mut event, 1, -1) } != 1 {}
            read_expiries(file)
        };
        let _ = send.send(take_late(wait));
    };
    let Some(cycles) = cycles_of(work) else { return };
    let taken = taken.recv().expect("it ended");
    assert_each_has_a_cycle(&cycles, started.load(Ordering::Relaxed), &taken);
}

#[test]
fn each_pending_signal_of_a_posix_timer_has_a_cycle() {
    let (started, (send, taken)) = (AtomicI64::new(0), mpsc::channel());
    let work = |first: i64| {
        started.store(first, Ordering::Relaxed);
        let at =
            |ns: i64| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let times = libc::itimerspec { it_interval: at(PERIOD), it_value: at(first) };
        let set = signals::set_of(&[libc::SIGRTMIN()]);
        signals::block(&set);
        // SAFETY: plain data that is all zero is valid; everything lives through the calls.
        let timer = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGRTMIN();
            event.sigev_notify_thread_id = gettid().0 as i32;
            let mut timer: libc::timer_t = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            libc::timer_settime(timer, libc::TIMER_ABSTIME, &times, std::ptr::null_mut());
            timer
        };
        // SAFETY: the set lives through the call.
        let wait = || unsafe {
            let signal = libc::sigtimedwait(&set, std::ptr::null_mut(), std::ptr::null());
            assert_eq!(signal, libc::SIGRTMIN());
            1 + libc::timer_getoverrun(timer) as u64
        };
        let _ = send.send(take_late(wait));
        // SAFETY: it is ours.
        unsafe { libc::timer_delete(timer) };
    };
    let Some(cycles) = cycles_of(work) else { return };
    let taken = taken.recv().expect("it ended");
    assert_each_has_a_cycle(&cycles, started.load(Ordering::Relaxed), &taken);
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
        |cycle: &&&Cycle| cycle.split().of(CauseKind::Throttled) > Nanos::from_millis(2);
    let late: Vec<_> = periods.iter().filter(throttled).collect();
    assert!(late.len() >= 5, "{periods:#?}");
    // The runtime is replenished once per period, so it ran in two of them.
    assert!(late.iter().all(|cycle| cycle.response_time() > PERIOD), "{late:#?}");
    let unknown: i64 = periods.iter().map(|cycle| cycle.split().of(CauseKind::Unknown).ns()).sum();
    let whole: i64 = periods.iter().map(|cycle| cycle.response_time().ns()).sum();
    assert!(unknown * 20 < whole, "{unknown} of {whole} ns are unknown");
}

/// The sum of the parts over all cycles with a timer of their own.
fn part_of_sleepers(cycles: &[Cycle], part: CauseKind) -> Nanos {
    let timed = cycles.iter().filter(|cycle| cycle.by == WokenBy::Sleep);
    timed.fold(Nanos::ZERO, |sum, cycle| sum + cycle.split().of(part))
}

#[test]
fn direct_reclaim_is_a_separate_part() {
    const RECLAIM: &str = "/sys/devices/system/node/node0/reclaim";
    if !std::path::Path::new(RECLAIM).exists() {
        println!("SKIPPED: {RECLAIM}");
        return;
    }
    let work = |first: i64| {
        for k in 0..30 {
            sleep_until(first + k * PERIOD);
            // The amount that can be reclaimed does not matter.
            let _ = std::fs::write(RECLAIM, "256K");
        }
    };
    let Some(cycles) = cycles_of(work) else { return };
    let reclaim = part_of_sleepers(&cycles, CauseKind::Reclaim);
    let calls = part_of_sleepers(&cycles, CauseKind::SystemCall);
    println!("reclaim {reclaim}, other system calls {calls}");
    assert!(reclaim >= Nanos(30 * 1_000), "{reclaim}");
    let ran = cycles.iter().fold(Nanos::ZERO, |sum, cycle| sum + cycle.reclaimed);
    assert!(ran > Nanos::ZERO && ran <= reclaim + calls, "{ran}");
}

#[test]
fn a_deadline_period_that_began_during_the_previous_cycle_is_a_release() {
    // Shorter than the tick in which the kernel checks the runtime.
    let (runtime, period) = (Nanos::from_micros(1_500), Nanos::from_millis(2));
    let (send, refused) = mpsc::channel();
    let work = |_| {
        if let Err(why) = set_deadline(runtime, period) {
            let _ = send.send(why);
            return;
        }
        for k in 0..400 {
            spin(if k % 4 == 3 { Nanos::from_micros(2_700) } else { Nanos::from_micros(200) });
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
    let passed: Vec<_> = periods.windows(2).filter(|pair| pair[1].timer == 0).collect();
    println!("{} of {} had begun before", passed.len(), periods.len());
    assert!(periods.windows(2).all(|pair| pair[0].release < pair[1].release), "{periods:#?}");
    assert!(passed.iter().all(|pair| pair[1].release <= pair[1].returned), "{passed:#?}");
    // A thread that is more than a period late gets new release times, from within the call on.
    let passed: Vec<_> =
        passed.into_iter().filter(|pair| pair[1].release <= pair[1].entered).collect();
    assert!(passed.len() >= 5, "{cycles:#?}");
    let on_grid = |pair: &&&[&Cycle]| {
        let distance = (pair[1].release - pair[0].release).ns();
        (distance - (distance + period.ns() / 2) / period.ns() * period.ns()).abs() < 100_000
    };
    let fits = passed.iter().filter(on_grid).count();
    assert!(fits * 10 >= passed.len() * 8, "{fits} of {}", passed.len());
}

#[test]
fn the_tracing_cost_is_measured_before_threads_are_watched() {
    if let Some(what) = punctual_record::missing_rights() {
        println!("SKIPPED: {what}");
        return;
    }
    let mut attacher = Attacher::start(&online(), false, true).expect("it starts");
    let cost = attacher.cost();
    println!("{cost:?}");
    let cost = cost.known().expect("this kernel counts run time");
    assert!(cost.per_cycle > Nanos::ZERO && cost.per_call > Nanos::ZERO, "{cost:?}");
    // A sleep takes two ends of a call, a timer, a wake-up and two switches.
    assert!(cost.runs_per_cycle >= 6, "{cost:?}");
    assert!(cost.per_call < cost.per_cycle, "{cost:?}");
    attacher.drain(&mut |cycle| panic!("a cycle of the measurement itself: {cycle:?}"));
}

/// A lock on a futex without an owner: 0 is free, 1 held, 2 contended (futex(2)).
#[derive(Default)]
struct FutexLock([AtomicU32; 4]);

impl FutexLock {
    fn lock(&self) {
        let mut seen = self.0[0].compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        while seen.is_err() {
            if self.0[0].swap(2, Ordering::Acquire) == 0 {
                return;
            }
            let _ = futex::wait(&self.0[0], 2, FutexScope::Shared, None);
            seen = Err(0);
        }
    }

    fn unlock(&self) {
        if self.0[0].swap(0, Ordering::Release) == 2 {
            futex::wake(&self.0[0], 1, FutexScope::Shared).unwrap();
        }
    }
}

#[test]
fn without_a_known_owner_the_waker_is_named_as_lock_holder() {
    let lock = FutexLock::default();
    let over = std::sync::atomic::AtomicBool::new(false);
    let work = |first: i64| {
        std::thread::scope(|scope| {
            let hold = || {
                while !over.load(Ordering::Relaxed) {
                    lock.lock();
                    std::thread::sleep(Duration::from_micros(1_500));
                    lock.unlock();
                    std::thread::sleep(Duration::from_micros(50));
                }
            };
            let holder = std::thread::Builder::new().name("lock-holder".to_owned());
            holder.spawn_scoped(scope, hold).expect("it begins");
            for k in 0..60 {
                sleep_until(first + k * PERIOD);
                lock.lock();
                lock.unlock();
            }
            over.store(true, Ordering::Relaxed);
        });
    };
    let Some(cycles) = cycles_of(work) else { return };
    let held: Vec<_> = cycles.iter().filter_map(|cycle| cycle.holder).collect();
    // Beside busy neighbours the holder is too late for most of them.
    let waited = cycles.iter().filter(|cycle| cycle.wait_is == CauseKind::Lock).count();
    assert!(held.len() >= 5 && held.len() * 10 >= waited * 9, "{cycles:#?}");
    for holder in held {
        let known = (holder.evidence, holder.name.to_string());
        assert_eq!(known, (LockEvidence::Waker, "lock-holder".to_owned()));
        assert!(holder.waits >= 1 && holder.time > Nanos::ZERO, "{holder:?}");
    }
}
