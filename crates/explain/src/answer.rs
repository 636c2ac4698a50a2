//! The answer of a run: the figure that decided it, and the causes of delay. The report writes the
//! sentences.
//!
//! Reading order: [`find_deciding`] chooses the series and its figure, [`find_delays`] what delayed
//! its late samples: from their explanations where there are any, else, or where those leave much
//! open, from the accounting of every sample, else from the entries into the kernel.

use crate::explain::{Cause, Culprit, Part, Ranking, rank_culprits};
use crate::incidents::{LateCycle, group_incidents};
use crate::{Explained, Explanations};
use punctual_bundle::Reason;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, ENTRIES_WORKLOAD, MeasureMeta, is_latency};
use punctual_bundle::summary::{
    AccountSummary, PhaseSummary, RequirementSummary, SeriesSummary, Summary, VerdictWord,
};
use punctual_core::cycle::CycleKind;
use punctual_core::entry::EntryKind;
use punctual_core::event::{Futex, MomentSource};
use punctual_core::{
    BoundComparison, CauseKind, Cell, Event, EventKind, MAIN_PARTS, Metric, Names, Nanos, PLACES,
    Requirement, Table,
};

/// The figure that decided, or the most significant one without requirements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deciding<'s> {
    pub phase: &'s PhaseSummary,
    pub series: &'s SeriesSummary,
    pub metric: Metric,
    /// The value in ns or as a count.
    pub value: f64,
    /// The requirement that it was compared with.
    pub requirement: Option<Requirement>,
    pub beyond: Option<u64>,
}

impl Deciding<'_> {
    /// The latency from which samples are late, if latencies have a bound.
    pub(crate) fn late_from(&self) -> Option<Nanos> {
        let bounds_latency = |of: &Requirement| {
            let bounded =
                matches!(of.comparison, BoundComparison::Less | BoundComparison::LessOrEqual);
            of.metric.is_time() && bounded
        };
        self.requirement.filter(bounds_latency).map(|of| Nanos(of.bound))
    }
}

/// The figure that decided a run: that of the sample that stopped it, else of the most violated
/// requirement, else of the one nearest to its bound. Without requirements, the largest latency of
/// the most relevant threads. `None` if nothing was measured.
pub fn find_deciding(summary: &Summary) -> Option<Deciding<'_>> {
    deciding_stop(summary)
        .or_else(|| deciding_requirement(summary))
        .or_else(|| deciding_maximum(summary))
}

/// The series of this full name, with its phase.
fn series_at<'s>(
    summary: &'s Summary,
    place: &str,
) -> Option<(&'s PhaseSummary, &'s SeriesSummary)> {
    summary.phases.iter().find_map(|phase| {
        let name = place.strip_prefix(&phase.name)?.strip_prefix('/')?;
        phase.series.iter().find(|series| series.name == name).map(|series| (phase, series))
    })
}

fn deciding_stop(summary: &Summary) -> Option<Deciding<'_>> {
    summary.verdict.reasons.iter().find_map(|reason| {
        let Reason::StopAbove { series, latency, limit, .. } = reason else { return None };
        let (phase, series) = series_at(summary, series)?;
        let (metric, comparison) = (Metric::Max, BoundComparison::LessOrEqual);
        let requirement = limit.map(|bound| Requirement { metric, comparison, bound });
        Some(Deciding { phase, series, metric, value: *latency as f64, requirement, beyond: None })
    })
}

/// Prefers times over counts, then the farthest beyond its bound or nearest to it.
fn deciding_requirement(summary: &Summary) -> Option<Deciding<'_>> {
    let word = summary.verdict.word?;
    let mut best: Option<((u8, bool, f64), Deciding<'_>)> = None;
    for phase in &summary.phases {
        for series in &phase.series {
            for held in &series.requirements {
                let Some((weight, found)) = weigh_requirement(phase, series, held, word) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(most, _)| weight > *most) {
                    best = Some((weight, found));
                }
            }
        }
    }
    best.map(|(_, found)| found)
}

