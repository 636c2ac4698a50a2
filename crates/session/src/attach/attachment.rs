//! A program that is measured: from attaching to its last cycle.

use super::facts;
use super::findings;
use super::metrics;
use super::options::{Options, PHASE};
use super::recent::Recent;
use super::target::{Started, Target};
use super::thread::{self, Thread};
use super::watcher::{Attached, Watcher};
use crate::command::Command;
use crate::exit::Failure;
use crate::flight::{Flight, Watched, Whose};
use crate::interrupts::Interrupts;
use crate::request;
use crate::run::mapping;
use crate::unfinished::Unfinished;
use crate::violation::ViolationHook;
use punctual_analyze::cycles::CallNames;
use punctual_analyze::cycles::lint::HostFacts;
use punctual_bundle::windows::Waited;
use punctual_bundle::{BundleWriter, Outcome, PhaseMeta};
use punctual_core::cycle::{Cycle, SeriesKind};
use punctual_core::event::Tid;
use punctual_core::{Clock, CpuSet, Fact, Finding, MonotonicNs, Nanos};
use punctual_host::cpu_time::CpuTimes;
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_plan::{ExplainPlan, WorkloadKind};
use punctual_record::attach::{AttachCost, Attacher};
use punctual_sys::clock;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How often records are drained: a CPU's buffer holds 10,000 cycles.
const TICK: Duration = Duration::from_millis(50);
/// How often statistics are saved: what kill -9 can cost.
const CHECKPOINT: Nanos = Nanos::from_millis(900);
/// The distance of two live views.
const REFRESH: Nanos = Nanos::from_millis(500);
/// Threads whose cycles are kept at once.
const THREADS: usize = 512;

/// A program that is measured.
pub struct Attachment {
    unfinished: Unfinished,
    pub(super) options: Options,
    pub(super) writer: BundleWriter,
    pub(super) phase: PhaseMeta,
    pub(super) findings: Vec<Finding>,
    pub(super) threads: BTreeMap<u32, Thread>,
    pub(super) calls: CallNames,
    pub(super) command: Option<Command>,
    lost: u64,
    unseen: u64,
    /// Of the programs in the kernel.
    pub(super) cost: Fact<AttachCost>,
    attacher: Attacher,
    flight: Option<Flight>,
    /// How many series the flight recorder watches.
    watched: usize,
    /// Records that are not older than the last round.
    later: Vec<Cycle>,
    times: Option<CpuTimes>,
    host: HostFacts,
    series: usize,
    left_out: u64,
    recent: Recent,
    hook: Option<ViolationHook>,
}

impl Attachment {
    /// Puts the programs into the kernel and begins the bundle. Nothing is left of it where that
    /// fails.
    pub fn start(
        directory: &Path,
        target: &Target,
        options: Options,
    ) -> Result<Attachment, Failure> {
        let cpus = request::online_cpus()?;
        let mut attacher = Attacher::start(&cpus, true).map_err(|why| {
            Failure::refused(format!("the cycles of programs cannot be measured here: {why}"))
        })?;
        let cost = attacher.cost();
        let writer =
            BundleWriter::create(directory, &target.name(), "attach").map_err(Failure::refused)?;
        let phase = PhaseMeta {
            name: PHASE.to_owned(),
            started: jiff::Timestamp::now(),
            started_monotonic: clock::monotonic().ns(),
            duration: None,
            loads: Vec::new(),
            cpu_load: Fact::NotAsked,
            evidence: Fact::NotAsked,
            measures: Vec::new(),
        };
        let unfinished = Unfinished::of(directory);
        let environment = environment::capture(&Root::system());
        let written = writer
            .write_document("environment", &environment)
            .and_then(|()| writer.write_phase(0, &phase));
        let host = facts::of_host(&Root::system(), environment);
        written.map_err(Failure::failed)?;
        let plan = || ExplainPlan {
            account: false,
            ..ExplainPlan::usual([WorkloadKind::Mutex, WorkloadKind::Storage])
        };
        let fly = || Flight::start(directory, &plan(), cpus.clone(), &CpuSet::new());
        let flight = options.explain.then(fly).transpose()?;
        let command = options.on_violation.clone();
        Ok(Attachment {
            hook: command.map(|command| ViolationHook::new(command, directory)),
            unfinished,
            options,
            writer,
            phase,
            findings: attacher.findings.clone(),
            threads: BTreeMap::new(),
            calls: punctual_record::syscall_names(),
            command: None,
            lost: 0,
            unseen: 0,
            cost,
            attacher,
            flight,
            watched: 0,
            later: Vec::new(),
            times: CpuTimes::read(&Root::system()).ok(),
            host,
            series: 0,
            left_out: 0,
            recent: Recent::default(),
        })
    }

