//! `punctual export`: a bundle in another tool's format.

#[cfg(feature = "parquet")]
mod tables;

use super::bundle::open_checked;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::{Bundle, RanUnder};
use punctual_report::export::{self, ExportError, Format, KcidbOptions, RecordingInput};
use punctual_session::messages::display_path;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Export a bundle to another tool's format
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual export BUNDLE --format gnuplot | gnuplot -p\n  \
                        punctual export before/ after/ --format gnuplot | gnuplot -p\n  punctual \
                        export BUNDLE --format parquet -o samples.parquet\n  punctual export \
                        results/ --format parquet-tables -o fleet\n  punctual export \
                        BUNDLE --format cyclictest-json | jq .thread\n  punctual export BUNDLE \
                        --format perfetto -o trace.pftrace")]
pub struct ExportArgs {
    /// The bundle; gnuplot accepts several and plots them together; parquet-tables accepts
    /// bundles, labs and directories of them
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The format
    #[arg(long, short, value_name = "FORMAT", value_parser = format_parser())]
    format: Format,
    /// The output file; formats of several files (systress, systress-csv) create a directory
    /// [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// kcidb: the name of the CI system that submits [default: punctual]
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// kcidb: the id of a build that was submitted before [default: submit one, described by the
    /// kernel's release]
    #[arg(long, value_name = "ID")]
    build: Option<String>,
    /// parquet-tables: the machine of bundles that do not name theirs [default: unknown]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

fn format_parser() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = Format::ALL
        .iter()
        .map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(values).map(|name| {
        let chosen_format = Format::ALL.iter().copied().find(|format| format.name() == name);
        chosen_format.expect("clap lets only the listed names through")
    })
}

/// Opens the bundle, converts and writes it.
pub fn run(args: ExportArgs) -> Ending {
    if args.machine.is_some() && args.format != Format::ParquetTables {
        return Err(Failure::refused("--machine is for --format parquet-tables"));
    }
    if args.format != Format::Kcidb && (args.origin.is_some() || args.build.is_some()) {
        return Err(Failure::refused("--origin and --build are for --format kcidb"));
    }
    if args.format == Format::ParquetTables {
        #[cfg(feature = "parquet")]
        return tables::write(&args.bundles, args.machine.as_deref(), args.output.as_deref());
        #[cfg(not(feature = "parquet"))]
        return Err(Failure::refused(export::WITHOUT_PARQUET));
    }
    let bundles = args
        .bundles
        .iter()
        .map(|path| open_checked(path))
        .collect::<Result<Vec<Bundle>, Failure>>()?;
    if args.format.is_binary() && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::refused(
            "this format is binary: name a file with -o, or redirect the output",
        ));
    }
    let submission = KcidbOptions::new(args.origin, args.build).map_err(Failure::refused)?;
    let all_bundles: Vec<&Bundle> = bundles.iter().collect();
    let one = || all_bundles.first().copied().filter(|_| all_bundles.len() == 1);
    match (args.output, one()) {
        (Some(directory), Some(bundle)) if args.format.is_several_files() => {
            write_files(bundle, args.format, &directory)?
        }
        (output, Some(bundle)) if args.format == Format::Kcidb => {
            let mut bytes = Vec::new();
            export::write_kcidb(bundle, &submission, &mut bytes)
                .map_err(|error| Failure::failed(ExportError::from(error)))?;
            output::write_to(output.as_deref(), &bytes)?;
        }
        (output, Some(bundle)) if args.format.is_of_recording() => {
            write_recording(bundle, args.format, output.as_deref())?
        }
        (output, _) => {
            let mut bytes = Vec::new();
            export::export_together(&all_bundles, args.format, &mut bytes).map_err(|error| {
                match all_bundles.len() {
                    1 => Failure::failed(error),
                    _ => Failure::refused(error),
                }
            })?;
            output::write_to(output.as_deref(), &bytes)?;
        }
    }
    // The readable part is written; that it is incomplete is an error.
    let of_samples = args.format.is_of_samples();
    let mut damaged = bundles.iter().filter(|bundle| of_samples && bundle.damaged_samples);
    match damaged.next() {
        Some(bundle) => Err(Failure::failed(bundle.damage.join("\n       "))),
        None => Ok(Exit::Done),
    }
}

/// A recording may be larger than memory: it is streamed.
fn write_recording(bundle: &Bundle, format: Format, output: Option<&Path>) -> Result<(), Failure> {
    punctual_session::playback::check_readable(bundle)?;
    let Some(opened) = punctual_session::playback::open_recording(bundle) else {
        return export::export_bundle(bundle, format, &mut io::sink()).map_err(Failure::failed);
    };
    let environment = RanUnder::from_bundle(bundle);
    let input = RecordingInput {
        recorded: &opened.recorded,
        names: opened.names(),
        release: environment.kernel_release(),
        timebase: bundle.timebase(),
    };
    output::stream_to(output, |out| {
        export::export_recording(input, opened.events(), format, out).map_err(|error| match error {
            ExportError::Write(error) => error.into(),
            other => Failure::failed(other),
        })
    })
}

fn write_files(bundle: &Bundle, format: Format, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir(directory).map_err(|why| {
        Failure::refused(format!("cannot create {}: {why}", display_path(directory)))
    })?;
    for (name, bytes) in export::export_files(bundle, format).map_err(Failure::failed)? {
        output::write_to(Some(&directory.join(name)), &bytes)?;
    }
    Ok(())
}
