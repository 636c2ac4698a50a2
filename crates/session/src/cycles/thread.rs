//! One thread: its first waits, its inferred cycles, and its series.

use super::delays;
use super::findings;
use super::groups::CulpritGroups;
use super::holders::Holders;
use super::names::task_name;
use super::options::{CycleOptions, WORKLOAD};
use super::practice::Practice;
use super::recent::RecentSums;
use super::rows::ThreadRow;
use super::series::{CycleSeries, SeriesPlace};
use super::source::{CycleRecorder, CycleThreadFacts};
use super::target::truncate_comm;
use super::typical::TypicalCycles;
use super::worst::WorstCycles;
use punctual_bundle::meta::{DEADLINE, MeasureMeta, REQUESTED_SCHEDULING, UNCLEAR_PERIOD};
use punctual_bundle::{BundleError, SeriesMeta};
use punctual_core::cycle::{Cycle, CycleKind, SeriesKind, TaskComm, id_here};
use punctual_core::format;
use punctual_core::{
    Cell, Clock, Column, Figure, Finding, MonotonicNs, Nanos, Notes, Sample, Severity, Table,
};
use punctual_explain::cycles::lint::HostFacts;
use punctual_explain::cycles::{
    Begins, CallNames, CandidateWait, Constraint, CycleFollower, Inferred, MIN_WAITS,
    MeasuredCycle, NotEnded, WaitSite, find_rivals, infer_cycles,
};
use std::collections::BTreeMap;

/// Waits seen before a thread's cycles are inferred, and the maximum kept for that.
const LEARNED_WAITS: usize = 200;
const MAX_LEARNED_WAITS: usize = 4_096;
/// After this time fewer are enough.
const LONG: Nanos = Nanos::SECOND;
const FEW: usize = 2 * MIN_WAITS;
/// Checkpoints between two reads of the settings: threads may change them after they began.
const REREAD: u64 = 10;
const CULPRITS: usize = 256;
/// Bits of a wait(2) status: the signal that ended the thread.
const SIGNALLED: u32 = 0x7f;
/// From this delay on, the name of a task that no event shows is looked up.
const NAMED_FROM: Nanos = Nanos::from_micros(100);

/// A thread of the program.
pub struct CycleThread {
    pub tid: u32,
    /// Whether this is a thread of this machine, now.
    is_live: bool,
    /// The thread has ended: its id may be reused.
    is_over: bool,
    /// A record of the thread arrived since the last `look`.
    is_active: bool,
    /// The time from its last cycle to its end, if in no cycle.
    left_over: Option<Nanos>,
    pub name: String,
    phase: String,
    since: MonotonicNs,
    state: CycleThreadState,
    pub cycles: u64,
    pub skipped: u64,
    overruns: u64,
    /// Switches to it without an event.
    pub hidden: u64,
    /// Cycles whose release is not known.
    unknown: u64,
    /// Cycles whose records found no room.
    pub lost: u64,
    beyond: u64,
    totals: Totals,
    culprits: BTreeMap<TaskComm, TaskDelay>,
    culprit_groups: CulpritGroups,
    practice: Practice,
    checkpoints: u64,
    last: Option<Nanos>,
    holders: Holders,
    pub(super) worst_cycles: WorstCycles,
    typical: TypicalCycles,
    /// The thread's index among the series that the flight recorder watches.
    pub watched_as: Option<usize>,
    worst: Vec<Sample>,
}

enum CycleThreadState {
    /// Not known yet which wait its cycles begin with.
    Learning {
        waits: Vec<Cycle>,
        looked_at: usize,
    },
    Cyclic(Box<Cyclic>),
    Other {
        seen: Vec<CandidateWait>,
        waits: usize,
    },
    /// The thread has cycles, but not a requested name.
    Unwanted,
}

struct Cyclic {
    label: String,
    inferred: Inferred,
    wait: String,
    /// Waits any of which may begin its cycles, if it is not clear which one does.
    unclear: Vec<WaitSite>,
    /// Its cycles began at one place first, and then did no more.
    has_moved: bool,
    follower: CycleFollower,
    series: Vec<CycleSeries>,
    deadline: Option<Nanos>,
    stop_above: Option<Nanos>,
    above: Option<Nanos>,
    /// The cycle in progress at the last `look`.
    open: Option<NotEnded>,
}

impl Cyclic {
    fn set_open(&mut self, open: Option<NotEnded>) {
        self.open = open;
        self.series.iter_mut().for_each(|series| series.set_unfinished(open.as_ref()));
    }

    /// No requirement on it is decided from now on.
    fn mark_unclear(&mut self) {
        let wait = &self.wait;
        let reason = format!("which of its waits in {wait} begins its cycles is not known");
        for series in &mut self.series {
            series.kept.add_detail(UNCLEAR_PERIOD, &reason);
        }
    }

