//! From the file that the user named to a plan for this system.

use crate::exit::Failure;
use crate::messages::{Listener, display_path};
use crate::options::RunOptions;
use crate::programs::find_program;
use punctual_core::CpuSet;
use punctual_host::files::{Files, Root};
use punctual_host::fixed::first_threads;
use punctual_plan::{
    Experiment, LoadOptions, MAX_FILE_BYTES, Plan, ResolveContext, SourceFormat, TargetPlan,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An experiment with its file.
pub struct Loaded {
    pub experiment: Experiment,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl Loaded {
    /// The name of the file in a bundle.
    pub fn kept_as(&self) -> &'static str {
        match self.experiment.format {
            SourceFormat::Toml => "experiment.toml",
            SourceFormat::Systress => "experiment.cfg",
        }
    }
}

/// The bytes of a file, up to the maximum of an experiment.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        false => Ok(file),
    });
    // One byte above the maximum shows that there are too many.
    let limit = MAX_FILE_BYTES as u64 + 1;
    let read = file.and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|why| Failure::refused(format!("cannot read {}: {why}", display_path(path))))?;
    Ok(bytes)
}

/// Reads an experiment file without asking the system anything.
pub fn load_experiment(path: &Path, allow_unknown: bool) -> Result<Loaded, Failure> {
    let bytes = read(path)?;
    let experiment = punctual_plan::load_experiment(path, &bytes, &LoadOptions { allow_unknown })?;
    Ok(Loaded { experiment, bytes })
}

/// An experiment as requested: read, not parsed.
#[derive(Default)]
pub struct ExperimentRequest {
    /// The file, or its substitute in messages.
    pub path: PathBuf,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Treat unknown sections and keys as warnings.
    pub allow_unknown: bool,
    /// The time of the request, as in the default name of a bundle.
    pub stamp: String,
    force: bool,
    /// The target of the command line.
    pub target: Option<String>,
}

impl ExperimentRequest {
    /// An experiment from a file.
    pub fn of_file(
        path: &Path,
        allow_unknown: bool,
        options: &RunOptions,
    ) -> Result<ExperimentRequest, Failure> {
        Ok(ExperimentRequest {
            allow_unknown,
            ..ExperimentRequest::of_text(path, read(path)?, options)
        })
    }

    /// An experiment without a file; messages show `path` instead.
    pub fn of_text(path: &Path, bytes: Vec<u8>, options: &RunOptions) -> ExperimentRequest {
        let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        let (force, target) = (options.force, options.target.clone());
        ExperimentRequest {
            path: path.to_owned(),
            bytes,
            allow_unknown: false,
            stamp,
            force,
            target,
        }
    }

    /// An experiment without a file or options.
    pub fn of_plain_text(path: &Path, bytes: Vec<u8>) -> ExperimentRequest {
        let (path, stamp) = (path.to_owned(), String::new());
        ExperimentRequest { path, bytes, stamp, ..ExperimentRequest::default() }
    }

    fn load_options(&self) -> LoadOptions {
        LoadOptions { allow_unknown: self.allow_unknown }
    }

    /// The target that it runs on.
    pub fn target_plan(&self) -> Result<TargetPlan, Failure> {
        let target = punctual_plan::read_target(
            &self.path,
            &self.bytes,
            &self.load_options(),
            self.target.as_deref(),
        );
        Ok(target?)
    }

    /// Reads the experiment without asking any system.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let read = punctual_plan::load_experiment(&self.path, &self.bytes, &self.load_options());
        Ok(Loaded { experiment: read?, bytes: self.bytes.clone() })
    }

    /// Resolves the experiment for this system; warnings are shown, errors end it.
    pub fn resolve(&self, messages: Listener) -> Result<(Loaded, Plan), Failure> {
        let files = Root::from_system();
        let (mut online, present) = (read_cpus(&files, "online")?, read_cpus(&files, "present")?);
        if self.without_smt() {
            online = first_threads(&files, &online);
        }
        self.resolve_for(online, present, read_total_memory(&files)?, messages)
    }

    /// Whether it takes all but the first thread of each core offline.
    fn without_smt(&self) -> bool {
        self.load()
            .is_ok_and(|loaded| loaded.experiment.settings.smt.as_ref().is_some_and(|at| !at.value))
    }

    /// Resolves the experiment for a system with these CPUs, this much memory in bytes, and the
    /// programs of this one.
    pub fn resolve_for(
        &self,
        online: CpuSet,
        present: CpuSet,
        memory_bytes: u64,
        messages: Listener,
    ) -> Result<(Loaded, Plan), Failure> {
        let stamp = self.stamp.clone();
        let context = ResolveContext {
            online,
            present,
            memory_bytes,
            find_program: &find_program,
            stamp,
            force: self.force,
        };
        let read = punctual_plan::load_and_resolve(
            &self.path,
            &self.bytes,
            &self.load_options(),
            &context,
        );
        let (experiment, mut resolved) = read?;
        if !resolved.warnings.is_empty() {
            messages.warn(&resolved.warnings);
        }
        resolved.plan.target = self.target_plan()?;
        Ok((Loaded { experiment, bytes: self.bytes.clone() }, resolved.plan))
    }
}

/// The CPUs that are online.
pub fn online_cpus() -> Result<CpuSet, Failure> {
    read_cpus(&Root::from_system(), "online")
}

fn read_cpus(files: &dyn Files, which: &str) -> Result<CpuSet, Failure> {
    let path = format!("/sys/devices/system/cpu/{which}");
    let text = files.read_trimmed(&path).map_err(Failure::failed)?;
    text.parse().map_err(|why| Failure::failed(format!("{path}: {why}")))
}

fn read_total_memory(files: &dyn Files) -> Result<u64, Failure> {
    let text = files.read("/proc/meminfo").map_err(Failure::failed)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| Failure::failed("/proc/meminfo has no MemTotal"))
}
