//! A series of an attached program or CPU on its way into the bundle.

use punctual_bundle::state::State;
use punctual_bundle::{BundleError, SeriesMeta, SeriesWriter};
use punctual_core::{ClockNs, Fact, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Window};
use punctual_measure::collect::extend_window;

/// Bins of an exact histogram, at most.
const BINS: i64 = 4_096;

/// A series that is being measured.
pub struct KeptSeries {
    /// What it is.
    pub meta: SeriesMeta,
    /// Its statistics.
    pub state: State,
    /// The first thing that went wrong with its files.
    pub trouble: Option<BundleError>,
    pub(super) writer: SeriesWriter,
    window: Option<Window>,
    pending: Vec<Sample>,
}

impl KeptSeries {
    /// Begins it, of which `writer` writes the files. Samples are expected within `span`.
    pub fn begin(meta: SeriesMeta, span: Nanos, writer: SeriesWriter) -> KeptSeries {
        let range = span.max(Nanos::MILLI);
        let resolution = Nanos((range.ns() / BINS / 1_000 + 1) * 1_000);
        let data = SeriesData::new(SeriesShape { range, resolution, period: meta.period });
        let state =
            State { data, usage: Fact::NotAsked, digest: None, samples_kept: 0, log_bytes: 0 };
        KeptSeries { meta, state, trouble: None, writer, window: None, pending: Vec::new() }
    }

    /// Takes an interval in, on CLOCK_MONOTONIC; `missed` periods came before it.
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
        let one = Window { start: sample.due, count: 1, min: latency, max: latency, sum: latency };
        if let Some(ended) = extend_window(&mut self.window, one) {
            let written = self.writer.append_window(&ended);
            self.keep_trouble(written);
        }
        self.pending.push(sample);
        sample
    }

    /// Saves what there is; for good where it has ended.
    pub fn save(&mut self, ended: bool) {
        if let Some(window) = ended.then(|| self.window.take()).flatten() {
            let written = self.writer.append_window(&window);
            self.keep_trouble(written);
        }
        if self.trouble.is_none() {
            let written = self.writer.append(&std::mem::take(&mut self.pending));
            self.keep_trouble(written);
        }
        self.pending.clear();
        (self.state.samples_kept, self.state.log_bytes) =
            (self.writer.kept(), self.writer.log_bytes());
        let written = match ended {
            true => self.writer.finish(&self.state),
            false => self.writer.checkpoint(&self.state),
        };
        self.keep_trouble(written);
    }

    /// Keeps the first error.
    pub fn keep_trouble(&mut self, written: Result<(), BundleError>) {
        if let (Err(why), None) = (written, &self.trouble) {
            self.trouble = Some(why);
        }
    }
}