    /// Time so far of the cycle in progress; zero if none.
    fn elapsed_time(&self) -> Nanos {
        self.open.map_or(Nanos::ZERO, |open| open.now - open.release)
    }

    fn is_beyond(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.elapsed_time() > deadline)
    }
}

/// Sums over all cycles.
#[derive(Default)]
struct Totals {
    blocks: u64,
    blocked: Nanos,
    syscalls: u64,
    faults: u64,
    migrations: u64,
    with_faults: u64,
}

/// The delay by another task.
#[derive(Clone, Copy, Default)]
struct TaskDelay {
    cycles: u64,
    total: Nanos,
    longest: Nanos,
    /// The part of the total while its priority was not lower.
    behind: Nanos,
    tid: u32,
}

impl CycleThread {
    /// A thread whose first wait was just seen.
    pub fn new(tid: u32, source: &CycleRecorder, phase: &str) -> CycleThread {
        CycleThread {
            tid,
            is_live: source.is_live(),
            is_over: false,
            is_active: false,
            left_over: None,
            name: source.thread_comm(tid).unwrap_or_else(|| "thread".to_owned()),
            phase: phase.to_owned(),
            since: source.current_time(),
            state: CycleThreadState::Learning { waits: Vec::new(), looked_at: 0 },
            cycles: 0,
            skipped: 0,
            overruns: 0,
            hidden: 0,
            unknown: 0,
            lost: 0,
            beyond: 0,
            totals: Totals::default(),
            culprits: BTreeMap::new(),
            culprit_groups: CulpritGroups::default(),
            practice: Practice::default(),
            checkpoints: 0,
            last: None,
            holders: Holders::default(),
            worst_cycles: WorstCycles::default(),
            typical: TypicalCycles::default(),
            watched_as: None,
            worst: Vec::new(),
        }
    }

    /// The prefix of its series names, if it has cycles.
    pub fn label(&self) -> Option<&str> {
        self.as_cyclic().map(|cyclic| cyclic.label.as_str())
    }

    /// Whether the thread has cycles, or may still turn out to have some.
    pub fn may_have_cycles(&self) -> bool {
        matches!(self.state, CycleThreadState::Learning { .. } | CycleThreadState::Cyclic(_))
    }

    /// Whether a timer releases its cycles.
    pub fn is_timed(&self) -> bool {
        self.as_cyclic().is_some_and(|cyclic| cyclic.inferred.kind != CycleKind::Event)
    }

    fn as_cyclic(&self) -> Option<&Cyclic> {
        match &self.state {
            CycleThreadState::Cyclic(cyclic) => Some(cyclic),
            CycleThreadState::Learning { .. }
            | CycleThreadState::Other { .. }
            | CycleThreadState::Unwanted => None,
        }
    }

    /// Adds a record of the thread.
    pub fn push(&mut self, record: Cycle, recent: &mut RecentSums) {
        if self.is_live {
            self.practice.look_at(&record);
        }
        self.is_active = true;
        match &mut self.state {
            CycleThreadState::Learning { waits, .. } => waits.push(record),
            CycleThreadState::Cyclic(cyclic) => {
                cyclic.open = None;
                let measured = cyclic.follower.push(record);
                if let Some(measured) = measured {
                    recent.add(&measured.cycle);
                    self.add_cycle(&measured);
                }
            }
            CycleThreadState::Other { waits, .. } => *waits += 1,
            CycleThreadState::Unwanted => {}
        }
    }

    /// Checks the cycle in progress: limits hold for it, too. While cycles come and go there is
    /// none to check before the last round. Returns its wait if cycles may begin at any place of it
    /// from now on.
    pub(crate) fn check_open_cycle(
        &mut self,
        source: &CycleRecorder,
        is_last: bool,
    ) -> Option<WaitSite> {
        let is_active = std::mem::take(&mut self.is_active) && !is_last;
        let CycleThreadState::Cyclic(cyclic) = &mut self.state else { return None };
        let (open, now) =
            (if is_active { None } else { source.open_cycle(self.tid) }, source.current_time());
        if open.is_some_and(|open| cyclic.follower.has_moved(&open, now)) {
            return self.give_up_place(now);
        }
        cyclic.set_open(open.and_then(|open| cyclic.follower.not_ended(&open, now)));
        let lasted = cyclic.elapsed_time();
        if cyclic.stop_above.is_some_and(|limit| lasted > limit) {
            cyclic.above = cyclic.above.max(Some(lasted));
        }
        None
    }

