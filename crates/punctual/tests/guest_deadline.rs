//! `method = "deadline"` held against cyclicdeadline (Debian's rt-tests) and against the kernel's
//! own events, in a guest of virtual time, where the thread's timer is watched.

use punctual_lab::{Accel, GuestResult, Job};
use punctual_testing as testing;
use punctual_testing::section;
use serde_json::Value;
use std::path::Path;

/// From the switch to the thread to its reading of the clock: the way out of the kernel, in
/// virtual ns.
const WAY_OUT: i64 = 20_000;
/// An interrupt with its softirqs on that way: one sample in a second meets one, loaded or not.
const INTERRUPT: i64 = 100_000;
/// The resolution of the trace and of cyclicdeadline.
const MICROSECOND: i64 = 1_000;

/// The latencies of the one SCHED_DEADLINE thread of a trace, in ns, sorted: from the expiry of its
/// timer to the switch to it.
fn traced(trace: &str) -> Vec<i64> {
    let after = |line: &str, key: &str| -> Option<i64> {
        line.split_once(key)?.1.split_whitespace().next()?.parse().ok()
    };
    let mut expiry = None;
    let mut all = Vec::new();
    for line in trace.lines() {
        if line.contains("function=dl_task_timer") {
            expiry = after(line, "softexpires=");
        } else if line.contains("prev_prio=-1 prev_state=S") {
            // It sleeps: until it is woken by somebody, not by this timer.
            expiry = None;
        } else if line.contains(" sched_switch: ") && line.contains("next_prio=-1") {
            let stamp =
                line.split(": sched_switch").next().and_then(|head| head.split_whitespace().last());
            let micros = stamp.and_then(|stamp| stamp.replace('.', "").parse::<i64>().ok());
            let latency = micros.zip(expiry).map(|(micros, expiry)| micros * MICROSECOND - expiry);
            // Switched to before its timer expired: it had been preempted.
            if let Some(latency) = latency.filter(|latency| *latency >= 0) {
                all.push(latency);
                expiry = None;
            }
        }
    }
    all.sort_unstable();
    all
}

struct Figures {
    min: i64,
    median: i64,
    mean: i64,
    p99: i64,
    max: i64,
}

fn figures_of(trace: &str) -> Figures {
    let all = traced(trace);
    assert!(all.len() > 300, "{} releases: {}", all.len(), &trace[..trace.len().min(2_000)]);
    Figures {
        min: all[0],
        median: all[all.len() / 2],
        mean: all.iter().sum::<i64>() / all.len() as i64,
        p99: all[all.len() * 99 / 100],
        max: all[all.len() - 1],
    }
}

/// What punctual says of its own samples, and what the events say of the same ones.
fn agrees_with_events(result: &GuestResult, load: &str, source: &str) {
    let summary: Value =
        serde_json::from_str(section(result, &format!("punctual-{load}"))).unwrap();
    let phase = &summary["phases"][0];
    let releases = phase["measures"][0]["notes"]["tables"].to_string();
    assert!(releases.contains(source), "{load}: {releases}");
    let own = |key: &str| phase["series"][0][key].as_i64().unwrap();
    let (min, median, max) = (own("min"), own("median"), own("max"));
    let events = figures_of(section(result, &format!("trace-punctual-{load}")));
    println!("{load}, punctual: {min} {median} {max}");
    println!("{load}, its events: {} {} {}", events.min, events.median, events.max);
    for (own, events) in [(min, events.min), (median, events.median)] {
        let out = own - events;
        assert!(
            (-MICROSECOND..WAY_OUT).contains(&out),
            "{load}: {own} by punctual, {events} by the events"
        );
    }
    // The events have the periods before the first sample, too: the longest may be one of those.
    let expected = events.p99 - MICROSECOND..events.max + WAY_OUT + INTERRUPT;
    assert!(expected.contains(&max), "{load}: {max} by punctual, {expected:?} by the events");
}

/// cyclicdeadline counts from its own first wake-up, so that only what its figures have above its
/// least can be held against the events; the wake-ups are the same as punctual's.
fn cyclicdeadline_agrees(result: &GuestResult, load: &str) {
    let json: Value = serde_json::from_str(section(result, &format!("json-{load}"))).unwrap();
    let own = |key: &str| json["thread"]["0"][key].as_f64().unwrap();
    let events = figures_of(section(result, &format!("trace-cyclicdeadline-{load}")));
    println!("{load}, cyclicdeadline: {} {} {}", own("min"), own("avg"), own("max"));
    println!("{load}, its events: {} {} {}", events.min, events.median, events.max);
    if load == "idle" {
        let ours = figures_of(section(result, "trace-punctual-idle"));
        assert!(
            (ours.median - events.median).abs() < WAY_OUT,
            "{} and {}",
            ours.median,
            events.median
        );
        // On some timelines it prints a mean below its least: nothing can be held against that.
        if !(own("min")..=own("max")).contains(&own("avg")) {
            return println!("{load}: cyclicdeadline contradicts itself: {json:#}");
        }
        let above_least = |key: &str| ((own(key) - own("min")) * MICROSECOND as f64) as i64;
        let mean = above_least("avg") - (events.mean - events.min);
        assert!(mean.abs() < WAY_OUT, "{json:#}");
        let range = above_least("max") - (events.max - events.min);
        assert!((-WAY_OUT..WAY_OUT + INTERRUPT).contains(&range), "{json:#}");
    }
}

fn holds(kernel: &str, source: &str) {
    let program = Path::new("/usr/bin/cyclicdeadline");
    if !program.exists() {
        return println!("SKIPPED: lacks {} (Debian package rt-tests)", program.display());
    }
    let Some(mut guest) = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), kernel, "", 1)
    else {
        return;
    };
    guest.accel = Accel::VirtualTime;
    guest.programs.push(program.into());
    let stress = Path::new("/usr/bin/stress-ng");
    guest.programs.extend(stress.exists().then(|| stress.into()));
    guest.job = Job::Script(include_str!("guests/deadline.sh").into());
    let Some(result) = testing::run(&guest) else { return };
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    let failed = |name: &str| {
        let code = result.results.get(&format!("failed-{name}"))?;
        let said = section(&result, &format!("said-{name}"));
        Some(format!("{name} ended with {}{said}", String::from_utf8_lossy(code)))
    };
    for load in ["idle", "loaded"] {
        if load == "idle" || stress.exists() {
            assert_eq!(failed(&format!("punctual-{load}")), None);
            agrees_with_events(&result, load, source);
            match failed(&format!("cyclicdeadline-{load}")) {
                Some(why) => println!("nothing to hold punctual against: {why}"),
                None => cyclicdeadline_agrees(&result, load),
            }
        }
    }
}

#[test]
fn releases_are_those_of_the_threads_timer() {
    holds("debian:6.1", "timer:hrtimer_start");
}
