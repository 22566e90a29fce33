//! Tables of plain columns as Parquet files, for pandas, polars and DuckDB.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Rows in a row group: large enough to compress, small enough to be read piece by piece.
const ROW_GROUP: usize = 1 << 20;

/// A table in memory, column by column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Values)>,
}

/// The values of one column.
#[derive(Clone, Debug)]
pub enum Values {
    /// Text (a UTF-8 string column).
    Text(Vec<String>),
    /// One text for all rows, as many as the table has.
    Same(String),
    /// Whole numbers of at least zero (an unsigned 64-bit column).
    Count(Vec<u64>),
    /// One whole number for all rows.
    SameCount(u64),
    /// Numbers; NaN is written as null.
    Float(Vec<f64>),
    /// One number for all rows; NaN is written as null.
    SameFloat(f64),
}

impl Values {
    /// Rows, or `None` if it goes along with any number.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Text(values) => Some(values.len()),
            Self::Count(values) => Some(values.len()),
            Self::Float(values) => Some(values.len()),
            Self::Same(_) | Self::SameCount(_) | Self::SameFloat(_) => None,
        }
    }

    fn field(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical, repetition) = match self {
            Self::Text(_) | Self::Same(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Self::Count(_) | Self::SameCount(_) => {
                (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED)
            }
            Self::Float(_) | Self::SameFloat(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        Type::primitive_type_builder(name, physical).with_logical_type(logical).with_repetition(repetition).build()
    }
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column at the right.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, values: Values) -> Self {
        self.columns.push((name.into(), values));
        self
    }

    /// The columns from left to right, with their names.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.columns.iter().map(|(name, values)| (name.as_str(), values))
    }

    /// The table without the column called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.columns.retain(|(known, _)| known != name);
        self
    }

    /// The column called `name`.
    #[cfg(test)]
    pub(crate) fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values)
    }

    /// Rows of the shortest column; 1 if all columns hold one value for all rows.
    pub fn rows(&self) -> usize {
        self.columns.iter().filter_map(|(_, values)| values.len()).min().unwrap_or(1)
    }

    /// Writes the table as a Parquet file (Snappy), with `notes` as the file's key-value metadata.
    ///
    /// # Errors
    /// When `out` fails, with its own error; for two columns of one name.
    pub fn write(&self, out: impl Write + Send, notes: &[(&str, &str)]) -> io::Result<()> {
        self.write_parquet(out, notes).map_err(plain)
    }

    fn write_parquet(&self, out: impl Write + Send, notes: &[(&str, &str)]) -> Result<(), ParquetError> {
        let fields = self
            .columns
            .iter()
            .map(|(name, values)| values.field(name).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let notes = notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned())).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("sinnet {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(notes))
            .build();
        let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let rows = self.rows();
        for begin in (0..rows).step_by(ROW_GROUP) {
            let range = begin..rows.min(begin + ROW_GROUP);
            let mut group = file.next_row_group()?;
            for (_, values) in &self.columns {
                let Some(mut column) = group.next_column()? else { break };
                write_column(&mut column, values, range.clone())?;
                column.close()?;
            }
            group.close()?;
        }
        file.close().map(drop)
    }
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    values: &Values,
    range: std::ops::Range<usize>,
) -> Result<(), ParquetError> {
    let rows = range.len();
    match values {
        Values::Text(values) => {
            let texts: Vec<ByteArray> = slice(values, range).iter().map(|text| text.as_str().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
        }
        Values::Same(text) => {
            let text = ByteArray::from(text.as_str());
            column.typed::<ByteArrayType>().write_batch(&vec![text; rows], None, None)?;
        }
        Values::Count(values) => write_counts(column, slice(values, range).iter().copied())?,
        Values::SameCount(value) => write_counts(column, std::iter::repeat_n(*value, rows))?,
        Values::Float(values) => write_floats(column, slice(values, range).iter().copied())?,
        Values::SameFloat(value) => write_floats(column, std::iter::repeat_n(*value, rows))?,
    }
    Ok(())
}

fn slice<T>(values: &[T], range: std::ops::Range<usize>) -> &[T] {
    values.get(range).unwrap_or_default()
}

fn write_counts(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = u64>,
) -> Result<(), ParquetError> {
    // Parquet keeps unsigned numbers in the signed type of the same width, bit by bit.
    let values: Vec<i64> = values.map(u64::cast_signed).collect();
    column.typed::<Int64Type>().write_batch(&values, None, None).map(drop)
}

fn write_floats(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = f64> + Clone,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.clone().map(|value| i16::from(!value.is_nan())).collect();
    let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None).map(drop)
}

