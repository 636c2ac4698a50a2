//! CPUs that are measured: from the first entry to the last, and the end of the bundle.

use super::advice;
use super::checked::Reading;
use super::cpu::Cpu;
use super::offline::Offline;
use super::recorder::Entries;
use super::requirement::EntryRequirement;
use crate::attach::PHASE;
use crate::attach::watcher::{Disturbed, Watcher};
use crate::baseline::Baseline;
use crate::cycles::incomplete;
use crate::end::{self, Further, Measured};
use crate::engine::{Begun, Ended, Engine, REFRESH, Round, Schedule, Source, SystemClock};
use crate::exit::{Exit, Failure};
use crate::interrupts::Interrupts;
use crate::request;
use crate::run::mapping;
use crate::unfinished::Unfinished;
use punctual_analyze::PhaseView;
use punctual_analyze::entries::{EntryNames, EntryRow, EntryTable};
use punctual_bundle::load::CpuLoad;
use punctual_bundle::summary::Summary;
use punctual_bundle::{BundleWriter, Outcome, PhaseMeta};
use punctual_core::{CpuSet, Fact, Finding, MonotonicNs, Nanos, Severity};
use punctual_host::check::Context;
use punctual_host::cpu_time::CpuTimes;
use punctual_host::environment::{self, Environment};
use punctual_host::files::Root;
use punctual_record::{Backend, kernel_symbols, syscall_names};
use punctual_report::format;
use punctual_sys::{attributes, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;

/// How often records are drained: a CPU's buffer holds 30,000 entries.
const TICK: Nanos = Nanos::from_millis(50);
/// How often names are looked for.
const NAMES: Nanos = Nanos::from_millis(1_900);
/// The run time of the programs is counted for so long.
const COUNTED: Nanos = Nanos::SECOND;

/// What is asked of CPUs.
pub struct CpuOptions {
    pub duration: Option<Nanos>,
    pub requirements: Vec<EntryRequirement>,
    /// By what entries are recorded: [`Backend::Auto`], or one of [`Backend::Btf`] and
    /// [`Backend::Tracefs`] alone.
    pub backend: Backend,
    /// The runs that it is held against.
    pub baseline: Option<Baseline>,
}

pub struct CpuAttachment {
    unfinished: Unfinished,
    options: CpuOptions,
    writer: BundleWriter,
    phase: PhaseMeta,
    chosen: CpuSet,
    cpus: BTreeMap<usize, Cpu>,
    recorder: Entries,
    first: Reading,
    times: Option<CpuTimes>,
    offline: Offline,
    findings: Vec<Finding>,
    unwritten: Vec<String>,
    cost: Option<String>,
    /// Names of what the live view shows, and when they were looked for.
    names: EntryNames,
    named: Option<MonotonicNs>,
    /// Addresses that were looked for, whether they have a name or not.
    tried: BTreeSet<u64>,
}

pub struct MeasuredCpus {
    pub summary: Summary,
    /// What measuring took of the CPUs, in words.
    pub cost: Option<String>,
    pub exit: Exit,
    /// What could not be written at the very end.
    pub trouble: Option<Failure>,
    phase: PhaseMeta,
    cpus: BTreeMap<usize, Cpu>,
}

impl MeasuredCpus {
    /// What the figures are of, as the analysis takes it.
    pub fn view(&self) -> PhaseView<'_> {
        PhaseView { meta: &self.phase, series: self.cpus.values().flat_map(Cpu::views).collect() }
    }
}

impl CpuAttachment {
    /// Puts the programs into the kernel and begins the bundle. Nothing is left of it where that
    /// fails.
    pub fn start(
        directory: &Path,
        chosen: &CpuSet,
        options: CpuOptions,
    ) -> Result<CpuAttachment, Failure> {
        let online = request::online_cpus()?;
        check(chosen, &online, &options.requirements)?;
        let mut findings: Vec<Finding> = stay_away(chosen, &online).into_iter().collect();
        let mut recorder = Entries::start(chosen, &online, options.backend).map_err(|why| {
            Failure::refused(format!("entries into the kernel cannot be recorded here: {why}"))
        })?;
        findings.append(recorder.findings());
        let name = format!("CPU {chosen}");
        let writer = BundleWriter::create(directory, &name, "attach").map_err(Failure::refused)?;
        let unfinished = Unfinished::of(directory);
        let first = Reading::take(&mut recorder, chosen.iter());
        let mut attachment = CpuAttachment {
            unfinished,
            options,
            writer,
            phase: PhaseMeta {
                started_monotonic: clock::monotonic().ns(),
                ..PhaseMeta::new(PHASE, jiff::Timestamp::now())
            },
            chosen: chosen.clone(),
            cpus: BTreeMap::new(),
            first,
            recorder,
            times: CpuTimes::read(&Root::system()).ok(),
            offline: Offline::default(),
            findings,
            unwritten: Vec::new(),
            cost: None,
            names: EntryNames::default(),
            named: None,
            tried: BTreeSet::new(),
        };
        attachment.begin().map_err(Failure::failed)?;
        attachment.unfinished.keep();
        Ok(attachment)
    }

