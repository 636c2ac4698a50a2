//! The cycles of a program: drains records, infers the cycles of each thread, and fills its series.
//! A run has one of these for each program that it measures or attaches to.
//!
//! The kernel makes a record of every cycle (`record::attach`); `explain::cycles` infers the kind
//! of each thread's cycles.

mod delayed_tasks;
mod delays;
mod facts;
mod findings;
mod groups;
mod holders;
mod names;
mod namespace;
mod options;
mod places;
mod polling;
mod practice;
mod recent;
mod rights;
pub mod rows;
pub mod series;
pub mod source;
pub mod target;
#[cfg(test)]
pub(crate) mod testing;
pub mod thread;
mod typical;
mod worst;

pub(crate) use findings::{incomplete_bundle, not_seen};
pub use options::CycleOptions;

use crate::exit::Failure;
use crate::flight::{Flight, SampleTask, WatchedSeries};
use crate::request;
use namespace::NamespaceIds;
use polling::Polling;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::windows::Waited;
use punctual_bundle::{BundleError, LeftOut, LeftOutKind};
use punctual_core::cycle::{Cycle, MomentKind, SeriesKind, ThreadTimes};
use punctual_core::event::Tid;
use punctual_core::{Clock, Event, Fact, Finding, MonotonicNs, Nanos, SeriesRequirement};
use punctual_explain::cycles::lint::HostFacts;
use punctual_explain::cycles::{CallNames, MIN_WAITS};
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use punctual_record::Backend;
use punctual_record::attach::AttachCost;
use punctual_record::symbols::FunctionNames;
use punctual_stats::SeriesView;
use recent::RecentSums;
use rights::RefusedRights;
use rows::{ThreadRow, TopCulprit};
use series::{CycleSeries, SeriesPlace};
use source::CycleRecorder;
use std::collections::BTreeMap;
use thread::CycleThread;

/// The longest time between two drains: a CPU's buffer holds 10,000 cycles.
pub const TICK: Nanos = Nanos::from_millis(50);
/// The maximum number of threads whose cycles are kept at once, and of ended ones.
const THREADS: usize = 512;
const ENDED: usize = 2_048;

/// The maximum number of records that wait here; beyond that the kernel counts losses.
const FETCHED: usize = 1 << 17;

/// The threads of a program, and the BPF programs that watch them.
pub struct Cycles {
    options: CycleOptions,
    threads: BTreeMap<u32, CycleThread>,
    /// Threads as they were before they ran another program.
    ended: Vec<CycleThread>,
    /// Threads that ended at an instant or executed another program then.
    ends: Vec<(u32, MonotonicNs, MomentKind)>,
    /// Instants before which events are missing.
    breaks: Vec<MonotonicNs>,
    calls: CallNames,
    findings: Vec<Finding>,
    attacher: CycleRecorder,
    rights: RefusedRights,
    cost: Fact<AttachCost>,
    host: HostFacts,
    /// Records of the last round or later.
    later: Vec<Cycle>,
    left_out: u64,
    stacks_lost: u64,
    /// Records that found no room while it was measured.
    lost: u64,
    recent: RecentSums,
    polling: Polling,
    namespace_ids: NamespaceIds,
    /// Known wait(2) statuses of ended threads.
    statuses: BTreeMap<u32, u32>,
}

/// The result of a round of draining.
#[derive(Default)]
pub struct DrainedCycles {
    /// A response time above the limit, with its series.
    pub above: Option<(String, Nanos)>,
    /// Whether the cycles of another thread are known.
    pub begun: bool,
}

fn start_recorder(lines: bool, backend: Backend) -> Result<CycleRecorder, Failure> {
    let cpus = request::online_cpus()?;
    CycleRecorder::start(&cpus, true, lines, backend).map_err(|why| {
        Failure::refused(format!("cycles of programs cannot be measured on this system: {why}"))
    })
}

impl Cycles {
    /// Whether cycles can be measured here.
    pub(crate) fn check_support() -> Result<(), Failure> {
        start_recorder(true, Backend::Auto).map(drop)
    }

