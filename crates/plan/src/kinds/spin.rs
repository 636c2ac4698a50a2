//! `spin`: gaps in a loop that only reads the clock.

use crate::form::{duration_form, flag_form};
use crate::kind::{DefaultCpus, HistogramPlan, Kind, KindFacts, ParameterProblems, parameters};
use crate::words::Placement;
use punctual_core::Nanos;

parameters! {
    /// A busy loop on each CPU; a gap is a distance of two readings above `threshold`.
    SpinPlan, SpinSpec {
        /// The shortest time between two readings that counts as a gap.
        threshold: Nanos = Nanos::MICRO, duration_form(Nanos(100), Nanos::SECOND);
        /// Whether each gap is attributed by the kernel's counters.
        attribute: bool = true, flag_form();
    }
}

impl SpinPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        validated_by: "/proc/interrupts and getrusage(2)",
        ..KindFacts::new("spin", "gaps in a loop that only reads the clock")
    };
}

impl Kind for SpinPlan {
    fn default_placement(&self) -> Placement {
        Placement::PerCpu
    }
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::AllButFirst
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_millis(10), resolution: Nanos(100) }
    }
    fn is_spinning(&self) -> bool {
        true
    }
}

impl SpinSpec {
    pub(crate) fn check_conflicts(&self, _: &SpinPlan, _: &mut ParameterProblems) {}
}
