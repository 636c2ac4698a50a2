//! The keeper of one series: its statistics, its log, its account, its lines. Sources pass samples
//! on, one or many at a time; storage and write errors are handled here.

mod files;
#[cfg(test)]
mod tests;

pub(crate) use files::SeriesFiles;

use punctual_bundle::observed::ObservedSamples;
use punctual_bundle::state::SeriesState;
use punctual_bundle::{BundleError, LineKeeper, SeriesAccount, SeriesMeta, SeriesWriter};
use punctual_core::format::count_with_noun;
use punctual_core::{
    Clock, ClockNs, Fact, Finding, MonotonicNs, Nanos, Sample, SampleWindow, SeriesData,
    SeriesShape, Severity,
};
use punctual_measure::collect::{RecentFigures, extend_window};
use punctual_stats::SeriesView;
use punctual_sys::clock;

/// The maximum number of bins of an exact histogram.
const BINS: i64 = 4_096;

/// A series in progress.
pub struct KeptSeries {
    pub meta: SeriesMeta,
    /// The statistics so far, as in the bundle.
    pub state: SeriesState,
    pub recent: Option<RecentFigures>,
    /// The breakdown of the samples, as in the bundle.
    pub account: Fact<SeriesAccount>,
    /// The samples that punctual itself delayed, if that is noticed while measuring.
    pub observed: ObservedSamples,
    files: SeriesFiles,
    window: Option<SampleWindow>,
    /// Samples since the last save.
    pending: Vec<Sample>,
    /// Lines of five minutes, for runs of weeks.
    lines: Option<LineKeeper>,
}

/// A histogram for samples that are expected within `span`.
pub(crate) fn shape_within(span: Nanos, period: Option<Nanos>) -> SeriesShape {
    let range = span.max(Nanos::MILLI);
    SeriesShape { range, resolution: Nanos((range.ns() / BINS / 1_000 + 1) * 1_000), period }
}

impl KeptSeries {
    /// Creates an empty series with these files.
    pub(crate) fn new(shape: SeriesShape, meta: SeriesMeta, files: SeriesFiles) -> KeptSeries {
        let data = SeriesData::new(shape);
        let state = SeriesState {
            data,
            usage: Fact::NotAsked,
            digest: None,
            samples_kept: 0,
            log_bytes: 0,
        };
        KeptSeries {
            meta,
            state,
            recent: None,
            account: Fact::NotAsked,
            observed: ObservedSamples::default(),
            files,
            window: None,
            pending: Vec::new(),
            lines: None,
        }
    }

    /// From now on every five minutes have a line; the log keeps the newest samples.
    pub(crate) fn keep_lines(&mut self) {
        self.lines =
            Some(LineKeeper::new(clock::read_clock(Clock::Realtime).ns(), self.current_time()));
    }

    fn current_time(&self) -> ClockNs {
        clock::read_clock(self.meta.clock)
    }

    /// Adds an interval on CLOCK_MONOTONIC; `missed` periods preceded it.
    pub fn push(
        &mut self,
        seq: u64,
        (due, woke): (MonotonicNs, MonotonicNs),
        cpu: u32,
        missed: u64,
    ) -> Sample {
        let sample = Sample { seq, due: ClockNs(due.ns()), woke: ClockNs(woke.ns()), cpu };
        self.state.data.record_sample(&sample, missed);
        let latency = sample.latency();
        let one =
            SampleWindow { start: sample.due, count: 1, min: latency, max: latency, sum: latency };
        if let Some(ended) = extend_window(&mut self.window, one) {
            self.append_windows([ended]);
        }
        self.pending.push(sample);
        self.came_in(RecentFigures { count: 1, last: latency, max: latency });
        sample
    }

    /// Counts samples that the statistics have.
    pub(crate) fn came_in(&mut self, recent: RecentFigures) {
        if let Some(lines) = &mut self.lines {
            lines.extend(recent.max);
        }
        self.recent = Some(recent);
    }

    /// Adds samples to the log that the statistics have already. After a failed write only
    /// statistics continue. Returns whether none failed so far.
    pub fn append_samples(&mut self, samples: &[Sample]) -> bool {
        self.files.append_samples(samples);
        self.write_error().is_none()
    }

    /// Adds ended windows to the log.
    pub(crate) fn append_windows(&mut self, windows: impl IntoIterator<Item = SampleWindow>) {
        for window in windows {
            self.files.append_window(window);
        }
    }

    /// Saves the current state, for a reader after a kill, unless the last one still waits for the
    /// disk. Returns whether it did.
    pub fn checkpoint(&mut self) -> bool {
        let now = self.current_time();
        if self.lines.as_ref().is_some_and(|lines| lines.is_due(now)) {
            self.end_line();
        }
        if self.files.is_behind() {
            self.append_pending();
            return false;
        }
        self.save_state(SeriesWriter::save_checkpoint);
        true
    }

    /// Saves everything durably: no more samples follow.
    pub fn finish(&mut self) {
        let last = self.window.take();
        self.append_windows(last);
        self.end_line();
        self.save_state(SeriesWriter::finish);
    }

    fn save_state(
        &mut self,
        write: fn(&mut SeriesWriter, &SeriesState) -> Result<(), BundleError>,
    ) {
        self.append_pending();
        self.files.save_state(self.state.clone(), write);
        self.update_log_length();
    }

    fn append_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.append_samples(&pending);
    }

    /// Takes over the length of the log as far as it is written.
    pub(crate) fn update_log_length(&mut self) {
        if let Some(log) = self.files.log_size() {
            (self.state.samples_kept, self.state.log_bytes) = log;
        }
    }

    /// The finding for samples that the disk did not take in time.
    pub(crate) fn unsaved_finding(&self, phase: &str) -> Option<Finding> {
        let unsaved = Some(self.files.unsaved_count()).filter(|samples| *samples > 0)?;
        let message = "the disk took nothing for too long: not every sample is in the log; all \
                       figures and histograms include every sample";
        let subject = format!("{phase}/{}", self.meta.name);
        let finding = Finding::new("samples-not-saved", Severity::Warning, subject, message);
        let evidence =
            format!("{} found no room to wait for it", count_with_noun(unsaved, "sample"));
        Some(finding.with_evidence(evidence).with_remedy(
            "write the bundle to a disk that is not blocked for long, or lower keep_samples",
        ))
    }

    /// Adds a detail to its description, which a reader of its bundle finds.
    pub(crate) fn add_detail(&mut self, key: &str, value: &str) {
        self.meta.details.insert(key.to_owned(), value.to_owned());
        self.files.write_meta(self.meta.clone());
    }

    /// Saves the breakdown, as far as known now.
    pub(crate) fn save_account(&mut self) {
        if !matches!(self.account, Fact::NotAsked) {
            self.files.write_account(self.account.clone());
        }
    }

    fn end_line(&mut self) {
        let now = self.current_time();
        let Some(lines) = &mut self.lines else { return };
        let line = lines.end_line(&self.state.data, clock::read_clock(Clock::Realtime).ns(), now);
        self.files.append_line(line);
    }

    /// The first error with its files.
    pub(crate) fn write_error(&self) -> Option<&BundleError> {
        self.files.write_error()
    }

    /// The view for the analysis.
    pub fn view(&self) -> SeriesView<'_> {
        SeriesView { meta: &self.meta, state: &self.state, account: Some(&self.account) }
    }
}