    /// Loads the BPF programs; nothing is watched yet.
    pub fn start(options: CycleOptions, environment: Environment) -> Result<Cycles, Failure> {
        let mut attacher = start_recorder(!options.without_lines, options.backend)?;
        Ok(Cycles {
            options,
            threads: BTreeMap::new(),
            ended: Vec::new(),
            ends: Vec::new(),
            breaks: Vec::new(),
            calls: punctual_record::syscall_names(),
            findings: attacher.findings.clone(),
            cost: attacher.attach_cost(),
            attacher,
            rights: RefusedRights::default(),
            host: facts::of_host(&Root::from_system(), environment),
            later: Vec::new(),
            left_out: 0,
            stacks_lost: 0,
            lost: 0,
            recent: RecentSums::default(),
            polling: Polling::default(),
            namespace_ids: NamespaceIds::default(),
            statuses: BTreeMap::new(),
        })
    }

    /// The cycles of a recording, whose events [`Cycles::push_event`] takes. `calls`: the names of
    /// the recorded machine's system calls.
    pub fn of_recording(
        options: CycleOptions,
        attacher: CycleRecorder,
        calls: CallNames,
    ) -> Cycles {
        Cycles {
            options,
            threads: BTreeMap::new(),
            ended: Vec::new(),
            ends: Vec::new(),
            breaks: Vec::new(),
            calls,
            findings: attacher.findings.clone(),
            cost: Fact::NotAsked,
            attacher,
            rights: RefusedRights::default(),
            host: HostFacts::default(),
            later: Vec::new(),
            left_out: 0,
            stacks_lost: 0,
            lost: 0,
            recent: RecentSums::default(),
            polling: Polling::default(),
            namespace_ids: NamespaceIds::default(),
            statuses: BTreeMap::new(),
        }
    }

    /// Takes the next event of a recording.
    pub(crate) fn push_event(&mut self, event: &Event) {
        if let Some(recording) = self.attacher.recording_events() {
            recording.push(event);
        }
    }

    /// The recorder, to which threads to watch are passed.
    pub(crate) fn cycle_recorder(&self) -> &CycleRecorder {
        &self.attacher
    }

    /// Watches what the kernel refuses to these processes, as far as it can be seen here.
    pub(crate) fn watch_rights(&mut self, processes: &[u32]) {
        self.rights.watch_processes(processes, self.options.backend);
    }

