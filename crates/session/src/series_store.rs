//! The keeper of one series: its statistics, its log, its account, its lines. Sources pass samples
//! on, one or many at a time; storage and write errors are handled here.

#[cfg(test)]
mod tests;

use punctual_bundle::observed::ObservedSamples;
use punctual_bundle::state::SeriesState;
use punctual_bundle::{BundleError, LineKeeper, SeriesAccount, SeriesMeta, SeriesWriter};
use punctual_core::{
    Clock, ClockNs, Fact, MonotonicNs, Nanos, Sample, SampleWindow, SeriesData, SeriesShape,
};
use punctual_measure::collect::{RecentFigures, extend_window};
use punctual_stats::SeriesView;
use punctual_sys::{clock, pace};

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
    /// The first error with its files.
    trouble: Option<BundleError>,
    writer: SeriesWriter,
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
    /// Creates an empty series; `writer` writes its files.
    pub fn new(shape: SeriesShape, meta: SeriesMeta, mut writer: SeriesWriter) -> KeptSeries {
        writer.wait_before_writing(pace::between_samples);
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
            trouble: None,
            writer,
            window: None,
            pending: Vec::new(),
            lines: None,
        }
    }

    /// From now on its log keeps the newest samples, and every five minutes have a line.
    pub(crate) fn keep_lines(&mut self, log_limit: u64) -> Result<(), BundleError> {
        self.lines = Some(LineKeeper::new(clock::now(Clock::Realtime).ns(), self.now()));
        self.writer.rotate(log_limit)
    }

    fn now(&self) -> ClockNs {
        clock::now(self.meta.clock)
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
        self.state.data.record(&sample, missed);
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
    /// statistics continue. Returns whether they were added.
    pub fn append(&mut self, samples: &[Sample]) -> bool {
        if self.trouble.is_none() {
            let written = self.writer.append(samples);
            self.keep_trouble(written);
        }
        self.trouble.is_none()
    }

    /// Adds ended windows to the log.
    pub(crate) fn append_windows(&mut self, windows: impl IntoIterator<Item = SampleWindow>) {
        for window in windows {
            if self.trouble.is_none() {
                let written = self.writer.append_window(&window);
                self.keep_trouble(written);
            }
        }
    }

    /// Saves the current state, for a reader after a kill.
    pub fn checkpoint(&mut self) {
        let now = self.now();
        if self.lines.as_ref().is_some_and(|lines| lines.is_due(now)) {
            self.end_line();
        }
        self.save(SeriesWriter::checkpoint);
    }

    /// Saves everything durably: no more samples follow.
    pub fn finish(&mut self) {
        let last = self.window.take();
        self.append_windows(last);
        self.end_line();
        self.save(SeriesWriter::finish);
    }

    fn save(&mut self, write: fn(&mut SeriesWriter, &SeriesState) -> Result<(), BundleError>) {
        let pending = std::mem::take(&mut self.pending);
        self.append(&pending);
        (self.state.samples_kept, self.state.log_bytes) =
            (self.writer.kept(), self.writer.log_bytes());
        let written = write(&mut self.writer, &self.state);
        self.keep_trouble(written);
    }

    /// Saves the breakdown, as far as known now.
    pub(crate) fn save_account(&mut self) {
        if !matches!(self.account, Fact::NotAsked) {
            pace::between_samples();
            let written = self.writer.write_account(&self.account);
            self.keep_trouble(written);
        }
    }

    fn end_line(&mut self) {
        let now = self.now();
        let Some(lines) = &mut self.lines else { return };
        let line = lines.end(&self.state.data, clock::now(Clock::Realtime).ns(), now);
        let written = self.writer.append_line(&line);
        self.keep_trouble(written);
    }

    fn keep_trouble(&mut self, written: Result<(), BundleError>) {
        if let Err(why) = written {
            self.trouble.get_or_insert(why);
        }
    }

    /// The first error with its files.
    pub fn trouble(&self) -> Option<&BundleError> {
        self.trouble.as_ref()
    }

    /// The view for the analysis.
    pub fn view(&self) -> SeriesView<'_> {
        SeriesView { meta: &self.meta, state: &self.state, account: Some(&self.account) }
    }
}
