//! Data sets of several tables: a log and side tables joined to it by key. A recipe (`dataset.json` in the folder, or one of
//! those flatout knows) names them.

use super::missing::Missing;
use super::roles::Roles;
use super::tabular::{self, TabularOptions};
use crate::dataset::{Category, Tabular};
use crate::table::{Array, ColumnType, Layout, Skipped, Slot};
use crate::table_source::TableSource;
use crate::text_list::{Dictionary, TextList};
use crate::{DataError, Result, shards};
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const RECIPE_FILE: &str = "dataset.json";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRecipe {
    pub name: String,
    /// Patterns of the log's files, one after the other; parts (`_part1`) are found by themselves.
    pub log: Vec<String>,
    pub label: String,
    #[serde(default)]
    pub time: Option<String>,
    /// Numeric columns of the log; all that are left when absent.
    #[serde(default)]
    pub features: Option<Vec<String>>,
    /// Categorical columns of the log.
    #[serde(default)]
    pub categories: Option<Vec<String>>,
    /// Columns of the log that must not be learnt from, such as what happened after the label.
    #[serde(default)]
    pub exclude: Vec<String>,
    #[serde(default)]
    pub tables: Vec<SideTable>,
    /// Of numeric columns, and of single ones.
    #[serde(default)]
    pub missing: Missing,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing_by_column: BTreeMap<String, Missing>,
    /// Types that inference would guess otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, ColumnType>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideTable {
    /// Pattern of its files.
    pub file: String,
    pub key: String,
    #[serde(default)]
    pub features: Option<Vec<String>>,
    #[serde(default)]
    pub categories: Option<Vec<String>>,
    #[serde(default)]
    pub exclude: Vec<String>,
}

impl JoinRecipe {
    /// The recipe of a folder: its own, or a known one whose files are there. `None` for plain tables.
    pub fn find(path: &Path) -> Result<Option<Self>> {
        if !path.is_dir() {
            return Ok(None);
        }
        let file = path.join(RECIPE_FILE);
        match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| DataError::Corrupt {
                    path: file,
                    format: "recipe",
                    reason: error.to_string(),
                }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                for recipe in super::kuairand::recipes() {
                    if !recipe.files(&data_folder(path))?.is_empty() {
                        return Ok(Some(recipe));
                    }
                }
                Ok(None)
            }
            // Of a folder that may not be entered it is the folder that is to be named.
            Err(error) if std::fs::read_dir(path).is_err() => Err(DataError::reading(path, error)),
            Err(error) => Err(DataError::reading(file, error)),
        }
    }

    /// A data set that flatout knows by name.
    pub fn named(name: &str) -> Option<Self> {
        super::kuairand::recipes()
            .into_iter()
            .find(|recipe| recipe.name.eq_ignore_ascii_case(name))
    }

    pub fn files(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for pattern in &self.log {
            files.extend(shards::find_pattern(folder, pattern)?);
        }
        files.dedup();
        Ok(files)
    }

    pub fn load(&self, path: &Path, options: &TabularOptions) -> Result<Tabular> {
        let folder = data_folder(path);
        let mut files = self.files(&folder)?;
        if files.is_empty() {
            let list = self.log.join(", ");
            return Err(DataError::NoFiles {
                path: folder,
                wanted: message!(en: "log files ({list})", zh: "日志文件（{list}）"),
            });
        }
        files.truncate(options.limit.unwrap_or(usize::MAX).max(1));
        let options = self.merge(options);
        let sides = self
            .tables
            .iter()
            .map(|table| Side::load(&folder, table, &options))
            .collect::<Result<Vec<_>>>()?;
        let source = TableSource::of_files(files, options.threads, options.policies.encoding)?;
        tabular::build(&source, &options, &sides, path)
    }

    /// What the caller says comes before what the recipe says.
    fn merge(&self, options: &TabularOptions) -> TabularOptions {
        let mut merged = options.clone();
        if merged.label.is_empty() {
            merged.label.clone_from(&self.label);
        }
        merged.features = merged.features.or_else(|| self.features.clone());
        merged.categories = merged.categories.or_else(|| self.categories.clone());
        merged.time = merged.time.or_else(|| self.time.clone());
        merged.exclude.extend(self.exclude.iter().cloned());
        if merged.label != self.label {
            merged.exclude.push(self.label.clone());
        }
        let policies = &mut merged.policies;
        policies.missing = policies.missing.or(Some(self.missing));
        // The last word counts, and that is the caller's.
        let missing = self
            .missing_by_column
            .iter()
            .map(|(name, policy)| (name.clone(), *policy));
        policies.missing_by_column.splice(0..0, missing);
        let types = self.types.iter().map(|(name, kind)| (name.clone(), *kind));
        policies.types.splice(0..0, types);
        merged
    }
}

