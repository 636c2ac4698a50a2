//! The command `punctual`: one file a subcommand.

mod cli;
mod commands;
mod conduct;
mod exit;
mod explained;
mod labs;
mod limits;
mod live;
mod output;
mod recorded;
mod targets;

use clap::Parser;
use commands::demo::load;
use exit::{Exit, Failure};
use punctual_host::task::signals;
use punctual_lab::ssh::there;
use punctual_measure::load::guard;
use punctual_measure::workload::heap;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard of the loads is this program again, with nothing of the rest in it.
    if std::env::args_os().nth(1).is_some_and(|first| first == guard::ARGUMENT) {
        return if guard::serve().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // So is the process that allocates, where the machine has no C library of its own.
    if std::env::args_os().nth(1).is_some_and(|first| first == heap::ARGUMENT) {
        heap::serve();
    }
    // So are the demo's own loads.
    if std::env::args_os().nth(1).is_some_and(|first| first == load::ARGUMENT) {
        return load::serve(&std::env::args().nth(2).unwrap_or_default());
    }
    // So is punctual on another system, with a run that was sent there.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == there::ARGUMENT) {
        return ExitCode::from(there::serve(arguments));
    }
    // A handler that does nothing can only be refused for a signal that there is not.
    let _ = signals::survive_file_limit();
    let ended = cli::Cli::parse().command.run();
    let exit = ended.unwrap_or_else(|Failure { exit, message }| {
        output::complain(&message);
        exit
    });
    ExitCode::from(exit as u8)
}

impl From<std::io::Error> for Failure {
    /// Writing the answer failed. A reader that went away (`punctual show | head`) has what it wanted.
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure { exit: Exit::Done, message: String::new() },
            _ => Failure::failed(format!("cannot write the output: {error}")),
        }
    }
}
