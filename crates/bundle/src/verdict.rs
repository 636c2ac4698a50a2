//! What became of what was asked of a run: one word, and every reason for it with its place.
//!
//! `analyze::verdict` computes it from what the bundle holds; the end of a run stores it. Whatever
//! shows an answer shows this.

use crate::baseline::{LeapingFigure, WorseFigure, always};
use crate::exit::{CommandEnd, Exit, ProgramEnd};
use crate::judged::{ProofWord, VerdictWord};
use serde::{Deserialize, Serialize};

/// Reasons that are kept, the gravest first; the rest is counted.
pub const MOST_REASONS: usize = 100;

/// A word and its reasons.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// Of all that was asked together; `None` where nothing was.
    #[serde(rename = "verdict", default)]
    pub word: Option<VerdictWord>,
    /// Why it is not *met*, or why the run ends as it does; the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Further reasons, of which there were more than are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_reasons: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Why a verdict is what it is, with its place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// A stated requirement is not met, undecided or invalid.
    Requirement {
        /// `phase/series`; the phase where no series was found for it.
        place: String,
        requirement: String,
        verdict: VerdictWord,
        /// The figure that was compared, in ns or as a count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        figure: Option<f64>,
        /// Why it is undecided or invalid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A limit on intervals of the recording is not met, undecided or invalid.
    Limit {
        /// As stated: `A->B < 100us`.
        limit: String,
        verdict: VerdictWord,
        /// Why it is undecided or invalid, or how far it is violated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A figure is worse than in the runs before.
    Worse(WorseFigure),
    /// There are too few runs before it to judge it by.
    FewRuns {
        runs: u64,
        /// How many more are needed.
        missing: u64,
        /// Whether that makes the run *undecided*.
        #[serde(default = "always")]
        required: bool,
    },
    /// A figure is far outside of all runs before; too few such runs decide nothing.
    Leap(LeapingFigure),
    /// It was to be held against the runs before it, and could not be.
    NotHeld {
        why: String,
    },
    /// A sample above `stop_above` ended the run.
    StopAbove {
        /// `phase/series`.
        series: String,
        /// The latency of the sample, in ns.
        latency: i64,
        /// The limit, in ns; absent in an import.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<i64>,
        /// The place of the sample in its series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    Failed {
        part: FailedPart,
        why: String,
    },
    /// Not everything could be written: the disk was full, a file could not be made.
    Unwritten {
        why: String,
    },
    /// It was not measured as requested.
    NotAsAsked {
        proof: ProofWord,
        /// What the proof is about: `run`, a phase, `phase/series`, `phase/load`.
        place: String,
        why: String,
    },
    /// A part of the bundle is missing or cannot be read.
    Unreadable {
        what: String,
    },
    /// A bound left something out.
    LeftOut {
        place: String,
        left_out: LeftOut,
        /// The requirements that could be affected.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requirements: Vec<String>,
    },
    /// A program failed, or ended before it was to.
    ProgramEnded(ProgramEnd),
    /// More than a hundredth of the events of a recording was lost.
    EventsLost {
        lost: u64,
        of: u64,
    },
    /// The user ended it, or something that was to end it did.
    Interrupted {
        /// The phases that never began.
        unbegun: Vec<Unbegun>,
    },
    /// It has no end: it was killed, the machine failed, it is still running, or the trace that it
    /// was made of breaks off.
    CutOff {
        /// The phases that had not begun.
        unbegun: Vec<Unbegun>,
        /// Where what it was made of breaks off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// What failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedPart {
    Run,
    /// A load or program whose failure ends the run, by its name.
    Load(String),
    /// The target, by its name.
    Target(String),
}

/// A phase that did not begin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unbegun {
    pub phase: String,
    /// What was required in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
}

/// What a bound left out of the figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftOut {
    /// What: `threads`, `series`, `records`.
    pub what: LeftOutKind,
    /// How many were kept at most.
    pub bound: u64,
    /// Records of them that were seen and not kept.
    pub records: u64,
}

/// Of what there was more than the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutKind {
    Threads,
    Series,
    Records,
}

impl Reason {
    /// What it makes of a verdict; `None` where it changes none: it is said, and that is all.
    pub fn weight(&self) -> Option<VerdictWord> {
        let if_asked = |asked: bool| asked.then_some(VerdictWord::Undecided);
        match self {
            Reason::Requirement { verdict, .. } | Reason::Limit { verdict, .. } => Some(*verdict),
            Reason::StopAbove { .. } | Reason::Worse(_) => Some(VerdictWord::NotMet),
            Reason::NotAsAsked { .. } => Some(VerdictWord::Invalid),
            Reason::Failed { .. }
            | Reason::Unwritten { .. }
            | Reason::Unreadable { .. }
            | Reason::EventsLost { .. }
            | Reason::NotHeld { .. }
            | Reason::CutOff { .. } => Some(VerdictWord::Undecided),
            Reason::ProgramEnded(end) => if_asked(end.is_early()),
            Reason::FewRuns { required, .. } => if_asked(*required),
            Reason::Leap(_) => None,
            Reason::LeftOut { requirements, .. } => if_asked(!requirements.is_empty()),
            Reason::Interrupted { unbegun } => {
                if_asked(unbegun.iter().any(|phase| !phase.requirements.is_empty()))
            }
        }
    }