    fn begin(&mut self) -> Result<(), punctual_bundle::BundleError> {
        let environment = environment::capture(&Root::system());
        self.writer.write_document("environment", &environment)?;
        self.writer.write_phase(0, &self.phase)?;
        for (place, cpu) in self.chosen.iter().enumerate() {
            let begun = Cpu::begin(cpu, &self.writer, 2 * place, &self.options.requirements)?;
            self.cpus.insert(cpu, begun);
        }
        self.phase.measures = self.cpus.values().map(Cpu::measure).collect();
        self.writer.write_phase(0, &self.phase)
    }

    /// Until the time or the user ends it.
    pub fn measure(
        &mut self,
        interrupts: &Interrupts,
        watcher: &mut dyn Watcher<Disturbed>,
    ) -> Outcome {
        let engine = Engine { clock: &SystemClock, end_requested: &|| interrupts.end_requested() };
        let began = clock::monotonic();
        let mut source = Measuring { attachment: self, watcher, began, shown: began };
        let Ok(ended) = engine.run(&mut source);
        ended.unwrap_or(Outcome::Completed)
    }

    /// Its state, `elapsed` after the begin and `since` the look before.
    fn state(&mut self, now: MonotonicNs, elapsed: Nanos, since: Nanos) -> Disturbed {
        let tops: BTreeMap<usize, EntryTable> = self
            .cpus
            .iter()
            .filter_map(|(cpu, of)| Some((*cpu, of.table.top(&self.names)?)))
            .collect();
        self.name(&tops, now);
        let names = &self.names;
        let top = |cpu: &usize| tops.get(cpu).and_then(|top| top.rows(names).into_iter().next());
        let row = |(number, cpu): (&usize, &mut Cpu)| cpu.row(top(number), elapsed, since);
        Disturbed {
            chosen: self.chosen.clone(),
            elapsed,
            planned: self.options.duration,
            cpus: self.cpus.iter_mut().map(row).collect(),
        }
    }

    /// Looks for names that these have and that are not known yet.
    fn name(&mut self, tops: &BTreeMap<usize, EntryTable>, now: MonotonicNs) {
        if self.named.is_some_and(|named| now - named < NAMES) {
            return;
        }
        for number in tops.values().flat_map(EntryTable::stacks) {
            let recorder = &self.recorder;
            self.names.stacks.entry(number).or_insert_with(|| recorder.stack(number));
        }
        let stacks = tops.values().flat_map(EntryTable::stacks);
        let stacks = stacks.filter_map(|number| self.names.stacks.get(&number)).flatten().copied();
        let all = tops.values().flat_map(EntryTable::addresses).chain(stacks);
        let is_new = |address: &u64| !self.tried.contains(address);
        let new: BTreeSet<u64> = all.filter(is_new).collect();
        if new.is_empty() {
            return;
        }
        self.named = Some(now);
        if self.names.irqs.is_empty() {
            self.names.irqs = self.first.names();
        }
        if let Fact::Known(symbols) = kernel_symbols(&new) {
            self.names.symbols.extend(symbols);
        }
        self.tried.extend(new);
    }

    fn drain(&mut self, began: MonotonicNs) {
        if let Ok(online) = request::online_cpus() {
            self.offline.look(&self.chosen, &online, clock::monotonic());
        }
        let CpuAttachment { cpus, offline, recorder, .. } = self;
        recorder.drain(&mut |entry| {
            if let Some(cpu) = cpus.get_mut(&usize::from(entry.cpu))
                && entry.end >= began
                && offline.is_entry(&entry)
            {
                cpu.push(&entry);
            }
        });
    }

