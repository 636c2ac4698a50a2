//! Where a thread was in its longest cycles: at its waits, when preempted, and when a timer
//! interrupted it.

use super::places::{Places, Resolver, Stack, tell_apart};
use super::source::CycleRecorder;
use punctual_core::cycle::{Cycle, Moment, MomentKind, task_label};
use punctual_core::format;
use punctual_core::{CauseKind, Cell, Column, Finding, Nanos, Severity, Table};
use punctual_explain::cycles::CallNames;
use punctual_record::symbols::FunctionNames;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const CYCLES: usize = 10;
/// Moments that wait for the end of their cycle.
const PENDING: usize = 1_024;
/// The maximum number of preemptions and functions shown of a cycle.
const PREEMPTIONS: usize = 8;
const RAN: usize = 3;
/// The share of the response time from which on a wake-up is late.
const LATE: f64 = 0.1;
/// The share of stacks without callers from which on the program probably has no frame pointers.
const FEW_CALLERS: f64 = 0.5;

/// The longest cycles of a thread.
#[derive(Default)]
pub struct WorstCycles {
    pending: Vec<Moment>,
    worst: Vec<Worst>,
    resolver: Resolver,
    pub(super) places: Places,
    /// Where it waits, if it is not clear which of its waits begins its cycles.
    waits: Vec<Stack>,
    wait_places: Vec<String>,
    described: Option<Table>,
    /// Stacks that end in the program itself, and those of them with a single function.
    stacks: (u64, u64),
}

struct Worst {
    cycle: Cycle,
    moments: Vec<KeptCycle>,
}

struct KeptCycle {
    moment: Moment,
    /// `None`: not looked up yet.
    stack: Option<Stack>,
}

impl WorstCycles {
    /// Adds a moment, before the cycle that it belongs to.
    pub fn push(&mut self, moment: Moment) {
        if self.pending.len() < PENDING {
            self.pending.push(moment);
        }
    }

    pub fn add(&mut self, cycle: &Cycle) {
        let (mut moments, time) = (Vec::new(), own_time(cycle));
        self.pending.retain(|moment| {
            if moment.begin >= cycle.release && moment.begin < cycle.again {
                moments.push(*moment);
            }
            moment.begin >= cycle.again
        });
        self.places.add(&moments);
        let longer = |worst: &Worst| own_time(&worst.cycle) >= time;
        let place = self.worst.partition_point(longer);
        if place >= CYCLES {
            return;
        }
        let moments = select_moments(moments)
            .into_iter()
            .map(|moment| KeptCycle { moment, stack: None })
            .collect();
        self.worst.insert(place, Worst { cycle: *cycle, moments });
        self.worst.truncate(CYCLES);
    }

    pub fn cycles(&self) -> impl Iterator<Item = &Cycle> {
        self.worst.iter().map(|worst| &worst.cycle)
    }

    /// The stacks of moments that wait for the end of their cycle.
    pub(crate) fn needed_stacks(&self) -> impl Iterator<Item = u32> {
        self.pending.iter().flat_map(|moment| {
            let waker = moment.waker.and_then(|waker| waker.stack);
            let holder = moment.holder.and_then(|holder| holder.stack);
            [moment.stack, waker, holder].into_iter().flatten()
        })
    }

    /// Looks up the stacks of new cycles while the process exists. Returns how many stacks were
    /// lost before.
    pub fn look_up(&mut self, tid: u32, attacher: &CycleRecorder) -> u64 {
        self.places.look_up(tid, &mut self.resolver, attacher);
        let mut lost = 0;
        let all_moments = self.worst.iter_mut().flat_map(|worst| &mut worst.moments);
        for kept in all_moments.filter(|kept| kept.stack.is_none()) {
            let stack = self.resolver.stack_at_moment(tid, &kept.moment, attacher);
            lost += u64::from(stack.is_none());
            let stack = stack.unwrap_or_default();
            if let Some(Some(innermost)) = stack.places.first()
                && !innermost.is_in_library()
            {
                self.stacks.0 += 1;
                self.stacks.1 += u64::from(stack.places.iter().flatten().count() < 2);
            }
            kept.stack = Some(stack);
        }
        lost
    }

    /// Keeps the stacks of waits at these places, while the process exists.
    pub(super) fn keep_waits(&mut self, tid: u32, places: &[u64], attacher: &CycleRecorder) {
        let stacks = places.iter().map(|place| self.resolver.wait_stack(tid, *place, attacher));
        self.waits = stacks.collect::<Option<_>>().unwrap_or_default();
    }

    /// Where these waits are: lines or functions of the program.
    pub(super) fn wait_places(&self) -> &[String] {
        &self.wait_places
    }

