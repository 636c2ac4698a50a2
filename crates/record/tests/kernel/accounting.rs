//! The accounting in the kernel compared with samples by a thread's own clock.

use crate::kernel::common::{bind, gettid, now, sleep_until};
use punctual_core::{CpuSet, MonotonicNs, Nanos};
use punctual_record::Backend;
use punctual_record::account::{AccountRecord, Accountant};
use punctual_sys::attributes;
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
    println!("{:?} {:?}", accountant.measure_cost(), accountant.findings);
    let (report, tid) = sync_channel(1);
    let (go, begin) = sync_channel::<()>(1);
    let sleeper = std::thread::spawn(move || {
        bind(CPU);
        report.send(gettid().0).unwrap();
        begin.recv().unwrap();
        sleep_through(SAMPLES, 500_000)
    });
    let tid = tid.recv().unwrap();
    accountant.watch_thread(tid).unwrap();
    go.send(()).unwrap();
    let samples = sleeper.join().unwrap();
    let mut records: HashMap<i64, AccountRecord> = HashMap::new();
    accountant.drain_records(&mut |record| {
        records.insert(record.begin.0, record);
    });
    let last = accountant.last_record(tid).expect("the last sample has no later one");
    records.insert(last.begin.0, last);
    assert_eq!(accountant.lost_records(), 0);
    let mut found = 0;
    for (due, woke) in &samples {
        // A thread that was not asleep when its timer expired was not woken by it.
        let Some(record) = records.get(due) else { continue };
        assert_eq!(
            record.split_latency(MonotonicNs(*due), MonotonicNs(*woke)).total_time(),
            Nanos(woke - due)
        );
        found += 1;
    }
    println!("{found} of {SAMPLES} samples have a record");
    assert!(found > 0);
}
