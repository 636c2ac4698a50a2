//! Bundles in the formats of other tools. docs/reference/formats.md describes each.

mod cases;
mod csv;
mod cyclictest;
pub mod cyclictest_output;
mod explained;
#[cfg(feature = "parquet")]
pub mod fleet;
mod folded;
mod gnuplot;
mod hdr;
mod json;
mod junit;
mod junit_lab;
mod kcidb;
mod lava;
mod lcov;
mod micros;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
pub mod systress;

use punctual_bundle::{Bundle, BundleError, Series, Timebase};
use punctual_core::event::{Event, Names, Recorded};
use std::io::{self, Write};

pub use explained::exact_folded;
pub use explained::export_explained;
pub use junit::write_gates as write_junit_of_gates;
pub use junit_lab::write as write_junit_of_lab;
pub use kcidb::{KcidbOptions, write as write_kcidb};
pub use lcov::format_tracefile;
pub use perfetto::exact::write as exact_perfetto;
pub use systress::{
    SystressLayout, file_name as systress_file_name, write_series as write_systress_series,
};

/// The error of a program built without Parquet.
pub const WITHOUT_PARQUET: &str = "the feature `parquet` was left out when punctual was built, as \
                                   ./x demo and ./x build --board do; `./x build` makes the whole \
                                   program";

/// A format to export to, declared in the file of its writer.
#[derive(Clone, Copy)]
struct Exporter {
    /// Its name on the command line.
    name: &'static str,
    /// Its description, in one line.
    about: &'static str,
    /// Whether it must not go to a terminal.
    is_binary: bool,
    /// Whether it is made of single samples: of damaged ones it has only the readable part.
    is_of_samples: bool,
    /// Whether it states the verdict, so that a script may act on it.
    answers: bool,
    writer: Writer,
    /// Its files, each with its name, if it has one per series.
    files: Option<fn(&Bundle) -> io::Result<NamedFiles>>,
}

/// Files with their names.
type NamedFiles = Vec<(String, Vec<u8>)>;

