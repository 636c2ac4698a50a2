//! Equivalence of a series on two sides, by the margins that both plans state.

use super::GateResult;
use super::index::Indexed;
use super::run::SideRuns;
use crate::dispersion::{block_length, mean, variance_inflation};
use crate::effect::{EffectEstimate, Tested};
use punctual_bundle::Series;
use punctual_bundle::meta::EQUIVALENCE;
use punctual_bundle::summary::VerdictWord;
use punctual_core::{BlockFigure, Equivalence};

/// The margins of a series, by the plans of all its runs; `Err`: why none apply although a plan
/// states some.
fn planned_margins(sides: [(&Indexed, &str); 2]) -> Result<Vec<Equivalence>, String> {
    let stated = sides.iter().flat_map(|(side, name)| {
        let of_plan = |series: &'_ Series| series.meta.details.get(EQUIVALENCE).cloned();
        side.find_series(name).map(move |(_, series)| of_plan(series).unwrap_or_default())
    });
    let mut stated: Vec<String> = stated.collect();
    stated.dedup();
    match stated.as_slice() {
        [] => Ok(Vec::new()),
        [none] if none.is_empty() => Ok(Vec::new()),
        [one] => one.split(", ").map(|text| text.parse().map_err(describe_refusal)).collect(),
        _ => Err("the plans state different margins: none was set before both sides were measured"
            .to_owned()),
    }
}

fn describe_refusal(why: punctual_core::equivalence::EquivalenceError) -> String {
    format!("the margin in the plan is none: {why}")
}

/// The outcome of each margin; empty if no plan states one: nothing is then called equivalent.
pub(super) fn judge_margins(
    inputs: [(&Indexed, &str); 2],
    [a, b]: [&SideRuns; 2],
    side: usize,
    unequal: Option<&str>,
) -> Vec<GateResult> {
    let result = |gate: String, verdict, bound, margin, reason: String| {
        let series = inputs[0].1.to_owned();
        GateResult { gate, series, side, verdict, bound, margin, reason }
    };
    let undecided =
        |gate: String, why: &str| result(gate, VerdictWord::Undecided, None, None, why.to_owned());
    let margins = match planned_margins(inputs) {
        Ok(margins) => margins,
        Err(why) => return vec![undecided("equivalent".to_owned(), &why)],
    };
    let one = |of: &Equivalence| {
        let gate = format!("equivalent {of}");
        match (unequal, of_figure(of, a, b)) {
            (Some(why), _) => undecided(gate, why),
            (None, Err(why)) => undecided(gate, why),
            (None, Ok(tested)) => {
                let Tested { interval: [low, high], margin, verdict, .. } = tested;
                let farthest = if low.abs() > high.abs() { low } else { high };
                result(gate, verdict, Some(farthest), Some(margin), format_reason(&tested))
            }
        }
    };
    margins.iter().map(one).collect()
}

/// From blocks of time with one run per side, else from runs.
fn of_figure(of: &Equivalence, a: &SideRuns, b: &SideRuns) -> Result<Tested, &'static str> {
    let sides = [a, b];
    let single = sides.iter().all(|side| side.runs.len() == 1);
    let values = sides.map(|side| match (single, side.runs.as_slice()) {
        (true, [run]) => block_length(run.samples.len()).map(|length| {
            run.samples.chunks_exact(length).map(|block| block_figure(of.figure, block)).collect()
        }),
        (_, runs) => {
            let figures = runs.iter().map(|run| {
                let rank = run.ladder.count().div_ceil(2).max(1);
                match of.figure {
                    BlockFigure::Median => run.ladder.at_rank(rank).map(|(_, high)| high as f64),
                    BlockFigure::Worst => run.max.map(|max| max as f64),
                }
            });
            figures.collect::<Option<Vec<f64>>>()
        }
    });
    let [Some(a), Some(b)] = values else {
        return Err("the order of its samples is unknown: give several runs for each side");
    };
    // Runs are independent of their neighbours; blocks of time may not be.
    let inflations = [&a, &b].map(|values| if single { variance_inflation(values) } else { 1.0 });
    let estimate = EffectEstimate::of_sides([&a, &b], inflations)
        .ok_or("two runs of each side at least have a spread")?;
    Ok(estimate.test_equivalence(of.margin.margin_in_ns(mean(&a))))
}

fn block_figure(of: BlockFigure, block: &[i64]) -> f64 {
    match of {
        BlockFigure::Worst => block.iter().copied().max().unwrap_or_default() as f64,
        BlockFigure::Median => {
            let mut sorted = block.to_vec();
            let middle = sorted.len().div_ceil(2).saturating_sub(1);
            *sorted.select_nth_unstable(middle).1 as f64
        }
    }
}

fn format_reason(tested: &Tested) -> String {
    let outcome = match tested.verdict {
        VerdictWord::Met => "the 90 % interval of the difference is within the margin",
        VerdictWord::NotMet => "the difference is larger than the margin",
        _ => "the 90 % interval of the difference is not within the margin",
    };
    let [low, high] = tested.interval.map(|end| end / 1_000.0);
    let needed = match (tested.verdict, tested.needed) {
        (VerdictWord::Undecided, Some(needed)) if needed > tested.count as u64 => {
            format!("; with this spread about {needed} a side would show it")
        }
        _ => String::new(),
    };
    format!("{outcome}: {low:+.3} to {high:+.3} µs, of {} a side{needed}; it reaches", tested.count)
}

#[cfg(test)]
mod tests {
    use super::super::run::ComparedRun;
    use super::*;
    use crate::Random;

    fn side(random: &mut Random, runs: usize, shift: i64) -> SideRuns {
        let mut run = || {
            let samples: Vec<i64> = (0..4_800)
                .map(|_| shift + 10_000 + (random.next_unit() * 2_000.0) as i64)
                .collect();
            ComparedRun::of_samples(samples)
        };
        SideRuns::new((0..runs).map(|_| run()).collect())
    }

    #[test]
    fn equivalence_is_tested_by_blocks_of_one_run_or_by_several_runs() {
        let mut random = Random::from_seed(21);
        for runs in [1, 4] {
            let (a, b, c) = (
                side(&mut random, runs, 0),
                side(&mut random, runs, 0),
                side(&mut random, runs, 3_000),
            );
            let verdict = |text: &str, b: &SideRuns| {
                of_figure(&text.parse().unwrap(), &a, b).unwrap().verdict
            };
            assert_eq!(verdict("median:5%", &b), VerdictWord::Met, "{runs}");
            assert_eq!(verdict("block-max:1us", &b), VerdictWord::Met, "{runs}");
            assert_eq!(verdict("median:5%", &c), VerdictWord::NotMet, "{runs}");
            assert_eq!(verdict("block-max:1us", &c), VerdictWord::NotMet, "{runs}");
            // Alike, but a margin below their spread cannot be shown.
            assert_eq!(verdict("median:1ns", &b), VerdictWord::Undecided, "{runs}");
        }
    }

    #[test]
    fn too_few_samples_or_an_unpaired_single_run_are_not_tested() {
        let mut random = Random::from_seed(22);
        let (one, two) = (side(&mut random, 1, 0), side(&mut random, 2, 0));
        let few = SideRuns::new(vec![ComparedRun::of_samples(vec![1; 20])]);
        let margin = "median:5%".parse().unwrap();
        assert!(of_figure(&margin, &few, &few).unwrap_err().contains("order"));
        assert!(of_figure(&margin, &one, &two).unwrap_err().contains("two runs"));
    }
}
