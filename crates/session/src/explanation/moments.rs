//! The moments that a trace is about, where nothing is measured in it: named by the user, marked by
//! the trace itself, or its longest wake-ups.

use super::recording::EventsAround;
use super::request::Wanted;
use crate::exit::Failure;
use crate::playback::{self, OpenedRecording};
use punctual_bundle::Bundle;
use punctual_core::event::{Group, MomentSource, TraceMoment};
use punctual_core::{
    CpuSet, Event, EventKind, Finding, MAX_RT_PRIO, MonotonicNs, Nanos, Severity, Tid,
};
use punctual_explain::explain::{LatencyInterval, StartKind};
use punctual_explain::moments::{MomentFilter, WakeUps, anchor_to_timer, explain_stated};
use punctual_explain::{Explained, Explanations};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The phase of a bundle that a trace was made into.
pub(crate) const TRACE_PHASE: &str = "trace";
/// Moments that are explained unless a number is asked for.
const DEFAULT_MOMENTS: usize = 20;
/// Threads that are listed where none has the name that is asked for.
const LISTED_THREADS: usize = 20;
/// Threads that are counted for that.
const THREADS: usize = 1 << 16;
/// This long before the end of a marked sample the start of its timer is looked for.
const TIMER_BEFORE: Nanos = Nanos::from_secs(2);
/// The events around a moment that reach this far beyond it are shown.
const BEFORE: Nanos = Nanos::from_millis(2);

/// Explains the moments of a trace that come before its cycles, or instead of them;
/// `has_samples`: cycles were found. `None` where these, or intervals, are to be explained.
pub(crate) fn explain_moments(
    bundle: &Bundle,
    wanted: &Wanted,
    has_samples: bool,
) -> Result<Option<Explanations>, Failure> {
    let Some(opened) = playback::open_recording(bundle) else { return Ok(None) };
    let threads = requested_threads(bundle, wanted)?;
    let names = opened.names();
    let marked = &opened.recorded.moments;
    let has_intervals = !names.points.is_empty() || !names.functions.is_empty();
    let is_named = wanted.at.is_some();
    if !is_named && marked.is_empty() && (has_samples || has_intervals) {
        return Ok(None);
    }
    let time_range = wanted.at.map(|at| (at.from, at.to));
    let filter = MomentFilter { threads, within: time_range, min_latency: wanted.min_latency };
    let mut wakeups = WakeUps::new(filter.clone());
    if opened.recorded.has_group(Group::Sched) {
        opened.events().for_each(|event| wakeups.push(&event));
    }
    let (wakeups, count) = wakeups.finish();
    let mut chosen: Vec<TraceMoment> =
        marked.iter().filter(|one| filter.is_wanted(one)).cloned().collect();
    chosen.sort_by_key(|moment| (moment.source, Reverse(moment.duration())));
    if let Some((at, thread)) = wanted.at.filter(|at| at.is_range).zip(only_thread(&filter)) {
        let named = TraceMoment::from_end(MomentSource::Named, at.to, at.to - at.from, thread);
        chosen.insert(0, named);
    }
    let mut other_contents = Vec::new();
    let longest = wakeups.iter().map(TraceMoment::duration).max();
    if chosen.is_empty() {
        if has_samples && !is_named {
            return Ok(None);
        }
        chosen = wakeups;
    } else {
        other_contents.extend(longest.map(|longest| format_wakeups(count, longest)));
    }
    if has_samples {
        let series = bundle.all_series().map(|(_, series)| series.meta.name.as_str());
        other_contents.push(format!("the series {}", series.collect::<Vec<_>>().join(", ")));
    }
    let Some(first) = chosen.first() else { return none_found(wanted) };
    let (source, all) = (first.source, chosen.len());
    chosen.truncate(wanted.worst.unwrap_or(DEFAULT_MOMENTS));
    let mut message =
        format!("explained: {} of {all} moments, {}", chosen.len(), source.found_by());
    if source == MomentSource::WakeUp {
        message = format!("{message}: the longest of {count}, of real-time threads first");
    }
    if !other_contents.is_empty() {
        message = format!("{message}; also in it: {}", other_contents.join(", "));
    }
    let note = Finding::new("moments", Severity::Note, TRACE_PHASE, message);
    let mut around = EventsAround::from_recording(&opened);
    around.looks_back = source == MomentSource::WakeUp;
    let mut samples: Vec<Explained> =
        chosen.iter().map(|moment| explain_moment(moment, &opened, &around)).collect();
    let order: Vec<String> = samples.iter().map(|sample| sample.series.clone()).collect();
    samples.sort_by_key(|sample| order.iter().position(|series| *series == sample.series));
    let findings = [note].into_iter().chain(opened.recorded.findings.iter().cloned()).collect();
    Ok(Some(around.of_samples(samples, None, findings)))
}