    /// Stops reading the mappings: they are those of another program from now on.
    pub(crate) fn stop_reading(&mut self) {
        self.resolver.stop_reading();
    }

    /// Names the functions permanently.
    pub(crate) fn name_functions(
        &mut self,
        tid: u32,
        names: &mut FunctionNames,
        calls: &CallNames,
    ) {
        let longest: Vec<_> = self.worst.iter().map(Worst::resolved_stacks).collect();
        let of_longest = longest.iter().flatten().flat_map(|(_, stack)| &stack.places);
        let of_waits = self.waits.iter().flat_map(|stack| &stack.places).flatten();
        let all_places = of_longest.flatten().chain(of_waits).cloned();
        names.find_lines(all_places.chain(self.places.all_places()), tid);
        self.wait_places = tell_apart(&self.waits, tid, names);
        self.places.name_lines(tid, names, calls, &longest);
        let mut rows = Vec::new();
        // Cycles are kept by their own time, and show the whole time.
        let mut worst: Vec<&Worst> = self.worst.iter().collect();
        worst.sort_by_key(|worst| Reverse(worst.cycle.response_time()));
        for worst in worst {
            let mut of_it = worst.to_rows(tid, names, calls);
            if of_it.is_empty() {
                of_it = vec![worst.build_row("ran", None, String::new())];
            }
            rows.append(&mut of_it);
        }
        self.described = (!rows.is_empty()).then(|| Table {
            name: "worst-cycles".to_owned(),
            title: "where the thread was in its longest cycles".to_owned(),
            columns: vec![
                Column::new("response", "ns"),
                Column::new("what", ""),
                Column::new("time", "ns"),
                Column::new("by", ""),
                Column::new("stack", ""),
                Column::new("after release", "ns"),
                Column::new("system call", ""),
                Column::new("times", "count"),
            ],
            rows,
        });
    }

    /// A table of them, the longest cycle first.
    pub fn to_table(&self) -> Option<Table> {
        self.described.clone()
    }

    /// The finding that callers are unknown, if so.
    pub(crate) fn frame_pointer_finding(&self, subject: &str) -> Option<Finding> {
        let (all, alone) = self.stacks;
        if alone == 0 || (alone as f64) < all as f64 * FEW_CALLERS {
            return None;
        }
        let message = format!(
            "{alone} of {} that end in the program itself have one function only: it has no frame \
             pointers, and who called that function is not known",
            format::count_with_noun(all, "user stack")
        );
        let finding = Finding::new("no-frame-pointers", Severity::Note, subject, message);
        Some(finding.with_remedy("compile the program with -fno-omit-frame-pointer"))
    }
}

/// The moments of a cycle to show: the longest sleep, the longest preemptions, and all places where
/// it ran, in the order of time.
fn select_moments(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.sort_by_key(|moment| Reverse(moment.time_off_cpu()));
    let (mut sleeps, mut preemptions) = (0, 0);
    moments.retain(|moment| match moment.what {
        MomentKind::Asleep { .. } => {
            sleeps += 1;
            sleeps == 1
        }
        MomentKind::Preempted { .. } => {
            preemptions += 1;
            preemptions <= PREEMPTIONS
        }
        MomentKind::Ran | MomentKind::Fault | MomentKind::Called => true,
        MomentKind::Exec | MomentKind::Exit { .. } => false,
    });
    moments.sort_by_key(|moment| moment.begin);
    moments
}

/// The response time without the overrun of the cycle before: of several cycles that are late
/// together, the first one matters.
fn own_time(cycle: &Cycle) -> Nanos {
    cycle.response_time() - cycle.wake.time_of(CauseKind::Overrun)
}

impl Worst {
    /// Its moments whose stacks were looked up.
    fn resolved_stacks(&self) -> Vec<(&Moment, &Stack)> {
        let kept_moments = self.moments.iter();
        kept_moments.filter_map(|kept| Some((&kept.moment, kept.stack.as_ref()?))).collect()
    }