    /// The exit code that it means by itself, and where it stands among others.
    fn exit(&self) -> (u8, Exit) {
        match (self, self.weight()) {
            (Reason::Failed { .. }, _) => (4, Exit::Failed),
            (_, Some(VerdictWord::NotMet)) => (3, Exit::NotMet),
            (Reason::Unwritten { .. }, _) => (2, Exit::Failed),
            (_, Some(VerdictWord::Invalid | VerdictWord::Undecided)) => (1, Exit::NoEvidence),
            // All that was measured stands.
            (Reason::ProgramEnded(_), _) => (1, Exit::Failed),
            (_, Some(VerdictWord::Met) | None) => (0, Exit::Done),
        }
    }

    /// Whether both are about the same: of two verdicts on one thing the graver one stands.
    fn is_about_same(&self, other: &Reason) -> bool {
        match (self, other) {
            (
                Reason::Requirement { place, requirement, .. },
                Reason::Requirement { place: of, requirement: asked, .. },
            ) => place == of && requirement == asked,
            (Reason::Limit { limit, .. }, Reason::Limit { limit: other, .. }) => limit == other,
            (Reason::Worse(worse), Reason::Worse(other)) => worse.figure == other.figure,
            (Reason::Leap(leap), Reason::Leap(other)) => leap.figure == other.figure,
            (Reason::FewRuns { .. }, Reason::FewRuns { .. })
            | (Reason::NotHeld { .. }, Reason::NotHeld { .. }) => true,
            (Reason::StopAbove { series, .. }, Reason::StopAbove { series: other, .. }) => {
                series == other
            }
            (
                Reason::NotAsAsked { proof, place, .. },
                Reason::NotAsAsked { proof: other, place: of, .. },
            ) => proof == other && place == of,
            _ => self == other,
        }
    }
}

impl Verdict {
    /// The verdict that these reasons make: *met* where something was asked and none of them
    /// stands against it.
    pub fn of(mut reasons: Vec<Reason>, asked: bool) -> Verdict {
        let gravity = |reason: &Reason| reason.weight().map(VerdictWord::gravity);
        reasons.sort_by_key(|reason| std::cmp::Reverse((reason.exit().0, gravity(reason))));
        let weights = reasons.iter().filter_map(Reason::weight);
        let word = asked.then(|| VerdictWord::gravest(weights).unwrap_or(VerdictWord::Met));
        let more_reasons = reasons.len().saturating_sub(MOST_REASONS) as u64;
        reasons.truncate(MOST_REASONS);
        Verdict { word, reasons, more_reasons }
    }

    /// What was stored when the run ended, and is now computed again from what can still be read.
    /// Nothing strengthens what was stored, and its reasons stay.
    pub fn after(self, stored: &Verdict) -> Verdict {
        let mut reasons = self.reasons;
        for old in &stored.reasons {
            match reasons.iter_mut().find(|new| new.is_about_same(old)) {
                Some(new) if old.exit().0 > new.exit().0 => new.clone_from(old),
                Some(_) => {}
                None => reasons.push(old.clone()),
            }
        }
        let asked = self.word.is_some() || stored.word.is_some();
        let more = self.more_reasons.max(stored.more_reasons);
        let mut both = Verdict::of(reasons, asked);
        both.more_reasons = both.more_reasons.max(more);
        both.word = VerdictWord::gravest([both.word, stored.word, self.word].into_iter().flatten());
        both
    }

    /// The exit code: that of the gravest reason, or of the word alone.
    pub fn exit(&self) -> Exit {
        let of_reasons = self.reasons.iter().map(Reason::exit).max_by_key(|(rank, _)| *rank);
        match of_reasons {
            Some((rank, exit)) if rank > 0 => exit,
            _ => Exit::of_word(self.word),
        }
    }

    /// The exit code where a command was measured or recorded: its own counts only where nothing
    /// was asked or all is met, and only if it ended by itself. Where nothing was asked, its own
    /// failure says more than ours, and so it does where nothing else failed.
    pub fn exit_code(&self, command: Option<CommandEnd>) -> u8 {
        let own = command.filter(|command| command.by_itself && command.code != 0);
        match (self.exit(), self.word, own) {
            (Exit::Done, _, Some(own)) | (Exit::Failed | Exit::NoEvidence, None, Some(own)) => {
                own.code
            }
            (Exit::Failed, Some(VerdictWord::Met), Some(own)) => own.code,
            (exit, _, _) => exit as u8,
        }
    }

    /// Reasons that change nothing and belong to the answer: what the runs before it show.
    pub fn remarks(&self) -> impl Iterator<Item = &Reason> {
        let is_remark = |reason: &&Reason| match reason {
            Reason::FewRuns { required, .. } => !required,
            reason => matches!(reason, Reason::Leap(_)),
        };
        self.reasons.iter().filter(is_remark)
    }

