//! The results of a lab: the document of its directory.

use super::attempt::{AttemptResult, AttemptedRuns, stored_outcome};
use super::directory::LabDirectory;
use super::jobs::{LabJob, PlannedLab};
use super::worst;
use punctual_bundle::Bundle;
use punctual_bundle::lab::{
    AxisDocument, CellDocument, CellState, LabDocument, LabRequirement, PublishedClaim,
    PublishedDocument, PublishedRow, RunDocument, SCHEMA, SeedDocument,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Nanos, encode_hex};
use punctual_plan::lab::{Lab, PublishedTable};
use punctual_session::exit::Failure;
use punctual_stats::divergence::first_divergence;
use punctual_stats::lab::{
    CellResults, SeedRuns, add_requirements, evaluate_cell as measured, work_figures,
};
use punctual_stats::summarize_bundle;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The document, with the figures of every cell that has results.
pub fn collect_document(
    planned: &PlannedLab,
    jobs: &[LabJob],
    ran: &AttemptedRuns,
    directory: &LabDirectory,
) -> Result<LabDocument, Failure> {
    let requirements = lab_requirements(&planned.lab);
    let cell = |number| cell_document(planned, number, jobs, ran, directory.path(), &requirements);
    let cells: Vec<CellDocument> = (0..planned.cells.len()).map(cell).collect::<Result<_, _>>()?;
    let mut limits: Vec<String> = Vec::new();
    for limit in planned.cells.iter().filter_map(|cell| cell.limit) {
        if !limits.iter().any(|known| known == limit) {
            limits.push(limit.to_owned());
        }
    }
    let created = punctual_bundle::lab::read(directory.path())
        .map_or_else(|_| jiff::Timestamp::now(), |old| old.created);
    Ok(LabDocument {
        schema: SCHEMA.to_owned(),
        punctual: env!("CARGO_PKG_VERSION").to_owned(),
        name: planned.lab.name.clone(),
        created,
        finished: cells.iter().all(|cell| cell.state != CellState::Waiting),
        axes: planned.lab.axes.iter().map(axis_document).collect(),
        seeds: planned.seeds.iter().copied().flatten().collect(),
        repeat: planned.repeat,
        requirements,
        limits,
        published: planned.lab.published.iter().map(published_document).collect(),
        verdict: VerdictWord::gravest_verdict(cells.iter().filter_map(|cell| cell.verdict)),
        cells,
    })
}

/// The stored outcome of each run, whoever started it.
pub fn what_is_there(
    planned: &PlannedLab,
    jobs: &[LabJob],
    directory: &LabDirectory,
) -> AttemptedRuns {
    let done = jobs.iter().map(|job| {
        stored_outcome(directory, &planned.run_name(job), &directory.sum_of_inputs(planned, job))
    });
    AttemptedRuns { done: done.collect(), interrupted: false }
}

/// The document of a lab before the first run: only its cells.
pub fn nothing_yet(
    planned: &PlannedLab,
    jobs: &[LabJob],
    directory: &LabDirectory,
) -> Result<LabDocument, Failure> {
    let ran = AttemptedRuns { done: vec![AttemptResult::Waiting; jobs.len()], interrupted: false };
    collect_document(planned, jobs, &ran, directory)
}

fn axis_document(axis: &punctual_plan::lab::Axis) -> AxisDocument {
    AxisDocument {
        name: axis.name.clone(),
        values: axis.value_labels().map(str::to_owned).collect(),
    }
}

fn lab_requirements(lab: &Lab) -> Vec<LabRequirement> {
    let all_requirements = lab.requirements.iter();
    all_requirements
        .map(|r| LabRequirement {
            measure: r.measure.clone(),
            requirement: r.requirement.value.to_string(),
        })
        .collect()
}