/// The sources of a format.
#[derive(Clone, Copy)]
enum Writer {
    Bundle(fn(&Bundle, &mut dyn Write) -> Result<(), ExportError>),
    /// Any number of bundles, drawn together.
    Bundles(fn(&[&Bundle], &mut dyn Write) -> io::Result<()>),
    /// The events of a recording, in order of time.
    Recording(
        fn(RecordingInput<'_>, &mut dyn Iterator<Item = Event>, &mut dyn Write) -> io::Result<()>,
    ),
    /// The command writes it into a directory: there is no stream.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Directory,
}

impl Exporter {
    /// A text without a verdict.
    const fn new(name: &'static str, about: &'static str, writer: Writer) -> Exporter {
        Exporter {
            name,
            about,
            is_binary: false,
            is_of_samples: false,
            answers: false,
            writer,
            files: None,
        }
    }
}

macro_rules! formats {
    ($( $(#[$doc:meta])* $format:ident: $exporter:expr, )*) => {
        /// A format to export to.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Format { $( $(#[$doc])* $format, )* }

        impl Format {
            pub const ALL: [Format; [$(stringify!($format)),*].len()] = [ $( Format::$format, )* ];

            const fn exporter(self) -> Exporter {
                match self { $( Format::$format => $exporter, )* }
            }
        }
    };
}

formats! {
    /// The result files of systress.
    Systress: systress::TXT,
    SystressCsv: systress::CSV,
    /// cyclictest's `--json`.
    CyclictestJson: cyclictest::JSON,
    /// cyclictest's `-h`.
    CyclictestHistogram: cyclictest::HISTOGRAM,
    /// A gnuplot script with its data.
    Gnuplot: gnuplot::EXPORTER,
    /// Stacks of attached threads.
    Folded: folded::EXPORTER,
    /// Every kept sample, one per row.
    Csv: csv::SAMPLES,
    /// The figures, one series per row.
    CsvSummary: csv::SUMMARY,
    Hdr: hdr::EXPORTER,
    /// Every kept sample in Apache Parquet.
    Parquet: PARQUET,
    /// The results of many bundles in Apache Parquet, as tables.
    ParquetTables: PARQUET_TABLES,
    Junit: junit::EXPORTER,
    Lava: lava::EXPORTER,
    Kcidb: kcidb::EXPORTER,
    Json: json::EXPORTER,
    /// A recording as a Perfetto trace.
    Perfetto: perfetto::EXPORTER,
}

/// Its writer is left out with the feature.
const PARQUET: Exporter = Exporter {
    is_binary: true,
    is_of_samples: true,
    ..Exporter::new(
        "parquet",
        "every kept sample in Apache Parquet",
        #[cfg(feature = "parquet")]
        Writer::Bundle(parquet::write),
        #[cfg(not(feature = "parquet"))]
        Writer::Bundle(|_, _| {
            let why = format!("{WITHOUT_PARQUET}; csv holds the same");
            Err(ExportError::Impossible { format: "parquet", why })
        }),
    )
};
const PARQUET_TABLES: Exporter = Exporter::new(
    "parquet-tables",
    "tables of many bundles and labs for queries, with -o DIR (docs/fleet.md)",
    Writer::Directory,
);

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.exporter().name
    }

    /// Its description, in one line.
    pub fn description(self) -> &'static str {
        self.exporter().about
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether it is binary and must not go to a terminal.
    pub fn is_binary(self) -> bool {
        self.exporter().is_binary
    }

    /// Whether it is made from single samples: of damaged ones it has only the readable part.
    pub fn is_of_samples(self) -> bool {
        self.exporter().is_of_samples
    }

    /// Whether it is made from a recording ([`export_recording`]), not from statistics and samples.
    pub fn is_of_recording(self) -> bool {
        matches!(self.exporter().writer, Writer::Recording(_))
    }

    /// Whether it is one file per series ([`export_files`]) if a directory can be written.
    pub fn is_several_files(self) -> bool {
        self.exporter().files.is_some()
    }

    /// Whether it states the verdict, so that a script may act on it.
    pub fn has_verdict(self) -> bool {
        self.exporter().answers
    }
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// A part of the bundle that the format needs cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The bundle does not hold the data that the format is made from.
    #[error("{format} cannot be written from this bundle: {why}")]
    Impossible {
        format: &'static str,
        /// What is missing, and how to get it.
        why: String,
    },
}

/// Writes a bundle in a format as one stream.
pub fn export_bundle(
    bundle: &Bundle,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match format.exporter().writer {
        Writer::Bundle(write) => write(bundle, out),
        Writer::Bundles(write) => Ok(write(&[bundle], out)?),
        Writer::Recording(_) => Err(no_recording(format)),
        Writer::Directory => {
            Err(impossible_export(format, "it is a directory of tables, not a stream"))
        }
    }
}

/// Writes several bundles into one picture: only formats that draw support it.
pub fn export_together(
    bundles: &[&Bundle],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match (bundles, format.exporter().writer) {
        ([one], _) => export_bundle(one, format, out),
        (_, Writer::Bundles(_))
            if bundles.windows(2).any(|two| two[0].timebase() != two[1].timebase()) =>
        {
            let reason = "their times are not of one kind: draw virtual and real time apart";
            Err(impossible_export(format, reason))
        }
        (_, Writer::Bundles(write)) => Ok(write(bundles, out)?),
        _ => {
            Err(impossible_export(format, "it is of one bundle: name one (gnuplot takes several)"))
        }
    }
}

/// The recording of a bundle, for formats that are made from one.
#[derive(Clone, Copy, Debug)]
pub struct RecordingInput<'a> {
    /// The extent and the losses of the recording.
    pub recorded: &'a Recorded,
    /// The names of the numbers in its events.
    pub names: &'a Names,
    /// The kernel's release, if known.
    pub release: Option<&'a str>,
    /// The timebase of the recording.
    pub timebase: Timebase,
}

/// Writes a recording. Events come in time order and are not stored: memory use does not grow with
/// their number.
pub fn export_recording(
    input: RecordingInput<'_>,
    events: impl IntoIterator<Item = Event>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match format.exporter().writer {
        Writer::Recording(write) => Ok(write(input, &mut events.into_iter(), out)?),
        _ => Err(impossible_export(
            format,
            "it is made of statistics and samples, not of a recording",
        )),
    }
}

/// The files of a format with one file per series, each with its name; empty for other formats.
pub fn export_files(bundle: &Bundle, format: Format) -> Result<NamedFiles, ExportError> {
    Ok(format.exporter().files.map_or_else(|| Ok(Vec::new()), |files| files(bundle))?)
}

fn full_name(phase: &str, series: &Series) -> String {
    format!("{phase}/{}", series.meta.name)
}

fn impossible_export(format: Format, why: &str) -> ExportError {
    ExportError::Impossible { format: format.name(), why: why.to_owned() }
}

/// The error of a format made from events if none were recorded.
fn no_recording(format: Format) -> ExportError {
    impossible_export(format, "it has no recording of events; `punctual trace` makes one")
}

/// The error of a format made from single samples if none were kept.
fn no_samples(bundle: &Bundle, format: Format) -> ExportError {
    let measured = bundle.all_series().any(|(_, series)| series.state.data.sample_count() > 0);
    let because = match bundle.planned_requests().ok().and_then(|planned| planned.keep_samples) {
        _ if !measured => "nothing was measured",
        Some(0) => "keep_samples is 0 in the experiment",
        Some(_) => "samples that follow one another this fast are counted and not kept",
        None => "its source has none",
    };
    let reason = format!(
        "no samples were kept one by one ({because}); csv-summary, hdr and cyclictest-histogram \
         are made of the statistics, which are always there"
    );
    ExportError::Impossible { format: format.name(), why: reason }
}
