//! The directory of a tuning: the request, each block with its figure, and the findings. A tuning
//! that was killed resumes from it as if uninterrupted.

use super::setting::Setting;
use crate::store::Store;
use punctual_bundle::Member;
use punctual_bundle::tune::{BlockRecord, NotTried, SCHEMA, TuningDocument};
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::messages::display_path;
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
/// The version of [`TuningSpec`].
const SPEC: u32 = 2;

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
    /// How long the tuning may take.
    pub within: Nanos,
    /// How long a block measures.
    pub block: Nanos,
    /// The virtual machine that boots for each block, as `vm:6.12-rt`; none: this machine.
    #[serde(default)]
    pub guest: Option<String>,
    pub seed: u64,
    /// The release of the kernel, if known.
    pub kernel: Option<String>,
    /// The settings that are tried.
    pub settings: Vec<Setting>,
    pub left_out: Vec<NotTried>,
}

impl TuningSpec {
    /// The version of a new tuning; the caller fills in the request.
    pub(crate) fn current_version() -> u32 {
        SPEC
    }

    /// The options of the experiment.
    pub fn tuning_options(&self) -> TuningOptions {
        TuningOptions {
            within: self.within,
            block: self.block,
            seed: self.seed,
            ..TuningOptions::default()
        }
    }

    /// The words of the kernel's command line of the settings that are on.
    pub(crate) fn boot_words(&self, on: &[bool]) -> Vec<&str> {
        let set = self.settings.iter().zip(on).filter(|(_, on)| **on);
        set.map(|(setting, _)| setting.boot.as_str()).filter(|words| !words.is_empty()).collect()
    }

    /// The names of the settings that are on.
    pub(crate) fn enabled_names(&self, on: &[bool]) -> Vec<String> {
        let set = self.settings.iter().zip(on).filter(|(_, on)| **on);
        set.map(|(setting, _)| setting.name.clone()).collect()
    }
}

/// The directory, exclusive to this process.
pub struct TuneDirectory(Store);

fn cannot_use(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("cannot use {}: {why}", display_path(path)))
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
                display_path(path)
            )));
        }
        fs::create_dir_all(path.join(RUNS)).map_err(|why| cannot_use(path, &why))?;
        let directory = TuneDirectory::open_locked(path)?;
        directory.0.replace_file(EXPERIMENT, experiment)?;
        directory.0.write(REQUEST, spec)?;
        Ok(directory)
    }

    /// Opens an existing one, with its request.
    ///
    /// # Errors
    /// There is no such directory, it is of another version, or another process uses it.
    pub fn open(path: &Path) -> Result<(TuneDirectory, TuningSpec), Failure> {
        let spec = read_spec(path)?;
        Ok((TuneDirectory::open_locked(path)?, spec))
    }

    fn open_locked(path: &Path) -> Result<TuneDirectory, Failure> {
        Store::open_locked(path, LOCK, "another punctual is tuning in it")
            .map(TuneDirectory)
            .map_err(|why| cannot_use(path, &why))
    }

    pub(crate) fn experiment_path(&self) -> PathBuf {
        self.0.path().join(EXPERIMENT)
    }

    pub(crate) fn runs_directory(&self) -> PathBuf {
        self.0.path().join(RUNS)
    }

    /// Stores a block: it has reached the disk when this returns.
    ///
    /// # Errors
    /// The block cannot be written.
    pub fn append_block(&self, block: &BlockRecord) -> Result<(), Failure> {
        self.0.append_record(BLOCKS, block)
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
    pub(crate) fn replay_blocks(
        &self,
        spec: &TuningSpec,
    ) -> Result<(Vec<BlockRecord>, Tuning), Failure> {
        let cannot = |why: &dyn std::fmt::Display| cannot_use(self.0.path(), why);
        let blocks: Vec<BlockRecord> = self.0.read_records(BLOCKS).map_err(|why| cannot(&why))?;
        let candidates = Setting::to_candidates(&spec.settings);
        let mut tuning = Tuning::new(candidates, spec.tuning_options());
        for block in &blocks {
            let is_next = match tuning.next() {
                TuneStep::Measure(next) => is_of(block, next, spec),
                TuneStep::Done(_) => false,
            };
            if !is_next {
                let message = format!("block {} is not one that was asked for", block.number);
                return Err(cannot(&message));
            }
            let BlockRecord { figure, elapsed, .. } = *block;
            tuning.record_block(MeasuredBlock { figure, elapsed });
        }
        Ok((blocks, tuning))
    }
}

fn is_of(block: &BlockRecord, request: &BlockRequest, spec: &TuningSpec) -> bool {
    block.purpose == request.purpose.word() && block.on == spec.enabled_names(&request.on)
}

fn read_spec(path: &Path) -> Result<TuningSpec, Failure> {
    let member = Member::from_root(path).join(REQUEST);
    let spec: TuningSpec = member.read_json().map_err(|why| {
        Failure::refused(format!("{} holds no tuning: {why}", display_path(path)))
    })?;
    match spec.version == SPEC {
        true => Ok(spec),
        false => Err(cannot_use(path, &"it was made by another version of punctual")),
    }
}

/// The findings of a tuning, from its directory.
///
/// # Errors
/// The directory has no findings yet, or they are of another version.
pub fn read_findings(path: &Path) -> Result<TuningDocument, Failure> {
    let member = Member::from_root(path).join(DOCUMENT);
    let document: TuningDocument = member.read_json().map_err(|why| {
        Failure::refused(format!("{} holds nothing that was found: {why}", display_path(path)))
    })?;
    match document.schema == SCHEMA {
        true => Ok(document),
        false => Err(cannot_use(path, &format!("its format is {}", document.schema))),
    }
}
