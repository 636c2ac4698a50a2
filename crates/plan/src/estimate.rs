//! The estimated time of a plan.

use crate::plan::{Length, MeasurePlan, PhasePlan, Plan};
use punctual_core::Nanos;

impl Plan {
    /// The sum of all phases; `None` if one lasts until it is interrupted, or its length is
    /// unknown. Excludes preparation and reporting.
    pub fn estimated_time(&self) -> Option<Nanos> {
        self.phases.iter().try_fold(Nanos::ZERO, |sum, phase| Some(sum + phase.estimated_time()?))
    }
}

impl PhasePlan {
    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        self.duration.is_some()
            || self.measures.iter().all(|measure| measure.length != Length::UntilInterrupted)
    }
    /// Its duration, or the time of its longest measure; `None` if it lasts until it is
    /// interrupted.
    pub fn estimated_time(&self) -> Option<Nanos> {
        let longest = || {
            let times = self.measures.iter().map(MeasurePlan::estimated_time);
            times
                .collect::<Option<Vec<Nanos>>>()
                .map(|times| times.into_iter().max().unwrap_or(Nanos::ZERO))
        };
        self.duration.or_else(longest)
    }
}

impl MeasurePlan {
    /// From its first thread's start to its last thread's end; `None` if it lasts until it is
    /// interrupted, or the time of its samples is unknown.
    pub fn estimated_time(&self) -> Option<Nanos> {
        let last_start =
            self.threads.iter().map(|thread| thread.start_offset).max().unwrap_or(Nanos::ZERO);
        self.length.time(self.workload.period()).map(|time| time + last_start)
    }
}