fn weigh_requirement<'s>(
    phase: &'s PhaseSummary,
    series: &'s SeriesSummary,
    held: &RequirementSummary,
    word: VerdictWord,
) -> Option<((u8, bool, f64), Deciding<'s>)> {
    let requirement: Requirement = held.requirement.parse().ok()?;
    let value = held.figure?;
    let bound = requirement.bound as f64;
    let ratio = match requirement.comparison {
        BoundComparison::Greater | BoundComparison::GreaterOrEqual => bound / value.max(1.0),
        _ => value / bound.max(1.0),
    };
    // The verdict may be of something else: then the gravest requirement counts.
    let gravity = if held.verdict == word { u8::MAX } else { held.verdict.gravity_rank() };
    let Requirement { metric, .. } = requirement;
    let (requirement, beyond) = (Some(requirement), held.beyond);
    let found = Deciding { phase, series, metric, value, requirement, beyond };
    Some(((gravity, metric.is_time(), ratio), found))
}

/// The largest latency of the most relevant threads.
fn deciding_maximum(summary: &Summary) -> Option<Deciding<'_>> {
    let latency_series = summary
        .phases
        .iter()
        .flat_map(|phase| phase.series.iter().map(move |series| (phase, series)))
        .filter(|(_, series)| is_latency(&series.workload, &series.name));
    let (phase, series, max) = latency_series
        .filter_map(|(phase, series)| Some((phase, series, series.max?)))
        .max_by_key(|(_, series, max)| (thread_relevance(series), *max))?;
    let (metric, value) = (Metric::Max, max as f64);
    Some(Deciding { phase, series, metric, value, requirement: None, beyond: None })
}

/// The relevance of a thread: highest for a real-time thread, lowest for one that only waits for
/// others, as for a user.
pub fn thread_relevance(series: &SeriesSummary) -> u8 {
    let waits =
        series.parameters.get("cycle").is_some_and(|kind| kind == CycleKind::Event.as_str());
    match (series.real_time, waits) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    }
}

/// The causes of the late samples of a series.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Delayed {
    /// The name of that series, if it is not the one that decided but another of its phase.
    pub series: Option<String>,
    /// The number of late samples divided by cause.
    pub samples: u64,
    /// The number of incidents; `None` if the relation of the samples is unknown.
    pub incidents: Option<u64>,
    pub from: Nanos,
    /// The largest share first.
    pub causes: Vec<Blame>,
    /// The share of the time that recorded events leave open, where the division made in the kernel
    /// is shown instead of theirs.
    pub left_open: Option<f64>,
}

impl Delayed {
    /// Of these samples, from a table.
    fn from_causes(samples: u64, from: Nanos, causes: Vec<Blame>) -> Delayed {
        Delayed { samples, from, causes, ..Delayed::default() }
    }

    /// The share of the time that is not attributed.
    fn unattributed_share(&self) -> f64 {
        let is = |blame: &&Blame| {
            matches!(blame.what, Blamed::Cause(Cause::Unknown) | Blamed::Kind(CauseKind::Unknown))
        };
        self.causes.iter().filter(is).map(|blame| blame.share).sum()
    }
}

/// A cause with its culprit and the properties that remedies depend on.
#[derive(Clone, PartialEq, Debug)]
pub struct Blame {
    pub what: Blamed,
    /// The task, holder, interrupt or device. Untrusted.
    pub who: Option<String>,
    /// The share of the time, 0 to 1.
    pub share: f64,
    /// Whether the holder of the lock is known to have a lower priority than the delayed thread.
    pub is_held_below: bool,
    /// Whether the lock inherits priorities, if the calls that waited for it show that.
    pub inherits: Option<bool>,
    /// The priority of that task, as the kernel's `prio`.
    pub prio: Option<i16>,
    /// Its longest time in one sample, if events show it.
    pub longest: Option<Nanos>,
    /// The rank of the delayed thread for the scheduler: 0 without a real-time policy, the highest
    /// number for SCHED_DEADLINE.
    pub rank: Option<u32>,
    /// The line of the program at which most of it was. Untrusted.
    pub at: Option<String>,
    /// The task that ended most of these sleeps, and at which line of its own. Untrusted.
    pub ended_by: Option<String>,
    /// What the holder of the lock mostly did meanwhile. Untrusted.
    pub holder: Option<String>,
}

