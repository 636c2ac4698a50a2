//! The loop of the recording thread: take, append, sleep; and what ends it.

use super::sources::Sources;
use super::{Done, Progress, Wanted};
use crate::exit::Failure;
use punctual_bundle::recording::{Encoding, Keeps, LaneWriter};
use punctual_bundle::{BundleError, RecordingDocument, RecordingWriter};
use punctual_core::event::{Names, Recorded};
use punctual_core::{CpuSet, Finding, MonotonicNs, Nanos, Severity};
use punctual_host::task::clock;
use punctual_record::{Recorder, Request, StartError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often recorders are looked at while they are far from full. A buffer holds about a second of what a busy CPU records.
const TICK: Duration = Duration::from_millis(40);
/// From this on (in hundredths of the fullest buffer) they are looked at at once again.
const HURRY: u64 = 25;
/// How often names and counts are renewed: what kill -9 can cost of them.
const RENEWAL: Nanos = Nanos::SECOND;

/// Recorders and where they are drained to.
pub struct Drain {
    kernel: Option<Recorder>,
    sources: Sources,
    document: RecordingDocument,
    writer: RecordingWriter,
    lane: LaneWriter,
    bound: Option<u64>,
    progress: Arc<Progress>,
    renewed: MonotonicNs,
    /// Why recording ended before it was told to.
    cause: Option<Cause>,
}

enum Cause {
    /// The bound on its size; all that happened until this instant is there.
    Bound { until: MonotonicNs },
    /// A failed write.
    Trouble(BundleError),
}

impl Drain {
    /// Attaches the recorders and begins the recording in the bundle.
    pub fn start(bundle: &Path, wanted: Wanted, progress: Arc<Progress>) -> Result<Drain, Failure> {
        let (kernel, refused) = kernel_recorder(&wanted)?;
        let mut recorded = kernel.as_ref().map_or_else(|| nothing(&wanted), Recorder::recorded);
        recorded.findings.extend(refused);
        let mut sources = Sources::default();
        for source in &recorded.sources {
            sources.add(source.clone());
        }
        let names = kernel.as_ref().map_or_else(Names::default, Recorder::names);
        let document = RecordingDocument::new(wanted.keeps, recorded, names);
        let writer = RecordingWriter::create(bundle, &document).map_err(Failure::failed)?;
        let newest = (wanted.keeps == Keeps::Newest).then_some(wanted.max_size);
        let lane = writer.lane(0, newest);
        let bound = (wanted.keeps == Keeps::All).then_some(wanted.max_size);
        let renewed = clock::monotonic();
        Ok(Drain { kernel, sources, document, writer, lane, bound, progress, renewed, cause: None })
    }

    /// What of the request cannot be had.
    pub fn findings(&self) -> &[Finding] {
        &self.document.recorded.findings
    }

    /// Drains until it is told to stop, or cannot go on.
    pub fn run(mut self, stop: &AtomicBool) -> Done {
        while !stop.load(Ordering::Relaxed) && self.cause.is_none() {
            self.take();
            if clock::monotonic() - self.renewed > RENEWAL {
                self.renew();
            }
            if self.kernel.as_ref().is_none_or(|kernel| kernel.fill().is_none_or(|fill| fill < HURRY)) {
                std::thread::park_timeout(TICK);
            }
        }
        if self.cause.is_some() {
            self.progress.ended.store(true, Ordering::Relaxed);
        }
        self.end()
    }

    /// Takes what the recorders hold.
    fn take(&mut self) {
        let until = clock::monotonic();
        if let Some(mut kernel) = self.kernel.take() {
            for (cpu, lost) in kernel.losses() {
                self.lost(cpu, lost);
            }
            kernel.drain(&mut |cpu, records| self.append_of_cpu(cpu, records));
            self.kernel = Some(kernel);
        }
        self.progress.lost.store(self.sources.lost(), Ordering::Relaxed);
        // Looked at when all sources were read, so that all end at one instant.
        if self.cause.is_none() && self.bound.is_some_and(|bound| self.lane.bytes() >= bound) {
            self.cause = Some(Cause::Bound { until });
        }
    }

    fn lost(&mut self, cpu: u16, lost: u64) {
        if let Some(number) = self.sources.of_cpu(cpu) {
            self.sources.set_lost(number, lost, 0);
        }
    }

    fn append_of_cpu(&mut self, cpu: u16, records: &[u8]) {
        if let Some(number) = self.sources.of_cpu(cpu) {
            self.append(number, Encoding::KERNEL, records);
        }
    }

    fn append(&mut self, number: u32, encoding: Encoding, records: &[u8]) {
        if matches!(self.cause, Some(Cause::Bound { .. })) {
            return; // Later than what the recording covers.
        }
        let lane = self.cause.is_none().then_some(&mut self.lane);
        if let Err(trouble) = self.sources.append(number, encoding, records, lane, &self.progress) {
            self.cause = Some(Cause::Trouble(trouble));
        }
    }

    /// Renews the document: a reader of a bundle that is cut off finds names and counts not older than that.
    fn renew(&mut self) {
        self.renewed = clock::monotonic();
        self.document.recorded.sources = self.sources.listed();
        self.document.recorded.ended = self.renewed;
        if let Some(kernel) = &self.kernel {
            self.document.names.tasks = kernel.names().tasks;
        }
        if let Err(trouble) = self.writer.renew(&self.document) {
            self.cause.get_or_insert(Cause::Trouble(trouble));
        }
    }

    /// Takes the recorders away and everything in, and writes the document for good.
    fn end(mut self) -> Done {
        let ended_early = match self.cause {
            Some(Cause::Bound { until }) => Some(until),
            Some(Cause::Trouble(_)) => Some(clock::monotonic()),
            None => None,
        };
        if let Some(kernel) = self.kernel.take() {
            let stopped = kernel.stop(&mut |cpu, records| self.append_of_cpu(cpu, records));
            let mut recorded = stopped.recorded;
            if !matches!(self.cause, Some(Cause::Bound { .. })) {
                recorded.sources.iter().for_each(|source| self.lost(source.cpu.unwrap_or_default(), source.lost));
            }
            for found in std::mem::take(&mut self.document.recorded.findings) {
                if !recorded.findings.contains(&found) {
                    recorded.findings.push(found);
                }
            }
            self.document.recorded = recorded;
            self.document.names = stopped.names;
        }
        self.document.recorded.sources = self.sources.listed();
        let ended = ended_early.unwrap_or_else(clock::monotonic);
        self.document.recorded.ended = ended;
        self.document.complete = true;
        let (found, mut trouble) = self.cause_of_end();
        self.document.recorded.findings.extend(found);
        if let Err(why) = self.writer.finish(&self.document) {
            trouble.get_or_insert(why.to_string());
        }
        self.progress.lost.store(self.sources.lost(), Ordering::Relaxed);
        Done { recorded: self.document.recorded, trouble }
    }

    fn cause_of_end(&mut self) -> (Option<Finding>, Option<String>) {
        let unwritten = self.sources.unwritten();
        match self.cause.take() {
            None => (None, None),
            Some(Cause::Bound { .. }) => {
                let message = "recording ended when it reached its bound; what happened later is not in it";
                let finding = Finding::new("recording-full", Severity::Warning, "recording", message);
                let evidence = format!("{} bytes", self.lane.bytes());
                let remedy = "allow more (--max-size), ask for fewer events, or keep the newest (--keep newest)";
                (Some(finding.evidence(evidence).remedy(remedy)), None)
            }
            Some(Cause::Trouble(why)) => {
                let message = format!("recording ended early: {unwritten} events more could not be written");
                let finding = Finding::new("recording-not-written", Severity::Bad, "recording", message);
                let remedy = "record to a file system with room, or ask for fewer events";
                (Some(finding.evidence(why.to_string()).remedy(remedy)), Some(why.to_string()))
            }
        }
    }
}

/// The recorder of kernel events; where they cannot be had and need not be, why.
fn kernel_recorder(wanted: &Wanted) -> Result<(Option<Recorder>, Option<Finding>), Failure> {
    if wanted.groups.is_empty() {
        return Ok((None, None));
    }
    let request = Request {
        pids: wanted.pids.clone(),
        follow_children: wanted.follow_children,
        comms: wanted.comms.clone(),
        syscalls: wanted.syscalls.clone(),
        backend: wanted.backend,
        ..Request::new(&wanted.groups, wanted.cpus.clone())
    };
    match Recorder::start(request) {
        Ok(recorder) => Ok((Some(recorder), None)),
        Err(why @ StartError::Request(_)) => Err(Failure::refused(why)),
        Err(why) if wanted.insist || !wanted.points => Err(Failure::refused(why)),
        Err(why) => {
            let message = "kernel events cannot be recorded here: only test points are";
            let finding = Finding::new("no-kernel-events", Severity::Warning, "recording", message);
            Ok((
                None,
                Some(finding.evidence(why.to_string()).remedy("`punctual trace --events list` says what is missing")),
            ))
        }
    }
}

/// A recording of test points alone.
fn nothing(wanted: &Wanted) -> Recorded {
    let now = clock::monotonic();
    Recorded {
        recorder: "none".to_owned(),
        began: now,
        ended: now,
        cpus: CpuSet::new(),
        groups: Vec::new(),
        pids: wanted.pids.clone(),
        sources: Vec::new(),
        point_clock_error: None,
        findings: Vec::new(),
    }
}
