//! The requirement on the figure, checked for each block.

use super::request::BlockPurpose;
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{BlockRecord, TunedRequirement};
use punctual_core::SeriesRequirement;

/// The number of blocks in which it held. With `recommended`, the blocks with the set decide, else
/// those of the untouched machine.
pub fn tuned_requirement(
    requirement: &SeriesRequirement,
    blocks: &[BlockRecord],
    recommended: bool,
) -> TunedRequirement {
    let bound = requirement.requirement.bound as f64;
    let count = |is_it: &dyn Fn(&BlockRecord) -> bool| -> [u64; 2] {
        let figures: Vec<f64> =
            blocks.iter().filter(|block| is_it(block)).filter_map(|block| block.figure).collect();
        let holds =
            |figure: &&f64| requirement.requirement.comparison.is_satisfied(**figure, bound);
        [figures.iter().filter(holds).count() as u64, figures.len() as u64]
    };
    let untouched = count(&|block| block.on.is_empty());
    let with_set = count(&|block| recommended && block.purpose == SET && !block.on.is_empty());
    let [held, all] = if recommended { with_set } else { untouched };
    TunedRequirement {
        requirement: requirement.to_string(),
        untouched,
        recommended: with_set,
        verdict: match all {
            0 => VerdictWord::Undecided,
            _ if held == all => VerdictWord::Met,
            _ => VerdictWord::NotMet,
        },
    }
}

/// Blocks of the last comparison.
const SET: &str = BlockPurpose::Confirm.word();

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Nanos;

    #[test]
    fn one_block_that_violates_the_requirement_decides() {
        let block = |purpose: &str, on: &[&str], figure: f64| BlockRecord {
            number: 1,
            purpose: purpose.to_owned(),
            on: on.iter().map(|name| (*name).to_owned()).collect(),
            figure: Some(figure),
            why: None,
            elapsed: Nanos::ZERO,
        };
        let requirement = "p99 < 80us".parse().expect("a requirement");
        let judged = |last: f64, recommended| {
            let blocks = [
                block("control", &[], 60e3),
                block("screen", &["a"], 99e3),
                block("confirm", &["a"], 50e3),
                block("confirm", &[], last),
            ];
            tuned_requirement(&requirement, &blocks, recommended)
        };
        assert_eq!(
            (judged(75e3, false).untouched, judged(75e3, false).verdict),
            ([2, 2], VerdictWord::Met)
        );
        assert_eq!(
            (judged(90e3, false).untouched, judged(90e3, false).verdict),
            ([1, 2], VerdictWord::NotMet)
        );
        assert_eq!(
            (judged(90e3, true).recommended, judged(90e3, true).verdict),
            ([1, 1], VerdictWord::Met)
        );
    }
}