impl Blame {
    /// A cause of which only this is known.
    pub fn new(what: Blamed, who: Option<String>, share: f64) -> Blame {
        Blame {
            what,
            who,
            share,
            is_held_below: false,
            inherits: None,
            prio: None,
            longest: None,
            rank: None,
            at: None,
            ended_by: None,
            holder: None,
        }
    }
}

/// The cause of the time.
#[derive(Clone, PartialEq, Debug)]
pub enum Blamed {
    /// A cause proven by events.
    Cause(Cause),
    /// A kind of the accounting.
    Kind(CauseKind),
    /// An entry of a CPU into the kernel, by name.
    Entry {
        /// The id of its kind.
        kind: String,
        words: String,
    },
}

/// Causes with a smaller share are not named.
const WORTH: f64 = 0.01;

/// Where events leave more of the time open, and the kernel's division at most half of that, the
/// latter is shown.
const LEFT_OPEN: f64 = 0.05;

/// The causes of delay of the moments that a trace marks, of the deciding series, else of a
/// substitute ([`stand_ins`]); `None` if nothing recorded shows them.
pub fn find_delays(deciding: &Deciding<'_>, explained: Option<&Explanations>) -> Option<Delayed> {
    let mut delayed = divide_delays(deciding, explained)?;
    let series_named =
        |name: &String| deciding.phase.series.iter().find(|series| series.name == *name);
    // Delays of another thread have the lines of that thread.
    let series = match &delayed.series {
        Some(other) => series_named(other),
        None => Some(deciding.series),
    };
    if let Some(measure) = series.and_then(|series| measure_of(deciding.phase, series)) {
        locate_causes(&mut delayed.causes, measure);
    }
    Some(delayed)
}

fn measure_of<'s>(phase: &'s PhaseSummary, series: &SeriesSummary) -> Option<&'s MeasureMeta> {
    phase.measures.iter().find(|of| !of.name.is_empty() && of.name == series.measure)
}

/// Adds the line of the program to each delay, as far as the stacks of the thread show it.
fn locate_causes(causes: &mut [Blame], measure: &MeasureMeta) {
    let Some(table) = measure.notes.tables.iter().find(|table| table.name == PLACES) else {
        return;
    };
    let [what, line, stacks, in_longest] =
        ["what", "line", "stacks", "in longest cycles"].map(|name| column_index(table, name));
    let (Some(what), Some(line), Some(stacks), Some(in_longest)) = (what, line, stacks, in_longest)
    else {
        return;
    };
    let number = |row: &[Cell], place: usize| match row.get(place) {
        Some(Cell::Number(number)) if number.is_finite() => *number as u64,
        _ => 0,
    };
    let owned = |row: &[Cell], place: usize| cell_text(row, place).map(str::to_owned);
    for blame in causes {
        let kind = match &blame.what {
            Blamed::Cause(cause) => cause.kind(),
            Blamed::Kind(kind) => *kind,
            Blamed::Entry { .. } => continue,
        };
        let words = match kind {
            CauseKind::PriorityInversion => CauseKind::Lock.words(),
            CauseKind::Preempted | CauseKind::Runqueue => "preempted",
            kind => kind.words(),
        };
        let rows = table.rows.iter().filter(|row| cell_text(row, what) == Some(words));
        let main_row = rows.max_by_key(|row| (number(row, in_longest), number(row, stacks)));
        if let Some(row) = main_row {
            let cell_of =
                |name: &str| column_index(table, name).and_then(|place| owned(row, place));
            blame.at = owned(row, line);
            blame.ended_by = cell_of("mostly ended by");
            blame.holder = cell_of("holder meanwhile");
        }
    }
}

