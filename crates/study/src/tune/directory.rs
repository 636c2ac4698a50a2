//! The directory of a tuning: the request, each block with its figure, and the findings. A tuning
//! that was killed resumes from it as if uninterrupted.

use super::reboot_plan::RebootPlan;
use super::setting::Setting;
use crate::store::Store;
use punctual_bundle::Member;
use punctual_bundle::tune::{BlockRecord, NotTried, SCHEMA, TuningDocument};
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::messages::shown;
use punctual_stats::tune::{BlockRequest, MeasuredBlock, TuneStep, Tuning, TuningOptions};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The experiment that each block runs.
pub const EXPERIMENT: &str = "experiment.toml";
pub const DOCUMENT: &str = "tuning.json";
const REQUEST: &str = "request.json";
const BLOCKS: &str = "blocks.jsonl";
const LOCK: &str = "tuning.lock";
const RUNS: &str = "runs";
/// Bounds on the time that the command of the cost is run: at least the shortest, and no further
/// run begins after the longest.
const SHORTEST_COST: Nanos = Nanos::SECOND;
const LONGEST_COST: Nanos = Nanos::from_secs(30);
/// The version of [`TuningSpec`].
const SPEC: u32 = 1;

/// The request of a tuning, and the machine's state when it began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TuningSpec {
    /// The version of this file.
    pub version: u32,
    pub experiment: String,
    /// The figure, as `p99.9`.
    pub figure: String,
    /// The requirement on the figure.
    pub require: Option<String>,
    /// The smallest effect to detect, as a factor.
    pub smallest: f64,
    /// How long the tuning may take.
    pub within: Nanos,
    /// How long a block measures.
    pub block: Nanos,
    /// The command whose runs per second show the cost of the settings.
    #[serde(default)]
    pub cost: Option<Vec<String>>,
    /// The virtual machine that boots for each block, as `vm:6.12-rt`; none: this machine.
    #[serde(default)]
    pub guest: Option<String>,
    /// How this machine boots for each block, if it does.
    #[serde(default)]
    pub reboots: Option<RebootPlan>,
    pub seed: u64,
    /// The release of the kernel, if known.
    pub kernel: Option<String>,
    /// The settings that are tried.
    pub settings: Vec<Setting>,
    pub left_out: Vec<NotTried>,
}

impl TuningSpec {
    /// The version of a new tuning; the caller fills in the request.
    pub fn version() -> u32 {
        SPEC
    }

    /// The options of the experiment.
    pub fn options(&self) -> TuningOptions {
        let usual = TuningOptions::default();
        // An effect that counts as none must be smaller than one to detect.
        let margin = usual.margin.min(1.0 + (self.smallest - 1.0) / 2.0);
        TuningOptions {
            smallest: self.smallest,
            margin,
            within: self.within,
            block: self.reboots.as_ref().map_or(self.block, |plan| plan.observation(self.block)),
            cost: self.cost.as_ref().map_or(Nanos::ZERO, |_| self.cost_time()),
            seed: self.seed,
            ..usual
        }
    }

    /// How long the command of the cost runs beside a block: as long as it measures, within bounds.
    pub(crate) fn cost_time(&self) -> Nanos {
        self.block.clamp(SHORTEST_COST, LONGEST_COST)
    }

    /// The words of the kernel's command line of the settings that are on.
    pub(crate) fn boot_words(&self, on: &[bool]) -> Vec<&str> {
        let set = self.settings.iter().zip(on).filter(|(_, on)| **on);
        set.map(|(setting, _)| setting.boot.as_str()).filter(|words| !words.is_empty()).collect()
    }

    /// The words for the settings with these names.
    pub fn words_of(&self, names: &[String]) -> String {
        let on = self.settings.iter().map(|setting| names.contains(&setting.name));
        self.boot_words(&on.collect::<Vec<bool>>()).join(" ")
    }

    /// The names of the settings that are on.
    pub fn names(&self, on: &[bool]) -> Vec<String> {
        let set = self.settings.iter().zip(on).filter(|(_, on)| **on);
        set.map(|(setting, _)| setting.name.clone()).collect()
    }
}

/// The directory, exclusive to this process.
pub struct TuneDirectory(Store);

fn cannot_use(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("cannot use {}: {why}", shown(path)))
}

