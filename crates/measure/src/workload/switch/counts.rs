//! Compares the ring's own counts with the kernel's, and reports the indirect cost of switches.

use super::shared_memory::SwitchMemory;
use super::{Leader, SizeLane, monotonic_now, walks};
use crate::stop::Stop;
use crate::workload::clock_cost;
use crate::workload::measurement_loop::Monotonic;
use punctual_core::PerfEvent;
use punctual_core::{
    Bytes, Cell, Column, CpuSet, Fact, Figure, Finding, Notes, Severity, Table, Tolerance,
    Validation,
};
use punctual_record::perf::{PerfCounter, Whom};
use std::io;
use std::sync::atomic::Ordering;

/// Hand-overs that perf counts, after the measured ones, and the maximum time: the ring does not
/// rest meanwhile.
const COUNTED: u64 = 2_000;
const COUNTING: i64 = 20_000_000;
/// The maximum number of tasks that perf counts individually; beyond it there is only the kernel's
/// own count.
const MOST_COUNTED: usize = 64;

/// The leader's work between two counts.
#[derive(Default)]
pub struct SwitchCounts {
    pub rounds: u64,
    pub spare: u64,
    /// The number of the leader's sleeps.
    pub rests: u64,
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
    parks: u64,
    strays: u64,
    own_strays: u64,
    whole: bool,
}

fn sum_slots(shared_memory: &SwitchMemory) -> (u64, u64) {
    let sum = |pick: fn(&super::shared_memory::RingTask) -> u64| {
        shared_memory.task_slots().map(pick).sum()
    };
    (
        sum(|slot| slot.parks.load(Ordering::Relaxed)),
        sum(|slot| slot.strays.load(Ordering::Relaxed)),
    )
}

impl SwitchCounts {
    pub fn new(tasks: usize) -> SwitchCounts {
        SwitchCounts {
            before: vec![(0, 0); tasks],
            after: vec![(0, 0); tasks],
            ..SwitchCounts::default()
        }
    }
    /// Starts counting.
    pub(crate) fn begin_counting(&mut self, shared_memory: &SwitchMemory) {
        (self.rounds, self.spare, self.rests) = (0, 0, 0);
        (self.parks, self.strays) = sum_slots(shared_memory);
        self.own_strays = shared_memory.task_slot(0).strays.load(Ordering::Relaxed);
        self.before
            .iter_mut()
            .zip(shared_memory.task_slots())
            .for_each(|(count, slot)| *count = slot.switch_counts());
    }
    pub(crate) fn end_counting(&mut self, shared_memory: &SwitchMemory) {
        let (parks, strays) = sum_slots(shared_memory);
        (self.parks, self.strays) = (parks - self.parks, strays - self.strays);
        let leader_strays = shared_memory.task_slot(0).strays.load(Ordering::Relaxed);
        self.own_strays = leader_strays - self.own_strays;
        self.after
            .iter_mut()
            .zip(shared_memory.task_slots())
            .for_each(|(count, slot)| *count = slot.switch_counts());
        self.whole = true;
    }
    /// How often the leader yielded its CPU if tasks wait by yielding: once for each turn, and once
    /// for each time that it was not its own.
    pub(crate) fn leaders_yields(&self, tasks: usize) -> u64 {
        if self.whole {
            self.rounds + self.spare / tasks.max(1) as u64 + self.own_strays
        } else {
            0
        }
    }
    /// The kernel's counts, voluntary and involuntary, of all tasks together and of the leader
    /// alone.
    fn kernel_counts(&self) -> Option<[(u64, u64); 2]> {
        let pairs = self
            .before
            .iter()
            .zip(&self.after)
            .map(|(b, a)| (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)));
        let task_counts: Vec<(u64, u64)> = pairs.collect();
        let count_sum = task_counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        task_counts.first().filter(|_| self.whole).map(|leader| [count_sum, *leader])
    }
}

