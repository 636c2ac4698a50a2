//! Threads that poll: they never wait, and so have no cycles. Each time that the CPU was taken from
//! one is a sample of its series `gap`. Also how every thread spent its time.

use super::delayed_tasks;
use super::options::{CycleOptions, WORKLOAD};
use super::rows::ThreadRow;
use super::series::{CycleSeries, SeriesPlace};
use super::source::CycleThreadFacts;
use punctual_bundle::SeriesMeta;
use punctual_bundle::meta::{MeasureMeta, REQUESTED_SCHEDULING, UNKNOWN_SCHEDULING};
use punctual_core::cycle::{DelayedTask, Gap, SeriesKind, TaskComm, ThreadTimes, id_here};
use punctual_core::format;
use punctual_core::{Cell, Clock, Column, Finding, MonotonicNs, Nanos, Notes, Table};
use std::collections::BTreeMap;

/// The kind of a thread without a wait.
pub const POLL: &str = "poll";
/// The name of the measure with the table of all threads.
const THREADS: &str = "threads";
/// Gaps of a thread that are kept until it is known whether it polls.
const KEPT_GAPS: usize = 1 << 14;
/// The time after which a running thread is classified: a program may compute for seconds before
/// its first wait.
const LONG: Nanos = Nanos::from_secs(10);
/// Gaps closer than this are joined: between an interrupt and its softirq there is no event.
const JOINED: Nanos = Nanos(1_000);
/// The maximum number of followed threads, and of distinguished tasks.
const MAX_FOLLOWED: usize = 512;
const CULPRITS: usize = 256;

/// The threads of a program that may poll, and the time of all its threads by state.
#[derive(Default)]
pub struct Polling {
    threads: BTreeMap<u32, Poller>,
    ended: Vec<Poller>,
    times: BTreeMap<u32, (String, ThreadTimes)>,
    /// The tasks that threads of the program delayed.
    pub(super) delayed: Vec<DelayedTask>,
}

/// A thread that was never seen to wait, or not for long.
#[derive(Default)]
struct Poller {
    tid: u32,
    since: MonotonicNs,
    /// The thread's facts at the last look while it lived.
    facts: Option<CycleThreadFacts>,
    /// Gaps without a series yet.
    kept: Vec<Gap>,
    pending: Option<Gap>,
    begun: Option<BegunPolling>,
    /// Gaps that were not kept.
    lost: u64,
    /// Gaps whose records found no room.
    lost_records: u64,
}

struct BegunPolling {
    label: String,
    series: CycleSeries,
    last: Option<Nanos>,
    culprits: BTreeMap<TaskComm, PollingDelay>,
}

/// The CPU time of another task.
#[derive(Clone, Copy, Default)]
struct PollingDelay {
    tid: u32,
    gaps: u64,
    total: Nanos,
    longest: Nanos,
}

impl Polling {
    /// Adds gaps, of each thread in the order of time.
    pub fn push(
        &mut self,
        gaps: impl IntoIterator<Item = Gap>,
        facts: impl Fn(u32) -> CycleThreadFacts,
    ) {
        for gap in gaps {
            if self.threads.len() >= MAX_FOLLOWED && !self.threads.contains_key(&gap.tid) {
                continue;
            }
            let new = || Poller::new(gap.tid, gap.begin, facts(gap.tid));
            self.threads.entry(gap.tid).or_insert_with(new).push(gap);
        }
    }

    /// Reads the facts of threads without series: after their end they are unknown.
    pub(crate) fn read_facts(&mut self, facts: impl Fn(u32) -> CycleThreadFacts) {
        for poller in self.threads.values_mut().filter(|one| one.begun.is_none()) {
            let now = facts(poller.tid);
            if now.scheduling != UNKNOWN_SCHEDULING {
                poller.facts = Some(now);
            }
        }
    }

