//! The accounting without the kernel's types beside the one that has them: both divide the same
//! samples at the same time.

use crate::accounting::sleep_through;
use crate::common::{bind, gettid, now, set_fifo};
use crate::injected::{alone, cpu};
use punctual_core::{CauseKind, CpuSet, MAIN_PARTS, MonotonicNs, Nanos};
use punctual_record::Backend;
use punctual_record::account::{AccountRecord, Accountant};
use punctual_sys::clock;
use punctual_testing::{HiddenSamples, Steal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

const SAMPLES: usize = 1_500;
const BURST: i64 = 2_000_000;

type Records = HashMap<i64, AccountRecord>;
/// Start and end.
type Spans = Vec<(i64, i64)>;

/// A task of higher priority that takes the CPU for [`BURST`] repeatedly; returns its times on the
/// CPU.
fn hog(stop: &AtomicBool) -> Vec<(i64, i64)> {
    bind(cpu());
    set_fifo(90);
    let mut bursts = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let from = now();
        while now() < from + BURST {}
        bursts.push((from, now()));
        std::thread::sleep(Duration::from_millis(21));
    }
    bursts
}

fn started(backend: Backend) -> Option<Accountant> {
    let accountant = Accountant::start(&CpuSet::from_iter([cpu()]), false, 2_000, backend);
    accountant.map_err(|why| println!("SKIPPED: {why}")).ok()
}

fn drain(accountants: &mut [Accountant], records: &mut [Records]) {
    for (accountant, records) in accountants.iter_mut().zip(records) {
        accountant.drain(&mut |record| {
            records.insert(record.begin.0, record);
        });
    }
}

/// The accounts of the samples of one thread, the samples, and the times of the hog.
fn together(
    accountants: &mut [Accountant],
    sleep: impl FnOnce() -> Vec<(i64, i64)> + Send,
) -> (Vec<Records>, Spans, Spans) {
    let _turn = alone();
    let mut records = vec![Records::new(); accountants.len()];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (report, tid) = sync_channel(1);
        let (go, begin) = sync_channel::<()>(1);
        let sleeper = scope.spawn(move || {
            bind(cpu());
            set_fifo(80);
            report.send(gettid().0).unwrap();
            begin.recv().unwrap();
            sleep()
        });
        let tid = tid.recv().unwrap();
        accountants.iter_mut().for_each(|accountant| accountant.watch(tid).unwrap());
        let hog = scope.spawn(|| hog(&stop));
        go.send(()).unwrap();
        while !sleeper.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            drain(accountants, &mut records);
        }
        stop.store(true, Ordering::Relaxed);
        drain(accountants, &mut records);
        for (accountant, records) in accountants.iter_mut().zip(&mut records) {
            records.extend(accountant.last(tid).map(|last| (last.begin.0, last)));
            assert_eq!(accountant.lost(), 0);
        }
        (records, sleeper.join().unwrap(), hog.join().unwrap())
    })
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn accounting_without_btf_agrees_with_accounting_by_btf() {
    let (Some(typed), Some(untyped)) = (started(Backend::Btf), started(Backend::Tracepoint)) else {
        return;
    };
    assert_ne!(typed.backend(), untyped.backend());
    assert_eq!(typed.findings, untyped.findings, "they find the same tracepoints");
    let (hidden, steal) = (HiddenSamples::begin(), Steal::begin(cpu()));
    let (records, samples, bursts) =
        together(&mut [typed, untyped], || sleep_through(SAMPLES, 1_000_000));
    let (hidden, mut excuse) = (hidden.samples(1_000_000), steal.excuse());
    let stolen = excuse.left();
    let (mut both, mut alike, mut alone, mut hit, mut blamed) = (0, 0, [0, 0], 0, 0);
    for (due, woke) in &samples {
        let (typed, untyped) = match (records[0].get(due), records[1].get(due)) {
            (Some(typed), Some(untyped)) => (typed, untyped),
            (typed, untyped) => {
                alone[0] += usize::from(typed.is_some());
                alone[1] += usize::from(untyped.is_some());
                continue;
            }
        };
        let (due, woke) = (MonotonicNs(*due), MonotonicNs(*woke));
        let latency = woke - due;
        let splits = [typed, untyped].map(|record| record.split(due, woke));
        splits.iter().for_each(|split| assert_eq!(split.sum(), latency));
        both += 1;
        // The programs run one after the other, so each part differs by their run time, and by
        // steal in between.
        let apart = |part: &CauseKind| {
            let [one, other] = splits.map(|split| split.of(*part).ns());
            (one - other).abs()
        };
        let apart = MAIN_PARTS.iter().map(apart).max().unwrap_or(0);
        alike += usize::from(
            apart * 10 <= latency.max(Nanos::from_micros(50)).ns() || excuse.covers(apart),
        );
        let overlap: i64 =
            bursts.iter().map(|(from, to)| ((*to).min(woke.0) - (*from).max(due.0)).max(0)).sum();
        if overlap * 10 >= latency.ns() * 9 {
            hit += 1;
            let split = &splits[1];
            let is_known = split.of(CauseKind::Unknown) * 20 < latency;
            let is_blamed = split.of(CauseKind::Preempted) * 10 >= latency * 9 && is_known;
            blamed += usize::from(
                is_blamed || excuse.covers((latency - split.of(CauseKind::Preempted)).ns()),
            );
        }
    }
    let report = format!(
        "{both} of {SAMPLES} samples are told by both and {hidden} may be told by none, {alone:?} \
         by one alone; {alike} are told alike; without types {blamed} of the hog's {hit} are laid \
         at its door; {} ms of {} ms of steal are no excuse",
        excuse.left() / 1_000_000,
        stolen / 1_000_000
    );
    println!("{report}");
    assert!((both + hidden) * 100 >= SAMPLES * 90, "{report}");
    assert!(alike * 100 >= both * 90, "{report}");
    assert!(hit >= 10 && blamed * 10 >= hit * 9, "{report}");
}

/// Sleeps of 1 ms until instants of CLOCK_REALTIME.
fn sleep_by_the_wall() {
    for _ in 0..300 {
        let due = clock::read(libc::CLOCK_REALTIME) + 1_000_000;
        clock::sleep_until(libc::CLOCK_REALTIME, due).unwrap();
    }
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn without_btf_timers_of_other_clocks_are_converted_to_monotonic() {
    let (Some(typed), Some(untyped)) = (started(Backend::Btf), started(Backend::Tracepoint)) else {
        return;
    };
    let hidden = HiddenSamples::begin();
    let (records, ..) = together(&mut [typed, untyped], || {
        sleep_by_the_wall();
        Vec::new()
    });
    // User space reads two clocks for it in sequence.
    const CLOCK_ERROR: i64 = 3_000;
    let found = records[0]
        .keys()
        .filter(|due| records[1].keys().any(|other| (*due - other).abs() <= CLOCK_ERROR))
        .count();
    println!("{found} of {} timers of CLOCK_REALTIME are told without types", records[0].len());
    assert!(
        records[0].len() + hidden.samples(1_000_000) >= 250 && found * 100 >= records[0].len() * 90,
        "{found} of {}",
        records[0].len()
    );
}
