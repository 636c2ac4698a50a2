//! `method = "deadline"` held against the kernel's own events of the same samples, in a guest of
//! virtual time, where the thread's timer is watched.

use punctual_lab::{Accel, GuestResult, Job};
use punctual_testing as testing;
use punctual_testing::section;
use serde_json::Value;
use std::path::Path;

/// The resolution of the trace.
const MICROSECOND: i64 = 1_000;

/// The wake-ups of the one SCHED_DEADLINE thread in a trace.
#[derive(Default)]
struct Traced {
    /// From the expiry of its timer to the switch to it, in ns, ascending.
    switched: Vec<i64>,
    /// From that expiry to the start of the timer for the next period, ascending.
    ended: Vec<i64>,
    /// Wake-ups of which the trace has no latency: it ran already when its timer expired.
    without: usize,
}

fn traced(trace: &str) -> Traced {
    let micros = |line: &str| -> Option<i64> {
        let head = line.split(": sched_switch").next()?.split(": hrtimer_start").next()?;
        head.split_whitespace().last()?.replace('.', "").parse().ok()
    };
    let (mut all, mut expiry, mut ran) = (Traced::default(), None::<i64>, None::<i64>);
    for line in trace.lines() {
        let Some(at) = micros(line).map(|micros| micros * MICROSECOND) else { continue };
        if line.contains("function=dl_task_timer") {
            if let (Some(due), Some(switch)) = (expiry, ran.take()) {
                all.switched.push(switch - due);
                // The trace cuts off what is less than a microsecond.
                all.ended.push(at + MICROSECOND - due);
            }
            let next = line.split_once("softexpires=").map(|(_, rest)| rest);
            expiry = next.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        } else if line.contains("prev_prio=-1 prev_state=S") {
            // The thread sleeps until another task wakes it, not this timer.
            (expiry, ran) = (None, None);
        } else if line.contains("next_prio=-1") && expiry.is_some() && ran.is_none() {
            ran = Some(at).filter(|at| Some(*at) >= expiry);
            all.without += usize::from(ran.is_none());
        }
    }
    all.switched.sort_unstable();
    all.ended.sort_unstable();
    assert!(all.switched.len() > 300, "{} releases: {trace:.2000}", all.switched.len());
    all
}

/// punctual's own samples lie within what the events of the same wake-ups allow: it reads the clock
/// after the switch to its thread, and before the timer is started for the next period. So does
/// each place in their order, but for wake-ups that only one of both has: those before the first
/// sample, and those without a latency in the trace.
fn agrees_with_events(result: &GuestResult, load: &str, source: &str) {
    let summary: Value =
        serde_json::from_str(section(result, &format!("punctual-{load}"))).unwrap();
    let phase = &summary["phases"][0];
    let releases = phase["measures"][0]["notes"]["tables"].to_string();
    assert!(releases.contains(source), "{load}: {releases}");
    let series = &phase["series"][0];
    let own = |key: &str| series[key].as_i64().unwrap_or_else(|| panic!("{key}: {series:#}"));
    let events = traced(section(result, &format!("trace-punctual-{load}")));
    let (count, both) = (own("count") as usize, events.switched.len());
    let more = (both + events.without).saturating_sub(count);
    println!("{load}: {count} samples, {both} wake-ups, {} without", events.without);
    assert!((more + events.without) * 20 < count, "{load}: {count} samples of {both} wake-ups");
    let place = |place: usize| {
        let low = place.saturating_sub(events.without + 1);
        (events.switched[low.min(both - 1)], events.ended[(place + more + 1).min(both - 1)])
    };
    for (key, at) in [("min", 0), ("median", count / 2), ("max", count - 1)] {
        let ((low, high), own) = (place(at), own(key));
        println!("{load}, {key}: {own} between {low} and {high}");
        // A median is the middle of its bucket.
        let bucket = own / 64;
        assert!((low - bucket..=high + bucket).contains(&own), "{load}, {key}: {own}");
    }
}

/// Runs punctual idle and loaded.
fn booted() -> Option<GuestResult> {
    let binary = env!("CARGO_BIN_EXE_punctual");
    let mut guest = testing::punctual_guest(binary, "debian:6.1", "", 1)?;
    guest.accel = Accel::VirtualTime;
    let stress_ng = Path::new("/usr/bin/stress-ng");
    guest.programs.extend(stress_ng.exists().then(|| stress_ng.into()));
    guest.job = Job::Script(include_str!("guests/deadline.sh").into());
    let result = testing::run(&guest)?;
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    let failed = result.results.keys().find(|name| name.starts_with("failed-"));
    assert_eq!(failed, None, "{}", testing::story(&result));
    Some(result)
}

#[test]
fn releases_are_those_of_the_threads_timer() {
    let Some(result) = booted() else { return };
    for load in ["idle", "loaded"] {
        if load == "idle" || result.results.contains_key("punctual-loaded") {
            agrees_with_events(&result, load, "timer:hrtimer_start");
        }
    }
}
