//! The series of a thread: what a cycle gives, and where it goes.

use punctual_analyze::SeriesView;
use punctual_analyze::cycles::Measured;
use punctual_bundle::state::State;
use punctual_bundle::{BundleError, BundleWriter, SeriesAccount, SeriesMeta, SeriesWriter};
use punctual_core::cycle::SeriesKind;
use punctual_core::{
    Account, ClockNs, Fact, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Split, Window,
};
use punctual_measure::collect::{Recent, extend_window};

/// What a cycle gives: an interval, and how its time is divided.
fn interval(
    kind: SeriesKind,
    measured: &Measured,
) -> Option<(MonotonicNs, MonotonicNs, Option<Split>)> {
    let cycle = &measured.cycle;
    match kind {
        SeriesKind::Wakeup => Some((cycle.release, cycle.returned, Some(cycle.wake))),
        SeriesKind::Response => Some((cycle.release, cycle.again, Some(cycle.split()))),
        SeriesKind::Execution => {
            Some((cycle.release, cycle.release + cycle.execution_time(), None))
        }
        SeriesKind::Period => {
            measured.period.map(|period| (cycle.release + Nanos(-period.ns()), cycle.release, None))
        }
    }
}

/// Where the series of a program go.
pub struct SeriesPlace<'a> {
    /// The bundle.
    pub writer: &'a BundleWriter,
    /// The number of the phase in it.
    pub phase: usize,
    /// The number of the next series in the phase.
    pub next: &'a mut usize,
    /// What series of others in the phase begin with.
    pub taken: &'a [String],
    /// How many samples of each go into its log.
    pub keep: u64,
}

/// Bins of an exact histogram, at most.
const BINS: i64 = 4_096;

/// A series that is being measured.
pub struct CycleSeries {
    kind: SeriesKind,
    /// What it is.
    pub meta: SeriesMeta,
    /// The last sample.
    pub recent: Option<Recent>,
    /// Its statistics.
    pub state: State,
    /// The first thing that went wrong with its files.
    pub trouble: Option<BundleError>,
    account: Fact<SeriesAccount>,
    writer: SeriesWriter,
    window: Option<Window>,
    pending: Vec<Sample>,
    /// Releases so far, those without a cycle among them.
    releases: u64,
}

impl CycleSeries {
    /// Begins it in the bundle. Response times are expected within `span`.
    pub fn begin(
        kind: SeriesKind,
        meta: SeriesMeta,
        span: Nanos,
        place: &SeriesPlace<'_>,
        number: usize,
    ) -> Result<CycleSeries, BundleError> {
        let range = span.max(Nanos::MILLI);
        let resolution = Nanos((range.ns() / BINS / 1_000 + 1) * 1_000);
        let data = SeriesData::new(SeriesShape { range, resolution, period: meta.period });
        let account = match kind {
            SeriesKind::Wakeup | SeriesKind::Response => Fact::Known(SeriesAccount::default()),
            SeriesKind::Execution | SeriesKind::Period => Fact::NotAsked,
        };
        let writer = place.writer.series(place.phase, number, &meta, place.keep)?;
        let state =
            State { data, usage: Fact::NotAsked, digest: None, samples_kept: 0, log_bytes: 0 };
        let (window, pending) = (None, Vec::new());
        let mut series = CycleSeries {
            kind,
            meta,
            recent: None,
            state,
            trouble: None,
            account,
            writer,
            window,
            pending,
            releases: 0,
        };
        series.checkpoint();
        Ok(series)
    }

    /// Takes a cycle in; its sample.
    pub fn push(&mut self, measured: &Measured) -> Option<Sample> {
        self.releases += measured.skipped;
        let seq = self.releases;
        self.releases += 1;
        let (due, woke, split) = interval(self.kind, measured)?;
        let (due, woke) = (ClockNs(due.ns()), ClockNs(woke.ns()));
        let sample = Sample { seq, due, woke, cpu: u32::from(measured.cycle.cpu) };
        let missed = if self.kind.misses_releases() { measured.skipped } else { 0 };
        self.state.data.record(&sample, missed);
        if let (Fact::Known(account), Some(split)) = (&mut self.account, split) {
            account.account.record(&split);
        }
        let latency = sample.latency();
        self.recent = Some(Recent { count: 1, last: latency, max: latency });
        let one = Window { start: sample.due, count: 1, min: latency, max: latency, sum: latency };
        if let Some(ended) = extend_window(&mut self.window, one) {
            let written = self.writer.append_window(&ended);
            self.keep_trouble(written);
        }
        self.pending.push(sample);
        Some(sample)
    }

    /// Saves what there is.
    pub fn checkpoint(&mut self) {
        self.save(false);
    }

    /// Saves it for good. `lost` records of all threads found no room.
    pub fn finish(&mut self, lost: u64) {
        if let Some(ended) = self.window.take() {
            let written = self.writer.append_window(&ended);
            self.keep_trouble(written);
        }
        if let Fact::Known(account) = &mut self.account {
            account.complete = true;
            account.lost = lost;
        }
        self.save(true);
    }

    fn save(&mut self, ended: bool) {
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
        if self.account.known().is_some() {
            let written = self.writer.write_account(&self.account);
            self.keep_trouble(written);
        }
    }

    fn keep_trouble(&mut self, written: Result<(), BundleError>) {
        if let (Err(why), None) = (written, &self.trouble) {
            self.trouble = Some(why);
        }
    }

    /// How its samples are divided, where they are.
    pub fn account(&self) -> Option<&Account> {
        self.account.known().map(|of| &of.account)
    }

    /// As the analysis wants it.
    pub fn view(&self) -> SeriesView<'_> {
        SeriesView { meta: &self.meta, state: &self.state, account: Some(&self.account) }
    }

    /// Which.
    pub fn kind(&self) -> SeriesKind {
        self.kind
    }
}
