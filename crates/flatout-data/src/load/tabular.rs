//! CSV or Parquet tables become a [`Tabular`], parsed straight into its blocks. Side tables may be joined by key.

use super::join::{self, JoinRecipe, Side};
use super::labels;
use super::missing::{self, Missing};
use super::policies::Policies;
use super::roles::{Roles, role_columns};
use crate::dataset::{Category, Labels, Tabular};
use crate::paths::natural_order;
use crate::table::{Array, ColumnType, Layout, Slot};
use crate::table_source::{ReadOptions, TableSource};
use crate::text_list::TextList;
use crate::{DataError, Result};
use std::path::Path;

/// What a label is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelKind {
    /// Text is a class, a number is a number.
    #[default]
    Auto,
    Real,
    Class,
}

#[derive(Debug, Clone, Default)]
pub struct TabularOptions {
    /// May be empty when a recipe names it.
    pub label: String,
    /// Further labels, learned together with the first.
    pub more_labels: Vec<String>,
    pub label_kind: LabelKind,
    /// Labels are not read, if there are any; all are NaN. For predictions.
    pub without_labels: bool,
    /// Only these numeric columns; all but label, time and categories when absent.
    pub features: Option<Vec<String>>,
    /// Only these categorical columns; text and `…_id` columns when absent.
    pub categories: Option<Vec<String>>,
    pub exclude: Vec<String>,
    /// The column of time: splits then cut by it.
    pub time: Option<String>,
    pub policies: Policies,
    /// The first so many files only.
    pub limit: Option<usize>,
    pub threads: Option<usize>,
}

impl TabularOptions {
    pub(super) fn read_options(&self) -> ReadOptions {
        ReadOptions {
            bad_rows: self.policies.bad_rows,
            infinite_is_missing: self.policies.infinite_is_missing,
            threads: self.threads,
        }
    }
}

/// Loads a file, shards, a glob or a folder. A folder with a `dataset.json`, or with the files of a data set that flatout knows
/// (KuaiRand), is joined as its recipe says.
pub fn load_tabular(path: &Path, options: &TabularOptions) -> Result<Tabular> {
    if let Some(recipe) = JoinRecipe::find(path)? {
        return recipe.load(path, options);
    }
    let source = TableSource::open_as(path, options.limit, options.threads, options.policies.encoding)?;
    build(&source, options, &[], path)
}

/// Arrays of the layout, by their number.
const FEATURES: usize = 0;
const CODES: usize = 1;
const LABELS: usize = 2;
const TIMES: usize = 3;
const KEYS: usize = 4;
const TEXT_LABELS: usize = 5;

/// Reads the main table and appends the columns of the side tables.
pub(crate) fn build(
    source: &TableSource,
    options: &TabularOptions,
    sides: &[Side],
    path: &Path,
) -> Result<Tabular> {
    let roles = role_columns(source, options, sides)?;
    let joined_features: usize = sides.iter().map(|side| side.feature_names.len()).sum();
    let joined_codes: usize = sides.iter().map(|side| side.categories.len()).sum();
    let width = roles.features.len() + joined_features;
    let code_width = roles.categories.len() + joined_codes;
    let layout = layout(source, options, &roles, width, code_width, sides.len());
    let read = source.read(&layout, &options.read_options());
    let mut read = read.map_err(|error| labels::told(error, &options.label))?;
    let rows = read.arrays.rows;
    if rows == 0 {
        return Err(labels::no_rows(path, &read.skipped, &options.label));
    }
    let mut arrays = std::mem::take(&mut read.arrays.arrays).into_iter();
    let mut take = || arrays.next().unwrap_or(Array::Real(Vec::new()));
    let (mut features, mut codes) = (take().into_real(), take().into_code());
    let (mut labels, times, keys) = (take(), take().into_integer(), take().into_code());
    let label_classes = match roles.text_labels.is_empty() {
        true => Vec::new(),
        false => number_text_labels(
            &mut labels,
            &take().into_code(),
            &roles,
            &read.arrays.dictionaries,
        ),
    };
    let name_of = |column: &usize| source.names[*column].clone();
    let mut feature_names: Vec<String> = roles.features.iter().map(name_of).collect();
    let mut categories: Vec<Category> = roles
        .categories
        .iter()
        .map(|&column| Category {
            name: source.names[column].clone(),
            values: read.arrays.dictionaries[column].clone(),
        })
        .collect();
    join::append(
        sides,
        &roles,
        &read.arrays.dictionaries,
        join::Target {
            features: &mut features,
            codes: &mut codes,
            keys: &keys,
            width,
            code_width,
        },
    );
    for side in sides {
        read.skipped.add(&side.skipped);
        feature_names.extend(side.feature_names.iter().cloned());
        categories.extend(side.categories.iter().cloned());
    }
    let mut table = Tabular {
        rows,
        features: features.into(),
        feature_names,
        codes: codes.into(),
        categories,
        labels: match roles.label {
            Some(column) => finish_labels(labels, &read.arrays.dictionaries[column]),
            None => Labels::Real(vec![f32::NAN; rows].into()),
        },
        label_name: std::iter::once(&options.label)
            .chain(&options.more_labels)
            .cloned()
            .collect::<Vec<_>>()
            .join(","),
        label_classes,
        timestamps_us: roles.time.map(|_| times.into()),
        skipped: read.skipped,
        rows_dropped: 0,
    };
    fill_missing(&mut table, options, path)?;
    table.check()?;
    Ok(table)
}