fn published_document(published: &PublishedTable) -> PublishedDocument {
    let rows = published.rows.iter().map(|row| PublishedRow {
        label: row.label.clone(),
        cells: row.cells.0.iter().cloned().collect(),
        series: row.series.clone(),
        min: row.min.map(Nanos::ns),
        mean: row.mean.map(Nanos::ns),
        max: row.max.map(Nanos::ns),
        note: row.note.clone(),
    });
    let claims = published.claims.iter().filter_map(|claim| {
        let (axis, value) = claim.with.0.first()?;
        let against = claim.against.0.iter().find(|(of, _)| of == axis);
        let [with, without] = claim.ratio;
        Some(PublishedClaim {
            label: claim.label.clone(),
            published: claim.published.clone(),
            axis: axis.clone(),
            value: value.first()?.clone(),
            against: against.map(|(_, values)| values.clone()).unwrap_or_default(),
            cells: claim.cells.0.iter().cloned().collect(),
            series: claim.series.clone(),
            figure: claim.figure.clone(),
            ratio: with as f64 / without as f64,
        })
    });
    PublishedDocument {
        title: published.title.clone(),
        setup: published.setup.clone(),
        rows: rows.collect(),
        claims: claims.collect(),
    }
}

fn cell_document(
    planned: &PlannedLab,
    number: usize,
    jobs: &[LabJob],
    ran: &AttemptedRuns,
    directory: &Path,
    requirements: &[LabRequirement],
) -> Result<CellDocument, Failure> {
    let planned_cell = &planned.cells[number];
    let mut seeds: Vec<SeedDocument> = Vec::new();
    let mut firsts: Vec<(usize, Bundle)> = Vec::new();
    let (mut equal, mut trouble) = (true, Vec::new());
    for seed in 0..planned.seeds.len() {
        let mut of_seed: Vec<(&LabJob, &AttemptResult)> = jobs
            .iter()
            .zip(&ran.done)
            .filter(|(job, _)| job.cell == number && job.seed == seed)
            .collect();
        of_seed.sort_by_key(|(job, _)| job.repeat);
        let opened: Vec<(RunDocument, Option<Bundle>)> =
            of_seed.iter().map(|(job, done)| open_run(planned, job, done, directory)).collect();
        let digests: Vec<Option<&String>> =
            opened.iter().map(|(run, _)| run.digest.as_ref()).collect();
        if planned.repeats_exactly(number)
            && digests.iter().flatten().any(|digest| Some(*digest) != digests[0])
        {
            equal = false;
            trouble.extend(where_they_part(&opened, planned.seeds[seed]));
        }
        trouble.extend(opened.iter().filter_map(|(run, _)| run.failure.clone()));
        seeds.push(SeedDocument {
            seed: planned.seeds[seed],
            experiment: planned
                .run_name(&LabJob { cell: number, seed, repeat: 0 })
                .experiment_path(),
            runs: opened.iter().map(|(run, _)| run.clone()).collect(),
            verdict: None,
            series: Vec::new(),
            work: Vec::new(),
        });
        if let Some((_, Some(bundle))) = opened.into_iter().next() {
            firsts.push((seed, bundle));
        }
    }
    firsts.iter_mut().for_each(|(_, bundle)| add_requirements(bundle, requirements));
    let runs: Vec<SeedRuns> = firsts
        .iter()
        .map(|(seed, bundle)| SeedRuns { seed: planned.seeds[*seed], bundle })
        .collect();
    let CellResults { series, seeds: figures, worst: worst_of, verdict } = measured(&runs);
    for ((seed, bundle), (figures, verdict)) in firsts.iter().zip(figures) {
        seeds[*seed].series = figures;
        seeds[*seed].work = work_figures(bundle);
        seeds[*seed].verdict = verdict;
    }
    let runs = || seeds.iter().flat_map(|seed| &seed.runs);
    let state = match () {
        () if runs().any(|run| run.failure.is_some()) => CellState::Failed,
        () if runs().any(|run| run.bundle.is_none()) => CellState::Waiting,
        () => CellState::Done,
    };
    let worst_run = firsts.get(worst_of).and_then(|(seed, bundle)| {
        let name = seeds[*seed].runs.first()?.bundle.clone()?;
        Some((bundle, name, planned.seeds[*seed]))
    });
    let repeats: Vec<Option<String>> =
        (0..planned.repeat as usize).map(|k| digest_of(&seeds, k)).collect();
    Ok(CellDocument {
        name: planned_cell.cell.name.clone(),
        axes: planned_cell.cell.axes.iter().cloned().collect::<BTreeMap<_, _>>(),
        target: planned_cell.place.clone(),
        state,
        worst: worst_run
            .as_ref()
            .and_then(|(run, name, seed)| worst::worst_sample(run, name, *seed)),
        bundle: worst_run.map(|(_, name, _)| name),
        digest: repeats.first().cloned().flatten(),
        equal: (planned.repeat > 1 && planned.repeats_exactly(number) && state == CellState::Done)
            .then_some(equal),
        repeats,
        // Runs that are missing may have missed the requirement.
        verdict: match (verdict, state) {
            (Some(VerdictWord::Met), CellState::Waiting | CellState::Failed) => {
                Some(VerdictWord::Undecided)
            }
            (None, CellState::Waiting | CellState::Failed) if !requirements.is_empty() => {
                Some(VerdictWord::Undecided)
            }
            (verdict, _) => verdict,
        },
        series,
        seeds,
        trouble,
    })
}

