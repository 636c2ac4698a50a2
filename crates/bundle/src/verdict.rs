//! The verdict of a run: one word, and every reason for it with its place.
//!
//! `stats::verdict` computes it from the bundle's content and the end of a run stores it. Every
//! display of an answer shows it.

use crate::baseline::{LeapingFigure, WorseFigure, default_true};
use crate::exit::{CommandEnd, Exit, ProgramEnd};
use crate::judged::{ProofWord, VerdictWord};
use serde::{Deserialize, Serialize};

/// The maximum number of reasons kept, the gravest first; the rest is counted.
const MOST_REASONS: usize = 100;

/// A word and its reasons.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The combined verdict; `None` if nothing was requested.
    #[serde(rename = "verdict", default)]
    pub word: Option<VerdictWord>,
    /// Why it is not *met*, or why the run ended; the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// The number of reasons beyond those kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_reasons: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A reason for a verdict, with its place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// A stated requirement is not met, undecided or invalid.
    Requirement {
        /// `phase/series`; only the phase if no series was found for it.
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
        /// Why it is undecided or invalid, or the extent of the violation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A figure is worse than in earlier runs.
    Worse(WorseFigure),
    /// Too few earlier runs to judge.
    FewRuns {
        runs: u64,
        /// How many more are needed.
        missing: u64,
        /// Whether that makes the run *undecided*.
        #[serde(default = "default_true")]
        required: bool,
    },
    /// A figure is far outside all earlier runs, in too few runs to decide.
    Leap(LeapingFigure),
    /// The requested comparison with earlier runs was not possible.
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
        /// The index of the sample in its series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    Failed {
        part: FailedPart,
        why: String,
    },
    /// Some output could not be written: the disk was full, a file could not be created.
    Unwritten {
        why: String,
    },
    /// The run was not measured as requested.
    NotAsAsked {
        proof: ProofWord,
        /// The subject of the proof: `run`, a phase, `phase/series`, `phase/load`.
        place: String,
        why: String,
    },
    /// A part of the bundle is missing or cannot be read.
    Unreadable {
        what: String,
    },
    /// A bound caused omissions.
    LeftOut {
        place: String,
        left_out: LeftOut,
        /// The requirements that may be affected.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requirements: Vec<String>,
    },
    /// A program failed or ended early.
    ProgramEnded(ProgramEnd),
    /// More than 1 % of the events of a recording was lost.
    EventsLost {
        lost: u64,
        of: u64,
    },
    /// The user ended the run, or a configured end condition did.
    Interrupted {
        /// The phases that never began.
        unbegun: Vec<Unbegun>,
    },
    /// The end is missing: the run was killed, the machine failed, it is still running, or the
    /// trace it was made from breaks off.
    CutOff {
        /// The phases that had not begun.
        unbegun: Vec<Unbegun>,
        /// Where the source breaks off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// The failed component.
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
    /// Its requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
}

/// The omissions of a bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftOut {
    /// The kind: `threads`, `series`, `records`.
    pub what: LeftOutKind,
    /// The bound.
    pub bound: u64,
    /// Records seen but not kept.
    pub records: u64,
}

/// The kind of items that exceeded the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutKind {
    Threads,
    Series,
    Records,
}

