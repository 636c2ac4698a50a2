//! The plan for an attached program: one phase with one measure, of the kind `program`.

use super::attached_plan;
use crate::cycles::target::CycleTarget;
use crate::exit::Failure;
use crate::messages::Listener;
use crate::request::Loaded;
use punctual_core::cycle::CycleKind;
use punctual_core::{CpuSet, Nanos, SeriesRequirement};
use punctual_plan::kinds::ProgramPlan;
use punctual_plan::{Length, Plan, Workload};

/// A placeholder process: [`crate::run::AttachedTo`] has the real one.
const MEASURE: &str = "kind = \"program\"\npid = 1\n";

/// The options of its cycles.
#[derive(Default)]
pub struct CyclesAsked {
    /// The release of its cycles; by default inferred for each thread.
    pub kind: Option<CycleKind>,
    /// Response times above this are counted.
    pub deadline: Option<Nanos>,
    /// The maximum duration.
    pub duration: Option<Nanos>,
    pub requirements: Vec<SeriesRequirement>,
}

/// The plan, and its experiment.
pub fn plan_program(
    target: &CycleTarget,
    asked: CyclesAsked,
    messages: Listener,
) -> Result<(Loaded, Plan), Failure> {
    let (loaded, mut plan) = attached_plan(target.bundle_name(), MEASURE, messages)?;
    plan.controller_cpus = CpuSet::new();
    for measure in plan.phases.iter_mut().flat_map(|phase| &mut phase.measures) {
        measure.cpus = CpuSet::new();
        measure.workload =
            Workload::Program(ProgramPlan { cycle: asked.kind, ..ProgramPlan::default() });
        measure.deadline = asked.deadline;
        measure.length = asked.duration.map_or(Length::UntilInterrupted, Length::Duration);
        measure.require.clone_from(&asked.requirements);
    }
    Ok((loaded, plan))
}

#[cfg(test)]
mod tests {
    use super::super::PHASE;
    use super::*;
    use crate::continuing::Continuation;
    use crate::messages::Silent;
    use crate::options::RunOptions;
    use punctual_bundle::{BundleWriter, PhaseMeta};

    /// A run would lock memory, restrict the idle states of CPUs, and announce its CPUs to others.
    #[test]
    fn attaching_changes_no_machine_settings() {
        let asked = CyclesAsked {
            kind: Some(CycleKind::Timerfd),
            deadline: Some(Nanos::MILLI),
            duration: Some(Nanos::SECOND),
            requirements: vec!["wakeup max < 1ms".parse().expect("a requirement")],
        };
        let target = CycleTarget::Processes(vec![std::process::id()]);
        let (_, plan) = plan_program(&target, asked, &Silent).expect("a plan");
        assert!(!plan.memory_lock && plan.dma_latency.0.is_none() && plan.partition.is_none());
        assert!(plan.controller_cpus.is_empty() && plan.estimated_time() == Some(Nanos::SECOND));
        let options = RunOptions {
            explain: true,
            stop_above: Some(Nanos::MICRO),
            trace: vec!["sched".to_owned()],
            forever: true,
            ..RunOptions::default()
        };
        let plan = options.apply_to(plan, &CpuSet::from_cpu(0)).expect("a plan");
        assert!(plan.explain.is_some() && plan.record.is_some() && plan.forever);
        let [phase] = &plan.phases[..] else { panic!("{:?}", plan.phases) };
        let [measure] = &phase.measures[..] else { panic!("{:?}", phase.measures) };
        assert!(phase.name == PHASE && measure.cpus.is_empty());
        assert_eq!(measure.stop_above, Some(Nanos::MICRO));
        assert_eq!((measure.deadline, measure.require.len()), (Some(Nanos::MILLI), 1));
    }

    #[test]
    fn a_bundle_is_continued_only_by_the_same_plan_and_program() {
        let target = CycleTarget::Processes(vec![std::process::id()]);
        let asked = CyclesAsked::default();
        let (loaded, plan) = plan_program(&target, asked, &Silent).expect("a plan");
        let place = tempfile::tempdir().expect("a directory");
        let bundle = place.path().join("bundle");
        let writer = BundleWriter::create(&bundle, &plan.name, "attach").expect("a bundle");
        writer.write_plan(&plan.to_toml()).expect("written");
        let phase = PhaseMeta::new(PHASE, jiff::Timestamp::UNIX_EPOCH);
        writer.write_phase(0, &phase).expect("written");
        let continued = |change: fn(&mut Plan), loaded: Option<&Loaded>| {
            let mut plan = plan.clone();
            change(&mut plan);
            let continued = Continuation::prepare_plan(&bundle, &mut plan, loaded);
            continued.map(|of| of.is_some()).map_err(|why| why.render(false))
        };
        let refused = |change, loaded, why| {
            let refused = continued(change, loaded).expect_err("it is another");
            assert!(refused.contains(why), "{refused}");
        };
        refused(|_| (), None, "its run has not ended");
        drop(writer);
        assert_eq!(continued(|_| (), None), Ok(true));
        refused(|plan| plan.name.push('x'), None, "it is of another program");
        let other = |plan: &mut Plan| plan.phases[0].measures[0].stop_above = Some(Nanos::MILLI);
        refused(other, None, "its plan was another");
        refused(|_| (), Some(&loaded), "only bundles of `punctual run`");
    }
}
