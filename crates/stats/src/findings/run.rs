//! Findings about a run and its phases.

use crate::validity::when_stopped;
use punctual_bundle::evidence::ControllerEvidence;
use punctual_bundle::meta::LoadMeta;
use punctual_bundle::{Manifest, Outcome, PhaseMeta, RunEnding};
use punctual_core::{Finding, Nanos, Severity, Validation};

/// The subject of findings about the run itself.
const RUN: &str = "run";
/// The share of steal time from which figures may mislead: a thousandth is one tick per second at
/// HZ=1000.
const STEAL: f64 = 0.001;
/// A phase of this name should have no load.
const IDLE: &str = "idle";
/// The share of busy time from which it had one: far more than periodic threads of a measurement
/// take, or the system's own housekeeping.
const BUSY: f64 = 0.25;

/// Findings about the ending and the state of the bundle.
pub fn of_run(manifest: &Manifest, damage: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &manifest.ending {
        None => findings.push(cut_off()),
        Some(ending) => findings.extend(report_early_end(ending)),
    }
    findings.extend(damage.iter().map(|what| {
        Finding::new(
            "bundle-damaged",
            Severity::Bad,
            RUN,
            "a part of the bundle is missing or could not be read, and is ignored",
        )
        .with_evidence(what.clone())
        .with_remedy("use another copy of the bundle, or measure again")
    }));
    findings
}

fn cut_off() -> Finding {
    Finding::new(
        "cut-off",
        Severity::Warning,
        RUN,
        "the run has no recorded end: it was killed, the machine failed, or it is still running",
    )
    .with_evidence("bundle.json has no \"ending\"")
    .with_remedy("the figures are those of the last checkpoint; measure again for a verdict")
}

fn report_early_end(ending: &RunEnding) -> Option<Finding> {
    if ending.outcome == Outcome::Completed {
        return None;
    }
    let severity = if matches!(ending.outcome, Outcome::Failed { .. }) {
        Severity::Bad
    } else {
        Severity::Note
    };
    let finding =
        Finding::new("ended-early", severity, RUN, "the run ended before its planned end");
    Some(
        finding
            .with_evidence(ending.outcome.to_string())
            .with_remedy("let a run reach its end before comparing it with others"),
    )
}

/// Findings about the circumstances of a phase. `is_periodic`: all its threads work once per
/// period.
pub fn of_phase(phase: &PhaseMeta, is_periodic: bool) -> Vec<Finding> {
    let steal = phase.cpu_load.known_value().filter(|load| load.all.steal >= STEAL).map(|load| {
        Finding::new(
            "steal",
            Severity::Warning,
            &phase.name,
            "the hypervisor took CPU time from this machine",
        )
        .with_evidence(format!(
            "{:.2} % of the CPU time of the phase was steal time (/proc/stat)",
            load.all.steal * 100.0
        ))
        .with_remedy(
            "measure on real hardware, or on a host whose CPUs are not shared; latencies here \
             include the host's",
        )
    });
    let stopped = phase.evidence.known_value().into_iter().flat_map(|evidence| &evidence.loads);
    let stopped = stopped.filter_map(|load| {
        let subject = format!("{}/{}", phase.name, load.name);
        let message = "the load did not load the system all the time";
        let finding = Finding::new("load-stopped", Severity::Warning, subject, message);
        Some(finding.with_evidence(when_stopped(load)?).with_remedy(
            "find who stops it (SIGSTOP, a debugger, a terminal in the background), and run again",
        ))
    });
    let controller = phase.controller.known_value().filter(|own| own.longest >= Nanos::SECOND);
    let controller = controller.map(|own| controller_delayed(&phase.name, own));
    let loads = phase.loads.iter().filter_map(|load| failed_load(&phase.name, load));
    let claims = phase.measures.iter().flat_map(|measure| {
        measure
            .notes
            .validations
            .iter()
            .filter_map(|one| report_difference(&phase.name, &measure.name, one))
    });
    let run_findings = steal.into_iter().chain(not_idle(phase, is_periodic)).chain(controller);
    run_findings.chain(stopped).chain(loads).chain(claims).collect()
}

/// The finding for a controller thread that ran late, with the measured reason for most of it.
fn controller_delayed(phase: &str, own: &ControllerEvidence) -> Finding {
    let is_most = |span: Nanos| span.ns() * 2 >= own.delayed.ns();
    let (reason, remedy) = match own.waited {
        Some(waited) if is_most(waited) => (
            "other tasks had its CPUs",
            "let no task of others run at a higher priority on all CPUs, or set the controller's \
             CPUs apart",
        ),
        _ if is_most(own.blocked) => (
            "its own system calls were blocked",
            "see the kernel's log for what was slow; samples that were lost are in the losses",
        ),
        _ => (
            "the reason is not known",
            "see that neither punctual was stopped nor the machine suspended; samples that were \
             lost are in the losses",
        ),
    };
    let message = format!("punctual itself did not run when it was to: {reason}");
    let place = own.place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
    let waited = own.waited.map_or("unknown".to_owned(), Nanos::to_readable);
    Finding::new("controller-delayed", Severity::Warning, phase, message)
        .with_evidence(format!(
            "{} in all, {} at once{place}; ready and without a CPU: {waited}; blocked in system \
             calls: {}",
            own.delayed.to_readable(),
            own.longest.to_readable(),
            own.blocked.to_readable()
        ))
        .with_remedy(remedy)
}

/// A phase called idle that was not: without a load of its own, and with threads that work once per
/// period, others kept the CPUs busy.
fn not_idle(phase: &PhaseMeta, is_periodic: bool) -> Option<Finding> {
    if phase.name != IDLE || !phase.loads.is_empty() || !is_periodic {
        return None;
    }
    let load = phase.cpu_load.known_value().filter(|load| load.all.busy >= BUSY)?;
    let message = "the phase is called idle, and something else kept the CPUs busy";
    Some(
        Finding::new("not-idle", Severity::Warning, IDLE, message)
            .with_evidence(format!("CPUs {:.0} % busy (/proc/stat)", load.all.busy * 100.0))
            .with_remedy("end what else runs (top shows it), and measure again"),
    )
}

/// A series that the system does not support.
pub(crate) fn of_absent(phase: &str, series: &str, why: &str) -> Finding {
    let message = "this cannot be measured on this system";
    Finding::new("series-absent", Severity::Note, format!("{phase}/{series}"), message)
        .with_evidence(why)
}

fn report_difference(phase: &str, measure: &str, one: &Validation) -> Option<Finding> {
    let counted = one.counted.known_value().filter(|_| one.agrees == Some(false))?;
    let message =
        format!("the workload reports other {} than an independent source counted", one.what);
    let evidence = format!("reported {}, counted {counted} by {}", one.claimed, one.source);
    let finding = Finding::new(
        "validation-differs",
        Severity::Warning,
        format!("{phase}/{measure}"),
        message,
    );
    Some(
        finding.with_evidence(evidence).with_remedy(
            one.explanation
                .clone()
                .unwrap_or("do not use its figures until the difference is explained".to_owned()),
        ),
    )
}

fn failed_load(phase: &str, load: &LoadMeta) -> Option<Finding> {
    (load.failures > 0).then(|| {
        let message = format!(
            "the load {} failed: the system may have been less loaded than planned",
            load.name
        );
        Finding::new("load-failed", Severity::Warning, format!("{phase}/{}", load.name), message)
            .with_evidence(format!(
                "{} of its {} starts ended with failure",
                load.failures, load.starts
            ))
            .with_remedy("run its command alone to see its output, or write its output to a file")
    })
}
