//! The series of a thread: what a cycle gives, and where it goes.

use super::kept::KeptSeries;
use punctual_analyze::SeriesView;
use punctual_analyze::cycles::{Begins, Measured};
use punctual_bundle::{BundleError, BundleWriter, SeriesAccount, SeriesMeta};
use punctual_core::cycle::SeriesKind;
use punctual_core::{Account, Fact, MonotonicNs, Nanos, Sample, Split};
use punctual_measure::collect::Recent;

/// What a cycle gives: an interval, and how its time is divided. `None` where that is not known.
fn interval(
    kind: SeriesKind,
    measured: &Measured,
) -> Option<(MonotonicNs, MonotonicNs, Option<Split>)> {
    let cycle = &measured.cycle;
    let is_known = match kind {
        SeriesKind::Wakeup => measured.begins == Begins::Released,
        SeriesKind::Response => measured.begins != Begins::Unknown,
        SeriesKind::Execution | SeriesKind::Period => true,
    };
    if !is_known {
        return None;
    }
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

/// A series that is being measured.
pub struct CycleSeries {
    kind: SeriesKind,
    /// It and its statistics.
    pub kept: KeptSeries,
    /// The last sample.
    pub recent: Option<Recent>,
    account: Fact<SeriesAccount>,
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
        let account = match kind {
            SeriesKind::Wakeup | SeriesKind::Response => Fact::Known(SeriesAccount::default()),
            SeriesKind::Execution | SeriesKind::Period => Fact::NotAsked,
        };
        let writer = place.writer.series(place.phase, number, &meta, place.keep)?;
        let mut kept = KeptSeries::begin(meta, span, writer);
        kept.state.data.losses.overruns = Some(0);
        let mut series = CycleSeries { kind, kept, recent: None, account, releases: 0 };
        series.checkpoint();
        Ok(series)
    }

    /// Takes a cycle in; its sample.
    pub fn push(&mut self, measured: &Measured) -> Option<Sample> {
        if let Some(overruns) = &mut self.kept.state.data.losses.overruns {
            *overruns += u64::from(measured.overrun && self.kind.misses_releases());
        }
        self.releases += measured.skipped;
        let seq = self.releases;
        self.releases += 1;
        let Some((due, woke, split)) = interval(self.kind, measured) else {
            self.kept.state.data.losses.dropped += u64::from(self.kind.misses_releases());
            return None;
        };
        let missed = if self.kind.misses_releases() { measured.skipped } else { 0 };
        let sample = self.kept.push(seq, (due, woke), u32::from(measured.cycle.cpu), missed);
        if let (Fact::Known(account), Some(split)) = (&mut self.account, split) {
            account.account.record(&split);
        }
        let latency = sample.latency();
        self.recent = Some(Recent { count: 1, last: latency, max: latency });
        Some(sample)
    }

    /// Saves what there is.
    pub fn checkpoint(&mut self) {
        self.save(false);
    }

    /// Saves it for good. `lost` records of all threads found no room.
    pub fn finish(&mut self, lost: u64) {
        if let Fact::Known(account) = &mut self.account {
            account.complete = true;
            account.lost = lost;
        }
        self.save(true);
    }

    fn save(&mut self, ended: bool) {
        self.kept.save(ended);
        if self.account.known().is_some() {
            let written = self.kept.writer.write_account(&self.account);
            self.kept.keep_trouble(written);
        }
    }

    /// How its samples are divided, where they are.
    pub fn account(&self) -> Option<&Account> {
        self.account.known().map(|of| &of.account)
    }

    /// As the analysis wants it.
    pub fn view(&self) -> SeriesView<'_> {
        SeriesView { meta: &self.kept.meta, state: &self.kept.state, account: Some(&self.account) }
    }

    /// Which.
    pub fn kind(&self) -> SeriesKind {
        self.kind
    }
}
