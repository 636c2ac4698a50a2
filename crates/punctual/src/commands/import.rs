//! `punctual import`: another tool's results into a bundle.

use crate::conduct::request::shown;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use std::path::PathBuf;

/// Read another tool's results into a bundle
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cyclictest -q -D 60 -t -a -m -p 95 -h 1000 --json=old.json; punctual import old.json\n  \
                        punctual import histogram.txt -o old && punctual report old new\n\n\
                        cyclictest's JSON (--json with -h) and histogram text (-h, -H, --histfile) are recognised by content."
)]
pub struct Args {
    /// The file that the other tool wrote
    file: PathBuf,
    /// The bundle's directory; it must not exist [default: the file's name without its ending, in the current directory]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Reads, writes, says where.
pub fn run(args: Args) -> Ending {
    let directory = match args.output {
        Some(directory) => directory,
        None => default_directory(&args.file)?,
    };
    punctual_bundle::import::import(&args.file, &directory).map_err(Failure::refused)?;
    output::print(&format!("{}\n", shown(&directory)))?;
    Ok(Exit::Done)
}

fn default_directory(file: &std::path::Path) -> Result<PathBuf, Failure> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.ok_or_else(|| Failure::refused("this file has no name: say --output DIR"))?;
    Ok(PathBuf::from(format!("punctual-{stem}")))
}