    /// It waits elsewhere than its cycles began: which wait is its period is not known.
    fn give_up_place(&mut self, now: MonotonicNs) -> Option<WaitSite> {
        let CycleThreadState::Cyclic(cyclic) = &mut self.state else { return None };
        cyclic.set_open(None);
        let last = cyclic.follower.give_up_place(now);
        cyclic.mark_unclear();
        let site = cyclic.inferred.site.without_place();
        if !std::mem::replace(&mut cyclic.has_moved, true) {
            cyclic.unclear.push(cyclic.inferred.site);
        }
        if let Some(last) = last {
            self.add_cycle(&last);
        }
        Some(site)
    }

    /// Ends the thread at this instant, with its wait(2) status if known. A signal cut its cycle
    /// off; the time after a loop that returned belongs to no cycle.
    pub(crate) fn on_exit(&mut self, at: MonotonicNs, status: Option<u32>) {
        let CycleThreadState::Cyclic(cyclic) = &mut self.state else { return };
        let open_at_exit = cyclic.open.map(|open| cyclic.follower.observe_until(open, at));
        let is_killed = status.is_some_and(|status| status & SIGNALLED != 0);
        cyclic.set_open(open_at_exit.filter(|_| is_killed));
        let Some(left) =
            open_at_exit.or_else(|| cyclic.follower.due_cycle(at)).filter(|_| !is_killed)
        else {
            return;
        };
        let longest = cyclic.series.iter().find(|series| series.kind == SeriesKind::Response);
        let longest = longest.and_then(|series| series.kept.state.data.max).unwrap_or_default();
        let span = at - left.release;
        self.left_over = (left.passed > 0 || span > longest).then_some(span);
    }

    /// Events are missing from here on: the cycle in progress is the last before the gap.
    pub fn break_off(&mut self, recent: &mut RecentSums) {
        if let CycleThreadState::Cyclic(cyclic) = &mut self.state
            && let Some(measured) = cyclic.follower.break_off()
        {
            recent.add(&measured.cycle);
            self.add_cycle(&measured);
        }
    }

    /// Counts its cycles whose records found no room, all that were lost so far.
    pub(crate) fn count_lost(&mut self, lost: u64) {
        self.lost = self.lost.max(lost);
        if let CycleThreadState::Cyclic(cyclic) = &mut self.state {
            cyclic.series.iter_mut().for_each(|series| series.lose_until(self.lost));
        }
    }

    fn add_cycle(&mut self, measured: &MeasuredCycle) {
        let mut measured = *measured;
        if let Some(likely) = measured.cycle.likely.as_mut().filter(|one| one.time >= NAMED_FROM) {
            likely.name = task_name(likely.tid).unwrap_or_default();
        }
        let measured = &measured;
        let CycleThreadState::Cyclic(cyclic) = &mut self.state else { return };
        let (cycle, totals) = (&measured.cycle, &mut self.totals);
        self.practice.add(measured);
        self.cycles += 1;
        self.unknown += u64::from(measured.begins != Begins::Released);
        self.hidden += u64::from(cycle.hidden);
        self.skipped += measured.skipped;
        self.overruns += u64::from(measured.overrun);
        totals.blocks += u64::from(cycle.blocks);
        totals.blocked += cycle.blocked;
        totals.syscalls += u64::from(cycle.syscalls);
        totals.faults += u64::from(cycle.faults);
        totals.migrations += u64::from(cycle.migrations);
        totals.with_faults += u64::from(cycle.faults > 0);
        let response = cycle.response_time();
        let is_above = |limit: Option<Nanos>| {
            !measured.may_have_ended && limit.is_some_and(|limit| response > limit)
        };
        self.beyond += u64::from(is_above(cyclic.deadline));
        if is_above(cyclic.stop_above) {
            cyclic.above = cyclic.above.max(Some(response));
        }
        self.holders.add(cycle);
        if measured.is_response_known() {
            self.last = Some(response);
            self.worst_cycles.add(cycle);
            self.typical.add(cycle);
        }
        if let Some(culprit) = cycle.culprit.filter(|_| self.is_live) {
            self.culprit_groups.add(&culprit);
        }
        if let Some(culprit) = cycle.culprit
            && (self.culprits.len() < CULPRITS || self.culprits.contains_key(&culprit.name))
        {
            let delay = self.culprits.entry(culprit.name).or_default();
            delay.cycles += 1;
            delay.total += culprit.time;
            delay.behind += culprit.behind;
            if culprit.time > delay.longest {
                (delay.longest, delay.tid) = (culprit.time, culprit.tid);
            }
        }
        for series in &mut cyclic.series {
            let sample = series.push(measured);
            if series.kind == SeriesKind::Response && self.watched_as.is_some() {
                self.worst.extend(sample);
            }
        }
    }

