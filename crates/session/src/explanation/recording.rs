//! Explains from a recording of the whole run: the worst samples of each series that it covers.

use super::explain_window;
use super::request::Wanted;
use crate::coincidence;
use crate::playback::{self, OpenedRecording};
use punctual_bundle::explanation::EventSource;
use punctual_bundle::intervals::Coincidences;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, TIMER_WORKLOAD};
use punctual_bundle::{Bundle, Series};
use punctual_core::cycle::{CycleKind, SeriesKind};
use punctual_core::event::{Group, Recorded, Tid};
use punctual_core::{
    Clock, CpuSet, Event, EventKind, Finding, MonotonicNs, Nanos, Sample, Severity,
};
use punctual_explain::Explanations;
use punctual_explain::explain::{LatencyInterval, StartKind};
use punctual_explain::threads::Coverage;
use std::collections::VecDeque;

/// The time examined before a sample: for the task running at its due time, and the thread's last
/// activity.
const BEFORE: Nanos = Nanos::from_millis(2);

/// Of a wake-up so much more: a task may have run on its CPU for long.
const EARLIER: Nanos = Nanos::from_millis(200);
const EARLIER_EVENTS: usize = 4_096;

/// Explains the worst samples of the series of a bundle; `None` without a recording of scheduling.
pub(crate) fn explain_worst(bundle: &Bundle, wanted: &Wanted) -> Option<Explanations> {
    explain_by(bundle, bundle, wanted)
}

/// Like [`explain_worst`] for series that were found in the recording of another bundle.
pub(crate) fn explain_by(
    bundle: &Bundle,
    recording: &Bundle,
    wanted: &Wanted,
) -> Option<Explanations> {
    let opened = playback::open_recording(recording)
        .filter(|opened| opened.recorded.has_group(Group::Sched))?;
    let around = EventsAround::from_recording(&opened);
    let (mut samples, mut findings) = (Vec::new(), Vec::new());
    for (phase, series) in
        bundle.all_series().filter(|(phase, series)| is_wanted(wanted, phase, series))
    {
        let name = &series.meta.name;
        let Some(tid) = series.meta.tid.and_then(|tid| u32::try_from(tid).ok()).map(Tid) else {
            continue;
        };
        if series.meta.clock != Clock::Monotonic {
            let message = format!(
                "its samples are on {}, a different clock than the events of the recording",
                series.meta.clock
            );
            findings.push(
                Finding::new(
                    "explain-other-clock",
                    Severity::Note,
                    format!("{phase}/{name}"),
                    message,
                )
                .with_remedy("use --explain: it keeps windows for every clock"),
            );
            continue;
        }
        let late =
            series.state.data.worst.iter().filter(|sample| sample.latency() >= wanted.min_latency);
        for sample in late.take(wanted.worst.unwrap_or(usize::MAX)) {
            let late = interval_of(sample, series, tid);
            if around.covers(late) {
                samples.push(around.explain_interval(phase, name, late));
            }
        }
    }
    findings.extend(opened.recorded.findings.iter().cloned());
    let counted = || {
        let series = bundle.all_series().filter(|(phase, series)| is_wanted(wanted, phase, series));
        coincidence::of_series(&opened, series)
    };
    let coincidences = wanted.coincidences.then(counted).flatten();
    Some(around.of_samples(samples, coincidences, findings))
}

/// Of the series of cycles, those that last until the next wait are explained unless others are
/// named.
fn is_wanted(wanted: &Wanted, phase: &str, series: &Series) -> bool {
    let meta = &series.meta;
    let response = format!("/{}", SeriesKind::Response.as_str());
    let is_usual = meta.workload != ATTACHED_WORKLOAD || meta.name.ends_with(&response);
    let is_of_thread = |name: &String| {
        let label = meta.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
        label || meta.tid.is_some_and(|tid| tid.to_string() == *name)
    };
    wanted.thread.as_ref().is_none_or(is_of_thread)
        && wanted.is_requested(phase, &meta.name)
        && (is_usual || !wanted.series.is_empty())
}