    /// Adds how long threads were in each state.
    pub(crate) fn add_times(
        &mut self,
        all: Vec<(u32, ThreadTimes)>,
        name: impl Fn(u32) -> Option<String>,
    ) {
        for (tid, times) in all {
            let known_name = self.times.get(&tid).map(|(name, _)| name.clone());
            if known_name.is_some() || self.times.len() < MAX_FOLLOWED {
                let name = name(tid).or(known_name).unwrap_or_else(|| "thread".to_owned());
                self.times.insert(tid, (name, times));
            }
        }
    }

    /// The threads now known to poll that have no series yet; with `over`, at the end of one or
    /// all.
    pub(crate) fn new_pollers(
        &self,
        now: MonotonicNs,
        over: Option<Option<u32>>,
    ) -> Vec<(u32, String)> {
        let is_over = |tid: u32| over.is_some_and(|of| of.is_none_or(|of| of == tid));
        let ripe = self.threads.values().filter(|one| {
            let enough = now - one.since >= LONG || one.kept.len() >= KEPT_GAPS / 2;
            one.begun.is_none() && (enough || is_over(one.tid))
        });
        let polls = |one: &Poller| {
            let (name, times) = self.times.get(&one.tid)?;
            times.is_polling().then(|| (one.tid, name.clone()))
        };
        ripe.filter_map(polls).collect()
    }

    /// Counts the gaps of a thread whose records found no room, all that were lost so far.
    pub(super) fn count_lost(&mut self, tid: u32, lost: u64) {
        let Some(poller) = self.threads.get_mut(&tid) else { return };
        poller.lost_records = poller.lost_records.max(lost);
        poller.count_lost();
    }

    /// Begins the series of a thread with its gaps so far.
    pub fn begin_series(
        &mut self,
        tid: u32,
        label: String,
        place: &mut SeriesPlace<'_>,
        options: &CycleOptions,
    ) {
        let Some(poller) = self.threads.get_mut(&tid) else { return };
        let Some(facts) = poller.facts.take() else { return };
        let meta = series_meta(tid, &label, facts, options);
        let number = *place.next;
        let series = CycleSeries::begin(SeriesKind::Gap, meta, Nanos::MILLI, place, number);
        *place.next += 1;
        let culprits = BTreeMap::new();
        let mut begun = BegunPolling { label, series, last: None, culprits };
        std::mem::take(&mut poller.kept).iter().for_each(|gap| begun.add_gap(gap));
        poller.begun = Some(begun);
    }

    /// Ends a thread: its id may be reused.
    pub(crate) fn end_thread(&mut self, tid: u32) {
        let Some(mut poller) = self.threads.remove(&tid) else { return };
        poller.finish();
        if poller.begun.is_some() {
            self.ended.push(poller);
        }
    }

    pub fn finish(&mut self) {
        self.threads.values_mut().for_each(Poller::finish);
    }

    pub fn checkpoint(&mut self) {
        let begun = self.threads.values_mut().filter_map(|one| one.begun.as_mut());
        begun.for_each(|begun| begun.series.checkpoint());
    }

    fn begun_threads(&self) -> impl Iterator<Item = (u32, &BegunPolling)> {
        let all_pollers = self.ended.iter().chain(self.threads.values());
        all_pollers.filter_map(|one| Some((one.tid, one.begun.as_ref()?)))
    }

    /// The prefix of the series of each thread that has some.
    pub(crate) fn thread_labels(&self) -> impl Iterator<Item = &str> {
        self.begun_threads().map(|(_, begun)| begun.label.as_str())
    }

    pub fn all_series(&self) -> impl Iterator<Item = &CycleSeries> {
        self.begun_threads().map(|(_, begun)| &begun.series)
    }

    pub(crate) fn all_series_mut(&mut self) -> impl Iterator<Item = &mut CycleSeries> {
        let all_pollers = self.ended.iter_mut().chain(self.threads.values_mut());
        all_pollers.filter_map(|one| Some(&mut one.begun.as_mut()?.series))
    }

