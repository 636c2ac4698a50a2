//! `punctual names`: links by whose name this program is another tool, and what it then does.

mod cyclictest;
mod options;
mod systress;

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_session::messages::shown;
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A tool's name, and what this program does by it with the words that follow.
type NamedTool = (&'static str, fn(&[String]) -> ExitCode);

const TOOLS: [NamedTool; 2] = [("cyclictest", cyclictest::serve), ("systress", systress::serve)];

/// Make links by whose name punctual takes the options of another tool and prints its output
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual names /opt/punctual/names\n  \
                        PATH=/opt/punctual/names:$PATH PUNCTUAL_BUNDLE=bundle cyclictest -S -p95 \
                        -D10 -q\n\nThe tools: cyclictest (rt-tests 2.4) and systress. With \
                        PUNCTUAL_BUNDLE they leave a bundle there. Options that are not supported \
                        are refused as unknown.")]
pub struct NamesArgs {
    /// The directory of the links; made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Makes the links; what is there already stays.
pub fn run(args: NamesArgs) -> Ending {
    let own = std::env::current_exe()
        .map_err(|why| Failure::failed(format!("cannot find this program: {why}")))?;
    let cannot = |place: &Path, why: &dyn std::fmt::Display| {
        Failure::refused(format!("cannot make {}: {why}", shown(place)))
    };
    std::fs::create_dir_all(&args.directory).map_err(|why| cannot(&args.directory, &why))?;
    for (name, _) in TOOLS {
        let link = args.directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|to| to == own) {
            continue;
        }
        symlink(&own, &link).map_err(|why| cannot(&link, &why))?;
        output::print(&format!("{}\n", shown(&link)))?;
    }
    Ok(Exit::Done)
}

/// What this program does by the name that it was called by; `None` by its own.
pub fn serve() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    let (_, tool) = TOOLS.iter().find(|(known, _)| *known == name)?;
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Some(tool(&words))
}
