//! The loop of the recording thread: read, append, sleep; and its end.

use super::points::RecordedPoints;
use super::probing::Probing;
use super::request::RecordingWanted;
use super::sink::RecordingSink;
use super::{RecordingProgress, RecordingResult};
use crate::exit::Failure;
use punctual_bundle::{RecordingDocument, RecordingWriter};
use punctual_core::event::{Names, Recorded};
use punctual_core::{Finding, MonotonicNs, Nanos, Severity};
use punctual_record::{AttachedPrograms, Recorder, Request, StartError};
use punctual_sys::clock;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two polls while recorders are far from full. A buffer holds about a second of a
/// busy CPU's records.
const TICK: Duration = Duration::from_millis(40);
/// `TICK` if applications use test points: their rings are smaller.
const POINTS_TICK: Duration = Duration::from_millis(5);
/// The fill level (in hundredths of the fullest buffer) above which they are polled again at once.
const HURRY: u64 = 25;
/// Time between two updates of names and counts: the maximum loss by kill -9.
const RENEWAL: Nanos = Nanos::SECOND;

/// Recorders and their destination.
pub struct Drain {
    kernel: Option<Recorder>,
    points: Option<RecordedPoints>,
    probing: Option<Probing>,
    sink: RecordingSink,
    document: RecordingDocument,
    writer: RecordingWriter,
    renewed: MonotonicNs,
    /// The number of names and sources of test points in the document.
    known: usize,
}

impl Drain {
    /// Attaches the recorders and begins the recording in the bundle.
    pub fn start(
        bundle: &Path,
        wanted: RecordingWanted,
        progress: Arc<RecordingProgress>,
    ) -> Result<Drain, Failure> {
        let (points, pointless) = RecordedPoints::start(&wanted)?;
        let (kernel, refused) = kernel_recorder(&wanted)?;
        let mut recorded = kernel
            .as_ref()
            .map_or_else(|| record_no_kernel_events(&wanted), Recorder::coverage_so_far);
        recorded.findings.extend(refused.into_iter().chain(pointless));
        let mut names = kernel.as_ref().map_or_else(Names::default, Recorder::known_names);
        if let Some(probes) = &wanted.probes {
            Probing::add_names_to(probes, &mut names);
        }
        let document = RecordingDocument::new(wanted.keeps, recorded, names);
        let writer = RecordingWriter::create(bundle, &document).map_err(Failure::failed)?;
        let mut sink = RecordingSink::new(&writer, &document.recorded.sources, &wanted, progress);
        let renewed = clock::monotonic_now();
        let probing = wanted
            .probes
            .as_ref()
            .map(|probes| Probing::start(probes, &wanted.online, &mut sink))
            .transpose()?;
        Ok(Drain { kernel, points, probing, sink, document, writer, renewed, known: 0 })
    }

    /// The unavailable parts of the request.
    pub fn findings(&self) -> &[Finding] {
        &self.document.recorded.findings
    }

    /// The BPF programs of kernel events.
    pub fn attached_programs(&self) -> AttachedPrograms {
        self.kernel.as_ref().map_or_else(AttachedPrograms::default, Recorder::attached_programs)
    }

    /// Drains until it is stopped or cannot continue.
    pub fn run(mut self, stop: &AtomicBool) -> RecordingResult {
        while !stop.load(Ordering::Relaxed) && self.sink.goes_on() {
            self.read_recorders();
            let known_count = self.points.as_ref().map_or(0, RecordedPoints::known_count);
            if clock::monotonic_now() - self.renewed > RENEWAL || known_count > self.known {
                self.known = known_count;
                self.renew_document();
            }
            if self.fill_level() < HURRY {
                let tick = if self.known > 0 { POINTS_TICK } else { TICK };
                std::thread::park_timeout(tick);
            }
        }
        self.finish()
    }

    /// The fill level of the fullest buffer, in hundredths.
    fn fill_level(&self) -> u64 {
        let kernel = self.kernel.as_ref().and_then(Recorder::fill_percent).unwrap_or_default();
        let probing = self.probing.as_ref().map_or(0, Probing::fill_level);
        kernel.max(probing).max(self.points.as_ref().map_or(0, |points| points.fill))
    }

