//! What the ring says of itself against what the kernel counted, and what switches cost beside their own time.

use super::board::Board;
use super::{KEPT, Lane, Leader, now};
use crate::stop::Stop;
use crate::workload::clock_cost;
use crate::workload::course::Monotonic;
use crate::workload::perf::{Counter, Software, Whom};
use punctual_core::{Cell, Column, CpuSet, Fact, Figure, Finding, Notes, Severity, Table, Validation};
use std::io;
use std::sync::atomic::Ordering;

/// Hand-overs that perf counts, after the measured ones, and for how long at most: the ring does not rest meanwhile.
const COUNTED: u64 = 2_000;
const COUNTING: i64 = 20_000_000;
/// Tasks that perf counts one by one; of more there is the kernel's own count alone.
const MOST_COUNTED: usize = 64;

/// What the leader did between two counts.
#[derive(Default)]
pub struct Book {
    /// Rounds that were measured.
    pub rounds: u64,
    /// Hand-overs that were not.
    pub spare: u64,
    /// Times that the leader slept.
    pub rests: u64,
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
    parks: u64,
    strays: u64,
    whole: bool,
}

fn sums(board: &Board) -> (u64, u64) {
    let sum = |pick: fn(&super::board::Slot) -> u64| board.slots().map(pick).sum();
    (sum(|slot| slot.parks.load(Ordering::Relaxed)), sum(|slot| slot.strays.load(Ordering::Relaxed)))
}

impl Book {
    /// For so many tasks.
    pub fn new(tasks: usize) -> Book {
        Book { before: vec![(0, 0); tasks], after: vec![(0, 0); tasks], ..Book::default() }
    }
    /// From the first count on.
    pub fn begin(&mut self, board: &Board) {
        (self.rounds, self.spare, self.rests) = (0, 0, 0);
        (self.parks, self.strays) = sums(board);
        self.before.iter_mut().zip(board.slots()).for_each(|(count, slot)| *count = slot.counted());
    }
    /// Until the last.
    pub fn end(&mut self, board: &Board) {
        let (parks, strays) = sums(board);
        (self.parks, self.strays) = (parks - self.parks, strays - self.strays);
        self.after.iter_mut().zip(board.slots()).for_each(|(count, slot)| *count = slot.counted());
        self.whole = true;
    }
    /// The kernel's counts, voluntary and involuntary, of all tasks together and of the leader alone.
    fn counted(&self) -> Option<[(u64, u64); 2]> {
        let pairs =
            self.before.iter().zip(&self.after).map(|(b, a)| (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)));
        let each: Vec<(u64, u64)> = pairs.collect();
        let all = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        each.first().filter(|_| self.whole).map(|leader| [all, *leader])
    }
}

/// Everything there is to say.
pub fn notes(leader: &mut Leader) -> Notes {
    // Who waits by yielding lets no grace period of RCU end on PREEMPT_RT, whose timers expire in a thread of low priority (ktimers);
    // perf_event_open(2) waits for one. From here on they sleep.
    leader.ring.board.set_parking(true);
    let mut notes = Notes { clock_cost: Fact::Known(clock_cost(&Monotonic)), ..Notes::default() };
    notes.validations.push(own_counts(leader));
    let stretch = stretch(leader);
    notes.validations.push(stretch.validation());
    notes.tables.push(stretch.table);
    notes.tables.extend(working_sets(&leader.lanes));
    if leader.book.strays > 0 {
        let title = "times that a task got the CPU when it was not its turn";
        notes.figures.push(Figure::new("strays", title, leader.book.strays as f64, "count"));
    }
    let cpus: Vec<String> = leader.ring.places.iter().take(4).map(ToString::to_string).collect();
    let more = if leader.ring.places.len() > 4 { ", …" } else { "" };
    notes.tables.push(Table {
        name: "places".to_owned(),
        title: "Where the tasks of the ring ran, in their order".to_owned(),
        columns: vec![Column::new("tasks", "count"), Column::new("CPUs", "")],
        rows: vec![vec![(leader.ring.places.len() as u64).into(), format!("{}{more}", cpus.join(", ")).into()]],
    });
    notes.findings.extend(refused(leader));
    notes
}

