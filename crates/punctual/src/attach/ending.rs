//! The end: figures, what was inferred, the bundle's last files, the exit code.

use super::{Attachment, PHASE};
use crate::commands::show::show_options;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use crate::session;
use punctual_analyze::PhaseView;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{Bundle, BundleError, Outcome};
use punctual_core::{Finding, Nanos, Severity};
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use punctual_record::StartError;
use punctual_report::format;
use punctual_report::terminal;

/// Where the result goes.
pub struct Output {
    /// Standard output is the command's.
    pub to_stderr: bool,
    /// As JSON.
    pub json: bool,
}

impl Output {
    fn print(&self, text: &str) -> Result<(), Failure> {
        match self.to_stderr {
            true => output::say(text),
            false => output::print(text)?,
        }
        Ok(())
    }
}

/// Ends the bundle and shows what was measured.
pub fn end(
    mut attachment: Attachment,
    outcome: Outcome,
    output: &Output,
    directory: &str,
) -> Ending {
    let none = attachment.threads.values().all(|thread| thread.label().is_none());
    let why = none.then(|| nothing_found(&attachment));
    let ended = attachment.command.take().and_then(crate::commands::trace::command::Command::ended);
    if let Ok(Some(mut environment)) = attachment.writer.document::<Environment>("environment") {
        environment.close(&Root::system());
        let _ = attachment.writer.write_document("environment", &environment);
    }
    let mut manifest = attachment.writer.manifest().clone();
    let required = !attachment.options.requirements.is_empty();
    let outcome = why.as_ref().map_or(outcome, |why| Outcome::Failed { why: why.clone() });
    let mut ending = punctual_bundle::Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    manifest.ending = Some(ending.clone());
    let unmet = without_thread(&attachment);
    let is_open = !unmet.is_empty();
    attachment.findings.extend(unmet);
    let series = attachment.threads.values().flat_map(|thread| thread.views()).collect();
    let views = [PhaseView { meta: &attachment.phase, series }];
    let mut summary =
        punctual_analyze::summarize_run(&manifest, &views, &attachment.findings, &[], None);
    if is_open && summary.verdict != Some(VerdictWord::NotMet) {
        summary.verdict = Some(VerdictWord::Undecided);
    }
    let exit = exit_of(&ending.outcome, &summary, required, none);
    ending.exit_code = exit as u8;
    summary.ending = Some(ending.clone());
    if !none {
        show(&attachment, &summary, &views, output)?;
    }
    attachment.writer.finish(&summary, ending).map_err(Failure::failed)?;
    if let Some(why) = why {
        output::complain(&why);
    } else if !output.json {
        if let Ok(bundle) = Bundle::open(std::path::Path::new(directory)) {
            output.print(&crate::commands::explain::brief(&bundle))?;
        }
        output.print(&format!("\nbundle  {directory}\nreport  punctual report {directory}\n"))?;
    }
    match ended {
        // The command's own code, which the five of punctual cannot hold.
        Some(ended) if ended.code != 0 => std::process::exit(ended.code.into()),
        Some(_) if none && !required => Ok(Exit::Done),
        _ => Ok(exit),
    }
}

fn show(
    attachment: &Attachment,
    summary: &Summary,
    views: &[PhaseView<'_>],
    output: &Output,
) -> Result<(), Failure> {
    if output.json {
        return match output.to_stderr {
            true => {
                let text = serde_json::to_string_pretty(summary).map_err(Failure::failed)?;
                output.print(&format!("{text}\n"))
            }
            false => output::print_json(summary),
        };
    }
    output.print(&terminal::show(summary, views, &show_options()))?;
    let described = attachment.threads.values().filter_map(super::thread::Thread::describe);
    let mut text = String::from("\ncycles\n");
    for line in described.flat_map(|lines| lines.lines().map(str::to_owned).collect::<Vec<_>>()) {
        text += &format!("  {}\n", format::plain(&line));
    }
    if let Some(cost) = cost(attachment) {
        text += &format!("  {cost}\n");
    }
    output.print(&text)
}

/// What measuring took of the CPUs.
fn cost(attachment: &Attachment) -> Option<String> {
    let cost = attachment.cost.known()?;
    let micros = |time: Nanos| time.ns() as f64 / 1_000.0;
    Some(format!(
        "cost, measured at the start: {:.2} µs of all CPUs for a cycle, in {} runs of BPF programs, \
         and {:.2} µs for each further system call",
        micros(cost.per_cycle),
        cost.runs_per_cycle,
        micros(cost.per_call)
    ))
}

fn exit_of(outcome: &Outcome, summary: &Summary, required: bool, none: bool) -> Exit {
    match session::exit_of(outcome, summary) {
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
        true => "no thread waited in a system call that could be a cycle's: it ran, or slept, all \
                 the time"
            .to_owned(),
        false => seen.join("\n       "),
    };
    let few = match attachment.phase.duration {
        Some(span) if attachment.command.is_some() => {
            format!(
                " (a cycle is known by {} of them; it ran for {})",
                punctual_analyze::cycles::LEAST,
                span.readable()
            )
        }
        _ => String::new(),
    };
    format!("no thread with cycles was found{few}; what was seen:\n       {seen}")
}

/// A thread whose cycles cannot be passed to the kernel.
pub fn not_selected(name: &str, why: &StartError) -> Finding {
    let message = "every wait of this thread is recorded, not only its cycles";
    Finding::new("cycle-not-selected", Severity::Note, format!("{PHASE}/{name}"), message)
        .evidence(why.to_string())
}

/// Requirements on threads that had no cycles, or were never seen: nothing decides them.
fn without_thread(attachment: &Attachment) -> Vec<Finding> {
    let is_there =
        |name: &str| attachment.threads.values().any(|thread| thread.label() == Some(name));
    let mut names: Vec<&str> =
        attachment.options.requirements.iter().filter_map(|of| of.thread.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let missing = names.into_iter().filter(|name| !is_there(name));
    missing
        .map(|name| {
            let message = format!(
                "no thread {name:?} with cycles was seen: what is required of it is undecided"
            );
            Finding::new("requirement-without-thread", Severity::Bad, PHASE, message)
                .remedy("name the thread as its series are named: the part before the slash")
        })
        .collect()
}

/// What could not be written.
pub fn incomplete(why: &BundleError) -> Finding {
    let message = "the bundle is incomplete: not everything could be written";
    Finding::new("bundle-incomplete", Severity::Bad, PHASE, message)
        .evidence(why.to_string())
        .remedy(
            "the figures shown at the end are whole; run again with --output on a file system \
             with room",
        )
}

/// What was not seen.
pub fn not_seen(lost: u64, unseen: u64, left_out: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if lost > 0 {
        let message = format!(
            "{} of cycles were lost: the kernel's buffers were full",
            format::counted(lost, "record")
        );
        let finding = Finding::new("cycles-lost", Severity::Warning, PHASE, message);
        findings.push(finding.remedy(
            "name the kind of cycle (--cycle) or the thread (--thread), so that less is recorded",
        ));
    }
    if unseen > 0 {
        let message = format!(
            "{} not seen: the same BPF program ran on that CPU",
            format::counted(unseen, "event")
        );
        findings.push(Finding::new("events-unseen", Severity::Note, PHASE, message));
    }
    if left_out > 0 {
        let message =
            format!("{} of further threads are left out", format::counted(left_out, "record"));
        let finding = Finding::new("threads-left-out", Severity::Warning, PHASE, message);
        findings.push(finding.remedy("name the threads: --thread"));
    }
    findings
}
