//! Evidence that the loads exist and work.

use punctual_bundle::evidence::{LoadEvidence, LoadProgress};
use punctual_core::{Fact, MonotonicNs, Nanos};
use punctual_host::files::Root;
use punctual_host::progress::{self, ProcessWork};
use punctual_measure::load::LoadExitAction;
use punctual_plan::LoadPlan;
use std::collections::HashMap;

/// A load due less than this before the end need not have started.
const LATE: Nanos = Nanos(50_000_000);
/// A load works if it used a thousandth of a CPU, …
const WORK: i64 = 1_000;
/// … or was scheduled ten times a second, or read or wrote a byte.
const OFTEN: Nanos = Nanos(100_000_000);
/// Polls closer together than this are inconclusive: a load scheduled ten times a second, slightly
/// late on a busy machine, may not have run.
const CLOSE: Nanos = Nanos(2 * OFTEN.0);

/// The maximum number of recorded stops of a load.
const STOPS: usize = 32;

/// A load and the observations so far.
#[derive(Default)]
pub struct LoadWatch {
    /// When the phase began.
    pub(super) begin: MonotonicNs,
    /// Since when it should run.
    due_from: MonotonicNs,
    pid: Option<i32>,
    since: Option<MonotonicNs>,
    last_poll: Option<MonotonicNs>,
    /// The work of each of its processes at the last poll.
    last: HashMap<i32, ProcessWork>,
    evidence: LoadEvidence,
    /// Whether the last poll found the load stopped.
    stops: bool,
}

impl LoadWatch {
    pub fn new(load: &LoadPlan, now: MonotonicNs) -> LoadWatch {
        LoadWatch {
            begin: now,
            due_from: now + load.start_delay,
            evidence: LoadEvidence {
                name: load.name.clone(),
                may_rest: load.may_rest,
                ..LoadEvidence::default()
            },
            ..LoadWatch::default()
        }
    }

    pub fn on_start(&mut self, pid: i32, now: MonotonicNs) {
        // The load was not late before its first start: a seed, or its own delay, held it.
        if self.evidence.ended.is_none() && self.since.is_none() {
            self.due_from = now;
        }
        self.pid = Some(pid);
        self.since = Some(now);
        self.evidence.done = false;
    }

    pub fn on_exit(&mut self, how: &str, success: bool, then: LoadExitAction, now: MonotonicNs) {
        self.add_alive(now);
        self.pid = None;
        self.evidence.done = success && then != LoadExitAction::Respawn;
        self.evidence.ended = Some(how.to_owned());
    }

    fn add_alive(&mut self, now: MonotonicNs) {
        if let Some(since) = self.since.take() {
            self.evidence.alive += now - since;
        }
    }

    /// Checks whether its processes have worked since the last look. The first look only stores
    /// their counters.
    pub fn poll(&mut self, files: &Root, now: MonotonicNs) {
        let Some(pid) = self.pid else { return };
        let since = self.last_poll.map(|last| now - last);
        if since.is_some_and(|since| since < CLOSE) {
            return;
        }
        let Ok(tree) = progress::process_tree(files, pid) else { return };
        let (mut time, mut switches, mut bytes) = (Nanos::ZERO, 0u64, 0u64);
        let mut worked = false;
        self.last.retain(|pid, _| tree.contains(pid));
        for &pid in &tree {
            let Some(done) = progress::of_process(files, pid) else { continue };
            let before = self.last.insert(pid, done).unwrap_or_default();
            time += Nanos((done.cpu_time - before.cpu_time).ns().max(0));
            switches += done.switches.saturating_sub(before.switches);
            bytes += done.io_bytes.saturating_sub(before.io_bytes);
            worked = since.is_some_and(|since| {
                time.ns() >= since.ns() / WORK
                    || switches as i64 * OFTEN.ns() >= since.ns()
                    || bytes > 0
            });
            // One working process suffices; the others are not read.
            if worked {
                break;
            }
        }
        self.last_poll = Some(now);
        let is_stopped = !worked && progress::is_stopped(files, &tree);
        let (at, stopped) = (now - self.begin, &mut self.evidence.stopped);
        if let Some((_, to)) = stopped.last_mut().filter(|_| self.stops) {
            *to = at;
        } else if is_stopped && stopped.len() < STOPS {
            stopped.push((at, at));
        }
        self.stops = is_stopped;
        if since.is_some() {
            // A load with work but without a CPU does not idle: others keep the CPUs busy.
            let starved = !worked && tree.iter().any(|pid| progress::is_ready(files, *pid));
            self.evidence.looks += 1;
            self.evidence.starved_looks += u64::from(starved);
            self.evidence.idle_looks += u64::from(!worked && !starved);
        }
    }

    /// Completes the evidence with the total work of its processes.
    pub(crate) fn into_evidence(mut self, files: &Root, now: MonotonicNs) -> LoadEvidence {
        self.evidence.due = Nanos((now - self.due_from).ns().max(0));
        if self.evidence.ended.is_none() && self.since.is_none() && self.evidence.due < LATE {
            // The load should start at the very end.
            self.evidence.due = Nanos::ZERO;
        }
        self.evidence.progress = match self.pid {
            Some(pid) => tree_progress(files, pid),
            None => Fact::NotAsked,
        };
        self.add_alive(now);
        self.evidence
    }
}

fn tree_progress(files: &Root, pid: i32) -> Fact<LoadProgress> {
    let tree = match progress::process_tree(files, pid) {
        Ok(tree) => tree,
        Err(why) => return Fact::Unavailable(why),
    };
    let mut total_progress = LoadProgress::default();
    for done in tree.into_iter().filter_map(|pid| progress::of_process(files, pid)) {
        total_progress.cpu_time += done.cpu_time;
        total_progress.switches = total_progress.switches.saturating_add(done.switches);
        total_progress.io_bytes = total_progress.io_bytes.saturating_add(done.io_bytes);
        total_progress.processes += 1;
    }
    match total_progress.processes {
        0 => Fact::Unavailable("/proc hides its processes from this user".to_owned()),
        _ => Fact::Known(total_progress),
    }
}