    /// The measures of the bundle: one for each thread, and one for all.
    pub(crate) fn measure_metas(&self) -> Vec<MeasureMeta> {
        let to_measure = |(_, begun): (u32, &BegunPolling)| begun.to_measure_meta();
        let delayed = delayed_tasks::task_table(&self.delayed, |tid| self.thread_name(tid));
        let notes = |table: Table| {
            let tables = std::iter::once(table).chain(delayed).collect();
            Notes { tables, ..Notes::default() }
        };
        let threads = self.thread_table().map(|table| MeasureMeta {
            name: THREADS.to_owned(),
            workload: WORKLOAD.to_owned(),
            parameters: BTreeMap::new(),
            series: Vec::new(),
            notes: notes(table),
        });
        self.begun_threads().map(to_measure).chain(threads).collect()
    }

    fn thread_name(&self, tid: u32) -> String {
        let known_name = self.times.get(&tid).map(|(name, _)| name.clone());
        known_name.unwrap_or_else(|| format!("thread {tid}"))
    }

    /// The findings about threads of the kernel that waited for the program's threads.
    pub(super) fn delay_findings(&self, phase: &str) -> Vec<Finding> {
        let subject = |tid| format!("{phase}/{}", self.thread_name(tid));
        delayed_tasks::kernel_delay_findings(&self.delayed, subject)
    }

    /// The lines of a live view.
    pub fn thread_rows(&self) -> impl Iterator<Item = ThreadRow> {
        self.begun_threads().map(|(_, begun)| ThreadRow {
            name: begun.label.clone(),
            kind: POLL,
            cycles: begun.series.kept.state.data.sample_count(),
            last: begun.last,
            worst: begun.series.kept.state.data.max,
            skipped: 0,
            overruns: 0,
        })
    }

    /// A description of each, for users.
    pub fn thread_descriptions(&self) -> impl Iterator<Item = String> {
        self.begun_threads().map(|(tid, begun)| {
            format!(
                "{} ({tid}): it polls and waits for nothing; a sample is each time that its CPU \
                 was taken from it",
                begun.label
            )
        })
    }

    /// How all threads spent their time, in words.
    pub(crate) fn spent_in_words(&self) -> Vec<String> {
        let words = |(tid, (name, times)): (&u32, &(String, ThreadTimes))| {
            let share =
                |of: Nanos| format::percent_text(of.ns() as f64 / times.total_time().ns() as f64);
            (times.total_time() > Nanos::ZERO).then(|| {
                format!(
                    "{name} ({tid}): ran {}, ready {}, waited {}, stopped {} of {}",
                    share(times.ran),
                    share(times.ready),
                    share(times.waited),
                    share(times.stopped),
                    times.total_time().to_readable()
                )
            })
        };
        self.times.iter().filter_map(words).collect()
    }

    /// How all threads spent their time; the longest running first.
    fn thread_table(&self) -> Option<Table> {
        let mut sorted_times: Vec<_> =
            self.times.iter().filter(|(_, (_, of))| of.total_time() > Nanos::ZERO).collect();
        sorted_times.sort_by_key(|(_, (_, times))| std::cmp::Reverse(times.ran));
        let row = |(tid, (name, times)): &(&u32, &(String, ThreadTimes))| {
            let share = |of: Nanos| Cell::Number(of.ns() as f64 / times.total_time().ns() as f64);
            let mut row = vec![
                Cell::from(format::escape_unsafe(name)),
                id_here(**tid).map_or(Cell::Nothing, |tid| Cell::from(u64::from(tid))),
            ];
            row.extend([times.ran, times.ready, times.waited, times.stopped].map(share));
            row.push(Cell::from(times.total_time()));
            row
        };
        let shares = ["ran", "ready", "waited", "stopped"].map(|name| Column::new(name, "ratio"));
        let columns = [Column::new("thread", ""), Column::new("tid", "count")];
        let columns = columns.into_iter().chain(shares).chain([Column::new("of", "ns")]);
        (!sorted_times.is_empty()).then(|| Table {
            name: THREADS.to_owned(),
            title: "how each thread spent its time".to_owned(),
            columns: columns.collect(),
            rows: sorted_times.iter().map(row).collect(),
        })
    }
}

