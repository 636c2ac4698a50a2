//! How what was asked for ends: the documented exit codes.

use crate::CommandEnd;
use crate::summary::VerdictWord;
use crate::verdict::Verdict;

/// The exit codes of every subcommand; bundles hold that of their run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed while running.
    Failed = 1,
    /// The request was wrong; nothing was started.
    Refused = 2,
    /// A stated requirement was not met.
    NotMet = 3,
    /// Measured, but the evidence cannot be used.
    NoEvidence = 4,
    /// To `git bisect run` alone: this commit cannot be tested.
    BisectSkip = 125,
    /// To `git bisect run` alone: end the bisection.
    BisectStop = 128,
}

impl Exit {
    /// What a verdict means by itself, without reasons of another kind: `None` is *none asked*.
    pub fn of_word(word: Option<VerdictWord>) -> Exit {
        match word {
            Some(VerdictWord::NotMet) => Exit::NotMet,
            Some(VerdictWord::Undecided | VerdictWord::Invalid) => Exit::NoEvidence,
            Some(VerdictWord::Met) | None => Exit::Done,
        }
    }

    /// The exit code where a command was measured or recorded: its own counts only where nothing
    /// was asked or all is met, and only if it ended by itself. Where nothing was asked, its own
    /// failure says more than ours.
    pub fn with_command(verdict: &Verdict, command: Option<CommandEnd>) -> u8 {
        let own = command.filter(|command| command.by_itself && command.code != 0);
        match (verdict.exit(), verdict.word, own) {
            (Exit::Done, _, Some(own)) | (Exit::Failed, None, Some(own)) => own.code,
            (exit, _, _) => exit as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{FailedPart, Reason};

    #[test]
    fn a_command_decides_only_where_nothing_stands_against_it() {
        let failed = || Reason::Failed { part: FailedPart::Run, why: "no cycles".into() };
        let violated =
            || Reason::StopAbove { series: "a".into(), latency: 2, limit: Some(1), seq: None };
        let met = Verdict::of(Vec::new(), true);
        let none_asked = Verdict::of(Vec::new(), false);
        let code = |verdict: &Verdict, code, by_itself| {
            Exit::with_command(verdict, Some(CommandEnd { code, by_itself }))
        };
        assert_eq!((code(&met, 7, true), code(&none_asked, 137, true)), (7, 137));
        assert_eq!((code(&met, 143, false), code(&none_asked, 143, false)), (0, 0));
        let not_met = Verdict::of(vec![violated()], true);
        assert_eq!((code(&not_met, 7, true), code(&not_met, 143, false)), (3, 3));
        let nothing_found = Verdict::of(vec![failed()], false);
        assert_eq!((code(&nothing_found, 0, true), code(&nothing_found, 7, true)), (1, 7));
        assert_eq!(code(&Verdict::of(vec![failed()], true), 7, true), 1);
        assert_eq!(Exit::with_command(&nothing_found, None), 1);
    }
}
