//! Explains from the windows that the flight recorder kept.

use super::explain_window;
use super::request::Wanted;
use punctual_bundle::explanation::EventSource;
use punctual_bundle::windows::{KeptRule, SavedWindow, SeriesWindows, Waited, WindowHead};
use punctual_bundle::{Bundle, BundleError, Series};
use punctual_core::event::Tid;
use punctual_core::merge::{Batches, Merge};
use punctual_core::{Event, EventKind, Finding, Nanos, Sample, Severity};
use punctual_explain::explain::{LatencyInterval, StartKind};
use punctual_explain::threads::Coverage;
use punctual_explain::{Explained, Explanations};
use punctual_record::wire::{self, WireError};
use std::collections::HashMap;

/// Explains the windows of a bundle; `None` if it has none.
pub(crate) fn explain_windows(bundle: &Bundle, wanted: &Wanted) -> Option<Explanations> {
    let windows = bundle.windows.as_ref()?;
    let document = &windows.document;
    let coverage = Coverage::from_recording(&document.recorded, &document.names);
    let order: HashMap<(&str, &str), usize> = bundle
        .all_series()
        .enumerate()
        .map(|(place, (phase, series))| ((phase, series.meta.name.as_str()), place))
        .collect();
    let place = |window: &SavedWindow| {
        order
            .get(&(window.head.phase.as_str(), window.head.series.as_str()))
            .copied()
            .unwrap_or(usize::MAX)
    };
    let wants = |window: &&SavedWindow| {
        wanted.is_requested(&window.head.phase, &window.head.series)
            && window.head.latency() >= wanted.min_latency
    };
    let mut kept: Vec<&SavedWindow> = windows.windows.iter().filter(wants).collect();
    // Stable: of each series the latest sample stays first.
    kept.sort_by_key(|window| place(window));
    let mut findings = windows.limit_findings();
    let mut trouble = UnreadWindows::default();
    let mut samples: Vec<Explained> = Vec::new();
    for window in first_of_each(kept, wanted.worst) {
        match read(window, place(window), &mut trouble) {
            Ok(events) => {
                let WindowHead { phase, series, left_out, .. } = &window.head;
                let coverage = Coverage { steal: window.head.steal, ..coverage.clone() };
                samples.push(explain_window(
                    phase,
                    series,
                    latency_interval(&window.head),
                    events,
                    left_out.clone(),
                    &coverage,
                ));
            }
            Err(error) => trouble.unreadable.push(error.to_string()),
        }
    }
    findings.extend(trouble.into_findings());
    findings.extend(
        bundle
            .all_series()
            .filter(|(phase, series)| wanted.is_requested(phase, &series.meta.name))
            // Only the responses of a program are watched.
            .filter(|(phase, series)| {
                let is = |of: &SeriesWindows| of.phase == *phase && of.series == series.meta.name;
                document.series.iter().any(is)
            })
            .filter_map(|(phase, series)| {
                worst_without(document.rule, &windows.windows, phase, series)
            }),
    );
    let wants = |series: &&SeriesWindows| wanted.is_requested(&series.phase, &series.series);
    Some(Explanations {
        source: EventSource::Windows,
        rule: Some(document.rule),
        recorded: document.recorded.clone(),
        names: document.names.clone(),
        series: document.series.iter().filter(wants).cloned().collect(),
        samples,
        coincidences: None,
        findings,
    })
}

/// Samples among the worst in the statistics without a window: the recorder counts its misses, and
/// this counts again.
fn worst_without(
    rule: KeptRule,
    windows: &[SavedWindow],
    phase: &str,
    series: &Series,
) -> Option<Finding> {
    let is_of_series = |window: &&SavedWindow| {
        window.head.phase == phase && window.head.series == series.meta.name
    };
    let kept: Vec<Nanos> =
        windows.iter().filter(is_of_series).map(|window| window.head.latency()).collect();
    let min_latency = rule.above.unwrap_or(Nanos(1));
    let worst = series
        .state
        .data
        .worst
        .iter()
        .map(Sample::latency)
        .filter(|latency| *latency >= min_latency);
    let missing_at = |(place, latency): (usize, Nanos)| {
        (place + 1).saturating_sub(kept.iter().filter(|kept| **kept >= latency).count())
    };
    let missing = worst
        .take(rule.worst as usize)
        .enumerate()
        .map(missing_at)
        .max()
        .filter(|missing| *missing > 0)?;
    let message = format!("{missing} of the {} worst samples have no window", rule.worst);
    let finding = Finding::new(
        "worst-without-window",
        Severity::Warning,
        format!("{phase}/{}", series.meta.name),
        message,
    );
    Some(
        finding
            .with_remedy("see the counts of the series: missed_overwritten, missed_room, unseen"),
    )
}