fn divide_delays(deciding: &Deciding<'_>, explained: Option<&Explanations>) -> Option<Delayed> {
    if let Some(marked) = explained.and_then(|all| of_marked(deciding, all)) {
        return Some(marked);
    }
    let of_events = explained.and_then(|all| of_own_explanations(deciding, all));
    let left_open =
        of_events.as_ref().map(Delayed::unattributed_share).filter(|open| *open > LEFT_OPEN);
    let of_kernel = of_account(deciding);
    let stands =
        |kernel: &Delayed| left_open.is_some_and(|of| 2.0 * kernel.unattributed_share() <= of);
    match of_kernel {
        Some(kernel) if stands(&kernel) => Some(Delayed { left_open, ..kernel }),
        of_kernel => of_events.or(of_kernel),
    }
    .or_else(|| of_entries(deciding))
    .or_else(|| of_stand_in(deciding, explained?))
}

/// The substitutes for a deciding series without known causes: other, equally relevant latencies of
/// its phase. None if the series has a bound, as the answer is then about that series only.
pub fn stand_ins<'s>(deciding: &Deciding<'s>) -> impl Iterator<Item = &'s SeriesSummary> {
    let Deciding { phase, series, requirement, .. } = *deciding;
    let other_series = phase.series.iter().filter(move |_| requirement.is_none());
    other_series.filter(move |other| {
        other.name != series.name
            && is_latency(&other.workload, &other.name)
            && thread_relevance(other) == thread_relevance(series)
    })
}

/// Whether two series are of one thread: the measure of an attached program is a thread, that of a
/// workload may have many.
pub fn is_same_thread(one: &SeriesSummary, other: &SeriesSummary) -> bool {
    one.name == other.name
        || (one.workload == ATTACHED_WORKLOAD
            && other.workload == ATTACHED_WORKLOAD
            && one.measure == other.measure)
}

/// The explained samples of the deciding series, else of another one of its thread.
fn samples_of<'e>(deciding: &Deciding<'_>, all: &'e Explanations) -> Vec<&'e Explained> {
    let explained_of = |series: &SeriesSummary| -> Vec<&'e Explained> {
        let is = |one: &&Explained| one.phase == deciding.phase.name && one.series == series.name;
        all.samples.iter().filter(is).collect()
    };
    let own_samples = explained_of(deciding.series);
    if !own_samples.is_empty() {
        return own_samples;
    }
    let all_series = deciding.phase.series.iter();
    let mut thread_series = all_series.filter(|series| is_same_thread(series, deciding.series));
    thread_series
        .find_map(|series| Some(explained_of(series)).filter(|of| !of.is_empty()))
        .unwrap_or_default()
}

fn of_own_explanations(deciding: &Deciding<'_>, all: &Explanations) -> Option<Delayed> {
    let mut late = samples_of(deciding, all);
    if let Some(from) = deciding.late_from() {
        let beyond = |one: &&Explained| one.explanation.latency() >= from;
        if late.iter().any(beyond) {
            late.retain(beyond);
        }
    }
    of_explanations(deciding.series, &late, all)
}

/// The moments that a trace points at itself: it was recorded for these, and not for all cycles.
fn of_marked(deciding: &Deciding<'_>, all: &Explanations) -> Option<Delayed> {
    let source = |one: &Explained| one.explanation.moment.as_ref().map(|moment| moment.source);
    let is_marked = |one: &&Explained| source(one).is_some_and(MomentSource::is_marked);
    let first = all.samples.iter().find(is_marked)?;
    let same = all.samples.iter().filter(|one| source(one) == source(first));
    let late: Vec<&Explained> = same.filter(|one| one.series == first.series).collect();
    let delayed = of_explanations(deciding.series, &late, all)?;
    Some(Delayed { series: Some(first.series.clone()), ..delayed })
}

/// The explained samples of the series with the longest one.
fn of_stand_in(deciding: &Deciding<'_>, all: &Explanations) -> Option<Delayed> {
    let explained_of = |series: &SeriesSummary| -> Vec<&Explained> {
        let is = |one: &&Explained| one.phase == deciding.phase.name && one.series == series.name;
        all.samples.iter().filter(is).collect()
    };
    let longest = |late: &[&Explained]| late.iter().map(|one| one.explanation.latency()).max();
    let explained = stand_ins(deciding).map(|series| (series, explained_of(series)));
    let (series, late) = explained.max_by_key(|(_, late)| longest(late))?;
    let delayed = of_explanations(series, &late, all)?;
    Some(Delayed { series: Some(series.name.clone()), ..delayed })
}

