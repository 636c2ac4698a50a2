//! The notes after all threads have ended: fairness, the longest wait, whether the integral is π,
//! and the kernel's counts.

use super::arena::{Arena, LOG, ROUNDS, integral_tolerance};
use super::segment::MutexSegment;
use super::{Outcomes, ThreadOutcome, Waits};
use punctual_core::{
    Cell, Column, Fact, Figure, Finding, Nanos, Notes, Severity, Table, Tolerance, Validation,
};
use punctual_plan::kinds::{LockKind, MutexPlan};
use std::sync::{Arc, PoisonError};

/// Acquisitions per thread of a window for short-term fairness.
const WINDOW: usize = 100;
/// Rows of the longest wait that are shown: the first half and the last half.
const ROWS: usize = 40;

/// The observer of all threads.
pub(crate) struct LockAccount {
    pub plan: MutexPlan,
    pub arena: Arc<Arena>,
    pub segment: Arc<MutexSegment>,
    pub names: Vec<String>,
    pub outcomes: Outcomes,
}

type LockThread = (usize, Waits, ThreadOutcome);

impl LockAccount {
    pub(crate) fn collect_notes(&self) -> Notes {
        let mut outcomes =
            std::mem::take(&mut *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner));
        outcomes.sort_by_key(|(me, ..)| *me);
        let mut notes = Notes::default();
        notes.validations.push(self.validate_integral());
        notes.validations.push(self.validate_acquisitions(&outcomes));
        notes.validations.push(self.validate_switches(&outcomes));
        notes.figures.extend(self.round_times());
        notes.figures.extend(self.fairness_figures(&outcomes));
        self.add_counts(&outcomes, &mut notes);
        notes.tables.push(self.thread_table(&outcomes));
        if let Some((me, waits, _)) = outcomes.iter().max_by_key(|(_, waits, _)| waits.longest) {
            notes.tables.extend(self.overtaker_table(*me, waits));
            notes.tables.extend(self.longest_wait_table(*me, waits));
        }
        notes.findings.extend(gave_up(&outcomes));
        notes
    }

    fn thread_name(&self, thread: u32) -> String {
        self.names.get(thread as usize).cloned().unwrap_or_else(|| thread.to_string())
    }

    fn validate_integral(&self) -> Validation {
        let (rounds, right, error) = self.arena.integral_results();
        let allowed_error = integral_tolerance(self.plan.terms);
        Validation::compare_counts(
            "rounds whose integral is π",
            rounds,
            Fact::Known(right),
            "π itself",
            Tolerance::EXACT,
        )
        .with_explanation(format!(
            "midpoints with {} terms are at most {allowed_error:.1e} off, the worst round was \
             {error:.1e} off; a round that was cut off at the end is not among them",
            self.plan.terms
        ))
    }

    fn validate_acquisitions(&self, outcomes: &[LockThread]) -> Validation {
        let measured: u64 = outcomes.iter().map(|(_, waits, _)| waits.acquisitions).sum();
        let unmeasured: u64 = outcomes.iter().map(|(_, waits, _)| waits.unmeasured).sum();
        let source = "a plain counter behind the lock, which loses some where two threads hold it \
                      at the same time";
        let counted = Fact::Known(self.arena.acquisition_count());
        let validation = Validation::compare_counts(
            "acquisitions of the lock",
            measured + unmeasured,
            counted,
            source,
            Tolerance::EXACT,
        );
        match unmeasured {
            0 => validation,
            _ => validation.with_explanation(format!(
                "{unmeasured} of them by threads that had all their samples, until all threads had"
            )),
        }
    }

    /// Two kernel counts of the same segment.
    fn validate_switches(&self, outcomes: &[LockThread]) -> Validation {
        let counted = || outcomes.iter().filter_map(|(_, _, outcome)| outcome.counted.as_ref());
        let claimed = counted().map(|counted| counted.own_switches).sum();
        let by_perf: Result<u64, String> = match counted().count() == outcomes.len() {
            true => counted().map(|counted| counted.switches.clone()).sum(),
            false => Err("not every thread was counted".to_owned()),
        };
        let source = "perf_event_open: software event context-switches, each thread";
        let around = counted().map(|counted| counted.around).sum();
        let tolerance = Tolerance::EXACT
            .allow_more(around, "switches while the perf counters were enabled and disabled");
        let what = "context switches in a segment (getrusage)";
        Validation::compare_counts(what, claimed, Fact::from(by_perf), source, tolerance)
            .with_explanation(
                "some rounds after the measured ones, because counting slows them down",
            )
    }

    fn round_times(&self) -> Vec<Figure> {
        let mut times = self.arena.round_times();
        times.sort_unstable();
        let count = times.len() as u64;
        let at = |share: f64| {
            times.get((times.len().saturating_sub(1) as f64 * share) as usize).copied()
        };
        let time_figure = |name: &str, what: &str, share: f64| {
            at(share).map(|time| {
                let title = format!(
                    "{what} time of a round, from barrier to barrier (of the first {ROUNDS})"
                );
                Figure::new(name, title, time as f64, "ns").with_count(count)
            })
        };
        [
            ("round-min", "least", 0.0),
            ("round-median", "median", 0.5),
            ("round-max", "longest", 1.0),
        ]
        .into_iter()
        .filter_map(|(name, what, share)| time_figure(name, what, share))
        .collect()
    }

    fn fairness_figures(&self, outcomes: &[LockThread]) -> Vec<Figure> {
        let thread_counts: Vec<u64> =
            outcomes.iter().map(|(_, waits, _)| waits.acquisitions).collect();
        let total_count: u64 = thread_counts.iter().sum();
        if total_count == 0 {
            return Vec::new();
        }
        let mut figures = vec![
            Figure::new(
                "jain-index",
                "Jain's index of acquisitions by thread (1: all alike)",
                jain_index(&thread_counts),
                "ratio",
            )
            .with_count(total_count),
        ];
        let owners = self.arena.last_owners();
        let windows: Vec<f64> = owners
            .chunks_exact(WINDOW * thread_counts.len().max(1))
            .map(|window| jain_index(&count_shares(window, thread_counts.len())))
            .collect();
        if !windows.is_empty() {
            let title = format!(
                "the same over {} acquisitions at a time, mean (of the last {LOG}): what a thread \
                 meets in the short run",
                WINDOW * thread_counts.len()
            );
            let mean = windows.iter().sum::<f64>() / windows.len() as f64;
            figures.push(
                Figure::new("jain-index-short", title, mean, "ratio")
                    .with_count(windows.len() as u64),
            );
        }
        let (owner, run) = self.arena.longest_run();
        let title = format!("longest run of one owner: {}", self.thread_name(owner));
        figures.push(
            Figure::new("longest-run", title, run as f64, "count")
                .with_count(self.arena.acquisition_count()),
        );
        figures
    }

    /// Futex calls and switches of the segment.
    fn add_counts(&self, outcomes: &[LockThread], notes: &mut Notes) {
        let counted = || outcomes.iter().filter_map(|(_, _, outcome)| outcome.counted.as_ref());
        let (rounds, ..) = self.segment.arena.integral_results();
        let acquisition_count = self.segment.arena.acquisition_count();
        let hold = MutexSegment::shorter_hold(self.plan.hold)
            .map_or(String::new(), |hold| format!(", the lock held for at most {hold}"));
        let futex_calls: Result<Vec<&[u64]>, String> =
            counted().map(|counted| counted.futex.as_deref().map_err(Clone::clone)).collect();
        let lock_calls =
            futex_calls.clone().map(|each| each.iter().filter_map(|calls| calls.last()).sum());
        if matches!(self.plan.lock, LockKind::Spin | LockKind::Ticket) {
            let source = "perf_event_open: tracepoint syscalls:sys_enter_futex, each thread";
            notes.validations.push(
                Validation::compare_counts(
                    "futex calls of a lock that spins",
                    0,
                    Fact::from(lock_calls.clone()),
                    source,
                    Tolerance::EXACT,
                )
                .with_explanation("those of the barrier between rounds taken off"),
            );
        }
        match lock_calls {
            Ok(calls) if acquisition_count > 0 => {
                let title = format!(
                    "calls of futex(2) for a thousand acquisitions, in a segment of {rounds} \
                     whole rounds after the measured ones ({calls} for {acquisition_count}{hold}; \
                     those of the barrier taken off)"
                );
                let figure = Figure::new(
                    "futex-calls",
                    title,
                    calls as f64 * 1000.0 / acquisition_count as f64,
                    "count",
                );
                notes.figures.push(figure.with_count(acquisition_count));
                notes
                    .figures
                    .extend(futex_calls.ok().and_then(|each| calls_of_a_round(&each, rounds)));
            }
            Ok(_) => {}
            Err(why) => {
                let message = "calls of futex(2) could not be counted";
                let finding = Finding::new(
                    "futex-not-counted",
                    Severity::Note,
                    self.names.first().map_or("mutex", |name| name),
                    message,
                );
                notes.findings.push(
                    finding
                        .with_evidence(why)
                        .with_remedy("run as root, or lower kernel.perf_event_paranoid"),
                );
            }
        }
        let switches: u64 = outcomes
            .iter()
            .map(|(_, _, o)| o.usage.voluntary_switches + o.usage.involuntary_switches)
            .sum();
        let (measured, ..) = self.arena.integral_results();
        if measured > 0 {
            let title = "context switches a round, all threads, in the measured time (getrusage)";
            let per_round = |switches: u64| switches as f64 / measured as f64;
            notes.figures.push(
                Figure::new("switches-round", title, per_round(switches), "count")
                    .with_count(measured),
            );
            let sleeps = self.arena.barrier_sleeps.load(std::sync::atomic::Ordering::Relaxed);
            let title = "the same without those of the barrier between rounds";
            let lock = per_round(switches.saturating_sub(sleeps));
            notes.figures.push(
                Figure::new("lock-switches-round", title, lock, "count").with_count(measured),
            );
        }
    }

    fn thread_table(&self, outcomes: &[LockThread]) -> Table {
        let row = |(me, waits, outcome): &LockThread| {
            let mean = waits.sum / waits.acquisitions.max(1) as i64;
            let slept = outcome.counted.as_ref().map(|counted| &counted.slept);
            let slept = slept.filter(|slept| slept.count > 0).map(|slept| slept.most_overtaken);
            let overtaken = waits.most_overtaken.or(slept);
            vec![
                self.thread_name(*me as u32).into(),
                waits.acquisitions.into(),
                Nanos(mean).into(),
                Nanos(waits.longest.max(0)).into(),
                overtaken.map_or(Cell::Nothing, Cell::from),
                (outcome.usage.voluntary_switches + outcome.usage.involuntary_switches).into(),
            ]
        };
        Table {
            name: "threads".to_owned(),
            title: format!("The threads; most overtaken: {}", self.overtaken_since(outcomes)),
            columns: vec![
                Column::new("thread", ""),
                Column::new("acquisitions", "count"),
                Column::new("mean wait", "ns"),
                Column::new("longest", "ns"),
                Column::new("most overtaken", "count"),
                Column::new("switches", "count"),
            ],
            rows: outcomes.iter().map(row).collect(),
        }
    }

    /// The time from which others overtake a thread: during the measurement nothing shows when a
    /// thread that sleeps for a lock, or spins without a ticket, has requested it.
    fn overtaken_since(&self, outcomes: &[LockThread]) -> String {
        match self.plan.lock {
            LockKind::Ticket => "since the ticket was drawn".to_owned(),
            LockKind::Spin => "not known, nothing shows when the lock was requested".to_owned(),
            _ => {
                let slept = outcomes.iter().filter_map(|(_, _, outcome)| outcome.counted.as_ref());
                let (count, preempted) = slept.fold((0, 0), |(count, preempted), counted| {
                    (count + counted.slept.count, preempted + counted.slept.preempted)
                });
                format!(
                    "in {count} waits after the measured ones in which the thread slept and was \
                     not preempted ({preempted} others say nothing)"
                )
            }
        }
    }

    fn overtaker_table(&self, me: usize, waits: &Waits) -> Option<Table> {
        // The holder at the time of the request did not overtake.
        let overtakers = waits.holders.get(usize::from(waits.has_before)..)?;
        let owners: Vec<u32> = overtakers.iter().map(|(_, owner)| *owner).collect();
        let shares = count_shares(&owners, self.names.len());
        let rows = shares.iter().enumerate().filter(|(_, times)| **times > 0);
        let rows: Vec<Vec<Cell>> = rows
            .map(|(by, times)| vec![self.thread_name(by as u32).into(), (*times).into()])
            .collect();
        (!rows.is_empty()).then(|| Table {
            name: "overtaken-by".to_owned(),
            title: format!(
                "Longest wait of all: {} waited {}, and others took the lock {} times {}{}",
                self.thread_name(me as u32),
                Nanos(waits.longest.max(0)),
                waits.overtaken,
                match waits.most_overtaken {
                    Some(_) => "since its ticket was drawn",
                    None => "since the clock was read before the request",
                },
                if waits.left_out > 0 {
                    format!(" ({} not kept)", waits.left_out)
                } else {
                    String::new()
                }
            ),
            columns: vec![Column::new("by", ""), Column::new("times", "count")],
            rows,
        })
    }

    /// The holders of the lock during the longest wait: one row for consecutive acquisitions.
    fn longest_wait_table(&self, me: usize, waits: &Waits) -> Option<Table> {
        let mut runs: Vec<(i64, u32, u64)> = Vec::new();
        for (place, (at, owner)) in waits.holders.iter().enumerate() {
            let is_before = waits.has_before && place <= 1;
            match runs.last_mut() {
                Some((_, last, times)) if last == owner && !is_before => *times += 1,
                _ => runs.push((*at, *owner, 1)),
            }
        }
        if runs.is_empty() {
            return None;
        }
        let row = |(at, owner, times): &(i64, u32, u64)| -> Vec<Cell> {
            vec![
                Cell::Number((at - waits.asked_at) as f64),
                self.thread_name(*owner).into(),
                (*times).into(),
            ]
        };
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        if runs.len() <= ROWS {
            rows.extend(runs.iter().map(row));
        } else {
            let (first, rest) = runs.split_at(ROWS / 2);
            let (middle, last) = rest.split_at(rest.len() - ROWS / 2);
            rows.extend(first.iter().map(row));
            let times: u64 = middle.iter().map(|(_, _, times)| times).sum();
            rows.push(vec![
                Cell::Nothing,
                format!("{} changes of owner not shown", middle.len()).into(),
                times.into(),
            ]);
            rows.extend(last.iter().map(row));
        }
        rows.push(vec![
            Nanos(waits.longest).into(),
            format!("{} holds it", self.thread_name(me as u32)).into(),
            Cell::Nothing,
        ]);
        Some(Table {
            name: "longest-wait".to_owned(),
            title: format!(
                "Holders of the lock during the longest wait, of {}{}",
                self.thread_name(me as u32),
                if waits.has_before {
                    " (the first row is the holder at the time of the request)"
                } else {
                    ""
                }
            ),
            columns: vec![
                Column::new("after the request", "ns"),
                Column::new("owner", ""),
                Column::new("times in a row", "count"),
            ],
            rows,
        })
    }
}