/// The first windows of each series, at most the given number.
fn first_of_each(
    windows: Vec<&SavedWindow>,
    most: Option<usize>,
) -> impl Iterator<Item = &SavedWindow> {
    let mut counted: HashMap<(String, String), usize> = HashMap::new();
    windows.into_iter().filter(move |window| {
        let count =
            counted.entry((window.head.phase.clone(), window.head.series.clone())).or_default();
        *count += 1;
        most.is_none_or(|most| *count <= most)
    })
}

fn latency_interval(head: &WindowHead) -> LatencyInterval {
    LatencyInterval {
        tid: head.tid,
        cpu: u16::try_from(head.sample.cpu).unwrap_or(Event::NO_CPU),
        due: head.due,
        woke: head.woke,
        kind: match head.waited {
            Waited::Timer => StartKind::Timer,
            Waited::Interval => StartKind::Interval,
        },
    }
}

/// The events of all lanes in the order of time, with marks for the sample and for losses.
fn read(
    window: &SavedWindow,
    number: usize,
    trouble: &mut UnreadWindows,
) -> Result<Vec<Event>, BundleError> {
    let bytes = window.read()?;
    let (head, lanes) = WindowHead::read(&bytes).map_err(|why| BundleError::Damaged {
        path: window.path().to_owned(),
        why: why.to_string(),
    })?;
    let mut sources: Vec<Once> = Vec::new();
    for (lane, records) in head.lanes.iter().zip(lanes) {
        let mut events = Vec::new();
        if lane.whole_from > head.due {
            // The count is unknown: one at least.
            let what = EventKind::Lost { count: 1, since: head.due };
            events.push(Event { at: lane.whole_from, cpu: lane.cpu, tid: Tid::IDLE, what });
        }
        for event in wire::decode(records) {
            match event {
                Ok(event) => events.push(event),
                Err(WireError::UnknownKind { .. }) => trouble.unknown += 1,
                Err(_) => trouble.broken += 1,
            }
        }
        sources.push(Once(events));
    }
    let what =
        EventKind::Sample { series: u32::try_from(number).unwrap_or(u32::MAX), due: head.due };
    let cpu = u16::try_from(head.sample.cpu).unwrap_or(Event::NO_CPU);
    sources.push(Once(vec![Event { at: head.woke, cpu, tid: head.tid, what }]));
    Ok(Merge::new(sources).collect())
}

/// All events of a source at once.
struct Once(Vec<Event>);

impl Batches for Once {
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
        events.append(&mut self.0);
        false
    }
}

/// The windows that could not be read.
#[derive(Default)]
struct UnreadWindows {
    unreadable: Vec<String>,
    unknown: u64,
    broken: u64,
}

impl UnreadWindows {
    fn into_findings(self) -> Vec<Finding> {
        let finding =
            |id, severity, message: String| Finding::new(id, severity, "explain", message);
        let mut findings = Vec::new();
        if let Some(first) = self.unreadable.first() {
            let message = format!("{} windows could not be read", self.unreadable.len());
            findings.push(
                finding("windows-unreadable", Severity::Bad, message).with_evidence(first.clone()),
            );
        }
        if self.unknown > 0 {
            let message = format!(
                "{} events are of kinds that are unknown to this version of punctual",
                self.unknown
            );
            let found = finding("windows-unknown-events", Severity::Warning, message);
            findings.push(found.with_remedy("read them with the version that recorded them"));
        }
        if self.broken > 0 {
            let message =
                format!("{} records of windows are damaged and were skipped", self.broken);
            findings.push(finding("windows-damaged-records", Severity::Bad, message));
        }
        findings
    }
}