    /// Takes the records of the kernel. `ended`: no more will follow.
    pub fn drain(&mut self, ended: bool, place: &mut SeriesPlace<'_>) -> DrainedCycles {
        let until = self.attacher.current_time();
        self.rights.read_new_refusals();
        if self.attacher.counts_by_thread() {
            // What is lost after the buffers were emptied is not of this measurement.
            self.count_losses(ended);
            self.fetch_records();
        } else {
            self.fetch_records();
            self.lost = self.attacher.lost_records();
        }
        let mut records = std::mem::take(&mut self.later);
        // One CPU's records may be later than those that another CPU has yet to hand over.
        records.sort_by_key(|cycle| (cycle.again, cycle.release));
        let ripe = if ended {
            records.len()
        } else {
            records.partition_point(|cycle| cycle.again < until)
        };
        // Records fetched meanwhile follow these.
        self.later = records.split_off(ripe);
        let mut drained = DrainedCycles::default();
        for mut record in records {
            self.namespace_ids.translate_holder(&mut record);
            drained.begun |= self.end_until(record.again, Some(record.tid), place);
            self.break_until(record.again);
            if !self.threads.contains_key(&record.tid) {
                if self.threads.len() >= THREADS {
                    self.left_out += 1;
                    continue;
                }
                let new = CycleThread::new(record.tid, &self.attacher, &self.options.phase);
                self.threads.insert(record.tid, new);
            }
            let Some(thread) = self.threads.get_mut(&record.tid) else { continue };
            thread.push(record, &mut self.recent);
            drained.above = drained.above.or_else(|| thread.response_above_limit());
        }
        drained.begun |= self.end_until(until, None, place);
        self.break_until(until);
        if ended {
            self.look_at_times();
        }
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            drained.begun |= self.classify_thread(tid, ended, place);
        }
        drained.begun |= self.begin_polling(ended.then_some(None), place);
        for (tid, thread) in &mut self.threads {
            let moved = thread.check_open_cycle(&self.attacher, ended);
            if let Some(site) = moved {
                thread.look_up_waits(&self.attacher);
                let place = Some((site.call, site.by_argument));
                if let Err(why) = self.attacher.select_wait(*tid, place) {
                    let phase = &self.options.phase;
                    self.findings.push(findings::not_selected(phase, &thread.name, &why));
                }
            }
            drained.above = drained.above.or_else(|| thread.response_above_limit());
            self.stacks_lost += thread.worst_cycles.look_up(*tid, &self.attacher);
        }
        let threads = self.threads.values();
        let needed = || threads.flat_map(|thread| thread.worst_cycles.needed_stacks()).collect();
        self.attacher.free_stacks(needed);
        drained
    }

    /// Empties the kernel's buffers; their records wait here from now on. Creating the files of
    /// many threads that begin at once takes longer than the buffers take to fill.
    fn fetch_records(&mut self) {
        let later = &mut self.later;
        self.attacher.drain(&mut |cycle| later.push(cycle));
        self.breaks.extend(self.attacher.take_breaks());
        let gaps = self.attacher.take_gaps();
        self.polling.push(gaps, |tid| self.attacher.thread_facts(tid));
        // Moments within a cycle were recorded before the cycle.
        for moment in self.attacher.take_moments() {
            if matches!(moment.what, MomentKind::Exec | MomentKind::Exit { .. }) {
                if let MomentKind::Exit { status: Some(status), .. } = moment.what
                    && self.statuses.len() < ENDED
                {
                    self.statuses.insert(moment.tid, status);
                }
                self.ends.push((moment.tid, moment.begin, moment.what));
            } else if let Some(thread) = self.threads.get_mut(&moment.tid)
                && thread.may_have_cycles()
            {
                thread.worst_cycles.push(moment);
            }
        }
    }

    /// Closes the series of threads, all or one, that ended by then or executed another program.
    /// Returns whether some had begun only now.
    fn end_until(
        &mut self,
        now: MonotonicNs,
        tid: Option<u32>,
        place: &mut SeriesPlace<'_>,
    ) -> bool {
        let is_one = |(of, at, _): &mut (u32, MonotonicNs, MomentKind)| {
            *at <= now && tid.is_none_or(|tid| tid == *of)
        };
        let ended: Vec<_> = self.ends.extract_if(.., is_one).collect();
        ended.into_iter().fold(false, |begun, ended| begun | self.on_exec_or_exit(ended, place))
    }

    fn on_exec_or_exit(
        &mut self,
        (tid, at, what): (u32, MonotonicNs, MomentKind),
        place: &mut SeriesPlace<'_>,
    ) -> bool {
        let (mut begun, mut status) = (false, None);
        if let MomentKind::Exit { name, .. } = what {
            let name = Some(name.to_string()).filter(|name| !name.is_empty());
            let times = self.attacher.take_times(false);
            self.count_lost(&times);
            self.polling.add_times(times, |of| {
                names::read_comm(of).or_else(|| name.clone().filter(|_| of == tid))
            });
            begun |= self.begin_polling(Some(Some(tid)), place);
            self.polling.end_thread(tid);
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return begun };
        if let MomentKind::Exit { name, status: of_exit } = what {
            thread.ended_as(name);
            begun |= self.classify_thread(tid, true, place);
            status = of_exit;
        }
        let lost = self.lost_records();
        let Some(mut thread) = self.threads.remove(&tid) else { return begun };
        thread.on_exit(at, status);
        if thread.label().is_none() {
            // Kept to report why the thread has no cycles.
            if what != MomentKind::Exec && self.ended.len() < THREADS {
                self.ended.push(thread);
            }
            return begun;
        }
        thread.finish(lost);
        if self.ended.len() >= ENDED {
            self.left_out += thread.cycles;
            return begun;
        }
        thread.worst_cycles.stop_reading();
        self.stacks_lost += thread.worst_cycles.look_up(tid, &self.attacher);
        self.ended.push(thread);
        begun
    }

    /// Events were missing: unknown whether threads had cycles meanwhile.
    fn break_until(&mut self, now: MonotonicNs) {
        let broken = self.breaks.partition_point(|at| *at <= now);
        if broken > 0 {
            self.breaks.drain(..broken);
            self.threads.values_mut().for_each(|thread| thread.break_off(&mut self.recent));
        }
    }

    fn all_threads(&self) -> impl Iterator<Item = &CycleThread> {
        self.ended.iter().chain(self.threads.values())
    }

    /// Decides on a thread once enough of it was seen: its cycles are known, or none are looked for
    /// any more. Returns whether its series have begun.
    fn classify_thread(&mut self, tid: u32, ended: bool, place: &mut SeriesPlace<'_>) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let Some(inferred) = thread.infer_cycles(
            self.options.kind,
            self.options.thread.as_deref(),
            &self.calls,
            &self.attacher,
            ended,
        ) else {
            return false;
        };
        if let Err(why) = self
            .attacher
            .select_wait(tid, inferred.map(|found| (found.site.call, found.site.by_argument)))
        {
            self.findings.push(findings::not_selected(&self.options.phase, &thread.name, &why));
        }
        let Some(inferred) = inferred else { return false };
        let mut taken_labels = self.thread_labels();
        taken_labels.extend_from_slice(place.taken);
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let label = thread::unique_label(&thread.name, &taken_labels);
        let calls_and_facts = (&self.calls, self.attacher.thread_facts(tid));
        let waits = thread.begin_series(&label, inferred, place, &self.options, calls_and_facts);
        *place.next += SeriesKind::CYCLIC.len();
        waits.into_iter().for_each(|record| thread.push(record, &mut self.recent));
        thread.look_up_waits(&self.attacher);
        if self.later.len() < FETCHED {
            self.fetch_records();
        }
        true
    }

    /// Begins the series of threads that poll. `over`: one thread has ended, or all.
    fn begin_polling(&mut self, over: Option<Option<u32>>, place: &mut SeriesPlace<'_>) -> bool {
        let mut begun = false;
        for (tid, name) in self.polling.new_pollers(self.attacher.current_time(), over) {
            let wanted = self.options.thread.as_deref().map(target::truncate_comm);
            let is_wanted = match &wanted {
                Some(wanted) => *wanted == name,
                None => self.attacher.shows_poller(tid),
            };
            let has_cycles = self.threads.get(&tid).is_some_and(|one| one.label().is_some());
            if !is_wanted || has_cycles {
                continue;
            }
            let mut taken_labels = self.thread_labels();
            taken_labels.extend_from_slice(place.taken);
            let label = thread::unique_label(&name, &taken_labels);
            begun = true;
            self.polling.begin_series(tid, label, place, &self.options);
        }
        begun
    }

    /// Counts the records that found no room until now: in all, and `of_threads`.
    fn count_losses(&mut self, of_threads: bool) {
        self.lost = self.attacher.lost_records();
        if of_threads && (self.lost > 0 || self.attacher.lost_moments() > 0) {
            self.count_lost(&self.attacher.living_times());
        }
    }

    fn count_lost(&mut self, times: &[(u32, ThreadTimes)]) {
        for (tid, times) in times {
            if let Some(thread) = self.threads.get_mut(tid) {
                thread.count_lost(times.lost_cycles);
            }
            self.polling.count_lost(*tid, times.lost_gaps);
        }
    }

    /// Records that found no room, of which no thread is known.
    pub(crate) fn lost_of_unknown(&self) -> u64 {
        self.lost.saturating_sub(self.all_threads().map(|thread| thread.lost).sum())
    }

    /// Reads how long each thread was in each state.
    fn look_at_times(&mut self) {
        let times = self.attacher.take_times(true);
        let source = &self.attacher;
        self.polling.add_times(times, |tid| source.thread_comm(tid));
        self.polling.delayed = source.delayed_tasks();
        self.polling.read_facts(|tid| source.thread_facts(tid));
    }

    /// The prefixes of its threads' series.
    pub(crate) fn thread_labels(&self) -> Vec<String> {
        let cyclic = self.all_threads().filter_map(CycleThread::label);
        cyclic.chain(self.polling.thread_labels()).map(str::to_owned).collect()
    }

    /// The series of all threads.
    pub fn all_series(&self) -> impl Iterator<Item = &CycleSeries> {
        self.all_threads().flat_map(CycleThread::all_series).chain(self.polling.all_series())
    }

    /// A description of each thread with a series, for users.
    pub fn thread_descriptions(&self) -> Vec<String> {
        self.all_threads()
            .filter_map(CycleThread::describe_cycles)
            .chain(self.polling.thread_descriptions())
            .collect()
    }

    /// How many cycles of each thread missed the deadline, in lines.
    pub(crate) fn describe_missed(&self) -> impl Iterator<Item = String> {
        let missed_line = |thread: &CycleThread| {
            let (missed, deadline) = thread.missed_deadlines().zip(self.options.deadline)?;
            let (label, all) = (thread.label()?, thread.cycles);
            Some(format!("    {missed} of {all} cycles of {label} took longer than {deadline}"))
        };
        self.all_threads().filter_map(missed_line)
    }

    /// Passes the worst response times to the flight recorder, which looks at those of each thread
    /// once its cycles are known. `watched`: the number of series that it watches.
    pub(crate) fn pass_worst_to(&mut self, flight: &Flight, watched: &mut usize) {
        for thread in self.ended.iter_mut().chain(self.threads.values_mut()) {
            if thread.watched_as.is_none()
                && let Some(series) = watched_series(&self.options.phase, thread)
            {
                thread.watched_as = Some(*watched);
                *watched += 1;
                flight.watch_also(series);
            }
            let worst = thread.take_worst();
            if let Some(place) = thread.watched_as {
                flight.add_worst(place, worst);
            }
        }
    }

    pub fn checkpoint(&mut self) {
        if self.attacher.counts_by_thread() {
            self.count_losses(true);
        }
        self.threads.values_mut().for_each(|thread| thread.checkpoint(&self.calls));
        self.look_at_times();
        self.polling.checkpoint();
    }

    /// Saves everything durably; returns the findings.
    pub fn finish(&mut self) -> Vec<Finding> {
        let (lost, unseen) = (self.lost_records(), self.unseen_events());
        self.threads.values_mut().for_each(|thread| thread.finish(lost));
        self.polling.delayed = self.attacher.delayed_tasks();
        self.polling.finish();
        let mut names = FunctionNames::default();
        for thread in self.ended.iter_mut().chain(self.threads.values_mut()) {
            let tid = thread.tid;
            self.stacks_lost += thread.worst_cycles.look_up(tid, &self.attacher);
            thread.worst_cycles.name_functions(tid, &mut names, &self.calls);
        }
        let mut all_findings = std::mem::take(&mut self.findings);
        all_findings
            .extend(self.all_threads().flat_map(|thread| thread.cycle_findings(&self.calls)));
        let any_real_time = self.all_threads().any(CycleThread::is_real_time);
        let threads = self.ended.iter_mut().chain(self.threads.values_mut());
        let lint = threads.map(|one| one.lint_practice(any_real_time, &self.host, &self.calls));
        all_findings.extend(lint.flatten().collect::<Vec<_>>());
        all_findings.extend(findings::not_seen(&self.options.phase, lost, unseen, self.left_out));
        let hidden = self.all_threads().map(|thread| thread.hidden).sum();
        all_findings.extend(findings::hidden_idle_events(&self.options.phase, hidden));
        let stacks_lost = self.attacher.lost_stacks() + self.stacks_lost;
        let phase = &self.options.phase;
        all_findings.extend(findings::not_shown(phase, self.attacher.lost_moments(), stacks_lost));
        all_findings.extend(self.polling.delay_findings(phase));
        all_findings.extend(self.rights.refusal_findings(phase));
        all_findings.extend(self.without_thread());
        all_findings
    }

    /// The first error of each thread that prevented a write.
    pub(crate) fn write_errors(&self) -> Vec<&BundleError> {
        let of_threads = self.all_threads().filter_map(CycleThread::write_error);
        let of_polling = self.polling.all_series().filter_map(|series| series.kept.write_error());
        of_threads.chain(of_polling).collect()
    }

    /// All series, for their last steps.
    pub(crate) fn all_series_mut(&mut self) -> impl Iterator<Item = &mut CycleSeries> {
        let threads = self.ended.iter_mut().chain(self.threads.values_mut());
        threads.flat_map(CycleThread::all_series_mut).chain(self.polling.all_series_mut())
    }

    /// Threads omitted because there were too many.
    pub fn left_out(&self) -> Option<LeftOut> {
        let (what, bound) = (LeftOutKind::Threads, THREADS as u64);
        (self.left_out > 0).then_some(LeftOut { what, bound, records: self.left_out })
    }

    /// Requirements that match no series: nothing decides them.
    pub fn without_series(&self) -> Vec<String> {
        let is_open = |of: &&SeriesRequirement| {
            let label = |series: &CycleSeries| series.kept.meta.measure.clone();
            !self.all_series().any(|series| of.is_about(&label(series), series.kind))
        };
        self.options.requirements.iter().filter(is_open).map(ToString::to_string).collect()
    }

    /// Requirements on threads without cycles or never seen: nothing decides them.
    fn without_thread(&self) -> Vec<Finding> {
        let labels = self.thread_labels();
        let mut names: Vec<&String> =
            self.options.requirements.iter().filter_map(|of| of.thread.as_ref()).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .filter(|name| !labels.contains(name))
            .map(|name| findings::without_thread(&self.options.phase, name))
            .collect()
    }

    /// Why there are no cycles, and the activity seen instead. `ran`: the duration of a command.
    pub fn nothing_found(&self, ran: Option<Nanos>) -> Option<String> {
        if self.all_series().next().is_some() {
            return None;
        }
        let mut seen_lines = self.seen_instead();
        if seen_lines.is_empty() {
            seen_lines.push("no thread waited in a system call that can begin a cycle".to_owned());
        }
        let too_few = ran.map_or(String::new(), |span| {
            format!(
                " ({MIN_WAITS} cycles are needed to recognise them; it ran for {})",
                span.to_readable()
            )
        });
        let seen_text = seen_lines.join("\n       ");
        Some(format!(
            "no thread with cycles was found{too_few}; what was seen:\n       {seen_text}"
        ))
    }

    /// The waits of threads without cycles.
    pub(crate) fn seen_instead(&self) -> Vec<String> {
        let why_not = self.all_threads().filter_map(|thread| thread.why_not(&self.calls));
        let times = self.polling.spent_in_words();
        why_not.take(8).chain(times.into_iter().take(8)).collect()
    }

    /// The wait(2) statuses of ended threads, by id.
    pub(crate) fn exit_statuses(&self) -> &BTreeMap<u32, u32> {
        &self.statuses
    }

    /// Cycle records that found no room, as of the last count.
    pub fn lost_records(&self) -> u64 {
        self.lost
    }

    /// Events that the kernel did not show.
    pub(crate) fn unseen_events(&self) -> u64 {
        self.attacher.unseen_events()
    }

    /// All threads that were seen.
    pub(crate) fn seen_threads(&self) -> impl Iterator<Item = &CycleThread> {
        self.all_threads()
    }

    pub(crate) fn series_views(&self) -> impl Iterator<Item = SeriesView<'_>> {
        self.all_series().map(CycleSeries::view)
    }

    /// The measures of the bundle, one for each thread with cycles.
    pub(crate) fn measure_metas(&self) -> impl Iterator<Item = MeasureMeta> {
        let cyclic = self.all_threads().filter(|thread| thread.label().is_some());
        cyclic.map(|thread| thread.to_measure_meta(&self.calls)).chain(self.polling.measure_metas())
    }

    /// The lines of a live view.
    pub fn thread_rows(&self) -> Vec<ThreadRow> {
        self.all_threads()
            .filter_map(CycleThread::to_row)
            .chain(self.polling.thread_rows())
            .collect()
    }

    /// The top cause of delay of the last minute.
    pub(crate) fn top_culprit(&self, now: MonotonicNs) -> Option<TopCulprit> {
        self.recent.top_culprit(now)
    }

    pub fn options(&self) -> &CycleOptions {
        &self.options
    }

    /// The CPU time that measuring takes, in words.
    pub fn describe_cost(&self) -> Option<String> {
        let cost = self.cost.known_value()?;
        let micros = |time: Nanos| time.ns() as f64 / 1_000.0;
        Some(format!(
            "cost, measured at the start: {:.2} µs of all CPUs for a cycle, in {} runs of BPF \
             programs, and {:.2} µs for each further system call",
            micros(cost.per_cycle),
            cost.runs_per_cycle,
            micros(cost.per_call)
        ))
    }
}

/// The response times of a thread for the flight recorder.
fn watched_series(phase: &str, thread: &CycleThread) -> Option<WatchedSeries> {
    let meta = thread.response_meta()?;
    Some(WatchedSeries {
        phase: phase.to_owned(),
        series: meta.name.clone(),
        whose: SampleTask::Thread(Tid(thread.tid)),
        clock: Clock::Monotonic,
        waited: if thread.is_timed() { Waited::Timer } else { Waited::Interval },
        cpus: meta.cpus.clone(),
        snapshot_reader: None,
    })
}