/// Batches of rounds for an interval, and Student's t at 95 % for one degree of freedom less.
const BATCHES: usize = 20;
const STUDENT: f64 = 2.093;

/// Calls of futex(2) per round: the mean over whole rounds, with the interval of batches of them,
/// since neighbouring rounds are similar (Schmeiser, Operations Research 30, 1982).
fn calls_of_a_round(threads: &[&[u64]], rounds: u64) -> Option<Figure> {
    let sum = |place: usize| threads.iter().map(|calls| calls.get(place)).sum::<Option<u64>>();
    let totals: Vec<u64> = (0..=rounds as usize).map_while(sum).collect();
    let whole =
        totals.len().checked_sub(1).filter(|whole| *whole as u64 == rounds && rounds > 0)?;
    let mean = |from: usize, to: usize| {
        totals[to].saturating_sub(totals[from]) as f64 / (to - from) as f64
    };
    let title = "calls of futex(2) a round, in the same segment";
    let figure =
        Figure::new("futex-calls-round", title, mean(0, whole), "count").with_count(rounds);
    let length = whole / BATCHES;
    if length == 0 {
        return Some(figure);
    }
    let batches = (0..BATCHES).map(|k| mean(k * length, (k + 1) * length)).collect::<Vec<f64>>();
    let centre = batches.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = batches.iter().map(|batch| (batch - centre).powi(2)).sum();
    let reach = STUDENT * (squares / (BATCHES * (BATCHES - 1)) as f64).sqrt();
    Some(figure.with_interval((centre - reach).max(0.0), centre + reach))
}

