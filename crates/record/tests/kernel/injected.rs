//! Causes produced by these tests themselves: most of the late samples must be attributed
//! correctly, and almost none left unattributed.

use crate::accounting::sleep_through;
use crate::common::{bind, gettid, now, set_fifo};
use punctual_core::{CauseKind, CpuSet, MAIN_PARTS, MonotonicNs, Nanos, Split};
use punctual_record::Backend;
use punctual_record::account::{AccountRecord, Accountant};
use punctual_testing::{Excuse, HiddenSamples, Steal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The measured CPU, which the disturbances run on or are sent to.
pub fn cpu() -> usize {
    usize::from(cpus() > 1)
}

fn cpus() -> usize {
    // SAFETY: takes a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as usize }
}

/// An emulated processor is slow.
fn is_emulated() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("QEMU TCG"))
}

fn period() -> Nanos {
    if is_emulated() { Nanos::from_millis(5) } else { Nanos::MILLI }
}

/// One divided sample of a FIFO thread.
pub struct Divided {
    pub due: i64,
    pub split: Split,
}

/// The turn of a test that disturbs [`cpu`]: no other test may measure its disturbance.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Samples of a thread of high priority on [`cpu`] while `disturb` runs until it is stopped.
/// `None`, with a message, if that is impossible.
pub fn measured(
    samples: usize,
    disturb: impl FnOnce(&AtomicBool) + Send,
) -> Option<(Vec<Divided>, Excuse)> {
    let mut accountant =
        match Accountant::start(&CpuSet::from_iter([cpu()]), false, 2_000, Backend::Auto) {
            Ok(accountant) => accountant,
            Err(why) => {
                println!("SKIPPED: {why}");
                return None;
            }
        };
    let _turn = alone();
    let (hidden, steal) = (HiddenSamples::begin(), Steal::begin(cpu()));
    let stop = AtomicBool::new(false);
    let mut records: HashMap<i64, AccountRecord> = HashMap::new();
    let taken = std::thread::scope(|scope| {
        let (shown, tid) = sync_channel(1);
        let (go, begin) = sync_channel::<()>(1);
        let sleeper = scope.spawn(move || {
            bind(cpu());
            shown.send((gettid().0, set_fifo(80))).unwrap();
            begin.recv().unwrap();
            sleep_through(samples, period().ns())
        });
        let (tid, fifo) = tid.recv().unwrap();
        accountant.watch(tid).unwrap();
        let disturbing = scope.spawn(|| disturb(&stop));
        // On the disturbed CPU, this thread might be too late for the records.
        bind(0);
        std::thread::sleep(Duration::from_millis(100));
        go.send(()).unwrap();
        while !sleeper.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            accountant.drain(&mut |record| {
                records.insert(record.begin.0, record);
            });
        }
        stop.store(true, Ordering::Relaxed);
        disturbing.join().unwrap();
        accountant.drain(&mut |record| {
            records.insert(record.begin.0, record);
        });
        let last = accountant.last(tid);
        records.extend(last.map(|last| (last.begin.0, last)));
        let taken = sleeper.join().unwrap();
        if !fifo {
            println!("SKIPPED: may not use SCHED_FIFO");
        }
        fifo.then_some(taken)
    })?;
    let divided = |(due, woke): &(i64, i64)| {
        let split = records.get(due)?.split(MonotonicNs(*due), MonotonicNs(*woke));
        assert_eq!(split.sum(), Nanos(woke - due), "parts add up");
        Some(Divided { due: *due, split })
    };
    let all: Vec<Divided> = taken.iter().filter_map(divided).collect();
    let (hidden, excuse) = (hidden.samples(period().ns()), steal.excuse());
    let shown = format!(
        "{} of {} samples have a record, {hidden} may be without; {} ms of steal",
        all.len(),
        taken.len(),
        excuse.left() / 1_000_000
    );
    println!("{shown}");
    assert!((all.len() + hidden) * 100 >= taken.len() * 90, "{shown}");
    Some((all, excuse))
}

/// The `count` samples with the highest latency.
pub fn latest(mut samples: Vec<Divided>, count: usize) -> Vec<Divided> {
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.split.sum()));
    samples.truncate(count);
    samples
}

