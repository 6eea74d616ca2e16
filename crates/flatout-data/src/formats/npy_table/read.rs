//! The rows of `.npy` arrays, read in pieces by several threads.

use super::{LABELS_FILE, Origin, Source};
use crate::table::arrays::{Growing, RawArray};
use crate::table::bad_rows::Rejected;
use crate::table::{BadRow, ColumnType, Layout, MISSING, Problem, Slot, TableRead};
use crate::table_source::ReadOptions;
use crate::text_list::{Dictionary, TextList};
use crate::time::parse_any_us;
use crate::{Result, parallel};
use std::path::PathBuf;

/// Rows that a task reads at once.
const TASK_BYTES: usize = 1 << 22;

pub fn read(files: &[PathBuf], layout: &Layout, options: &ReadOptions) -> Result<TableRead> {
    let sources = files
        .iter()
        .map(|path| Source::open(path))
        .collect::<Result<Vec<_>>>()?;
    let rows_per_file: Vec<usize> = sources.iter().map(|source| source.rows).collect();
    let rows: usize = rows_per_file.iter().sum();
    let mut growing = Growing::new(layout);
    growing.reserve(rows);
    let arrays = growing.raw();
    let tasks = tasks(&sources);
    let threads = parallel::threads(options.threads);
    let bad = parallel::map(tasks.len(), threads, |task| {
        read_rows(&sources, &tasks[task], layout, &arrays, options)
    })?;
    let mut dictionaries = vec![TextList::default(); layout.slots.len()];
    for (column, slot) in layout.slots.iter().enumerate() {
        if let Some(slot) = slot
            && slot.kind == ColumnType::Category
        {
            // One after the other, so that codes count up in the order of the rows.
            let mut dictionary = Dictionary::default();
            for task in &tasks {
                code_rows(&sources, task, column, *slot, arrays[slot.array], &mut dictionary)?;
            }
            dictionaries[column] = dictionary.into_texts();
        }
    }
    for slot in layout.unassigned() {
        // SAFETY: all rows are reserved and no thread is at work.
        unsafe { arrays[slot.array].fill_missing(&slot, 0..rows) };
    }
    let mut rejected = Rejected::new(options.bad_rows);
    for (task, row, column, value) in bad.into_iter().flatten() {
        let bad = BadRow {
            path: sources[tasks[task].source].path.clone(),
            line: (row - tasks[task].first_of_file) as u64 + 1,
            problem: Problem::Value {
                column: sources[0].columns[column].0.clone(),
                value,
                wanted: layout.slots[column].map_or("", |slot| slot.kind.name()),
            },
        };
        rejected.add(row, bad)?;
    }
    // SAFETY: every slot of every row was written above, bad ones with "missing".
    Ok(unsafe { rejected.leave_out(growing, rows, dictionaries, rows_per_file) })
}

/// Rows of one file that are read together.
struct Task {
    number: usize,
    source: usize,
    /// Row of the table that the file begins with.
    first_of_file: usize,
    /// Within the file.
    rows: std::ops::Range<usize>,
}

fn tasks(sources: &[Source]) -> Vec<Task> {
    let (mut tasks, mut first_of_file) = (Vec::new(), 0);
    for (index, source) in sources.iter().enumerate() {
        let rows_each = (TASK_BYTES / (source.width() * source.values.kind.size()).max(1)).max(1);
        for start in (0..source.rows).step_by(rows_each) {
            tasks.push(Task {
                number: tasks.len(),
                source: index,
                first_of_file,
                rows: start..(start + rows_each).min(source.rows),
            });
        }
        first_of_file += source.rows;
    }
    tasks
}

/// The bytes of a task: of its rows, and of their labels.
fn task_bytes(source: &Source, task: &Task) -> Result<(Vec<u8>, Vec<u8>)> {
    let values = source
        .values
        .read_values(&source.path, task.rows.clone(), source.width())?;
    let labels = match &source.labels {
        Some(labels) => labels.read_values(&source.path.with_file_name(LABELS_FILE), task.rows.clone(), 1)?,
        None => Vec::new(),
    };
    Ok((values, labels))
}

