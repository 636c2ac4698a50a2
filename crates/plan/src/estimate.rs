//! How long a plan takes.

use crate::plan::{MeasurePlan, PhasePlan, Plan, Workload};
use punctual_core::Nanos;

impl Plan {
    /// The sum of all phases; `None` where one lasts until somebody interrupts it. Preparing and reporting come on top.
    pub fn estimated_time(&self) -> Option<Nanos> {
        self.phases.iter().try_fold(Nanos::ZERO, |sum, phase| Some(sum + phase.estimated_time()?))
    }
}

impl PhasePlan {
    /// Its duration, or the time of its longest measure; `None` where it lasts until somebody interrupts it.
    pub fn estimated_time(&self) -> Option<Nanos> {
        let longest = || {
            let times = self.measures.iter().map(MeasurePlan::estimated_time);
            times.collect::<Option<Vec<Nanos>>>().map(|times| times.into_iter().max().unwrap_or(Nanos::ZERO))
        };
        self.duration.or_else(longest)
    }
}

impl MeasurePlan {
    /// From its first thread's start to its last thread's end; `None` where it lasts until somebody interrupts it.
    pub fn estimated_time(&self) -> Option<Nanos> {
        let Workload::Timer(timer) = self.workload;
        let last_start = self.threads.iter().map(|thread| thread.start_offset).max().unwrap_or(Nanos::ZERO);
        self.length.time(timer.period).map(|time| time + last_start)
    }
}
