//! Checks before the start that every file of a run can be written, not after an hour of measuring.

use super::common::CommonArgs;
use crate::commands::beside::check_file_writable;
use crate::exit::Failure;
use punctual_core::format::escape_unsafe;
use punctual_plan::{LoadOutput, Plan, Workload};

/// Checks the files beside the bundle, those of systress, and those that programs write to.
pub fn check_destinations(args: &CommonArgs, plan: &Plan) -> Result<(), Failure> {
    args.beside.check_files()?;
    for phase in &plan.phases {
        for measure in &phase.measures {
            if let Some(file) = &measure.systress {
                check_file_writable(
                    &file.path,
                    &format!("the systress file of the measure {}", escape_unsafe(&measure.name)),
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
                if let LoadOutput::File(path) = output {
                    check_file_writable(path, &format!("{what} of {}", escape_unsafe(name)))?;
                }
            }
        }
    }
    Ok(())
}
