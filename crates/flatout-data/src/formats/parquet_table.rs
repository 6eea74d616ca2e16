//! Parquet files as one table: one task a file and column, written straight into the arrays of a layout.

use super::parquet::{ParquetFile, ParquetKind, Value};
use crate::table::arrays::{Growing, RawArray};
use crate::table::bad_rows::Rejected;
use crate::table::{BadRow, ColumnType, Layout, MISSING, Problem, Slot, TableRead};
use crate::table_source::ReadOptions;
use crate::text_list::{Dictionary, TextList};
use crate::time::parse_any_us;
use crate::{DataError, Result, parallel};
use std::path::{Path, PathBuf};

/// Names and types of the columns that can be read; every file must have them.
pub fn schema(files: &[PathBuf], threads: usize) -> Result<(Vec<String>, Vec<ColumnType>)> {
    let first = ParquetFile::open(&files[0])?;
    let usable = |file: &ParquetFile| -> Vec<(String, ColumnType)> {
        let columns = file.columns().iter();
        columns
            .filter_map(|column| column_type(column.kind).map(|kind| (column.name.clone(), kind)))
            .collect()
    };
    let columns = usable(&first);
    parallel::for_each(files.len(), threads, |index| {
        let found = usable(&ParquetFile::open(&files[index])?);
        let without = |left: &[(String, ColumnType)], right: &[(String, ColumnType)]| -> Vec<String> {
            let missing = left
                .iter()
                .filter(|(name, _)| !right.iter().any(|(other, _)| other == name));
            missing.map(|(name, _)| name.clone()).collect()
        };
        let (missing, extra) = (without(&columns, &found), without(&found, &columns));
        if missing.is_empty() && extra.is_empty() {
            return Ok(());
        }
        Err(DataError::OtherColumns {
            path: files[index].clone(),
            first: files[0].clone(),
            missing,
            extra,
        })
    })?;
    Ok(columns.into_iter().unzip())
}

fn column_type(kind: ParquetKind) -> Option<ColumnType> {
    Some(match kind {
        ParquetKind::Integer | ParquetKind::Boolean => ColumnType::Integer,
        ParquetKind::Real => ColumnType::Real,
        ParquetKind::Text => ColumnType::Category,
        ParquetKind::Time(_) => ColumnType::Time,
        ParquetKind::Unsupported => return None,
    })
}

/// What reading one column of one file left.
#[derive(Default)]
struct Left {
    dictionary: TextList,
    /// Row within the file, from 0, and what stood there.
    bad: Vec<(usize, String)>,
}

pub fn read(
    files: &[PathBuf],
    names: &[String],
    layout: &Layout,
    options: &ReadOptions,
) -> Result<TableRead> {
    let threads = parallel::threads(options.threads);
    let rows_per_file = parallel::map(files.len(), threads, |index| {
        ParquetFile::open(&files[index]).map(|file| file.rows())
    })?;
    let rows: usize = rows_per_file.iter().sum();
    let mut growing = Growing::new(layout);
    growing.reserve(rows);
    let arrays = growing.raw();
    let starts: Vec<usize> = rows_per_file
        .iter()
        .scan(0, |start, rows| Some(std::mem::replace(start, *start + rows)))
        .collect();
    let slots: Vec<(usize, Slot)> = layout
        .slots
        .iter()
        .enumerate()
        .filter_map(|(column, slot)| slot.map(|slot| (column, slot)))
        .collect();
    // Opening a file reads its footer: with many files one task reads all columns of a file, with few each column is a task.
    let columns_per_task = if files.len() >= threads {
        slots.len().max(1)
    } else {
        1
    };
    let tasks_per_file = slots.len().div_ceil(columns_per_task);
    let groups = parallel::map(files.len() * tasks_per_file, threads, |task| {
        let file = task / tasks_per_file;
        let first = task % tasks_per_file * columns_per_task;
        let reader = ParquetFile::open(&files[file])?;
        if reader.rows() != rows_per_file[file] {
            return Err(replaced(&files[file]));
        }
        slots[first..(first + columns_per_task).min(slots.len())]
            .iter()
            // SAFETY (inside): each task has rows and slots that no other has.
            .map(|&(column, slot)| {
                read_column(
                    &reader,
                    &names[column],
                    slot,
                    arrays[slot.array],
                    starts[file],
                    options,
                )
            })
            .collect::<Result<Vec<_>>>()
    })?;
    let mut left: Vec<Left> = groups.into_iter().flatten().collect();
    for slot in layout.unassigned() {
        // SAFETY: all rows are reserved and no thread is at work.
        unsafe { arrays[slot.array].fill_missing(&slot, 0..rows) };
    }
    let dictionaries = merge(
        &mut left,
        &slots,
        names.len(),
        files.len(),
        &arrays,
        &starts,
        &rows_per_file,
    );
    let mut rejected = Rejected::new(options.bad_rows);
    for (task, left) in left.into_iter().enumerate() {
        let (file, (column, slot)) = (task / slots.len(), slots[task % slots.len()]);
        for (row, value) in left.bad {
            let bad = BadRow {
                path: files[file].clone(),
                line: row as u64 + 1,
                problem: Problem::Value {
                    column: names[column].clone(),
                    value,
                    wanted: slot.kind.name(),
                },
            };
            rejected.add(starts[file] + row, bad)?;
        }
    }
    // SAFETY: every slot of every row was written above, bad ones with "missing".
    Ok(unsafe { rejected.leave_out(growing, rows, dictionaries, rows_per_file) })
}