    /// The reasons that change something: the word, or the exit code.
    pub fn against(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(|reason| reason.exit().0 > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use VerdictWord::{Invalid, Met, NotMet, Undecided};

    fn requirement(place: &str, verdict: VerdictWord) -> Reason {
        let requirement = "max < 1us".to_owned();
        Reason::Requirement { place: place.into(), requirement, verdict, figure: None, why: None }
    }

    fn failed() -> Reason {
        Reason::Failed { part: FailedPart::Run, why: "x".into() }
    }

    #[test]
    fn the_gravest_reason_decides() {
        let of = |reasons: Vec<Reason>| {
            let verdict = Verdict::of(reasons, true);
            (verdict.word, verdict.exit())
        };
        let unwritten = || Reason::Unwritten { why: "full".into() };
        let cut_off = || Reason::CutOff { unbegun: Vec::new(), why: None };
        assert_eq!(of(vec![]), (Some(Met), Exit::Done));
        assert_eq!(of(vec![failed()]), (Some(Undecided), Exit::Failed));
        assert_eq!(of(vec![requirement("a", NotMet), failed()]), (Some(NotMet), Exit::Failed));
        assert_eq!(of(vec![unwritten(), requirement("a", NotMet)]), (Some(NotMet), Exit::NotMet));
        assert_eq!(of(vec![unwritten(), cut_off()]), (Some(Undecided), Exit::Failed));
        assert_eq!(of(vec![cut_off()]), (Some(Undecided), Exit::NoEvidence));
        assert_eq!(of(vec![requirement("a", Invalid)]), (Some(Invalid), Exit::NoEvidence));
        assert_eq!(of(vec![Reason::Interrupted { unbegun: Vec::new() }]), (Some(Met), Exit::Done));
        let none_asked = Verdict::of(vec![unwritten()], false);
        assert_eq!((none_asked.word, none_asked.exit()), (None, Exit::Failed));
    }

    #[test]
    fn nothing_strengthens_what_was_stored() {
        let stored = Verdict::of(vec![requirement("p/u", NotMet)], true);
        let damage = Reason::Unreadable { what: "0002.state.json".into() };
        let now = Verdict::of(vec![damage.clone()], true).after(&stored);
        assert_eq!((now.word, now.exit()), (Some(NotMet), Exit::NotMet));
        assert_eq!(now.reasons, [requirement("p/u", NotMet), damage.clone()]);
        let met = Verdict::of(Vec::new(), true);
        let now = Verdict::of(vec![damage], true).after(&met);
        assert_eq!((now.word, now.exit()), (Some(Undecided), Exit::NoEvidence));
        let undecided = Verdict::of(vec![requirement("p/u", Undecided)], true);
        let now = Verdict::of(Vec::new(), true).after(&undecided);
        assert_eq!((now.word, now.exit()), (Some(Undecided), Exit::NoEvidence));
    }

    #[test]
    fn of_two_verdicts_on_one_thing_the_graver_stands() {
        let (graver, weaker) = (requirement("p/u", NotMet), requirement("p/u", Undecided));
        for (stored, now) in [(&graver, &weaker), (&weaker, &graver)] {
            let stored = Verdict::of(vec![stored.clone()], true);
            let both = Verdict::of(vec![now.clone()], true).after(&stored);
            assert_eq!(both.reasons, std::slice::from_ref(&graver));
            assert_eq!((both.word, both.exit()), (Some(NotMet), Exit::NotMet));
        }
    }

    #[test]
    fn many_reasons_are_counted_and_the_gravest_kept() {
        let mut reasons: Vec<Reason> =
            (0..300).map(|k| requirement(&k.to_string(), Undecided)).collect();
        reasons.push(requirement("last", NotMet));
        let verdict = Verdict::of(reasons, true);
        assert_eq!((verdict.reasons.len(), verdict.more_reasons), (MOST_REASONS, 201));
        assert_eq!(verdict.reasons[0], requirement("last", NotMet));
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }

    #[test]
    fn a_command_decides_only_where_nothing_stands_against_it() {
        let violated =
            || Reason::StopAbove { series: "a".into(), latency: 2, limit: Some(1), seq: None };
        let met = Verdict::of(Vec::new(), true);
        let none_asked = Verdict::of(Vec::new(), false);
        let code = |verdict: &Verdict, code, by_itself| {
            verdict.exit_code(Some(CommandEnd { code, by_itself }))
        };
        assert_eq!((code(&met, 7, true), code(&none_asked, 137, true)), (7, 137));
        assert_eq!((code(&met, 143, false), code(&none_asked, 143, false)), (0, 0));
        let not_met = Verdict::of(vec![violated()], true);
        assert_eq!((code(&not_met, 7, true), code(&not_met, 143, false)), (3, 3));
        let nothing_found = Verdict::of(vec![failed()], false);
        assert_eq!((code(&nothing_found, 0, true), code(&nothing_found, 7, true)), (1, 7));
        assert_eq!(code(&Verdict::of(vec![failed()], true), 7, true), 1);
        assert_eq!(nothing_found.exit_code(None), 1);
    }
}