pub(crate) fn collect_notes(leader: &mut Leader) -> Notes {
    // Tasks that wait by yielding let no RCU grace period end on PREEMPT_RT, whose timers expire in
    // a low-priority thread (ktimers); perf_event_open(2) waits for a grace period. From here on
    // they sleep.
    leader.ring.shared_memory.set_parking(true);
    let clock = clock_cost(&Monotonic);
    let reading = clock.median.ns();
    let mut notes = Notes { clock_cost: Fact::Known(clock), ..Notes::default() };
    notes.validations.push(own_counts(leader));
    let segment = count_segment(leader);
    notes.validations.push(segment.validate_switches());
    notes.tables.push(segment.table);
    notes.tables.extend(working_sets(&leader.lanes, reading));
    notes.figures.extend(indirect_costs(&leader.lanes, reading));
    if leader.book.strays > 0 {
        let title = "times that a task got the CPU when it was not its turn";
        notes.figures.push(Figure::new("strays", title, leader.book.strays as f64, "count"));
    }
    let cpus: Vec<String> = leader.ring.places.iter().take(4).map(ToString::to_string).collect();
    let ellipsis = if leader.ring.places.len() > 4 { ", …" } else { "" };
    notes.tables.push(Table {
        name: "places".to_owned(),
        title: "Where the tasks of the ring ran, in their order".to_owned(),
        columns: vec![Column::new("tasks", "count"), Column::new("CPUs", "")],
        rows: vec![vec![
            (leader.ring.places.len() as u64).into(),
            format!("{}{ellipsis}", cpus.join(", ")).into(),
        ]],
    });
    notes.findings.extend(refused_finding(leader));
    notes
}

/// Members whose scheduling was refused. The leader's own refusal is reported by the controller
/// thread.
fn refused_finding(leader: &Leader) -> Option<Finding> {
    let errors = leader
        .ring
        .shared_memory
        .task_slots()
        .skip(1)
        .map(|slot| slot.refused.load(Ordering::Acquire));
    let errors: Vec<i32> = errors.filter(|error| *error != 0).collect();
    let first_error = io::Error::from_raw_os_error(*errors.first()?);
    let message = format!("{} tasks of the ring are not scheduled as requested", errors.len());
    let finding = Finding::new("ring-not-real-time", Severity::Warning, "system", message);
    Some(
        finding
            .with_evidence(format!("sched_setattr: {first_error}"))
            .with_remedy("run as root or raise RLIMIT_RTPRIO, or choose `policy = \"other\"`"),
    )
}

/// If tasks run on several CPUs, one may get its turn before it has slept, which saves a switch
/// that nothing counts.
const FOUND: &str =
    "on several CPUs a task may get its turn before it sleeps, which is not counted";

/// The whole run, by the kernel's counts of each task.
fn own_counts(leader: &Leader) -> Validation {
    let SwitchCounts { rounds, spare, rests, parks, strays, .. } = leader.book;
    let tasks = leader.ring.shared_memory.task_count() as u64;
    let hand_overs = rounds * tasks + spare;
    let claimed = hand_overs + rests + parks;
    let what = "context switches away from the tasks of the ring";
    let source = "getrusage(2) in every task: voluntary and involuntary switches, as in \
                  /proc/PID/task/TID/status";
    let Some([all, own]) = leader.book.kernel_counts() else {
        let unavailable = Fact::Unavailable("the ring ended before its last count".to_owned());
        return Validation::compare_counts(what, claimed, unavailable, source, Tolerance::EXACT);
    };
    // sched_yield(2) counts as an involuntary switch, too: nothing distinguishes it from
    // preemption.
    let yields = leader.ring.handoff.is_yielding();
    let tolerance = Tolerance::EXACT
        .allow_either(2 * strays, "turns out of order, two switches each")
        .allow_fewer(rests + parks, "rests that were over, or ended, before the task slept")
        .allow_more(
            if yields { 0 } else { all.1 },
            "involuntary switches: tasks that were preempted",
        );
    let mut validation =
        Validation::compare_counts(what, claimed, Fact::Known(all.0 + all.1), source, tolerance)
            .with_explanation(format!(
                "one for each of {hand_overs} hand-overs ({rounds} rounds of {tasks} and {spare} \
                 that are not measured), {} for resting; counted {} voluntary and {} involuntary \
                 ones of all tasks, {} of the first task alone",
                rests + parks,
                all.0,
                all.1,
                own.0 + own.1,
            ));
    if yields {
        validation = validation
            .undecided_above("yielding and being preempted are the same to the kernel's count");
    }
    if leader.ring.is_on_one_cpu() { validation } else { validation.undecided_below(FOUND) }
}

