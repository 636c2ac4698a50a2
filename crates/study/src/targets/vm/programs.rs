//! The programs of a machine: punctual itself, and those of the experiment.

use punctual_plan::{Architecture, Plan, VmPlan, Workload};
use punctual_session::exit::Failure;
use punctual_session::programs::{find_program, programs_of};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// punctual for the machine: the named one, the running one if it has that architecture, or one
/// built beside it.
pub(crate) fn find_punctual(vm: &VmPlan) -> Result<PathBuf, Failure> {
    if let Some(named) = &vm.binary {
        // The program gets the same path in the machine, so the path must be a plain one.
        return match named.canonicalize() {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(Failure::refused(format!(
                "{} (binary of the target) is not a file",
                named.display()
            ))),
        };
    }
    let (here, there) = (std::env::consts::ARCH, architecture_name(vm.arch));
    let own_program = std::env::current_exe()
        .map_err(|why| Failure::failed(format!("cannot find punctual itself: {why}")))?;
    if here == there {
        return Ok(own_program);
    }
    let target = format!("target/{there}-unknown-linux-musl/release/punctual");
    let above = own_program.ancestors().skip(1).map(|dir| dir.join(&target));
    let found = above
        .chain([PathBuf::from(&target)])
        .find(|path| path.is_file())
        .and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::refused(format!(
            "there is no punctual for {there}; this one is for {here}\nbuild it with `./x build \
             --arch {there}` in punctual's sources (the result is {target}), or name it with \
             `binary = …` in [target]"
        ))
    })
}

/// The name of the architecture in Rust's targets.
pub(crate) fn architecture_name(arch: Architecture) -> &'static str {
    match arch {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 => "aarch64",
    }
}

/// The programs of the plan's loads and measures, and those that a shell or the like starts in
/// them, as far as its words show.
pub fn of_plan(plan: &Plan) -> BTreeSet<PathBuf> {
    let mut programs = BTreeSet::new();
    for phase in &plan.phases {
        for load in &phase.loads {
            programs.extend(programs_of(&load.program, &load.argv[1..]));
        }
        for measure in &phase.measures {
            if let Workload::Program(program) = &measure.workload
                && let Some(command) = &program.command
                && let Some((first, arguments)) = command.0.split_first()
                && let Ok(file) = find_program(first)
            {
                programs.extend(programs_of(&file, arguments));
            }
        }
    }
    programs
}
