//! Any table becomes a [`Panel`]: a column tells the entity of a row, or each file is one. Rows may come in any order; those of an
//! entity are brought together and sorted by time.

use super::missing::{self, Missing};
use super::panel::{PanelOptions, TIME_NAMES};
use crate::dataset::{Category, Entity, Panel};
use crate::formats::npy_table;
use crate::paths::{self, natural_order};
use crate::table::{ColumnType, Layout, Slot, TableRead, is_index};
use crate::table_source::{ReadOptions, TableSource};
use crate::{DataError, Result};
use flatout_core::message;
use std::path::Path;

/// Arrays of the layout, by their number.
const FEATURES: usize = 0;
const LABELS: usize = 1;
const TIMES: usize = 2;
const ENTITIES: usize = 3;
const CODES: usize = 4;
const MORE_LABELS: usize = 5;

/// Which column is what.
struct Columns {
    features: Vec<usize>,
    categories: Vec<usize>,
    label: Option<usize>,
    more_labels: Vec<usize>,
    time: Option<usize>,
    /// Absent where each file is an entity.
    entity: Option<usize>,
}

pub(super) fn load(path: &Path, options: &PanelOptions) -> Result<Panel> {
    let source = TableSource::open_as(path, None, options.threads, options.policies.encoding)?;
    let columns = find_columns(&source, options)?;
    let read = source.read(
        &layout(&source, &columns, options),
        &ReadOptions {
            bad_rows: options.policies.bad_rows,
            infinite_is_missing: options.policies.infinite_is_missing,
            threads: options.threads,
        },
    )?;
    let rows = read.arrays.rows;
    super::panel::check_rows(path, rows)?;
    let width = columns.features.len();
    let (names, mut order, mut counts) = group(&source, &columns, &read);
    let (skipped, policies) = (read.skipped, policies(&source, &columns, options));
    let mut arrays = read.arrays.arrays.into_iter();
    let mut take = || arrays.next();
    let (features, labels, times, _) = (take(), take(), take(), take());
    let mut codes = take().map(|array| array.into_code()).unwrap_or_default();
    let mut more_labels = take().map(|array| array.into_real()).unwrap_or_default();
    let mut features = features.map(|array| array.into_real()).unwrap_or_default();
    let mut labels = labels.map(|array| array.into_real()).unwrap_or_default();
    let mut times = times.map(|array| array.into_integer()).unwrap_or_default();
    sort_by_time(&mut order, &counts, &times);
    permute(&mut features, width, &order);
    permute(&mut codes, columns.categories.len(), &order);
    permute(&mut more_labels, columns.more_labels.len(), &order);
    permute(&mut times, usize::from(columns.time.is_some()), &order);
    match columns.label {
        Some(_) => permute(&mut labels, 1, &order),
        None => labels = vec![f32::NAN; rows],
    }
    counts.truncate(options.limit.unwrap_or(usize::MAX).max(1));
    let kept: usize = counts.iter().sum();
    features.truncate(kept * width);
    codes.truncate(kept * columns.categories.len());
    labels.truncate(kept);
    more_labels.truncate(kept * columns.more_labels.len());
    times.truncate(kept);
    let mut entities = Vec::with_capacity(counts.len());
    for (name, &count) in names.into_iter().zip(&counts) {
        let start = entities.last().map_or(0, |entity: &Entity| entity.rows.end);
        let rows = start..start + count as u32;
        let values = &mut features[rows.start as usize * width..rows.end as usize * width];
        // Under the policy "error" the reader has found missing values already, with their line.
        let _ = missing::fill_columns(values, &policies);
        entities.push(Entity { name, rows });
    }
    let mut panel = Panel {
        features: features.into(),
        feature_names: columns
            .features
            .iter()
            .map(|&column| source.names[column].clone())
            .collect(),
        codes: codes.into(),
        categories: columns
            .categories
            .iter()
            .map(|&column| Category {
                name: source.names[column].clone(),
                values: read.arrays.dictionaries[column].clone(),
            })
            .collect(),
        labels: labels.into(),
        label_name: options.label.clone(),
        more_labels: more_labels.into(),
        more_label_names: columns
            .more_labels
            .iter()
            .map(|&column| source.names[column].clone())
            .collect(),
        entity_of_row: Vec::new().into(),
        entities,
        timestamps_us: columns.time.map(|_| times.into()),
        rows_dropped: 0,
        skipped,
    };
    if options.categories.is_none() {
        leave_out_names(&mut panel, options);
    }
    panel.finish_rows(&policies);
    super::panel::check_rows(path, panel.rows())?;
    if !options.without_labels {
        super::labels::check(path, &panel.labels, &options.label)?;
    }
    Ok(panel)
}