/// Some hand-overs while perf counts.
struct SwitchSegment {
    hand_overs: u64,
    strays: u64,
    all: Fact<u64>,
    /// Switches of other tasks on the CPU; `None` if unknown.
    others: Option<u64>,
    one_cpu: bool,
    table: Table,
}

impl SwitchSegment {
    fn validate_switches(&self) -> Validation {
        let what = "context switches in a segment";
        let source = "perf_event_open: software event context-switches, each task of the ring";
        let tolerance = Tolerance::EXACT
            .allow_either(2 * self.strays, "turns out of order, two switches each")
            .allow_more(
                self.others.unwrap_or(0),
                "switches away from other tasks on the CPU, each after a preemption",
            );
        let validation =
            Validation::compare_counts(what, self.hand_overs, self.all.clone(), source, tolerance)
                .with_explanation(
                    "after the measured ones, because perf's hook slows every switch; counting \
                     one task of the ring, or the idle task too, gives another number: see the \
                     table",
                );
        match (self.one_cpu, self.others) {
            (false, _) => validation
                .undecided_below(FOUND)
                .undecided_above("the CPUs' idle tasks cannot be distinguished"),
            (true, None) => {
                validation.undecided_above("other tasks on the CPU could not be counted")
            }
            (true, Some(_)) => validation,
        }
    }
}

fn count_segment(leader: &mut Leader) -> SwitchSegment {
    let ring = std::sync::Arc::clone(&leader.ring);
    let tasks: Vec<i32> =
        ring.shared_memory.task_slots().map(|slot| slot.tid.load(Ordering::Acquire)).collect();
    let cpus = ring.places.iter().fold(CpuSet::new(), |all, one| all.union(one));
    let of_tasks: Result<Vec<PerfCounter>, String> = match tasks.len() {
        many if many > MOST_COUNTED => Err(format!("the ring has more than {MOST_COUNTED} tasks")),
        _ => tasks
            .iter()
            .map(|tid| PerfCounter::open_event(&PerfEvent::CONTEXT_SWITCHES, Whom::Thread(*tid)))
            .collect(),
    };
    let of_cpus: Result<Vec<PerfCounter>, String> = cpus
        .iter()
        .map(|cpu| PerfCounter::open_event(&PerfEvent::CONTEXT_SWITCHES, Whom::Cpu(cpu as u32)))
        .collect();
    let counters = || of_tasks.iter().chain(&of_cpus).flatten();
    let (begin, mut hand_overs) = (monotonic_now(), 0);
    // Independent of the end of the run: this segment is not part of it.
    let woken = |leader: &mut Leader| leader.ring.unpark_members(&Stop::default()).is_ok();
    let mut whole = leader.book.kernel_counts().is_some()
        && woken(leader)
        && leader.spare_round(super::TurnMode::Run).is_ok();
    let strays = sum_slots(&ring.shared_memory).1;
    counters().for_each(PerfCounter::enable);
    while whole && hand_overs < COUNTED && monotonic_now() - begin < COUNTING {
        whole = ring.lead_round().is_ok();
        hand_overs += tasks.len() as u64;
    }
    counters().for_each(PerfCounter::disable);
    ring.shared_memory.set_parking(true);
    let sum = |counters: &[PerfCounter]| -> Result<u64, String> {
        counters.iter().map(|counter| counter.read().map_err(|why| why.to_string())).sum()
    };
    let ended = || Err("the ring ended before".to_owned());
    let sum_of_first = |counters: &Result<Vec<PerfCounter>, String>, first: usize| match counters {
        _ if !whole => ended(),
        Ok(counters) => sum(&counters[..first.min(counters.len())]),
        Err(why) => Err(why.clone()),
    };
    let rows = [
        ("the first task of the ring", sum_of_first(&of_tasks, 1)),
        ("all tasks of the ring", sum_of_first(&of_tasks, usize::MAX)),
        ("everything on their CPUs, the idle tasks included", sum_of_first(&of_cpus, usize::MAX)),
    ];
    let rows = rows.into_iter().map(|(who, counted)| match counted {
        Ok(counted) => {
            let per_hand_over = if hand_overs > 0 {
                Cell::Number(counted as f64 / hand_overs as f64)
            } else {
                Cell::Nothing
            };
            vec![who.into(), counted.into(), per_hand_over]
        }
        Err(why) => vec![format!("{who}: {why}").into(), Cell::Nothing, Cell::Nothing],
    });
    let table = Table {
        name: "switch-counts".to_owned(),
        title: format!("Context switches in {hand_overs} hand-overs, by the counted tasks"),
        columns: vec![
            Column::new("counted", ""),
            Column::new("switches", "count"),
            Column::new("per hand-over", "ratio"),
        ],
        rows: rows.collect(),
    };
    let strays = sum_slots(&ring.shared_memory).1 - strays;
    let one_cpu = ring.is_on_one_cpu();
    let task_switches = sum_of_first(&of_tasks, usize::MAX);
    let everything = sum_of_first(&of_cpus, usize::MAX);
    let other_switches = task_switches
        .as_ref()
        .ok()
        .zip(everything.ok())
        .filter(|_| one_cpu)
        .map(|(all, every)| every.saturating_sub(*all));
    SwitchSegment {
        hand_overs,
        strays,
        all: Fact::from(task_switches),
        others: other_switches,
        one_cpu,
        table,
    }
}

