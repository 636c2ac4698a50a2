//! The CPUs of a picture: running threads, interrupts, other events; and the devices.

use super::items::format_details;
use super::{Build, ItemStyle, LaneItem, LaneKind, PictureLane};
use crate::marks::{self, Extent, Mark};
use punctual_core::Tid;
use std::collections::BTreeMap;

/// CPUs shown; a machine with hundreds shows those with the most events in the window.
const MAX_CPUS: usize = 32;

pub fn add(build: &mut Build<'_>) {
    let mut other_items: BTreeMap<u16, [Vec<LaneItem>; 2]> = BTreeMap::new();
    let mut devices: BTreeMap<String, Vec<LaneItem>> = BTreeMap::new();
    for mark in build.material.marks {
        match (mark.lane, mark.lane.cpu()) {
            (marks::Lane::Idle(_) | marks::Lane::Frequency(_), _) => {}
            (lane, Some(cpu)) => {
                let place = usize::from(matches!(lane, marks::Lane::OnCpu(_)));
                let item = of_mark(build, mark, style_of_mark(lane, mark));
                other_items.entry(cpu).or_default()[place].extend(item);
            }
            (lane, None) if lane.thread().is_none() => {
                let item = of_mark(build, mark, ItemStyle::Request);
                devices.entry(lane.title(build.material.names)).or_default().extend(item);
            }
            _ => {}
        }
    }
    let mut shown_cpus: Vec<u16> =
        build.material.lanes.cpus.keys().chain(other_items.keys()).copied().collect();
    shown_cpus.sort_unstable();
    shown_cpus.dedup();
    if shown_cpus.len() > MAX_CPUS {
        let busy = |cpu: &u16| build.material.lanes.cpus.get(cpu).map_or(0, |lane| lane.ran.len());
        shown_cpus.sort_by_key(|cpu| std::cmp::Reverse(busy(cpu)));
        build.notes.push(format!("{} more CPUs are not shown.", shown_cpus.len() - MAX_CPUS));
        shown_cpus.truncate(MAX_CPUS);
        shown_cpus.sort_unstable();
    }
    for cpu in shown_cpus {
        let [served, events] = other_items.remove(&cpu).unwrap_or_default();
        let group = format!("CPU {cpu}");
        let ran = running_items(build, cpu);
        build.cpu_lanes.insert(cpu, build.lanes.len());
        build.lanes.push(PictureLane::new(&group, "ran", LaneKind::Spans, ran));
        let rest = [("interrupts", served), ("events", events)];
        let rest = rest.into_iter().filter(|(_, items)| !items.is_empty());
        build.lanes.extend(
            rest.map(|(title, items)| PictureLane::new(&group, title, LaneKind::Spans, items)),
        );
    }
    build.lanes.extend(
        devices
            .into_iter()
            .map(|(title, items)| PictureLane::new("storage", &title, LaneKind::Spans, items)),
    );
}

/// The running threads; idle time is blank.
fn running_items(build: &mut Build<'_>, cpu: u16) -> Vec<LaneItem> {
    let Some(lane) = build.material.lanes.cpus.get(&cpu) else { return Vec::new() };
    let mut items = Vec::new();
    for span in &lane.ran {
        let (word, look, mut details) = match span.tid {
            Some(Tid::IDLE) => continue,
            Some(tid) => {
                let task_name = build.material.names.tasks.get(&tid);
                let mut details = vec![("thread", tid.0.to_string())];
                details.extend(task_name.map(|task| ("process", task.process.to_string())));
                details.extend(task_name.and_then(|task| {
                    Some(("scheduling", super::format_name(task.scheduling.as_deref()?)))
                }));
                (
                    build.words.intern_name(&build.material.names.task_name(tid)),
                    ItemStyle::Hue(build.hue_of_thread(tid)),
                    details,
                )
            }
            None => (build.words.intern_name("unknown"), ItemStyle::Unknown, Vec::new()),
        };
        details.extend(span.prio.map(|prio| ("priority (kernel)", prio.to_string())));
        let from = build.time_since_zero(span.from);
        let length = (span.to - span.from).ns();
        items.push(LaneItem { from, length, row: 0, look, word, value: None, details });
    }
    items
}

fn style_of_mark(lane: marks::Lane, mark: &Mark<'_>) -> ItemStyle {
    match lane {
        marks::Lane::Interrupts(_) => ItemStyle::Interrupt,
        marks::Lane::Vectors(_) => ItemStyle::Vector,
        marks::Lane::Softirqs(_) => ItemStyle::Softirq,
        marks::Lane::Timers(_) => ItemStyle::Timer,
        _ if mark.name == "events lost" => ItemStyle::Lost,
        _ => ItemStyle::Kernel,
    }
}

/// A mark as an item, cut at the picture's edges; `None` if it lies outside.
pub(crate) fn of_mark(build: &mut Build<'_>, mark: &Mark<'_>, look: ItemStyle) -> Option<LaneItem> {
    let (begin, end) = (build.material.lanes.from, build.material.lanes.to);
    let (from, to, value) = match mark.shape {
        Extent::Span(from, to) => (from, to, None),
        Extent::Begun(from) => (from, end, None),
        Extent::Instant(at) => (at, at, None),
        Extent::Value(at, value) => (at, at, Some(value)),
    };
    if to < begin || from > end {
        return None;
    }
    let mut details = format_details(&mark.details);
    if from < begin || to > end {
        details.push(("in all", super::span_text(to - from)));
    }
    let (from, to) = (from.max(begin), to.min(end));
    let series = match mark.lane {
        marks::Lane::Samples(_, series, _) => build.material.series.get(series as usize),
        _ => None,
    };
    let word = build.words.intern_name(series.map_or(mark.name.as_ref(), String::as_str));
    Some(LaneItem {
        from: build.time_since_zero(from),
        length: (to - from).ns(),
        row: 0,
        look,
        word,
        value,
        details,
    })
}