/// At least 90 % of the late samples are [`laid_at`] these parts.
pub fn assert_laid_at(late: &[Divided], parts: &[CauseKind], excuse: Excuse) {
    assert!(
        laid_at(late, parts, &[CauseKind::Steal], excuse),
        "late samples are not laid at {parts:?}: {}",
        shown(late)
    );
}

/// Whether at least 90 % of the late samples have one of these parts as their longest, and less
/// than 5 % of their time unknown. Excluded are samples with a foreign longest part, which the test
/// did not cause, and samples that only steal made late, judged by the time outside of these parts;
/// most must be left.
fn laid_at(
    late: &[Divided],
    parts: &[CauseKind],
    foreign: &[CauseKind],
    mut excuse: Excuse,
) -> bool {
    let is_right = |one: &&Divided| one.split.longest().is_some_and(|part| parts.contains(&part));
    let is_known = |one: &&Divided| one.split.of(CauseKind::Unknown) * 20 < one.split.sum();
    let right = late.iter().filter(is_right).count();
    let both = late.iter().filter(is_right).filter(is_known).count();
    let others = |one: &&Divided| {
        one.split.sum().ns() - parts.iter().map(|part| one.split.of(*part).ns()).sum::<i64>()
    };
    let wrong = late.iter().filter(|one| !(is_right(one) && is_known(one)));
    let is_foreign =
        |one: &&Divided| one.split.longest().is_some_and(|part| foreign.contains(&part));
    let others_made = wrong.filter(|one| is_foreign(one) || excuse.covers(others(one))).count();
    println!(
        "{right} of {} late samples, {both} of them with less than 5 % unknown, {others_made} \
         late by others: {}",
        late.len(),
        shown(late)
    );
    let counted = late.len() - others_made;
    both * 10 >= counted * 9 && counted * 2 >= late.len()
}

/// Mean ns of each part.
pub fn shown(samples: &[Divided]) -> String {
    let mean = |part: &CauseKind| {
        samples.iter().map(|one| one.split.of(*part).ns()).sum::<i64>()
            / samples.len().max(1) as i64
    };
    let named: Vec<String> =
        MAIN_PARTS.iter().map(|part| format!("{} {}", part.id(), mean(part))).collect();
    named.join(", ")
}

/// Thousands of timers of [`cpu`] that expire together, each time directly before a sample is due:
/// their handlers run one after the other in one interrupt.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_long_interrupt_handler_is_attributed_to_irq() {
    const TIMERS: usize = 3_000;
    const EVERY: i64 = 40_000_000;
    // SAFETY: the limit is ours and lives through the call.
    unsafe {
        let limit = libc::rlimit { rlim_cur: 8_192, rlim_max: 8_192 };
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    let storms = AtomicU64::new(0);
    let storm = |stop: &AtomicBool| {
        bind(cpu());
        // SAFETY: takes numbers.
        let create = || unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        let timers: Vec<i32> = (0..TIMERS).map(|_| create()).filter(|fd| *fd >= 0).collect();
        while !stop.load(Ordering::Relaxed) {
            let at = now() / EVERY * EVERY + EVERY;
            let expiry = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
            let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let once = libc::itimerspec { it_interval: none, it_value: expiry };
            for timer in &timers {
                // SAFETY: the times live through the call; nothing is given back.
                unsafe {
                    libc::timerfd_settime(
                        *timer,
                        libc::TFD_TIMER_ABSTIME,
                        &once,
                        std::ptr::null_mut(),
                    )
                };
            }
            storms.fetch_add(u64::from(now() < at), Ordering::Relaxed);
            std::thread::sleep(Duration::from_nanos((at - now()).max(0) as u64 + 1_000_000));
        }
        // SAFETY: descriptors of our own, used no more.
        timers.iter().for_each(|timer| unsafe {
            libc::close(*timer);
        });
    };
    let Some((samples, excuse)) = measured(3_000, storm) else { return };
    // A sample was due less than a period after each storm began; the first and the last may be
    // outside.
    let hit: Vec<Divided> =
        samples.into_iter().filter(|one| one.due.rem_euclid(EVERY) < period().ns()).collect();
    let made = storms.load(Ordering::Relaxed) as usize;
    println!("{made} storms, {} samples within a period of one", hit.len());
    let late = latest(hit, made * 7 / 10);
    assert!(!late.is_empty());
    assert_laid_at(&late, &[CauseKind::Irq], excuse);
}

