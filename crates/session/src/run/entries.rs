//! CPUs of a phase whose entries into the kernel are measured, from the first entry to the last. No
//! thread of ours runs there; their series belong to the phase.

mod advice;
mod cpu;
mod cross_check;
mod offline;
mod recorder;
pub mod rows;

use super::mapping;
use super::series::SeriesRun;
use crate::exit::Failure;
use crate::observers::Observers;
use crate::request;
use cpu::{EndFacts, MeasuredCpu};
use cross_check::CheckedReading;
use offline::Offline;
use punctual_bundle::SeriesMeta;
use punctual_bundle::evidence::ProgramEvidence;
use punctual_bundle::meta::MeasureMeta;
use punctual_core::entry::OwnCount;
use punctual_core::format;
use punctual_core::{CpuSet, Fact, Finding, MonotonicNs, Nanos, Severity};
use punctual_explain::entries::{EntryNames, EntryRow, EntryTable};
use punctual_host::check::Context;
use punctual_host::cpu_time::CpuTimes;
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use punctual_plan::{Length, MeasurePlan};
use punctual_record::{Backend, kernel_symbols, syscall_names};
use punctual_sys::{attributes, clock};
use recorder::EntriesRecorder;
use rows::CpuRow;
use std::collections::{BTreeMap, BTreeSet};

/// Time between two drains: a CPU's buffer holds 30,000 entries.
pub const TICK: Nanos = Nanos::from_millis(50);
/// Time between two look-ups of names.
const NAMES: Nanos = Nanos::from_millis(1_900);
/// How long the run time of the BPF programs is counted.
const COUNTED: Nanos = Nanos::SECOND;

/// The surroundings of a measurement of entries.
pub struct EntriesContext<'a> {
    pub phase: &'a str,
    /// Whether the CPUs are attached to rather than part of an experiment.
    pub is_attached: bool,
    /// How entries are recorded: [`Backend::Auto`], or one of [`Backend::Btf`] and
    /// [`Backend::Tracefs`] alone.
    pub backend: Backend,
    /// The CPUs of the controller thread; empty: where it runs now.
    pub controller: &'a CpuSet,
    /// The index of the measure's first series in the phase.
    pub first: usize,
}

/// The CPUs of a measure.
#[derive(Default)]
pub struct EntriesRun {
    measure: String,
    /// The subject of its findings.
    subject: String,
    is_attached: bool,
    chosen: CpuSet,
    cpus: BTreeMap<usize, MeasuredCpu>,
    /// Present until its phase has ended.
    recorder: Option<EntriesRecorder>,
    offline: Offline,
    observers: Observers,
    length: Option<Nanos>,
    stop_above: Option<Nanos>,
    begin: Option<EntriesBegin>,
    end: Option<EntriesEnd>,
    /// The measured time, once all is saved.
    took: Option<Nanos>,
    cost: Option<String>,
    view: EntriesView,
}

/// The state of the system when measuring began.
struct EntriesBegin {
    at: MonotonicNs,
    reading: CheckedReading,
    times: Option<CpuTimes>,
}

/// The counters at its end: the recorder may continue.
struct EntriesEnd {
    took: Nanos,
    reading: CheckedReading,
    times: Option<CpuTimes>,
    lost: BTreeMap<usize, u64>,
    unseen: u64,
    own: Vec<OwnCount>,
}

/// The live view and its inputs.
#[derive(Default)]
struct EntriesView {
    rows: Vec<CpuRow>,
    shown: Option<MonotonicNs>,
    /// Names of the shown items, and when they were looked up.
    names: EntryNames,
    named: Option<MonotonicNs>,
    /// Addresses that were looked up, with or without result.
    tried: BTreeSet<u64>,
}

/// An interruption above the limit.
pub struct Above {
    /// The series of the interruption, without the phase.
    pub series: String,
    pub latency: Nanos,
    pub seq: u64,
}

impl EntriesRun {
    /// Loads the BPF programs. Also returns the findings for its reader.
    pub fn prepare(
        measure: &MeasurePlan,
        context: &EntriesContext<'_>,
    ) -> Result<(EntriesRun, Vec<Finding>), String> {
        let text = |why: String| match context.is_attached {
            true => why,
            false => format!("{}: {why}", measure.name),
        };
        let chosen = measure.cpus.clone();
        let mut recorder =
            start_recorder(&chosen, context.backend).map_err(|of| text(of.render(false)))?;
        let subject = match context.is_attached {
            true => context.phase.to_owned(),
            false => format!("{}/{}", context.phase, measure.name),
        };
        let mut findings = measures_itself(&chosen, context.controller);
        findings.append(recorder.findings_mut());
        findings.iter_mut().for_each(|finding| finding.subject.clone_from(&subject));
        let cpus = measure.threads.iter().enumerate().filter_map(|(place, thread)| {
            let number = thread.cpus.first_cpu()?;
            Some((number, MeasuredCpu::new(number, thread.name.clone(), context.first + 2 * place)))
        });
        let run = EntriesRun {
            measure: measure.name.clone(),
            subject,
            is_attached: context.is_attached,
            cpus: cpus.collect(),
            chosen,
            recorder: Some(recorder),
            length: match measure.length {
                Length::Duration(span) => Some(span),
                Length::Samples(_) | Length::UntilInterrupted => None,
            },
            stop_above: measure.stop_above,
            ..EntriesRun::default()
        };
        Ok((run, findings))
    }

