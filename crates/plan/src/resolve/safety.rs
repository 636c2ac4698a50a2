//! Settings that could make the system unusable need `force`.

use super::{Resolver, place_or, value_or};
use crate::experiment::{LoadSpec, MeasureSpec};
use crate::plan::{LoadPlan, MeasurePlan};
use crate::problem::{Problem, ProblemKind};
use crate::text::Span;
use punctual_core::CpuSet;

/// Places shown besides the first; there could be many.
const PLACES_SHOWN: usize = 8;

impl Resolver<'_> {
    /// Rejects real-time tasks that may never sleep on every CPU at the same time: they leave no
    /// time for other tasks, including the shell that should end them.
    pub(super) fn check_safety(
        &mut self,
        phase: &str,
        measures: &[(&MeasureSpec, &MeasurePlan)],
        loads: &[(&LoadSpec, &LoadPlan)],
    ) {
        let loads = loads.iter().filter(|(_, load)| load.scheduling.policy().is_real_time());
        let loads =
            loads.map(|(spec, load)| (place_or(&spec.policy, spec.span), load.cpus.clone()));
        let spinners = measures.iter().map(|(spec, measure)| (spec.span, spun_on(measure)));
        let busy: Vec<(Span, CpuSet)> =
            spinners.chain(loads).filter(|(_, cpus)| !cpus.is_empty()).collect();
        let busy_cpus = busy.iter().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
        let Some((first, _)) = busy.first().filter(|_| self.context.online.is_subset(&busy_cpus))
        else {
            return;
        };
        let message = format!(
            "in the phase `{phase}` real-time tasks could keep every CPU busy and lock the system \
             up"
        );
        let mut problem = Problem::error(ProblemKind::NeedsForce, Some(*first), message);
        for (also, _) in busy.iter().skip(1).take(PLACES_SHOWN) {
            problem = problem.with_related(*also, "and this");
        }
        self.note_dangerous(
            problem.with_help("leave a CPU out of their `cpus`, or run with `--force`"),
        );
    }

    /// Notes settings that need force: with force it is a warning.
    pub(super) fn note_dangerous(&mut self, problem: Problem) {
        let forced = self.context.force || value_or(&self.experiment.settings.force, false);
        self.note_problem(if forced {
            problem.into_warning().with_help("allowed because of --force or `force = true`")
        } else {
            problem
        });
    }
}

/// The CPUs that the threads of a measure could monopolise.
fn spun_on(measure: &MeasurePlan) -> CpuSet {
    let real_time = measure.threads.iter().any(|thread| thread.scheduling.policy().is_real_time());
    let spinning =
        real_time && measure.workload.is_spinning() && measure.threads.len() >= measure.cpus.len();
    if spinning { measure.cpus.clone() } else { CpuSet::new() }
}