fn replaced(path: &Path) -> DataError {
    DataError::Corrupt {
        path: path.to_owned(),
        format: "Parquet",
        reason: "it was replaced while it was read".into(),
    }
}

fn read_column(
    file: &ParquetFile,
    name: &str,
    slot: Slot,
    array: RawArray,
    first_row: usize,
    options: &ReadOptions,
) -> Result<Left> {
    let column = file.column(name)?;
    let kind = file.columns()[column].kind;
    let mut left = Left::default();
    let mut dictionary = Dictionary::default();
    let rows = file.rows();
    file.read_values(column, |row, value| {
        if row >= rows {
            return;
        }
        let place = (first_row + row) * array.width + slot.offset;
        let missing = matches!(value, Value::Missing);
        let mut bad = missing && slot.required;
        // SAFETY (of the writes below): `place` is one of this task's own, see the caller; `row` is within the file's rows.
        match slot.kind {
            ColumnType::Real => {
                let mut number = match value {
                    Value::Integer(value) => value as f32,
                    Value::Real(value) => value as f32,
                    Value::Text(text) => crate::formats::csv::number::parse_f32(text.trim_ascii())
                        .unwrap_or_else(|| {
                            bad |= !text.trim_ascii().is_empty() || slot.required;
                            f32::NAN
                        }),
                    Value::Missing => f32::NAN,
                };
                if number.is_infinite() {
                    bad |= !options.infinite_is_missing;
                    number = f32::NAN;
                }
                bad |= number.is_nan() && slot.required;
                // SAFETY: see above.
                unsafe { array.pointer.cast::<f32>().add(place).write(number) };
            }
            ColumnType::Integer | ColumnType::Time => {
                let number = match (&value, kind) {
                    (Value::Integer(value), ParquetKind::Time(scale)) => scale.to_us(*value),
                    (Value::Integer(value), _) if slot.kind == ColumnType::Integer => Some(*value),
                    (Value::Integer(value), _) => parse_any_us(value.to_string().as_bytes()),
                    (Value::Real(value), _) if value.fract() == 0.0 && value.abs() < 9e15 => {
                        Some(*value as i64)
                    }
                    (Value::Text(text), _) if slot.kind == ColumnType::Time => {
                        parse_any_us(text.trim_ascii())
                    }
                    (Value::Text(text), _) => crate::formats::csv::number::parse_i64(text.trim_ascii()),
                    _ => None,
                };
                bad |= number.is_none() && !missing;
                // SAFETY: see above.
                unsafe {
                    array
                        .pointer
                        .cast::<i64>()
                        .add(place)
                        .write(number.unwrap_or(MISSING))
                };
            }
            ColumnType::Category => {
                let code = match &value {
                    Value::Text(text) => dictionary.code(text),
                    Value::Integer(value) => dictionary.code(value.to_string().as_bytes()),
                    Value::Real(value) => dictionary.code(value.to_string().as_bytes()),
                    Value::Missing => 0,
                };
                // SAFETY: see above.
                unsafe { array.pointer.cast::<i32>().add(place).write(code) };
            }
        }
        if bad {
            left.bad.push((row, describe(&value)));
        }
    })?;
    left.dictionary = dictionary.into_texts();
    Ok(left)
}

fn describe(value: &Value<'_>) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => value.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).chars().take(80).collect(),
    }
}

/// One dictionary a column out of those of its files, in their order, and the codes translated.
fn merge(
    left: &mut [Left],
    slots: &[(usize, Slot)],
    columns: usize,
    files: usize,
    arrays: &[RawArray],
    starts: &[usize],
    rows_per_file: &[usize],
) -> Vec<TextList> {
    let mut dictionaries = vec![TextList::default(); columns];
    for (index, (column, slot)) in slots.iter().enumerate() {
        if slot.kind != ColumnType::Category {
            continue;
        }
        let mut common = Dictionary::default();
        for file in 0..files {
            let own = std::mem::take(&mut left[file * slots.len() + index].dictionary);
            let codes: Vec<i32> = (0..own.len()).map(|text| common.code(own.bytes(text))).collect();
            let array = arrays[slot.array];
            for row in starts[file]..starts[file] + rows_per_file[file] {
                // SAFETY: all rows were written by the tasks, which have ended.
                unsafe {
                    let place = array.pointer.cast::<i32>().add(row * array.width + slot.offset);
                    let code = place.read();
                    if code > 0 {
                        place.write(codes[code as usize - 1]);
                    }
                }
            }
        }
        dictionaries[*column] = common.into_texts();
    }
    dictionaries
}