/// A filter that takes some microseconds for each datagram, and lets none through.
fn slow_down(socket: &std::net::UdpSocket) {
    const MULTIPLY: u16 = (libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let work = libc::sock_filter { code: MULTIPLY, jt: 0, jf: 0, k: 3 };
    let mut filter = vec![work; 2_000];
    filter.push(libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: 0 });
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let (size, socket) = (size_of_val(&program) as u32, std::os::fd::AsRawFd::as_raw_fd(socket));
    // SAFETY: the program and its instructions live through the call, and are as long as is said.
    let set = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Datagrams from other CPUs that the kernel receives on [`cpu`] as configured (receive packet
/// steering of the loopback device), in softirqs of hundreds of packets each.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_flood_of_packets_is_attributed_to_softirq() {
    if cpus() < 2 {
        return println!("SKIPPED: the packets come from other CPUs, and there are none");
    }
    const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";
    let Ok(before) = std::fs::read_to_string(STEERING) else {
        return println!("SKIPPED: no {STEERING}");
    };
    if let Err(why) = std::fs::write(STEERING, format!("{:x}", 1 << cpu())) {
        return println!("SKIPPED: {STEERING}: {why}");
    }
    let flood = |stop: &AtomicBool| {
        let sink = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        slow_down(&sink);
        let to = sink.local_addr().unwrap();
        let send = |other| {
            bind(other);
            let from = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _ = from.send_to(&[0; 16], to);
            }
        };
        std::thread::scope(|scope| {
            let send = &send;
            (0..cpus())
                .filter(|other| *other != cpu())
                .for_each(|other| drop(scope.spawn(move || send(other))));
        });
    };
    // The packets arrive as fast as the other CPUs send them: if the host takes those away, the
    // cause disappears too. It must be seen in one of eight attempts, some seconds apart, as such a
    // situation lasts for some.
    let once = |number: u64| {
        std::thread::sleep(Duration::from_secs(number.min(4)));
        let (samples, excuse) = measured(2_000, flood)?;
        // Softirqs are served with interrupts enabled: the host caused a late timer interrupt,
        // which it need not report as steal.
        let foreign = [CauseKind::Steal, CauseKind::TimerIrqDelay];
        Some(laid_at(&latest(samples, 2_000 / 20), &[CauseKind::Softirq], &foreign, excuse))
    };
    let mut tries = (0..8).map(once);
    let made = tries.find(|made| made.is_none_or(|made| made));
    std::fs::write(STEERING, before.trim()).unwrap();
    assert!(made.is_some(), "in none of eight measurements were late samples laid at softirqs");
}

/// The list of all tasks that the kernel writes to its log, repeatedly, requested by a task of low
/// priority on [`cpu`]: a standard kernel does not switch until it is complete, one with PREEMPT_RT
/// does.
#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_section_without_preemption_is_told_and_not_there_with_preempt_rt() {
    if !is_emulated() {
        return println!(
            "SKIPPED: made in guests, where a kernel of each kind runs (guests.rs), because it \
             fills the kernel's log"
        );
    }
    let asked = AtomicU64::new(0);
    let work = |stop: &AtomicBool| {
        bind(cpu());
        while !stop.load(Ordering::Relaxed) {
            std::fs::write("/proc/sysrq-trigger", "t").unwrap();
            asked.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let Some((samples, excuse)) = measured(300, work) else { return };
    let late = latest(samples, asked.load(Ordering::Relaxed) as usize * 2 / 5);
    println!("asked for {} times, {} samples", asked.load(Ordering::Relaxed), late.len());
    assert!(!late.is_empty());
    if std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1") {
        let not_switched =
            late.iter().map(|one| one.split.of(CauseKind::NonPreemptible).ns()).sum::<i64>();
        let all = late.iter().map(|one| one.split.sum().ns()).sum::<i64>();
        println!("preemptible: {}", shown(&late));
        assert!(
            not_switched * 2 < all,
            "{not_switched} of {all} ns with PREEMPT_RT: {}",
            shown(&late)
        );
    } else {
        // A part of that list is written with interrupts disabled: a timer due then is delayed by
        // the same section.
        assert_laid_at(&late, &[CauseKind::NonPreemptible, CauseKind::TimerIrqDelay], excuse);
    }
}
