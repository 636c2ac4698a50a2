//! Computes the figures of a cell from its bundles.

use crate::summary::summarize_bundle;
use punctual_bundle::lab::{CellSeries, LabRequirement, SeriesFigures};
use punctual_bundle::meta::EQUIVALENCE;
use punctual_bundle::summary::{
    PhaseSummary, RequirementSummary, SeriesSummary, Summary, VerdictWord,
};
use punctual_bundle::{Bundle, SeriesMeta};

/// The first repetition of a cell with one seed.
pub struct SeedRuns<'a> {
    /// The seed; `None`: that of the experiment.
    pub seed: Option<u64>,
    /// Its bundle, with the lab's requirements ([`add_requirements`]).
    pub bundle: &'a Bundle,
}

/// The results of a cell.
pub struct CellResults {
    pub series: Vec<CellSeries>,
    /// The figures of each seed, in order.
    pub seeds: Vec<(Vec<SeriesFigures>, Option<VerdictWord>)>,
    /// The index of the seed with the largest latency of all series.
    pub worst: usize,
    /// The requirements over all seeds.
    pub verdict: Option<VerdictWord>,
}

/// Adds the lab's requirements to each series of a bundle.
pub fn add_requirements(bundle: &mut Bundle, requirements: &[LabRequirement]) {
    for series in bundle.phases.iter_mut().flat_map(|phase| &mut phase.series) {
        let SeriesMeta { name, measure, requirements: own, .. } = &mut series.meta;
        for requirement in requirements {
            let of_measure = |requested: &String| {
                requested == measure
                    || requested == name
                    || name.strip_prefix(requested).is_some_and(|rest| rest.starts_with('/'))
            };
            let applies = requirement.measure.as_ref().is_none_or(of_measure);
            if applies && !own.contains(&requirement.requirement) {
                own.push(requirement.requirement.clone());
            }
        }
    }
}

/// Adds the samples of another bundle of the same cell to this one, series by series; a series that
/// only one of them has is unchanged.
pub fn pool_samples(into: &mut Bundle, other: &Bundle) {
    for phase in &mut into.phases {
        let Some(same) = other.phases.iter().find(|p| p.meta.name == phase.meta.name) else {
            continue;
        };
        for series in &mut phase.series {
            if let Some(same) = same.series.iter().find(|s| s.meta.name == series.meta.name) {
                series.state.data.add(&same.state.data);
            }
        }
    }
}

/// The figures over all seeds and of each seed. Seeds have the same experiment, so their series are
/// the same.
pub fn evaluate_cell(seeds: &[SeedRuns]) -> CellResults {
    let summaries: Vec<Summary> = seeds.iter().map(|seed| summarize_bundle(seed.bundle)).collect();
    let all_series = |summary: &Summary| -> Vec<SeriesFigures> {
        summary
            .phases
            .iter()
            .flat_map(|phase| phase.series.iter().map(|series| series_figures(phase, series)))
            .collect()
    };
    let by_seed: Vec<Vec<SeriesFigures>> = summaries.iter().map(all_series).collect();
    let worst_of = |figures: &[SeriesFigures]| figures.iter().filter_map(|series| series.max).max();
    // The first of equal ones.
    let worst = (0..seeds.len()).rev().max_by_key(|k| worst_of(&by_seed[*k])).unwrap_or(0);
    let mut pooled = seeds.first().map(|seed| seed.bundle.clone());
    if let Some(pooled) = &mut pooled {
        seeds[1..].iter().for_each(|seed| pool_samples(pooled, seed.bundle));
    }
    let pooled = pooled.map(|bundle| summarize_bundle(&bundle));
    let series = pooled.iter().flat_map(|summary| &summary.phases).flat_map(|phase| {
        phase.series.iter().map(|series| {
            over_seeds(series_figures(phase, series), series, seeds, &summaries, &by_seed)
        })
    });
    let verdicts = summaries.iter().map(|summary| summary.verdict.word);
    CellResults {
        series: series.collect(),
        worst,
        verdict: VerdictWord::gravest_verdict(verdicts.clone().flatten()),
        seeds: by_seed.into_iter().zip(verdicts).collect(),
    }
}

fn over_seeds(
    figures: SeriesFigures,
    pooled: &SeriesSummary,
    seeds: &[SeedRuns],
    summaries: &[Summary],
    by_seed: &[Vec<SeriesFigures>],
) -> CellSeries {
    let is_same = |phase: &str, series: &str| phase == figures.phase && series == figures.series;
    let maxima: Vec<(usize, i64)> = by_seed
        .iter()
        .enumerate()
        .filter_map(|(k, all)| {
            all.iter().find(|one| is_same(&one.phase, &one.series))?.max.map(|max| (k, max))
        })
        .collect();
    let worst = maxima.iter().rev().max_by_key(|(_, max)| *max);
    let requirements_of = |summary: &'_ Summary| -> Vec<RequirementSummary> {
        let same = summary
            .phases
            .iter()
            .flat_map(|phase| phase.series.iter().map(move |series| (phase, series)));
        let same = same.filter(|(phase, series)| is_same(&phase.name, &series.name));
        same.flat_map(|(_, series)| series.requirements.clone()).collect()
    };
    let mut requirements: Vec<RequirementSummary> = Vec::new();
    for requirement in summaries.iter().flat_map(requirements_of) {
        match requirements.iter_mut().find(|known| known.requirement == requirement.requirement) {
            Some(known) if requirement.verdict.gravity_rank() > known.verdict.gravity_rank() => {
                *known = requirement
            }
            Some(known)
                if requirement.verdict == known.verdict && requirement.figure > known.figure =>
            {
                *known = requirement
            }
            Some(_) => {}
            None => requirements.push(requirement),
        }
    }
    let same = seeds.iter().flat_map(|seed| &seed.bundle.phases);
    let mut same = same.filter(|phase| phase.meta.name == figures.phase).flat_map(|p| &p.series);
    let meta = same.find(|series| series.meta.name == figures.series).map(|series| &series.meta);
    let margins = meta.and_then(|meta| meta.details.get(EQUIVALENCE));
    CellSeries {
        equivalence: margins
            .map(|margins| margins.split(", ").map(str::to_owned).collect())
            .unwrap_or_default(),
        modes: pooled.modes.clone(),
        worst_seed: worst.and_then(|(k, _)| seeds[*k].seed),
        best_max: maxima.iter().map(|(_, max)| *max).min(),
        requirements,
        figures,
    }
}

/// The figures of a series that a lab shows.
pub(crate) fn series_figures(phase: &PhaseSummary, series: &SeriesSummary) -> SeriesFigures {
    SeriesFigures {
        phase: phase.name.clone(),
        series: series.name.clone(),
        measure: series.measure.clone(),
        count: series.count,
        lost: series.lost,
        overruns: series.overruns,
        min: series.min,
        mean: series.mean,
        median: series.median,
        max: series.max,
        stddev: series.stddev,
        percentiles: series.percentiles.clone(),
    }
}
