//! `punctual import`: converts another tool's results to a bundle.

use super::answer;
use super::bundle::{CycleArgs, open_bundle, show_options_of};
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::import::{ImportOptions, Tool, import_results};
use punctual_report::terminal;
use punctual_session::cycles::CycleOptions;
use punctual_session::messages::display_path;
use punctual_session::traces::{self, Converted, TraceOptions};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes at the beginning of a file that are read to recognize it.
const HEAD: u64 = 1 << 16;

/// Import another tool's results into a bundle
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cyclictest -q -D 60 -t -a -m -p 95 -h 1000 --json=old.json; \
                        punctual import old.json\n  punctual import histogram.txt -o old && \
                        punctual report old new\n  rtla timerlat hist -c 1 -d 1m >hist.txt; \
                        punctual import hist.txt\n\nRecognised by content: cyclictest (JSON, \
                        histogram, -v, status lines), cyclicdeadline, oslat (JSON and text), \
                        hwlatdetect, jitterdebugger (results.json, samples.raw, status lines), \
                        rtla timerlat and osnoise (hist, top, the analysis of -a), the tables of \
                        the kernel's osnoise, timerlat and hwlat tracers, Xenomai's latency, \
                        latmus, rteval, perf sched, one run at a time; and traces of other tools \
                        (docs/traces.md), of which the cycles are found.")]
pub struct ImportArgs {
    /// The output file of the other tool, or a bundle with a recording, of which the cycles are
    /// found
    file: PathBuf,
    /// The bundle's directory, which must not exist [default: the file's name without its
    /// extension, in the current directory]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The name of the experiment [default: the file's name without its extension]
    #[arg(long)]
    name: Option<String>,
    /// The tool that wrote the file, if the content does not identify it [default: recognised by
    /// content]
    #[arg(long, value_name = "TOOL", value_parser = tool_parser())]
    from: Option<Tool>,
    /// Read the figures of text output as ns (cyclictest -N); the text does not state the unit
    #[arg(long)]
    nanoseconds: bool,
    #[command(flatten)]
    cycles: CycleArgs,
}

fn tool_parser() -> impl clap::builder::TypedValueParser<Value = Tool> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let names = PossibleValuesParser::new(Tool::ALL.map(Tool::name));
    names.map(|name| Tool::from_name(&name).expect("clap lets only the listed names through"))
}

/// Reads the file, writes the bundle and prints its path.
pub fn run(args: ImportArgs) -> Ending {
    let stem = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.ok_or_else(|| Failure::refused("this file has no name: add --output DIR"))?;
    let directory = args.output.unwrap_or_else(|| PathBuf::from(format!("punctual-{stem}")));
    let cycles = args.cycles.cycle_options();
    let is_dir = args.file.is_dir();
    let is_trace = traces::is_trace(&args.file)
        && (is_dir || traces::is_foreign_trace(&args.file) && !is_tracer_table(&args.file));
    let what = if is_trace { "a trace" } else { "a directory" };
    let refused = |option: &str, why: &str| {
        Failure::refused(format!("{option} {why}, and {} is {what}", display_path(&args.file)))
    };
    if args.from.is_some() && is_dir {
        return Err(refused("--from", "names the tool that wrote a file of results"));
    }
    if args.nanoseconds && (is_dir || is_trace && args.from.is_none()) {
        return Err(refused("--nanoseconds", "is about text of cyclictest"));
    }
    let converted = match args.from {
        None if is_trace => {
            Some(traces::import_trace(&args.file, &directory, args.name.clone(), cycles)?)
        }
        None if is_dir => Some(of_recording(&args.file, &directory, args.name.clone(), cycles)?),
        _ => None,
    };
    if let Some(converted) = converted {
        output::print_stderr(&format!("{}\n", converted.described.join("\n")));
        let said = say_answer(&directory, &args.cycles);
        let named = output::print_stdout(&format!("{}\n", display_path(&directory)));
        let exit = match converted.none {
            Some(why) if converted.exit == Exit::Done => {
                output::print_stderr(&format!("{why}\n"));
                if converted.has_moments { Exit::Done } else { Exit::Failed }
            }
            _ => converted.exit,
        };
        return exit::ending_of_output(said.and(named), exit);
    }
    let cannot_read =
        |why| Failure::refused(format!("cannot read {}: {why}", display_path(&args.file)));
    let mut input = File::open(&args.file).map_err(cannot_read)?;
    let options = ImportOptions {
        name: args.name.unwrap_or(stem),
        from: args.from,
        nanoseconds: args.nanoseconds,
        asked: args.cycles.import_questions(),
    };
    let summary =
        import_results(&mut input, &directory, &options, punctual_stats::summarize_bundle)
            .map_err(|why| Failure::refused(format!("{}: {why}", display_path(&args.file))))?;
    let said = say_answer(&directory, &args.cycles);
    let named = output::print_stdout(&format!("{}\n", display_path(&directory)));
    // A tool that stopped or failed was imported nevertheless.
    let is_judged = !options.asked.requirements.is_empty();
    exit::ending_of_output(
        said.and(named),
        if is_judged { summary.verdict.to_exit() } else { Exit::Done },
    )
}

/// Prints the answer, if options request one.
fn say_answer(directory: &Path, asked: &CycleArgs) -> Result<(), Failure> {
    if asked.has_any() {
        let bundle = open_bundle(directory)?;
        let summary = answer::summarize_with_answer(&bundle);
        output::print_stderr(&terminal::show_answer(&summary, &show_options_of(&bundle)));
    }
    Ok(())
}

/// Whether the file has figures of the kernel's osnoise or timerlat tracer, which look like a
/// trace.
fn is_tracer_table(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && punctual_bundle::import::is_tracer_table(&head)
}

/// The cycles in the recording of a bundle.
fn of_recording(
    path: &Path,
    directory: &Path,
    name: Option<String>,
    cycles: CycleOptions,
) -> Result<Converted, Failure> {
    let bundle = open_bundle(path)?;
    let name = name.unwrap_or_else(|| bundle.manifest.experiment.clone());
    let origin = format!("import: {}", bundle.manifest.origin);
    traces::cycles_of(&bundle, directory, TraceOptions { name, origin, cycles })
}
