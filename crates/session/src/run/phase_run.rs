//! A phase as it is measured: its measures, its series, its loads.

use super::entries::EntriesRun;
use super::measure::MeasureRun;
use super::program::ProgramRun;
use super::series::SeriesRun;
use crate::kept::KeptSeries;
use punctual_analyze::PhaseView;
use punctual_bundle::PhaseMeta;

/// A phase that is running or has ended.
pub struct PhaseRun {
    /// Its name, times and loads.
    pub meta: PhaseMeta,
    pub measures: Vec<MeasureRun>,
    pub series: Vec<SeriesRun>,
    /// The programs among the measures, which have their series.
    pub programs: Vec<ProgramRun>,
    /// The CPUs among the measures, whose series stand among those of threads.
    pub entries: Vec<EntriesRun>,
}

impl PhaseRun {
    /// The view that the analysis takes.
    pub fn view(&self) -> PhaseView<'_> {
        let programs = self.programs.iter().flat_map(|program| program.cycles.views());
        let series = self.series.iter().map(|one| one.kept.view()).chain(programs).collect();
        PhaseView { meta: &self.meta, series }
    }

    /// All series, for a live view.
    pub fn live(&self) -> Vec<&KeptSeries> {
        let cycles = self.programs.iter().flat_map(|program| program.cycles.all_series());
        let cycles = cycles.map(|one| &one.kept);
        self.series.iter().map(|one| &one.kept).chain(cycles).collect()
    }
}

/// Counts of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadCounts {
    pub name: String,
    /// How often it was started.
    pub starts: u64,
    pub failures: u64,
}

/// The views of the phases that the analysis takes.
pub fn views(phases: &[PhaseRun]) -> Vec<PhaseView<'_>> {
    phases.iter().map(PhaseRun::view).collect()
}
