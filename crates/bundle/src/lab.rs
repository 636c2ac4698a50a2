//! `lab.json`: the cells of a lab with their runs and results. Times are in ns; absent figures are
//! `null`, never 0. Paths are relative to the lab's directory. docs/reference/lab.md describes it
//! for readers in other languages.

use crate::answer::AnsweredDelay;
use crate::load::LoadWork;
use crate::summary::{RequirementSummary, VerdictWord};
use crate::{Exit, Member, Timebase};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The name and version of this shape. Additions keep it; changes raise it.
pub const SCHEMA: &str = "punctual-lab/1";
/// The prefix of a cell's `target` that is a virtual machine; its timebase follows.
pub const VIRTUAL_MACHINE: &str = "virtual machine";
pub const FILE: &str = "lab.json";

/// `lab.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct LabDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The version of punctual that wrote it.
    pub punctual: String,
    pub name: String,
    /// When it was first run, UTC.
    pub created: jiff::Timestamp,
    /// Whether every cell was run to its end or failed.
    pub finished: bool,
    pub axes: Vec<AxisDocument>,
    /// The seeds; empty if the experiment's own was used.
    pub seeds: Vec<u64>,
    /// Runs of each cell per seed.
    pub repeat: u32,
    /// The requirements on every cell.
    pub requirements: Vec<LabRequirement>,
    /// The limits of the figures, in sentences.
    pub limits: Vec<String>,
    /// Published figures to compare with.
    pub published: Vec<PublishedDocument>,
    pub cells: Vec<CellDocument>,
    /// All verdicts together; `null` without requirements.
    pub verdict: Option<VerdictWord>,
}

impl LabDocument {
    /// The timebase of the figures of all cells.
    pub fn timebase(&self) -> Timebase {
        Timebase::common_timebase(self.cells.iter().map(CellDocument::timebase))
    }

    /// The exit of a command about it. An unmet requirement outweighs a failure: it is known for
    /// sure.
    pub fn to_exit(&self) -> Exit {
        match Exit::of_word(self.verdict) {
            Exit::NotMet => Exit::NotMet,
            _ if self.cells.iter().any(CellDocument::has_failed) || !self.finished => Exit::Failed,
            exit => exit,
        }
    }

    /// The series of all cells, each once, in order: phase and name.
    pub fn all_series(&self) -> Vec<(String, String)> {
        let mut series_names: Vec<(String, String)> = Vec::new();
        for series in self.cells.iter().flat_map(|cell| &cell.series) {
            let name = (series.figures.phase.clone(), series.figures.series.clone());
            if !series_names.contains(&name) {
                series_names.push(name);
            }
        }
        series_names
    }
}

/// A varied property.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AxisDocument {
    /// Its name in the lab file.
    pub name: String,
    pub values: Vec<String>,
}

/// A requirement on the series of a measure, in every cell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LabRequirement {
    /// The measure; `null`: all.
    pub measure: Option<String>,
    pub requirement: String,
}

/// One combination of the axes' values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct CellDocument {
    /// The name of its directory below `cells`.
    pub name: String,
    /// The value of each axis.
    pub axes: BTreeMap<String, String>,
    /// The target in words: `virtual machine, virtual time`.
    pub target: String,
    pub state: CellState,
    /// The bundle of its worst seed (first repetition); `null` until one exists.
    pub bundle: Option<String>,
    /// The digest of all its samples: of its only seed, or over the digests of all seeds in order.
    pub digest: Option<String>,
    /// The same of each repetition in order.
    pub repeats: Vec<Option<String>>,
    /// Whether all repetitions are equal, sample for sample; `null` if not requested or not to be
    /// expected.
    pub equal: Option<bool>,
    /// The verdict over its requirements; `null` without any.
    pub verdict: Option<VerdictWord>,
    /// Its series over all seeds.
    pub series: Vec<CellSeries>,
    /// Its worst sample; `null` until one exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstCellSample>,
    /// One entry for each seed.
    pub seeds: Vec<SeedDocument>,
    /// Failures, in sentences.
    pub trouble: Vec<String>,
}

impl CellDocument {
    /// Whether one of its runs failed, or its repetitions differ where they must not.
    pub fn has_failed(&self) -> bool {
        self.state == CellState::Failed || self.equal == Some(false)
    }

    /// The timebase of its figures.
    pub fn timebase(&self) -> Timebase {
        match self.target.starts_with(VIRTUAL_MACHINE) {
            true => Timebase::of_machine(&self.target),
            false => Timebase::Own,
        }
    }
}

/// The worst sample of a cell and its cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct WorstCellSample {
    /// `phase/series`.
    pub series: String,
    /// In ns.
    pub latency: i64,
    /// The seed of its run; `null`: that of the experiment.
    pub seed: Option<u64>,
    /// The bundle of its run.
    pub bundle: String,
    /// The cause of most of its time; `null` if unknown.
    pub cause: Option<AnsweredDelay>,
    /// Whether the cause was counted instruction by instruction (`exact.json` of its bundle) rather
    /// than derived from kernel events.
    #[serde(default)]
    pub exact: bool,
    /// The calls around it, outermost first; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Why the cause is unknown, if an attempt was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<String>,
}

/// The progress of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// Some runs are still missing.
    #[default]
    Waiting,
    Done,
    /// At least one run failed.
    Failed,
}

