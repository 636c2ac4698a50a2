//! A verdict and its reasons in plain sentences, the same in every output.

pub mod baseline;

use crate::format::{count_text, count_with_noun, micros_text};
use crate::sentence::join_words;
use crate::tables::Tone;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_bundle::verdict::{FailedPart, LeftOut, LeftOutKind, Unbegun};
use punctual_bundle::{Exit, HowEnded, ProgramEnd, Reason, Verdict};
use punctual_core::Nanos;

/// Names in a sentence; the rest are counted.
const NAMES: usize = 4;

/// The tone of a verdict. It is good exactly if something was required, all of it is met and
/// nothing failed: the exit code is 0.
pub(crate) fn tone_of(verdict: &Verdict) -> Tone {
    match (verdict.to_exit(), verdict.word) {
        (Exit::Done, Some(VerdictWord::Met)) => Tone::Good,
        (Exit::Done, _) => Tone::Plain,
        (Exit::NoEvidence, word) if word != Some(VerdictWord::Invalid) => Tone::Uncertain,
        _ => Tone::Bad,
    }
}

/// A reason that prevents *met*, or fails the run.
pub(crate) fn of_reason(reason: &Reason) -> String {
    let with = |why: &Option<String>| why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    match reason {
        Reason::Requirement { place, requirement, verdict, why, .. } => {
            format!("{requirement} on {place} is {}{}", verdict_word(*verdict), with(why))
        }
        Reason::Limit { limit, verdict, why } => {
            format!("the limit {limit} is {}{}", verdict_word(*verdict), with(why))
        }
        Reason::Worse(worse) => baseline::of_worse(worse),
        Reason::FewRuns { runs, missing, .. } => baseline::of_few(*runs, *missing),
        Reason::Leap(leap) => baseline::of_leap(leap),
        Reason::NotHeld { why } => format!("not compared with its baseline: {why}"),
        Reason::StopAbove { series, latency, limit, seq } => {
            let sample = seq.map_or(String::new(), |seq| format!(" in sample {}", count_text(seq)));
            let limit = limit
                .map_or(String::new(), |limit| format!(" of {} µs", micros_text(Nanos(limit))));
            let latency = micros_text(Nanos(*latency));
            format!("{series} had a latency of {latency} µs{sample}, above its stop_above{limit}")
        }
        Reason::Failed { part: FailedPart::Run, why } => format!("the run failed: {why}"),
        Reason::Failed { part: FailedPart::Load(name), why } => format!("the load {name} {why}"),
        Reason::Failed { part: FailedPart::Target(name), why } => {
            format!("the run on {name} did not complete: {why}")
        }
        Reason::Unwritten { why } => format!("not everything could be written: {why}"),
        Reason::NotAsAsked { proof, place, why } => {
            format!("not measured as requested: {} of {place}: {why}", proof.json_word())
        }
        Reason::Unreadable { what } => {
            format!("a part of the bundle is missing or cannot be read: {what}")
        }
        Reason::LeftOut { left_out, requirements, .. } => {
            let open = match requirements.is_empty() {
                true => String::new(),
                false => format!(", and could violate {}", join_few_names(requirements)),
            };
            format!("{}{open}", of_left_out(left_out))
        }
        Reason::ProgramEnded(end) => of_end(end),
        Reason::EventsLost { lost, of } => {
            format!("{} of {} events were lost", count_text(*lost), count_text(*of))
        }
        Reason::Interrupted { unbegun } => {
            format!("the run was interrupted{}", never_began(unbegun))
        }
        Reason::CutOff { why: Some(why), .. } => format!("it is cut off: {why}"),
        Reason::CutOff { unbegun, why: None } => {
            format!("the run was cut off, and what followed is unknown{}", never_began(unbegun))
        }
    }
}

/// Signals that end programs, by their numbers on all architectures that are supported.
const SIGNALS: [(i32, &str); 15] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (31, "SIGSYS"),
];

fn of_end(end: &ProgramEnd) -> String {
    let how = match end.how {
        HowEnded::Status(0) => "ended with success".to_owned(),
        HowEnded::Status(status) => format!("ended with status {status}"),
        HowEnded::Signal(number) => {
            let name = SIGNALS.iter().find(|(known, _)| *known == number);
            let unnamed_signal = || format!("signal {number}");
            format!("ended by {}", name.map_or_else(unnamed_signal, |(_, name)| (*name).to_owned()))
        }
    };
    let requested_time =
        end.asked.map_or(String::new(), |asked| format!(" of {}", asked.to_readable()));
    let memory = if end.out_of_memory { "; the kernel ran out of memory" } else { "" };
    format!(
        "the program {} {how} after {}{requested_time}{memory}",
        end.program,
        end.ran.to_readable()
    )
}

/// Text for reasons that were dropped because there were too many.
fn of_left_out(left_out: &LeftOut) -> String {
    let what = match left_out.what {
        LeftOutKind::Threads => "threads",
        LeftOutKind::Series => "series",
        LeftOutKind::Records => "records",
    };
    format!(
        "{what} beyond the first {} are left out ({} seen of them)",
        count_text(left_out.bound),
        count_with_noun(left_out.records, "record")
    )
}

fn never_began(unbegun: &[Unbegun]) -> String {
    let names: Vec<String> = unbegun.iter().map(|of| format!("{:?}", of.phase)).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("; the phase {one} never began"),
        _ => format!("; the phases {} never began", join_few_names(&names)),
    }
}

fn join_few_names(names: &[String]) -> String {
    let omitted_count = names.len().saturating_sub(NAMES);
    let mut shown_names: Vec<String> = names.iter().take(NAMES).cloned().collect();
    shown_names.extend((omitted_count > 0).then(|| format!("{omitted_count} more")));
    join_words(&shown_names)
}

fn verdict_word(verdict: VerdictWord) -> &'static str {
    crate::tables::verdict_words(verdict).1
}

/// The reasons that no table of requirements shows, including those about requirements whose series
/// can no longer be read.
pub(crate) fn beside_requirements(summary: &Summary) -> impl Iterator<Item = &Reason> {
    let of_baseline = summary.verdict.remark_reasons();
    let not_judged = of_baseline.filter(|reason| matches!(reason, Reason::FewRuns { .. }));
    summary
        .verdict
        .adverse_reasons()
        .chain(not_judged)
        .filter(|reason| !is_in_table(reason, summary))
}

fn is_in_table(reason: &Reason, summary: &Summary) -> bool {
    let Reason::Requirement { place, requirement, verdict, .. } = reason else { return false };
    let is_same =
        |held: &RequirementSummary| held.requirement == *requirement && held.verdict == *verdict;
    summary.phases.iter().any(|phase| {
        let mut series = phase.series.iter();
        series.any(|series| {
            *place == format!("{}/{}", phase.name, series.name)
                && series.requirements.iter().any(is_same)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_killed_for_lack_of_memory_says_so() {
        let text = |out_of_memory: bool| {
            let (how, ran) = (HowEnded::Signal(9), Nanos::from_millis(1_200));
            let asked = Some(Nanos::from_secs(10));
            of_end(&ProgramEnd { program: "loop".to_owned(), how, ran, asked, out_of_memory })
        };
        let killed = "the program loop ended by SIGKILL after 1.2 s of 10 s";
        assert_eq!(text(true), format!("{killed}; the kernel ran out of memory"));
        assert_eq!(text(false), killed);
    }
}
