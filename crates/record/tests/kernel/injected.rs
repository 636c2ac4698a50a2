//! Causes produced by these tests themselves: most of the late samples must be attributed
//! correctly, and almost none left unattributed.

use crate::kernel::accounting::sleep_through;
use crate::kernel::common::{bind, gettid, set_fifo};
use punctual_core::{CauseKind, CpuSet, MAIN_PARTS, MonotonicNs, Nanos, Split};
use punctual_record::Backend;
use punctual_record::account::{AccountRecord, Accountant};
use punctual_testing::{Excuse, HiddenSamples, Steal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// An emulated processor is slow.
const PERIOD: Nanos = Nanos::from_millis(5);

/// The measured CPU, which the disturbances run on or are sent to.
fn cpu() -> usize {
    usize::from(cpus() > 1)
}

fn cpus() -> usize {
    // SAFETY: takes a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as usize }
}

/// One divided sample of a FIFO thread.
struct Divided {
    split: Split,
}

/// Samples of a thread of high priority on [`cpu`] while `disturb` runs until it is stopped.
/// `None`, with a message, if that is impossible.
fn measured(
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
            sleep_through(samples, PERIOD.ns())
        });
        let (tid, fifo) = tid.recv().unwrap();
        accountant.watch_thread(tid).unwrap();
        let disturbing = scope.spawn(|| disturb(&stop));
        // On the disturbed CPU, this thread might be too late for the records.
        bind(0);
        std::thread::sleep(Duration::from_millis(100));
        go.send(()).unwrap();
        while !sleeper.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            accountant.drain_records(&mut |record| {
                records.insert(record.begin.0, record);
            });
        }
        stop.store(true, Ordering::Relaxed);
        disturbing.join().unwrap();
        accountant.drain_records(&mut |record| {
            records.insert(record.begin.0, record);
        });
        let last = accountant.last_record(tid);
        records.extend(last.map(|last| (last.begin.0, last)));
        let taken = sleeper.join().unwrap();
        if !fifo {
            println!("SKIPPED: may not use SCHED_FIFO");
        }
        fifo.then_some(taken)
    })?;
    let divided = |(due, woke): &(i64, i64)| {
        let split = records.get(due)?.split_latency(MonotonicNs(*due), MonotonicNs(*woke));
        assert_eq!(split.total_time(), Nanos(woke - due), "parts add up");
        Some(Divided { split })
    };
    let all: Vec<Divided> = taken.iter().filter_map(divided).collect();
    let (hidden, excuse) = (hidden.samples(PERIOD.ns()), steal.excuse());
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
fn latest(mut samples: Vec<Divided>, count: usize) -> Vec<Divided> {
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.split.total_time()));
    samples.truncate(count);
    samples
}

/// At least 90 % of the late samples are [`laid_at`] these parts.
fn assert_laid_at(late: &[Divided], parts: &[CauseKind], excuse: Excuse) {
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
    let is_right =
        |one: &&Divided| one.split.longest_part().is_some_and(|part| parts.contains(&part));
    let is_known =
        |one: &&Divided| one.split.time_of(CauseKind::Unknown) * 20 < one.split.total_time();
    let right = late.iter().filter(is_right).count();
    let both = late.iter().filter(is_right).filter(is_known).count();
    let others = |one: &&Divided| {
        one.split.total_time().ns()
            - parts.iter().map(|part| one.split.time_of(*part).ns()).sum::<i64>()
    };
    let wrong = late.iter().filter(|one| !(is_right(one) && is_known(one)));
    let is_foreign =
        |one: &&Divided| one.split.longest_part().is_some_and(|part| foreign.contains(&part));
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
fn shown(samples: &[Divided]) -> String {
    let mean = |part: &CauseKind| {
        samples.iter().map(|one| one.split.time_of(*part).ns()).sum::<i64>()
            / samples.len().max(1) as i64
    };
    let named: Vec<String> =
        MAIN_PARTS.iter().map(|part| format!("{} {}", part.id(), mean(part))).collect();
    named.join(", ")
}

/// The list of all tasks that the kernel writes to its log, repeatedly, requested by a task of low
/// priority on [`cpu`]: a standard kernel does not switch until it is complete, one with PREEMPT_RT
/// does. Run in guests of both kinds alone (guests.rs), because it fills the kernel's log.
#[test]
#[ignore = "a part of another test"]
fn a_section_without_preemption_is_told_and_not_there_with_preempt_rt() {
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
            late.iter().map(|one| one.split.time_of(CauseKind::NonPreemptible).ns()).sum::<i64>();
        let all = late.iter().map(|one| one.split.total_time().ns()).sum::<i64>();
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