/// The causes of these late samples of a series.
fn of_explanations(
    series: &SeriesSummary,
    late: &[&Explained],
    all: &Explanations,
) -> Option<Delayed> {
    let groups = incidents_of(late);
    let firsts = groups.iter().filter_map(|group| Some(&late.get(*group.first()?)?.explanation));
    let ranking = rank_culprits(firsts, &all.names, Nanos::ZERO);
    let own_rank = rank_of_scheduling(&series.scheduling);
    let causes = collect_blames(&ranking, late, own_rank, &all.names).into_iter();
    let causes = causes.filter(|blame| blame.share >= WORTH);
    let from = late.iter().map(|one| one.explanation.latency()).min()?;
    Some(Delayed {
        series: None,
        samples: late.len() as u64,
        incidents: Some(groups.len() as u64),
        from,
        causes: causes.collect(),
        left_open: None,
    })
    .filter(|delayed| !delayed.causes.is_empty())
}

/// Groups explained samples of one series into incidents. Intervals that are not samples of a run
/// may overlap for any reason: each is its own incident.
pub fn incidents_of(samples: &[&Explained]) -> Vec<Vec<usize>> {
    if samples.iter().any(|one| one.phase.is_empty()) {
        return (0..samples.len()).map(|place| vec![place]).collect();
    }
    let cycle = |one: &&Explained| {
        let interval = one.explanation.interval;
        LateCycle { released: interval.due, ended: interval.woke }
    };
    group_incidents(&samples.iter().map(cycle).collect::<Vec<_>>())
}

/// The first sample of each incident, in the given order.
pub fn first_of_each(all: &[Explained]) -> Vec<&Explained> {
    let mut firsts = Vec::new();
    for series in all.chunk_by(|a, b| (&a.phase, &a.series) == (&b.phase, &b.series)) {
        let samples: Vec<&Explained> = series.iter().collect();
        let mut places: Vec<usize> =
            incidents_of(&samples).iter().filter_map(|group| group.first().copied()).collect();
        places.sort_unstable();
        firsts.extend(places.into_iter().filter_map(|place| samples.get(place).copied()));
    }
    firsts
}

/// The culprits of a ranking of these samples, in its order. `own`: the rank of their thread; by
/// default that of the only thread among them.
pub fn collect_blames(
    ranking: &Ranking,
    samples: &[&Explained],
    own: Option<u32>,
    names: &Names,
) -> Vec<Blame> {
    let mut ranks: Vec<Option<u32>> =
        samples.iter().map(|one| rank_of_thread(one, names)).collect();
    ranks.dedup();
    let own_rank = own.or(if let [only] = ranks[..] { only } else { None });
    let blame = |culprit: &Culprit| Blame {
        is_held_below: is_held_below(culprit, own_rank, names),
        inherits: lock_inheritance(culprit, samples, names),
        prio: culprit.prio,
        longest: Some(culprit.longest),
        rank: own_rank,
        ..Blame::new(Blamed::Cause(culprit.cause), culprit.who.clone(), culprit.share)
    };
    ranking.culprits.iter().map(blame).collect()
}

fn rank_of_thread(sample: &Explained, names: &Names) -> Option<u32> {
    let task = names.tasks.get(&sample.explanation.interval.tid)?;
    rank_of_scheduling(task.scheduling.as_deref()?)
}

/// Whether the lock inherits priorities, by the futex calls in the evidence of the waits for it.
fn lock_inheritance(culprit: &Culprit, samples: &[&Explained], names: &Names) -> Option<bool> {
    if !matches!(culprit.cause, Cause::Lock { kernel: false, .. } | Cause::Inversion { .. }) {
        return None;
    }
    let (id, who) = (culprit.cause.id(), &culprit.who);
    let is_its = |part: &&Part| part.cause.id() == id && part.cause.culprit_name(names) == *who;
    let inheriting = |event: &Event| match event.what {
        EventKind::FutexEnter { op: Futex::LockPi, .. } => Some(true),
        EventKind::FutexEnter { op: Futex::Wait, .. } => Some(false),
        _ => None,
    };
    let calls = samples.iter().flat_map(|one| {
        let parts = one.explanation.parts.iter().filter(is_its);
        parts.flat_map(|part| &part.evidence).filter_map(|place| one.events.get(*place))
    });
    calls.filter_map(inheriting).reduce(|all, one| all && one)
}