    /// Whether entries can be measured in a later phase.
    pub(crate) fn check_support(measure: &MeasurePlan) -> Result<(), Failure> {
        start_recorder(&measure.cpus, Backend::Auto).map(drop)
    }

    /// The series of the CPUs, in the order of the phase.
    pub(crate) fn series_metas(&self, measure: &MeasurePlan) -> Vec<SeriesMeta> {
        // In the order of the plan, which is that of the numbers.
        self.cpus.values().flat_map(|cpu| cpu.series_metas(measure)).collect()
    }

    /// Starts measuring: earlier entries do not count.
    pub fn begin(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.drain(&mut |_| ());
        let reading = CheckedReading::read(recorder, self.chosen.iter());
        let times = CpuTimes::read(&Root::from_system()).ok();
        self.begin = Some(EntriesBegin { at: clock::monotonic_now(), reading, times });
    }

    /// Whether the time of the measure is over.
    pub fn is_finished(&self) -> bool {
        let began = self.begin.as_ref().map(|begin| begin.at);
        let over = |length: Nanos| began.is_some_and(|at| clock::monotonic_now() - at >= length);
        self.length.is_some_and(over)
    }

    /// Adds entries; returns an interruption above the limit.
    pub fn drain(&mut self, series: &mut [SeriesRun]) -> Option<Above> {
        let began = self.begin.as_ref()?.at;
        if self.end.is_some() {
            return None;
        }
        let above = self.take_entries(began, series);
        let elapsed = clock::monotonic_now() - began;
        if self.cost.is_none() && elapsed >= COUNTED {
            self.count_cost(elapsed);
        }
        if self.is_finished() {
            self.stop(series);
        }
        above
    }

    fn take_entries(&mut self, began: MonotonicNs, series: &mut [SeriesRun]) -> Option<Above> {
        if let Ok(online) = request::online_cpus() {
            self.offline.note_online(&self.chosen, &online, clock::monotonic_now());
        }
        self.observers.find_new();
        let EntriesRun { cpus, offline, observers, recorder, stop_above, .. } = self;
        let mut above = None;
        recorder.as_mut()?.drain(&mut |entry| {
            let entry = observers.mark_entry(entry);
            if let Some(cpu) = cpus.get_mut(&usize::from(entry.cpu))
                && entry.end >= began
                && offline.is_entry(&entry)
                && let Some(sample) = cpu.push(&entry, series)
                && stop_above.is_some_and(|limit| sample.latency() > limit)
            {
                let name = cpu.interruptions_of(series);
                above.get_or_insert_with(|| Above {
                    series: name,
                    latency: sample.latency(),
                    seq: sample.seq,
                });
            }
        });
        above
    }

    /// Stops measuring.
    fn stop(&mut self, series: &mut [SeriesRun]) {
        let Some(began) = self.begin.as_ref().map(|begin| begin.at) else { return };
        if self.end.is_some() {
            return;
        }
        let took = clock::monotonic_now() - began;
        let Some(recorder) = &mut self.recorder else { return };
        let reading = CheckedReading::read(recorder, self.chosen.iter());
        self.take_entries(began, series);
        if self.cost.is_none() {
            self.count_cost(took);
        }
        let Some(recorder) = &self.recorder else { return };
        self.end = Some(EntriesEnd {
            took,
            reading,
            times: CpuTimes::read(&Root::from_system()).ok(),
            lost: self.chosen.iter().map(|cpu| (cpu, recorder.lost_entries(cpu))).collect(),
            unseen: recorder.unseen_events(&self.chosen),
            own: recorder.own_counts(),
        });
    }

