//! A phase as it is measured: its measures, its series, its loads.

use super::measure::MeasureRun;
use super::series::SeriesRun;
use punctual_analyze::PhaseView;
use punctual_bundle::PhaseMeta;

/// A phase that is running or has ended.
pub struct PhaseRun {
    /// Its name, times and loads.
    pub meta: PhaseMeta,
    /// Its measures.
    pub measures: Vec<MeasureRun>,
    /// Their series.
    pub series: Vec<SeriesRun>,
}

impl PhaseRun {
    /// The view that the analysis takes.
    pub fn view(&self) -> PhaseView<'_> {
        PhaseView { meta: &self.meta, series: self.series.iter().map(SeriesRun::view).collect() }
    }
}

/// Counts of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadCounts {
    /// Its name.
    pub name: String,
    /// How often it was started.
    pub starts: u64,
    /// How often it failed.
    pub failures: u64,
}

/// The views of the phases that the analysis takes.
pub fn views(phases: &[PhaseRun]) -> Vec<PhaseView<'_>> {
    phases.iter().map(PhaseRun::view).collect()
}
