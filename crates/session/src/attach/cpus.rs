//! The plan for the disturbances of CPUs: one phase with one measure, of the kind `entries`.

use super::attached_plan;
use crate::exit::Failure;
use crate::messages::Listener;
use crate::options::RunOptions;
use crate::request::Loaded;
use punctual_core::{CpuSet, Nanos, SeriesRequirement, cpu_label};
use punctual_plan::kinds::EntriesPlan;
use punctual_plan::{Length, Plan};
use punctual_sys::attributes;

/// The request for CPUs.
pub struct EntriesAsked {
    pub cpus: CpuSet,
    /// The maximum duration.
    pub duration: Option<Nanos>,
    pub requirements: Vec<SeriesRequirement>,
}

/// The plan for a system with these CPUs, and its experiment.
pub fn entries_plan(
    asked: EntriesAsked,
    online: &CpuSet,
    messages: Listener,
) -> Result<(Loaded, Plan), Failure> {
    let EntriesAsked { cpus, duration, requirements } = asked;
    check_cpus(&cpus, online, &requirements)?;
    let measure = format!("kind = \"entries\"\ncpus = \"{cpus}\"\n");
    let (loaded, mut plan) = attached_plan(format!("CPU {cpus}"), &measure, messages)?;
    plan.controller_cpus = controller_cpus(&cpus, online);
    for measure in plan.phases.iter_mut().flat_map(|phase| &mut phase.measures) {
        measure.length = duration.map_or(Length::UntilInterrupted, Length::Duration);
        measure.require.clone_from(&requirements);
        for thread in &mut measure.threads {
            thread.name = thread.cpus.first_cpu().map(cpu_label).unwrap_or_default();
        }
    }
    Ok((loaded, plan))
}

/// Refuses options of a run that make no sense for CPUs.
pub fn refuse_for_cpus(options: &RunOptions) -> Result<(), Failure> {
    let refused = match options {
        RunOptions { explain: true, .. } => {
            "--explain keeps the events around the worst samples of threads, and --cpus shows who \
             caused each entry without them; --trace sched records all of them"
        }
        RunOptions { calibrate: Some(true), .. } => {
            "--calibrate measures what recording costs a thread that waits for a timer, and --cpus \
             measures no thread; what its programs cost is shown at the end"
        }
        _ => return Ok(()),
    };
    Err(Failure::refused(refused))
}

fn check_cpus(
    chosen: &CpuSet,
    online: &CpuSet,
    requirements: &[SeriesRequirement],
) -> Result<(), Failure> {
    let missing = chosen.difference(online);
    if chosen.is_empty() || !missing.is_empty() {
        let message = format!("--cpus {chosen}: CPU {missing} is not online (CPUs {online} are)");
        return Err(Failure::refused(message));
    }
    let wrong =
        |of: &SeriesRequirement| Some((of.clone(), EntriesPlan::reason_to_refuse(of, chosen)?));
    match requirements.iter().find_map(wrong) {
        None => Ok(()),
        Some((of, why)) => Err(Failure::refused(format!("--require '{of}': {why}"))),
    }
}

/// The CPUs for punctual itself: not the measured ones, if there are others.
fn controller_cpus(chosen: &CpuSet, online: &CpuSet) -> CpuSet {
    let allowed = attributes::read_affinity(0).unwrap_or_else(|_| online.clone());
    match allowed.difference(chosen) {
        none if none.is_empty() => online.difference(chosen),
        others => others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Silent;
    use crate::request::online_cpus;

    fn asked(requirement: &str) -> EntriesAsked {
        let cpus =
            online_cpus().expect("CPUs").first_cpu().map(CpuSet::from_cpu).unwrap_or_default();
        let requirements = vec![requirement.parse().expect("a requirement")];
        EntriesAsked { cpus, duration: Some(Nanos::SECOND), requirements }
    }

    #[test]
    fn a_measured_cpu_has_a_named_series_and_accepts_run_options() {
        let (asked, online) = (asked("entries < 10"), online_cpus().expect("CPUs"));
        let cpu = asked.cpus.first_cpu().expect("a CPU");
        let (_, plan) = entries_plan(asked, &online, &Silent).expect("a plan");
        assert_eq!(plan.name, format!("CPU {cpu}"));
        assert!(!plan.memory_lock && plan.dma_latency.0.is_none() && plan.partition.is_none());
        assert!(!plan.controller_cpus.contains(cpu));
        let options = RunOptions {
            stop_above: Some(Nanos::MICRO),
            on_violation: Some("true".to_owned()),
            trace: vec!["sched".to_owned()],
            forever: true,
            ..RunOptions::default()
        };
        refuse_for_cpus(&options).expect("they make sense");
        let plan = options.apply_to(plan, &online).expect("a plan");
        assert!(plan.record.is_some() && plan.forever && plan.on_violation.is_some());
        let [measure] = &plan.phases[0].measures[..] else { panic!("{:?}", plan.phases) };
        assert_eq!(
            (measure.stop_above, measure.length),
            (Some(Nanos::MICRO), Length::UntilInterrupted)
        );
        let names: Vec<_> = measure.threads.iter().map(|thread| thread.name.clone()).collect();
        assert_eq!((names, measure.require.len()), (vec![format!("cpu{cpu}")], 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        let online = online_cpus().expect("CPUs");
        let refused = |asked: EntriesAsked| match entries_plan(asked, &online, &Silent) {
            Ok(_) => panic!("it is a plan"),
            Err(why) => why.render(false),
        };
        for (requirement, why) in [
            ("cpu4000/entries == 0", "CPU 4000, which is not measured"),
            ("overruns == 0", "no `overruns`"),
            ("servo/entry max < 1ms", "`servo` is not a CPU"),
            ("wakeup max < 1ms", "no series `wakeup`"),
        ] {
            let said = refused(asked(requirement));
            assert!(said.contains(why) && said.contains("--require"), "{said}");
        }
        let nowhere = EntriesAsked { cpus: CpuSet::from_cpu(4_000), ..asked("max < 1s") };
        assert!(refused(nowhere).contains("not online"));
        let options = |change: fn(&mut RunOptions)| {
            let mut options = RunOptions::default();
            change(&mut options);
            refuse_for_cpus(&options).map_err(|why| why.render(false))
        };
        let explained = options(|of| of.explain = true).expect_err("nothing to explain");
        assert!(explained.contains("--trace sched"), "{explained}");
        assert!(options(|of| of.calibrate = Some(true)).is_err());
        assert!(options(|of| of.calibrate = Some(false)).is_ok());
    }
}
