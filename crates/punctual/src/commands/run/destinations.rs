//! Whether every file that a run will write can be written: asked before anything starts, not when
//! an hour has been measured.

use super::common::Common;
use crate::exit::Failure;
use punctual_plan::{Output, Plan, Workload};
use punctual_report::format::plain;
use punctual_report::html;
use punctual_session::messages::shown;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// The files beside the bundle, those of systress, and those that programs write to.
pub fn check(args: &Common, plan: &Plan) -> Result<(), Failure> {
    check_beside(args)?;
    for phase in &plan.phases {
        for measure in &phase.measures {
            if let Some(file) = &measure.systress {
                refuse(
                    &file.path,
                    &format!("the systress file of the measure {}", plain(&measure.name)),
                )?;
            }
        }
        let loads = phase.loads.iter().map(|load| (&load.name, [&load.stdout, &load.stderr]));
        let programs = phase.measures.iter().filter_map(|measure| match &measure.workload {
            Workload::Program(program) => Some((&measure.name, [&program.stdout, &program.stderr])),
            _ => None,
        });
        for (name, outputs) in loads.chain(programs) {
            for (output, what) in outputs.into_iter().zip(["stdout", "stderr"]) {
                if let Output::File(path) = output {
                    refuse(path, &format!("{what} of {}", plain(name)))?;
                }
            }
        }
    }
    Ok(())
}

/// The files beside the bundle alone.
pub fn check_beside(args: &Common) -> Result<(), Failure> {
    check_report(args.report.as_deref())?;
    args.baseline().map_or(Ok(()), |baseline| baseline.check())?;
    for (option, path) in [("--junit", &args.junit), ("--lava", &args.lava)] {
        if let Some(path) = path {
            refuse(path, option)?;
        }
    }
    Ok(())
}

/// The page alone.
pub fn check_report(file: Option<&Path>) -> Result<(), Failure> {
    can_write_pages(file)?;
    file.map_or(Ok(()), |path| refuse(path, "--report"))
}

/// Refuses a page where this build makes none.
pub fn can_write_pages(file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(_) if !html::BUILT => Err(Failure::refused(html::WITHOUT_PAGES)),
        _ => Ok(()),
    }
}

fn refuse(path: &Path, what: &str) -> Result<(), Failure> {
    writable(path)
        .map_err(|why| Failure::refused(format!("cannot write {} ({what}): {why}", shown(path))))
}

/// Leaves everything as it is: a file that is there is opened but not emptied, one that is not
/// there is not made.
fn writable(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(meta) if meta.is_file() || meta.is_dir() => {
            OpenOptions::new().append(true).open(path).map(drop)
        }
        // A device or a pipe: opening it may wait for a reader.
        Ok(_) => Ok(()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            match parent.metadata()?.is_dir() {
                true => Ok(rustix::fs::access(
                    parent,
                    rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
                )?),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Err(why) => Err(why),
    }
}
