//! The parts of a sample's path, and non-preemptible sections, in words.

use crate::format::{self, count_text, count_with_noun, micros_text};
use punctual_bundle::answer::{AnsweredDelay, Delays};
use punctual_bundle::exact::{
    DisabledSection, ExactDifference, ExactPair, ExactPart, ExplainedExactSample,
};
use punctual_bundle::sections::{Required, SectionsDocument, SectionsRun};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;
use std::cmp::Reverse;

/// The title of a part (`kind` of [`punctual_bundle::exact::ExactPart`]).
pub(crate) fn part_title(kind: &str) -> &'static str {
    match kind {
        "timer" => "timer not expired",
        "irqs-disabled" => "interrupts disabled",
        "interrupt" => "interrupt handler",
        "not-preempted" => "not preempted",
        "schedule" => "scheduler",
        "return" => "return to user mode",
        _ => "other",
    }
}

/// The main cause of a sample: the part of its path with most instructions, and the function with
/// most of them. `None` if nothing of it was traced.
pub fn main_delay(sample: &ExplainedExactSample) -> Option<AnsweredDelay> {
    Some(part_delay(sample, sample.longest_part()?))
}

/// The causes of a sample: the parts of its path, the longest first.
pub(crate) fn list_delays(sample: &ExplainedExactSample) -> Delays {
    let mut parts: Vec<&ExactPart> = sample.parts.iter().collect();
    parts.sort_by_key(|part| Reverse(part.instructions));
    Delays {
        samples: 1,
        from: sample.latency_ns,
        causes: parts.into_iter().map(|part| part_delay(sample, part)).collect(),
        ..Delays::default()
    }
}

fn part_delay(sample: &ExplainedExactSample, part: &ExactPart) -> AnsweredDelay {
    let all_instructions = sample.instructions.saturating_add(sample.without);
    let who = part.functions.first().map(|(function, _)| function.clone());
    let share = part.instructions as f64 / all_instructions.max(1) as f64;
    AnsweredDelay::new(&part.kind, part_title(&part.kind), who, share)
}

/// The source lines of a sample with most instructions; empty if unknown.
pub fn format_lines(sample: &ExplainedExactSample, most: usize) -> String {
    let lines: Vec<String> = sample
        .lines
        .iter()
        .take(most)
        .map(|line| {
            let (place, function) =
                (format::escape_unsafe(&line.line), format::escape_unsafe(&line.function));
            format!("{place} {} ({function})", count_text(line.own))
        })
        .collect();
    lines.join(", ")
}

/// The run that another is compared with.
pub(crate) fn format_compared_run(difference: &ExactDifference) -> String {
    format!(
        "difference to {} (kernel {}, digest {})",
        format::escape_unsafe(&difference.against),
        format::escape_unsafe(&difference.kernel),
        format::short_digest(&difference.digest)
    )
}

/// The compared samples of two runs.
pub(crate) fn pair_title(pair: &ExactPair) -> String {
    match pair.of.as_str() {
        "ordinary" => "an ordinary sample of each".to_owned(),
        "worst" => "the worst sample of each".to_owned(),
        _ => format!("the {} worst samples of each", count_text(pair.samples)),
    }
}

/// The numbers of functions that are new, gone, longer, shorter and unchanged.
pub(crate) fn without_change(pair: &ExactPair) -> String {
    let (mut new, mut gone, mut more, mut fewer) = (0, 0, 0, 0);
    for one in &pair.functions {
        *match (one.here, one.there) {
            (_, 0) => &mut new,
            (0, _) => &mut gone,
            (here, there) if here > there => &mut more,
            _ => &mut fewer,
        } += 1;
    }
    format!(
        "functions by part: {} only here, {} only there, {} with more, {} with fewer, {} equal",
        count_text(new),
        count_text(gone),
        count_text(more),
        count_text(fewer),
        count_text(pair.same)
    )
}

/// The context that raised `preempt_count` (`context` of [`DisabledSection`]).
pub(crate) fn raised_by(context: &str) -> &'static str {
    match context {
        "preemption-disabled" => "preempt_disable, lock",
        "softirqs-disabled" => "softirqs disabled",
        "softirq" => "softirq",
        "interrupt" => "interrupt",
        "nmi" => "NMI",
        _ => "",
    }
}

/// The workload during the search for sections.
pub(crate) fn looked_in(document: &SectionsDocument) -> String {
    let what = match &document.run {
        SectionsRun::Command { command, .. } => {
            format!("of `{}`", format::escape_unsafe(&command.join(" ")))
        }
        SectionsRun::Boot => "from the first until the guest is switched off".to_owned(),
        SectionsRun::Measurement { digest } => {
            format!("from the first sample to the last, digest {}", format::short_digest(digest))
        }
    };
    format!(
        "{} {what}; {} in all",
        count_with_noun(document.measured, "instruction"),
        count_text(document.instructions)
    )
}

/// The meaning of the preemption model for sections.
pub(crate) fn explain_preemption_model(preemption: Option<&str>) -> String {
    let Some(model) = preemption else {
        return "The preemption model in force is not known.".to_owned();
    };
    let rest = match model {
        "none" | "voluntary" => {
            ": kernel code is not preempted outside of these sections either, but where it \
             calls the scheduler itself"
        }
        "lazy" => {
            ": kernel code is preempted at once by real-time tasks, by others at the next tick"
        }
        "real-time" => ": a spinlock_t does not disable preemption, a raw_spinlock_t does",
        _ => ": kernel code is preempted outside of these sections",
    };
    format!("The preemption model in force is {}{rest}.", format::escape_unsafe(model))
}

/// A section with the calls that led to it.
pub(crate) fn format_longest_section(
    section: &DisabledSection,
    insn_ns: u32,
    stack: &str,
) -> String {
    let ns = section.longest.saturating_mul(insn_ns.into());
    let functions: Vec<String> = section
        .functions
        .iter()
        .map(|(name, own)| format!("{} {}", format::escape_unsafe(name), count_text(*own)))
        .collect();
    let calls = match stack.is_empty() {
        true => "its calls are not known".to_owned(),
        false => format!("{stack}; most instructions: {}", functions.join(", ")),
    };
    format!(
        "{}, {} ({} virtual µs): {calls}",
        format::escape_unsafe(&section.function),
        count_with_noun(section.longest, "instruction"),
        micros_text(Nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
    )
}

/// A requirement on sections with its verdict.
pub fn format_requirement(required: &Required) -> String {
    let text = format::escape_unsafe(&required.requirement);
    let longest = required.longest.map_or(String::new(), |longest| {
        format!("; the longest is {} instructions", count_text(longest))
    });
    match required.verdict {
        VerdictWord::Met => {
            format!("{text}: nothing longer was found{longest}. This proves no bound.")
        }
        VerdictWord::NotMet => format!("{text}: not met{longest}"),
        _ => format!("{text}: undecided, nothing was measured"),
    }
}
