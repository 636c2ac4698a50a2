//! The findings of a search, in sentences.

use crate::format::{self, count, counted};
use punctual_bundle::hunt::{Against, Changed, HuntCause, HuntDocument, HuntFailure, TrialState};
use punctual_core::Nanos;

/// The limits of any search.
pub(crate) const NO_BOUND: &str = "This search proves no bound: other loads, parameters and start \
                                   times may show longer sections. Virtual time has one CPU, no \
                                   caches and no hardware. Sections below 2,000 instructions are \
                                   not listed.";

pub fn extent(document: &HuntDocument) -> String {
    let of = |state| document.trials.iter().filter(|trial| trial.state == state).count() as u64;
    let longest = document.trials.iter().rev();
    let last = longest.clone().map(|trial| trial.number).next().unwrap_or(0);
    let newest = document.causes.iter().take(3).map(|cause| cause.trial).max();
    let newest = newest.map_or(String::new(), |newest| {
        format!(" The longest of the first three causes came in trial {newest} of {last}.")
    });
    format!(
        "{}: {} measured, {} with a load that did not work, {} failed. {} of {} were tried, alone \
         and together; seed {}.{newest}",
        counted(document.trials.len() as u64, "trial"),
        count(of(TrialState::Measured)),
        count(of(TrialState::NoLoad)),
        count(of(TrialState::Failed)),
        count(document.surveyed),
        counted(document.loads, "load"),
        document.seed,
    )
}

/// The longest cause, or the worst sample without causes: `3,386,843 instructions (27,095 virtual
/// µs) with interrupts disabled, __free_one_page: stress-ng --fork 1`.
pub fn figure(document: &HuntDocument) -> Option<String> {
    let longest = document.causes.iter().chain(&document.worst).max_by_key(|one| one.longest)?;
    let function = match longest.function.is_empty() {
        true => String::new(),
        false => format!(", {}", format::plain(&longest.function)),
    };
    Some(format!(
        "The longest: {} ({} virtual µs), {}{function}; trial {} of {}. Loads: {}.",
        counted(longest.longest, "instruction"),
        micros(document, longest.longest),
        kind(&longest.kind),
        count(longest.trial),
        count(document.trials.len() as u64),
        format::plain(&longest.least.loads.join(" and ")),
    ))
}

/// The number of causes with a minimal input; `None` if there is no cause.
pub fn minimised(document: &HuntDocument) -> Option<String> {
    let all: Vec<&HuntCause> = document.causes.iter().chain(&document.worst).collect();
    if all.is_empty() {
        return None;
    }
    let minimal = all.iter().filter(|cause| cause.least.minimal).count();
    let trials = document.trials.iter().filter(|trial| trial.stage == "minimise").count();
    Some(format!(
        "{minimal} of {} {} made as small as {} can be, in {}.",
        counted(all.len() as u64, "input"),
        if minimal == 1 { "was" } else { "were" },
        if minimal == 1 { "it" } else { "they" },
        counted(trials as u64, "trial"),
    ))
}

/// A length in virtual µs.
pub fn micros(document: &HuntDocument, instructions: u64) -> String {
    let ns = instructions.saturating_mul(document.ns_per_instruction.into());
    format::micros(Nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
}

pub fn kind(kind: &str) -> &'static str {
    match kind {
        "irqs-disabled" => "interrupts disabled",
        "preemption-disabled" => "preemption disabled",
        "sample" => "worst sample",
        _ => "not preempted",
    }
}

/// The state of a cause compared with another kernel.
pub fn changed(change: Changed) -> &'static str {
    match change {
        Changed::New => "new",
        Changed::Gone => "gone",
        Changed::Longer => "longer",
        Changed::Shorter => "shorter",
        Changed::Same => "the same",
    }
}

/// The minimal input that shows a cause: `stress-ng --mremap 1, measured for 250 ms: already
/// minimal`.
pub fn least(cause: &HuntCause) -> String {
    let least = &cause.least;
    let how = match least.minimal {
        true => "already minimal",
        false => "not minimised",
    };
    let shows = match least.shows == cause.longest {
        true => String::new(),
        false => format!(
            " shows {} instructions, {:.0} % of the longest,",
            count(least.shows),
            least.shows as f64 * 100.0 / cause.longest.max(1) as f64
        ),
    };
    format!(
        "{}, measured for {}:{shows} {how}",
        format::plain(&least.loads.join(" and ")),
        format::duration(Nanos(least.duration_ns))
    )
}

/// A failure of a kernel beyond latency: `panic in 3 trials: …`.
pub fn failure(failure: &HuntFailure) -> String {
    format!(
        "{} in {}: {}; in trial {}, the one with the fewest loads: {}",
        what(&failure.what),
        counted(failure.trials, "trial"),
        format::plain(&failure.why),
        count(failure.trial),
        format::plain(&failure.loads.join(" and "))
    )
}

pub fn what(what: &str) -> &'static str {
    match what {
        "panic" => "kernel panic",
        "hang" => "hang",
        "out-of-memory" => "out of memory",
        "ended-early" => "power-off or reset",
        _ => "not run",
    }
}

/// The comparison of two kernels.
pub fn against(against: &Against) -> String {
    let failed = match against.failed {
        0 => String::new(),
        failed => format!(" {} of the inputs was not measured on both.", count(failed)),
    };
    let of = |wanted| against.changes.iter().filter(|change| change.change == wanted).count();
    format!(
        "The smallest inputs of the causes, {}, on both: {} causes are new, {} longer, {} shorter, \
         {} gone, {} the same within 10 %.{failed}",
        counted(against.inputs, "input"),
        of(Changed::New),
        of(Changed::Longer),
        of(Changed::Shorter),
        of(Changed::Gone),
        of(Changed::Same),
    )
}
