//! A phase as it is measured: its measures, its series, its loads.

use super::measure::MeasureRun;
use super::program::ProgramRun;
use super::series::SeriesRun;
use crate::cycles::thread::Thread;
use punctual_analyze::PhaseView;
use punctual_bundle::{PhaseMeta, SeriesMeta};
use punctual_core::SeriesData;
use punctual_measure::collect::Recent;

/// A phase that is running or has ended.
pub struct PhaseRun {
    /// Its name, times and loads.
    pub meta: PhaseMeta,
    /// Its measures.
    pub measures: Vec<MeasureRun>,
    /// Their series.
    pub series: Vec<SeriesRun>,
    /// The programs among the measures, which have their series.
    pub programs: Vec<ProgramRun>,
}

impl PhaseRun {
    /// The view that the analysis takes.
    pub fn view(&self) -> PhaseView<'_> {
        let programs = self.programs.iter().flat_map(|program| program.cycles.views());
        let series = self.series.iter().map(SeriesRun::view).chain(programs).collect();
        PhaseView { meta: &self.meta, series }
    }

    /// All series as a live view shows them.
    pub fn live(&self) -> Vec<LiveSeries<'_>> {
        let own = self.series.iter().map(|one| LiveSeries {
            meta: &one.meta,
            data: &one.state.data,
            recent: one.recent,
        });
        let threads = self.programs.iter().flat_map(|program| program.cycles.threads());
        let cycles = threads.flat_map(Thread::all_series).map(|one| LiveSeries {
            meta: &one.meta,
            data: &one.state.data,
            recent: one.recent,
        });
        own.chain(cycles).collect()
    }
}

/// A series while it is measured.
pub struct LiveSeries<'a> {
    /// What it is.
    pub meta: &'a SeriesMeta,
    /// Its statistics so far.
    pub data: &'a SeriesData,
    /// What came in last.
    pub recent: Option<Recent>,
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