fn open_run(
    planned: &PlannedLab,
    job: &LabJob,
    done: &AttemptResult,
    directory: &Path,
) -> (RunDocument, Option<Bundle>) {
    let waiting =
        RunDocument { bundle: None, digest: None, took: None, exit_code: None, failure: None };
    match done {
        AttemptResult::Waiting => (waiting, None),
        AttemptResult::Failed { why, exit_code, took } => {
            let name = planned.describe_run(job);
            let failure = Some(format!("{name} failed, {why}"));
            (RunDocument { took: Some(took.ns()), exit_code: *exit_code, failure, ..waiting }, None)
        }
        AttemptResult::Whole(stamp) => {
            let name = planned.run_name(job).bundle_path();
            match Bundle::open(&directory.join(&name)) {
                Ok(bundle) => {
                    let run = RunDocument {
                        bundle: Some(name),
                        digest: summarize_bundle(&bundle).digest,
                        took: Some(stamp.took),
                        exit_code: Some(stamp.exit_code),
                        failure: None,
                    };
                    (run, Some(bundle))
                }
                Err(why) => (RunDocument { failure: Some(why.to_string()), ..waiting }, None),
            }
        }
    }
}

fn where_they_part(opened: &[(RunDocument, Option<Bundle>)], seed: Option<u64>) -> Vec<String> {
    let Some((first, Some(bundle))) = opened.first() else { return Vec::new() };
    let of_seed = seed.map_or(String::new(), |seed| format!(" of seed {seed}"));
    let differs = opened
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, (run, _))| run.digest.is_some() && run.digest != first.digest);
    differs
        .filter_map(|(k, (_, other))| {
            let place = match first_divergence(bundle, other.as_ref()?) {
                Ok(Some(divergence)) => divergence.to_string(),
                Ok(None) => "in data that was not kept".to_owned(),
                Err(why) => why.to_string(),
            };
            Some(format!("runs 1 and {}{of_seed} differ: {place}", k + 1))
        })
        .collect()
}

/// The digest of a repetition over all seeds; with a single seed, its own.
fn digest_of(seeds: &[SeedDocument], repeat: usize) -> Option<String> {
    let digests: Option<Vec<&String>> =
        seeds.iter().map(|seed| seed.runs.get(repeat)?.digest.as_ref()).collect();
    match digests?.as_slice() {
        [one] => Some((*one).clone()),
        many => {
            let mut sum = Sha256::new();
            many.iter().for_each(|digest| sum.update(digest.as_bytes()));
            Some(encode_hex(&sum.finalize()))
        }
    }
}
