//! A program that a phase measures: its cycles, and the process itself if punctual starts it.
//!
//! The guard of the loads starts it like a load, so that it ends with punctual in any case. It is
//! stopped until the rest of the phase is ready.
//!
//! An attached program ([`AttachedTo`]) is not judged by whether it lasts as long as planned: its
//! duration is an upper bound, and a command is started with our terminal and ends with its own
//! exit code.

use super::mapping;
use super::partition;
use crate::command::Command;
use crate::cycles::series::SeriesPlace;
use crate::cycles::target::{CycleTarget, Started};
use crate::cycles::{CycleOptions, Cycles, DrainedCycles};
use crate::exit::Failure;
use crate::programs;
use punctual_bundle::evidence::ProgramEvidence;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::{CommandEnd, HowEnded, ProgramEnd};
use punctual_core::{Finding, Missing, MonotonicNs, Nanos, Severity};
use punctual_host::environment::Environment;
use punctual_host::files::{Files, Root};
use punctual_measure::load::{GuardEvent, Guarded, LoadSpec};
use punctual_plan::kinds::ProgramPlan;
use punctual_plan::{Length, MeasurePlan};
use punctual_record::Backend;
use punctual_sys::{children, clock};
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum time for a started program to stop before its first instruction.
const START_TIMEOUT: Nanos = Nanos::from_secs(5);
/// The time between the request to end and the kill.
const END_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Time between two polls of a process that was started, or is to end.
pub const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The target of an attachment.
pub struct AttachedTo {
    /// A program, running already or started by its command with the terminal of this process; it
    /// ends by itself, or with the measurement if it was started. `None`: the CPUs of the plan.
    pub program: Option<CycleTarget>,
    /// How the program or the CPUs are watched.
    pub backend: Backend,
    /// No stack of the program is copied: no source lines.
    pub without_lines: bool,
}

/// The surroundings of a program's measurement.
pub struct ProgramContext<'a> {
    pub phase: &'a str,
    pub seed: u64,
    pub partition: Option<&'a partition::HeldPartition>,
    /// The attached program, instead of the plan's.
    pub attached: Option<&'a CycleTarget>,
    pub backend: Backend,
    pub without_lines: bool,
}

/// A program of a phase.
pub struct ProgramRun {
    pub name: String,
    /// The program's threads, and their series.
    pub cycles: Cycles,
    /// Whether the program is attached to.
    pub is_attached: bool,
    /// Why no cycles were found, once the program has ended.
    pub nothing_found: Option<String>,
    /// How an attached command ended.
    pub command: Option<CommandEnd>,
    source: ProcessSource,
    length: Option<Nanos>,
    began: Option<MonotonicNs>,
    ended: Option<ProgramExit>,
    /// When punctual asked it to end.
    end_requested: Option<MonotonicNs>,
    reached_end: bool,
    finished_at: Option<MonotonicNs>,
    /// Tasks killed by the OOM killer before it began.
    oom_kills: Option<u64>,
}

/// The source of its processes.
enum ProcessSource {
    /// The guard starts it under this number.
    Command {
        number: usize,
        spec: Box<LoadSpec>,
        pid: Option<i32>,
    },
    Target(CycleTarget, Option<Started>),
}

/// How a program ended.
struct ProgramExit {
    how: String,
    status: Option<HowEnded>,
    success: bool,
    at: MonotonicNs,
}