    /// Stops measuring and saves names, sums and findings durably.
    pub fn finish(
        &mut self,
        environment: Option<Environment>,
        series: &mut [SeriesRun],
    ) -> Vec<Finding> {
        self.stop(series);
        let (Some(recorder), Some(begin), Some(end)) =
            (self.recorder.take(), self.begin.take(), self.end.take())
        else {
            self.cpus.values_mut().for_each(|cpu| cpu.finish(0, series));
            return Vec::new();
        };
        self.took = Some(end.took);
        let mut findings = Vec::new();
        let names = self.resolve_names(&recorder, &end.reading, &mut findings);
        let calls = syscall_names();
        let load = begin.times.as_ref().zip(end.times.as_ref());
        let load = load.and_then(|(first, last)| mapping::cpu_load(first, last));
        let mut rows: BTreeMap<usize, Vec<EntryRow>> = BTreeMap::new();
        for (number, cpu) in &mut self.cpus {
            let lost = end.lost.get(number).copied().unwrap_or(0);
            cpu.finish(lost, series);
            let steal = load.as_ref().and_then(|of| Some(of.cpus.get(&(*number as u32))?.steal));
            let end_facts = EndFacts {
                names: &names,
                own: &end.own,
                observers: &self.observers.threads,
                calls: &calls,
                took: end.took - self.offline.offline_time(*number),
                steal,
            };
            let validations =
                end.reading.validate_since(&begin.reading, *number, &recorder, end.unseen);
            rows.insert(*number, cpu.describe_cpu(&end_facts, validations, series));
            let loss_counts = (lost, cpu.table.left_out, end.reading.own_lost(*number));
            findings.extend(not_seen(&self.subject, *number, loss_counts));
        }
        findings.extend(recorder.not_seen(&self.subject));
        findings.extend(self.offline.offline_findings(&self.subject, TICK));
        if let Some(environment) = environment {
            let root = Root::from_system();
            let context = Context::from_environment(&root, environment, Some(self.chosen.clone()));
            findings.extend(advice::entry_findings(&self.subject, &rows, &context));
        }
        findings
    }

    /// The names of all addresses, interrupts and stacks in the rows.
    fn resolve_names(
        &self,
        recorder: &EntriesRecorder,
        last: &CheckedReading,
        findings: &mut Vec<Finding>,
    ) -> EntryNames {
        let tables = || self.cpus.values().map(|cpu| &cpu.table);
        let numbers: BTreeSet<u32> = tables().flat_map(|table| table.originator_stacks()).collect();
        let stacks: BTreeMap<u32, Vec<u64>> =
            numbers.into_iter().map(|number| (number, recorder.kernel_stack(number))).collect();
        let mut addresses: BTreeSet<u64> =
            tables().flat_map(|table| table.needed_addresses()).collect();
        addresses.extend(stacks.values().flatten());
        let symbols = match kernel_symbols(&addresses) {
            Fact::Known(symbols) => symbols,
            Fact::NotAsked => BTreeMap::new(),
            Fact::Unavailable(why) => {
                let message = "functions of the kernel are shown by their addresses, and ticks \
                               as timers";
                let subject = self.subject.clone();
                let finding =
                    Finding::new("no-kernel-symbols", Severity::Warning, subject, message);
                findings.push(finding.with_evidence(why));
                BTreeMap::new()
            }
        };
        EntryNames { symbols, irqs: last.interrupt_names(), stacks }
    }

    /// The CPUs as measures of the bundle.
    pub(crate) fn measure_metas(&self) -> impl Iterator<Item = MeasureMeta> {
        let own_parameters = [("measure", Some(&self.measure)), ("cost", self.cost.as_ref())];
        let of_experiment = own_parameters.into_iter().filter(|_| !self.is_attached);
        let shared_parameters: BTreeMap<String, String> = of_experiment
            .filter_map(|(key, value)| Some((key.to_owned(), value?.clone())))
            .collect();
        self.cpus.values().map(move |cpu| {
            let mut measure = cpu.to_measure_meta();
            measure.parameters.extend(shared_parameters.clone());
            measure
        })
    }

    /// Whether the measure did what was requested.
    pub(crate) fn to_evidence(&self) -> ProgramEvidence {
        let ran = self.took.unwrap_or_default();
        ProgramEvidence {
            name: self.measure.clone(),
            series: self.measure_metas().flat_map(|measure| measure.series).collect(),
            has_end: self.length.is_some(),
            reached_end: self.length.is_some_and(|length| ran >= length),
            ran,
            ..ProgramEvidence::default()
        }
    }

    /// The time that measuring took of all CPUs, in words.
    pub fn cost(&self) -> Option<&str> {
        self.cost.as_deref()
    }

    fn count_cost(&mut self, took: Nanos) {
        if let Some((ns, runs)) = self.recorder.as_mut().and_then(EntriesRecorder::program_cost) {
            let per_second = |n: u64| n as f64 / took.as_secs_f64().max(1e-9);
            self.cost = Some(format!(
                "cost, counted in the first {}: {:.0} µs of all CPUs a second, in {} runs of BPF \
                 programs of {} ns",
                took.to_readable(),
                per_second(ns) / 1_000.0,
                format::count_text(per_second(runs) as u64),
                ns / runs.max(1)
            ));
        }
    }

