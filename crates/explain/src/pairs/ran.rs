//! The tasks and interrupts during an interval: from a maximum to its circumstances.

use crate::occupancy::interrupt_name;
use crate::threads::{ThreadState, WindowLanes};
use punctual_bundle::intervals::{RanTask, StateShare};
use punctual_core::{Event, Names, Tid};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of lines.
const LINES: usize = 12;

/// The states of a thread in a window; empty if completely unknown.
pub(crate) fn state_shares(lanes: &WindowLanes, tid: Tid) -> Vec<StateShare> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for span in lanes.threads.get(&tid).into_iter().flat_map(|lane| &lane.spans) {
        *sums.entry(state_name(span.doing)).or_default() += (span.to - span.from).ns();
    }
    let mut shares: Vec<StateShare> =
        sums.into_iter().map(|(state, ns)| StateShare { state: state.to_owned(), ns }).collect();
    shares.sort_by_key(|share| -share.ns);
    shares
}

/// The word for a thread's state.
pub(crate) fn state_name(doing: ThreadState) -> &'static str {
    match doing {
        ThreadState::Running { .. } => "running",
        ThreadState::Ready { .. } | ThreadState::Waking => "ready",
        ThreadState::Sleeping => "sleeping",
        ThreadState::Blocked | ThreadState::LockWait => "blocked",
        ThreadState::Stopped | ThreadState::Other => "other",
        ThreadState::Unknown => "unknown",
    }
}

/// The tasks and interrupts of a window on the CPUs concerned: those of the ends, and those where
/// the thread ran or waited to run. The longest first.
pub(crate) fn tasks_in_window(
    lanes: &WindowLanes,
    tid: Tid,
    ends: [u16; 2],
    names: &Names,
) -> Vec<RanTask> {
    let concerned = concerned_cpus(lanes, tid, ends);
    let mut sums: BTreeMap<(u16, &str, String, Option<u32>), i64> = BTreeMap::new();
    for (cpu, lane) in
        lanes.cpus.iter().filter(|(cpu, _)| concerned.is_empty() || concerned.contains(cpu))
    {
        for span in &lane.ran {
            let (kind, who) = match span.tid {
                None => ("unknown", "unknown".to_owned()),
                Some(Tid::IDLE) => ("idle", "idle".to_owned()),
                Some(tid) => ("task", names.task_name(tid)),
            };
            let task = span.tid.filter(|_| kind == "task").map(|tid| tid.0);
            *sums.entry((*cpu, kind, who, task)).or_default() += (span.to - span.from).ns();
        }
        for span in &lane.interrupts {
            let (kind, who) = interrupt_name(span.what, names);
            // The span may be cut at the window's end, its own time is not.
            let ns = span.own.min(span.to - span.from).ns();
            *sums.entry((*cpu, kind, who, None)).or_default() += ns;
        }
    }
    let mut ran_tasks: Vec<RanTask> = sums
        .into_iter()
        .map(|((cpu, kind, who, tid), ns)| RanTask { cpu, kind: kind.to_owned(), who, tid, ns })
        .filter(|ran| ran.ns > 0)
        .collect();
    ran_tasks.sort_by_key(|ran| -ran.ns);
    ran_tasks.truncate(LINES);
    ran_tasks
}

fn concerned_cpus(lanes: &WindowLanes, tid: Tid, ends: [u16; 2]) -> BTreeSet<u16> {
    let mut cpus: BTreeSet<u16> = ends.into_iter().filter(|cpu| *cpu != Event::NO_CPU).collect();
    for span in lanes.threads.get(&tid).into_iter().flat_map(|lane| &lane.spans) {
        match span.doing {
            ThreadState::Running { cpu } | ThreadState::Ready { cpu: Some(cpu), .. } => {
                cpus.insert(cpu);
            }
            _ => {}
        }
    }
    cpus
}
