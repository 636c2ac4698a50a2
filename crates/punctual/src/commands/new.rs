//! `punctual new`: a first experiment that lists every key of its measure with its default value.

use super::measure;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_plan::text::quote_toml;
use punctual_plan::{Word, WorkloadKind};
use punctual_session::messages::display_path;
use punctual_session::programs::find_program;
use punctual_session::request::ExperimentRequest;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Write an experiment file to start from
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual new\n  punctual new disk.toml --kind storage\n  \
                        punctual new --require \"max < 100us\"\n  punctual new - | \
                        less\n\nExisting files are not overwritten. punctual-experiment(5) \
                        describes every key; `punctual measure --help` lists the kinds.")]
pub struct NewArgs {
    /// The output file, which must not exist; `-` is standard output
    #[arg(default_value = "experiment.toml")]
    file: PathBuf,
    /// What to measure
    #[arg(long, short, value_name = "KIND", default_value = WorkloadKind::Timer.word(),
          value_parser = measure::parse_kind)]
    kind: WorkloadKind,
    /// The CPUs to measure on: a list like 0-2,4, or all
    #[arg(long, value_name = "CPUS")]
    cpus: Option<String>,
    /// How long each phase lasts
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    duration: String,
    /// A requirement on every series, such as "p99 < 10us"; can be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<String>,
}

/// The remark on a key, the same in every measure.
const REMARKS: [(&str, &str); 9] = [
    ("name", "name of the series, and of the files in the bundle"),
    ("cpus", "a list like \"0-2,4\", or \"all\""),
    ("threads", "a number, or \"per-cpu\""),
    ("policy", "\"fifo\", \"rr\", \"deadline\", \"other\", \"batch\", \"idle\""),
    ("priority", "1 to 99"),
    ("period", "from one wake-up to the next"),
    ("histogram", "exact up to its range; percentiles are exact beyond it too, to three digits"),
    ("stop_above", "ends the run if a latency exceeds it"),
    ("samples", "ends the measure after this many samples"),
];

/// Writes the file.
pub fn run(args: NewArgs) -> Ending {
    let text = format_experiment(&args)?;
    if args.file == Path::new("-") {
        output::print_stdout(&text)?;
        return Ok(Exit::Done);
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&args.file);
    let mut file = file.map_err(|why| match why.kind() {
        ErrorKind::AlreadyExists => Failure::refused(format!(
            "{} exists already; it was not changed",
            display_path(&args.file)
        )),
        _ => Failure::refused(format!("cannot write {}: {why}", display_path(&args.file))),
    })?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|why| {
        Failure::failed(format!("cannot write {}: {why}", display_path(&args.file)))
    })?;
    let name = shell_words::quote(&display_path(&args.file)).into_owned();
    output::print_stdout(&format!(
        "{name}\n\nnext: punctual run --plan {name}\n      punctual run {name}\n"
    ))?;
    Ok(Exit::Done)
}

fn format_experiment(args: &NewArgs) -> Result<String, Failure> {
    let set = set_keys(args);
    let kind = args.kind.word();
    let title = args.kind.title();
    let mut text = format!(
        "# {kind}: {title}.\n#\n#     punctual run --plan FILE    shows the resolved plan, and \
         starts nothing\n#     punctual run FILE           measures, shows the results, writes a \
         bundle\n#     punctual report BUNDLE      writes an HTML page\n#\n# A key after a # \
         shows the default value: remove the # to change it. punctual-experiment(5) describes \
         every key.\n\n[[measure]]\n{set}"
    );
    if args.require.is_empty() {
        text += "# Requirements; exit code 3 if one is not met.\n# require = [\"max < 100us\", \
                 \"p99.9 < 60us\"]\n";
    }
    text += &format_defaults(&set, &args.duration)?;
    Ok(text + &loads_and_phases(&args.duration))
}

/// The keys of the measure that are decided.
fn set_keys(args: &NewArgs) -> String {
    let mut text = format!("kind = {}\n", quote_toml(args.kind.word()));
    if args.kind == WorkloadKind::Program {
        text += "# Your program instead: its threads that work in cycles are measured.\ncommand = \
                 \"sleep 10\"\n";
    }
    text.extend(args.cpus.as_ref().map(|cpus| format!("cpus = {}\n", quote_toml(cpus))));
    if !args.require.is_empty() {
        let list: Vec<String> = args.require.iter().map(|one| quote_toml(one)).collect();
        text += &format!("require = [{}]\n", list.join(", "));
    }
    text
}

/// All other keys of the measure as resolved on this system, after a #. Errors in the fixed ones
/// end it.
fn format_defaults(set: &str, duration: &str) -> Result<String, Failure> {
    let measure = format!("[[measure]]\n{set}\n[[phase]]\nduration = {}\n", quote_toml(duration));
    let (_, plan) =
        ExperimentRequest::of_plain_text(Path::new("experiment.toml"), measure.into_bytes())
            .resolve(output::stderr_messages(false))?;
    let resolved = plan.to_toml();
    let keys = resolved.lines().skip_while(|line| *line != "[[measure]]").skip(1);
    let is_set =
        |line: &&str| set.lines().any(|own| own.split(" = ").next() == line.split(" = ").next());
    let lines = keys.take_while(|line| line.contains(" = ")).filter(|line| !is_set(line));
    Ok(lines.map(|line| format!("# {}\n", add_remark(line))).collect())
}

fn add_remark(line: &str) -> String {
    let remark = REMARKS.iter().find(|(key, _)| line.split(" = ").next() == Some(key));
    remark.map_or_else(|| line.to_owned(), |(_, remark)| format!("{line:<30} # {remark}"))
}

/// An idle phase and a loaded one; without stress-ng the load is a placeholder.
fn loads_and_phases(duration: &str) -> String {
    let duration = quote_toml(duration);
    let idle = format!("\n[[phase]]\nname = \"idle\"\nduration = {duration}\n");
    let load = "\n[[load]]\nname = \"compute\"\ncommand = \"stress-ng --cpu 2 --quiet\"\n";
    let loaded =
        format!("\n[[phase]]\nname = \"loaded\"\nduration = {duration}\nloads = [\"compute\"]\n");
    match find_program("stress-ng") {
        Ok(_) => format!("\n# A load runs during the phases that name it.{load}{idle}{loaded}"),
        Err(_) => {
            let off = |text: &str| {
                text.trim_start().lines().map(|line| format!("# {line}\n")).collect::<String>()
            };
            let missing_note = "# stress-ng is not installed. With it, or with any other program \
                       that loads the system:\n#\n";
            format!("{idle}\n{missing_note}{}#\n{}", off(load), off(&loaded))
        }
    }
}
