//! Checks before the start that every file of a run can be written, not after an hour of measuring.

use super::common::CommonArgs;
use crate::commands::beside::refuse;
use crate::exit::Failure;
use punctual_core::format::plain;
use punctual_plan::{LoadOutput, Plan, Workload};

/// Checks the files beside the bundle, those of systress, and those that programs write to.
pub fn check(args: &CommonArgs, plan: &Plan) -> Result<(), Failure> {
    args.beside.check()?;
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
                if let LoadOutput::File(path) = output {
                    refuse(path, &format!("{what} of {}", plain(name)))?;
                }
            }
        }
    }
    Ok(())
}
