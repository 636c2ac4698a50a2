//! The directory of a lab.
//!
//! ```text
//! lab.json                        the runs and their results (see punctual_bundle::lab)
//! lab.toml                        the lab file as last run
//! report.html
//! cells/6.1_rt_idle/s7.toml       the cell's experiment with the seed 7 (cell.toml: with its own)
//! cells/6.1_rt_idle/s7-r1/        the bundle of its first repetition (r1: without seeds)
//! cells/6.1_rt_idle/s7-r1.log     the messages of that run
//! cells/6.1_rt_idle/s7-r1.failed/ the leftovers of a failed run
//! runs                            the names of all runs, one a line (`6.1_rt_idle/s7-r1`)
//! ```
//!
//! A run writes into a directory of another name (`.s7-r1.HOST.PID`), which is renamed when the run
//! is over: an existing bundle is complete, whenever the lab was killed. Its `lab-run.json`
//! identifies the inputs; a bundle of other inputs is replaced. Of two concurrent runs of the same
//! inputs the first one stays. Other machines may run them (`punctual lab cell`): the names are
//! sufficient.

use super::jobs::{LabJob, PlannedLab};
use super::run_name::RunName;
use crate::store::Store;
use punctual_bundle::{Bundle, Completeness, Member, Outcome, Pinned, lab};
use punctual_core::{Nanos, encode_hex};
use punctual_session::exit::Failure;
use punctual_session::machine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The file in a run's bundle that identifies the run.
const STAMP: &str = "lab-run.json";
const LOCK: &str = "lab.lock";
const CELLS: &str = "cells";
/// The file with the names of runs, in order.
const RUNS: &str = "runs";
/// The suffix for a run that failed by itself under `punctual lab cell`.
const FAILED: &str = ".failed.json";

/// Attempts to create a log that another process may create, too.
const LOG_ATTEMPTS: usize = 10;

/// A lab's directory, held by this process alone, or joined for one run.
pub struct LabDirectory {
    store: Store,
    /// The checksum of this program: another program has another timeline in a guest.
    program: String,
    /// The name of this machine: process ids are local to it.
    host: String,
}

/// [`STAMP`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The checksum of the inputs.
    pub inputs: String,
    /// How long the run took by this machine's clock, in ns.
    pub took: i64,
    /// The exit code of the run.
    pub exit_code: i32,
}

/// A run without a bundle.
#[derive(Serialize, Deserialize)]
struct FailedRun {
    #[serde(flatten)]
    stamp: Stamp,
    why: String,
}

impl LabDirectory {
    /// Creates the directory, or opens an existing one.
    ///
    /// # Errors
    /// The path is something else, or in use by another process.
    pub fn open(path: &Path) -> Result<LabDirectory, Failure> {
        let cannot = |what: &str, why: &dyn std::fmt::Display| {
            Failure::refused(format!("cannot {what} the lab's directory {}: {why}", path.display()))
        };
        let holds_something = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if holds_something && !Member::from_root(path).join(LOCK).exists() {
            return Err(cannot(
                "use",
                &"it exists already and is not a lab; choose another directory with --output",
            ));
        }
        fs::create_dir_all(path).map_err(|why| cannot("make", &why))?;
        let root = Member::from_root(path);
        root.join(CELLS).create_directory().map_err(|why| cannot("make", &why))?;
        let store = Store::open_locked(path, LOCK, "another `punctual lab run` is using it")
            .map_err(|why| cannot("use", &why))?;
        let program =
            sum_of_file(Path::new("/proc/self/exe")).map_err(|why| cannot("use", &why))?;
        Ok(LabDirectory { store, program, host: machine::machine_name() })
    }

    /// Opens one for a single run, beside other processes.
    ///
    /// # Errors
    /// The path is not a lab's directory.
    pub fn join(path: &Path) -> Result<LabDirectory, Failure> {
        if !Member::from_root(path).join(LOCK).exists() {
            let refusal = "it is not the directory of a lab: `punctual lab run FILE -o DIR --on \
                       none` makes one";
            return Err(Failure::refused(format!("{}: {refusal}", path.display())));
        }
        let program = sum_of_file(Path::new("/proc/self/exe"))
            .map_err(|why| Failure::failed(format!("cannot read this program: {why}")))?;
        Ok(LabDirectory { store: Store::join(path), program, host: machine::machine_name() })
    }

