//! The end of a bundle: figures, verdict, exit code, and its last files. Runs, attachments and
//! recordings end here.

use crate::exit::{Exit, Failure};
use punctual_analyze::{PhaseView, RunView};
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, BundleWriter, Ending, Outcome, Planned};
use punctual_core::Finding;
use punctual_core::event::Recorded;

/// What was measured.
pub struct Measured<'a> {
    /// The phases that began.
    pub phases: &'a [PhaseView<'a>],
    /// What was found.
    pub found: &'a [Finding],
    /// What was recorded.
    pub recorded: Option<&'a Recorded>,
    /// What could not be written.
    pub unwritten: Vec<String>,
}

/// What became of it.
pub struct Ended {
    /// The figures, with the verdict.
    pub summary: Summary,
    /// How the command ends.
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
    measured: Measured<'_>,
) -> (Summary, Exit) {
    let outcome = match (outcome, measured.unwritten.first()) {
        (Outcome::Completed, Some(why)) => Outcome::Failed { why: why.clone() },
        (outcome, _) => outcome,
    };
    writer.add_unwritten(measured.unwritten);
    let mut ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    writer.set_ending(ending.clone());
    let mut damage = Vec::new();
    let planned = planned(writer).unwrap_or_else(|why| {
        damage.push(why);
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

/// What the plan in the bundle asks for, as whoever opens it later reads it.
fn planned(writer: &BundleWriter) -> Result<Planned, String> {
    let bundle = Bundle::open(writer.directory()).map_err(|why| why.to_string())?;
    bundle.planned().map_err(|why| why.to_string())
}
