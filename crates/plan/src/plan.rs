//! A plan: an experiment with every default filled in and every name resolved, without open
//! decisions. Its types are declared with the sections of the experiment.

use crate::calibration;
pub use crate::experiment::{
    ExplainPlan, LoadPlan, MeasurePlan, PartitionPlan, PhasePlan, Plan, RecordPlan, SystressFile,
};
use crate::experiment::{RecordResolved, RecordSpec};
pub use crate::kinds::{HistogramPlan, TimerPlan, Workload};
pub use crate::scheduling::{DeadlineParameters, Length, SchedulingSpec, ThreadPlan};
pub use crate::target::TargetPlan;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Fact, Nanos};

impl Plan {
    /// Lets the run continue until it is interrupted, whatever the requested lengths.
    ///
    /// # Errors
    /// There is more than one phase.
    pub fn run_forever(&mut self) -> Result<(), String> {
        let [phase] = &mut self.phases[..] else {
            let phases = self.phases.len();
            return Err(format!("an experiment that runs forever has one phase, not {phases}"));
        };
        phase.duration = None;
        phase.measures.iter_mut().for_each(|measure| measure.length = Length::UntilInterrupted);
        self.forever = true;
        Ok(())
    }

    /// Whether a program is measured.
    pub fn measures_program(&self) -> bool {
        let mut measures = self.phases.iter().flat_map(|phase| &phase.measures);
        measures.any(|measure| matches!(measure.workload, Workload::Program(_)))
    }

    /// Whether the cost of recording is measured before the run, or why not; not asked if nothing
    /// is recorded.
    pub fn calibration_decision(&self) -> Fact<()> {
        match self.record.is_some() || self.explain.is_some() {
            true => calibration::decide_calibration(self.calibrate, self.estimated_time()),
            false => Fact::NotAsked,
        }
    }
}

impl RecordPlan {
    /// The default groups of events on these CPUs, and test points.
    pub fn with_default_events(cpus: CpuSet) -> RecordPlan {
        RecordSpec::default().to_plan(RecordResolved {
            events: Group::USUAL.to_vec(),
            tracepoints: Vec::new(),
            cpus,
        })
    }
}

impl Plan {
    /// The sum of all phases; `None` if one lasts until it is interrupted, or its length is
    /// unknown. Excludes preparation and reporting.
    pub fn estimated_time(&self) -> Option<Nanos> {
        self.phases.iter().try_fold(Nanos::ZERO, |sum, phase| Some(sum + phase.estimated_time()?))
    }
}

impl PhasePlan {
    /// Whether it ends by itself.
    pub fn has_end(&self) -> bool {
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
        self.length.estimated_time(self.workload.sample_period()).map(|time| time + last_start)
    }
}
