//! What was required of the figure, held against each block.

use super::request::Purpose;
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{BlockRecord, TunedRequirement};
use punctual_core::SeriesRequirement;

/// In how many blocks it held. `recommended` says whether a set is recommended: then the blocks
/// with it decide, else those of the untouched machine.
pub fn required(
    requirement: &SeriesRequirement,
    blocks: &[BlockRecord],
    recommended: bool,
) -> TunedRequirement {
    let bound = requirement.requirement.bound as f64;
    let count = |is_it: &dyn Fn(&BlockRecord) -> bool| -> [u64; 2] {
        let figures: Vec<f64> =
            blocks.iter().filter(|block| is_it(block)).filter_map(|block| block.figure).collect();
        let holds = |figure: &&f64| requirement.requirement.comparison.holds(**figure, bound);
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
const SET: &str = Purpose::Confirm.word();