/// Published archives keep their tables in `data/`.
fn data_folder(path: &Path) -> PathBuf {
    let inner = path.join("data");
    if inner.is_dir() { inner } else { path.to_owned() }
}

/// A side table in memory.
pub struct Side {
    pub key: String,
    /// Of the file, whether they are read or not.
    column_names: Vec<String>,
    keys: Dictionary,
    /// Row of each key code; `None` where the row of that key could not be read.
    row_of_code: Vec<Option<usize>>,
    pub feature_names: Vec<String>,
    features: Vec<f32>,
    pub categories: Vec<Category>,
    codes: Vec<i32>,
    /// Rows that could not be read and were left out.
    pub skipped: Skipped,
}

impl Side {
    pub fn has_column(&self, name: &str) -> bool {
        self.column_names.iter().any(|known| known == name)
    }

    fn load(folder: &Path, table: &SideTable, options: &TabularOptions) -> Result<Self> {
        let files = shards::find_pattern(folder, &table.file)?;
        if files.is_empty() {
            let pattern = &table.file;
            return Err(DataError::NoFiles {
                path: folder.to_owned(),
                wanted: message!(en: "table `{pattern}`", zh: "表 `{pattern}`"),
            });
        }
        let source = TableSource::of_files(files, options.threads, options.policies.encoding)?;
        let key = source.column(&table.key)?;
        let chosen = |column: usize, wanted: bool, list: &Option<Vec<String>>| {
            let name = &source.names[column];
            column != key
                && !table.exclude.contains(name)
                && !options.policies.is_ignored(name)
                && list.as_ref().map_or(wanted, |list| list.contains(name))
        };
        let kind_of = |column: usize| {
            options
                .policies
                .type_of(&source.names[column], source.types[column])
        };
        let is_category = |column: usize| kind_of(column) == ColumnType::Category;
        let columns = 0..source.names.len();
        let categories: Vec<usize> = columns
            .clone()
            .filter(|&column| chosen(column, is_category(column), &table.categories))
            .collect();
        let features: Vec<usize> = columns
            .filter(|&column| !categories.contains(&column) && !is_category(column))
            .filter(|&column| chosen(column, kind_of(column) != ColumnType::Time, &table.features))
            .collect();
        let layout = side_layout(&source, key, &features, &categories);
        let mut read = source.read(&layout, &options.read_options())?;
        let mut arrays = std::mem::take(&mut read.arrays.arrays).into_iter();
        let mut take = || arrays.next().unwrap_or(Array::Real(Vec::new()));
        let (values, codes, keys) = (take().into_real(), take().into_code(), take().into_code());
        let row_of_code = index_keys(
            &keys,
            &read.arrays.dictionaries[key],
            &source.files[0],
            &table.key,
        )?;
        Ok(Self {
            key: table.key.clone(),
            keys: Dictionary::from_texts(&read.arrays.dictionaries[key]),
            row_of_code,
            feature_names: features
                .iter()
                .map(|&column| source.names[column].clone())
                .collect(),
            features: values,
            categories: categories
                .iter()
                .map(|&column| Category {
                    name: source.names[column].clone(),
                    values: std::mem::take(&mut read.arrays.dictionaries[column]),
                })
                .collect(),
            codes,
            skipped: read.skipped,
            column_names: source.names,
        })
    }