impl ProgramRun {
    /// Loads its BPF programs; nothing of it is started or watched yet. `number`: its number in
    /// events, after those of the loads.
    pub fn prepare(
        measure: &MeasurePlan,
        program: &ProgramPlan,
        number: usize,
        context: &ProgramContext<'_>,
        environment: Environment,
    ) -> Result<ProgramRun, String> {
        let is_attached = context.attached.is_some();
        let text = |why: Failure| name_error(&measure.name, is_attached, &why.render(false));
        let source = match (context.attached, &program.command) {
            (Some(target), _) => ProcessSource::Target(target.clone(), None),
            (None, Some(command)) => {
                let joins = context.partition.and_then(|held| held.cgroup_file(&measure.cpus));
                let spec = mapping::program_spec(measure, program, command, joins, context.seed);
                ProcessSource::Command { number, spec: Box::new(spec?), pid: None }
            }
            (None, None) => {
                let pids: Vec<u32> = program.pid.into_iter().collect();
                let target = CycleTarget::from_arguments(&pids, program.comm.as_slice(), &[], &[]);
                ProcessSource::Target(target.map_err(text)?, None)
            }
        };
        let mut details = BTreeMap::new();
        if !is_attached {
            details = mapping::measure_meta(measure).parameters;
            details.insert("measure".to_owned(), measure.name.clone());
        }
        let options = CycleOptions {
            phase: context.phase.to_owned(),
            backend: context.backend,
            without_lines: context.without_lines,
            thread: program.thread.clone(),
            kind: program.cycle,
            deadline: measure.deadline,
            stop_above: measure.stop_above,
            requirements: measure.require.clone(),
            details,
        };
        Ok(ProgramRun {
            name: context.attached.map_or_else(|| measure.name.clone(), CycleTarget::bundle_name),
            cycles: Cycles::start(options, environment).map_err(text)?,
            is_attached,
            nothing_found: None,
            command: None,
            source,
            length: match measure.length {
                Length::Duration(span) => Some(span),
                Length::Samples(_) | Length::UntilInterrupted => None,
            },
            began: None,
            ended: None,
            end_requested: None,
            reached_end: false,
            finished_at: None,
            oom_kills: oom_kills(),
        })
    }

    /// Has the guard start it, stopped.
    pub fn start(&mut self, guard: Option<&mut Guarded>) -> Result<(), String> {
        let ProcessSource::Command { number, spec, .. } = &self.source else { return Ok(()) };
        match guard {
            Some(guard) => guard.start_load(*number, spec).map_err(|why| why.to_string()),
            None => Err("nothing guards the program".to_owned()),
        }
    }

