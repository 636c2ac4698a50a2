//! Copies the events around a sample from the kernel's buffers.

use super::pending::PendingWindow;
use super::steal::StealClock;
use super::{SampleTask, WatchedSeries};
use punctual_bundle::windows::{KeptRule, WindowHead, WindowLane};
use punctual_core::event::{Event, EventKind, Tid};
use punctual_core::{Clock, CpuSet, MonotonicNs, Nanos, Sample};
use punctual_record::{FlightWindow, Recorder, wire};
use punctual_sys::clock;
use std::collections::BTreeSet;

/// The maximum size of a window over all CPUs, unless one CPU's buffer is larger.
const WINDOW: usize = 4 << 20;
/// The time after the end of a sample that is kept: the ends of activities in progress.
const AFTER: Nanos = Nanos::from_micros(200);
/// `AFTER` for latencies so long that the hypervisor may have taken all CPUs: the activity of the
/// other CPUs when they resumed proves it, and a hypervisor resumes them one by one.
const AFTER_LONG: Nanos = Nanos::from_millis(10);
/// The shortest such latency.
pub(super) const LONG: Nanos = Nanos::MILLI;
/// The number of attempts to read a CPU with active writers.
const ASKS: usize = 5;

/// The events of one CPU around a sample.
struct CpuEventsAround {
    cpu: u16,
    whole_from: MonotonicNs,
    records: Vec<u8>,
    tids: BTreeSet<Tid>,
    /// Whether any of the events concerns the thread.
    concerns: bool,
}

/// Copies a window; `None` if the events of the thread's CPU have been overwritten.
pub(crate) fn capture_window(
    recorder: &mut Recorder,
    cpus: &CpuSet,
    of: &WatchedSeries,
    sample: &Sample,
    rule: &KeptRule,
    steal: &StealClock,
) -> Option<PendingWindow> {
    let (due, woke) = on_monotonic(of.clock, sample)?;
    let sample_cpu = u16::try_from(sample.cpu).ok()?;
    let after = if woke - due >= LONG { AFTER_LONG } else { AFTER };
    let mut cpu_events: Vec<CpuEventsAround> = Vec::new();
    let mut left_out = CpuSet::new();
    let (from, to) = (due + Nanos(-rule.before.ns()), woke);
    let first =
        copy_events(recorder, sample_cpu, (from, to)).filter(|copied| copied.whole_from < woke)?;
    let tid = match of.whose {
        SampleTask::Thread(tid) => tid,
        SampleTask::RunsAtEnd => ran_at(&first.records, woke)?,
    };
    cpu_events.push(events_around(first, sample_cpu, to + after, tid));
    for cpu in cpus.iter().filter(|cpu| *cpu != usize::from(sample_cpu)) {
        match copy_events(recorder, cpu as u16, (from, to)) {
            Some(copied) => cpu_events.push(events_around(copied, cpu as u16, to + after, tid)),
            None => left_out.insert(cpu),
        }
    }
    // First the events of the thread and its waker, then the rest as far as there is room.
    cpu_events[1..]
        .sort_by_key(|around| !(around.concerns || of.cpus.contains(usize::from(around.cpu))));
    let max_bytes = WINDOW.max(rule.buffer.get() as usize);
    let (mut lanes, mut records, mut tids, mut bytes) =
        (Vec::new(), Vec::new(), BTreeSet::from([tid]), 0);
    for around in cpu_events {
        if bytes + around.records.len() > max_bytes && !lanes.is_empty() {
            left_out.insert(usize::from(around.cpu));
            continue;
        }
        bytes += around.records.len();
        lanes.push(WindowLane {
            cpu: around.cpu,
            whole_from: around.whole_from,
            bytes: around.records.len() as u32,
        });
        tids.extend(around.tids);
        records.push(around.records);
    }
    let (phase, series, waited) = (of.phase.clone(), of.series.clone(), of.waited);
    let steal = steal.steal_growth(sample_cpu, due);
    let head = WindowHead {
        phase,
        series,
        sample: *sample,
        due,
        woke,
        tid,
        waited,
        lanes,
        left_out,
        steal,
    };
    Some(PendingWindow { head, records, tids })
}

/// A sample's instants on CLOCK_MONOTONIC; `None` if its clock was set since.
fn on_monotonic(of: Clock, sample: &Sample) -> Option<(MonotonicNs, MonotonicNs)> {
    let clock_lead = match of {
        Clock::Monotonic => 0,
        other => clock::read_clock(other).ns() - clock::monotonic_now().ns(),
    };
    let (due, woke) =
        (MonotonicNs(sample.due.ns() - clock_lead), MonotonicNs(sample.woke.ns() - clock_lead));
    (woke <= clock::monotonic_now() + Nanos::MILLI).then_some((due, woke))
}

fn copy_events(
    recorder: &mut Recorder,
    cpu: u16,
    (from, to): (MonotonicNs, MonotonicNs),
) -> Option<FlightWindow> {
    (0..ASKS).find_map(|_| recorder.copy_window(cpu, from, to))
}

/// The task that ran on a CPU at an instant, by the last event until then, else by the first after
/// it. `None` if there is no event.
fn ran_at(records: &[u8], at: MonotonicNs) -> Option<Tid> {
    let mut ran = None;
    for event in wire::decode(records).flatten() {
        match event.what {
            // Only the task that was switched away from can have had the CPU before.
            _ if event.at > at => return ran.or(Some(event.tid)),
            EventKind::Switch { next, .. } => ran = Some(next),
            _ => ran = Some(event.tid),
        }
    }
    ran
}

fn events_around(window: FlightWindow, cpu: u16, until: MonotonicNs, tid: Tid) -> CpuEventsAround {
    let (mut records, whole_from) = (window.records, window.whole_from);
    let (mut tids, mut concerns, mut end) = (BTreeSet::new(), false, 0);
    let mut events = wire::decode(&records);
    while let Some(event) = events.next() {
        let Ok(event) = event else { continue };
        if event.at > until {
            continue;
        }
        end = events.position();
        for other in threads_in_event(&event) {
            tids.insert(other);
            concerns |= other == tid;
        }
    }
    records.truncate(end);
    records.shrink_to_fit();
    CpuEventsAround { cpu, whole_from, records, tids, concerns }
}

/// The threads in an event.
fn threads_in_event(event: &Event) -> impl Iterator<Item = Tid> {
    let other_tid = match event.what {
        EventKind::Switch { next, .. } => Some(next),
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. }
        | EventKind::PiSetPrio { task, .. }
        | EventKind::Signal { task, .. } => Some(task),
        EventKind::Fork { child } => Some(child),
        _ => None,
    };
    std::iter::once(event.tid).chain(other_tid)
}