impl Poller {
    fn new(tid: u32, since: MonotonicNs, facts: CycleThreadFacts) -> Poller {
        let facts = Some(facts);
        Poller { tid, since, facts, ..Poller::default() }
    }

    fn push(&mut self, gap: Gap) {
        match &mut self.pending {
            Some(pending) if gap.begin - pending.end <= JOINED => {
                // No event shows the time between.
                let between = gap.begin - pending.end;
                pending.split = pending.split.add_parts(&gap.split);
                pending.split.add(punctual_core::CauseKind::Unknown, between.max(Nanos::ZERO));
                (pending.end, pending.cpu) = (gap.end.max(pending.end), gap.cpu);
                let longer = |of: &Gap| of.culprit.map_or(Nanos::ZERO, |culprit| culprit.time);
                if longer(&gap) > longer(pending) {
                    pending.culprit = gap.culprit;
                }
            }
            pending => {
                let ended = pending.replace(gap);
                ended.iter().for_each(|gap| self.add_gap(gap));
            }
        }
    }

    fn add_gap(&mut self, gap: &Gap) {
        match &mut self.begun {
            Some(begun) => begun.add_gap(gap),
            None if self.kept.len() < KEPT_GAPS => self.kept.push(*gap),
            None => self.lost += 1,
        }
    }

    fn count_lost(&mut self) {
        let lost = self.lost + self.lost_records;
        self.begun.iter_mut().for_each(|begun| begun.series.lose_until(lost));
    }

    fn finish(&mut self) {
        let last = self.pending.take();
        last.iter().for_each(|gap| self.add_gap(gap));
        self.count_lost();
        let lost = self.lost;
        self.begun.iter_mut().for_each(|begun| begun.series.finish(lost));
    }
}

impl BegunPolling {
    fn add_gap(&mut self, gap: &Gap) {
        self.last = Some(self.series.push_gap(gap).latency());
        let Some(culprit) = gap.culprit else { return };
        if self.culprits.len() < CULPRITS || self.culprits.contains_key(&culprit.name) {
            let delay = self.culprits.entry(culprit.name).or_default();
            delay.gaps += 1;
            delay.total += culprit.time;
            if culprit.time > delay.longest {
                (delay.longest, delay.tid) = (culprit.time, culprit.tid);
            }
        }
    }

    fn to_measure_meta(&self) -> MeasureMeta {
        let tables = self.culprit_table().into_iter().collect();
        MeasureMeta {
            name: self.label.clone(),
            workload: WORKLOAD.to_owned(),
            parameters: BTreeMap::from([("cycle".to_owned(), POLL.to_owned())]),
            series: vec![self.series.kept.meta.name.clone()],
            notes: Notes { tables, ..Notes::default() },
        }
    }

    /// The tasks that had its CPU.
    fn culprit_table(&self) -> Option<Table> {
        let mut sorted_culprits: Vec<(&TaskComm, &PollingDelay)> = self.culprits.iter().collect();
        sorted_culprits.sort_by_key(|(_, delay)| std::cmp::Reverse(delay.total));
        let row = |(name, delay): &(&TaskComm, &PollingDelay)| {
            vec![
                Cell::from(format::escape_unsafe(&name.to_string())),
                id_here(delay.tid).map_or(Cell::Nothing, |tid| Cell::from(u64::from(tid))),
                Cell::from(delay.gaps),
                Cell::from(delay.total),
                Cell::from(delay.longest),
            ]
        };
        (!sorted_culprits.is_empty()).then(|| Table {
            name: "culprits".to_owned(),
            title: "tasks that took the CPU from the thread".to_owned(),
            columns: vec![
                Column::new("task", ""),
                Column::new("tid", "count"),
                Column::new("gaps", "count"),
                Column::new("total", "ns"),
                Column::new("longest", "ns"),
            ],
            rows: sorted_culprits.iter().take(10).map(row).collect(),
        })
    }
}

