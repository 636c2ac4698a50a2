//! `punctual lab cell`: one run of a lab, for other systems that distribute them.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_session::interrupts::SignalRequests;
use punctual_study::labs::attempt::{AttemptResult, run_one};
use punctual_study::labs::directory::LabDirectory;
use std::path::PathBuf;

/// Run one run of a lab, for a cluster that distributes them
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual lab run examples/lab-quick.toml -o lab --on none\n  \
                        punctual lab cell lab 0\n  punctual lab cell lab 6.1_rt_idle/s7-r1\n\nThe \
                        lab's directory is that of `punctual lab run`, on a file system that all \
                        machines share. A run may be killed and started again, also twice at the \
                        same time: its bundle has its name only when it is complete, and the \
                        first one stays. `punctual lab run --on none` collects.\n\nExit codes: 0 \
                        the bundle is there, whether or not a requirement is met; 1 the run failed \
                        or was interrupted; 2 the request was invalid, nothing was started."
)]
pub struct LabCellArgs {
    /// The lab's directory
    #[arg(value_name = "LAB")]
    directory: PathBuf,
    /// The run: CELL/RUN, or its number from 0 in the file `runs` of the directory
    #[arg(value_name = "RUN")]
    run: String,
    /// Trace every instruction, as `lab run --exact` does
    #[arg(long)]
    exact: bool,
}

/// Runs the cell, unless its bundle exists.
pub fn run(args: LabCellArgs) -> Ending {
    let interrupts = SignalRequests::listen()?;
    let directory = LabDirectory::join(&args.directory)?;
    let name = directory.find_run(&args.run)?;
    match run_one(&directory, &name, args.exact, &interrupts)? {
        AttemptResult::Whole(_) => {
            output::print_stdout(&format!("{name}  done\n"))?;
            Ok(Exit::Done)
        }
        AttemptResult::Failed { why, .. } => Err(Failure::failed(format!("{name} failed, {why}"))),
        AttemptResult::Waiting => Err(Failure::failed(format!("{name}: interrupted"))),
    }
}
