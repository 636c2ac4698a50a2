//! Remedies for a delay: the first remedy for its cause that the evidence supports ([`REMEDIES`]),
//! else [`CauseKind::advice`]. Terminal, page and JSON use them.
//!
//! docs/reference/remedies.md is generated from the table; each row has a case in which it must
//! appear, and one in which it must not (`remedies/tests.rs`).

mod rules;
mod table;

pub use rules::{Matching, Rules};
pub(crate) use table::{REMEDIES, Remedy};

use crate::format::escape_unsafe;
use punctual_core::event::Recorded;
use punctual_core::{CauseKind, Finding, Names};
use punctual_explain::Explanations;
use punctual_explain::answer::{Blame, Blamed};
use punctual_explain::explain::{Budget, Cause, GROUPS, is_long_exit};
use punctual_explain::threads::Interrupt;

/// A cause with a smaller share gets no remedy.
const WORTH: f64 = 0.05;
/// Recorders of punctual itself ([`Recorded::recorder`]); all others belong to other tools.
const OWN_RECORDERS: [&str; 2] = ["BPF (", "tracefs"];
const WITH_TYPES: &str = "BPF (BTF";

/// Facts that remedies depend on, besides the cause.
#[derive(Clone, Copy)]
pub struct RemedyEvidence<'a> {
    pub names: &'a Names,
    pub recorded: Option<&'a Recorded>,
    /// Events were overwritten before they could be copied.
    pub is_partial: bool,
    pub rules: &'a Rules,
    /// The findings about the delayed thread.
    pub findings: &'a [&'a Finding],
}

impl<'a> RemedyEvidence<'a> {
    /// The evidence of explained samples.
    pub fn from_explanations(all: &'a Explanations, rules: &'a Rules) -> RemedyEvidence<'a> {
        let is_partial = all.series.iter().any(|series| series.partial > 0);
        let (names, recorded) = (&all.names, Some(&all.recorded));
        RemedyEvidence { names, recorded, is_partial, rules, findings: &[] }
    }
}

/// A remedy that fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// The index of the blamed cause.
    pub place: usize,
    /// Escaped for output.
    pub text: String,
    /// The rules of `punctual check` that concern it.
    pub rules: Vec<Matching>,
}

/// Remedies for these causes, in their order; equal remedies are given once. The remedy for
/// unattributed time comes last.
pub(crate) fn find_remedies(blamed: &[Blame], evidence: &RemedyEvidence<'_>) -> Vec<Advice> {
    let worth = blamed.iter().enumerate().filter(|(_, blame)| blame.share >= WORTH);
    let mut worth: Vec<(usize, DelayFacts<'_>)> = worth
        .filter_map(|(place, blame)| {
            let kind = match &blame.what {
                Blamed::Cause(cause) => cause.kind(),
                Blamed::Kind(kind) => *kind,
                Blamed::Entry { .. } => return None,
            };
            Some((place, DelayFacts { kind, blame, evidence }))
        })
        .collect();
    worth.sort_by_key(|(_, about)| about.kind == CauseKind::Unknown);
    let mut all_advice: Vec<Advice> = Vec::new();
    for (place, about) in worth {
        let Some((text, rules)) = about.choose_remedy() else { continue };
        if !all_advice.iter().any(|other| other.text == text) {
            all_advice.push(Advice { place, text, rules: evidence.rules.matching_rules(rules) });
        }
    }
    all_advice
}

/// A delay with all facts that its remedies depend on.
pub(crate) struct DelayFacts<'a> {
    kind: CauseKind,
    blame: &'a Blame,
    evidence: &'a RemedyEvidence<'a>,
}

