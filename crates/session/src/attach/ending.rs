//! The end: figures, what was inferred, the bundle's last files, the exit code.

use super::attachment::Attachment;
use super::findings;
use super::thread::Thread;
use crate::command::{Command, Ended};
use crate::exit::{Exit, Failure};
use crate::run;
use punctual_analyze::PhaseView;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{Ending, Outcome, PhaseMeta};
use punctual_core::{Finding, Nanos};
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use std::collections::BTreeMap;

/// The result.
pub struct Finished {
    /// The figures.
    pub summary: Summary,
    /// What each thread's cycles are, in lines.
    pub cycles: Vec<String>,
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
    threads: BTreeMap<u32, Thread>,
}

impl Finished {
    /// What the figures are of, as the analysis takes it.
    pub fn view(&self) -> PhaseView<'_> {
        view(&self.phase, &self.threads)
    }
}

fn view<'a>(phase: &'a PhaseMeta, threads: &'a BTreeMap<u32, Thread>) -> PhaseView<'a> {
    PhaseView { meta: phase, series: threads.values().flat_map(Thread::views).collect() }
}

/// Computes the figures and ends the bundle.
pub fn end(mut attachment: Attachment, outcome: Outcome) -> Finished {
    let none = attachment.threads.values().all(|thread| thread.label().is_none());
    let none = none.then(|| nothing_found(&attachment));
    let command = attachment.command.take().and_then(Command::ended);
    if let Ok(Some(mut environment)) = attachment.writer.document::<Environment>("environment") {
        environment.close(&Root::system());
        let _ = attachment.writer.write_document("environment", &environment);
    }
    let unseen = without_thread(&attachment);
    attachment.findings.extend(unseen);
    let cost = cost(&attachment);
    let Attachment { writer, phase, threads, findings, options, .. } = attachment;
    let mut manifest = writer.manifest().clone();
    let required = !options.requirements.is_empty();
    let outcome = none.as_ref().map_or(outcome, |why| Outcome::Failed { why: why.clone() });
    let mut ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    manifest.ending = Some(ending.clone());
    let views = [view(&phase, &threads)];
    let mut summary = punctual_analyze::summarize_run(&manifest, &views, &findings, &[], None);
    let exit = exit_of(&ending.outcome, &summary, required, none.is_some());
    ending.exit_code = exit as u8;
    summary.ending = Some(ending.clone());
    let trouble = writer.finish(&summary, ending).err().map(Failure::failed);
    let described = threads.values().filter_map(Thread::describe);
    let cycles =
        described.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    Finished { summary, cycles, cost, exit, none, command, required, trouble, phase, threads }
}

/// What measuring took of the CPUs.
fn cost(attachment: &Attachment) -> Option<String> {
    let cost = attachment.cost.known()?;
    let micros = |time: Nanos| time.ns() as f64 / 1_000.0;
    Some(format!(
        "cost, measured at the start: {:.2} µs of all CPUs for a cycle, in {} runs of BPF \
         programs, and {:.2} µs for each further system call",
        micros(cost.per_cycle),
        cost.runs_per_cycle,
        micros(cost.per_call)
    ))
}

/// Requirements on threads that had no cycles, or were never seen: nothing decides them.
fn without_thread(attachment: &Attachment) -> Vec<Finding> {
    let labels: Vec<&str> = attachment.threads.values().filter_map(Thread::label).collect();
    let mut names: Vec<&str> =
        attachment.options.requirements.iter().filter_map(|of| of.thread.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| !labels.contains(name)).map(findings::without_thread).collect()
}

fn exit_of(outcome: &Outcome, summary: &Summary, required: bool, none: bool) -> Exit {
    match run::exit_of(outcome, summary) {
        _ if none && required => Exit::NoEvidence,
        _ if none => Exit::Failed,
        Exit::NotMet if !required || summary.verdict != Some(VerdictWord::NotMet) => Exit::Done,
        Exit::NoEvidence if !required => Exit::Done,
        exit => exit,
    }
}

/// Why there are no cycles, and what was seen.
fn nothing_found(attachment: &Attachment) -> String {
    let seen: Vec<String> = attachment
        .threads
        .values()
        .filter_map(|thread| thread.why_not(&attachment.calls))
        .take(8)
        .collect();
    let seen = match seen.is_empty() {
        true => {
            "no thread waited in a system call that can begin a cycle: it ran or slept all the \
                 time"
                .to_owned()
        }
        false => seen.join("\n       "),
    };
    let few = match attachment.phase.duration {
        Some(span) if attachment.command.is_some() => {
            format!(
                " ({} cycles are needed to recognise them; it ran for {})",
                punctual_analyze::cycles::LEAST,
                span.readable()
            )
        }
        _ => String::new(),
    };
    format!("no thread with cycles was found{few}; what was seen:\n       {seen}")
}
