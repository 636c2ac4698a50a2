//! A plan: an experiment with every default filled in and every name resolved, without open
//! decisions. Its types are declared with the sections of the experiment.

use crate::calibration;
pub use crate::experiment::{
    ExplainPlan, LoadPlan, MeasurePlan, PartitionPlan, PhasePlan, Plan, RecordPlan, SystressFile,
};
use crate::experiment::{RecordResolved, RecordSpec};
pub use crate::kinds::Workload;
pub use crate::kinds::{HistogramPlan, TimerPlan};
pub use crate::scheduling::{DeadlineParameters, Length, SchedulingSpec, ThreadPlan};
pub use crate::target::TargetPlan;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Fact};

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
    pub fn calibration(&self) -> Fact<()> {
        match self.record.is_some() || self.explain.is_some() {
            true => calibration::decide(self.calibrate, self.estimated_time()),
            false => Fact::NotAsked,
        }
    }
}

impl RecordPlan {
    /// The default groups of events on these CPUs, and test points.
    pub fn usual(cpus: CpuSet) -> RecordPlan {
        RecordSpec::default().to_plan(RecordResolved {
            events: Group::USUAL.to_vec(),
            tracepoints: Vec::new(),
            cpus,
        })
    }
}
