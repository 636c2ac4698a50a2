//! `punctual lab cell`: one run of a lab, for other systems that distribute them.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_session::interrupts::Interrupts;
use punctual_study::labs::attempt::{Done, run_one};
use punctual_study::labs::directory::Directory;
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
pub struct Args {
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
pub fn run(args: Args) -> Ending {
    let interrupts = Interrupts::listen()?;
    let directory = Directory::join(&args.directory)?;
    let name = directory.named(&args.run)?;
    match run_one(&directory, &name, args.exact, &interrupts)? {
        Done::Whole(_) => {
            output::print(&format!("{name}  done\n"))?;
            Ok(Exit::Done)
        }
        Done::Failed { why, .. } => Err(Failure::failed(format!("{name} failed, {why}"))),
        Done::Waiting => Err(Failure::failed(format!("{name}: interrupted"))),
    }
}