    /// Updates its state for a live view.
    pub(crate) fn update_view(&mut self, series: &[SeriesRun]) {
        let Some(began) = self.begin.as_ref().map(|begin| begin.at) else { return };
        let now = clock::monotonic_now();
        let (elapsed, since) = (now - began, now - self.view.shown.unwrap_or(began));
        let top = |(cpu, of): (&usize, &MeasuredCpu)| {
            Some((*cpu, of.table.top_entries(&self.view.names)?))
        };
        let tops: BTreeMap<usize, EntryTable> = self.cpus.iter().filter_map(top).collect();
        self.add_view_names(&tops, now);
        let names = &self.view.names;
        let top = |cpu: &usize| tops.get(cpu).and_then(|top| top.to_rows(names).into_iter().next());
        let row = |(number, cpu): (&usize, &mut MeasuredCpu)| {
            cpu.update_row(top(number), elapsed, since, series)
        };
        self.view.rows = self.cpus.iter_mut().map(row).collect();
        self.view.shown = Some(now);
    }

    /// The rows of the last `look`.
    pub(crate) fn view_rows(&self) -> &[CpuRow] {
        &self.view.rows
    }

    pub fn chosen_cpus(&self) -> &CpuSet {
        &self.chosen
    }

    /// Looks up unknown names of these.
    fn add_view_names(&mut self, tops: &BTreeMap<usize, EntryTable>, now: MonotonicNs) {
        let EntriesView { names, named, tried, .. } = &mut self.view;
        if named.is_some_and(|named| now - named < NAMES) {
            return;
        }
        let Some(recorder) = &self.recorder else { return };
        for number in tops.values().flat_map(EntryTable::originator_stacks) {
            names.stacks.entry(number).or_insert_with(|| recorder.kernel_stack(number));
        }
        let stacks = tops.values().flat_map(EntryTable::originator_stacks);
        let stacks = stacks.filter_map(|number| names.stacks.get(&number)).flatten().copied();
        let all_addresses = tops.values().flat_map(EntryTable::needed_addresses).chain(stacks);
        let new: BTreeSet<u64> = all_addresses.filter(|address| !tried.contains(address)).collect();
        if new.is_empty() {
            return;
        }
        *named = Some(now);
        if names.irqs.is_empty() {
            names.irqs =
                self.begin.as_ref().map(|of| of.reading.interrupt_names()).unwrap_or_default();
        }
        if let Fact::Known(symbols) = kernel_symbols(&new) {
            names.symbols.extend(symbols);
        }
        tried.extend(new);
    }
}

fn start_recorder(chosen: &CpuSet, backend: Backend) -> Result<EntriesRecorder, Failure> {
    let online = request::online_cpus()?;
    EntriesRecorder::start(chosen, &online, backend).map_err(|why| {
        Failure::refused(format!(
            "entries into the kernel cannot be recorded on this system: \
                                  {why}"
        ))
    })
}

/// Reports a controller that runs on the CPUs that it measures.
fn measures_itself(chosen: &CpuSet, controller: &CpuSet) -> Vec<Finding> {
    let own_cpus = match controller.is_empty() {
        true => attributes::read_affinity(0).unwrap_or_else(|_| chosen.clone()),
        false => controller.clone(),
    };
    if own_cpus.intersection(chosen).is_empty() {
        return Vec::new();
    }
    let message = "punctual itself runs on a CPU that it measures: its entries are in the figures";
    let finding = Finding::new("measures-itself", Severity::Warning, "", message);
    vec![finding.with_remedy("leave at least one CPU out of those whose entries are measured")]
}

/// Findings about entries that the figures do not contain.
fn not_seen(subject: &str, cpu: usize, (lost, left_out, own): (u64, u64, u64)) -> Vec<Finding> {
    let finding = |id: &str, n: u64, noun: &str, what: &str| {
        let message = format!("CPU {cpu}: {} {what}", format::count_with_noun(n, noun));
        (n > 0).then(|| Finding::new(id, Severity::Warning, subject, message))
    };
    let lost = finding("entries-lost", lost, "record", "of entries lost: the buffer was full");
    let left_out =
        finding("entries-left-out", left_out, "record", "of entries without a row: too many rows");
    let own_lost = finding(
        "own-entries-lost",
        own,
        "record",
        "of system calls and page faults not counted: too many threads",
    );
    [lost, left_out, own_lost].into_iter().flatten().collect()
}
