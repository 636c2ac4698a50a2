//! The requirement on the figure, checked for each block.

use super::request::BlockPurpose;
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{BlockRecord, TunedRequirement};
use punctual_core::SeriesRequirement;

/// The number of blocks in which it held. With `recommended`, the blocks with the set decide, else
/// those of the untouched machine.
pub fn required(
    requirement: &SeriesRequirement,
    blocks: &[BlockRecord],
    recommended: bool,
) -> TunedRequirement {
    let bound = requirement.requirement.bound as f64;
    let count = |is_it: &dyn Fn(&BlockRecord) -> bool| -> [u64; 2] {
        // A mean of several blocks would hide one in which it did not hold.
        let figure = |block: &BlockRecord| block.worst.or(block.figure);
        let figures: Vec<f64> =
            blocks.iter().filter(|block| is_it(block)).filter_map(figure).collect();
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
const SET: &str = BlockPurpose::Confirm.word();

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Nanos;

    #[test]
    fn one_block_that_violates_the_requirement_decides_despite_the_mean() {
        let block = |figure: f64, worst: Option<f64>| BlockRecord {
            number: 1,
            purpose: "pilot".to_owned(),
            on: Vec::new(),
            figure: Some(figure),
            worst,
            why: None,
            throughput: None,
            no_throughput: None,
            elapsed: Nanos::ZERO,
        };
        let requirement = "p99 < 80us".parse().expect("a requirement");
        let of = |worst| required(&requirement, &[block(70e3, worst), block(60e3, None)], false);
        assert_eq!((of(None).untouched, of(None).verdict), ([2, 2], VerdictWord::Met));
        assert_eq!((of(Some(75e3)).untouched, of(Some(75e3)).verdict), ([2, 2], VerdictWord::Met));
        assert_eq!(of(Some(90e3)).untouched, [1, 2]);
        assert_eq!(of(Some(90e3)).verdict, VerdictWord::NotMet);
    }
}
