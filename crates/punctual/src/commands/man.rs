//! `punctual man`: the man pages of all subcommands, made from the same text as `--help`, and
//! punctual-experiment(5).

use crate::exit::{Ending, Exit, Failure};
use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

const EXPERIMENT_PAGE: &str = include_str!("../../../../docs/man/punctual-experiment.5");

/// Write the man pages of all subcommands to a directory
#[derive(clap::Args)]
#[command(after_help = "Example: punctual man /usr/local/share/man && man punctual-run")]
pub struct ManArgs {
    /// The directory; man1/ and man5/ are created in it
    directory: PathBuf,
}

/// Writes the pages.
pub fn run(args: ManArgs, mut whole: Command) -> Ending {
    let (first, fifth) = (args.directory.join("man1"), args.directory.join("man5"));
    for directory in [&first, &fifth] {
        std::fs::create_dir_all(directory).map_err(|e| cannot_write(directory, &e))?;
    }
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
    let page = with_values(&String::from_utf8_lossy(&page), command);
    rendered
        .and_then(|()| std::fs::write(&path, page))
        .map_err(|error| cannot_write(&path, &error))?;
    command
        .get_subcommands()
        .try_for_each(|sub| write_pages(directory, &format!("{name}-{}", sub.get_name()), sub))
}

/// clap_mangen's SYNOPSIS names options without their values: it is replaced by one with them.
fn with_values(page: &str, command: &Command) -> String {
    const HEAD: &str = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(HEAD) else { return page.to_owned() };
    let after = rest.find(".SH ").map_or("", |at| &rest[at..]);
    let mut synopsis =
        format!("\\fB{}\\fR", escape_roff(command.get_bin_name().unwrap_or(command.get_name())));
    // Options first, then positional arguments; those after `--` last.
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .partition(|arg| arg.is_positional());
    options
        .into_iter()
        .chain(positional)
        .for_each(|arg| synopsis += &format!(" {}", in_synopsis(arg)));
    if command.has_subcommands() {
        synopsis += " \\fIsubcommand\\fR";
    }
    format!("{before}{HEAD}{synopsis}\n{after}")
}

fn in_synopsis(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("\\-{short}"));
    let flag = arg.get_long().map(|long| format!("\\-\\-{}", escape_roff(long))).or(short);
    let names = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|name| format!("\\fI{}\\fR", escape_roff(name)));
    let value = names.collect::<Vec<_>>().join(" ");
    let dashes = if arg.is_last_set() { "\\-\\- " } else { "" };
    let text = match flag {
        Some(flag) if arg.get_action().takes_values() => format!("\\fB{flag}\\fR {value}"),
        Some(flag) => format!("\\fB{flag}\\fR"),
        None => format!("{dashes}{value}"),
    };
    let is_repeatable = arg.get_num_args().is_some_and(|values| values.max_values() > 1)
        || matches!(arg.get_action(), ArgAction::Append) && arg.is_positional();
    let text = if is_repeatable { format!("{text}...") } else { text };
    if arg.is_required_set() { text } else { format!("[{text}]") }
}

/// Escaped hyphens in roff are minus signs: text copied from the page works.
fn escape_roff(text: &str) -> String {
    text.replace('-', "\\-")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