impl TuneDirectory {
    /// Creates one with the experiment and the request.
    ///
    /// # Errors
    /// The directory exists already, or cannot be created.
    pub fn create(
        path: &Path,
        experiment: &[u8],
        spec: &TuningSpec,
    ) -> Result<TuneDirectory, Failure> {
        if path.exists() {
            return Err(Failure::refused(format!(
                "{0} exists: go on with it by `punctual tune --resume {0}`, or name another with \
                 --output",
                shown(path)
            )));
        }
        fs::create_dir_all(path.join(RUNS)).map_err(|why| cannot_use(path, &why))?;
        let directory = TuneDirectory::lock(path)?;
        directory.0.replace(EXPERIMENT, experiment)?;
        directory.0.write(REQUEST, spec)?;
        Ok(directory)
    }

    /// Opens an existing one, with its request.
    ///
    /// # Errors
    /// There is no such directory, it is of another version, or another process uses it.
    pub fn open(path: &Path) -> Result<(TuneDirectory, TuningSpec), Failure> {
        let spec = read_spec(path)?;
        Ok((TuneDirectory::lock(path)?, spec))
    }

    fn lock(path: &Path) -> Result<TuneDirectory, Failure> {
        Store::hold(path, LOCK, "another punctual is tuning in it")
            .map(TuneDirectory)
            .map_err(|why| cannot_use(path, &why))
    }

    pub fn experiment(&self) -> PathBuf {
        self.0.path().join(EXPERIMENT)
    }

    pub fn runs(&self) -> PathBuf {
        self.0.path().join(RUNS)
    }

    /// Its files.
    pub fn store(&self) -> &Store {
        &self.0
    }

    /// Stores a block: it has reached the disk when this returns.
    ///
    /// # Errors
    /// The block cannot be written.
    pub fn keep(&self, block: &BlockRecord) -> Result<(), Failure> {
        self.0.append(BLOCKS, block)
    }

    /// Stores the findings so far.
    ///
    /// # Errors
    /// The document cannot be written.
    pub fn write(&self, document: &TuningDocument) -> Result<(), Failure> {
        self.0.write(DOCUMENT, document)
    }

    /// The measured blocks, and the tuning after them. A truncated line is removed: its block is
    /// measured again.
    ///
    /// # Errors
    /// The blocks do not match the request.
    pub fn replay(&self, spec: &TuningSpec) -> Result<(Vec<BlockRecord>, Tuning), Failure> {
        let cannot = |why: &dyn std::fmt::Display| cannot_use(self.0.path(), why);
        let blocks: Vec<BlockRecord> = self.0.records(BLOCKS).map_err(|why| cannot(&why))?;
        let candidates = Setting::candidates(&spec.settings);
        let mut tuning = Tuning::new(candidates, spec.options());
        for block in &blocks {
            let is_next = match tuning.next() {
                TuneStep::Measure(next) => is_of(block, next, spec),
                TuneStep::Done(_) => false,
            };
            if !is_next {
                let why = format!("block {} is not one that was asked for", block.number);
                return Err(cannot(&why));
            }
            let BlockRecord { figure, throughput, elapsed, .. } = *block;
            tuning.record(MeasuredBlock { figure, throughput, elapsed });
        }
        Ok((blocks, tuning))
    }
}

fn is_of(block: &BlockRecord, request: &BlockRequest, spec: &TuningSpec) -> bool {
    block.purpose == request.purpose.word() && block.on == spec.names(&request.on)
}

/// Whether the tuning in a directory boots this machine.
///
/// # Errors
/// There is no tuning's directory.
pub fn is_across_reboots(path: &Path) -> Result<bool, Failure> {
    Ok(read_spec(path)?.reboots.is_some())
}

fn read_spec(path: &Path) -> Result<TuningSpec, Failure> {
    let member = Member::root(path).join(REQUEST);
    let spec: TuningSpec = member
        .read_json()
        .map_err(|why| Failure::refused(format!("{} holds no tuning: {why}", shown(path))))?;
    match spec.version == SPEC {
        true => Ok(spec),
        false => Err(cannot_use(path, &"it was made by another version of punctual")),
    }
}

/// The findings of a tuning, from its directory.
///
/// # Errors
/// The directory has no findings yet, or they are of another version.
pub fn found(path: &Path) -> Result<TuningDocument, Failure> {
    let member = Member::root(path).join(DOCUMENT);
    let document: TuningDocument = member.read_json().map_err(|why| {
        Failure::refused(format!("{} holds nothing that was found: {why}", shown(path)))
    })?;
    match document.schema == SCHEMA {
        true => Ok(document),
        false => Err(cannot_use(path, &format!("its format is {}", document.schema))),
    }
}