/// Members that could not be scheduled as asked. The leader's own refusal is told by the frame.
fn refused(leader: &Leader) -> Option<Finding> {
    let errors = leader.ring.board.slots().skip(1).map(|slot| slot.refused.load(Ordering::Acquire));
    let errors: Vec<i32> = errors.filter(|error| *error != 0).collect();
    let why = io::Error::from_raw_os_error(*errors.first()?);
    let message = format!("{} tasks of the ring are not scheduled as asked", errors.len());
    let finding = Finding::new("ring-not-real-time", Severity::Warning, "system", message);
    Some(
        finding
            .evidence(format!("sched_setattr: {why}"))
            .remedy("run as root or raise RLIMIT_RTPRIO, or choose `policy = \"other\"`"),
    )
}

/// The whole run, by the counts that the kernel keeps of each task.
fn own_counts(leader: &Leader) -> Validation {
    let Book { rounds, spare, rests, parks, strays, .. } = leader.book;
    let tasks = leader.ring.board.tasks() as u64;
    let hand_overs = rounds * tasks + spare;
    let claimed = hand_overs + rests + parks;
    let source = "getrusage(2) in every task: voluntary and involuntary switches, as in /proc/PID/task/TID/status";
    let Some([all, own]) = leader.book.counted() else {
        let why = Fact::Unavailable("the ring ended before its last count".to_owned());
        return Validation::compare("context switches away from the tasks of the ring", claimed, why, source, 0);
    };
    // Preempted by others, and turns that were there before the task slept: neither is the ring's own. A stray is a switch to it and one away.
    let strangers = if leader.ring.handing.parks() { 0 } else { all.1 };
    let allowed = strangers + 2 * strays + 16 + claimed / 100;
    Validation::compare("context switches away from the tasks of the ring", claimed, Fact::Known(all.0 + all.1), source, allowed)
        .explain(format!(
            "one for each of {hand_overs} hand-overs ({rounds} rounds of {tasks} and {spare} that are not measured), {} for resting; counted {} \
             voluntary and {} involuntary ones of all tasks, {} of the first task alone. A task that is preempted adds one, one that finds its turn \
             there already takes one away; {strays} came out of turn, up to two switches each",
            rests + parks,
            all.0,
            all.1,
            own.0 + own.1,
        ))
}

/// Some hand-overs while perf counts.
struct Stretch {
    hand_overs: u64,
    strays: u64,
    all: Fact<u64>,
    table: Table,
}

impl Stretch {
    fn validation(&self) -> Validation {
        let source = "perf_event_open: software event context-switches, each task of the ring";
        // Interrupted once in a while by somebody else, within 20 ms.
        let allowed = 16 + self.hand_overs / 50 + 2 * self.strays;
        Validation::compare("context switches in a stretch", self.hand_overs, self.all.clone(), source, allowed).explain(format!(
            "after the measured ones, because perf's hook is in the way of every switch; {} tasks came out of turn; who counts one task of the ring, \
             or counts the idle task too, gets another number: see the table",
            self.strays
        ))
    }
}

