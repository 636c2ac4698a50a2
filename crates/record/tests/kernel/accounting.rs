//! The accounting in the kernel compared with samples by a thread's own clock.

use crate::common::{bind, gettid, now, sleep_until};
use punctual_core::{CauseKind, CpuSet, MAIN_PARTS, MonotonicNs, Nanos};
use punctual_record::Backend;
use punctual_record::account::{AccountRecord, Accountant};
use punctual_sys::attributes;
use punctual_testing::HiddenSamples;
use std::collections::HashMap;
use std::sync::mpsc::sync_channel;

/// Due and wake-up times of a thread that sleeps until multiples of `period` ns and skips missed
/// ones.
pub fn sleep_through(samples: usize, period: i64) -> Vec<(i64, i64)> {
    attributes::set_timer_slack(Nanos(1)).unwrap();
    let sleep = |_| {
        let due = (now() / period + 1) * period;
        sleep_until(due);
        (due, now())
    };
    (0..samples).map(sleep).collect()
}

#[test]
fn parts_of_every_accounted_sample_add_up() {
    const CPU: usize = 1;
    const SAMPLES: usize = 400;
    let mut accountant =
        match Accountant::start(&CpuSet::from_iter([CPU]), false, 2_000, Backend::Auto) {
            Ok(accountant) => accountant,
            Err(why) => return println!("SKIPPED: {why}"),
        };
    println!("{:?} {:?}", accountant.cost(), accountant.findings);
    let (report, tid) = sync_channel(1);
    let (go, begin) = sync_channel::<()>(1);
    let sleeper = std::thread::spawn(move || {
        bind(CPU);
        report.send(gettid().0).unwrap();
        begin.recv().unwrap();
        sleep_through(SAMPLES, 500_000)
    });
    let tid = tid.recv().unwrap();
    accountant.watch(tid).unwrap();
    let hidden = HiddenSamples::begin();
    go.send(()).unwrap();
    let samples = sleeper.join().unwrap();
    let hidden = hidden.samples(500_000);
    let mut records: HashMap<i64, AccountRecord> = HashMap::new();
    accountant.drain(&mut |record| {
        records.insert(record.begin.0, record);
    });
    let last = accountant.last(tid).expect("the last sample has no later one");
    records.insert(last.begin.0, last);
    assert_eq!(accountant.lost(), 0);
    let (mut found, mut known) = (0, 0);
    let mut sums: HashMap<&str, i64> = HashMap::new();
    for (due, woke) in &samples {
        let Some(record) = records.get(due) else { continue };
        let split = record.split(MonotonicNs(*due), MonotonicNs(*woke));
        assert_eq!(split.sum(), Nanos(woke - due));
        found += 1;
        known += usize::from(split.of(CauseKind::Unknown) * 20 < split.sum());
        MAIN_PARTS.iter().for_each(|part| {
            *sums.entry(part.id()).or_default() += split.of(*part).ns() / SAMPLES as i64
        });
    }
    println!("{found} of {SAMPLES}, {hidden} may be missing: {sums:?}");
    // A thread that was not asleep when its timer expired was not woken by it.
    assert!(
        (found + hidden) * 100 >= SAMPLES * 95,
        "{found} of {SAMPLES} samples have a record, {hidden} may be without"
    );
    // The time of a thread interrupted where the kernel informs no tracer is unknown for long; most
    // are not.
    assert!(
        (known + hidden) * 100 >= found * 90,
        "{known} of {found} have less than 5 % unknown, {hidden} may be without: {sums:?}"
    );
}
