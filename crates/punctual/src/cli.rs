//! The command line: subcommands and what is common to them.

use crate::commands;
use crate::exit::{Ending, HELP};
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Measure the real-time latency of a Linux system and find what causes it
#[derive(Parser)]
#[command(
    name = "punctual",
    version = env!("PUNCTUAL_VERSION"),
    styles = STYLES,
    after_help = HELP,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, one file each: a command's help is there, and a comment here would hide it.
#[derive(Subcommand)]
pub enum Command {
    Demo(commands::demo::DemoArgs),
    New(commands::new::NewArgs),
    Run(commands::run::RunArgs),
    Measure(commands::measure::MeasureArgs),
    Show(commands::show::ShowArgs),
    Watch(commands::watch::WatchArgs),
    Report(commands::report::ReportArgs),
    Explain(commands::explain::ExplainArgs),
    Compare(commands::compare::CompareArgs),
    Lab(commands::lab::LabArgs),
    Sections(commands::sections::SectionsArgs),
    Pairs(commands::pairs::PairsArgs),
    Occupancy(commands::occupancy::OccupancyArgs),
    Steps(commands::steps::StepsArgs),
    Trend(commands::trend::TrendArgs),
    Export(commands::export::ExportArgs),
    Import(commands::import::ImportArgs),
    Trace(commands::trace::TraceArgs),
    Recipe(commands::recipe::RecipeArgs),
    Probe(commands::probe::ProbeArgs),
    Count(commands::count::CountArgs),
    Attach(commands::attach::AttachArgs),
    Check(commands::check::CheckArgs),
    Isolate(commands::isolate::IsolateArgs),
    Cpus(commands::cpus::CpusArgs),
    Boot(commands::boot::BootArgs),
    Ssh(commands::ssh::SshCommandArgs),
    Tune(commands::tune::TuneCommandArgs),
    Convert(commands::convert::ConvertArgs),
    Names(commands::names::NamesArgs),
    #[cfg(feature = "manual")]
    Completions(commands::completions::CompletionsArgs),
    #[cfg(feature = "manual")]
    Man(commands::man::ManArgs),
}

/// Reads the command line; exits with a message if it is invalid.
pub fn parse() -> Cli {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if asks_for_histogram(&words) {
        let refusal =
            "a histogram of all samples is always kept: leave -h N out (-h alone is help)";
        Cli::command().error(ErrorKind::UnknownArgument, refusal).exit();
    }
    Cli::try_parse().unwrap_or_else(|mut error| {
        if error.kind() == ErrorKind::UnknownArgument {
            // "to pass '-p' as a value, use '-- -p'": no bundle or experiment has such a name.
            error.remove(ContextKind::Suggested);
        }
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
            && let Some(why) = left_out(name)
        {
            Cli::command().error(ErrorKind::InvalidSubcommand, why).exit();
        }
        error.exit()
    })
}

/// Whether a histogram is requested in cyclictest's syntax (`-h 400`).
fn asks_for_histogram(words: &[String]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let options = words.iter().take_while(|word| *word != "--").collect::<Vec<_>>();
    let measures = matches!(options.get(1).map(|word| word.as_str()), Some("run" | "measure"));
    measures
        && (options.windows(2).any(|pair| pair[0] == "-h" && is_number(pair[1]))
            || options.iter().any(|word| word.strip_prefix("-h").is_some_and(is_number)))
}

/// Advice if a command is missing in this build.
fn left_out(name: &str) -> Option<String> {
    let is_of_manual = ["completions", "man"].contains(&name);
    (is_of_manual && !cfg!(feature = "manual")).then(|| {
        format!(
            "`{name}` was left out of this punctual (the feature `manual`), as ./x build --board \
             does: use it in the whole program (./x build)"
        )
    })
}

impl Command {
    /// Runs the subcommand.
    pub fn run(self) -> Ending {
        if self.may_report_leftovers() {
            commands::isolate::report_leftovers();
        }
        match self {
            Command::Demo(args) => commands::demo::run(args),
            Command::New(args) => commands::new::run(args),
            Command::Run(args) => commands::run::run(args),
            Command::Measure(args) => commands::measure::run(args),
            Command::Show(args) => commands::show::run(args),
            Command::Watch(args) => commands::watch::run(args),
            Command::Report(args) => commands::report::run(args),
            Command::Explain(args) => commands::explain::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::Lab(args) => commands::lab::run(args),
            Command::Sections(args) => commands::sections::run(args),
            Command::Tune(args) => commands::tune::run(args),
            Command::Pairs(args) => commands::pairs::run(args),
            Command::Occupancy(args) => commands::occupancy::run(args),
            Command::Steps(args) => commands::steps::run(args),
            Command::Trend(args) => commands::trend::run(args),
            Command::Export(args) => commands::export::run(args),
            Command::Import(args) => commands::import::run(args),
            Command::Trace(args) => commands::trace::run(args),
            Command::Recipe(args) => commands::recipe::run(args),
            Command::Probe(args) => commands::probe::run(args),
            Command::Count(args) => commands::count::run(args),
            Command::Attach(args) => commands::attach::run(args),
            Command::Check(args) => commands::check::run(args),
            Command::Isolate(args) => commands::isolate::run(args),
            Command::Cpus(args) => commands::cpus::run(args),
            Command::Boot(args) => commands::boot::run(args),
            Command::Ssh(args) => commands::ssh::run(args),
            Command::Convert(args) => commands::convert::run(args),
            Command::Names(args) => commands::names::run(args),
            #[cfg(feature = "manual")]
            Command::Completions(args) => commands::completions::run(args, Cli::command()),
            #[cfg(feature = "manual")]
            Command::Man(args) => commands::man::run(args, Cli::command()),
        }
    }
}

impl Command {
    /// Whether to report a leftover partition before this command's own output.
    fn may_report_leftovers(&self) -> bool {
        match self {
            Command::Isolate(_) | Command::Cpus(_) | Command::Boot(_) => false,
            #[cfg(feature = "manual")]
            Command::Completions(_) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod documents;

#[cfg(test)]
mod tests {
    use super::{asks_for_histogram, left_out};

    #[test]
    fn a_histogram_as_of_cyclictest_is_recognised() {
        let asks = |line: &str| {
            asks_for_histogram(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
        };
        assert!(asks("punctual measure timer -h 400") && asks("punctual run -h400 x.toml"));
        for line in ["punctual measure -h", "punctual show -h 400", "punctual run x -- -h 4"] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn a_command_excluded_from_this_build_is_reported_with_its_build() {
        assert_eq!(left_out("nonsense"), None);
        for name in ["man", "completions"] {
            let why = left_out(name);
            assert_eq!(why.is_none(), cfg!(feature = "manual"), "{name}");
            assert!(why.is_none_or(|why| why.contains(name) && why.contains("./x build")));
        }
    }
}