/// Columns of text that tell nothing beyond the entity or the row: the name of the stock, a remark. Only those that nobody asked for.
fn leave_out_names(panel: &mut Panel, options: &PanelOptions) {
    let width = panel.categories.len();
    let asked = |name: &str| options.policies.types.iter().any(|(known, _)| known == name);
    let names_entity = |column: usize| {
        let mut code_of = vec![0; panel.categories[column].values.len() + 1];
        panel.entities.iter().all(|entity| {
            let rows = entity.rows.start as usize..entity.rows.end as usize;
            let mut codes = rows.map(|row| panel.codes[row * width + column]);
            let Some(first) = codes.next() else { return true };
            code_of[first as usize] += 1;
            code_of[first as usize] == 1 && codes.all(|code| code == first)
        })
    };
    let kept: Vec<usize> = (0..width)
        .filter(|&column| {
            let Category { name, values } = &panel.categories[column];
            let few = values.len() * 2 <= panel.labels.len();
            asked(name) || (few && !(panel.entities.len() > 1 && names_entity(column)))
        })
        .collect();
    if kept.len() == width {
        return;
    }
    let rows = panel.labels.len();
    let codes: Vec<i32> = (0..rows)
        .flat_map(|row| kept.iter().map(move |column| (row, column)))
        .map(|(row, column)| panel.codes[row * width + column])
        .collect();
    panel.codes = codes.into();
    panel.categories = kept
        .iter()
        .map(|&column| panel.categories[column].clone())
        .collect();
}

/// What becomes of missing values in each feature.
fn policies(source: &TableSource, columns: &Columns, options: &PanelOptions) -> Vec<Missing> {
    let features = columns.features.iter();
    features
        .map(|&column| options.policies.missing_of(&source.names[column]))
        .collect()
}

fn find_columns(source: &TableSource, options: &PanelOptions) -> Result<Columns> {
    for name in options.policies.columns() {
        source.column(name)?;
    }
    let kind_of = |column: usize| {
        options
            .policies
            .type_of(&source.names[column], source.types[column])
    };
    let number = |name: &String| -> Result<usize> {
        let column = source.column(name)?;
        match kind_of(column) {
            ColumnType::Real | ColumnType::Integer => Ok(column),
            // Predictions know which columns are numbers: what is none is told with its line when it is read.
            _ if options.without_labels && source.is_text() => Ok(column),
            other => Err(DataError::ColumnKind {
                path: source.files[0].clone(),
                column: name.clone(),
                found: other.name().into(),
                wanted: message!(en: "numbers", zh: "数值"),
            }),
        }
    };
    let label = match options.without_labels {
        true => None,
        false => Some(number(&options.label)?),
    };
    let more_labels = match options.without_labels {
        true => Vec::new(),
        false => options
            .more_labels
            .iter()
            .map(number)
            .collect::<Result<Vec<_>>>()?,
    };
    let is_label = |name: &String| *name == options.label || options.more_labels.contains(name);
    let numbered = (source.format_name() == "NumPy"
        && source.names.iter().any(|name| name == npy_table::ENTITY))
    .then(|| npy_table::ENTITY.to_owned());
    let entity = options.entity.clone().or(numbered);
    let entity = entity.map(|name| source.column(&name)).transpose()?;
    let time = match &options.time {
        Some(name) => Some(source.column(name)?),
        None => {
            let by_type = (0..source.names.len()).find(|&column| kind_of(column) == ColumnType::Time);
            let named = |name: &String| TIME_NAMES.contains(&name.to_ascii_lowercase().as_str());
            by_type.or_else(|| source.names.iter().position(named))
        }
    };
    let features = match &options.features {
        Some(names) => names.iter().map(number).collect::<Result<Vec<_>>>()?,
        None => (0..source.names.len())
            .filter(|&column| !is_label(&source.names[column]))
            .filter(|&column| ![entity, time].contains(&Some(column)))
            .filter(|&column| {
                !options.policies.is_ignored(&source.names[column]) && !is_index(&source.names[column])
            })
            .filter(|&column| matches!(kind_of(column), ColumnType::Real | ColumnType::Integer))
            .collect(),
    };
    if features.is_empty() {
        return Err(DataError::NoFiles {
            path: source.files[0].clone(),
            wanted: message!(en: "numeric columns other than the label", zh: "标签以外的数值列"),
        });
    }
    let categories = match &options.categories {
        Some(names) => names
            .iter()
            .map(|name| source.column(name))
            .collect::<Result<Vec<_>>>()?,
        None => (0..source.names.len())
            .filter(|&column| kind_of(column) == ColumnType::Category && Some(column) != entity)
            .filter(|&column| !is_label(&source.names[column]) && Some(column) != time)
            .filter(|&column| {
                !options.policies.is_ignored(&source.names[column]) && !is_index(&source.names[column])
            })
            .collect(),
    };
    Ok(Columns {
        features,
        categories,
        label,
        more_labels,
        time,
        entity,
    })
}

