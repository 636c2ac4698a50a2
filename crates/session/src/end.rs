//! The end of a bundle: figures, verdict, exit code, and its last files. Runs, attachments and
//! recordings end here.

use crate::exit::{Exit, Failure};
use punctual_analyze::{PhaseView, RunView};
use punctual_bundle::summary::Summary;
use punctual_bundle::{BundleError, BundleWriter, Ending, Outcome, Planned};
use punctual_core::Finding;
use punctual_core::event::Recorded;
use punctual_host::environment::Environment;
use punctual_host::files::Root;

pub struct Measured<'a> {
    pub phases: &'a [PhaseView<'a>],
    pub found: &'a [Finding],
    pub recorded: Option<&'a Recorded>,
    /// What could not be written.
    pub unwritten: Vec<String>,
}

pub struct Ended {
    /// The figures, with the verdict.
    pub summary: Summary,
    pub exit: Exit,
    /// What could not be written at the very end.
    pub trouble: Option<Failure>,
}

/// Computes the figures and the verdict, and closes the bundle with them.
pub fn end(mut writer: BundleWriter, outcome: Outcome, measured: Measured<'_>) -> Ended {
    let (summary, exit) = judge(&mut writer, outcome, measured);
    let trouble = close(writer, &summary);
    Ended { summary, exit, trouble }
}

/// The figures and the verdict, before the bundle is closed.
pub fn judge(
    writer: &mut BundleWriter,
    outcome: Outcome,
    mut measured: Measured<'_>,
) -> (Summary, Exit) {
    measured.unwritten.extend(close_environment(writer).err().map(|why| why.to_string()));
    let outcome = match (outcome, measured.unwritten.first()) {
        (Outcome::Completed, Some(why)) => Outcome::Failed { why: why.clone() },
        (outcome, _) => outcome,
    };
    writer.add_unwritten(measured.unwritten);
    let mut ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    writer.set_ending(ending.clone());
    let mut damage = Vec::new();
    let planned = writer.planned().unwrap_or_else(|why| {
        damage.push(why.to_string());
        Planned::default()
    });
    let mut summary = punctual_analyze::summarize_run(&RunView {
        manifest: writer.manifest(),
        planned: &planned,
        phases: measured.phases,
        found: measured.found,
        damage: &damage,
        recorded: measured.recorded,
    });
    let exit = summary.verdict.exit();
    ending.exit_code = exit as u8;
    summary.ending = Some(ending);
    (summary, exit)
}

/// Writes the last files; why that is not possible.
pub fn close(writer: BundleWriter, summary: &Summary) -> Option<Failure> {
    let ending = summary.ending.clone()?;
    writer.finish(summary, ending).err().map(Failure::failed)
}

/// Adds to the environment what the kernel counted by now, where there is one.
fn close_environment(writer: &BundleWriter) -> Result<(), BundleError> {
    // Read back rather than kept: memory that a run holds is locked.
    let Ok(Some(mut environment)) = writer.document::<Environment>("environment") else {
        return Ok(());
    };
    environment.close(&Root::system());
    writer.write_document("environment", &environment)
}
