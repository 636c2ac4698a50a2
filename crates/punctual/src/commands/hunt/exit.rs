//! The exit codes of a search.

use crate::exit::{Ending, Exit, Failure};

/// The exit codes of `git bisect run` (git-bisect(1)): 1 bad, 125 cannot be tested, 128 stop.
pub fn for_bisect(ended: Ending) -> Ending {
    let mapped = |exit| match exit {
        Exit::Done => Exit::Done,
        Exit::NotMet => Exit::Failed,
        Exit::NoEvidence => Exit::BisectSkip,
        _ => Exit::BisectStop,
    };
    match ended {
        Ok(exit) => Ok(mapped(exit)),
        Err(failure) => Err(Failure { exit: mapped(failure.exit), ..failure }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_mapped_for_git_bisect() {
        let codes = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence]
            .map(|exit| for_bisect(Ok(exit)).map(|exit| exit as u8).ok());
        assert_eq!(codes, [Some(0), Some(128), Some(128), Some(1), Some(125)]);
        let failed = for_bisect(Err(Failure::no_evidence("it does not boot")));
        assert_eq!(failed.err().map(|failure| failure.exit as u8), Some(125));
    }
}