/// The indirect cost of each working set, with its interval, whether it is resolved or not.
fn indirect_costs(lanes: &[SizeLane], clock: i64) -> Vec<Figure> {
    let figure = |lane: &SizeLane| {
        let cost = walks::estimate_indirect(&lane.walks, clock).filter(|_| lane.size > 0)?;
        let size = Bytes(lane.size as u64);
        let name = match lanes.len() {
            1 => "indirect".to_owned(),
            _ => format!("indirect-{size}"),
        };
        let title = format!("what a switch adds to a walk through {size} (median)");
        let figure = Figure::new(&name, title, cost.indirect as f64, "ns");
        Some(
            figure
                .with_interval(cost.least as f64, cost.most as f64)
                .with_count(lane.walks.len() as u64),
        )
    };
    lanes.iter().filter_map(figure).collect()
}

/// Direct and indirect cost by size of the working set, if there is any.
fn working_sets(lanes: &[SizeLane], clock: i64) -> Option<Table> {
    lanes.iter().any(|lane| lane.size > 0).then_some(())?;
    let mut rows = Vec::new();
    for lane in lanes.iter().filter(|lane| lane.taken > 0) {
        let direct = lane.sum / lane.taken as i64;
        let number =
            |value: Option<i64>| value.map_or(Cell::Nothing, |value| Cell::Number(value as f64));
        let (size, direct_cell) = (Cell::Number(lane.size as f64), number(Some(direct)));
        if lane.size == 0 {
            let zero_cell = number(Some(0));
            let empty = || Cell::Nothing;
            rows.push(vec![
                size,
                direct_cell.clone(),
                empty(),
                empty(),
                empty(),
                zero_cell,
                empty(),
                empty(),
                direct_cell,
            ]);
            continue;
        }
        let cost = walks::estimate_indirect(&lane.walks, clock);
        let indirect = match &cost {
            Some(cost) if cost.is_resolved => number(Some(cost.indirect)),
            _ => walks::NOT_RESOLVED.into(),
        };
        let cost_cell = |pick: fn(&walks::Indirect) -> i64| number(cost.as_ref().map(pick));
        let whole = number(
            cost.as_ref().filter(|cost| cost.is_resolved).map(|cost| direct + cost.indirect),
        );
        let (after, alone) = (cost_cell(|cost| cost.after), cost_cell(|cost| cost.alone));
        let pairs = (lane.walks.len() as u64).into();
        rows.push(vec![
            size,
            direct_cell,
            pairs,
            after,
            alone,
            indirect,
            cost_cell(|c| c.least),
            cost_cell(|c| c.most),
            whole,
        ]);
    }
    let title = "What a switch costs by working set: the switch itself (mean), and how much \
                 longer going through the set takes after it than a second time with no task \
                 between (median of the pairs, and its 95 % confidence interval)";
    let columns = [
        ("working set", "bytes"),
        ("switch", "ns"),
        ("pairs", "count"),
        ("through after switch", "ns"),
        ("through alone", "ns"),
        ("indirect", "ns"),
        ("at least", "ns"),
        ("at most", "ns"),
        ("switch and indirect", "ns"),
    ];
    let columns = columns.map(|(name, unit)| Column::new(name, unit)).into();
    let table = Table { name: "working-sets".to_owned(), title: title.to_owned(), columns, rows };
    (!table.rows.is_empty()).then_some(table)
}
