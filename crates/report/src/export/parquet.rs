//! Every kept sample in Apache Parquet, one row group per series: `phase`, `series`, `seq`,
//! `due_ns`, `woke_ns`, `latency_ns`, `cpu`.

use super::{ExportError, Format, no_samples};
use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use punctual_bundle::{Bundle, Timebase};
use punctual_core::Sample;
use std::io::{self, Write};
use std::sync::Arc;

const SCHEMA: &str = "message samples {
    required binary phase (UTF8);
    required binary series (UTF8);
    required int64 seq (INTEGER(64,false));
    required int64 due_ns;
    required int64 woke_ns;
    required int64 latency_ns;
    required int32 cpu (INTEGER(32,false));
}";
/// Columns with steadily rising values: their differences are small (Parquet's
/// DELTA_BINARY_PACKED).
const RISING: [&str; 4] = ["seq", "due_ns", "woke_ns", "latency_ns"];

/// Writes the file. It is first built in memory, as the format needs file offsets.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> Result<(), ExportError> {
    if bundle.all_series().all(|(_, series)| series.state.samples_kept == 0) {
        return Err(no_samples(bundle, Format::Parquet));
    }
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(to_export_error)?);
    let mut file = SerializedFileWriter::new(
        Vec::new(),
        schema,
        Arc::new(writer_properties(bundle.timebase())),
    )
    .map_err(to_export_error)?;
    for (phase, series) in bundle.all_series() {
        let samples = series.load_log()?.samples;
        let mut group = file.next_row_group().map_err(to_export_error)?;
        write_group(&mut group, phase, &series.meta.name, &samples).map_err(to_export_error)?;
        group.close().map_err(to_export_error)?;
    }
    out.write_all(&file.into_inner().map_err(to_export_error)?)?;
    Ok(())
}

fn writer_properties(timebase: Timebase) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("punctual {}", env!("CARGO_PKG_VERSION")));
    for column in RISING {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let mark = timebase
        .short_meaning()
        .map(|mark| vec![KeyValue::new("timebase".to_owned(), mark.to_owned())]);
    properties.set_key_value_metadata(mark).build()
}

fn to_export_error(error: ParquetError) -> ExportError {
    ExportError::Write(io::Error::other(error))
}

type ParquetGroup<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// The columns in the order of the schema.
fn write_group(
    group: &mut ParquetGroup,
    phase: &str,
    series: &str,
    samples: &[Sample],
) -> Result<(), ParquetError> {
    let text = |text: &str| vec![ByteArray::from(text); samples.len()];
    let numbers = |number: fn(&Sample) -> i64| samples.iter().map(number).collect::<Vec<i64>>();
    write_column::<ByteArrayType>(group, &text(phase))?;
    write_column::<ByteArrayType>(group, &text(series))?;
    // Unsigned numbers are stored in the signed type of the same width (Parquet's logical types).
    write_column::<Int64Type>(group, &numbers(|s| s.seq as i64))?;
    write_column::<Int64Type>(group, &numbers(|s| s.due.ns()))?;
    write_column::<Int64Type>(group, &numbers(|s| s.woke.ns()))?;
    write_column::<Int64Type>(group, &numbers(|s| s.latency().ns()))?;
    write_column::<Int32Type>(group, &samples.iter().map(|s| s.cpu as i32).collect::<Vec<i32>>())
}

fn write_column<T: DataType>(
    group: &mut ParquetGroup,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let missing =
        || ParquetError::General("the schema has fewer columns than are written".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
