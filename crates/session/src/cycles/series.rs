//! The series of a thread: what a cycle gives, and where it goes.

use crate::kept::{KeptSeries, shape_within};
use punctual_analyze::SeriesView;
use punctual_analyze::cycles::{Begins, Measured, NotEnded};
use punctual_bundle::lines;
use punctual_bundle::meta::{DETAIL_KEPT, NEWEST};
use punctual_bundle::observed::ObservedSample;
use punctual_bundle::{BundleError, BundleWriter, SeriesAccount, SeriesMeta};
use punctual_core::cycle::{Gap, SeriesKind};
use punctual_core::{Account, Fact, MainPart, MonotonicNs, Nanos, Sample, Split};

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
        // It has gaps instead.
        SeriesKind::Gap => false,
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
        SeriesKind::Gap => None,
    }
}

/// Where the series of a program go.
pub struct SeriesPlace<'a> {
    pub writer: &'a BundleWriter,
    /// The number of the phase in it.
    pub phase: usize,
    /// The number of the next series in the phase.
    pub next: &'a mut usize,
    /// What series of others in the phase begin with.
    pub taken: &'a [String],
    /// How many samples of each go into its log.
    pub keep: u64,
    /// It goes on for weeks: every five minutes have a line, and the log keeps the newest samples.
    pub forever: bool,
}

/// The room of all logs is divided among so many series at least: how many threads a program will
/// have is not known when the first one begins.
const SERIES: usize = 64;

/// A series that is being measured.
pub struct CycleSeries {
    kind: SeriesKind,
    pub kept: KeptSeries,
    /// Releases so far, those without a cycle among them.
    releases: u64,
}

impl CycleSeries {
    /// Begins it in the bundle. Response times are expected within `span`.
    pub fn begin(
        kind: SeriesKind,
        mut meta: SeriesMeta,
        span: Nanos,
        place: &SeriesPlace<'_>,
        number: usize,
    ) -> Result<CycleSeries, BundleError> {
        let keep = if place.forever { u64::MAX } else { place.keep };
        if place.forever {
            meta.details.insert(DETAIL_KEPT.into(), NEWEST.into());
        }
        let writer = place.writer.series(place.phase, number, &meta, keep)?;
        let shape = shape_within(span, meta.period);
        let mut kept = KeptSeries::new(shape, meta, writer);
        if place.forever {
            kept.keep_lines(lines::log_limit(number.max(SERIES)))?;
        }
        if matches!(kind, SeriesKind::Wakeup | SeriesKind::Response | SeriesKind::Gap) {
            kept.account = Fact::Known(SeriesAccount::default());
        }
        kept.state.data.losses.overruns = Some(0);
        let mut series = CycleSeries { kind, kept, releases: 0 };
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
        split.iter().for_each(|split| self.divide(&sample, split));
        Some(sample)
    }

    /// Takes a gap in; its sample.
    pub fn push_gap(&mut self, gap: &Gap) -> Sample {
        let seq = self.releases;
        self.releases += 1;
        let sample = self.kept.push(seq, (gap.begin, gap.end), u32::from(gap.cpu), 0);
        self.divide(&sample, &gap.split);
        sample
    }

    fn divide(&mut self, sample: &Sample, split: &Split) {
        if let Fact::Known(account) = &mut self.kept.account {
            account.account.record(split);
            let (latency, observer) = (sample.latency().ns(), split.of(MainPart::Observer).ns());
            self.kept.observed.add(ObservedSample { latency, observer });
        }
    }

    /// Notes the cycle that has not ended; `None`: there is none.
    pub fn is_in(&mut self, cycle: Option<&NotEnded>) {
        self.kept.state.data.unfinished = cycle.map(|cycle| cycle.of_series(self.kind));
    }

    pub fn checkpoint(&mut self) {
        self.kept.checkpoint();
        self.kept.save_account();
    }

    /// Saves it for good. `lost` records of all threads found no room.
    pub fn finish(&mut self, lost: u64) {
        if let Fact::Known(account) = &mut self.kept.account {
            account.complete = true;
            account.lost = lost;
        }
        self.kept.finish();
        self.kept.save_account();
    }

    /// How its samples are divided, where they are.
    pub fn account(&self) -> Option<&Account> {
        self.kept.account.known().map(|of| &of.account)
    }

    /// As the analysis wants it.
    pub fn view(&self) -> SeriesView<'_> {
        self.kept.view()
    }

    pub fn kind(&self) -> SeriesKind {
        self.kind
    }
}
