//! The flight recorder beside a run.

use super::companion::{Companion, CompanionResults};
use super::phase_run::PhaseRun;
use super::series::SeriesRun;
use crate::flight::{Flight, WatchedSeries};
use punctual_measure::sink::SampleSource;

/// Passes the flight recorder the data that it cannot see itself.
pub struct Explaining {
    flight: Flight,
    /// New series, with their indexes in the phase.
    begun: Vec<(usize, WatchedSeries)>,
    /// For each series of the flight recorder, in order: its index if its samples are only counted.
    counted: Vec<Option<usize>>,
    watched: usize,
}

impl Explaining {
    /// Starts with an active flight recorder.
    pub fn new(flight: Flight) -> Explaining {
        Explaining { flight, begun: Vec::new(), counted: Vec::new(), watched: 0 }
    }

    /// Passes on the worst samples of counted series.
    fn report_worst(&mut self, phase: &mut PhaseRun) {
        for (number, place) in self.counted.iter().enumerate() {
            if let Some(series) = place.and_then(|place| phase.series.get_mut(place)) {
                self.flight.add_worst(number, series.take_worst());
            }
        }
        for program in &mut phase.programs {
            program.cycles.pass_worst_to(&self.flight, &mut self.watched);
        }
    }
}

impl Companion for Explaining {
    fn begin_series(
        &mut self,
        phase: &str,
        place: usize,
        series: &SeriesRun,
        source: &SampleSource,
    ) {
        self.begun.extend(series.watched_series(phase, source).map(|watched| (place, watched)));
    }

    fn begin_phase(&mut self, phase: &mut PhaseRun) {
        let begun = std::mem::take(&mut self.begun);
        let counted = |of: &WatchedSeries| of.snapshot_reader.is_none();
        self.counted = begun.iter().map(|(place, of)| counted(of).then_some(*place)).collect();
        for place in self.counted.iter().flatten() {
            phase.series[*place].keep_worst();
        }
        self.watched = begun.len();
        self.flight.watch_series(begun.into_iter().map(|(_, of)| of).collect());
    }

    fn on_tick(&mut self, phase: &mut PhaseRun) {
        self.report_worst(phase);
        self.flight.poll();
    }

    fn on_save(&mut self, _: &mut PhaseRun) {
        self.flight.save_copies();
    }

    fn end_phase(&mut self, phase: &mut PhaseRun) {
        self.report_worst(phase);
        self.flight.settle();
        self.flight.save_copies();
        // The series of the next phase have other indexes.
        self.begun.clear();
        self.counted.clear();
    }

    fn finish(self: Box<Self>, _: &[PhaseRun]) -> CompanionResults {
        CompanionResults::from_findings(self.flight.stop())
    }
}
