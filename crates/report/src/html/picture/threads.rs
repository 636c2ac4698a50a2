//! The threads of a picture: the states of each, its samples, test points, values, functions, and
//! its work in the kernel.

use super::cpus::of_mark;
use super::{Build, ItemStyle, LaneItem, LaneKind, PictureLane};
use crate::marks;
use punctual_core::event::PointId;
use punctual_core::{Nanos, Tid};
use punctual_explain::threads::{ThreadLane, ThreadState};
use std::collections::{BTreeMap, BTreeSet};

/// Threads with their own lanes.
const MAX_THREADS: usize = 14;
/// Threads named as not shown.
const MAX_NAMED: usize = 12;
/// The lanes of a thread that hold spans and events.
const SECTIONS: [(&str, ItemStyle); 5] = [
    ("samples", ItemStyle::Sample),
    ("test points", ItemStyle::Point),
    ("functions", ItemStyle::Call),
    ("in the kernel", ItemStyle::Kernel),
    ("events", ItemStyle::Kernel),
];

/// The lanes of one thread under construction.
#[derive(Default)]
struct ThreadLanes {
    sections: [Vec<LaneItem>; SECTIONS.len()],
    values: BTreeMap<(PointId, u8), Vec<LaneItem>>,
}

pub fn add(build: &mut Build<'_>) {
    let mut own_lanes: BTreeMap<Tid, ThreadLanes> = BTreeMap::new();
    for mark in build.material.marks {
        let Some(tid) = mark.lane.thread() else { continue };
        let place = match mark.lane {
            marks::Lane::Samples(..) => 0,
            marks::Lane::Points(..) => 1,
            marks::Lane::Calls(_) => 2,
            marks::Lane::InThread(_) => 4,
            marks::Lane::Values(_, point, which) => {
                let item = of_mark(build, mark, ItemStyle::Point);
                own_lanes
                    .entry(tid)
                    .or_default()
                    .values
                    .entry((point, which))
                    .or_default()
                    .extend(item);
                continue;
            }
            _ => 3,
        };
        let look = if mark.name == "events lost" { ItemStyle::Lost } else { SECTIONS[place].1 };
        let item = of_mark(build, mark, look);
        own_lanes.entry(tid).or_default().sections[place].extend(item);
    }
    own_lanes.retain(|_, own| {
        !own.values.is_empty() || own.sections.iter().any(|section| !section.is_empty())
    });
    for tid in choose_threads(build, &own_lanes) {
        add_thread(build, tid, own_lanes.remove(&tid).unwrap_or_default());
    }
}

/// The threads shown: first the focused one, then those with test points or functions, then those
/// that ran longest.
fn choose_threads(build: &mut Build<'_>, own: &BTreeMap<Tid, ThreadLanes>) -> Vec<Tid> {
    let ran = |tid: &Tid| build.material.lanes.threads.get(tid).map_or(Nanos::ZERO, time_running);
    let speaks = |tid: &Tid| {
        own.get(tid).is_some_and(|own| own.sections[..3].iter().any(|section| !section.is_empty()))
    };
    let all_threads: BTreeSet<Tid> =
        build.material.lanes.threads.keys().chain(own.keys()).copied().collect();
    let mut ordered_threads: Vec<Tid> =
        all_threads.into_iter().filter(|tid| *tid != Tid::IDLE).collect();
    ordered_threads.sort_by_key(|tid| {
        let first = build.focus.tid != Some(*tid);
        (first, !speaks(tid), std::cmp::Reverse(ran(tid)))
    });
    let rest = ordered_threads.split_off(ordered_threads.len().min(MAX_THREADS));
    if !rest.is_empty() {
        let named: Vec<String> =
            rest.iter().take(MAX_NAMED).map(|tid| build.task_label(*tid)).collect();
        let and_others = if rest.len() > MAX_NAMED { " and others" } else { "" };
        let note = format!(
            "{} more threads have no lane of their own: {}{and_others}.",
            rest.len(),
            named.join(", ")
        );
        build.notes.push(note);
    }
    ordered_threads
}

fn time_running(lane: &ThreadLane) -> Nanos {
    let running =
        lane.spans.iter().filter(|span| matches!(span.doing, ThreadState::Running { .. }));
    running.fold(Nanos::ZERO, |sum, span| sum + (span.to - span.from))
}

fn add_thread(build: &mut Build<'_>, tid: Tid, own: ThreadLanes) {
    let (group, hue) = (build.task_label(tid), build.hue_of_thread(tid));
    let states = state_items(build, tid, hue);
    if !states.is_empty() {
        build.thread_lanes.insert(tid, build.lanes.len());
        build.lanes.push(PictureLane::new(&group, "state", LaneKind::State, states).with_hue(hue));
    }
    let mut sections = own.sections.into_iter().zip(SECTIONS);
    for (items, (title, _)) in sections.by_ref().take(2).filter(|(items, _)| !items.is_empty()) {
        build.lanes.push(PictureLane::new(&group, title, LaneKind::Spans, items).with_hue(hue));
    }
    for ((point, which), items) in own.values {
        let title = marks::Lane::Values(tid, point, which).title(build.material.names);
        build.lanes.push(
            PictureLane::new(&group, &super::format_name(&title), LaneKind::Values, items)
                .with_hue(hue),
        );
    }
    for (items, (title, _)) in sections.filter(|(items, _)| !items.is_empty()) {
        build.lanes.push(PictureLane::new(&group, title, LaneKind::Spans, items).with_hue(hue));
    }
}

fn state_items(build: &mut Build<'_>, tid: Tid, hue: u8) -> Vec<LaneItem> {
    let Some(lane) = build.material.lanes.threads.get(&tid) else { return Vec::new() };
    let mut items = Vec::new();
    for span in &lane.spans {
        let on = |cpu: u16| vec![("CPU", cpu.to_string())];
        let (word, look, details) = match span.doing {
            ThreadState::Running { cpu } => ("runs", ItemStyle::Hue(hue), on(cpu)),
            ThreadState::Ready { cpu, preempted } => {
                let word = if preempted { "ready, was preempted" } else { "ready, was woken" };
                (word, ItemStyle::Ready, cpu.map(on).unwrap_or_default())
            }
            ThreadState::Waking => ("waking", ItemStyle::Ready, Vec::new()),
            ThreadState::Sleeping => ("sleeps", ItemStyle::Sleeping, Vec::new()),
            ThreadState::Blocked => ("blocked (uninterruptible)", ItemStyle::Blocked, Vec::new()),
            ThreadState::LockWait => ("waits for a lock", ItemStyle::Blocked, Vec::new()),
            ThreadState::Stopped => ("stopped", ItemStyle::Other, Vec::new()),
            ThreadState::Other => ("waits (other)", ItemStyle::Other, Vec::new()),
            ThreadState::Unknown => ("unknown", ItemStyle::Unknown, Vec::new()),
        };
        let word = build.words.intern_name(word);
        let (from, length) = (build.time_since_zero(span.from), (span.to - span.from).ns());
        items.push(LaneItem { from, length, row: 0, look, word, value: None, details });
    }
    items
}