    /// Infers its cycles once enough of its waits are seen, or no more will come: `Some(None)` if
    /// it has none, or a name that is not `wanted`.
    pub fn infer_cycles(
        &mut self,
        kind: Option<CycleKind>,
        wanted: Option<&str>,
        calls: &CallNames,
        source: &CycleRecorder,
        ended: bool,
    ) -> Option<Option<Inferred>> {
        let now = source.current_time();
        let CycleThreadState::Learning { waits, looked_at } = &mut self.state else { return None };
        let enough = waits.len() >= LEARNED_WAITS && waits.len() >= 2 * *looked_at;
        let long = waits.len() >= FEW && now - self.since >= LONG && waits.len() >= 2 * *looked_at;
        if !(enough || long || ended) {
            return None;
        }
        *looked_at = waits.len();
        let infer_from = |waits: &[Cycle]| infer_cycles(waits, Constraint { kind }, calls);
        // A recording may deliver all waits at once; the first ones may still be uniform.
        let inferred = infer_from(waits).or_else(|seen| match waits.get(..LEARNED_WAITS) {
            Some(first) => infer_from(first).map_err(|_| seen),
            None => Err(seen),
        });
        match inferred {
            Ok(inferred) => {
                // Programs name their threads after they have begun.
                if let Some(name) = source.thread_comm(self.tid).filter(|_| !self.is_over) {
                    self.name = name;
                }
                let is_wanted = match wanted {
                    Some(wanted) => truncate_comm(wanted) == self.name,
                    None => source.is_thread_shown(self.tid, &inferred),
                };
                if !is_wanted {
                    self.state = CycleThreadState::Unwanted;
                    self.worst_cycles = WorstCycles::default();
                    return Some(None);
                }
                Some(Some(inferred))
            }
            Err(seen) if ended || waits.len() >= MAX_LEARNED_WAITS => {
                let waits = waits.len();
                self.state = CycleThreadState::Other { seen, waits };
                self.worst_cycles = WorstCycles::default();
                Some(None)
            }
            Err(_) => None,
        }
    }

    /// Begins its series. Returns the records seen so far, to be pushed again.
    pub fn begin_series(
        &mut self,
        label: &str,
        inferred: Inferred,
        place: &SeriesPlace<'_>,
        options: &CycleOptions,
        (calls, facts): (&CallNames, CycleThreadFacts),
    ) -> Vec<Cycle> {
        let CycleThreadState::Learning { waits, .. } = &mut self.state else {
            return Vec::new();
        };
        let waits = std::mem::take(waits);
        let longest = waits.iter().map(Cycle::response_time).max().unwrap_or(Nanos::MILLI);
        let span = Nanos(2 * inferred.period.unwrap_or(longest).ns());
        let (tid, wait) = (self.tid as i32, inferred.site.describe_site(calls));
        let mut unclear = find_rivals(&waits, &inferred, Constraint { kind: options.kind }, calls);
        let is_unclear = inferred.takes_turns || !unclear.is_empty();
        if is_unclear {
            unclear.push(inferred.site);
        }
        let mut series = Vec::new();
        for (number, kind) in (*place.next..).zip(SeriesKind::CYCLIC) {
            let meta = series_meta(label, kind, (tid, &facts), &inferred, &wait, options);
            let mut begun = CycleSeries::begin(kind, meta, span, place, number);
            begun.lose_until(self.lost);
            series.push(begun);
        }
        if self.is_live {
            self.practice.refresh_facts(self.tid, &inferred, calls);
        }
        let label = label.to_owned();
        let follower = CycleFollower::new(&inferred);
        let (deadline, stop_above) = (options.deadline, options.stop_above);
        let mut cyclic = Cyclic {
            label,
            inferred,
            wait,
            unclear,
            has_moved: false,
            follower,
            series,
            deadline,
            stop_above,
            above: None,
            open: None,
        };
        if is_unclear {
            cyclic.mark_unclear();
        }
        self.state = CycleThreadState::Cyclic(Box::new(cyclic));
        waits
    }

    /// Looks up the places of waits that may all begin its cycles, while the process exists.
    pub(super) fn look_up_waits(&mut self, attacher: &CycleRecorder) {
        let CycleThreadState::Cyclic(cyclic) = &self.state else { return };
        let mut places: Vec<u64> = cyclic.unclear.iter().map(|site| site.call.place).collect();
        places.sort_unstable();
        places.dedup();
        self.worst_cycles.keep_waits(self.tid, &places, attacher);
    }

