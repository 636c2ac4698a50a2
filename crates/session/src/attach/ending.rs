//! The end: figures, what was inferred, the bundle's last files, the exit code.

use super::attachment::Attachment;
use super::metrics;
use crate::command::Command;
use crate::cycles::Cycles;
use crate::cycles::thread::Thread;
use crate::end::{self, Ended, Further, Measured};
use crate::exit::Failure;
use punctual_analyze::PhaseView;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Outcome, PhaseMeta, Verdict};

pub struct Finished {
    pub summary: Summary,
    /// What each thread's cycles are, in lines.
    pub described: Vec<String>,
    /// What measuring took of the CPUs, in words.
    pub cost: Option<String>,
    /// The exit code: a verdict's, or that of the command that was measured.
    pub code: u8,
    /// Why there are no figures, where no thread has cycles.
    pub none: Option<String>,
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
    let file = attachment.options.metrics.take();
    let baseline = attachment.options.baseline.take();
    let Attachment { mut writer, phase, cycles, findings, recorded, mut unwritten, .. } =
        attachment;
    let program = writer.manifest().experiment.clone();
    let cost = cycles.cost();
    writer.set_command(command);
    unwritten.extend(cycles.unwritten());
    // Where something is required, that nothing was measured for it decides.
    let outcome = match none.clone().filter(|_| phase.without_series.is_empty()) {
        Some(why) => Outcome::Failed { why },
        None => outcome,
    };
    let views = [view(&phase, &cycles)];
    let recorded = recorded.as_ref();
    let measured = Measured { phases: &views, found: &findings, recorded, unwritten };
    // What has no figures is held against nothing.
    let baseline = baseline.filter(|_| none.is_none());
    let further = Further { baseline, ..Further::default() };
    let conclude = |verdict: &Verdict| {
        let text = || metrics::text(&program, &cycles, Some(verdict));
        file.map_or(Ok(()), |mut file| file.conclude(&text()))
    };
    let Ended { summary, trouble, .. } = end::end(writer, outcome, measured, &further, conclude);
    let code = summary.verdict.exit_code(command);
    let described = cycles.threads().filter_map(Thread::describe);
    let described =
        described.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    Finished { summary, described, cost, code, none, trouble, phase, cycles }
}