    /// Reads the recorders.
    fn read_recorders(&mut self) {
        let until = clock::monotonic_now();
        if let Some(kernel) = &mut self.kernel {
            self.sink.update_losses(&kernel.losses_by_cpu());
            kernel.drain(&mut |cpu, records| self.sink.append_of_cpu(cpu, records));
        }
        if let Some(probing) = &mut self.probing {
            probing.drain_into(&mut self.sink);
        }
        if let Some(points) = &mut self.points {
            points.drain_into(&mut self.sink);
        }
        self.sink.round_ended(until);
    }

    /// Renews the document: in a truncated bundle the names and counts are at most this old.
    fn renew_document(&mut self) {
        self.renewed = clock::monotonic_now();
        self.document.recorded.sources = self.sink.sources();
        self.document.recorded.ended = self.renewed;
        if let Some(kernel) = &self.kernel {
            self.document.names.tasks = kernel.known_names().tasks;
        }
        if let Some(points) = &self.points {
            points.add_names_to(&mut self.document.names);
        }
        if let Err(trouble) = self.writer.renew_document(&self.document) {
            self.sink.fail(trouble);
        }
    }

    /// Removes the recorders, reads the rest, and writes the final document.
    fn finish(mut self) -> RecordingResult {
        let ended = self.sink.end_time();
        if let Some(kernel) = self.kernel.take() {
            let stopped = kernel.stop(&mut |cpu, records| self.sink.append_of_cpu(cpu, records));
            let losses = stopped
                .recorded
                .sources
                .iter()
                .filter_map(|source| Some((source.cpu?, source.lost)));
            self.sink.update_losses(&losses.collect::<Vec<_>>());
            let mut recorded = stopped.recorded;
            for found in std::mem::take(&mut self.document.recorded.findings) {
                if !recorded.findings.contains(&found) {
                    recorded.findings.push(found);
                }
            }
            self.document.recorded = recorded;
            let probed = std::mem::replace(&mut self.document.names, stopped.names);
            let names = &mut self.document.names;
            (names.functions, names.lines) = (probed.functions, probed.lines);
            (names.points, names.probe_costs) = (probed.points, probed.probe_costs);
        }
        if let Some(probing) = self.probing.take() {
            self.document.names.calls = probing.stop(&mut self.sink);
        }
        if let Some(points) = self.points.take() {
            points.finish(&mut self.sink, &mut self.document);
        }
        let recorded = &mut self.document.recorded;
        recorded.sources = self.sink.sources();
        recorded.ended = ended.unwrap_or_else(clock::monotonic_now);
        let (found, mut trouble) = self.sink.cause_of_end();
        recorded.findings.extend(found);
        self.document.complete = true;
        if let Err(why) = self.writer.finish(&self.document) {
            trouble.get_or_insert(why.to_string());
        }
        RecordingResult { recorded: self.document.recorded, trouble }
    }
}

/// The recorder of kernel events; if they are unavailable and optional, the reason.
fn kernel_recorder(
    wanted: &RecordingWanted,
) -> Result<(Option<Recorder>, Option<Finding>), Failure> {
    if wanted.events.is_empty() {
        return Ok((None, None));
    }
    let request = Request {
        pids: wanted.pids.clone(),
        follow_children: wanted.follow_children,
        comms: wanted.comms.clone(),
        syscalls: wanted.syscalls.clone(),
        backend: wanted.backend,
        buffer: wanted.buffer,
        tracepoints: wanted.events.tracepoints.clone(),
        ..Request::new(&wanted.events.groups, wanted.cpus.clone())
    };
    match Recorder::start(request) {
        Ok(recorder) => Ok((Some(recorder), None)),
        Err(why @ StartError::Request(_)) => Err(Failure::refused(why)),
        Err(why) if wanted.insist || !wanted.points => {
            Err(Failure::refused(match punctual_record::missing_rights() {
                Some(missing) => format!(
                    "kernel events cannot be recorded without {missing}: run as root, or record \
                     test points alone (--events none)"
                ),
                None => why.to_string(),
            }))
        }
        Err(why) => {
            let message = "kernel events cannot be recorded on this system; only test points are \
                           recorded";
            let finding = Finding::new("no-kernel-events", Severity::Warning, "recording", message);
            Ok((
                None,
                Some(
                    finding
                        .with_evidence(why.to_string())
                        .with_remedy("`punctual trace --events list` shows what is missing"),
                ),
            ))
        }
    }
}

/// A recording of test points alone.
fn record_no_kernel_events(wanted: &RecordingWanted) -> Recorded {
    let recorded = Recorded::without_events("none", clock::monotonic_now());
    Recorded { pids: wanted.pids.clone(), comms: wanted.comms.clone(), ..recorded }
}