    /// A late wake-up, its longest sleep, its preemptions, and where it ran.
    fn to_rows(&self, tid: u32, names: &mut FunctionNames, calls: &CallNames) -> Vec<Vec<Cell>> {
        let mut name = |kept: &KeptCycle| {
            kept.stack
                .as_ref()
                .map_or_else(String::new, |stack| stack.innermost_functions(tid, names))
        };
        let (mut rows, mut ran) = (Vec::new(), BTreeMap::new());
        rows.extend(self.late_wakeup_row());
        for kept in &self.moments {
            match kept.moment.what {
                MomentKind::Exec | MomentKind::Exit { .. } => {}
                MomentKind::Ran => {
                    let times: &mut (u64, &KeptCycle) = ran.entry(name(kept)).or_insert((0, kept));
                    times.0 += 1;
                }
                MomentKind::Asleep { part, .. } => {
                    rows.push(self.moment_row(part.words(), kept, name(kept), 1, calls));
                }
                MomentKind::Preempted { .. } => {
                    rows.push(self.moment_row("preempted", kept, name(kept), 1, calls));
                }
                // These have a table of their own.
                MomentKind::Fault | MomentKind::Called => {}
            }
        }
        let mut ran: Vec<_> = ran.into_iter().collect();
        ran.sort_by_key(|(_, (times, _))| Reverse(*times));
        let ran = ran.into_iter().take(RAN);
        rows.extend(
            ran.map(|(name, (times, kept))| self.moment_row("ran", kept, name, times, calls)),
        );
        rows
    }

    /// The row of a late wake-up that took much of the time, with the tasks that ran instead.
    fn late_wakeup_row(&self) -> Option<Vec<Cell>> {
        let overrun = self.cycle.wake.time_of(CauseKind::Overrun);
        let (late, time) = (self.cycle.wakeup_latency() - overrun, own_time(&self.cycle));
        (late.ns() as f64 >= LATE * time.ns() as f64).then(|| {
            let mut row = self.build_row("wake-up", None, String::new());
            row[2] = Cell::from(late);
            let culprit_label = self.cycle.culprit.map(|by| task_label(by.name, by.tid));
            row[3] =
                culprit_label.map_or(Cell::Nothing, |by| Cell::from(format::escape_unsafe(&by)));
            row[5] = Cell::from(Nanos::ZERO);
            row
        })
    }

    fn moment_row(
        &self,
        what: &str,
        kept: &KeptCycle,
        stack: String,
        times: u64,
        calls: &CallNames,
    ) -> Vec<Cell> {
        let moment = &kept.moment;
        let call = |number: u32| match calls.get(&number) {
            Some(name) => Cell::from(name.clone()),
            None => Cell::from(format!("system call {number}")),
        };
        let mut row = self.build_row(what, Some(moment), stack);
        row[6] = moment.call.map_or(Cell::Nothing, call);
        row[7] = Cell::from(times);
        row
    }

