//! A lab from its runs, without the file that describes it.

use super::cell::{CellResults, SeedRuns, evaluate_cell};
use super::work::work_figures;
use punctual_bundle::lab::{
    CellDocument, CellState, LabDocument, RunDocument, SCHEMA, SeedDocument, VIRTUAL_MACHINE,
};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::{Bundle, Outcome, Timebase};
use std::collections::BTreeMap;

/// A run of a lab.
pub struct StoredCell<'a> {
    pub cell: &'a str,
    /// Its seed, if the lab has several.
    pub seed: Option<u64>,
    /// The verdict of the run.
    pub verdict: Option<VerdictWord>,
    pub bundle: &'a Bundle,
}

/// The limits of such a document.
const LIMIT: &str = "These figures are from tables: which axes the lab has, which requirements it \
                     states, what was to be run and did not, and whether repetitions are equal is \
                     not in them. Single samples are not either.";

/// The cells in the order of their first runs; `None` without any.
pub fn of_runs(name: &str, runs: &[StoredCell<'_>]) -> Option<LabDocument> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.cell) {
            names.push(run.cell);
        }
    }
    let cells: Vec<CellDocument> = names
        .into_iter()
        .map(|cell| cell_document(cell, runs.iter().filter(|run| run.cell == cell).collect()))
        .collect();
    let mut seeds: Vec<u64> = runs.iter().filter_map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let created = runs.iter().map(|run| run.bundle.manifest.created).min()?;
    let repeat = cells.iter().flat_map(|cell| &cell.seeds).map(|seed| seed.runs.len()).max();
    Some(LabDocument {
        schema: SCHEMA.to_owned(),
        punctual: env!("CARGO_PKG_VERSION").to_owned(),
        name: name.to_owned(),
        created,
        finished: true,
        seeds,
        repeat: repeat.and_then(|repeat| u32::try_from(repeat).ok()).unwrap_or(1),
        limits: vec![LIMIT.to_owned()],
        verdict: VerdictWord::gravest_verdict(cells.iter().filter_map(|cell| cell.verdict)),
        cells,
        ..LabDocument::default()
    })
}

fn has_failed(run: &&StoredCell<'_>) -> bool {
    let ending = run.bundle.manifest.ending.as_ref();
    ending.is_some_and(|ending| matches!(ending.outcome, Outcome::Failed { .. }))
}

/// The first run of each seed counts, as in a lab.
fn cell_document(name: &str, runs: Vec<&StoredCell<'_>>) -> CellDocument {
    let mut by_seed: BTreeMap<Option<u64>, Vec<&StoredCell<'_>>> = BTreeMap::new();
    runs.iter().for_each(|run| by_seed.entry(run.seed).or_default().push(run));
    let firsts: Vec<SeedRuns<'_>> = by_seed
        .iter()
        .map(|(seed, runs)| SeedRuns { seed: *seed, bundle: runs[0].bundle })
        .collect();
    let CellResults { series, seeds: figures, .. } = evaluate_cell(&firsts);
    let run = |of: &&StoredCell<'_>| RunDocument {
        exit_code: of.bundle.manifest.ending.as_ref().map(|ending| ending.exit_code.into()),
        ..RunDocument::default()
    };
    let seeds = by_seed.iter().zip(figures).map(|((seed, runs), (series, _))| SeedDocument {
        seed: *seed,
        experiment: String::new(),
        runs: runs.iter().map(run).collect(),
        verdict: VerdictWord::gravest_verdict(runs.iter().filter_map(|run| run.verdict)),
        series,
        work: work_figures(runs[0].bundle),
    });
    let time = Timebase::common_timebase(runs.iter().map(|run| run.bundle.timebase()));
    CellDocument {
        name: name.to_owned(),
        target: match time {
            Timebase::Own => "host".to_owned(),
            time => format!("{VIRTUAL_MACHINE}, {}", time.target_suffix()),
        },
        state: if runs.iter().any(has_failed) { CellState::Failed } else { CellState::Done },
        verdict: VerdictWord::gravest_verdict(runs.iter().filter_map(|run| run.verdict)),
        series,
        seeds: seeds.collect(),
        ..CellDocument::default()
    }
}