fn count_shares(owners: &[u32], threads: usize) -> Vec<u64> {
    let mut shares = vec![0; threads];
    owners.iter().for_each(|owner| {
        shares.get_mut(*owner as usize).into_iter().for_each(|share| *share += 1)
    });
    shares
}

/// Jain, Chiu, Hawe: A quantitative measure of fairness (DEC-TR-301, 1984): (Σx)² / (n·Σx²), from
/// 1/n (one has all) to 1 (all equal).
fn jain_index(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

fn gave_up(outcomes: &[LockThread]) -> Option<Finding> {
    outcomes.iter().any(|(_, _, outcome)| outcome.gave_up).then(|| {
        let message =
            "threads spun for a lock whose owner did not get the CPU, and gave up at the end";
        Finding::new("spun-in-vain", Severity::Warning, "system", message).with_remedy(
            "spinning needs a CPU for each thread: fewer threads, more CPUs, or a lock that \
             sleeps (with `lock = \"pi\"` for priorities)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::LockRequest;
    use super::super::lock::Grant;
    use super::*;

    /// Acquisitions by threads 0 and 1 at 10, 20, … 100; then thread 2 gets the lock, which it
    /// requested at 45, after it had read the number of acquisitions before all of them.
    #[test]
    fn acquisitions_before_a_request_do_not_overtake_it() {
        let plan = MutexPlan { terms: 64, ..MutexPlan::default() };
        let size = super::super::arena::ArenaSize { threads: 3, log: 64, rounds: 1, rests: false };
        let arena = Arc::new(Arena::new(&plan, size, Arc::default()).unwrap());
        (1..=10).for_each(|k| assert_eq!(arena.add(0.0, k * 10, (k % 2) as u32), k as u64 - 1));
        let number = arena.add(0.0, 110, 2);
        let mut waits = Waits::new();
        let request = |begin| LockRequest { asked: 0, number, begin, end: 110 };
        assert_eq!(
            waits.account_wait(&arena, request(45), Grant::Granted),
            6,
            "those at 50 to 100"
        );
        assert_eq!((waits.overtaken, waits.most_overtaken), (6, None));
        // A thread may be preempted before it draws a ticket; three were ahead, including the
        // owner.
        let mut drawn = Waits::new();
        assert_eq!(drawn.account_wait(&arena, request(5), Grant::Drawn { ahead: 3 }), 2);
        assert_eq!(drawn.account_wait(&arena, request(5), Grant::Drawn { ahead: 0 }), 0);
        assert_eq!((drawn.overtaken, drawn.most_overtaken), (2, Some(2)));
        let account = LockAccount {
            segment: Arc::new(MutexSegment::new(&plan, 3).unwrap()),
            plan,
            arena,
            names: ["a", "b", "c"].map(str::to_owned).into(),
            outcomes: Outcomes::default(),
        };
        let times = |rows: &[Vec<Cell>], column: usize| -> f64 {
            rows.iter()
                .map(|row| if let Cell::Number(times) = row[column] { times } else { 0.0 })
                .sum()
        };
        assert_eq!(times(&account.overtaker_table(2, &waits).unwrap().rows, 1), 6.0);
        let longest = account.longest_wait_table(2, &waits).unwrap();
        assert_eq!(longest.rows[0], vec![Cell::Number(-5.0), "a".into(), Cell::Number(1.0)]);
        assert_eq!(times(&longest.rows[1..], 2), 6.0, "{longest:?}");
    }

    #[test]
    fn calls_of_a_round_have_the_interval_of_their_batches() {
        // Two threads, 40 rounds: 3 and 5 calls, alternately 2 more in every second batch.
        let more = |round: u64| if (round / 2) % 2 == 1 { 2 } else { 0 };
        let totals = |each: u64| -> Vec<u64> {
            let mut sum = 0;
            let steps = (0..40).map(|round| {
                sum += each + more(round);
                sum
            });
            std::iter::once(0).chain(steps.collect::<Vec<_>>()).collect()
        };
        let (one, other) = (totals(3), totals(5));
        let figure = calls_of_a_round(&[&one, &other], 40).unwrap();
        assert_eq!((figure.value, figure.count), (10.0, Some(40)));
        // Batches of 8 and 12: their deviation is 2.052, its error 0.459.
        let [low, high] = figure.interval.unwrap();
        assert!((low - 9.04).abs() < 0.01 && (high - 10.96).abs() < 0.01, "{low} {high}");
        assert_eq!(calls_of_a_round(&[&one[..20], &other], 40), None, "rounds are missing");
        let short = calls_of_a_round(&[&one, &other], 3).unwrap();
        assert_eq!((short.count, short.interval), (Some(3), None));
    }

    #[test]
    fn jains_index_follows_its_definition() {
        assert_eq!(jain_index(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain_index(&[8, 0, 0, 0]), 0.25);
        assert_eq!(jain_index(&[1, 2]), 0.9);
        assert_eq!(count_shares(&[0, 2, 2, 9], 3), [1, 0, 2]);
    }
}