    /// Watches the target; a command begins when this returns. Nothing is left of a bundle where
    /// that fails and this is dropped.
    pub fn begin(&mut self, target: &Target) -> Result<Started, Failure> {
        let started = target.start(&self.attacher)?;
        self.unfinished.keep();
        self.phase.started = jiff::Timestamp::now();
        self.phase.started_monotonic = clock::monotonic().ns();
        Ok(started)
    }

    /// Until the target, the time, the user or a response time ends it.
    pub fn measure(
        &mut self,
        mut started: Started,
        interrupts: &Interrupts,
        watcher: &mut dyn Watcher,
    ) -> Outcome {
        let began = MonotonicNs(self.phase.started_monotonic);
        let (mut next_checkpoint, mut next_line) = (began + CHECKPOINT, began + REFRESH);
        let mut outcome = Outcome::Completed;
        loop {
            std::thread::sleep(TICK);
            // In this order: what the target did before it ended is drained after its end was seen.
            let ended = started.has_ended();
            let stopped = self.drain(ended);
            let now = clock::monotonic();
            if now >= next_checkpoint {
                self.checkpoint();
                next_checkpoint = now + CHECKPOINT;
            }
            if now >= next_line {
                self.show(watcher, now, now - began);
                next_line = now + REFRESH;
            }
            self.write_metrics(Some(now));
            if ended {
                break;
            }
            let over = self.options.duration.is_some_and(|duration| now - began >= duration);
            if over || stopped.is_some() || interrupts.end_requested() {
                outcome = match stopped {
                    Some((series, latency)) => {
                        Outcome::StoppedAbove { series, latency: latency.ns() }
                    }
                    None if over => Outcome::Completed,
                    None => Outcome::Interrupted,
                };
                break;
            }
        }
        watcher.end();
        self.command = started.end();
        self.phase.duration = Some(clock::monotonic() - began);
        self.drain(true);
        self.finish();
        outcome
    }