impl Table {
    /// Reads a Parquet file that [`Table::write`] has written.
    ///
    /// # Errors
    /// When the file cannot be read, or has other columns than such a file.
    pub fn read(file: File) -> io::Result<Self> {
        Self::read_parquet(file).map_err(plain)
    }

    fn read_parquet(file: File) -> Result<Self, ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr_ptr();
        let mut table = Self::new();
        for (index, column) in schema.columns().iter().enumerate() {
            let mut values = match column.physical_type() {
                Physical::BYTE_ARRAY => Values::Text(Vec::new()),
                Physical::INT64 => Values::Count(Vec::new()),
                _ => Values::Float(Vec::new()),
            };
            for group in 0..reader.num_row_groups() {
                let group = reader.get_row_group(group)?;
                let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
                values.read(group.get_column_reader(index)?, rows)?;
            }
            table = table.with(column.name(), values);
        }
        Ok(table)
    }
}

impl Values {
    /// Adds `rows` values.
    fn read(&mut self, reader: ColumnReader, rows: usize) -> Result<(), ParquetError> {
        match (self, reader) {
            (Self::Text(all), ColumnReader::ByteArrayColumnReader(mut reader)) => {
                let mut values = Vec::new();
                reader.read_records(rows, None, None, &mut values)?;
                for value in &values {
                    all.push(value.as_utf8()?.to_owned());
                }
            }
            (Self::Count(all), ColumnReader::Int64ColumnReader(mut reader)) => {
                let mut values = Vec::new();
                reader.read_records(rows, None, None, &mut values)?;
                all.extend(values.into_iter().map(i64::cast_unsigned));
            }
            (Self::Float(all), ColumnReader::DoubleColumnReader(mut reader)) => {
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                let mut values = values.into_iter();
                all.extend(
                    levels.iter().map(|&level| if level > 0 { values.next().unwrap_or(f64::NAN) } else { f64::NAN }),
                );
            }
            _ => return Err(ParquetError::General("a column of another type than all of its store".to_owned())),
        }
        Ok(())
    }
}

/// The error of the file below, so that a full disk stays one.
fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn example() -> Table {
        Table::new()
            .with("flow", Values::Text(vec!["a".into(), "ü".into(), "a".into()]))
            .with("seed", Values::SameCount(u64::MAX))
            .with("sent", Values::Count(vec![0, 1, u64::MAX]))
            .with("rtt_s", Values::Float(vec![0.5, f64::NAN, -1.0]))
            .with("scenario", Values::Same("x".into()))
            .with("rate", Values::SameFloat(f64::NAN))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut bytes = Vec::new();
        example().write(&mut bytes, &[("version", "1")]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(notes.iter().any(|note| note.key == "version" && note.value.as_deref() == Some("1")));
        let rows: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let row = |flow: &str, sent, rtt| {
            let text = |text: &str| Field::Str(text.into());
            vec![text(flow), Field::ULong(u64::MAX), Field::ULong(sent), rtt, text("x"), Field::Null]
        };
        assert_eq!(
            rows,
            [row("a", 0, Field::Double(0.5)), row("ü", 1, Field::Null), row("a", u64::MAX, Field::Double(-1.0))]
        );
    }

    #[test]
    fn a_table_is_read_back_as_it_was() {
        let mut file = tempfile::tempfile().unwrap();
        example().write(&mut file, &[]).unwrap();
        let read = Table::read(file).unwrap();
        assert_eq!(read.rows(), 3);
        let columns: Vec<String> = read.columns().map(|(name, values)| format!("{name} {values:?}")).collect();
        assert_eq!(
            columns,
            [
                r#"flow Text(["a", "ü", "a"])"#,
                "seed Count([18446744073709551615, 18446744073709551615, 18446744073709551615])",
                "sent Count([0, 1, 18446744073709551615])",
                "rtt_s Float([0.5, NaN, -1.0])",
                r#"scenario Text(["x", "x", "x"])"#,
                "rate Float([NaN, NaN, NaN])",
            ]
        );
    }

    #[test]
    fn an_empty_table_is_a_file_too() {
        let mut bytes = Vec::new();
        Table::new().with("a", Values::Float(vec![])).write(&mut bytes, &[]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn a_full_disk_stays_a_full_disk() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let error = example().write(full, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