    /// Why it is not clear which of its waits begins its cycles.
    fn unclear_findings(&self, cyclic: &Cyclic, subject: &str, calls: &CallNames) -> Vec<Finding> {
        let call = cyclic.inferred.site.call;
        let name = calls.get(&call.number).map_or("a system call", String::as_str);
        let (sites, lines) = (&cyclic.unclear, self.worst_cycles.wait_places());
        let differ = sites.iter().any(|site| site.call.place != call.place);
        let words = match sites.len() {
            0 => None,
            _ if cyclic.has_moved => {
                let first = lines.first().map_or("one place", String::as_str);
                Some(format!("waits in {name} at {first} first, and then elsewhere"))
            }
            1 => Some(format!("waits in {name} several times in each period, at one place")),
            n if differ && lines.len() > 1 => {
                Some(format!("waits in {name} at {n} places ({})", lines.join(", ")))
            }
            n if differ => Some(format!("waits in {name} at {n} places")),
            n => Some(format!("waits in {name} for {n} things")),
        };
        let odd = cyclic.follower.odd_waits();
        let odd = (odd > 0).then(|| findings::odd_waits(subject, &cyclic.wait, odd));
        words
            .map(|words| findings::period_unclear(subject, &words))
            .into_iter()
            .chain(odd)
            .collect()
    }

    /// The description of its response times in the bundle.
    pub(crate) fn response_meta(&self) -> Option<&SeriesMeta> {
        self.series_of_kind(SeriesKind::Response).map(|series| &series.kept.meta)
    }

