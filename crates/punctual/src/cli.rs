//! The command line: subcommands and what is common to them.

use crate::commands;
use crate::exit::{Ending, HELP};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use std::io::IsTerminal;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Tells whether a Linux system is real-time enough, proves it, and names whoever makes it late
#[derive(Parser)]
#[command(name = "punctual", version, styles = STYLES, after_help = HELP, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, one file each.
#[derive(Subcommand)]
pub enum Command {
    /// Measure what an experiment file says
    Run(commands::run::Args),
    /// Show a bundle in the terminal
    Show(commands::show::Args),
    /// Write one HTML file about one bundle or several
    Report(commands::report::Args),
    /// Write a bundle in another tool's format
    Export(commands::export::Args),
    /// Read another tool's results into a bundle
    Import(commands::import::Args),
    /// Say whether this system is ready for real time, rule by rule
    Check(commands::check::Args),
    /// Give CPUs to real time, and take them back
    Isolate(commands::isolate::Args),
    /// Print the TOML that means the same as a systress file
    Convert(commands::convert::Args),
    /// Print a completion script for a shell
    Completions(commands::completions::Args),
    /// Write the man pages of all subcommands into a directory
    Man(commands::man::Args),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Ending {
        if !matches!(self, Command::Isolate(_) | Command::Completions(_)) {
            commands::isolate::tell_leftovers();
        }
        match self {
            Command::Run(args) => commands::run::run(args),
            Command::Show(args) => commands::show::run(args),
            Command::Report(args) => commands::report::run(args),
            Command::Export(args) => commands::export::run(args),
            Command::Import(args) => commands::import::run(args),
            Command::Check(args) => commands::check::run(args),
            Command::Isolate(args) => commands::isolate::run(args),
            Command::Convert(args) => commands::convert::run(args),
            Command::Completions(args) => commands::completions::run(args),
            Command::Man(args) => commands::man::run(args),
        }
    }
}

/// Whether what goes to this stream may be coloured: a terminal, and no NO_COLOR (no-color.org).
pub fn colored(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
