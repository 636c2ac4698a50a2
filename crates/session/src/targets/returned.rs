//! What becomes of a bundle that came back from a target, and of a run from which none did.

use super::remote::RemoteRun;
use crate::exit::{Exit, Failure};
use punctual_bundle::{Bundle, BundleWriter, Ending, Outcome, RanOn, amend};
use punctual_core::{Finding, Severity};
use std::path::Path;

/// The bundle is at `directory`: says where its run took place, adds findings, and renews its
/// summary. `trouble` is what kept the run there from its end, where something did; then the exit
/// code is 1 whatever the bundle says.
pub fn close(
    directory: &Path,
    mut target: RanOn,
    mut findings: Vec<Finding>,
    trouble: Option<&str>,
) -> Result<Exit, Failure> {
    target.failed = trouble.map(str::to_owned);
    findings.extend(trouble.map(|why| incomplete(&target, why)));
    let failed = trouble.map(|why| Outcome::Failed { why: why.to_owned() });
    let ending = failed.map(|outcome| Ending {
        at: jiff::Timestamp::now(),
        outcome,
        exit_code: Exit::Failed as u8,
    });
    let bundle = amend::amend(directory, target, &findings, ending).map_err(Failure::failed)?;
    let mut summary = punctual_analyze::summarize(&bundle);
    // Which kernel ran there is known only here: what was met there may be invalid.
    let exit = summary.verdict.exit();
    summary.ending.iter_mut().for_each(|ending| ending.exit_code = exit as u8);
    amend::renew_summary(directory, &summary).map_err(Failure::failed)?;
    Ok(exit)
}

/// No bundle came back: writes one at the run's output with the experiment, the plan, and what
/// happened. The exit code is 1.
pub fn without_bundle(
    remote: &RemoteRun,
    plan: Option<&str>,
    mut target: RanOn,
    mut findings: Vec<Finding>,
    trouble: &str,
) -> Result<Exit, Failure> {
    target.failed = Some(trouble.to_owned());
    findings.push(incomplete(&target, trouble));
    let mut writer =
        BundleWriter::create(&remote.output, &remote.name(), "run").map_err(Failure::refused)?;
    writer.set_target(target).map_err(Failure::failed)?;
    writer
        .write_experiment(remote.loaded.kept_as(), &remote.asked.bytes)
        .map_err(Failure::failed)?;
    if let Some(plan) = plan {
        writer.write_plan(plan).map_err(Failure::failed)?;
    }
    writer.write_findings(&findings).map_err(Failure::failed)?;
    let outcome = Outcome::Failed { why: trouble.to_owned() };
    let ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: Exit::Failed as u8 };
    let mut bundle = Bundle::open(&remote.output).map_err(Failure::failed)?;
    bundle.manifest.ending = Some(ending.clone());
    writer.finish(&punctual_analyze::summarize(&bundle), ending).map_err(Failure::failed)?;
    Ok(Exit::Failed)
}

fn incomplete(target: &RanOn, why: &str) -> Finding {
    let message = format!("the run on {} did not complete: {why}", target.name);
    Finding::new("target-failed", Severity::Bad, "system", message)
        .evidence("console.log in the bundle, where the target has a console")
        .remedy("the bundle holds what came back of the results; fix the cause and run again")
}

/// The exit code of the command there, as this one's.
pub fn exit_of(code: u8) -> Exit {
    let known = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence];
    known.into_iter().find(|exit| *exit as u8 == code).unwrap_or(Exit::Failed)
}