    /// The side table's row for each code of the log's key, `None` where it has none. Entry 0 is the missing key.
    fn rows_for(&self, log_keys: &TextList) -> Vec<Option<usize>> {
        let known = (0..log_keys.len()).map(|index| {
            let code = usize::try_from(self.keys.find(log_keys.bytes(index))).ok()?;
            self.row_of_code.get(code.checked_sub(1)?).copied().flatten()
        });
        std::iter::once(None).chain(known).collect()
    }
}

fn side_layout(source: &TableSource, key: usize, features: &[usize], categories: &[usize]) -> Layout {
    let mut layout = Layout {
        slots: vec![None; source.names.len()],
        arrays: vec![
            (ColumnType::Real, features.len()),
            (ColumnType::Category, categories.len()),
            (ColumnType::Category, 1),
        ],
    };
    let mut put = |columns: &[usize], array: usize, kind: ColumnType| {
        for (offset, &column) in columns.iter().enumerate() {
            layout.slots[column] = Some(Slot {
                array,
                offset,
                kind,
                required: column == key,
            });
        }
    };
    put(features, 0, ColumnType::Real);
    put(categories, 1, ColumnType::Category);
    put(&[key], 2, ColumnType::Category);
    layout
}

fn index_keys(keys: &[i32], names: &TextList, path: &Path, key: &str) -> Result<Vec<Option<usize>>> {
    // A key whose row was skipped is in the dictionary as well, so there may be more names than rows.
    let mut rows = vec![None; names.len()];
    for (row, &code) in keys.iter().enumerate() {
        // Code 0 is a row without a key.
        let Some(index) = usize::try_from(code).ok().and_then(|code| code.checked_sub(1)) else {
            continue;
        };
        if rows[index].replace(row).is_some() {
            let (path, value) = (path.display(), names.get(index));
            return Err(DataError::Setting(message!(
                en: "`{path}` has two rows whose `{key}` is {value}; a table to join needs exactly one per \
                key",
                zh: "`{path}` 中 `{key}` 为 {value} 的行出现了两次；用于关联的表每个键只能有一行"
            )));
        }
    }
    Ok(rows)
}

/// Where joined columns go: behind the log's own.
pub struct Target<'a> {
    pub features: &'a mut [f32],
    pub codes: &'a mut [i32],
    /// Codes of the keys that are not categories.
    pub keys: &'a [i32],
    pub width: usize,
    pub code_width: usize,
}

/// Writes the side tables' columns beside the log's.
pub fn append(sides: &[Side], roles: &Roles, dictionaries: &[TextList], target: Target<'_>) {
    let Target {
        features,
        codes,
        keys,
        width,
        code_width,
    } = target;
    let (mut feature_offset, mut code_offset) = (roles.features.len(), roles.categories.len());
    for (side, &key) in sides.iter().zip(&roles.keys) {
        let rows_for = side.rows_for(&dictionaries[key]);
        let (own_features, own_codes) = (side.feature_names.len(), side.categories.len());
        let category = roles.categories.iter().position(|&column| column == key);
        let separate = roles.separate_keys.iter().position(|&column| column == key);
        let rows = codes
            .len()
            .checked_div(code_width)
            .unwrap_or(features.len() / width.max(1));
        for row in 0..rows {
            let code = match (category, separate) {
                (Some(offset), _) => codes[row * code_width + offset],
                (None, Some(offset)) => keys[row * roles.separate_keys.len() + offset],
                (None, None) => 0,
            };
            let Some(from) = rows_for[code as usize] else {
                continue;
            };
            features[row * width + feature_offset..][..own_features]
                .copy_from_slice(&side.features[from * own_features..][..own_features]);
            codes[row * code_width + code_offset..][..own_codes]
                .copy_from_slice(&side.codes[from * own_codes..][..own_codes]);
        }
        feature_offset += own_features;
        code_offset += own_codes;
    }
}
