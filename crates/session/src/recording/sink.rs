//! The destination of records: the lane, as long as there is room; and the reason of the end.

use super::RecordingProgress;
use super::request::RecordingWanted;
use super::sources::Sources;
use punctual_bundle::recording::{Encoding, Keeps, LaneWriter};
use punctual_bundle::{BundleError, RecordingWriter};
use punctual_core::event::RecordedSource;
use punctual_core::{Finding, MonotonicNs, Severity};
use punctual_sys::clock;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The lane, and the counts of each source.
pub struct RecordingSink {
    sources: Sources,
    lane: LaneWriter,
    bound: Option<u64>,
    progress: Arc<RecordingProgress>,
    /// Why recording ended before it was stopped.
    cause: Option<SinkCause>,
}

enum SinkCause {
    /// The size bound; everything until this instant is recorded.
    Bound {
        until: MonotonicNs,
    },
    Trouble {
        why: BundleError,
        at: MonotonicNs,
    },
}

impl RecordingSink {
    /// Creates the sink of these sources of a new recording; others may join.
    pub fn new(
        writer: &RecordingWriter,
        first: &[RecordedSource],
        wanted: &RecordingWanted,
        progress: Arc<RecordingProgress>,
    ) -> RecordingSink {
        let mut sources = Sources::default();
        for source in first {
            sources.add(source.clone());
        }
        let newest = (wanted.keeps == Keeps::Newest).then_some(wanted.max_size);
        let bound = (wanted.keeps == Keeps::All).then_some(wanted.max_size);
        RecordingSink { sources, lane: writer.new_lane(0, newest), bound, progress, cause: None }
    }

    /// Whether there is room, and nothing failed.
    pub fn goes_on(&self) -> bool {
        self.cause.is_none()
    }

    /// Appends kernel events of a CPU.
    pub(crate) fn append_of_cpu(&mut self, cpu: u16, records: &[u8]) {
        if let Some(number) = self.sources.of_cpu(cpu) {
            self.append_records(number, Encoding::KERNEL, records);
        }
    }

    /// Appends records of a source.
    pub(crate) fn append_records(&mut self, number: u32, encoding: Encoding, records: &[u8]) {
        if self.is_full() {
            return; // Later than what the recording covers.
        }
        let lane = self.cause.is_none().then_some(&mut self.lane);
        if let Err(why) =
            self.sources.append_records(number, encoding, records, lane, &self.progress)
        {
            self.fail(why);
        }
    }

    /// Adds a source, which is described later.
    pub(crate) fn add_source(&mut self) -> u32 {
        self.sources.add_unknown()
    }

    /// Describes a source, with its own losses.
    pub(crate) fn describe_source(&mut self, number: u32, source: RecordedSource) {
        if !self.is_full() {
            self.sources.describe_source(number, source);
        }
    }

    /// Updates the losses of CPUs.
    pub(crate) fn update_losses(&mut self, losses: &[(u16, u64)]) {
        if !self.is_full() {
            losses.iter().for_each(|(cpu, lost)| self.sources.set_lost(*cpu, *lost));
        }
    }

    /// Called when all sources were read that had records at `until`: the bound is checked here, so
    /// that all of them end at one instant.
    pub(crate) fn round_ended(&mut self, until: MonotonicNs) {
        self.progress.lost.store(self.sources.lost_count(), Ordering::Relaxed);
        if self.cause.is_none() && self.bound.is_some_and(|bound| self.lane.byte_count() >= bound) {
            self.end_recording(SinkCause::Bound { until });
        }
    }

    /// Ends recording after a failed write.
    pub fn fail(&mut self, why: BundleError) {
        if self.cause.is_none() {
            self.end_recording(SinkCause::Trouble { why, at: clock::monotonic_now() });
        }
    }

    fn end_recording(&mut self, cause: SinkCause) {
        self.cause = Some(cause);
        self.progress.ended.store(true, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        matches!(self.cause, Some(SinkCause::Bound { .. }))
    }

    /// The instant at which recording ended by itself.
    pub fn end_time(&self) -> Option<MonotonicNs> {
        self.cause.as_ref().map(|cause| match cause {
            SinkCause::Bound { until: at } | SinkCause::Trouble { at, .. } => *at,
        })
    }

    /// The sources with the counts of their events.
    pub fn sources(&self) -> Vec<RecordedSource> {
        self.sources.recorded_sources()
    }

    /// Why recording ended by itself, as a finding, and as the error that fails the command.
    pub(crate) fn cause_of_end(&self) -> (Option<Finding>, Option<String>) {
        match &self.cause {
            None => (None, None),
            Some(SinkCause::Bound { .. }) => {
                let message = "the recording ended when it reached its maximum size; later events \
                               are missing";
                let finding =
                    Finding::new("recording-full", Severity::Warning, "recording", message);
                let evidence = format!("{} bytes", self.lane.byte_count());
                let remedy = "allow more (--max-size), record fewer events, or keep the newest \
                              (--keep newest)";
                (Some(finding.with_evidence(evidence).with_remedy(remedy)), None)
            }
            Some(SinkCause::Trouble { why, .. }) => {
                let message = format!(
                    "the recording ended early: {} more events could not be written",
                    self.sources.unwritten_count()
                );
                let finding =
                    Finding::new("recording-not-written", Severity::Bad, "recording", message);
                let remedy = "record to a file system with free space, or record fewer events";
                (
                    Some(finding.with_evidence(why.to_string()).with_remedy(remedy)),
                    Some(why.to_string()),
                )
            }
        }
    }
}