/// Whether the holder of the lock has a lower priority than a thread of rank `own`.
fn is_held_below(culprit: &Culprit, own: Option<u32>, names: &Names) -> bool {
    let holder = match culprit.cause {
        Cause::Lock { holder: Some(holder), .. } => holder,
        Cause::Inversion { .. } => return true,
        _ => return false,
    };
    let scheduling = names.tasks.get(&holder).and_then(|task| task.scheduling.as_deref());
    let rank = culprit.prio.map(rank_of_prio).or_else(|| rank_of_scheduling(scheduling?));
    rank.zip(own).is_some_and(|(holder, own)| holder < own)
}

/// A higher rank precedes in the scheduler; time-sharing policies have 0. `None`: unknown.
fn rank_of_scheduling(words: &str) -> Option<u32> {
    let (policy, rest) = words.split_once(' ').unwrap_or((words, ""));
    match policy {
        "SCHED_DEADLINE" => Some(u32::MAX),
        "SCHED_FIFO" | "SCHED_RR" => rest.trim().parse().ok(),
        "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE" | "time-sharing" => Some(0),
        // In a trace, which has priorities only.
        "real-time" => rest.trim().strip_prefix("priority ")?.parse().ok(),
        _ => None,
    }
}

/// The same from the kernel's `prio`.
fn rank_of_prio(prio: i16) -> u32 {
    match prio {
        ..0 => u32::MAX,
        0..100 => 99 - prio as u32,
        100.. => 0,
    }
}

/// The causes from the accounting: of the percentile bands that contain the late samples, at least
/// the last band.
fn of_account(deciding: &Deciding<'_>) -> Option<Delayed> {
    let series = deciding.phase.series.iter();
    let of_thread = series.filter(|series| is_same_thread(series, deciding.series));
    let own_account = deciding.series.account.known_value();
    let account: &AccountSummary = own_account
        .or_else(|| of_thread.filter_map(|series| series.account.known_value()).next_back())?;
    let on_time = match (deciding.beyond, deciding.series.count) {
        (Some(beyond), count) if count > 0 => 100.0 * (1.0 - beyond as f64 / count as f64),
        _ => 100.0,
    };
    let last = account.bands.last()?;
    let mut bands = account.bands.iter().filter(|band| band.from >= on_time).peekable();
    let bands: Vec<_> = if bands.peek().is_some() { bands.collect() } else { vec![last] };
    let time = |part: &CauseKind| -> f64 {
        bands.iter().map(|band| band.mean_ns.get(part.id()).unwrap_or(&0.0) * band.count).sum()
    };
    // The causes of the previous cycle explain an overrun.
    let parts = MAIN_PARTS.iter().filter(|part| **part != CauseKind::Overrun);
    let times: Vec<(CauseKind, f64)> = parts.map(|part| (*part, time(part))).collect();
    let total: f64 = times.iter().map(|(_, time)| time).sum();
    let notes = measure_of(deciding.phase, deciding.series);
    let mut causes: Vec<Blame> = times
        .into_iter()
        .filter(|(_, time)| *time > WORTH * total)
        .map(|(part, time)| Blame {
            rank: rank_of_scheduling(&deciding.series.scheduling),
            ..Blame::new(
                Blamed::Kind(part),
                notes.and_then(|notes| find_culprit_name(notes, part)),
                time / total,
            )
        })
        .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let samples = bands.iter().map(|band| band.count.round() as u64).sum();
    let from = Nanos(bands.first().map_or(0, |band| band.low_ns as i64));
    (!causes.is_empty()).then(|| Delayed::from_causes(samples, from, causes))
}

