//! Runs of Parquet tables, converted to bundles for commands that read bundles.

use crate::exit::Failure;
use punctual_bundle::Bundle;
use punctual_bundle::summary::VerdictWord;
use std::path::Path;
use tempfile::TempDir;

/// Runs, and the directory of their bundles.
pub struct StoredRuns {
    _place: TempDir,
    /// In starting order; at least one.
    pub runs: Vec<StoredRun>,
}

/// A run of the tables.
pub struct StoredRun {
    /// The id of the run.
    pub id: String,
    /// The cell of its lab.
    pub cell: Option<String>,
    /// The seed, if there were several.
    pub seed: Option<u64>,
    /// The verdict of the run.
    pub verdict: Option<VerdictWord>,
    /// The data of the run in the tables.
    pub bundle: Bundle,
}

impl StoredRuns {
    /// The runs of a selection given in words.
    #[cfg(feature = "parquet")]
    pub fn select(tables: &Path, words: &str) -> Result<StoredRuns, Failure> {
        let selection = words.parse().map_err(|why: String| Failure::refused(why))?;
        StoredRuns::read(tables, &selection, words)
    }

    /// The runs of a lab.
    #[cfg(feature = "parquet")]
    pub fn of_lab(tables: &Path, lab: &str) -> Result<StoredRuns, Failure> {
        let selection = punctual_report::export::fleet::RunSelection::of_lab(lab);
        StoredRuns::read(tables, &selection, &format!("lab={lab}"))
    }

    #[cfg(feature = "parquet")]
    fn read(
        tables: &Path,
        selection: &punctual_report::export::fleet::RunSelection,
        words: &str,
    ) -> Result<StoredRuns, Failure> {
        let found = punctual_report::export::fleet::select_runs(tables, selection);
        let found = found.map_err(Failure::refused)?;
        if found.is_empty() {
            let tables = punctual_session::messages::display_path(tables);
            return Err(Failure::refused(format!("{tables}: no run has {words}")));
        }
        let place = TempDir::new().map_err(|why| {
            Failure::failed(format!("cannot create a directory for the bundles: {why}"))
        })?;
        let make = |(number, run): (usize, &punctual_report::export::fleet::TableRun)| {
            let directory = place.path().join(number.to_string());
            let bundle = run.write(&directory, punctual_stats::summarize_bundle);
            Ok(StoredRun {
                id: run.id().to_owned(),
                cell: run.lab_cell().map(str::to_owned),
                seed: run.seed(),
                verdict: run.verdict(),
                bundle: bundle.map_err(Failure::failed)?,
            })
        };
        let runs = found.iter().enumerate().map(make).collect::<Result<_, Failure>>()?;
        Ok(StoredRuns { _place: place, runs })
    }

    /// This build cannot read them.
    #[cfg(not(feature = "parquet"))]
    pub fn select(_: &Path, _: &str) -> Result<StoredRuns, Failure> {
        Err(Failure::refused(punctual_report::export::WITHOUT_PARQUET))
    }

    /// This build cannot read them.
    #[cfg(not(feature = "parquet"))]
    pub fn of_lab(_: &Path, _: &str) -> Result<StoredRuns, Failure> {
        Err(Failure::refused(punctual_report::export::WITHOUT_PARQUET))
    }
}