fn interval_of(sample: &Sample, series: &Series, tid: Tid) -> LatencyInterval {
    LatencyInterval {
        tid,
        cpu: u16::try_from(sample.cpu).unwrap_or(Event::NO_CPU),
        due: MonotonicNs(sample.due.0),
        woke: MonotonicNs(sample.woke.0),
        kind: if is_timed(series) { StartKind::Timer } else { StartKind::Interval },
    }
}

/// Whether a timer ends the wait of a sample.
fn is_timed(series: &Series) -> bool {
    let cycle = series.meta.details.get("cycle");
    series.meta.workload == TIMER_WORKLOAD
        || cycle.is_some_and(|kind| kind != CycleKind::Event.as_str())
}

/// The events of a recording around any of its intervals.
pub(super) struct EventsAround<'o, 'b> {
    opened: &'o OpenedRecording<'b>,
    coverage: Coverage,
    /// The losses of events. A recorder reports one when it has room again, maybe after the
    /// interval.
    losses: Vec<Event>,
    /// Whether earlier events are read, too.
    pub(super) looks_back: bool,
}

impl<'o, 'b> EventsAround<'o, 'b> {
    pub(super) fn from_recording(opened: &'o OpenedRecording<'b>) -> EventsAround<'o, 'b> {
        let coverage = Coverage::from_recording(&opened.recorded, opened.names());
        let lossy = opened.recorded.lost_count() > 0;
        let losses = lossy
            .then(|| opened.events().filter(|event| matches!(event.what, EventKind::Lost { .. })));
        EventsAround {
            opened,
            coverage,
            losses: losses.into_iter().flatten().take(MOST_LOSSES).collect(),
            looks_back: false,
        }
    }

    /// Whether the recording covers this interval.
    pub(super) fn covers(&self, late: LatencyInterval) -> bool {
        let Recorded { began, ended, .. } = self.opened.recorded;
        late.due >= began && late.woke <= ended
    }

    pub(super) fn explain_interval(
        &self,
        phase: &str,
        series: &str,
        late: LatencyInterval,
    ) -> punctual_explain::Explained {
        let (from, to) = (late.due.min(late.woke) + Nanos(-BEFORE.ns()), late.woke.max(late.due));
        let mut events = Vec::new();
        if self.looks_back {
            events.extend(self.last_before(from));
        }
        events.extend(self.opened.events_between(from, to));
        let reported_later = self.losses.iter().filter(|event| event.at > to);
        let overlapping_losses = reported_later
            .filter(|event| matches!(event.what, EventKind::Lost { since, .. } if since < to));
        events.extend(overlapping_losses.map(|event| Event { at: to, ..*event }));
        explain_window(phase, series, late, events, CpuSet::new(), &self.coverage)
    }

    /// The last events before an instant, as far as a bounded number reaches back: who ran since.
    fn last_before(&self, to: MonotonicNs) -> VecDeque<Event> {
        let mut last = VecDeque::with_capacity(EARLIER_EVENTS);
        for event in self.opened.events_between(to + Nanos(-EARLIER.ns()), to + Nanos(-1)) {
            if last.len() == EARLIER_EVENTS {
                last.pop_front();
            }
            last.push_back(event);
        }
        last
    }

    pub(super) fn of_samples(
        self,
        samples: Vec<punctual_explain::Explained>,
        coincidences: Option<Vec<Coincidences>>,
        findings: Vec<Finding>,
    ) -> Explanations {
        Explanations {
            source: EventSource::Recording,
            rule: None,
            recorded: self.opened.recorded.clone(),
            names: self.opened.names().clone(),
            series: Vec::new(),
            samples,
            coincidences,
            findings,
        }
    }
}

/// The maximum number of known losses; a recording with more is not worth explaining.
const MOST_LOSSES: usize = 1 << 16;
