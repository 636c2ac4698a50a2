//! `punctual man`: the man pages of all subcommands, made from the same text as `--help`, and punctual-experiment(5).

use crate::cli::Cli;
use crate::exit::{Ending, Exit, Failure};
use clap::CommandFactory;
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
    write_page(&first, "punctual", whole.clone())?;
    for sub in whole.get_subcommands() {
        let name = format!("punctual-{}", sub.get_name());
        write_page(&first, &name, sub.clone().display_name(&name))?;
    }
    let page = fifth.join("punctual-experiment.5");
    std::fs::write(&page, EXPERIMENT_PAGE).map_err(|e| cannot_write(&page, &e))?;
    Ok(Exit::Done)
}

fn write_page(directory: &Path, name: &str, command: clap::Command) -> Result<(), Failure> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page).and_then(|()| std::fs::write(&path, page));
    rendered.map_err(|error| cannot_write(&path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
