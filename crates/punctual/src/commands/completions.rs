//! `punctual completions`: a completion script for a shell.

use crate::exit::{Ending, Exit};
use crate::output;
use clap::Command;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Example: punctual completions bash > /etc/bash_completion.d/punctual")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: CompletionsArgs, mut whole: Command) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole, "punctual", &mut script);
    output::write_to(None, &script)?;
    Ok(Exit::Done)
}