impl Reason {
    /// The verdict that this reason causes; `None` if it is only reported.
    pub fn caused_verdict(&self) -> Option<VerdictWord> {
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

    /// The exit code that this reason causes alone, and its rank among others.
    fn exit_rank(&self) -> (u8, Exit) {
        match (self, self.caused_verdict()) {
            (Reason::Failed { .. }, _) => (4, Exit::Failed),
            (_, Some(VerdictWord::NotMet)) => (3, Exit::NotMet),
            (Reason::Unwritten { .. }, _) => (2, Exit::Failed),
            (_, Some(VerdictWord::Invalid | VerdictWord::Undecided)) => (1, Exit::NoEvidence),
            // All measurements remain valid.
            (Reason::ProgramEnded(_), _) => (1, Exit::Failed),
            (_, Some(VerdictWord::Met) | None) => (0, Exit::Done),
        }
    }

    /// Whether both have the same subject: the graver of two verdicts is kept.
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
    /// The verdict from these reasons: *met* if something was requested and no reason contradicts
    /// it.
    pub fn from_reasons(mut reasons: Vec<Reason>, asked: bool) -> Verdict {
        let gravity = |reason: &Reason| reason.caused_verdict().map(VerdictWord::gravity_rank);
        reasons.sort_by_key(|reason| std::cmp::Reverse((reason.exit_rank().0, gravity(reason))));
        let weights = reasons.iter().filter_map(Reason::caused_verdict);
        let word = asked.then(|| VerdictWord::gravest_verdict(weights).unwrap_or(VerdictWord::Met));
        let more_reasons = reasons.len().saturating_sub(MOST_REASONS) as u64;
        reasons.truncate(MOST_REASONS);
        Verdict { word, reasons, more_reasons }
    }

    /// Combines the stored verdict of the ended run with one computed now from what is still
    /// readable. The stored word never becomes better, and its reasons stay.
    pub fn merge_stored(self, stored: &Verdict) -> Verdict {
        let mut reasons = self.reasons;
        for old in &stored.reasons {
            match reasons.iter_mut().find(|new| new.is_about_same(old)) {
                Some(new) if old.exit_rank().0 > new.exit_rank().0 => new.clone_from(old),
                Some(_) => {}
                None => reasons.push(old.clone()),
            }
        }
        let is_asked = self.word.is_some() || stored.word.is_some();
        let more_reasons = self.more_reasons.max(stored.more_reasons);
        let mut merged = Verdict::from_reasons(reasons, is_asked);
        merged.more_reasons = merged.more_reasons.max(more_reasons);
        merged.word = VerdictWord::gravest_verdict(
            [merged.word, stored.word, self.word].into_iter().flatten(),
        );
        merged
    }

    /// The exit code of the gravest reason, or of the word without one.
    pub fn to_exit(&self) -> Exit {
        let of_reasons = self.reasons.iter().map(Reason::exit_rank).max_by_key(|(rank, _)| *rank);
        match of_reasons {
            Some((rank, exit)) if rank > 0 => exit,
            _ => Exit::of_word(self.word),
        }
    }

    /// The exit code if a command was measured or recorded. The command's own code counts only if
    /// it ended by itself, and only if nothing was requested or everything is met. It then precedes
    /// a failure of ours.
    pub fn exit_code(&self, command: Option<CommandEnd>) -> u8 {
        let own_end = command.filter(|command| command.by_itself && command.code != 0);
        match (self.to_exit(), self.word, own_end) {
            (Exit::Done, _, Some(own)) | (Exit::Failed | Exit::NoEvidence, None, Some(own)) => {
                own.code
            }
            (Exit::Failed, Some(VerdictWord::Met), Some(own)) => own.code,
            (exit, _, _) => exit as u8,
        }
    }

    /// Reasons that only inform: the comparison with earlier runs.
    pub fn remark_reasons(&self) -> impl Iterator<Item = &Reason> {
        let is_remark = |reason: &&Reason| match reason {
            Reason::FewRuns { required, .. } => !required,
            reason => matches!(reason, Reason::Leap(_)),
        };
        self.reasons.iter().filter(is_remark)
    }

    /// The reasons that affect the word or the exit code.
    pub fn adverse_reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(|reason| reason.exit_rank().0 > 0)
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
    fn the_gravest_reason_decides_the_verdict() {
        let of = |reasons: Vec<Reason>| {
            let verdict = Verdict::from_reasons(reasons, true);
            (verdict.word, verdict.to_exit())
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
        let none_asked = Verdict::from_reasons(vec![unwritten()], false);
        assert_eq!((none_asked.word, none_asked.to_exit()), (None, Exit::Failed));
    }

    #[test]
    fn a_stored_verdict_never_improves() {
        let stored = Verdict::from_reasons(vec![requirement("p/u", NotMet)], true);
        let damage = Reason::Unreadable { what: "0002.state.json".into() };
        let now = Verdict::from_reasons(vec![damage.clone()], true).merge_stored(&stored);
        assert_eq!((now.word, now.to_exit()), (Some(NotMet), Exit::NotMet));
        assert_eq!(now.reasons, [requirement("p/u", NotMet), damage.clone()]);
        let met = Verdict::from_reasons(Vec::new(), true);
        let now = Verdict::from_reasons(vec![damage], true).merge_stored(&met);
        assert_eq!((now.word, now.to_exit()), (Some(Undecided), Exit::NoEvidence));
        let undecided = Verdict::from_reasons(vec![requirement("p/u", Undecided)], true);
        let now = Verdict::from_reasons(Vec::new(), true).merge_stored(&undecided);
        assert_eq!((now.word, now.to_exit()), (Some(Undecided), Exit::NoEvidence));
    }

    #[test]
    fn of_two_verdicts_on_one_thing_the_graver_stands() {
        let (graver, weaker) = (requirement("p/u", NotMet), requirement("p/u", Undecided));
        for (stored, now) in [(&graver, &weaker), (&weaker, &graver)] {
            let stored = Verdict::from_reasons(vec![stored.clone()], true);
            let both = Verdict::from_reasons(vec![now.clone()], true).merge_stored(&stored);
            assert_eq!(both.reasons, std::slice::from_ref(&graver));
            assert_eq!((both.word, both.to_exit()), (Some(NotMet), Exit::NotMet));
        }
    }

    #[test]
    fn reasons_beyond_the_limit_are_counted_and_the_gravest_kept() {
        let mut reasons: Vec<Reason> =
            (0..300).map(|k| requirement(&k.to_string(), Undecided)).collect();
        reasons.push(requirement("last", NotMet));
        let verdict = Verdict::from_reasons(reasons, true);
        assert_eq!((verdict.reasons.len(), verdict.more_reasons), (MOST_REASONS, 201));
        assert_eq!(verdict.reasons[0], requirement("last", NotMet));
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }

    #[test]
    fn the_commands_exit_code_is_used_only_if_the_verdict_allows_it() {
        let violated =
            || Reason::StopAbove { series: "a".into(), latency: 2, limit: Some(1), seq: None };
        let met = Verdict::from_reasons(Vec::new(), true);
        let none_asked = Verdict::from_reasons(Vec::new(), false);
        let code = |verdict: &Verdict, code, by_itself| {
            verdict.exit_code(Some(CommandEnd { code, by_itself }))
        };
        assert_eq!((code(&met, 7, true), code(&none_asked, 137, true)), (7, 137));
        assert_eq!((code(&met, 143, false), code(&none_asked, 143, false)), (0, 0));
        let not_met = Verdict::from_reasons(vec![violated()], true);
        assert_eq!((code(&not_met, 7, true), code(&not_met, 143, false)), (3, 3));
        let nothing_found = Verdict::from_reasons(vec![failed()], false);
        assert_eq!((code(&nothing_found, 0, true), code(&nothing_found, 7, true)), (1, 7));
        assert_eq!(code(&Verdict::from_reasons(vec![failed()], true), 7, true), 1);
        assert_eq!(nothing_found.exit_code(None), 1);
    }
}
