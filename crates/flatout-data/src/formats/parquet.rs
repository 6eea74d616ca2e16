//! Parquet files, column by column, straight into the caller's memory. No Arrow in between: the values are converted while
//! they are written to their place.

use crate::time::{MICROSECONDS_PER_DAY, parse_us};
use crate::{DataError, Result};
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Values decoded at a time: small enough for the caches, large enough to amortise the calls.
const CHUNK: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetKind {
    Integer,
    Real,
    Boolean,
    Text,
    /// Multiply by this many microseconds (or divide, for nanoseconds).
    Time(TimeScale),
    /// Lists, maps, fixed-length bytes, decimals in bytes.
    Unsupported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeScale {
    Days,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Julian,
}

impl ParquetKind {
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Real | Self::Boolean)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integers",
            Self::Real => "numbers",
            Self::Boolean => "booleans",
            Self::Text => "text",
            Self::Time(_) => "times",
            Self::Unsupported => "nested or binary values",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetColumn {
    pub name: String,
    pub kind: ParquetKind,
}

/// An open file with its schema read and checked.
pub struct ParquetFile {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    columns: Vec<ParquetColumn>,
    rows: usize,
}

/// A value of any supported type on its way to its place.
pub enum Value<'a> {
    Missing,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl ParquetFile {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| DataError::reading(path, source))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(DataError::reading(path, std::io::ErrorKind::IsADirectory.into()));
        }
        let reader = guarded(path, || SerializedFileReader::new(file))?;
        let metadata = reader.metadata().file_metadata();
        let columns = metadata
            .schema_descr()
            .columns()
            .iter()
            .map(|column| ParquetColumn {
                name: column.path().string(),
                kind: kind(column),
            })
            .collect();
        let rows =
            usize::try_from(metadata.num_rows()).map_err(|_| corrupt(path, "a negative number of rows"))?;
        let counted: i64 = reader
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .sum();
        if usize::try_from(counted).ok() != Some(rows) {
            return Err(corrupt(path, "its row groups do not add up to its rows"));
        }
        Ok(Self {
            path: path.to_owned(),
            reader,
            columns,
            rows,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> &[ParquetColumn] {
        &self.columns
    }

    pub fn column(&self, name: &str) -> Result<usize> {
        self.columns
            .iter()
            .position(|column| column.name == name)
            .ok_or_else(|| DataError::NoSuchColumn {
                path: self.path.clone(),
                column: name.to_owned(),
                columns: self.columns.iter().map(|column| column.name.clone()).collect(),
            })
    }

    /// Numbers of a column as `f32` at `into[offset + row * stride]`; missing ones as NaN.
    pub fn read_f32(&self, column: usize, into: &mut [f32], offset: usize, stride: usize) -> Result<()> {
        let place = |row: usize| offset + row * stride;
        self.each_chunk(column, |reader, first_row, rows| match reader {
            ColumnReader::FloatColumnReader(reader) => each_value(reader, rows, |row, value| {
                into[place(first_row + row)] = value.map_or(f32::NAN, |value| *value);
            }),
            ColumnReader::DoubleColumnReader(reader) => each_value(reader, rows, |row, value| {
                into[place(first_row + row)] = value.map_or(f32::NAN, |value| *value as f32);
            }),
            ColumnReader::Int32ColumnReader(reader) => each_value(reader, rows, |row, value| {
                into[place(first_row + row)] = value.map_or(f32::NAN, |value| *value as f32);
            }),
            ColumnReader::Int64ColumnReader(reader) => each_value(reader, rows, |row, value| {
                into[place(first_row + row)] = value.map_or(f32::NAN, |value| *value as f32);
            }),
            ColumnReader::BoolColumnReader(reader) => each_value(reader, rows, |row, value| {
                into[place(first_row + row)] = value.map_or(f32::NAN, |value| f32::from(u8::from(*value)));
            }),
            _ => Err(ParquetError::General("not a column of numbers".into())),
        })
    }

    /// Every value of a column in order, as it is: for categories, keys and times.
    pub fn read_values(&self, column: usize, mut visit: impl FnMut(usize, Value<'_>)) -> Result<()> {
        self.each_chunk(column, |reader, first, rows| match reader {
            ColumnReader::Int32ColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Integer(i64::from(*value))),
                );
            }),
            ColumnReader::Int64ColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Integer(*value)),
                );
            }),
            ColumnReader::Int96ColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Integer(value.to_micros())),
                );
            }),
            ColumnReader::BoolColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Integer(i64::from(*value))),
                );
            }),
            ColumnReader::FloatColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Real(f64::from(*value))),
                );
            }),
            ColumnReader::DoubleColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Real(*value)),
                );
            }),
            ColumnReader::ByteArrayColumnReader(reader) => each_value(reader, rows, |row, value| {
                visit(
                    first + row,
                    value.map_or(Value::Missing, |value| Value::Text(value.data())),
                );
            }),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Err(ParquetError::General(
                "fixed-length bytes are not supported".into(),
            )),
        })
    }

    /// A column of dates, times, or text that reads as such, in microseconds.
    pub fn read_time_us(&self, column: usize, into: &mut [i64]) -> Result<()> {
        let ParquetColumn { name, kind } = &self.columns[column];
        let mut bad = None;
        self.read_values(column, |row, value| {
            let time = match (value, kind) {
                (Value::Integer(value), ParquetKind::Time(scale)) => scale.to_us(value),
                // 20240301 as a number is how many Chinese data vendors write a trading day.
                (Value::Integer(value), _) => parse_us(value.to_string().as_bytes()),
                (Value::Text(text), _) => parse_us(text),
                _ => None,
            };
            match time {
                Some(time) => into[row] = time,
                None => bad = bad.or(Some(row)),
            }
        })?;
        match bad {
            None => Ok(()),
            Some(row) => Err(DataError::NotFinite {
                path: self.path.clone(),
                row: row as u64 + 1,
                column: name.clone(),
                value: "not a date".into(),
            }),
        }
    }

    /// Calls `read(reader, first_row, rows)` for the column's part in every row group.
    fn each_chunk(
        &self,
        column: usize,
        mut read: impl FnMut(&mut ColumnReader, usize, usize) -> std::result::Result<(), ParquetError>,
    ) -> Result<()> {
        let mut first_row = 0;
        for group in 0..self.reader.num_row_groups() {
            guarded(&self.path, || {
                let group = self.reader.get_row_group(group)?;
                let rows = group.metadata().num_rows() as usize;
                let mut reader = group.get_column_reader(column)?;
                read(&mut reader, first_row, rows)?;
                first_row += rows;
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl TimeScale {
    pub fn to_us(self, value: i64) -> Option<i64> {
        match self {
            Self::Days => value.checked_mul(MICROSECONDS_PER_DAY),
            Self::Milliseconds => value.checked_mul(1000),
            Self::Microseconds | Self::Julian => Some(value),
            Self::Nanoseconds => Some(value.div_euclid(1000)),
        }
    }
}

/// Decodes `rows` records and hands out each with its row, `None` for a missing one.
fn each_value<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut write: impl FnMut(usize, Option<&T::T>),
) -> std::result::Result<(), ParquetError> {
    let mut values: Vec<T::T> = Vec::with_capacity(CHUNK.min(rows));
    let mut levels: Vec<i16> = Vec::with_capacity(CHUNK.min(rows));
    let mut done = 0;
    while done < rows {
        values.clear();
        levels.clear();
        let (records, found, _) =
            reader.read_records(CHUNK.min(rows - done), Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("{done} of {rows} rows found")));
        }
        if found == records {
            for (index, value) in values.iter().enumerate() {
                write(done + index, Some(value));
            }
        } else {
            // Only flat columns get here: the highest level means "present".
            let mut present = values.iter();
            for (index, &level) in levels.iter().enumerate() {
                write(done + index, if level > 0 { present.next() } else { None });
            }
        }
        done += records;
    }
    Ok(())
}

fn kind(column: &ColumnDescriptor) -> ParquetKind {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return ParquetKind::Unsupported;
    }
    match (
        column.physical_type(),
        column.logical_type_ref(),
        column.converted_type(),
    ) {
        (Type::INT32, Some(LogicalType::Date), _) | (Type::INT32, _, ConvertedType::DATE) => {
            ParquetKind::Time(TimeScale::Days)
        }
        (Type::INT64, Some(LogicalType::Timestamp(timestamp)), _) => {
            ParquetKind::Time(match timestamp.unit {
                TimeUnit::MILLIS => TimeScale::Milliseconds,
                TimeUnit::MICROS => TimeScale::Microseconds,
                TimeUnit::NANOS => TimeScale::Nanoseconds,
            })
        }
        (Type::INT64, _, ConvertedType::TIMESTAMP_MILLIS) => ParquetKind::Time(TimeScale::Milliseconds),
        (Type::INT64, _, ConvertedType::TIMESTAMP_MICROS) => ParquetKind::Time(TimeScale::Microseconds),
        (Type::INT96, _, _) => ParquetKind::Time(TimeScale::Julian),
        (_, Some(LogicalType::Decimal(_)), _) | (_, _, ConvertedType::DECIMAL) => ParquetKind::Unsupported,
        (Type::INT32 | Type::INT64, _, _) => ParquetKind::Integer,
        (Type::FLOAT | Type::DOUBLE, _, _) => ParquetKind::Real,
        (Type::BOOLEAN, _, _) => ParquetKind::Boolean,
        (Type::BYTE_ARRAY, _, _) => ParquetKind::Text,
        (Type::FIXED_LEN_BYTE_ARRAY, _, _) => ParquetKind::Unsupported,
    }
}

fn corrupt(path: &Path, reason: impl ToString) -> DataError {
    DataError::Corrupt {
        path: path.to_owned(),
        format: "Parquet",
        reason: reason.to_string(),
    }
}

/// Decoding errors with the file's name. A panic inside the decoder, which damaged files have provoked in the past, is such an error
/// too: one broken file must not take a training job down.
fn guarded<T>(path: &Path, decode: impl FnOnce() -> std::result::Result<T, ParquetError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(corrupt(path, error)),
        Err(_) => Err(corrupt(path, "damaged data")),
    }
}
