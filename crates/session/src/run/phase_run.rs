//! A phase in progress: its measures, its series, its loads.

use super::entries::EntriesRun;
use super::measure::MeasureRun;
use super::program::ProgramRun;
use super::series::SeriesRun;
use crate::series_store::KeptSeries;
use punctual_bundle::PhaseMeta;
use punctual_stats::PhaseView;

/// A phase that is running or has ended.
pub struct PhaseRun {
    /// The phase's name, times and loads.
    pub meta: PhaseMeta,
    pub measures: Vec<MeasureRun>,
    pub series: Vec<SeriesRun>,
    /// The programs among the measures, with their series.
    pub programs: Vec<ProgramRun>,
    /// The CPUs among the measures; their series are among those of threads.
    pub entries: Vec<EntriesRun>,
}

impl PhaseRun {
    /// The phase's view for the analysis.
    pub fn view(&self) -> PhaseView<'_> {
        let programs = self.programs.iter().flat_map(|program| program.cycles.series_views());
        let series = self.series.iter().map(|one| one.kept.view()).chain(programs).collect();
        PhaseView { meta: &self.meta, series }
    }

    /// All series, for a live view.
    pub fn live_series(&self) -> Vec<&KeptSeries> {
        let cycles = self.programs.iter().flat_map(|program| program.cycles.all_series());
        let cycles = cycles.map(|one| &one.kept);
        self.series.iter().map(|one| &one.kept).chain(cycles).collect()
    }
}

/// Counts of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadCounts {
    pub name: String,
    /// The number of its starts.
    pub starts: u64,
    pub failures: u64,
}

/// The phases' views for the analysis.
pub fn phase_views(phases: &[PhaseRun]) -> Vec<PhaseView<'_>> {
    phases.iter().map(PhaseRun::view).collect()
}