fn stretch(leader: &mut Leader) -> Stretch {
    let ring = std::sync::Arc::clone(&leader.ring);
    let tasks: Vec<i32> = ring.board.slots().map(|slot| slot.tid.load(Ordering::Acquire)).collect();
    let cpus = ring.places.iter().fold(CpuSet::new(), |all, one| all.union(one));
    let of_tasks: Result<Vec<Counter>, String> = match tasks.len() {
        many if many > MOST_COUNTED => Err(format!("the ring has more than {MOST_COUNTED} tasks")),
        _ => tasks.iter().map(|tid| Counter::software(Software::ContextSwitches, Whom::Thread(*tid))).collect(),
    };
    let of_cpus: Result<Vec<Counter>, String> =
        cpus.iter().map(|cpu| Counter::software(Software::ContextSwitches, Whom::Cpu(cpu as u32))).collect();
    let counters = || of_tasks.iter().chain(&of_cpus).flatten();
    let (begin, mut hand_overs) = (now(), 0);
    // Whatever ended the run: this stretch is not part of it.
    let woken = |leader: &mut Leader| leader.ring.unpark(&Stop::default()).is_ok();
    let mut whole = leader.book.counted().is_some() && woken(leader) && leader.spare_round(super::Mode::Run).is_ok();
    let strays = sums(&ring.board).1;
    counters().for_each(Counter::enable);
    while whole && hand_overs < COUNTED && now() - begin < COUNTING {
        whole = ring.round().is_ok();
        hand_overs += tasks.len() as u64;
    }
    counters().for_each(Counter::disable);
    ring.board.set_parking(true);
    let sum = |counters: &[Counter]| -> Result<u64, String> {
        counters.iter().map(|counter| counter.read().map_err(|why| why.to_string())).sum()
    };
    let ended = || Err("the ring ended before".to_owned());
    let of = |counters: &Result<Vec<Counter>, String>, first: usize| match counters {
        _ if !whole => ended(),
        Ok(counters) => sum(&counters[..first.min(counters.len())]),
        Err(why) => Err(why.clone()),
    };
    let rows = [
        ("the first task of the ring", of(&of_tasks, 1)),
        ("all tasks of the ring", of(&of_tasks, usize::MAX)),
        ("everything on their CPUs, the idle tasks included", of(&of_cpus, usize::MAX)),
    ];
    let rows = rows.into_iter().map(|(who, counted)| match counted {
        Ok(counted) => {
            let each = if hand_overs > 0 { Cell::Number(counted as f64 / hand_overs as f64) } else { Cell::Nothing };
            vec![who.into(), counted.into(), each]
        }
        Err(why) => vec![format!("{who}: {why}").into(), Cell::Nothing, Cell::Nothing],
    });
    let table = Table {
        name: "switch-counts".to_owned(),
        title: format!("Context switches in {hand_overs} hand-overs, by whom is counted"),
        columns: vec![
            Column::new("counted", ""),
            Column::new("switches", "count"),
            Column::new("per hand-over", "ratio"),
        ],
        rows: rows.collect(),
    };
    let strays = sums(&ring.board).1 - strays;
    Stretch { hand_overs, strays, all: Fact::from(of(&of_tasks, usize::MAX)), table }
}

fn median(times: &[i64]) -> Option<i64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Direct and indirect cost by size of the working set, where there is any.
fn working_sets(lanes: &[Lane]) -> Option<Table> {
    lanes.iter().any(|lane| lane.size > 0).then_some(())?;
    let mut rows = Vec::new();
    for lane in lanes.iter().filter(|lane| lane.taken > 0) {
        let direct = lane.sum / lane.taken as i64;
        let (after, alone) = match lane.size {
            0 => (Some(0), Some(0)),
            _ => (median(&lane.after), median(&lane.alone)),
        };
        let number = |value: Option<i64>| value.map_or(Cell::Nothing, |value| Cell::Number(value as f64));
        let indirect = after.zip(alone).map(|(after, alone)| after - alone);
        let whole = indirect.map(|indirect| direct + indirect);
        let size = Cell::Number(lane.size as f64);
        rows.push(vec![size, number(Some(direct)), number(after), number(alone), number(indirect), number(whole)]);
    }
    Some(Table {
        name: "working-sets".to_owned(),
        title: format!(
            "What a switch costs by working set: the switch itself (mean), and how much longer going through the set takes after it (medians of the \
             first {KEPT})"
        ),
        columns: vec![
            Column::new("working set", "bytes"),
            Column::new("switch", "ns"),
            Column::new("through after switch", "ns"),
            Column::new("through alone", "ns"),
            Column::new("indirect", "ns"),
            Column::new("switch and indirect", "ns"),
        ],
        rows,
    })
    .filter(|table| !table.rows.is_empty())
}