fn format_wakeups(count: u64, longest: Nanos) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} wake-up{plural} (the longest {})", longest.to_readable())
}

/// The moments that a trace marks itself, explained.
pub(super) fn explain_marked(bundle: &Bundle) -> Option<Explanations> {
    let opened = playback::open_recording(bundle)?;
    opened.recorded.moments.iter().find(|moment| moment.source.is_marked())?;
    super::of_moments(bundle, &Wanted::default()).ok().flatten()
}

/// The moments of a trace beside its cycles, where these are explained: marks and wake-ups.
pub(super) fn beside_cycles(bundle: &Bundle) -> Option<Finding> {
    let opened = playback::open_recording(bundle)
        .filter(|opened| opened.recorded.has_group(Group::Sched))?;
    let mut sources = BTreeMap::<MomentSource, u64>::new();
    for moment in &opened.recorded.moments {
        *sources.entry(moment.source).or_default() += 1;
    }
    let marks = sources.iter().map(|(source, count)| format!("{count} {}", source.found_by()));
    let mut other_moments: Vec<String> = marks.collect();
    let mut wakeups = WakeUps::default();
    opened.events().for_each(|event| wakeups.push(&event));
    let (wakeups, count) = wakeups.finish();
    let longest = wakeups.iter().map(TraceMoment::duration).max();
    other_moments.extend(longest.map(|longest| format_wakeups(count, longest)));
    let message =
        format!("explained: the longest cycles; also in it: {}", other_moments.join(", "));
    let finding = Finding::new("moments", Severity::Note, TRACE_PHASE, message);
    (!other_moments.is_empty()).then_some(finding)
}

/// The only thread that is asked for.
fn only_thread(filter: &MomentFilter) -> Option<Tid> {
    filter.threads.as_ref()?.first().copied()
}

fn none_found(wanted: &Wanted) -> Result<Option<Explanations>, Failure> {
    match wanted.at {
        Some(_) => Err(Failure::refused(
            "no mark and no wake-up is at that instant; name a thread with --thread and an \
             interval with --at FROM..TO",
        )),
        None => Ok(None),
    }
}

/// The threads that are asked for by name or id. That there is none lists those that there are.
pub fn requested_threads(bundle: &Bundle, wanted: &Wanted) -> Result<Option<Vec<Tid>>, Failure> {
    let (Some(name), Some(opened)) = (&wanted.thread, playback::open_recording(bundle)) else {
        return Ok(None);
    };
    let names = opened.names();
    let id = name.parse().ok().map(Tid);
    // A name has 15 bytes in the kernel.
    let kept = name.get(..15).unwrap_or(name);
    let is_it = |tid: &Tid, comm: &str| comm == kept || comm == name || Some(*tid) == id;
    let mut found: Vec<Tid> =
        names.tasks.iter().filter(|(tid, of)| is_it(tid, &of.comm)).map(|(tid, _)| *tid).collect();
    let of_moments = opened.recorded.moments.iter().map(|moment| moment.tid);
    found.extend(of_moments.filter(|tid| Some(*tid) == id));
    if found.is_empty() {
        return Err(Failure::refused(no_thread(name, &opened)));
    }
    Ok(Some(found))
}

