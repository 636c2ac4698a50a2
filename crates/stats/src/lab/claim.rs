//! The claims of a publication on two values of an axis, judged by the cells here.

use super::effect::{Contrast, estimate_contrast, find_partner, log_ratios};
use punctual_bundle::lab::{LabDocument, PublishedClaim};
use punctual_core::published::Trend;

/// A claim, with the result of the cells.
#[derive(Clone, PartialEq, Debug)]
pub struct JudgedClaim<'a> {
    pub claim: &'a PublishedClaim,
    /// The ratio of the figure here: with the value over without it; `None` without counterpart
    /// cells.
    pub contrast: Option<Contrast>,
    pub trend: Trend,
}

/// The claims of all publications of a lab, in order.
pub fn judge_claims(lab: &LabDocument) -> Vec<JudgedClaim<'_>> {
    lab.published.iter().flat_map(|of| &of.claims).map(|claim| judge_claim(lab, claim)).collect()
}

fn judge_claim<'a>(lab: &LabDocument, claim: &'a PublishedClaim) -> JudgedClaim<'a> {
    let mut pairs = Vec::new();
    let with = lab.cells.iter().filter(|cell| {
        claim.is_of(cell) && cell.axes.get(&claim.axis).is_some_and(|own| *own == claim.value)
    });
    for cell in with {
        let reference_cells =
            claim.against.iter().filter_map(|one| find_partner(lab, cell, &claim.axis, one));
        for without in reference_cells {
            let names =
                lab.all_series().into_iter().filter(|(_, name)| claim.is_about_series(name));
            pairs.extend(names.map(|series| log_ratios(without, cell, &series, &claim.figure)));
        }
    }
    pairs.retain(|seeds: &Vec<f64>| !seeds.is_empty());
    let contrast = estimate_contrast(&pairs);
    let interval = contrast.and_then(|contrast| contrast.interval);
    let trend =
        interval.map_or(Trend::Undecided, |interval| Trend::from_interval(interval, claim.ratio));
    JudgedClaim { claim, contrast, trend }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lab_of;

    fn lab(standard: [i64; 3], rt: [i64; 3], ratio: f64) -> LabDocument {
        let mut lab = lab_of("preemption", &[("none", standard.to_vec()), ("rt", rt.to_vec())]);
        lab.published = vec![punctual_bundle::lab::PublishedDocument {
            title: "t".into(),
            setup: "s".into(),
            rows: Vec::new(),
            claims: vec![PublishedClaim {
                label: "worst switch".into(),
                published: "p".into(),
                axis: "preemption".into(),
                value: "rt".into(),
                against: vec!["none".into()],
                cells: Default::default(),
                series: String::new(),
                figure: "max".into(),
                ratio,
            }],
        }];
        lab
    }

    /// A claim of −99 % and one of −10 %, on machines that show it, less of it, nothing, or the
    /// opposite.
    #[test]
    fn a_claim_is_reproduced_weaker_absent_reversed_or_undecided() {
        let judge = |standard, rt, ratio| judge_claims(&lab(standard, rt, ratio))[0].trend;
        let standard = [2_000_000, 2_100_000, 1_900_000];
        assert_eq!(judge(standard, [9_900, 9_800, 10_000], 0.01), Trend::Reproduced);
        assert_eq!(judge(standard, [1_000_000, 1_050_000, 980_000], 0.01), Trend::Weaker);
        assert_eq!(judge(standard, [2_010_000, 2_050_000, 1_930_000], 0.01), Trend::Absent);
        assert_eq!(judge(standard, [3_900_000, 4_200_000, 3_900_000], 0.01), Trend::Reversed);
        assert_eq!(judge(standard, [3_900_000, 4_200_000, 3_900_000], 0.9), Trend::Reversed);
        assert_eq!(judge(standard, [900_000, 2_900_000, 1_500_000], 0.9), Trend::Undecided);
        // Missing cells show nothing.
        let mut none = lab(standard, standard, 0.9);
        none.cells.truncate(1);
        assert_eq!(judge_claims(&none)[0].trend, Trend::Undecided);
    }

    #[test]
    fn without_a_margin_nothing_is_equivalent() {
        let mut lab =
            lab([2_000_000, 2_100_000, 1_900_000], [2_010_000, 2_090_000, 1_920_000], 0.9);
        let effects = super::super::axis_effects;
        assert_eq!(effects(&lab)[0].margins, [], "no margin: nothing is equivalent");
        let mut verdict = |margin: &str| {
            for series in lab.cells.iter_mut().flat_map(|cell| &mut cell.series) {
                series.equivalence = vec![margin.to_owned()];
            }
            effects(&lab)[0].margins[0].1.clone().unwrap().verdict.json_word()
        };
        assert_eq!(verdict("block-max:5%"), "met");
        assert_eq!(verdict("block-max:1%"), "undecided");
        assert_eq!(verdict("block-max:1ns"), "undecided");
    }
}