/// A series of a cell, over all its seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct CellSeries {
    /// All samples of all seeds together (first repetitions).
    #[serde(flatten)]
    pub figures: SeriesFigures,
    /// The fullest bins of the histogram.
    pub modes: Vec<i64>,
    /// The seed with the largest latency; `null` without seeds.
    pub worst_seed: Option<u64>,
    /// The smallest of the seeds' maxima.
    pub best_max: Option<i64>,
    /// Its requirements, each with the worst verdict over all seeds.
    pub requirements: Vec<RequirementSummary>,
    /// The margins of equivalence of its plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalence: Vec<String>,
}

/// The figures of one series of a cell, over all its runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct SeriesFigures {
    /// Its name in the experiment.
    pub phase: String,
    pub series: String,
    /// The measure that it belongs to.
    pub measure: String,
    pub count: u64,
    /// Lost samples; `null` if unknown.
    pub lost: Option<u64>,
    /// Missed periods; `null` if unknown.
    pub overruns: Option<u64>,
    pub min: Option<i64>,
    /// In ns.
    pub mean: Option<f64>,
    /// In ns.
    pub median: Option<i64>,
    pub max: Option<i64>,
    /// Standard deviation of the samples as a population.
    pub stddev: Option<f64>,
    /// The percentiles that the count supports, by their number as text: `"99.9"`.
    pub percentiles: BTreeMap<String, i64>,
}

/// A cell with a seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct SeedDocument {
    /// The seed; `null`: that of the experiment.
    pub seed: Option<u64>,
    /// Its experiment file, relative to the directory of the lab.
    pub experiment: String,
    pub runs: Vec<RunDocument>,
    pub verdict: Option<VerdictWord>,
    pub series: Vec<SeriesFigures>,
    /// The work of its loads, and the kernel's context switches meanwhile; empty if no load counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<WorkFigures>,
}

/// The work of a load in a run of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkFigures {
    /// Its phase in the experiment.
    pub phase: String,
    /// The load; empty: what the kernel counts for all.
    pub load: String,
    #[serde(flatten)]
    pub work: LoadWork,
}

/// One run of a cell, with one seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct RunDocument {
    /// Its bundle; `null` without one.
    pub bundle: Option<String>,
    /// The digest of all its samples.
    pub digest: Option<String>,
    /// The time it took by this machine's clock, in ns.
    pub took: Option<i64>,
    /// The exit code of `punctual run`.
    pub exit_code: Option<i32>,
    /// Why there is no bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Published figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedDocument {
    pub title: String,
    /// The hardware, kernel and method.
    pub setup: String,
    /// In the order of the publication.
    pub rows: Vec<PublishedRow>,
    /// Its conclusions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PublishedClaim>,
}

/// A conclusion of a publication: a figure with one value of an axis is a multiple of the figure
/// without it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedClaim {
    pub label: String,
    pub published: String,
    pub axis: String,
    pub value: String,
    /// The values compared with.
    pub against: Vec<String>,
    /// The cells here that it is judged by: for each axis named, one of these values.
    pub cells: BTreeMap<String, Vec<String>>,
    /// The name of the series, which includes those below it; empty: all.
    pub series: String,
    /// `max`, `p50`, ….
    pub figure: String,
    /// The published ratio of that figure: with the value over without it.
    pub ratio: f64,
}

/// Whether a cell has, for each axis named, one of these values.
fn is_chosen(cells: &BTreeMap<String, Vec<String>>, cell: &CellDocument) -> bool {
    cells
        .iter()
        .all(|(axis, values)| cell.axes.get(axis).is_some_and(|value| values.contains(value)))
}

/// Whether a series has this name or is below it; an empty name covers all.
fn is_covered(name: &str, series: &str) -> bool {
    let below = series.strip_prefix(name);
    name.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl PublishedClaim {
    /// Whether this cell is its counterpart.
    pub fn is_of(&self, cell: &CellDocument) -> bool {
        is_chosen(&self.cells, cell)
    }
    pub fn is_about_series(&self, series: &str) -> bool {
        is_covered(&self.series, series)
    }
}

/// A row of published figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedRow {
    pub label: String,
    /// The cells here to compare with: for each axis named, one of these values.
    pub cells: BTreeMap<String, Vec<String>>,
    /// The name of the series, which includes those below it; empty: all.
    pub series: String,
    pub min: Option<i64>,
    /// In ns.
    pub mean: Option<i64>,
    pub max: Option<i64>,
    /// The limits of the figures.
    pub note: String,
}

impl PublishedRow {
    /// Whether this cell is its counterpart.
    pub fn is_of(&self, cell: &CellDocument) -> bool {
        is_chosen(&self.cells, cell)
    }
    pub fn is_about_series(&self, series: &str) -> bool {
        is_covered(&self.series, series)
    }
}

/// Reads the document of a lab's directory.
///
/// # Errors
/// A message, if the document is missing, damaged or of a newer version.
pub fn read(directory: &Path) -> Result<LabDocument, String> {
    let member = Member::from_root(directory).join(FILE);
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", member.display());
    let document: LabDocument = member.read_json().map_err(|why| why.to_string())?;
    match document.schema == SCHEMA {
        true => Ok(document),
        false => Err(cannot(&format_args!(
            "it is of the version `{}`, and this punctual reads {SCHEMA}",
            document.schema
        ))),
    }
}
