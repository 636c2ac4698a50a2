//! Bundles in the formats of other tools. docs/reference/formats.md describes each.

mod cases;
mod csv;
mod cyclictest;
mod explained;
#[cfg(feature = "parquet")]
pub mod fleet;
mod folded;
mod gnuplot;
mod hdr;
mod json;
mod junit;
mod junit_hunt;
mod junit_lab;
mod kcidb;
mod lava;
mod micros;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
pub mod systress;

use punctual_bundle::{Bundle, BundleError, Series, Timebase};
use punctual_core::event::{Event, Names, Recorded};
use std::io::{self, Write};

pub use explained::export_explained;
pub use folded::exact_folded;
pub use junit::write_gates as write_junit_of_gates;
pub use junit_hunt::write as write_junit_of_hunt;
pub use junit_lab::write as write_junit_of_lab;
pub use kcidb::{KcidbOptions, write as write_kcidb};
pub use perfetto::exact::write as exact_perfetto;
pub use systress::{
    Layout, file_name as systress_file_name, write_series as write_systress_series,
};

/// The error of a program built without Parquet.
pub const WITHOUT_PARQUET: &str = "the feature `parquet` was left out when punctual was built, as \
                                   ./x demo and ./x build --board do; `./x build` makes the whole \
                                   program";

/// A format to export to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The result files of systress.
    Systress,
    SystressCsv,
    /// cyclictest's `--json`.
    CyclictestJson,
    /// cyclictest's `-h`.
    CyclictestHistogram,
    /// A gnuplot script with its data.
    Gnuplot,
    /// Every kept sample, one per row.
    Csv,
    /// The figures, one series per row.
    CsvSummary,
    Hdr,
    /// Every kept sample in Apache Parquet.
    Parquet,
    /// The results of many bundles in Apache Parquet, as tables.
    ParquetTables,
    Junit,
    Lava,
    Kcidb,
    Json,
    /// A recording as a Perfetto trace.
    Perfetto,
}

impl Format {
    pub const ALL: [Format; 15] = [
        Format::Systress,
        Format::SystressCsv,
        Format::CyclictestJson,
        Format::CyclictestHistogram,
        Format::Gnuplot,
        Format::Csv,
        Format::CsvSummary,
        Format::Hdr,
        Format::Parquet,
        Format::ParquetTables,
        Format::Junit,
        Format::Lava,
        Format::Kcidb,
        Format::Json,
        Format::Perfetto,
    ];