    /// Response times since the last call.
    pub fn take_worst(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.worst)
    }

    /// A response time above the limit, with its series.
    pub(crate) fn response_above_limit(&self) -> Option<(String, Nanos)> {
        let longest = self.as_cyclic()?.above?;
        let name = &self.response_meta()?.name;
        Some((format!("{}/{name}", self.phase), longest))
    }

    pub fn checkpoint(&mut self, calls: &CallNames) {
        if let CycleThreadState::Cyclic(cyclic) = &mut self.state {
            cyclic.series.iter_mut().for_each(CycleSeries::checkpoint);
            self.checkpoints += 1;
            if self.is_live && self.checkpoints.is_multiple_of(REREAD) {
                self.practice.refresh_facts(self.tid, &cyclic.inferred, calls);
            }
        }
    }

    /// Adds the last cycle and saves everything durably.
    pub fn finish(&mut self, lost: u64) {
        let CycleThreadState::Cyclic(cyclic) = &mut self.state else { return };
        if let Some(last) = cyclic.follower.finish() {
            self.add_cycle(&last);
        }
        if let CycleThreadState::Cyclic(cyclic) = &mut self.state {
            cyclic.series.iter_mut().for_each(|series| series.finish(lost));
        }
    }

    /// The thread's series, if it has cycles.
    pub fn all_series(&self) -> &[CycleSeries] {
        self.as_cyclic().map_or(&[], |cyclic| &cyclic.series)
    }

    pub(crate) fn all_series_mut(&mut self) -> &mut [CycleSeries] {
        match &mut self.state {
            CycleThreadState::Cyclic(cyclic) => &mut cyclic.series,
            _ => &mut [],
        }
    }

    /// The thread as a measure of the bundle.
    pub(crate) fn to_measure_meta(&self, calls: &CallNames) -> MeasureMeta {
        let (name, series) = match self.as_cyclic() {
            Some(cyclic) => (
                cyclic.label.clone(),
                cyclic.series.iter().map(|s| s.kept.meta.name.clone()).collect(),
            ),
            None => (self.name.clone(), Vec::new()),
        };
        let parameters = self
            .as_cyclic()
            .map(|cyclic| cycle_details(&cyclic.inferred, &cyclic.wait))
            .unwrap_or_default();
        let notes = self.to_notes(calls);
        MeasureMeta { name, workload: WORKLOAD.to_owned(), parameters, series, notes }
    }

    fn to_notes(&self, calls: &CallNames) -> Notes {
        if self.cycles == 0 {
            return Notes::default();
        }
        let per_cycle = |name: &str, title: &str, total: u64| {
            Figure::new(name, title, total as f64 / self.cycles as f64, "per-cycle")
                .with_count(total)
        };
        let count = |name: &str, title: &str, n: u64| {
            Figure::new(name, title, n as f64, "count").with_count(self.cycles)
        };
        let totals = &self.totals;
        let mut figures = vec![
            count("skipped-releases", "releases without a cycle of their own", self.skipped),
            count(
                "overruns",
                "releases that passed while the previous cycle was still running",
                self.overrun_count(),
            ),
            per_cycle("blockings", "waits within a cycle", totals.blocks),
            Figure::new(
                "blocked-time",
                "time of these waits",
                totals.blocked.ns() as f64 / self.cycles as f64,
                "ns",
            )
            .with_count(totals.blocks),
            per_cycle("system-calls", "system calls", totals.syscalls),
            per_cycle("page-faults", "page faults", totals.faults),
            per_cycle("migrations", "migrations", totals.migrations),
        ];
        if self.unknown > 0 {
            let title = "cycles whose release is not known";
            figures.push(count("unknown-releases", title, self.unknown));
        }
        if let Some(deadline) = self.as_cyclic().and_then(|cyclic| cyclic.deadline) {
            figures.insert(
                2,
                count(
                    "deadline-missed",
                    &format!("cycles longer than {deadline}"),
                    self.cycles_beyond_deadline(),
                ),
            );
        }
        Notes { figures, tables: self.to_tables(calls), ..Notes::default() }
    }

    fn to_tables(&self, calls: &CallNames) -> Vec<Table> {
        let holders = self.holders.to_table();
        let typical = self.typical.typical_cycle();
        let delays = typical.and_then(|one| {
            delays::delay_table(self.worst_cycles.cycles(), &one.total_split(), calls)
        });
        let (typical, worst) = (self.typical.to_table(), self.worst_cycles.to_table());
        let places = self.worst_cycles.places.line_table();
        let folded = self.worst_cycles.places.folded_table();
        let groups = self.culprit_groups.to_table();
        let all_tables =
            [self.culprit_table(), groups, holders, delays, typical, places, worst, folded];
        all_tables.into_iter().flatten().collect()
    }

    /// The tasks that ran while it was ready.
    fn culprit_table(&self) -> Option<Table> {
        let mut sorted_culprits: Vec<(&TaskComm, &TaskDelay)> = self.culprits.iter().collect();
        sorted_culprits.sort_by_key(|(_, delay)| std::cmp::Reverse(delay.total));
        let row = |(name, delay): &(&TaskComm, &TaskDelay)| {
            vec![
                Cell::from(format::escape_unsafe(&name.to_string())),
                id_here(delay.tid).map_or(Cell::Nothing, |tid| Cell::from(u64::from(tid))),
                Cell::from(delay.cycles),
                Cell::from(delay.total),
                Cell::from(delay.longest),
            ]
        };
        (!sorted_culprits.is_empty()).then(|| Table {
            name: "culprits".to_owned(),
            title: "who ran while the thread was ready".to_owned(),
            columns: vec![
                Column::new("task", ""),
                Column::new("tid", "count"),
                Column::new("cycles", "count"),
                Column::new("total", "ns"),
                Column::new("longest", "ns"),
            ],
            rows: sorted_culprits.iter().take(10).map(row).collect(),
        })
    }

    /// The error that prevented a write.
    pub(crate) fn write_error(&self) -> Option<&BundleError> {
        self.as_cyclic()?.series.iter().find_map(|series| series.kept.write_error())
    }

    /// The findings about it.
    pub(crate) fn cycle_findings(&self, calls: &CallNames) -> Vec<Finding> {
        match &self.state {
            CycleThreadState::Cyclic(cyclic) => {
                let subject = format!("{}/{}", self.phase, cyclic.label);
                let beyond = self.cycles_beyond_deadline();
                let missed = (beyond > 0).then(|| {
                    let deadline = cyclic.deadline.unwrap_or_default();
                    let message =
                        format!("{beyond} of {} cycles took longer than {deadline}", self.cycles);
                    Finding::new("deadline-missed", Severity::Warning, subject.clone(), message)
                });
                let callers = self
                    .worst_cycles
                    .frame_pointer_finding(&format!("{}/{}", self.phase, cyclic.label));
                let left_over = self.left_over.map(|span| findings::left_over(&subject, span));
                let unclear = self.unclear_findings(cyclic, &subject, calls);
                missed.into_iter().chain(left_over).chain(callers).chain(unclear).collect()
            }
            CycleThreadState::Learning { .. } | CycleThreadState::Unwanted => Vec::new(),
            CycleThreadState::Other { seen, waits } => {
                let message = format!(
                    "thread {} has no cycles: {}",
                    self.tid,
                    describe_waits(seen, *waits, calls)
                );
                vec![Finding::new(
                    "no-cycles",
                    Severity::Note,
                    format!("{}/{}", self.phase, self.name),
                    message,
                )]
            }
        }
    }

    /// Whether the thread has cycles and a real-time policy.
    pub fn is_real_time(&self) -> bool {
        self.as_cyclic().is_some() && self.practice.is_real_time()
    }

    /// Where the thread's cycles deviate from good practice for real-time programs.
    pub(crate) fn lint_practice(
        &mut self,
        others_are: bool,
        host: &HostFacts,
        calls: &CallNames,
    ) -> Vec<Finding> {
        let practice = std::mem::take(&mut self.practice);
        let Some(cyclic) = self.as_cyclic() else { return Vec::new() };
        let culprits_behind = self.culprits.iter().filter(|(_, delay)| delay.behind > Nanos::ZERO);
        let mut culprits: Vec<(String, Nanos)> =
            culprits_behind.map(|(name, delay)| (name.to_string(), delay.behind)).collect();
        culprits.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let (kind, has_deadline) = (cyclic.inferred.kind, cyclic.deadline.is_some());
        let subject = format!("{}/{}", self.phase, cyclic.label);
        let mut lint_findings =
            practice.into_findings(&subject, kind, has_deadline, others_are, host, &culprits);
        self.worst_cycles.places.locate_findings(&mut lint_findings, calls);
        lint_findings
    }

    /// The thread's line in the live view, if it has cycles.
    pub fn to_row(&self) -> Option<ThreadRow> {
        let cyclic = self.as_cyclic()?;
        Some(ThreadRow {
            name: cyclic.label.clone(),
            kind: cyclic.inferred.kind.as_str(),
            cycles: self.cycles,
            last: self.last,
            worst: self.longest_response(),
            skipped: self.skipped,
            overruns: self.overrun_count(),
        })
    }

    fn longest_response(&self) -> Option<Nanos> {
        self.series_of_kind(SeriesKind::Response)?.kept.state.data.longest_latency()
    }

    /// A series of the thread, if it has cycles.
    pub(crate) fn series_of_kind(&self, kind: SeriesKind) -> Option<&CycleSeries> {
        self.all_series().iter().find(|series| series.kind == kind)
    }

    /// Releases that passed during the cycle before.
    pub fn overrun_count(&self) -> u64 {
        let open = self.as_cyclic().and_then(|cyclic| cyclic.open);
        self.overruns + u64::from(open.is_some_and(|open| open.passed > 0))
    }

    /// Records that it ended under this name.
    pub(crate) fn ended_as(&mut self, name: TaskComm) {
        let name = name.to_string();
        if self.label().is_none() && !name.is_empty() {
            self.name = name;
        }
        self.is_over = true;
    }

    /// Cycles longer than the deadline, if there is one.
    pub(crate) fn missed_deadlines(&self) -> Option<u64> {
        self.as_cyclic()?.deadline.map(|_| self.cycles_beyond_deadline())
    }

    fn cycles_beyond_deadline(&self) -> u64 {
        self.beyond + u64::from(self.as_cyclic().is_some_and(Cyclic::is_beyond))
    }

    /// Why the thread has no cycles.
    pub fn why_not(&self, calls: &CallNames) -> Option<String> {
        match &self.state {
            CycleThreadState::Other { seen, waits } => Some(format!(
                "{} ({}): {}",
                self.name,
                self.tid,
                describe_waits(seen, *waits, calls)
            )),
            CycleThreadState::Unwanted => {
                Some(format!("{} ({}): cycles, under this name", self.name, self.tid))
            }
            CycleThreadState::Cyclic(_) | CycleThreadState::Learning { .. } => None,
        }
    }

    /// A description of its cycles for users.
    pub(crate) fn describe_cycles(&self) -> Option<String> {
        let cyclic = self.as_cyclic()?;
        let inferred = &cyclic.inferred;
        let period = inferred
            .period
            .map_or(String::new(), |period| format!(", every {}", period.to_readable()));
        // Events have no distance that they could fit.
        let fits = match inferred.kind == CycleKind::Event && inferred.period.is_none() {
            true => format!("its first {}", inferred.cycles),
            false => {
                format!(
                    "{} of its first {}",
                    format::percent_text(inferred.confidence),
                    inferred.cycles
                )
            }
        };
        let (label, tid, release) = (&cyclic.label, self.tid, inferred.kind.release_description());
        Some(format!("{label} ({tid}): {release}{period}\n    {}, in {fits} cycles", cyclic.wait))
    }
}