    fn count_cost(&mut self, took: Nanos) {
        if let Some((ns, runs)) = self.recorder.cost() {
            let per_second = |n: u64| n as f64 / took.as_secs_f64().max(1e-9);
            self.cost = Some(format!(
                "cost, counted in the first {}: {:.0} µs of all CPUs a second, in {} runs of BPF \
                 programs of {} ns",
                took.readable(),
                per_second(ns) / 1_000.0,
                format::count(per_second(runs) as u64),
                ns / runs.max(1)
            ));
        }
    }

    /// Names, sums, findings: everything is written.
    fn finish(&mut self, last: &Reading, took: Nanos) {
        let names = self.names(last);
        let (own, calls) = (self.recorder.own(), syscall_names());
        let unseen = self.recorder.unseen(&self.chosen);
        self.phase.cpu_load = self.load();
        let mut rows: BTreeMap<usize, Vec<EntryRow>> = BTreeMap::new();
        for (number, cpu) in &mut self.cpus {
            let lost = self.recorder.lost(*number);
            cpu.finish(lost);
            let load = self.phase.cpu_load.known();
            let steal = load.and_then(|of| Some(of.cpus.get(&(*number as u32))?.steal));
            let validations = last.since(&self.first, *number, &self.recorder, unseen);
            let took = took - self.offline.time(*number);
            rows.insert(*number, cpu.describe(&names, &own, &calls, took, steal, validations));
            let more = (lost, cpu.table.left_out, last.own_lost(*number));
            self.findings.extend(not_seen(*number, more));
        }
        self.findings.extend(self.recorder.not_seen(PHASE));
        self.findings.extend(self.offline.findings(PHASE, TICK));
        let root = Root::system();
        if let Ok(Some(environment)) = self.writer.document::<Environment>("environment") {
            let context = Context::of(&root, environment, Some(self.chosen.clone()));
            self.findings.extend(advice::findings(&rows, &context));
        }
        self.phase.measures = self.cpus.values().map(Cpu::measure).collect();
        let written = self.writer.write_phase(0, &self.phase).err();
        let troubles = self.cpus.values().find_map(Cpu::trouble).into_iter().chain(&written);
        for why in troubles {
            self.findings.push(incomplete(PHASE, why));
            self.unwritten.push(why.to_string());
        }
    }

    fn load(&self) -> Fact<CpuLoad> {
        let now = CpuTimes::read(&Root::system()).ok();
        let (Some(first), Some(now)) = (&self.times, now) else { return Fact::NotAsked };
        mapping::cpu_load(first, &now).map_or(Fact::NotAsked, Fact::Known)
    }

    /// The names of all addresses, interrupts and stacks that rows have.
    fn names(&mut self, last: &Reading) -> EntryNames {
        let tables = || self.cpus.values().map(|cpu| &cpu.table);
        let numbers: BTreeSet<u32> = tables().flat_map(|table| table.stacks()).collect();
        let stacks: BTreeMap<u32, Vec<u64>> =
            numbers.into_iter().map(|number| (number, self.recorder.stack(number))).collect();
        let mut addresses: BTreeSet<u64> = tables().flat_map(|table| table.addresses()).collect();
        addresses.extend(stacks.values().flatten());
        let symbols = match kernel_symbols(&addresses) {
            Fact::Known(symbols) => symbols,
            Fact::NotAsked => BTreeMap::new(),
            Fact::Unavailable(why) => {
                let message = "functions of the kernel are shown by their addresses, and ticks \
                               as timers";
                let finding = Finding::new("no-kernel-symbols", Severity::Warning, PHASE, message);
                self.findings.push(finding.evidence(why));
                BTreeMap::new()
            }
        };
        EntryNames { symbols, irqs: last.names(), stacks }
    }

    /// Computes the figures and ends the bundle.
    pub fn end(self, outcome: Outcome) -> MeasuredCpus {
        let CpuAttachment { writer, phase, cpus, findings, cost, unwritten, options, .. } = self;
        let series = cpus.values().flat_map(Cpu::views).collect();
        let views = [PhaseView { meta: &phase, series }];
        let measured = Measured { phases: &views, found: &findings, recorded: None, unwritten };
        let further = Further { baseline: options.baseline, ..Further::default() };
        let end::Ended { summary, exit, trouble } =
            end::end(writer, outcome, measured, &further, |_| Ok(()));
        MeasuredCpus { summary, cost, exit, trouble, phase, cpus }
    }
}