    /// Its name on the command line and its description in one line.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Format::Systress => (
                "systress",
                "histogram and summary in the layout of systress, one file per series with -o DIR",
            ),
            Format::SystressCsv => ("systress-csv", "the same with commas"),
            Format::CyclictestJson => ("cyclictest-json", "what cyclictest --json writes"),
            Format::CyclictestHistogram => ("cyclictest-histogram", "what cyclictest -h prints"),
            Format::Gnuplot => ("gnuplot", "a script with its data that draws the histograms"),
            Format::Csv => ("csv", "every kept sample, one per row"),
            Format::CsvSummary => ("csv-summary", "the figures, one series per row"),
            Format::Hdr => ("hdr", "HdrHistogram V2 interval log, one tag per series"),
            Format::Parquet => ("parquet", "every kept sample in Apache Parquet"),
            Format::ParquetTables => (
                "parquet-tables",
                "tables of many bundles and labs for queries, with -o DIR (docs/fleet.md)",
            ),
            Format::Junit => ("junit", "the requirements' verdicts as JUnit XML"),
            Format::Lava => ("lava", "the requirements' verdicts as lines for LAVA"),
            Format::Kcidb => ("kcidb", "verdicts and figures as a submission to KCIDB (JSON)"),
            Format::Json => ("json", "the summary as JSON (docs/reference/json.md)"),
            Format::Perfetto => ("perfetto", "a recording for ui.perfetto.dev (.pftrace)"),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its description, in one line.
    pub fn description(self) -> &'static str {
        self.words().1
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether it is binary and must not go to a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Perfetto)
    }

    /// Whether it is made from a recording ([`export_recording`]), not from statistics and samples.
    pub fn is_of_recording(self) -> bool {
        matches!(self, Format::Perfetto)
    }

    /// Whether it is one file per series ([`export_files`]) if a directory can be written.
    pub fn is_several_files(self) -> bool {
        matches!(self, Format::Systress | Format::SystressCsv)
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
pub fn export(bundle: &Bundle, format: Format, out: &mut dyn Write) -> Result<(), ExportError> {
    match format {
        Format::Systress => systress::write(bundle, Layout::Txt, out)?,
        Format::SystressCsv => systress::write(bundle, Layout::Csv, out)?,
        Format::CyclictestJson => cyclictest::write_json(bundle, out)?,
        Format::CyclictestHistogram => cyclictest::write_histogram(bundle, out)?,
        Format::Gnuplot => gnuplot::write(&[bundle], out)?,
        Format::Csv => csv::write_samples(bundle, out)?,
        Format::CsvSummary => csv::write_summary(bundle, out)?,
        Format::Hdr => hdr::write(bundle, out)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(bundle, out)?,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            let why = format!("{WITHOUT_PARQUET}; csv holds the same");
            return Err(ExportError::Impossible { format: format.name(), why });
        }
        Format::ParquetTables => {
            let why = "it is a directory of tables, not a stream".to_owned();
            return Err(ExportError::Impossible { format: format.name(), why });
        }
        Format::Junit => junit::write(bundle, out)?,
        Format::Lava => lava::write(bundle, out)?,
        Format::Kcidb => kcidb::write(bundle, &KcidbOptions::default(), out)?,
        Format::Json => json::write(bundle, out)?,
        Format::Perfetto => return Err(no_recording(format)),
    }
    Ok(())
}

/// Writes several bundles into one picture: only formats that draw support it.
pub fn export_together(
    bundles: &[&Bundle],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let impossible =
        |why: &str| ExportError::Impossible { format: format.name(), why: why.to_owned() };
    match (bundles, format) {
        ([one], _) => export(one, format, out),
        (_, Format::Gnuplot)
            if bundles.windows(2).any(|two| two[0].timebase() != two[1].timebase()) =>
        {
            Err(impossible("their times are not of one kind: draw virtual and real time apart"))
        }
        (_, Format::Gnuplot) => Ok(gnuplot::write(bundles, out)?),
        _ => Err(impossible("it is of one bundle: name one (gnuplot takes several)")),
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
    match format {
        Format::Perfetto => perfetto::write(input, events, out)?,
        other => {
            let why = "it is made of statistics and samples, not of a recording".to_owned();
            return Err(ExportError::Impossible { format: other.name(), why });
        }
    }
    Ok(())
}

/// The files of a format with one file per series, each with its name; empty for other formats.
pub fn export_files(
    bundle: &Bundle,
    format: Format,
) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
    match format {
        Format::Systress => Ok(systress::files(bundle, Layout::Txt)?),
        Format::SystressCsv => Ok(systress::files(bundle, Layout::Csv)?),
        _ => Ok(Vec::new()),
    }
}

fn full_name(phase: &str, series: &Series) -> String {
    format!("{phase}/{}", series.meta.name)
}

/// The error of a format made from events if none were recorded.
fn no_recording(format: Format) -> ExportError {
    let why = "it holds no recording of events; `punctual trace` makes one".to_owned();
    ExportError::Impossible { format: format.name(), why }
}

/// The error of a format made from single samples if none were kept.
fn no_samples(bundle: &Bundle, format: Format) -> ExportError {
    let measured = bundle.series().any(|(_, series)| series.state.data.count() > 0);
    let because = match bundle.planned().ok().and_then(|planned| planned.keep_samples) {
        _ if !measured => "nothing was measured",
        Some(0) => "keep_samples is 0 in the experiment",
        Some(_) => "samples that follow one another this fast are counted and not kept",
        None => "its source has none",
    };
    let why = format!(
        "no samples were kept one by one ({because}); csv-summary, hdr and cyclictest-histogram \
         are made of the statistics, which are always there"
    );
    ExportError::Impossible { format: format.name(), why }
}