    /// The run with this name, or with this index in the list of all runs, from 0.
    ///
    /// # Errors
    /// There is no such run.
    pub fn find_run(&self, word: &str) -> Result<RunName, Failure> {
        let Ok(place) = word.parse::<usize>() else {
            return word.parse().map_err(Failure::refused);
        };
        let runs = self.store.member(RUNS).read_text().map_err(|why| {
            Failure::refused(format!("cannot read the list of runs of this lab: {why}"))
        })?;
        let count = runs.lines().count();
        let line = runs.lines().nth(place).ok_or_else(|| {
            Failure::refused(format!("this lab has {count} runs, from 0: there is no run {place}"))
        })?;
        line.parse().map_err(Failure::refused)
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The directory of a run until it is over.
    pub(crate) fn unfinished_path(&self, name: &RunName) -> PathBuf {
        self.unique_path(name, "")
    }

    /// A unique name beside the bundle's.
    fn unique_path(&self, name: &RunName, suffix: &str) -> PathBuf {
        let unique_name =
            format!(".{}.{}.{}{suffix}", name.leaf_name(), self.host, std::process::id());
        self.path().join(name.bundle_path()).with_file_name(unique_name)
    }

    /// The log of a run.
    pub fn log_member(&self, name: &RunName) -> Member {
        self.store.member(format!("{}.log", name.bundle_path()))
    }

    /// Writes the lab file, all experiments, and the list of runs.
    pub fn write_inputs(&self, planned: &PlannedLab) -> Result<(), Failure> {
        self.store.replace_file("lab.toml", planned.lab.source.text.as_bytes())?;
        for (number, cell) in planned.cells.iter().enumerate() {
            let place = self.store.member(CELLS).join(&cell.cell.name);
            place.create_directory().map_err(Failure::failed)?;
            for seed in 0..planned.seeds.len() {
                let name =
                    planned.run_name(&LabJob { cell: number, seed, repeat: 0 }).experiment_path();
                self.store.replace_file(
                    &name,
                    cell.cell.experiment_with_seed(planned.seeds[seed]).as_bytes(),
                )?;
            }
        }
        let name = |job| format!("{}\n", planned.run_name(job));
        self.store
            .replace_file(RUNS, planned.all_jobs().iter().map(name).collect::<String>().as_bytes())
    }

    /// Removes the leftovers of killed runs, and the records of failures: they are tried again.
    pub fn remove_leftovers(&self, planned: &PlannedLab) {
        for cell in &planned.cells {
            // A link, or a cell moved meanwhile, contains nothing of ours.
            let place = self.store.member(CELLS).join(&cell.cell.name).open_directory();
            let Ok(place) = place else { continue };
            for entry in fs::read_dir(place.proc_path()).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with('.') {
                    // If a run of a killed lab is still ending there, the next call removes it.
                    let _ = fs::remove_dir_all(entry.path());
                } else if name.ends_with(FAILED) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// The checksum of a run's inputs.
    pub(crate) fn sum_of_inputs(&self, planned: &PlannedLab, job: &LabJob) -> String {
        let text = planned.cells[job.cell].cell.experiment_with_seed(planned.seeds[job.seed]);
        self.inputs_of(&text, planned.exact)
    }

    /// The checksum of everything that a run depends on, as far as known before it: the experiment,
    /// this program, a kernel by path.
    pub(crate) fn inputs_of(&self, experiment: &str, exact: bool) -> String {
        let mut sum = Sha256::new();
        for part in [experiment, &self.program] {
            sum.update(part.as_bytes());
            sum.update([0]);
        }
        // A bundle without observed instructions lacks the requested result.
        if exact {
            sum.update(b"exact");
        }
        for path in target_paths(experiment) {
            sum.update(sum_of_file(&path).unwrap_or_else(|why| why.to_string()));
        }
        encode_hex(&sum.finalize())
    }

    /// The stamp of a finished run, if its bundle is complete and of these inputs.
    pub(crate) fn finished_stamp(&self, name: &RunName, inputs: &str) -> Option<Stamp> {
        let bundle = self.path().join(name.bundle_path());
        let stamp: Stamp = Member::from_root(&bundle).join(STAMP).read_json().ok()?;
        (stamp.inputs == inputs && is_whole(&bundle)).then_some(stamp)
    }

    /// Renames a complete bundle, and returns the stamp of the one that has the name then: if
    /// another run of the same inputs was first, this one is removed.
    pub fn finish_bundle(&self, name: &RunName, stamp: Stamp) -> Result<Stamp, Failure> {
        let cell = self.pin_cell(name)?;
        let leaf = |path: &Path| cell.proc_path().join(path.file_name().unwrap_or_default());
        let (from, to) = (leaf(&self.unfinished_path(name)), leaf(Path::new(&name.bundle_path())));
        Member::from_root(&from).join(STAMP).replace_json(&stamp).map_err(Failure::failed)?;
        loop {
            let rename_error = match fs::rename(&from, &to) {
                Ok(()) => return Ok(stamp),
                Err(why) => why,
            };
            // rename(2) fails on a directory that is not empty.
            let occupied_kinds = [io::ErrorKind::DirectoryNotEmpty, io::ErrorKind::AlreadyExists];
            if !occupied_kinds.contains(&rename_error.kind()) {
                return Err(cannot_write(&to, &rename_error));
            }
            if let Some(first) = self.finished_stamp(name, &stamp.inputs) {
                let _ = fs::remove_dir_all(&from);
                return Ok(first);
            }
            // The old bundle has other inputs. Moved first, so that half of it never has its name.
            let old = leaf(&self.unique_path(name, ".old"));
            match fs::rename(&to, &old) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => {
                    return Err(cannot_write(&to, &why));
                }
                _ => fs::remove_dir_all(&old).unwrap_or_default(),
            }
        }
    }

    /// The directory of a run's cell, whose entries belong to the lab.
    fn pin_cell(&self, name: &RunName) -> Result<Pinned, Failure> {
        let bundle = name.bundle_path();
        let place = Path::new(&bundle).parent().unwrap_or(Path::new(CELLS));
        let cell = self.store.member(place);
        cell.open_directory().map_err(|why| cannot_write(cell.path(), &why))
    }

    /// Removes the unfinished leftovers of a run.
    pub(crate) fn discard_unfinished(&self, name: &RunName) {
        self.with_unfinished(name, |unfinished, _| drop(fs::remove_dir_all(unfinished)));
    }

    /// Keeps the leftovers of a failed run, in place of earlier ones.
    pub(crate) fn keep_failed(&self, name: &RunName) {
        self.with_unfinished(name, |unfinished, cell| {
            let kept = cell.join(format!("{}.failed", name.leaf_name()));
            let _ = fs::remove_dir_all(&kept);
            let _ = fs::rename(unfinished, kept);
        });
    }

    fn with_unfinished(&self, name: &RunName, act: impl FnOnce(&Path, &Path)) {
        // Without the cell there are no leftovers either.
        if let Ok(cell) = self.pin_cell(name) {
            let unfinished = self.unfinished_path(name);
            act(
                &cell.proc_path().join(unfinished.file_name().unwrap_or_default()),
                &cell.proc_path(),
            );
        }
    }

    /// Creates a run's log, replacing an earlier one. Another process may do the same.
    pub(crate) fn new_log(&self, name: &RunName) -> Result<File, Failure> {
        let log = self.log_member(name);
        let create = || {
            if log.exists() {
                let _ = log.remove();
            }
            log.create_new()
        };
        let log_file = (1..LOG_ATTEMPTS).find_map(|_| create().ok());
        log_file.map_or_else(create, Ok).map_err(Failure::failed)
    }

    /// Records why a run failed, for the collecting process.
    pub(crate) fn write_failure(
        &self,
        name: &RunName,
        stamp: Stamp,
        why: &str,
    ) -> Result<(), Failure> {
        let failure = FailedRun { stamp, why: why.to_owned() };
        self.member_of_failure(name).replace_json(&failure).map_err(Failure::failed)
    }

    /// Why a run of these inputs failed.
    pub(crate) fn read_failure(&self, name: &RunName, inputs: &str) -> Option<(Stamp, String)> {
        let failure: FailedRun = self.member_of_failure(name).read_json().ok()?;
        (failure.stamp.inputs == inputs).then_some((failure.stamp, failure.why))
    }

    fn member_of_failure(&self, name: &RunName) -> Member {
        self.store.member(format!("{}{FAILED}", name.bundle_path()))
    }

    /// Writes `lab.json`.
    pub fn write(&self, document: &lab::LabDocument) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(Failure::failed)?;
        self.store.replace_file(lab::FILE, text.as_bytes())
    }
}

/// The duration of the run with this name in a lab's directory, of any inputs.
pub(crate) fn duration_of_run(lab: &Path, name: &RunName) -> Option<Nanos> {
    let stamp = Member::from_root(lab).join(name.bundle_path()).join(STAMP);
    stamp
        .read_json::<Stamp>()
        .ok()
        .map(|stamp| Nanos(stamp.took))
        .filter(|took| *took > Nanos::ZERO)
}

/// Whether a run reached its end: any but an interruption or a failure.
pub fn is_whole(bundle: &Path) -> bool {
    Bundle::open(bundle).is_ok_and(|bundle| {
        let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
        bundle.completeness == Completeness::Whole
            && !matches!(outcome, Some(Outcome::Interrupted | Outcome::Failed { .. }) | None)
    })
}

fn cannot_write(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot write {}: {why}", path.display()))
}

/// The files that the experiment's target names by path.
fn target_paths(experiment: &str) -> Vec<PathBuf> {
    let keys = ["kernel", "binary"];
    let target = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (keys.contains(&key.trim()) && value.contains('/')).then(|| PathBuf::from(value))
    };
    experiment.lines().filter_map(target).collect()
}

fn sum_of_file(path: &Path) -> io::Result<String> {
    Ok(encode_hex(&Sha256::digest(fs::read(path)?)))
}
