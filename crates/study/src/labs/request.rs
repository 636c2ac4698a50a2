//! Reads the user's file into runnable cells.

use super::engine::CellRunner;
use punctual_core::{CpuSet, Nanos};
use punctual_plan::lab::{Lab, LabCell, Seeds, load_lab};
use punctual_plan::{LoadOptions, MAX_FILE_BYTES, ResolveContext, TargetPlan};
use punctual_session::exit::{Exit, Failure};
use punctual_session::messages::display_path;
use punctual_session::programs::find_program;
use punctual_session::request::online_cpus;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The assumed memory of an unknown system: everything fits.
const ANY_MEMORY: u64 = 1 << 50;
/// Cells whose errors are shown; the same error is often in all of them.
const SHOWN_ERRORS: usize = 2;

/// Options that override the file.
#[derive(Default)]
pub struct Overrides {
    /// `--seeds`
    pub seeds: Option<Seeds>,
    /// `--repeat`
    pub repeat: Option<u32>,
    /// `-j`
    pub parallel: Option<usize>,
    /// `--exact`
    pub exact: bool,
    /// How long runs may be started; none: until all have run.
    pub budget: Option<Duration>,
    /// `--on`
    pub engine: Option<CellRunner>,
    /// Whether other machines run the cells.
    pub elsewhere: bool,
}

pub fn read_lab(path: &Path) -> Result<Lab, Failure> {
    let bytes = read(path)
        .map_err(|why| Failure::refused(format!("cannot read {}: {why}", display_path(path))))?;
    Ok(load_lab(path, &bytes, &LoadOptions::default(), &read)?)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One byte above the maximum shows that there are too many.
    let read = File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|why| why.to_string())
}

/// The cells, each with its place and the measured time.
///
/// # Errors
/// The errors in the first faulty cells.
pub(crate) fn check_cells(
    lab: &Lab,
    cells: Vec<LabCell>,
    overrides: &Overrides,
) -> Result<Vec<(LabCell, TargetPlan, Option<Nanos>)>, Failure> {
    let mut good = Vec::new();
    let mut bad: Vec<Failure> = Vec::new();
    for cell in cells {
        match check_cell(lab, &cell, overrides) {
            Ok((target, measures)) => good.push((cell, target, measures)),
            Err(failure) => bad.push(failure),
        }
    }
    if bad.is_empty() {
        return Ok(good);
    }
    let unshown_errors = bad.len().saturating_sub(SHOWN_ERRORS);
    let rest = (unshown_errors > 0)
        .then(|| Failure::refused(format!("… and {unshown_errors} more cells with errors")));
    let shown_failures = bad.into_iter().take(SHOWN_ERRORS).chain(rest);
    Err(Failure {
        exit: Exit::Refused,
        parts: shown_failures.flat_map(|failure| failure.parts).collect(),
    })
}

fn check_cell(
    lab: &Lab,
    cell: &LabCell,
    overrides: &Overrides,
) -> Result<(TargetPlan, Option<Nanos>), Failure> {
    let path = PathBuf::from(format!("{}, cell {}.toml", lab.source.path.display(), cell.name));
    let text = cell.experiment_with_seed(None);
    let options = LoadOptions::default();
    let target = punctual_plan::read_target(&path, text.as_bytes(), &options, None)?;
    let refused = match (&overrides.engine, &target) {
        (Some(CellRunner::Ssh(_)), TargetPlan::Vm(_)) => {
            Some("a virtual machine runs here: use -j")
        }
        (Some(_), TargetPlan::Ssh(_)) => Some("its target names the host that runs it"),
        _ => None,
    };
    if let Some(why) = refused {
        let place = path.display();
        return Err(Failure::refused(format!("{place}: --on is for cells of a host; {why}")));
    }
    let elsewhere = overrides.elsewhere && target == TargetPlan::Host;
    if elsewhere || matches!(target, TargetPlan::Ssh(_)) {
        // The target's CPUs and programs are known only there.
        cell.check_experiment(lab, &options)?;
        return Ok((target, None));
    }
    let cpus = match &target {
        TargetPlan::Vm(vm) => CpuSet::from_iter(0..vm.cpus as usize),
        _ => online_cpus()?,
    };
    let context = ResolveContext {
        online: cpus.clone(),
        present: cpus,
        memory_bytes: ANY_MEMORY,
        find_program: &find_program,
        stamp: String::new(),
        force: false,
    };
    let resolved = punctual_plan::load_and_resolve(&path, text.as_bytes(), &options, &context);
    let (_, resolved) = resolved?;
    Ok((target, resolved.plan.estimated_time()))
}