/// The culprit by the tables of a program's thread: in its longest cycles, else in all.
fn find_culprit_name(measure: &MeasureMeta, part: CauseKind) -> Option<String> {
    let table = |name: &str| measure.notes.tables.iter().find(|table| table.name == name);
    let of_longest = table("delays").and_then(|table| {
        let [cause, by] = [column_index(table, "cause")?, column_index(table, "by")?];
        let rows = table.rows.iter();
        let mut rows = rows.filter(|row| cell_text(row, cause) == Some(part.words()));
        rows.find_map(|row| cell_text(row, by))
    });
    let of_all = || {
        let name = match part {
            CauseKind::Lock => "lock-holders",
            CauseKind::Preempted | CauseKind::Runqueue | CauseKind::NonPreemptible => "culprits",
            _ => return None,
        };
        let table = table(name)?;
        cell_text(table.rows.first()?, column_index(table, "task")?)
    };
    let task = of_longest.or_else(of_all);
    let is_for_cpu =
        matches!(part, CauseKind::Preempted | CauseKind::Runqueue | CauseKind::NonPreemptible);
    match table("culprit-groups").filter(|_| is_for_cpu).and_then(largest_group) {
        Some(group) => Some(task.map_or(group.clone(), |task| format!("{group}, mostly {task}"))),
        None => task.map(str::to_owned),
    }
}

/// `docker 3f2a9c1b7d44 (3 tasks)`: the control group whose tasks had the most of the CPU, if
/// there are several in it. One task names itself.
fn largest_group(table: &Table) -> Option<String> {
    let [group, tasks] = [column_index(table, "group")?, column_index(table, "tasks")?];
    let row = table.rows.first()?;
    let Some(Cell::Number(tasks)) = row.get(tasks) else { return None };
    (*tasks >= 2.0).then_some(())?;
    Some(format!("{} ({} tasks)", cell_text(row, group)?, *tasks as u64))
}

fn column_index(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|column| column.name == name)
}

fn cell_text(row: &[Cell], place: usize) -> Option<&str> {
    match row.get(place)? {
        Cell::Text(text) => Some(text),
        Cell::Number(_) | Cell::Nothing => None,
    }
}

/// The causes from a CPU's entries into the kernel, by originator.
fn of_entries(deciding: &Deciding<'_>) -> Option<Delayed> {
    let series = deciding.series;
    if series.workload != ENTRIES_WORKLOAD {
        return None;
    }
    let mut measures = deciding.phase.measures.iter();
    let measure =
        measures.find(|of| of.name == series.measure || of.series.contains(&series.name))?;
    let table = measure.notes.tables.iter().find(|table| table.name == "entries")?;
    let [what, who, total, kind] =
        ["what", "originator", "total", "kind"].map(|name| column_index(table, name));
    let (what, total) = (what?, total?);
    let time = |row: &Vec<Cell>| match row.get(total) {
        Some(Cell::Number(ns)) if ns.is_finite() => ns.max(0.0),
        _ => 0.0,
    };
    // punctual itself is only an answer without any other cause.
    let is_own_row = |row: &&Vec<Cell>| {
        kind.and_then(|kind| cell_text(row, kind)) == Some(EntryKind::Observer.id())
    };
    let mut rows: Vec<&Vec<Cell>> = table.rows.iter().filter(|row| !is_own_row(row)).collect();
    if rows.is_empty() {
        rows = table.rows.iter().collect();
    }
    let sum: f64 = rows.iter().map(|row| time(row)).sum();
    rows.sort_by(|a, b| time(b).total_cmp(&time(a)));
    let blame = |row: &&Vec<Cell>| {
        let share = Some(time(row) / sum).filter(|share| *share >= WORTH)?;
        let text_at = |place: Option<usize>| place.and_then(|place| cell_text(row, place));
        let (kind, words) = (text_at(kind).unwrap_or_default(), text_at(Some(what))?);
        let what = Blamed::Entry { kind: kind.to_owned(), words: words.to_owned() };
        Some(Blame::new(what, text_at(who).map(str::to_owned), share))
    };
    let causes: Vec<Blame> = rows.iter().filter_map(blame).collect();
    let from = Nanos(series.min.unwrap_or_default());
    let samples = series.count;
    (!causes.is_empty()).then(|| Delayed::from_causes(samples, from, causes))
}

#[cfg(test)]
mod tests;