/// CPUs as a source of the engine.
struct Measuring<'a> {
    attachment: &'a mut CpuAttachment,
    watcher: &'a mut dyn Watcher<Disturbed>,
    began: MonotonicNs,
    /// When it was last shown.
    shown: MonotonicNs,
}

impl Source for Measuring<'_> {
    type Error = Infallible;

    fn begin(&mut self) -> Result<Begun, Infallible> {
        let attachment = &mut *self.attachment;
        // What came while the bundle was begun is none of the measurement.
        attachment.recorder.drain(&mut |_| ());
        attachment.first = Reading::take(&mut attachment.recorder, attachment.chosen.iter());
        self.began = clock::monotonic();
        self.shown = self.began;
        attachment.phase.started = jiff::Timestamp::now();
        attachment.phase.started_monotonic = self.began.ns();
        Ok(Begun::Measuring(Schedule {
            began: self.began,
            tick: TICK,
            refresh: self.watcher.watches().then_some(REFRESH),
            at_least: None,
            at_most: attachment.options.duration,
        }))
    }

    fn round(&mut self) -> Result<Round, Infallible> {
        self.attachment.drain(self.began);
        let elapsed = clock::monotonic() - self.began;
        if self.attachment.cost.is_none() && elapsed >= COUNTED {
            self.attachment.count_cost(elapsed);
        }
        Ok(Round::default())
    }

    fn checkpoint(&mut self) {
        self.attachment.cpus.values_mut().for_each(Cpu::checkpoint);
    }

    fn refresh(&mut self, now: MonotonicNs, elapsed: Nanos) {
        let state = self.attachment.state(now, elapsed, now - self.shown);
        self.shown = now;
        self.watcher.refresh(&state);
    }

    fn finish(&mut self, ended: Ended<Infallible>) -> Ended<Infallible> {
        self.watcher.end();
        let attachment = &mut *self.attachment;
        let took = clock::monotonic() - self.began;
        attachment.phase.duration = Some(took);
        let last = Reading::take(&mut attachment.recorder, attachment.chosen.iter());
        attachment.drain(self.began);
        attachment.count_cost(took);
        attachment.finish(&last, took);
        ended
    }
}

fn check(
    chosen: &CpuSet,
    online: &CpuSet,
    requirements: &[EntryRequirement],
) -> Result<(), Failure> {
    let missing = chosen.difference(online);
    if chosen.is_empty() || !missing.is_empty() {
        let message = format!("--cpus {chosen}: CPU {missing} is not online (CPUs {online} are)");
        return Err(Failure::refused(message));
    }
    match requirements.iter().filter_map(|of| of.cpu).find(|cpu| !chosen.contains(*cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Failure::refused(format!(
            "a requirement is about CPU {cpu}, which is not measured: --cpus {chosen}"
        ))),
    }
}

/// Nothing of this process shall run on the CPUs that it measures.
fn stay_away(chosen: &CpuSet, online: &CpuSet) -> Option<Finding> {
    let allowed = attributes::affinity(0).unwrap_or_else(|_| online.clone());
    let others = match allowed.difference(chosen) {
        none if none.is_empty() => online.difference(chosen),
        others => others,
    };
    if !others.is_empty() && attributes::set_affinity(0, &others).is_ok() {
        return None;
    }
    let message = "punctual itself runs on a CPU that it measures: its entries are in the figures";
    let finding = Finding::new("measures-itself", Severity::Warning, PHASE, message);
    Some(finding.remedy("leave at least one CPU out of --cpus"))
}

/// What is not in the figures.
fn not_seen(cpu: usize, (lost, left_out, own): (u64, u64, u64)) -> Vec<Finding> {
    let finding = |id: &str, n: u64, noun: &str, what: &str| {
        let message = format!("CPU {cpu}: {} {what}", format::counted(n, noun));
        (n > 0).then(|| Finding::new(id, Severity::Warning, PHASE, message))
    };
    let lost = finding("entries-lost", lost, "record", "of entries lost: the buffer was full");
    let left_out =
        finding("entries-left-out", left_out, "record", "of entries in no row: too many rows");
    let own = finding(
        "own-entries-lost",
        own,
        "record",
        "of system calls and page faults not counted: too many threads",
    );
    [lost, left_out, own].into_iter().flatten().collect()
}
