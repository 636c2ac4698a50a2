//! The series of a thread: samples of its cycles, and their storage.

use crate::saver::Saver;
use crate::series_store::{KeptSeries, SeriesFiles, shape_within};
use punctual_bundle::lines;
use punctual_bundle::meta::{DETAIL_KEPT, NEWEST};
use punctual_bundle::observed::ObservedSample;
use punctual_bundle::{PhasePlace, SeriesAccount, SeriesMeta};
use punctual_core::cycle::{Gap, SeriesKind};
use punctual_core::{Account, CauseKind, Fact, MonotonicNs, Nanos, Sample, Split};
use punctual_explain::cycles::{Begins, MeasuredCycle, NotEnded};
use punctual_stats::SeriesView;

/// The sample of a cycle: an interval and its breakdown. `None` if unknown.
fn cycle_sample(
    kind: SeriesKind,
    measured: &MeasuredCycle,
) -> Option<(MonotonicNs, MonotonicNs, Option<Split>)> {
    let cycle = &measured.cycle;
    let is_known = match kind {
        SeriesKind::Wakeup => measured.begins == Begins::Released,
        SeriesKind::Response => measured.is_response_known(),
        SeriesKind::Execution | SeriesKind::Period => true,
        // A polling thread has gaps instead.
        SeriesKind::Gap => false,
    };
    if !is_known {
        return None;
    }
    match kind {
        SeriesKind::Wakeup => Some((cycle.release, cycle.returned, Some(cycle.wake))),
        SeriesKind::Response => Some((cycle.release, cycle.again, Some(cycle.total_split()))),
        SeriesKind::Execution => {
            Some((cycle.release, cycle.release + cycle.execution_time(), None))
        }
        SeriesKind::Period => {
            measured.period.map(|period| (cycle.release + Nanos(-period.ns()), cycle.release, None))
        }
        SeriesKind::Gap => None,
    }
}

/// The destination of a program's series.
pub struct SeriesPlace<'a> {
    pub phase: PhasePlace,
    pub saver: &'a Saver,
    /// The number of the next series in the phase.
    pub next: &'a mut usize,
    /// Prefixes of other series in the phase.
    pub taken: &'a [String],
    /// The maximum number of samples of each in its log.
    pub keep: u64,
    /// For runs of weeks: every five minutes have a line, and the log keeps the newest samples.
    pub forever: bool,
}

/// The space of all logs is divided among at least this many series: the number of a program's
/// threads is not known when the first one begins.
const SERIES: usize = 64;

/// A series in progress.
pub struct CycleSeries {
    pub kind: SeriesKind,
    pub kept: KeptSeries,
    /// Releases so far, including those without a cycle.
    releases: u64,
}

impl CycleSeries {
    /// Begins a series in the bundle. Response times are expected within `span`.
    pub fn begin(
        kind: SeriesKind,
        mut meta: SeriesMeta,
        span: Nanos,
        place: &SeriesPlace<'_>,
        number: usize,
    ) -> CycleSeries {
        let keep = if place.forever { u64::MAX } else { place.keep };
        if place.forever {
            meta.details.insert(DETAIL_KEPT.into(), NEWEST.into());
        }
        let log_limit = place.forever.then(|| lines::log_limit(number.max(SERIES)));
        let log = (keep, log_limit);
        let files =
            SeriesFiles::create(place.phase.clone(), number, meta.clone(), log, place.saver);
        let shape = shape_within(span, meta.period);
        let mut kept = KeptSeries::new(shape, meta, files);
        if place.forever {
            kept.keep_lines();
        }
        if matches!(kind, SeriesKind::Wakeup | SeriesKind::Response | SeriesKind::Gap) {
            kept.account = Fact::Known(SeriesAccount::default());
        }
        kept.state.data.losses.overruns = Some(0);
        let mut series = CycleSeries { kind, kept, releases: 0 };
        series.checkpoint();
        series
    }

    /// Adds a cycle; returns its sample.
    pub fn push(&mut self, measured: &MeasuredCycle) -> Option<Sample> {
        if let Some(overruns) = &mut self.kept.state.data.losses.overruns {
            *overruns += u64::from(measured.overrun && self.kind.misses_releases());
        }
        self.releases += measured.skipped;
        let seq = self.releases;
        self.releases += 1;
        let Some((due, woke, split)) = cycle_sample(self.kind, measured) else {
            self.kept.state.data.losses.dropped += u64::from(self.kind.misses_releases());
            return None;
        };
        let missed = if self.kind.misses_releases() { measured.skipped } else { 0 };
        let sample = self.kept.push(seq, (due, woke), u32::from(measured.cycle.cpu), missed);
        split.iter().for_each(|split| self.record_split(&sample, split));
        Some(sample)
    }

    /// Adds a gap; returns its sample.
    pub(crate) fn push_gap(&mut self, gap: &Gap) -> Sample {
        let seq = self.releases;
        self.releases += 1;
        let sample = self.kept.push(seq, (gap.begin, gap.end), u32::from(gap.cpu), 0);
        self.record_split(&sample, &gap.split);
        sample
    }

    /// Counts samples that a full buffer lost, up to this total.
    pub(crate) fn lose_until(&mut self, total: u64) {
        let losses = &mut self.kept.state.data.losses;
        let lost = total.saturating_sub(losses.lost_records);
        losses.lost_records += lost;
        losses.dropped += lost;
        self.releases += lost;
    }

    fn record_split(&mut self, sample: &Sample, split: &Split) {
        if let Fact::Known(account) = &mut self.kept.account {
            account.account.record_split(split);
            let (latency, observer) =
                (sample.latency().ns(), split.time_of(CauseKind::Observer).ns());
            self.kept.observed.add(ObservedSample { latency, observer });
        }
    }

    /// Stores the cycle in progress; `None`: there is none.
    pub(crate) fn set_unfinished(&mut self, cycle: Option<&NotEnded>) {
        self.kept.state.data.unfinished = cycle.map(|cycle| cycle.of_series(self.kind));
    }

    pub fn checkpoint(&mut self) {
        if self.kept.checkpoint() {
            self.kept.save_account();
        }
    }

    /// Saves the series durably. `lost` records of all threads found no room.
    pub fn finish(&mut self, lost: u64) {
        if let Fact::Known(account) = &mut self.kept.account {
            account.complete = true;
            account.lost = lost;
        }
        self.kept.finish();
        self.kept.save_account();
    }

    /// The breakdown of its samples, if any.
    pub fn account(&self) -> Option<&Account> {
        self.kept.account.known_value().map(|of| &of.account)
    }

    /// The view for the analysis.
    pub fn view(&self) -> SeriesView<'_> {
        self.kept.view()
    }
}