    fn build_row(&self, what: &str, moment: Option<&Moment>, stack: String) -> Vec<Cell> {
        let preempting_task = moment.and_then(|moment| match moment.what {
            MomentKind::Preempted { by, name } => Some(task_label(name, by)),
            MomentKind::Asleep { .. }
            | MomentKind::Ran
            | MomentKind::Fault
            | MomentKind::Called
            | MomentKind::Exec
            | MomentKind::Exit { .. } => None,
        });
        let time = moment.map(Moment::time_off_cpu).filter(|time| *time > Nanos::ZERO);
        vec![
            Cell::from(self.cycle.response_time()),
            Cell::from(what.to_owned()),
            time.map_or(Cell::Nothing, Cell::from),
            preempting_task.map_or(Cell::Nothing, |by| Cell::from(format::escape_unsafe(&by))),
            Cell::from(format::escape_unsafe(&stack)),
            moment.map_or(Cell::Nothing, |moment| Cell::from(moment.begin - self.cycle.release)),
            Cell::Nothing,
            Cell::Nothing,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::cycle_at;
    use super::*;
    use punctual_core::MonotonicNs;
    use punctual_core::cycle::{CycleCulprit, TaskComm};

    fn moment(begin: i64, end: i64, what: MomentKind) -> Moment {
        let (begin, end) = (MonotonicNs(begin), MonotonicNs(end));
        Moment { end, ..Moment::new(7, begin, what) }
    }

    const PREEMPTED: MomentKind = MomentKind::Preempted { by: 9, name: TaskComm([0; 16]) };

    fn asleep(begin: i64, time: i64) -> Moment {
        let what = MomentKind::Asleep { part: CauseKind::Lock, time: Nanos(time) };
        moment(begin, begin + time + 10, what)
    }

    fn rows(worst: &mut WorstCycles) -> Vec<(String, String)> {
        worst.name_functions(7, &mut FunctionNames::default(), &CallNames::new());
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => number.to_string(),
            Cell::Nothing => String::new(),
        };
        let table = worst.to_table().map_or(Vec::new(), |table| table.rows);
        table.iter().map(|row| (text(&row[1]), text(&row[2]))).collect()
    }

    #[test]
    fn moments_belong_to_the_cycle_in_which_they_began() {
        let mut worst = WorstCycles::default();
        // Before the release, in the cycle, and in the next one.
        worst.push(moment(500, 600, PREEMPTED));
        worst.push(moment(2_000, 5_000, PREEMPTED));
        worst.push(asleep(6_000, 100));
        worst.push(asleep(7_000, 300));
        worst.push(moment(8_000, 8_000, MomentKind::Ran));
        worst.push(moment(201_000, 202_000, PREEMPTED));
        worst.add(&cycle_at(1_000));
        let of = |what: &str, time: &str| (what.to_owned(), time.to_owned());
        let lock = CauseKind::Lock.words();
        let expected = [of("preempted", "3000"), of(lock, "300"), of("ran", "")];
        assert_eq!(rows(&mut worst), expected, "of its sleeps the longest");
        assert_eq!(worst.pending.len(), 1);
    }

    #[test]
    fn only_the_longest_preemptions_of_a_cycle_are_listed() {
        let mut worst = WorstCycles::default();
        // Later ones are longer.
        for k in 1..=20 {
            worst.push(moment(1_000 * k, 1_000 * k + k, PREEMPTED));
            worst.push(moment(1_000 * k + 500, 1_000 * k + 500, MomentKind::Ran));
        }
        worst.push(asleep(30_000, 5));
        assert_eq!(worst.needed_stacks().count(), 0);
        worst.add(&cycle_at(1_000));
        let rows = rows(&mut worst);
        let preempted = rows.iter().filter(|(what, _)| what == "preempted");
        let times: Vec<i64> = preempted.map(|(_, time)| time.parse().unwrap()).collect();
        assert_eq!(times, (13..=20).collect::<Vec<_>>());
        assert_eq!(rows.iter().filter(|(what, _)| what == CauseKind::Lock.words()).count(), 1);
        let table = worst.to_table().unwrap().rows;
        assert_eq!(table.last().unwrap()[7], Cell::from(20u64), "it ran so many times");
    }

    #[test]
    fn a_late_wake_up_is_attributed_to_the_task_that_ran_instead() {
        let mut late = cycle_at(1_000);
        late.returned = late.release + Nanos(40_000);
        late.culprit = Some(CycleCulprit {
            tid: 9,
            name: TaskComm(*b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            time: Nanos(1),
            behind: Nanos(1),
        });
        let mut worst = WorstCycles::default();
        worst.add(&late);
        assert_eq!(rows(&mut worst), [("wake-up".to_owned(), "40000".to_owned())]);
        assert_eq!(worst.to_table().unwrap().rows[0][3], Cell::from("hog-9"));
    }

    #[test]
    fn overrun_time_does_not_rank_a_cycle_among_the_worst() {
        let (mut delayed, mut longer) = (cycle_at(0), cycle_at(1_000_000));
        delayed.release = MonotonicNs(-900_000);
        delayed.wake.add(CauseKind::Overrun, Nanos(900_000));
        longer.again = longer.release + Nanos(200_000);
        let mut worst = WorstCycles::default();
        [delayed, longer].iter().for_each(|one| worst.add(one));
        assert_eq!(rows(&mut worst), [("ran", ""), ("ran", "")].map(|(a, b)| (a.into(), b.into())));
        assert_eq!(worst.worst[0].cycle, longer);
        let table = worst.to_table().unwrap();
        assert_eq!(
            table.rows[0][0],
            Cell::from(delayed.response_time()),
            "what is shown is sorted"
        );
    }

    #[test]
    fn only_the_longest_cycles_are_kept() {
        let mut worst = WorstCycles::default();
        for k in 0..50 {
            let mut one = cycle_at(1_000_000 * (k + 1));
            one.again = one.release + Nanos(1_000 * (1 + k * 7 % 50));
            worst.add(&one);
        }
        let micros = |one: &Worst| one.cycle.response_time().ns() / 1_000;
        let kept: Vec<i64> = worst.worst.iter().map(micros).collect();
        assert_eq!(kept, (41..=50).rev().collect::<Vec<_>>());
        assert_eq!(rows(&mut worst).len(), CYCLES, "each has a row");
        (0..2 * PENDING as i64).for_each(|k| worst.push(moment(1 << 60, k, PREEMPTED)));
        assert_eq!(worst.pending.len(), PENDING);
    }

    #[test]
    fn many_broken_stacks_cause_a_finding_about_frame_pointers() {
        let mut worst = WorstCycles::default();
        assert!(worst.frame_pointer_finding("a").is_none());
        worst.stacks = (10, 4);
        assert!(worst.frame_pointer_finding("a").is_none());
        worst.stacks = (10, 5);
        assert!(
            worst.frame_pointer_finding("a").unwrap().message.starts_with("5 of 10 user stacks")
        );
    }
}
