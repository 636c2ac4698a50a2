//! The source of entries: BPF programs, or events where these are unavailable.

use crate::cycles::not_seen as events_not_seen;
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{Entry, EntryCounts, OwnCount, Vector};
use punctual_core::{CpuSet, Finding, Severity};
use punctual_explain::entries::stream::{EntryStream, TRACEPOINTS, TaskProperties};
use punctual_record::entries::{EntryRecorder, TracedEntries};
use punctual_record::{Backend, StartError};

/// Entries into the kernel on some CPUs. The methods are those of [`EntryRecorder`].
pub struct EntriesRecorder {
    source: EntriesSource,
    findings: Vec<Finding>,
}

enum EntriesSource {
    Bpf(Box<EntryRecorder>),
    Tracefs(Box<TracepointEntries>),
}

struct TracepointEntries {
    events: TracedEntries,
    stream: EntryStream,
    /// Ended entries that were not handed over.
    ended: Vec<Entry>,
}

/// The recording's names of tasks.
struct NamedTasks<'t>(&'t TracedEntries);

impl TaskProperties for NamedTasks<'_> {
    fn task_name(&self, tid: u32) -> TaskComm {
        self.0.task_name(tid)
    }
    fn is_kernel(&self, tid: u32) -> bool {
        self.0.is_kernel(tid)
    }
}

impl TracepointEntries {
    fn catch_up(&mut self) {
        let TracepointEntries { events, stream, ended } = self;
        let new_events = events.take_events();
        let tasks = NamedTasks(events);
        new_events
            .iter()
            .for_each(|event| stream.push(event, &tasks, &mut |entry| ended.push(entry)));
    }
}

impl EntriesRecorder {
    /// Starts BPF programs, or where these are refused, events through tracefs; [`Backend::Btf`]
    /// and [`Backend::Tracefs`] use one of the two alone.
    pub fn start(
        chosen: &CpuSet,
        online: &CpuSet,
        backend: Backend,
    ) -> Result<EntriesRecorder, StartError> {
        if backend == Backend::Tracefs {
            return EntriesRecorder::by_events(chosen, online, None);
        }
        match EntryRecorder::start(chosen) {
            Ok(mut bpf) => {
                let findings = std::mem::take(&mut bpf.findings);
                Ok(EntriesRecorder { source: EntriesSource::Bpf(Box::new(bpf)), findings })
            }
            Err(why @ StartError::Request(_)) => Err(why),
            Err(why) if backend == Backend::Btf => Err(why),
            Err(why) => match EntriesRecorder::by_events(chosen, online, Some(&why)) {
                Ok(entries) => Ok(entries),
                Err(neither) => Err(StartError::None(vec![why, neither])),
            },
        }
    }

    fn by_events(
        chosen: &CpuSet,
        online: &CpuSet,
        refused: Option<&StartError>,
    ) -> Result<EntriesRecorder, StartError> {
        let mut events = TracedEntries::start(chosen, online, &TRACEPOINTS)?;
        let mut findings = vec![without_bpf(refused)];
        findings.append(&mut events.findings);
        let stream = EntryStream::new(chosen, events.functions, &events.numbers, &events.formats);
        let traced = TracepointEntries { events, stream, ended: Vec::new() };
        Ok(EntriesRecorder { source: EntriesSource::Tracefs(Box::new(traced)), findings })
    }

    /// The limits of this recorder, with reasons.
    pub(crate) fn findings_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.findings
    }

    /// Brings the counts up to date.
    pub(crate) fn catch_up(&mut self) {
        if let EntriesSource::Tracefs(traced) = &mut self.source {
            traced.catch_up();
        }
    }

    /// Hands over the entries that have ended.
    pub fn drain(&mut self, take: &mut dyn FnMut(Entry)) {
        match &mut self.source {
            EntriesSource::Bpf(bpf) => bpf.drain_entries(take),
            EntriesSource::Tracefs(traced) => {
                traced.catch_up();
                traced.ended.drain(..).for_each(take);
            }
        }
    }

    /// Entries of a CPU that found no room; or events from which entries are made.
    pub fn lost_entries(&self, cpu: usize) -> u64 {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.lost_entries(cpu),
            EntriesSource::Tracefs(traced) => traced.stream.lost_events(cpu),
        }
    }

    /// Events that the kernel did not show to the BPF programs, or that found no room.
    pub(crate) fn unseen_events(&self, chosen: &CpuSet) -> u64 {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.missed_events(),
            EntriesSource::Tracefs(traced) => {
                chosen.iter().map(|cpu| traced.stream.lost_events(cpu)).sum()
            }
        }
    }

    /// The findings about events that the kernel did not show to the BPF programs. Those that found
    /// no room are reported for each CPU.
    pub(crate) fn not_seen(&self, phase: &str) -> Vec<Finding> {
        match &self.source {
            EntriesSource::Bpf(bpf) => events_not_seen(phase, 0, bpf.missed_events(), 0),
            EntriesSource::Tracefs(_) => Vec::new(),
        }
    }

    /// ns and runs of all BPF programs so far; `None` if not counted, or without programs.
    pub(crate) fn program_cost(&mut self) -> Option<(u64, u64)> {
        match &mut self.source {
            EntriesSource::Bpf(bpf) => bpf.take_run_time(),
            EntriesSource::Tracefs(_) => None,
        }
    }

    /// The addresses of a kernel stack, the innermost first.
    pub fn kernel_stack(&self, number: u32) -> Vec<u64> {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.stack_addresses(number),
            EntriesSource::Tracefs(_) => Vec::new(),
        }
    }

    /// The counts of a CPU.
    pub(crate) fn entry_counts(&self, cpu: usize) -> Option<EntryCounts> {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.cpu_counts(cpu),
            EntriesSource::Tracefs(traced) => Some(traced.stream.cpu_counts(cpu)),
        }
    }

    /// The entries of tasks on the chosen CPUs by themselves.
    pub fn own_counts(&self) -> Vec<OwnCount> {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.own_counts(),
            EntriesSource::Tracefs(traced) => traced.stream.own_counts(),
        }
    }

    pub fn vectors(&self) -> &[Vector] {
        match &self.source {
            EntriesSource::Bpf(bpf) => &bpf.vectors,
            EntriesSource::Tracefs(traced) => &traced.events.vectors,
        }
    }

    /// Whether function calls by IPI are recorded. Without them, only TLB shootdowns that flush
    /// something are.
    pub fn sees_calls(&self) -> bool {
        match &self.source {
            EntriesSource::Bpf(bpf) => bpf.sees_calls,
            EntriesSource::Tracefs(traced) => traced.events.sees_calls,
        }
    }
}

/// `refused`: why there are no BPF programs, if they were tried. The caller sets the subject.
fn without_bpf(refused: Option<&StartError>) -> Finding {
    const LOST: &str = "the kernel stacks of originators and the cost are not known, and each \
                        event costs more";
    let Some(refused) = refused else {
        let message = format!("entries are measured through tracefs, as requested: {LOST}");
        return Finding::new("entries-without-bpf", Severity::Note, "", message);
    };
    let message = format!("entries are measured through tracefs, without BPF ({refused}): {LOST}");
    Finding::new("entries-without-bpf", Severity::Warning, "", message)
        .remedy_by(refused.joined_remedy())
}