fn layout(
    source: &TableSource,
    options: &TabularOptions,
    roles: &Roles,
    width: usize,
    code_width: usize,
    sides: usize,
) -> Layout {
    let label_kind = if roles.class_label {
        ColumnType::Category
    } else {
        ColumnType::Real
    };
    let mut layout = Layout {
        slots: vec![None; source.names.len()],
        arrays: vec![
            (ColumnType::Real, width),
            (ColumnType::Category, code_width),
            (
                label_kind,
                usize::from(roles.label.is_some()) + roles.more_labels.len(),
            ),
            (ColumnType::Time, usize::from(roles.time.is_some())),
            (ColumnType::Category, roles.separate_keys.len().min(sides)),
            (ColumnType::Category, roles.text_labels.len()),
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
    for (offset, &column) in roles.features.iter().enumerate() {
        let required = options.policies.missing_of(&source.names[column]) == Missing::Error;
        put(column, FEATURES, offset, ColumnType::Real, required);
    }
    for (offset, &column) in roles.categories.iter().enumerate() {
        // A missing category is a value like others, unless somebody says otherwise.
        let required = options.policies.own_missing(&source.names[column]) == Some(Missing::Error);
        put(column, CODES, offset, ColumnType::Category, required);
    }
    for (offset, &column) in roles.separate_keys.iter().enumerate() {
        put(column, KEYS, offset, ColumnType::Category, false);
    }
    for (offset, &label) in roles.label.iter().chain(&roles.more_labels).enumerate() {
        match roles.text_labels.iter().position(|&place| place == offset) {
            Some(place) => put(label, TEXT_LABELS, place, ColumnType::Category, true),
            None => put(label, LABELS, offset, label_kind, true),
        }
    }
    if let Some(time) = roles.time {
        put(time, TIMES, 0, ColumnType::Time, true);
    }
    layout
}

/// Puts the class numbers of text labels among the numbers; gives the classes of each label.
fn number_text_labels(
    labels: &mut Array,
    codes: &[i32],
    roles: &Roles,
    dictionaries: &[TextList],
) -> Vec<Vec<String>> {
    let columns: Vec<usize> = roles.label.iter().chain(&roles.more_labels).copied().collect();
    let (width, text_width) = (columns.len(), roles.text_labels.len());
    let mut classes = vec![Vec::new(); width];
    let Array::Real(values) = labels else {
        return classes;
    };
    for (offset, &place) in roles.text_labels.iter().enumerate() {
        let (class_of, names) = number_classes(&dictionaries[columns[place]]);
        for (row, &code) in codes.iter().skip(offset).step_by(text_width).enumerate() {
            values[row * width + place] = class_of[(code.max(1) - 1) as usize] as f32;
        }
        classes[place] = names;
    }
    classes
}

/// Classes in natural order of their names, so that `0` is class 0 and `cat` comes before `dog`.
fn finish_labels(labels: Array, dictionary: &TextList) -> Labels {
    match labels {
        Array::Code(codes) => {
            let (class_of, names) = number_classes(dictionary);
            let classes: Vec<i32> = codes
                .iter()
                .map(|&code| class_of[(code.max(1) - 1) as usize])
                .collect();
            Labels::Class {
                classes: classes.into(),
                names,
            }
        }
        Array::Real(values) => Labels::Real(values.into()),
        Array::Integer(_) => Labels::default(),
    }
}

/// The class of each entry of a dictionary, and the names of the classes.
pub(super) fn number_classes(dictionary: &TextList) -> (Vec<i32>, Vec<String>) {
    let mut order: Vec<usize> = (0..dictionary.len()).collect();
    order.sort_by(|&left, &right| natural_order(&dictionary.get(left), &dictionary.get(right)));
    let mut class_of = vec![0i32; dictionary.len()];
    (0..)
        .zip(&order)
        .for_each(|(class, &index)| class_of[index] = class);
    let names = order.iter().map(|&index| dictionary.get(index).into_owned());
    (class_of, names.collect())
}

fn fill_missing(table: &mut Tabular, options: &TabularOptions, path: &Path) -> Result<()> {
    let policies: Vec<Missing> = table
        .feature_names
        .iter()
        .map(|name| options.policies.missing_of(name))
        .collect();
    missing::fill_columns(table.features.to_mut(), &policies).map_err(|(row, column)| {
        DataError::NotFinite {
            path: path.to_owned(),
            row: row as u64 + 1,
            column: table.feature_names[column].clone(),
            value: "missing".into(),
        }
    })?;
    let dropped = |category: &Category| options.policies.own_missing(&category.name) == Some(Missing::Drop);
    let categories: Vec<bool> = table.categories.iter().map(dropped).collect();
    if policies.contains(&Missing::Drop) || categories.contains(&true) {
        table.drop_rows_with_missing(&policies, &categories);
        if table.rows == 0 {
            return Err(DataError::NoRows {
                path: path.to_owned(),
            });
        }
    }
    Ok(())
}