fn series_meta(
    tid: u32,
    label: &str,
    facts: CycleThreadFacts,
    options: &CycleOptions,
) -> SeriesMeta {
    let CycleThreadFacts { scheduling: words, real_time, cpus } = facts;
    let requirements = options.requirements.iter();
    let requirements = requirements.filter(|of| of.is_about(label, SeriesKind::Gap));
    let mut details = options.details.clone();
    details.insert("cycle".to_owned(), POLL.to_owned());
    details.insert(REQUESTED_SCHEDULING.to_owned(), words.clone());
    SeriesMeta {
        name: format!("{label}/{}", SeriesKind::Gap.as_str()),
        measure: label.to_owned(),
        workload: WORKLOAD.to_owned(),
        clock: Clock::Monotonic,
        cpus,
        scheduling: words,
        real_time,
        period: None,
        tid: Some(tid as i32),
        requirements: requirements.map(|of| of.requirement.to_string()).collect(),
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{CauseKind, Split};

    fn gap(begin: i64, end: i64, part: CauseKind) -> Gap {
        let mut split = Split::default();
        split.add(part, Nanos(end - begin));
        let (begin, end) = (MonotonicNs(begin), MonotonicNs(end));
        Gap { tid: 7, cpu: 1, begin, end, split, culprit: None }
    }

    fn facts(_: u32) -> CycleThreadFacts {
        let (scheduling, cpus) = ("SCHED_FIFO 1".to_owned(), punctual_core::CpuSet::new());
        CycleThreadFacts { scheduling, real_time: true, cpus }
    }

    /// An interrupt, its softirq and the task that it wakes are one gap.
    #[test]
    fn adjacent_gaps_are_merged() {
        let mut polling = Polling::default();
        let parts = [CauseKind::Irq, CauseKind::Softirq, CauseKind::Preempted, CauseKind::Irq];
        let times = [(0, 2_000), (2_300, 5_000), (5_500, 9_000), (20_000, 21_000)];
        polling.push(times.iter().zip(parts).map(|(&(a, b), part)| gap(a, b, part)), facts);
        polling.finish();
        let [first, second] = &polling.threads[&7].kept[..] else { panic!("two gaps") };
        assert_eq!((first.begin.ns(), first.end.ns()), (0, 9_000));
        assert_eq!(first.split.total_time(), Nanos(9_000));
        assert_eq!(first.split.time_of(CauseKind::Unknown), Nanos(800));
        assert_eq!((second.begin.ns(), second.end.ns()), (20_000, 21_000));
    }

    /// A thread that mostly waits, or is short, does not poll; no thread is omitted from the table.
    #[test]
    fn polling_threads_are_recognised_by_their_cpu_time() {
        let mut polling = Polling::default();
        let second = Nanos::SECOND;
        let times = |ran: i64, ready: i64, waited: i64| ThreadTimes {
            ran: second * ran,
            ready: second * ready,
            waited: second * waited,
            stopped: Nanos::ZERO,
            ..ThreadTimes::default()
        };
        let all = [(1, times(9, 1, 0)), (2, times(1, 0, 9)), (3, ThreadTimes::default())];
        polling.add_times(all.to_vec(), |tid| Some(format!("t{tid}")));
        (1..=3).for_each(|tid| polling.push([Gap { tid, ..gap(0, 10, CauseKind::Irq) }], facts));
        let now = MonotonicNs(second.ns());
        assert_eq!(polling.new_pollers(now, None), []);
        assert_eq!(polling.new_pollers(now, Some(Some(2))), []);
        assert_eq!(polling.new_pollers(now, Some(None)), [(1, "t1".to_owned())]);
        assert_eq!(polling.new_pollers(now + second * 10, None), [(1, "t1".to_owned())]);
        let table = polling.thread_table().expect("a table");
        assert_eq!(table.rows.len(), 2, "of the third no change of state was seen");
        assert_eq!(table.rows[0][2..6], [0.9, 0.1, 0.0, 0.0].map(Cell::Number));
        assert_eq!(polling.spent_in_words().len(), 2);
    }
}
