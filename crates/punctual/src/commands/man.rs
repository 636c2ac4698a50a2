//! `punctual man`: the man pages of all subcommands, made from the same text as `--help`, and punctual-experiment(5).

use crate::cli::Cli;
use crate::exit::{Ending, Exit, Failure};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

const EXPERIMENT_PAGE: &str = include_str!("../../../../docs/man/punctual-experiment.5");

/// Write the man pages of all subcommands into a directory
#[derive(clap::Args)]
#[command(after_help = "Example: punctual man /usr/local/share/man && man punctual-run")]
pub struct Args {
    /// Where: man1/ and man5/ are made in it
    directory: PathBuf,
}

/// Writes the pages.
pub fn run(args: Args) -> Ending {
    let (first, fifth) = (args.directory.join("man1"), args.directory.join("man5"));
    for directory in [&first, &fifth] {
        std::fs::create_dir_all(directory).map_err(|e| cannot_write(directory, &e))?;
    }
    let mut whole = Cli::command();
    // Fills in usage lines and inherited settings, as parsing would.
    whole.build();
    write_pages(&first, "punctual", &whole)?;
    let page = fifth.join("punctual-experiment.5");
    std::fs::write(&page, EXPERIMENT_PAGE).map_err(|e| cannot_write(&page, &e))?;
    Ok(Exit::Done)
}

/// The page of a command, and those of all its subcommands.
fn write_pages(directory: &Path, name: &str, command: &Command) -> Result<(), Failure> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let source = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    let rendered = Man::new(command.clone().display_name(name)).source(source).render(&mut page);
    rendered.and_then(|()| std::fs::write(&path, page)).map_err(|error| cannot_write(&path, &error))?;
    command.get_subcommands().try_for_each(|sub| write_pages(directory, &format!("{name}-{}", sub.get_name()), sub))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