/// A number as it stands in the file.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    fn text(self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
        }
    }
}

/// What reads the values of one column out of a task's bytes, by row within the task.
fn reader<'a>(
    source: &'a Source,
    task: &'a Task,
    column: usize,
    values: &'a [u8],
    labels: &'a [u8],
) -> impl Fn(usize) -> Number + 'a {
    let origin = source.columns[column].2;
    let (kind, bytes, width, offset) = match (origin, &source.labels) {
        (Origin::Label, Some(file)) => (file.kind, labels, 1, 0),
        (Origin::Value(offset), _) => (source.values.kind, values, source.width(), offset),
        _ => (source.values.kind, values, source.width(), 0),
    };
    let size = kind.size();
    move |row| match origin {
        Origin::Entity(rows) => Number::Whole(((task.rows.start + row) / rows) as i64),
        _ => {
            let place = (row * width + offset) * size;
            let bytes = &bytes[place..place + size];
            if kind.is_real() {
                Number::Real(kind.real(bytes))
            } else {
                Number::Whole(kind.whole(bytes))
            }
        }
    }
}

/// Task, row of the table, column, and what stood there.
type Bad = (usize, usize, usize, String);

/// Writes all but categories.
fn read_rows(
    sources: &[Source],
    task: &Task,
    layout: &Layout,
    arrays: &[RawArray],
    options: &ReadOptions,
) -> Result<Vec<Bad>> {
    let source = &sources[task.source];
    let (values, labels) = task_bytes(source, task)?;
    let mut bad = Vec::new();
    for (column, slot) in layout.slots.iter().enumerate() {
        let Some(slot) = slot.filter(|slot| slot.kind != ColumnType::Category) else {
            continue;
        };
        let read = reader(source, task, column, &values, &labels);
        let array = arrays[slot.array];
        for row in 0..task.rows.len() {
            let number = read(row);
            let table_row = task.first_of_file + task.rows.start + row;
            let place = table_row * array.width + slot.offset;
            let fine = if slot.kind == ColumnType::Real {
                let value = match number {
                    Number::Whole(value) => value as f32,
                    Number::Real(value) => value as f32,
                };
                let infinite = value.is_infinite();
                let value = if infinite { f32::NAN } else { value };
                // SAFETY: the row is this task's alone and within what was reserved; the slot is of this array.
                unsafe { array.pointer.cast::<f32>().add(place).write(value) };
                let missing_is_fine = !slot.required && (options.infinite_is_missing || !infinite);
                !value.is_nan() || missing_is_fine
            } else {
                let value = match number {
                    Number::Whole(value) if slot.kind == ColumnType::Time => {
                        parse_any_us(value.to_string().as_bytes())
                    }
                    Number::Whole(value) => Some(value),
                    Number::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
                    Number::Real(_) => None,
                };
                // SAFETY: see above.
                unsafe {
                    array
                        .pointer
                        .cast::<i64>()
                        .add(place)
                        .write(value.unwrap_or(MISSING))
                };
                value.is_some()
            };
            if !fine {
                bad.push((task.number, table_row, column, number.text()));
            }
        }
    }
    Ok(bad)
}

fn code_rows(
    sources: &[Source],
    task: &Task,
    column: usize,
    slot: Slot,
    array: RawArray,
    dictionary: &mut Dictionary,
) -> Result<()> {
    let source = &sources[task.source];
    let (values, labels) = task_bytes(source, task)?;
    let read = reader(source, task, column, &values, &labels);
    for row in 0..task.rows.len() {
        let code = dictionary.code(read(row).text().as_bytes());
        let place = (task.first_of_file + task.rows.start + row) * array.width + slot.offset;
        // SAFETY: the rows are reserved, the slot is of this array, and no other thread is at work.
        unsafe { array.pointer.cast::<i32>().add(place).write(code) };
    }
    Ok(())
}