fn layout(source: &TableSource, columns: &Columns, options: &PanelOptions) -> Layout {
    let mut layout = Layout {
        slots: vec![None; source.names.len()],
        arrays: vec![
            (ColumnType::Real, columns.features.len()),
            (ColumnType::Real, usize::from(columns.label.is_some())),
            (ColumnType::Time, usize::from(columns.time.is_some())),
            (ColumnType::Category, usize::from(columns.entity.is_some())),
            (ColumnType::Category, columns.categories.len()),
            (ColumnType::Real, columns.more_labels.len()),
        ],
    };
    let mut put = |column: usize, array: usize, offset: usize, kind: ColumnType, required: bool| {
        layout.slots[column] = Some(Slot {
            array,
            offset,
            kind,
            required,
        });
    };
    let policies = policies(source, columns, options);
    for (offset, (&column, policy)) in columns.features.iter().zip(&policies).enumerate() {
        put(
            column,
            FEATURES,
            offset,
            ColumnType::Real,
            *policy == Missing::Error,
        );
    }
    for (offset, &column) in columns.categories.iter().enumerate() {
        let required = options.policies.own_missing(&source.names[column]) == Some(Missing::Error);
        put(column, CODES, offset, ColumnType::Category, required);
    }
    for (offset, &column) in columns.more_labels.iter().enumerate() {
        put(column, MORE_LABELS, offset, ColumnType::Real, false);
    }
    for (column, array, kind, required) in [
        (columns.label, LABELS, ColumnType::Real, false),
        (columns.time, TIMES, ColumnType::Time, true),
        (columns.entity, ENTITIES, ColumnType::Category, true),
    ] {
        if let Some(column) = column {
            put(column, array, 0, kind, required);
        }
    }
    layout
}

/// Names of the entities, the rows in the order of their entities, and how many each has.
fn group(source: &TableSource, columns: &Columns, read: &TableRead) -> (Vec<String>, Vec<u32>, Vec<usize>) {
    let rows = read.arrays.rows as u32;
    let (Some(column), Some(crate::table::Array::Code(codes))) =
        (columns.entity, read.arrays.arrays.get(ENTITIES))
    else {
        let names = paths::entity_names(&source.files);
        return (names, (0..rows).collect(), read.rows_per_file.clone());
    };
    let dictionary = &read.arrays.dictionaries[column];
    let mut sorted: Vec<usize> = (0..dictionary.len()).collect();
    sorted.sort_by(|&left, &right| natural_order(&dictionary.get(left), &dictionary.get(right)));
    let mut place = vec![0usize; dictionary.len()];
    sorted
        .iter()
        .enumerate()
        .for_each(|(index, &code)| place[code] = index);
    let place_of = |code: i32| place[(code.max(1) - 1) as usize];
    let mut counts = vec![0usize; dictionary.len()];
    codes.iter().for_each(|&code| counts[place_of(code)] += 1);
    let mut next: Vec<usize> = counts
        .iter()
        .scan(0, |start, count| Some(std::mem::replace(start, *start + count)))
        .collect();
    let mut order = vec![0u32; codes.len()];
    for (row, &code) in (0..).zip(codes) {
        let slot = &mut next[place_of(code)];
        order[*slot] = row;
        *slot += 1;
    }
    let names = sorted
        .iter()
        .map(|&code| dictionary.get(code).into_owned())
        .collect();
    (names, order, counts)
}

/// Within each entity; rows of one and the same time stay in the order of the file.
fn sort_by_time(order: &mut [u32], counts: &[usize], times: &[i64]) {
    if times.is_empty() {
        return;
    }
    let mut rest = order;
    for &count in counts {
        let (rows, tail) = rest.split_at_mut(count);
        rest = tail;
        if !rows.is_sorted_by_key(|&row| times[row as usize]) {
            rows.sort_by_key(|&row| times[row as usize]);
        }
    }
}

/// Brings row `order[i]` to place `i`, in place: the whole table a second time would be too much memory.
fn permute<T: Copy>(values: &mut [T], width: usize, order: &[u32]) {
    if width == 0 || order.iter().zip(0u32..).all(|(&row, place)| row == place) {
        return;
    }
    let mut done = vec![false; order.len()];
    let mut kept = Vec::with_capacity(width);
    for first in 0..order.len() {
        if done[first] {
            continue;
        }
        kept.clear();
        kept.extend_from_slice(&values[first * width..(first + 1) * width]);
        let mut place = first;
        loop {
            done[place] = true;
            let from = order[place] as usize;
            if from == first {
                values[place * width..(place + 1) * width].copy_from_slice(&kept);
                break;
            }
            values.copy_within(from * width..(from + 1) * width, place * width);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permutes_in_place_like_a_copy(count in 0usize..200, width in 1usize..5, seed: u64) {
            let permutation = crate::order::Permutation::new(count as u32, seed, 0);
            let order: Vec<u32> = (0..count as u32).map(|index| permutation.get(index)).collect();
            let mut values: Vec<usize> = (0..count * width).collect();
            permute(&mut values, width, &order);
            let expected: Vec<usize> = order.iter().flat_map(|&row| (0..width).map(move |column| row as usize * width + column)).collect();
            prop_assert_eq!(values, expected);
        }
    }
}