    /// Takes an event of the guard, if it is about this program.
    pub(crate) fn take_event(&mut self, event: &GuardEvent) -> Result<(), String> {
        let ProcessSource::Command { number, pid, .. } = &mut self.source else { return Ok(()) };
        match event {
            GuardEvent::Started { load, pid: started } if load == number => *pid = Some(*started),
            GuardEvent::NotStarted { load, why } if load == number => {
                return Err(format!("the program of {} could not be started: {why}", self.name));
            }
            GuardEvent::Ended { load, how, success, signal, status, .. } if load == number => {
                *pid = None;
                let at = clock::monotonic_now();
                let status = Some(signal.map_or(HowEnded::Status(*status), HowEnded::Signal));
                self.ended = Some(ProgramExit { how: how.clone(), status, success: *success, at });
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the guard has yet to report that the program was started.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.source, ProcessSource::Command { pid: None, .. }) && self.ended.is_none()
    }

    /// Watches the program from now on; a started one executes nothing of its own before
    /// [`ProgramRun::release`].
    pub fn watch(&mut self) -> Result<(), String> {
        let (name, is_attached) = (&self.name, self.is_attached);
        let text = |why: String| name_error(name, is_attached, &why);
        match &mut self.source {
            ProcessSource::Target(target, started) => {
                let watched = target.start_watching(&mut self.cycles);
                *started = Some(watched.map_err(|why| text(why.render(false)))?);
            }
            ProcessSource::Command { pid: Some(pid), .. } => {
                let until = clock::monotonic_now() + START_TIMEOUT;
                while programs::process_state(*pid as u32) != Some('T') {
                    if clock::monotonic_now() > until {
                        return Err(text("its process did not start within 5 s".to_owned()));
                    }
                    std::thread::sleep(POLL_INTERVAL);
                }
                let watched = self.cycles.cycle_recorder().watch_process(*pid as u32);
                watched.map_err(|why| text(why.to_string()))?;
                self.cycles.watch_rights(&[*pid as u32]);
            }
            ProcessSource::Command { pid: None, .. } => {
                return Err(text("its process did not start".to_owned()));
            }
        }
        Ok(())
    }

    pub fn release(&mut self) {
        if let ProcessSource::Command { pid: Some(pid), .. } = &self.source {
            let _ = children::send_signal(*pid, libc::SIGCONT);
        }
        self.began = Some(clock::monotonic_now());
    }

    /// Takes the records of its threads.
    pub fn drain(&mut self, place: &mut SeriesPlace<'_>) -> DrainedCycles {
        if let ProcessSource::Target(_, Some(started)) = &mut self.source
            && self.ended.is_none()
            && started.has_ended()
        {
            let (how, at) = ("ended".to_owned(), clock::monotonic_now());
            self.ended = Some(ProgramExit { how, status: None, success: true, at });
        }
        let drained = self.cycles.drain(self.finished_at.is_some(), place);
        if let (ProcessSource::Target(_, Some(started)), Some(end)) =
            (&self.source, &mut self.ended)
        {
            end.status = end.status.or_else(|| started.own_end(self.cycles.exit_statuses()));
        }
        drained
    }

    /// Its end, unless punctual asked for that: how a program answers the request is no failure.
    fn own_end(&self) -> Option<&ProgramExit> {
        self.ended.as_ref().filter(|end| is_own_end(end.at, self.end_requested))
    }

    /// The program's end, if it failed or was too early. An attached program may end with success
    /// at any time.
    pub(crate) fn failed_end(&self) -> Option<ProgramEnd> {
        let (end, began) = (self.own_end()?, self.began?);
        let (how, program) = (end.status?, self.name.clone());
        let (ran, asked) = (end.at - began, self.length);
        let killed = how == HowEnded::Signal(libc::SIGKILL);
        let kills = || oom_kills().zip(self.oom_kills);
        let out_of_memory = killed && kills().is_some_and(|(now, before)| now > before);
        let end = ProgramEnd { program, how, ran, asked, out_of_memory };
        is_failure(&end, self.is_attached).then_some(end)
    }

    /// Whether the program's time is over, or it has ended.
    pub fn is_finished(&self) -> bool {
        let over =
            |length: Nanos| self.began.is_some_and(|at| clock::monotonic_now() - at >= length);
        self.ended.is_some() || self.length.is_some_and(over)
    }

    /// Stops measuring: the end of the program is not its work.
    pub fn finish(&mut self, place: &mut SeriesPlace<'_>) -> Vec<Finding> {
        let Some(began) = self.began else { return Vec::new() };
        let now = clock::monotonic_now();
        self.reached_end = match (&self.ended, self.length) {
            (None, Some(length)) => now - began >= length,
            (Some(_), length) => length.is_none(),
            (None, None) => false,
        };
        self.finished_at = Some(now);
        self.drain(place);
        let mut findings = self.cycles.finish();
        // The run time of a program that ran before is not known.
        let until = self.ended.as_ref().map_or(now, |end| end.at);
        self.nothing_found = self.cycles.nothing_found(self.is_started().then(|| until - began));
        if self.is_attached {
            return findings;
        }
        let phase = &self.cycles.options().phase;
        let subject = format!("{phase}/{}", self.name);
        findings.extend(self.early_end(&subject, began));
        if let Some(why) = &self.nothing_found {
            let (message, seen) = why.split_once('\n').unwrap_or((why, ""));
            let seen_lines: Vec<&str> = seen.lines().map(str::trim).collect();
            let finding =
                Finding::new("program-without-cycles", Severity::Bad, subject, message.to_owned());
            findings.push(finding.with_evidence(seen_lines.join("; ")).with_remedy(
                "measure for longer, or see docs/attach.md for what a cycle is; stderr = \"FILE\" \
                 keeps what the program complains about",
            ));
        }
        findings
    }

    fn early_end(&self, subject: &str, began: MonotonicNs) -> Option<Finding> {
        let end = self.ended.as_ref()?;
        let ran = (end.at - began).to_readable();
        let (severity, message) = match self.length {
            Some(length) => (
                Severity::Bad,
                format!("the program {} after {ran} of {}", end.how, length.to_readable()),
            ),
            None if end.success => return None,
            None => (Severity::Warning, format!("the program {} after {ran}", end.how)),
        };
        Some(Finding::new("program-ended", severity, subject, message).with_remedy(
            "stdout = \"FILE\" and stderr = \"FILE\" keep what it prints; without a `duration` the \
             measure lasts as long as the program",
        ))
    }

    fn is_started(&self) -> bool {
        matches!(
            self.source,
            ProcessSource::Command { .. } | ProcessSource::Target(CycleTarget::Command { .. }, _)
        )
    }

    /// Asks the program to end (SIGTERM to its process group); an attached command has ended when
    /// this returns.
    pub fn terminate(&mut self) {
        match &mut self.source {
            ProcessSource::Command { pid: Some(pid), .. } => {
                self.end_requested = Some(clock::monotonic_now());
                let _ = children::send_signal(-*pid, libc::SIGTERM);
            }
            ProcessSource::Command { pid: None, .. } => {}
            ProcessSource::Target(_, started) => {
                let command = started.take().and_then(Started::end_command);
                self.command = command.and_then(Command::into_end).or(self.command);
            }
        }
    }

    /// The deadline of the wait after that; `None` if it has ended, or is not ours to end.
    pub(crate) fn end_deadline(&self) -> Option<MonotonicNs> {
        let runs = matches!(self.source, ProcessSource::Command { pid: Some(_), .. });
        self.finished_at.filter(|_| runs).map(|at| at + END_TIMEOUT)
    }

    /// Whether the program did what was requested.
    pub(crate) fn to_evidence(&self) -> ProgramEvidence {
        ProgramEvidence {
            name: self.name.clone(),
            series: self.cycles.series_views().map(|view| view.meta.name.clone()).collect(),
            has_end: self.length.is_some() || self.own_end().is_some(),
            reached_end: self.reached_end,
            ended: self.own_end().map(|end| end.how.clone()),
            ran: match (self.own_end(), self.began) {
                (Some(end), Some(began)) => end.at - began,
                (None, Some(began)) => self.finished_at.unwrap_or(began) - began,
                (_, None) => Nanos::ZERO,
            },
            lost: self.cycles.lost_of_unknown(),
        }
    }

    /// The losses that no series counts.
    pub(crate) fn uncounted_losses(&self) -> Option<Missing> {
        let count = self.cycles.lost_of_unknown();
        (count > 0).then_some(Missing::Lost { count, at_least: false })
    }

    /// The program's threads as measures of the bundle.
    pub(crate) fn measure_metas(&self) -> impl Iterator<Item = MeasureMeta> {
        let cost = self.cycles.describe_cost().filter(|_| !self.is_attached);
        self.cycles.measure_metas().map(move |mut measure| {
            measure.parameters.extend(self.cycles.options().details.clone());
            measure.parameters.extend(cost.clone().map(|cost| ("cost".to_owned(), cost)));
            measure
        })
    }
}

/// Whether a program ended by itself: before punctual asked for its end, if it did.
fn is_own_end(at: MonotonicNs, requested: Option<MonotonicNs>) -> bool {
    requested.is_none_or(|requested| at < requested)
}

/// Whether a program that ended by itself failed, or ended too early.
fn is_failure(end: &ProgramEnd, is_attached: bool) -> bool {
    !end.how.is_success() || end.is_early() && !is_attached
}

/// Tasks killed by the OOM killer.
fn oom_kills() -> Option<u64> {
    let text = Root::from_system().read("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// An error of a program; an attached one needs no name, as there is only one.
fn name_error(name: &str, is_attached: bool, why: &str) -> String {
    if is_attached { why.to_owned() } else { format!("{name}: {why}") }
}

#[cfg(test)]
mod tests;