/// Describes the waits that were seen instead of cycles.
fn describe_waits(seen: &[CandidateWait], waits: usize, calls: &CallNames) -> String {
    let one = |candidate: &CandidateWait| {
        let (of, lock) = (&candidate.inferred, if candidate.lock { ", for locks" } else { "" });
        let fits = match of.kind {
            CycleKind::Event => String::new(),
            _ => format!(", {} of them at equal distances", format::percent_text(of.confidence)),
        };
        format!(
            "{} in {}{lock}{fits}",
            format::count_with_noun(of.cycles as u64, "wait"),
            of.site.describe_site(calls)
        )
    };
    match (seen.is_empty(), waits) {
        (true, _) => "it never waited".to_owned(),
        (false, _) => seen.iter().take(3).map(one).collect::<Vec<_>>().join("; "),
    }
}

/// A label that no other thread has.
pub(crate) fn unique_label(name: &str, taken: &[String]) -> String {
    let name = name.replace('/', "_");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = std::iter::once(name.clone()).chain(numbered);
    candidates.find(|label| !taken.contains(label)).unwrap_or(name)
}

fn cycle_details(inferred: &Inferred, wait: &str) -> BTreeMap<String, String> {
    let mut details = BTreeMap::from([
        ("cycle".to_owned(), inferred.kind.as_str().to_owned()),
        ("confidence".to_owned(), format!("{:.3}", inferred.confidence)),
        ("inferred_from".to_owned(), format!("{} cycles", inferred.cycles)),
        ("wait".to_owned(), wait.to_owned()),
    ]);
    details.extend(inferred.period.map(|period| ("period".to_owned(), period.to_string())));
    details
}

