#![forbid(unsafe_code)]
//! Scores explanations: causes are injected at recorded instants while samples are taken, and the
//! explanations are compared with the record.

mod block;
mod cases;
pub mod document;
mod group;
pub mod guest;
pub mod inject;
mod names;
mod operation;
mod record;
mod recorder;
mod score;
pub mod subject;
mod text;
mod throttling;
mod through;
mod ways;

use block::Disk;
pub use cases::InjectedCase;
use document::{TruthCase, TruthScore, TruthSystem};
use group::ControlGroup;
use inject::Injector;
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::programs::find_program;
use std::fs;
use std::path::{Path, PathBuf};
pub use text::format_scores;
pub use through::Through;
use through::TruthMeasurement;

/// The program under test: beside this one, or in $PATH.
pub(crate) fn find_tested_program(own: &Path) -> Result<PathBuf, Failure> {
    let name = own.file_name().unwrap_or_default().to_string_lossy();
    let sibling_program = own.with_file_name(name.replacen("punctual-truth", "punctual", 1));
    if sibling_program != own && sibling_program.exists() {
        return Ok(sibling_program);
    }
    find_program("punctual").map_err(|why| {
        Failure::refused(format!("punctual: {why}\nhelp: build it: cargo build -p punctual"))
    })
}

/// The cases to run: of some lengths, or of all.
pub fn select_cases(all: bool, named: &[String]) -> Result<Vec<InjectedCase>, Failure> {
    let every = InjectedCase::all_cases();
    if let Some(name) = named.iter().find(|name| !every.iter().any(|case| case.matches_name(name)))
    {
        return Err(Failure::refused(format!(
            "there is no case `{name}`\nhelp: known are {}",
            InjectedCase::accepted_names().collect::<Vec<_>>().join(", ")
        )));
    }
    let chosen = |case: &InjectedCase| match named.is_empty() {
        true => all || case.is_short(),
        false => {
            named.iter().any(|name| case.matches_name(name)) && (all || case.is_short())
                || named.contains(&case.name())
        }
    };
    Ok(every.into_iter().filter(chosen).collect())
}

/// Runs the cases on this system, one after the other.
pub fn run_locally(
    cases: &[InjectedCase],
    duration: Nanos,
    cpu: usize,
    through: Through,
    watch: &mut dyn FnMut(&TruthCase),
) -> Result<TruthSystem, Failure> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut system = TruthSystem {
        kernel: release.trim().to_owned(),
        virtual_time: false,
        through: through.word().to_owned(),
        cases: Vec::new(),
    };
    for case in cases {
        let result = run_case(case, duration, cpu, through)?;
        watch(&result);
        system.cases.push(result);
    }
    Ok(system)
}

fn run_case(
    case: &InjectedCase,
    duration: Nanos,
    cpu: usize,
    through: Through,
) -> Result<TruthCase, Failure> {
    let mut result = TruthCase {
        name: case.name(),
        cause: case.cause_ids(),
        unrecorded: through.unrecorded_events(case).map(str::to_owned),
        length_ns: case.length.0,
        skipped: None,
        score: TruthScore::default(),
    };
    if let Some(missing) = case.missing_prerequisite().or_else(|| through.unsupported_reason(case))
    {
        result.skipped = Some(missing);
        return Ok(result);
    }
    let place = tempfile::tempdir().map_err(Failure::failed)?;
    // Before a recorder looks up the names of disks.
    let _disk = match case.needs_disk() {
        true => Some(Disk::new(case.length).map_err(Failure::failed)?),
        false => None,
    };
    let measured = TruthMeasurement { case, duration, cpu, through, place: place.path() };
    let injector = Injector::start(case, duration, cpu)?;
    let ran = measured.run_measurement();
    let injected = match case.is_of_subject() {
        true => measured.read_met_delays(),
        false => injector.finish(),
    };
    if case.is_confined() {
        ControlGroup::new(group::GROUP).map_err(Failure::failed)?.remove();
    }
    if let Err(why) = ran {
        result.skipped = Some(why);
        return Ok(result);
    }
    match injected {
        Ok(injected) => match measured.score_explanation(&injected) {
            Ok(score) => result.score = score,
            Err(why) => result.skipped = Some(why.render(false)),
        },
        Err(why) => result.skipped = Some(format!("nothing was injected: {why}")),
    }
    Ok(result)
}