impl DelayFacts<'_> {
    /// The first remedy that fits, with its rules; `None` if the general one would refer to missing
    /// evidence.
    fn choose_remedy(&self) -> Option<(String, &'static [&'static str])> {
        let (text, rules) = match self.fitting_remedy() {
            Some(one) => (one.text, one.rules),
            None if self.kind == CauseKind::Unknown => return None,
            None => (self.kind.advice(), self.kind.rules()),
        };
        let who = match (self.culprit(), self.kind) {
            (Some(who), _) => escape_unsafe(who),
            (None, CauseKind::Lock | CauseKind::PriorityInversion) => "its holder".to_owned(),
            (None, _) => "the other task".to_owned(),
        };
        Some((text.replace("{who}", &who), rules))
    }

    fn fitting_remedy(&self) -> Option<&'static Remedy> {
        REMEDIES.iter().find(|one| one.cause == self.kind && (one.applies)(self))
    }

    fn cause(&self) -> Option<Cause> {
        match self.blame.what {
            Blamed::Cause(cause) => Some(cause),
            Blamed::Kind(_) | Blamed::Entry { .. } => None,
        }
    }

    fn culprit(&self) -> Option<&str> {
        self.blame.who.as_deref()
    }

    fn is_by(&self, names: &[&str]) -> bool {
        self.culprit().is_some_and(|who| names.iter().any(|name| who.starts_with(name)))
    }

    /// Whether it is one of the CPU's own vectors whose name has one of these prefixes.
    fn is_vector(&self, names: &[&str]) -> bool {
        let Some(Cause::Interrupt(Interrupt::Vector(vector))) = self.cause() else { return false };
        let vector_name = self.evidence.names.vector_name(vector);
        names.iter().any(|name| vector_name.starts_with(name))
    }

    fn is_softirq(&self, names: &[&str]) -> bool {
        let Some(Cause::Interrupt(Interrupt::Soft(vector))) = self.cause() else { return false };
        names.contains(&self.evidence.names.softirq_name(vector).as_str())
    }

    fn is_budget(&self, of: Budget) -> bool {
        matches!(self.cause(), Some(Cause::Throttled { budget, .. }) if budget == of)
    }

    /// Whether only the kind of throttling is unknown, and the thread has this rank.
    fn is_throttled_by_rank(&self, rank: u32) -> bool {
        self.cause().is_none() && self.blame.rank == Some(rank)
    }

    /// The idle state polls, or was left far later than it declares.
    fn is_no_idle_exit(&self) -> bool {
        let Some(Cause::IdleExit { state }) = self.cause() else { return false };
        let names = self.evidence.names;
        let declared = state.and_then(|state| names.idle_latencies.get(&state).copied());
        self.is_by(&["POLL"]) || self.blame.longest.is_some_and(|time| is_long_exit(time, declared))
    }

    fn is_met(&self, rule: &str) -> bool {
        self.evidence.rules.is_met(rule) == Some(true)
    }

    fn is_guest(&self) -> bool {
        self.evidence.rules.is_met("hypervisor") == Some(false)
    }

    /// Whether a finding about the thread shows that its memory is locked.
    fn is_locked(&self) -> bool {
        let shows = |found: &&Finding| {
            found.id == "page-faults-in-cycle" && found.message.ends_with("; the memory is locked")
        };
        self.evidence.findings.iter().any(shows)
    }

    fn is_recorded_here(&self) -> bool {
        let is_own_recorder = |recorded: &Recorded| {
            OWN_RECORDERS.iter().any(|own| recorded.recorder.starts_with(own))
        };
        self.evidence.recorded.is_some_and(is_own_recorder)
    }

    fn has_lost(&self) -> bool {
        let lost = self.evidence.recorded.is_some_and(|recorded| recorded.lost_count() > 0);
        lost || self.evidence.is_partial
    }

    fn is_without_types(&self) -> bool {
        let lacks_types = |recorded: &Recorded| !recorded.recorder.starts_with(WITH_TYPES);
        self.is_recorded_here() && self.evidence.recorded.is_some_and(lacks_types)
    }

    /// Whether a trace of another tool lacks event groups that show causes.
    fn lacks_groups(&self) -> bool {
        let lacks = |recorded: &Recorded| GROUPS.iter().any(|group| !recorded.has_group(*group));
        !self.is_recorded_here() && self.evidence.recorded.is_some_and(lacks)
    }
}

#[cfg(test)]
mod tests;