fn series_meta(
    label: &str,
    kind: SeriesKind,
    (tid, facts): (i32, &CycleThreadFacts),
    inferred: &Inferred,
    wait: &str,
    options: &CycleOptions,
) -> SeriesMeta {
    let (words, real_time) = (facts.scheduling.clone(), facts.real_time);
    let mut details = cycle_details(inferred, wait);
    details.extend(options.details.clone());
    let deadline = options.deadline.filter(|_| kind == SeriesKind::Response);
    details.extend(deadline.map(|deadline| (DEADLINE.to_owned(), deadline.to_string())));
    // The scheduling that the program requests.
    details.insert(REQUESTED_SCHEDULING.to_owned(), words.clone());
    let requirements = options.requirements.iter().filter(|of| of.is_about(label, kind));
    let has_period =
        inferred.kind.is_periodic() && matches!(kind, SeriesKind::Wakeup | SeriesKind::Response);
    SeriesMeta {
        name: format!("{label}/{}", kind.as_str()),
        measure: label.to_owned(),
        workload: WORKLOAD.to_owned(),
        clock: Clock::Monotonic,
        cpus: facts.cpus.clone(),
        scheduling: words,
        real_time,
        period: inferred.period.filter(|_| has_period),
        tid: Some(tid),
        requirements: requirements.map(|of| of.requirement.to_string()).collect(),
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::saver::Saver;
    use punctual_bundle::{BundleWriter, PhaseMeta};

    /// A thread whose cycles of 1 ms are known, with `lost` of them lost before.
    fn cyclic(writer: &BundleWriter, lost: u64) -> CycleThread {
        let recorder = testing::empty_recorder();
        let calls = CallNames::from([(1, "clock_nanosleep".to_owned())]);
        let mut thread = CycleThread::new(7, &recorder, "main");
        let mut recent = RecentSums::default();
        thread.count_lost(lost);
        (0..30).for_each(|k| thread.push(testing::cycle_at(k * 1_000_000), &mut recent));
        let inferred = thread.infer_cycles(None, None, &calls, &recorder, true).flatten();
        let place = SeriesPlace {
            phase: writer.phase_place(0),
            saver: &Saver::on_caller(),
            next: &mut 0,
            taken: &[],
            keep: 100,
            forever: false,
        };
        let options = CycleOptions::default();
        let known = (&calls, recorder.thread_facts(7));
        let waits = thread.begin_series("loop", inferred.expect("cycles"), &place, &options, known);
        waits.into_iter().for_each(|wait| thread.push(wait, &mut recent));
        thread
    }

    /// Each of its series lacks a sample for each lost cycle, whenever that was counted.
    #[test]
    fn lost_cycles_are_losses_of_all_series_of_their_thread() {
        let place = tempfile::tempdir().expect("a directory");
        let writer = BundleWriter::create(&place.path().join("b"), "b", "run").expect("a bundle");
        let phase = PhaseMeta::new("main", jiff::Timestamp::UNIX_EPOCH);
        writer.write_phase(0, &phase).expect("written");
        let mut thread = cyclic(&writer, 4);
        // All that were lost until then, not those since the last count.
        [9, 12, 12].into_iter().for_each(|lost| thread.count_lost(lost));
        thread.finish(12);
        assert_eq!(thread.lost, 12);
        for series in thread.all_series() {
            let losses = &series.kept.state.data.losses;
            let name = &series.kept.meta.name;
            assert_eq!((losses.dropped, losses.lost_records), (12, 12), "{name}");
            let samples = if series.kind == SeriesKind::Period { 29 } else { 30 };
            assert_eq!(losses.recorded, samples, "{name}");
        }
    }

    #[test]
    fn thread_labels_are_unique_and_contain_no_slash() {
        let taken = ["loop".to_owned(), "loop-2".to_owned()];
        assert_eq!(unique_label("loop", &taken), "loop-3");
        assert_eq!(unique_label("kworker/0:1", &taken), "kworker_0:1");
    }
}
