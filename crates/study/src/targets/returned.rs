//! Handles a bundle that a target returned, and a run without one.

use super::remote::RemoteRun;
use punctual_bundle::{Bundle, BundleWriter, Outcome, RanOn, RunEnding, amend};
use punctual_core::{Finding, Severity};
use punctual_session::exit::{Exit, Failure};
use std::path::Path;

/// The bundle is at `directory`: says where its run took place, adds findings, and renews its
/// summary. `trouble` is what kept the run there from its end, where something did, and what to do
/// about it, where that is known; then the exit code is 1 whatever the bundle says.
pub fn close_bundle(
    directory: &Path,
    mut target: RanOn,
    mut findings: Vec<Finding>,
    trouble: Option<RunFailure>,
) -> Result<Exit, Failure> {
    target.failed = trouble.as_ref().map(|trouble| trouble.why.clone());
    findings.extend(trouble.as_ref().map(|trouble| incomplete_finding(&target, trouble)));
    let failed = trouble.map(|trouble| Outcome::Failed { why: trouble.why });
    let ending = failed.map(|outcome| RunEnding {
        at: jiff::Timestamp::now(),
        outcome,
        exit_code: Exit::Failed as u8,
    });
    let bundle =
        amend::amend_bundle(directory, target, &findings, ending).map_err(Failure::failed)?;
    let mut summary = punctual_stats::summarize_bundle(&bundle);
    // The kernel of the target is known only here: a requirement met there may be invalid.
    let exit = summary.verdict.to_exit();
    summary.ending.iter_mut().for_each(|ending| ending.exit_code = exit as u8);
    amend::renew_summary(directory, &summary).map_err(Failure::failed)?;
    Ok(exit)
}

/// No bundle was returned: writes one at the run's output with the experiment, the plan, and the
/// reason. The exit code is 1.
pub(crate) fn without_bundle(
    remote: &RemoteRun,
    plan: Option<&str>,
    mut target: RanOn,
    mut findings: Vec<Finding>,
    trouble: RunFailure,
) -> Result<Exit, Failure> {
    target.failed = Some(trouble.why.clone());
    findings.push(incomplete_finding(&target, &trouble));
    let mut writer = BundleWriter::create(&remote.output, &remote.experiment_name(), "run")
        .map_err(Failure::refused)?;
    writer.set_target(target).map_err(Failure::failed)?;
    writer
        .write_experiment(remote.loaded.kept_as(), &remote.asked.bytes)
        .map_err(Failure::failed)?;
    if let Some(plan) = plan {
        writer.write_plan(plan).map_err(Failure::failed)?;
    }
    writer.write_findings(&findings).map_err(Failure::failed)?;
    let outcome = Outcome::Failed { why: trouble.why };
    let ending = RunEnding { at: jiff::Timestamp::now(), outcome, exit_code: Exit::Failed as u8 };
    let mut bundle = Bundle::open(&remote.output).map_err(Failure::failed)?;
    bundle.manifest.ending = Some(ending.clone());
    writer.finish(&punctual_stats::summarize_bundle(&bundle), ending).map_err(Failure::failed)?;
    Ok(Exit::Failed)
}

/// The reason why a run did not reach its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunFailure {
    pub why: String,
    /// The remedy, where the evidence shows one.
    pub remedy: Option<String>,
}

fn incomplete_finding(target: &RanOn, trouble: &RunFailure) -> Finding {
    let message = format!("the run on {} did not complete: {}", target.name, trouble.why);
    let evidence_place = match target.kind.as_str() {
        "vm" => "console.log in the bundle",
        _ => "the log of the system that ran it (journalctl -b -1 after a restart)",
    };
    let found = Finding::new("target-failed", Severity::Bad, "system", message)
        .with_evidence(evidence_place);
    let general = || format!("see {evidence_place} for its last messages");
    found.with_remedy(trouble.remedy.clone().unwrap_or_else(general))
}

/// Converts the exit code of the command there.
pub fn exit_of(code: u8) -> Exit {
    let known_codes = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence];
    known_codes.into_iter().find(|exit| *exit as u8 == code).unwrap_or(Exit::Failed)
}
