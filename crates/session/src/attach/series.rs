//! The series of a thread: what a cycle gives, and where it goes.

use super::kept::KeptSeries;
use punctual_analyze::SeriesView;
use punctual_analyze::cycles::Measured;
use punctual_bundle::{BundleError, BundleWriter, SeriesAccount, SeriesMeta};
use punctual_core::{Account, Fact, MonotonicNs, Nanos, Sample, Split};

/// What is measured of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the release to the return of the waiting call.
    Wakeup,
    /// From the release to the next wait.
    Response,
    /// On a CPU within the cycle.
    Execution,
    /// From the release before to this one.
    Period,
}

/// All of them, in the order in which they are listed.
pub const KINDS: [Kind; 4] = [Kind::Wakeup, Kind::Response, Kind::Execution, Kind::Period];

impl Kind {
    /// The last part of its series' name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Wakeup => "wakeup",
            Kind::Response => "response",
            Kind::Execution => "execution",
            Kind::Period => "period",
        }
    }

    /// The kind of this word.
    pub fn from_word(word: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether a release that had no cycle is a sample that is missing here.
    fn misses_releases(self) -> bool {
        matches!(self, Kind::Wakeup | Kind::Response)
    }

    /// What a cycle gives: an interval, and how its time is divided.
    fn of(self, measured: &Measured) -> Option<(MonotonicNs, MonotonicNs, Option<Split>)> {
        let cycle = &measured.cycle;
        match self {
            Kind::Wakeup => Some((cycle.release, cycle.returned, Some(cycle.wake))),
            Kind::Response => Some((cycle.release, cycle.again, Some(cycle.split()))),
            Kind::Execution => Some((cycle.release, cycle.release + cycle.execution_time(), None)),
            Kind::Period => measured
                .period
                .map(|period| (cycle.release + Nanos(-period.ns()), cycle.release, None)),
        }
    }
}

/// A series that is being measured.
pub struct CycleSeries {
    kind: Kind,
    /// It and its statistics.
    pub kept: KeptSeries,
    account: Fact<SeriesAccount>,
    /// Releases so far, those without a cycle among them.
    releases: u64,
}

impl CycleSeries {
    /// Begins it in the bundle. Response times are expected within `span`.
    pub fn begin(
        kind: Kind,
        meta: SeriesMeta,
        span: Nanos,
        writer: &BundleWriter,
        number: usize,
    ) -> Result<CycleSeries, BundleError> {
        let account = match kind {
            Kind::Wakeup | Kind::Response => Fact::Known(SeriesAccount::default()),
            Kind::Execution | Kind::Period => Fact::NotAsked,
        };
        let kept = KeptSeries::begin(meta, span, writer, number)?;
        let mut series = CycleSeries { kind, kept, account, releases: 0 };
        series.checkpoint();
        Ok(series)
    }

    /// Takes a cycle in; its sample.
    pub fn push(&mut self, measured: &Measured) -> Option<Sample> {
        self.releases += measured.skipped;
        let seq = self.releases;
        self.releases += 1;
        let (due, woke, split) = self.kind.of(measured)?;
        let missed = if self.kind.misses_releases() { measured.skipped } else { 0 };
        let sample = self.kept.push(seq, (due, woke), u32::from(measured.cycle.cpu), missed);
        if let (Fact::Known(account), Some(split)) = (&mut self.account, split) {
            account.account.record(&split);
        }
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
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