    /// Takes what the kernel has; a response time above the limit, and of which series.
    fn drain(&mut self, ended: bool) -> Option<(String, Nanos)> {
        let until = clock::monotonic();
        let mut records = std::mem::take(&mut self.later);
        self.attacher.drain(&mut |cycle| records.push(cycle));
        // What one CPU recorded meanwhile may come after what another will yet hand over.
        records.sort_by_key(|cycle| (cycle.again, cycle.release));
        let ripe = if ended {
            records.len()
        } else {
            records.partition_point(|cycle| cycle.again < until)
        };
        self.later = records.split_off(ripe);
        let mut stopped = None;
        for record in records {
            if !self.threads.contains_key(&record.tid) {
                if self.threads.len() >= THREADS {
                    self.left_out += 1;
                    continue;
                }
                self.threads.insert(record.tid, Thread::new(record.tid, clock::monotonic()));
            }
            let Some(thread) = self.threads.get_mut(&record.tid) else { continue };
            thread.push(record, &mut self.recent);
            stopped = stopped.or_else(|| thread.above());
        }
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            self.decide(tid, until, ended);
        }
        self.hand_over_worst();
        self.flight.iter_mut().for_each(Flight::poll);
        stopped
    }

    /// Where enough of a thread was seen: its cycles are known, or none are looked for any more.
    fn decide(&mut self, tid: u32, now: MonotonicNs, ended: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(inferred) = thread.infer(self.options.kind, &self.calls, now, ended) else {
            return;
        };
        if let Err(why) = self
            .attacher
            .select(tid, inferred.map(|found| (found.site.call, found.site.by_argument)))
        {
            self.findings.push(findings::not_selected(thread.name(), &why));
        }
        let Some(inferred) = inferred else { return };
        let names = self.labels();
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let label = thread::label(thread.name(), &names);
        let begun =
            thread.begin(&label, inferred, &self.writer, self.series, &self.options, &self.calls);
        match begun {
            Ok(waits) => {
                self.series += SeriesKind::ALL.len();
                waits.into_iter().for_each(|record| thread.push(record, &mut self.recent));
            }
            Err(why) => self.findings.push(findings::incomplete(&why)),
        }
        self.phase.measures.push(thread.measure());
        let _ = self.writer.write_phase(0, &self.phase);
        self.watch(tid);
    }

    fn labels(&self) -> Vec<String> {
        self.threads.values().filter_map(|thread| thread.label().map(str::to_owned)).collect()
    }

    /// The flight recorder looks at the response times of this thread from now on.
    fn watch(&mut self, tid: u32) {
        let (Some(flight), Some(thread)) = (&self.flight, self.threads.get_mut(&tid)) else {
            return;
        };
        let Some(meta) = thread.response_meta() else { return };
        let watched = Watched {
            phase: PHASE.to_owned(),
            series: meta.name.clone(),
            whose: Whose::Thread(Tid(tid)),
            clock: Clock::Monotonic,
            waited: if thread.is_timed() { Waited::Timer } else { Waited::Interval },
            cpus: meta.cpus.clone(),
            snapshot_reader: None,
        };
        thread.watched_as = Some(self.watched);
        self.watched += 1;
        flight.watch_also(watched);
    }

    fn hand_over_worst(&mut self) {
        let Some(flight) = &self.flight else { return };
        for thread in self.threads.values_mut() {
            let worst = thread.take_worst();
            if let Some(place) = thread.watched_as {
                flight.add_worst(place, worst);
            }
        }
    }

    fn checkpoint(&mut self) {
        self.threads.values_mut().for_each(Thread::checkpoint);
        self.flight.iter_mut().for_each(Flight::save);
        self.look_for_violations(false);
    }

    /// As in a run: the command starts a checkpoint after its violation was found.
    fn look_for_violations(&mut self, ended: bool) {
        let Some(hook) = &mut self.hook else { return };
        hook.advance();
        hook.examine(PHASE, self.threads.values().flat_map(Thread::views), ended);
    }

    /// Where a new version is due; without `now` the last one.
    fn write_metrics(&mut self, now: Option<MonotonicNs>) {
        let Some(file) = &mut self.options.metrics else { return };
        if now.is_none_or(|now| file.is_due(now)) {
            let (lost, unseen) = (self.attacher.lost(), self.attacher.unseen());
            let program = &self.writer.manifest().experiment;
            file.write(&metrics::text(program, self.threads.values(), lost, unseen));
        }
    }

    fn show(&mut self, watcher: &mut dyn Watcher, now: MonotonicNs, elapsed: Nanos) {
        if watcher.watches() {
            watcher.refresh(&Attached {
                name: self.writer.manifest().experiment.clone(),
                elapsed,
                planned: self.options.duration,
                threads: self.threads.values().filter_map(Thread::row).collect(),
                others: self.threads.values().filter(|one| one.label().is_none()).count(),
                culprit: self.recent.top(now),
            });
        }
    }

    /// The last figures: everything is written.
    fn finish(&mut self) {
        self.lost = self.attacher.lost();
        self.unseen = self.attacher.unseen();
        let lost = self.lost;
        self.threads.values_mut().for_each(|thread| thread.finish(lost));
        self.write_metrics(None);
        let metrics = self.options.metrics.take();
        self.findings.extend(metrics.and_then(|file| file.finding(PHASE)));
        self.hand_over_worst();
        if let Some(flight) = self.flight.take() {
            flight.settle();
            self.findings.extend(flight.stop());
        }
        self.look_for_violations(true);
        self.findings.extend(self.hook.take().and_then(ViolationHook::finish));
        let findings = self.threads.values().flat_map(|thread| thread.findings(&self.calls));
        self.findings.extend(findings.collect::<Vec<_>>());
        let any_real_time = self.threads.values().any(Thread::is_real_time);
        for thread in self.threads.values_mut() {
            self.findings.extend(thread.lint(any_real_time, &self.host));
        }
        self.findings.extend(findings::not_seen(self.lost, self.unseen, self.left_out));
        let now = CpuTimes::read(&Root::system());
        if let (Some(first), Ok(now)) = (&self.times, now) {
            self.phase.cpu_load =
                mapping::cpu_load(first, &now).map_or(Fact::NotAsked, Fact::Known);
        }
        self.phase.measures =
            self.threads.values().filter(|t| t.label().is_some()).map(Thread::measure).collect();
        self.findings.extend(
            self.writer.write_phase(0, &self.phase).err().map(|why| findings::incomplete(&why)),
        );
    }
}
