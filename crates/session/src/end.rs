//! The end of a bundle: figures, verdict, exit code, and its last files. Runs, attachments and
//! recordings end here.

use crate::continuing::Continuation;
use crate::exit::{Exit, Failure};
use punctual_bundle::summary::Summary;
use punctual_bundle::{BundleError, BundleWriter, Outcome, PlannedRequests, RunEnding, Verdict};
use punctual_core::Finding;
use punctual_core::event::Recorded;
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use punctual_stats::{PhaseView, RunView};
use std::path::Path;

pub struct MeasuredRun<'a> {
    pub phases: &'a [PhaseView<'a>],
    pub found: &'a [Finding],
    pub recorded: Option<&'a Recorded>,
    /// The errors that prevented writes.
    pub unwritten: Vec<String>,
}

/// Earlier runs that a finished bundle is compared with.
pub trait EarlierRuns {
    /// Compares the bundle with them, keeps it for later ones, and stores the verdict in it.
    fn compare_bundle(&self, bundle: &Path) -> Result<Summary, Failure>;
}

/// Other inputs to the closing of a bundle.
#[derive(Default)]
pub struct Further {
    /// The bundle is a part of the continued one.
    pub continuation: Option<Continuation>,
    pub baseline: Option<Box<dyn EarlierRuns>>,
}

pub(crate) struct RunEnd {
    /// The figures with the final verdict, unless there was trouble.
    pub summary: Summary,
    pub exit: Exit,
    /// The error of a read or write at the very end.
    pub trouble: Option<Failure>,
}

/// Computes the figures and the verdict, and closes the bundle with them. If it continues another
/// or is compared with earlier runs, they are the resulting ones; `conclude` gets that verdict, or
/// none if unknown, and writes last.
pub(crate) fn end_bundle(
    mut writer: BundleWriter,
    outcome: Outcome,
    measured: MeasuredRun<'_>,
    further: &Further,
    conclude: impl FnOnce(&Verdict) -> Result<(), Failure>,
) -> RunEnd {
    let (summary, exit) = judge_run(&mut writer, outcome, measured);
    let mut directory = writer.directory().to_owned();
    let trouble = close_bundle(writer, &summary);
    let mut ended = RunEnd { summary, exit, trouble };
    if let Some(continuation) = &further.continuation {
        ended.adopt_summary(continuation.summarize_parts());
        directory.clone_from(&continuation.bundle);
    }
    if let Some(baseline) = further.baseline.as_deref().filter(|_| ended.trouble.is_none()) {
        ended.adopt_summary(baseline.compare_bundle(&directory));
    }
    if ended.trouble.is_none() {
        ended.trouble = conclude(&ended.summary.verdict).err();
    }
    ended
}

impl RunEnd {
    fn adopt_summary(&mut self, with: Result<Summary, Failure>) {
        match with {
            Ok(summary) => (self.exit, self.summary) = (summary.verdict.to_exit(), summary),
            Err(why) => {
                self.trouble.get_or_insert(why);
            }
        }
    }
}

/// The figures and the verdict, before the bundle is closed.
pub fn judge_run(
    writer: &mut BundleWriter,
    outcome: Outcome,
    mut measured: MeasuredRun<'_>,
) -> (Summary, Exit) {
    measured.unwritten.extend(close_environment(writer).err().map(|why| why.to_string()));
    let outcome = match (outcome, measured.unwritten.first()) {
        (Outcome::Completed, Some(why)) => Outcome::Failed { why: why.clone() },
        (outcome, _) => outcome,
    };
    writer.add_unwritten(measured.unwritten);
    let mut ending = RunEnding { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    writer.set_ending(ending.clone());
    let mut damage = Vec::new();
    let planned = writer.planned_requests().unwrap_or_else(|why| {
        damage.push(why.to_string());
        PlannedRequests::default()
    });
    let mut summary = punctual_stats::summarize_run(&RunView {
        manifest: writer.manifest(),
        planned: &planned,
        phases: measured.phases,
        found: measured.found,
        damage: &damage,
        recorded: measured.recorded,
    });
    let exit = summary.verdict.to_exit();
    ending.exit_code = summary.verdict.exit_code(writer.manifest().command);
    summary.ending = Some(ending);
    (summary, exit)
}

/// Writes the last files; returns the error, if any.
pub fn close_bundle(writer: BundleWriter, summary: &Summary) -> Option<Failure> {
    let ending = summary.ending.clone()?;
    writer.finish(summary, ending).err().map(Failure::failed)
}

/// Adds the kernel's final counters to the environment, if there is one.
fn close_environment(writer: &BundleWriter) -> Result<(), BundleError> {
    // Read back rather than kept: memory that a run holds is locked.
    let Ok(Some(mut environment)) = writer.read_document::<Environment>("environment") else {
        return Ok(());
    };
    environment.record_end(&Root::from_system());
    writer.write_document("environment", &environment)
}
