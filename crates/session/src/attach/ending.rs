//! The end: figures, what was inferred, the bundle's last files, the exit code.

use super::attachment::Attachment;
use crate::command::{Command, Ended};
use crate::cycles::Cycles;
use crate::cycles::thread::Thread;
use crate::exit::{Exit, Failure};
use crate::run;
use punctual_analyze::PhaseView;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{Ending, Outcome, PhaseMeta};
use punctual_host::environment::Environment;
use punctual_host::files::Root;

/// The result.
pub struct Finished {
    /// The figures.
    pub summary: Summary,
    /// What each thread's cycles are, in lines.
    pub described: Vec<String>,
    /// What measuring took of the CPUs, in words.
    pub cost: Option<String>,
    /// How the command ends.
    pub exit: Exit,
    /// Why there are no figures, where no thread has cycles.
    pub none: Option<String>,
    /// How the command that was measured ended.
    pub command: Option<Ended>,
    /// Whether something was required.
    pub required: bool,
    /// What could not be written at the very end.
    pub trouble: Option<Failure>,
    phase: PhaseMeta,
    cycles: Cycles,
}

impl Finished {
    /// What the figures are of, as the analysis takes it.
    pub fn view(&self) -> PhaseView<'_> {
        view(&self.phase, &self.cycles)
    }
}

fn view<'a>(phase: &'a PhaseMeta, cycles: &'a Cycles) -> PhaseView<'a> {
    PhaseView { meta: phase, series: cycles.views().collect() }
}

/// Computes the figures and ends the bundle.
pub fn end(mut attachment: Attachment, outcome: Outcome) -> Finished {
    let ran = attachment.phase.duration.filter(|_| attachment.command.is_some());
    let none = attachment.cycles.nothing_found(ran);
    let command = attachment.command.take().and_then(Command::ended);
    if let Ok(Some(mut environment)) = attachment.writer.document::<Environment>("environment") {
        environment.close(&Root::system());
        let _ = attachment.writer.write_document("environment", &environment);
    }
    let Attachment { writer, phase, cycles, findings, .. } = attachment;
    let cost = cycles.cost();
    let mut manifest = writer.manifest().clone();
    let required = !cycles.options().requirements.is_empty();
    let outcome = none.as_ref().map_or(outcome, |why| Outcome::Failed { why: why.clone() });
    let mut ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    manifest.ending = Some(ending.clone());
    let views = [view(&phase, &cycles)];
    let mut summary = punctual_analyze::summarize_run(&manifest, &views, &findings, &[], None);
    let exit = exit_of(&ending.outcome, &summary, required, none.is_some());
    ending.exit_code = exit as u8;
    summary.ending = Some(ending.clone());
    let trouble = writer.finish(&summary, ending).err().map(Failure::failed);
    let described = cycles.threads().filter_map(Thread::describe);
    let described =
        described.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    Finished { summary, described, cost, exit, none, command, required, trouble, phase, cycles }
}

/// How the command ends. `none`: there are no cycles.
pub fn exit_of(outcome: &Outcome, summary: &Summary, required: bool, none: bool) -> Exit {
    match run::exit_of(outcome, summary) {
        _ if none && required => Exit::NoEvidence,
        _ if none => Exit::Failed,
        Exit::NotMet if !required || summary.verdict != Some(VerdictWord::NotMet) => Exit::Done,
        Exit::NoEvidence if !required => Exit::Done,
        exit => exit,
    }
}