/// Those that got a CPU, of a real-time priority first, and the most often.
fn no_thread(name: &str, opened: &OpenedRecording<'_>) -> String {
    let (names, mut seen) = (opened.names(), BTreeMap::<Tid, (bool, u64)>::new());
    for event in opened.events() {
        let (tid, is_real_time) = match event.what {
            EventKind::Switch { next, next_prio, .. } => (next, next_prio < MAX_RT_PRIO),
            _ => (event.tid, false),
        };
        if tid != Tid::IDLE && (seen.len() < THREADS || seen.contains_key(&tid)) {
            let (real_time, count) = seen.entry(tid).or_default();
            *real_time |= is_real_time;
            *count += 1;
        }
    }
    let mut sorted_threads: Vec<_> = seen.into_iter().collect();
    sorted_threads.sort_by_key(|(tid, (real_time, count))| (!real_time, Reverse(*count), *tid));
    let thread_labels =
        sorted_threads.iter().map(|(tid, _)| format!("{} ({})", names.task_name(*tid), tid.0));
    let listed_threads: Vec<String> = thread_labels.take(LISTED_THREADS).collect();
    let unlisted_count = sorted_threads.len().saturating_sub(listed_threads.len());
    let unlisted_text =
        if unlisted_count > 0 { format!(" and {unlisted_count} more") } else { String::new() };
    let listed_text =
        if listed_threads.is_empty() { "none".to_owned() } else { listed_threads.join(", ") };
    format!("there is no thread `{name}` in it; there are {listed_text}{unlisted_text}")
}

fn explain_moment(
    moment: &TraceMoment,
    opened: &OpenedRecording<'_>,
    around: &EventsAround<'_, '_>,
) -> Explained {
    let moment = &match moment.source {
        MomentSource::Marker => anchor_to_timer(moment, &of_thread(moment, opened)),
        _ => moment.clone(),
    };
    let series = format!("{}/{}", opened.names().task_name(moment.tid), moment.source.as_str());
    let by_events = match moment.source {
        MomentSource::IrqsoffTracer | MomentSource::PreemptoffTracer | MomentSource::Hwlat => false,
        MomentSource::Osnoise | MomentSource::Timerlat if !moment.noises.is_empty() => false,
        _ => opened.recorded.has_group(Group::Sched),
    };
    if !by_events {
        // Tracers write the stack behind it.
        let (from, to) = (moment.from + Nanos(-BEFORE.ns()), moment.to + BEFORE);
        let events: Vec<Event> = opened.events_between(from, to).collect();
        let explanation = explain_stated(moment, &events);
        let (phase, left_out) = (TRACE_PHASE.to_owned(), CpuSet::new());
        return Explained { phase, series, explanation, events, left_out };
    }
    let kind = match moment.source {
        MomentSource::Marker | MomentSource::Timerlat => StartKind::Timer,
        _ => StartKind::Interval,
    };
    let (due, woke) = (moment.from, moment.to);
    let last = || opened.events_between(due, woke).filter(|event| event.tid == moment.tid).last();
    let cpu = moment.cpu.or_else(|| last().map(|event| event.cpu)).unwrap_or(Event::NO_CPU);
    let late = LatencyInterval { tid: moment.tid, cpu, due, woke, kind };
    let mut explained = around.explain_interval(TRACE_PHASE, &series, late);
    explained.explanation.moment = Some(moment.clone());
    explained
}

/// The events that show when a thread was due or got a CPU.
fn of_thread(moment: &TraceMoment, opened: &OpenedRecording<'_>) -> Vec<Event> {
    let from = MonotonicNs(moment.from.0.saturating_sub(TIMER_BEFORE.ns()));
    let is_of_it = |event: &Event| match event.what {
        EventKind::HrtimerStart { .. } => event.tid == moment.tid,
        EventKind::Switch { next, .. } => next == moment.tid,
        _ => false,
    };
    opened.events_between(from, moment.to).filter(is_of_it).collect()
}
