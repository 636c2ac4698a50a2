//! A table with typed columns, written as one Parquet file.

use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::sync::Arc;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    Text,
    /// Integers whose neighbours differ little.
    Number,
    Fraction,
    /// µs since 1970, UTC.
    Time,
}

/// A value of a row; `None` if it is unknown or not requested.
#[derive(Clone, Debug)]
pub enum FleetValue {
    Text(Option<String>),
    Number(Option<i64>),
    Fraction(Option<f64>),
}

impl From<&str> for FleetValue {
    fn from(text: &str) -> FleetValue {
        FleetValue::Text(Some(text.to_owned()))
    }
}

impl From<Option<&str>> for FleetValue {
    fn from(text: Option<&str>) -> FleetValue {
        FleetValue::Text(text.map(str::to_owned))
    }
}

impl From<i64> for FleetValue {
    fn from(number: i64) -> FleetValue {
        FleetValue::Number(Some(number))
    }
}

impl From<Option<i64>> for FleetValue {
    fn from(number: Option<i64>) -> FleetValue {
        FleetValue::Number(number)
    }
}

/// Counts never reach the sign bit.
impl From<u64> for FleetValue {
    fn from(number: u64) -> FleetValue {
        FleetValue::Number(i64::try_from(number).ok())
    }
}

impl From<Option<u64>> for FleetValue {
    fn from(number: Option<u64>) -> FleetValue {
        FleetValue::Number(number.and_then(|number| i64::try_from(number).ok()))
    }
}

impl From<Option<f64>> for FleetValue {
    fn from(number: Option<f64>) -> FleetValue {
        FleetValue::Fraction(number)
    }
}

/// Names and kinds of columns.
pub type FleetColumns = &'static [(&'static str, ColumnType)];

/// The rows, by column.
pub struct FleetTable {
    name: &'static str,
    columns: FleetColumns,
    values: Vec<Vec<FleetValue>>,
}

impl FleetTable {
    pub fn new(name: &'static str, columns: FleetColumns) -> FleetTable {
        FleetTable { name, columns, values: vec![Vec::new(); columns.len()] }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds a row: a value for each column, in column order.
    pub fn push(&mut self, row: impl IntoIterator<Item = FleetValue>) {
        let mut row = row.into_iter();
        for column in &mut self.values {
            column.push(row.next().expect("a value for each column"));
        }
        assert!(row.next().is_none(), "as many values as columns");
    }

    /// Writes the file with one row group.
    pub fn write(&self, out: &mut File) -> Result<(), ParquetError> {
        let schema = Arc::new(parse_message_type(&self.format_schema())?);
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("punctual {}", env!("CARGO_PKG_VERSION")));
        for (name, _) in self.columns.iter().filter(|(_, kind)| *kind == ColumnType::Number) {
            let column = ColumnPath::from(*name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?;
        let mut group = file.next_row_group()?;
        for ((_, kind), values) in self.columns.iter().zip(&self.values) {
            match kind {
                ColumnType::Text => {
                    write_column::<ByteArrayType>(&mut group, values, |value| match value {
                        FleetValue::Text(text) => text.as_deref().map(ByteArray::from),
                        _ => None,
                    })?
                }
                ColumnType::Number | ColumnType::Time => {
                    write_column::<Int64Type>(&mut group, values, |value| match value {
                        FleetValue::Number(number) => *number,
                        _ => None,
                    })?
                }
                ColumnType::Fraction => {
                    write_column::<DoubleType>(&mut group, values, |value| match value {
                        FleetValue::Fraction(number) => *number,
                        _ => None,
                    })?
                }
            }
        }
        group.close()?;
        file.close()?;
        Ok(())
    }

    fn format_schema(&self) -> String {
        let column = |(name, kind): &(&str, ColumnType)| match kind {
            ColumnType::Text => format!("optional binary {name} (UTF8);\n"),
            ColumnType::Number => format!("optional int64 {name};\n"),
            ColumnType::Fraction => format!("optional double {name};\n"),
            ColumnType::Time => format!("optional int64 {name} (TIMESTAMP(MICROS,true));\n"),
        };
        let columns: String = self.columns.iter().map(column).collect();
        format!("message {} {{\n{columns}}}", self.name)
    }
}

/// The present values, and which rows have none.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut File>,
    values: &[FleetValue],
    of: impl Fn(&FleetValue) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let column_values: Vec<Option<T::T>> = values.iter().map(of).collect();
    let levels: Vec<i16> = column_values.iter().map(|value| i16::from(value.is_some())).collect();
    let present_values: Vec<T::T> = column_values.into_iter().flatten().collect();
    let missing =
        || ParquetError::General("the schema has fewer columns than are written".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&present_values, Some(&levels), None)?;
    column.close()
}
