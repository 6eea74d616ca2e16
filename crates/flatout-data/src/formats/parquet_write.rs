//! Writing flat Parquet files, the same bytes for the same values.

use crate::{DataError, Result};
use ::parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub enum ColumnToWrite<'a> {
    /// Days since 1970.
    Date(&'a [i32]),
    Float(&'a [f32]),
    Whole(&'a [i32]),
    Text(&'a [String]),
}

/// Writes one row group of required columns.
pub fn write(path: &Path, columns: &[(&str, ColumnToWrite<'_>)]) -> Result<()> {
    let file = File::create(path).map_err(|source| DataError::writing(path, source))?;
    write_to(file, columns).map_err(|error| DataError::writing(path, std::io::Error::other(error)))
}

fn write_to(file: File, columns: &[(&str, ColumnToWrite<'_>)]) -> std::result::Result<(), ParquetError> {
    let fields = columns
        .iter()
        .map(|(name, column)| field(name, column).map(Arc::new));
    let schema = Type::group_type_builder("schema")
        .with_fields(fields.collect::<std::result::Result<Vec<_>, _>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // The library's own default names its version, which would change the bytes with every update.
        .set_created_by("flatout".into())
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let Some(mut target) = group.next_column()? else {
            return Err(ParquetError::General("fewer columns than named".into()));
        };
        match column {
            ColumnToWrite::Date(values) | ColumnToWrite::Whole(values) => {
                target.typed::<Int32Type>().write_batch(values, None, None)?
            }
            ColumnToWrite::Text(values) => {
                let values: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
                target.typed::<ByteArrayType>().write_batch(&values, None, None)?
            }
            ColumnToWrite::Float(values) => target.typed::<FloatType>().write_batch(values, None, None)?,
        };
        target.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn field(name: &str, column: &ColumnToWrite<'_>) -> std::result::Result<Type, ParquetError> {
    let builder = match column {
        ColumnToWrite::Date(_) => {
            Type::primitive_type_builder(name, PhysicalType::INT32).with_logical_type(Some(LogicalType::Date))
        }
        ColumnToWrite::Whole(_) => Type::primitive_type_builder(name, PhysicalType::INT32),
        ColumnToWrite::Text(_) => Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String)),
        ColumnToWrite::Float(_) => Type::primitive_type_builder(name, PhysicalType::FLOAT),
    };
    builder.with_repetition(Repetition::REQUIRED).build()
}
