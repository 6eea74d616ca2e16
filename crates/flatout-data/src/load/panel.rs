//! A folder with one Parquet file an entity becomes a [`Panel`]; other tables do so through `panel_table`.

use super::missing::{self, Missing};
use super::policies::Policies;
use crate::block::zeroed;
use crate::dataset::{Entity, Panel};
use crate::formats::parquet::{ParquetFile, ParquetKind};
use crate::stamps::Stamps;
use crate::table::{BadRows, Skipped, is_index};
use crate::{DataError, Result, parallel, paths};
use flatout_core::message;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(Debug, Clone, Default)]
pub struct PanelOptions {
    pub label: String,
    /// Further labels, learned together with the first.
    pub more_labels: Vec<String>,
    /// Labels are not read, if there are any; all are NaN. For predictions.
    pub without_labels: bool,
    /// The column that names the entity of a row, for tables that hold many; each file is one when absent.
    pub entity: Option<String>,
    /// All numeric columns but the label when absent.
    pub features: Option<Vec<String>>,
    /// Only these categorical columns; text columns that say something about a row when absent.
    pub categories: Option<Vec<String>>,
    /// The column of time; found by its type or name when absent.
    pub time: Option<String>,
    pub policies: Policies,
    /// The first so many entities only.
    pub limit: Option<usize>,
    pub threads: Option<usize>,
}

/// Names that mean "the time of the row" when no column has a type of time.
pub(super) const TIME_NAMES: [&str; 6] = ["date", "datetime", "time", "timestamp", "trade_date", "day"];

/// What is read from each file.
struct Plan {
    features: Vec<String>,
    /// Of each feature.
    missing: Vec<Missing>,
    /// Whether the label is to be read.
    labelled: bool,
    label: String,
    time: Option<String>,
}

/// One file's share of the blocks.
struct Part<'a> {
    path: &'a Path,
    rows: usize,
    features: &'a mut [f32],
    labels: &'a mut [f32],
    times: &'a mut [i64],
}

pub fn load_panel(path: &Path, options: &PanelOptions) -> Result<Panel> {
    // Files of one entity each go straight into the blocks, unless values are to be read otherwise than they lie there.
    let policies = &options.policies;
    let plain = policies.types.is_empty() && policies.bad_rows == BadRows::Error;
    if options.entity.is_some() || !options.more_labels.is_empty() || !plain || !is_parquet(path) {
        return super::panel_table::load(path, options);
    }
    let mut files = paths::find_files(path, &["parquet"])?;
    if has_categories(&files[0], options)? {
        return super::panel_table::load(path, options);
    }
    files.truncate(options.limit.unwrap_or(usize::MAX).max(1));
    let threads = parallel::threads(options.threads);
    let stamps = Stamps::take(&files)?;
    let plan = plan(&ParquetFile::open(&files[0])?, &files[0], options)?;
    let row_counts = parallel::map(files.len(), threads, |index| {
        count_rows(&files[index], &files[0], &plan)
    })?;
    let rows: usize = row_counts.iter().sum();
    check_rows(path, rows)?;
    let width = plan.features.len();
    let (mut features, mut labels) = (zeroed::<f32>(rows * width), vec![0f32; rows]);
    let mut times = vec![0i64; if plan.time.is_some() { rows } else { 0 }];
    let parts = cut(&files, &row_counts, width, &mut features, &mut labels, &mut times);
    parallel::for_each(parts.len(), threads, |index| {
        let mut part = parts[index].lock().unwrap_or_else(|poison| poison.into_inner());
        read_part(&mut part, &plan, policies.infinite_is_missing)
    })
    // A file that changed may fail in any way: that it changed is what to say.
    .or_else(|error| stamps.check().and(Err(error)))?;
    drop(parts);
    stamps.check()?;
    let mut panel = Panel {
        features: features.into(),
        feature_names: plan.features.clone(),
        codes: Vec::new().into(),
        categories: Vec::new(),
        labels: labels.into(),
        label_name: plan.label.clone(),
        more_labels: Vec::new().into(),
        more_label_names: Vec::new(),
        entity_of_row: Vec::new().into(),
        entities: entities(&files, &row_counts),
        timestamps_us: plan.time.is_some().then(|| times.into()),
        rows_dropped: 0,
        skipped: Skipped::default(),
    };
    panel.finish_rows(&plan.missing);
    check_rows(path, panel.rows())?;
    if !options.without_labels {
        super::labels::check(path, &panel.labels, &options.label)?;
    }
    Ok(panel)
}

/// Whether there are columns of text to learn from.
fn has_categories(path: &Path, options: &PanelOptions) -> Result<bool> {
    if let Some(names) = &options.categories {
        return Ok(!names.is_empty());
    }
    let file = ParquetFile::open(path)?;
    let time = options.time.clone().or_else(|| find_time(&file));
    let mut text = file
        .columns()
        .iter()
        .filter(|column| column.kind == ParquetKind::Text);
    let taken = |name: &String| {
        *name == options.label
            || Some(name) == time.as_ref()
            || options.policies.is_ignored(name)
            || is_index(name)
    };
    Ok(options.features.is_none() && text.any(|column| !taken(&column.name)))
}

/// A panel has rows, and no more than a window's number can tell.
pub(super) fn check_rows(path: &Path, rows: usize) -> Result<()> {
    if rows == 0 {
        return Err(DataError::NoRows {
            path: path.to_owned(),
        });
    }
    if u32::try_from(rows).is_err() {
        return Err(DataError::TooLarge {
            what: "rows",
            count: rows as u64,
        });
    }
    Ok(())
}

/// Whether the files there are Parquet; so is what is not there, so that the error speaks of the usual case.
fn is_parquet(path: &Path) -> bool {
    let ends = |path: &Path| {
        path.extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))
    };
    if path.is_dir() || crate::glob::is_pattern(path) {
        return crate::shards::find_tables(path).map_or(true, |files| files.iter().any(|file| ends(file)));
    }
    ends(path) || !crate::shards::has_table_ending(path)
}

fn plan(file: &ParquetFile, path: &Path, options: &PanelOptions) -> Result<Plan> {
    let numeric = |name: &str| -> Result<()> {
        let kind = file.columns()[file.column(name)?].kind;
        if kind.is_number() {
            return Ok(());
        }
        Err(DataError::ColumnKind {
            path: path.to_owned(),
            column: name.to_owned(),
            found: kind.name().to_owned(),
            wanted: message!(en: "numbers", zh: "数值"),
        })
    };
    for name in options.policies.columns() {
        file.column(name)?;
    }
    let labelled = !options.without_labels;
    if labelled {
        numeric(&options.label)?;
    }
    let time = match &options.time {
        Some(name) => {
            file.column(name)?;
            Some(name.clone())
        }
        None => find_time(file),
    };
    let features = match &options.features {
        Some(names) => {
            names.iter().try_for_each(|name| numeric(name))?;
            names.clone()
        }
        None => file
            .columns()
            .iter()
            .filter(|column| column.kind.is_number() && column.name != options.label)
            .map(|column| column.name.clone())
            .filter(|name| {
                Some(name) != time.as_ref() && !options.policies.is_ignored(name) && !is_index(name)
            })
            .collect(),
    };
    if features.is_empty() {
        return Err(DataError::NoFiles {
            path: path.to_owned(),
            wanted: message!(en: "numeric columns other than the label", zh: "标签以外的数值列"),
        });
    }
    Ok(Plan {
        missing: features
            .iter()
            .map(|name| options.policies.missing_of(name))
            .collect(),
        features,
        labelled,
        label: options.label.clone(),
        time,
    })
}

fn find_time(file: &ParquetFile) -> Option<String> {
    let by_kind = file
        .columns()
        .iter()
        .find(|column| matches!(column.kind, ParquetKind::Time(_)));
    let by_name = || {
        file.columns()
            .iter()
            .find(|column| TIME_NAMES.contains(&column.name.to_ascii_lowercase().as_str()))
    };
    by_kind.or_else(by_name).map(|column| column.name.clone())
}

/// Opens a file for its footer only and checks that it has what the plan needs.
fn count_rows(path: &Path, first: &Path, plan: &Plan) -> Result<usize> {
    let file = ParquetFile::open(path)?;
    let label = plan.labelled.then_some(&plan.label);
    let needed = plan.features.iter().chain(label).chain(&plan.time);
    let missing: Vec<String> = needed
        .filter(|name| file.column(name).is_err())
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(DataError::OtherColumns {
            path: path.to_owned(),
            first: first.to_owned(),
            missing,
            extra: Vec::new(),
        });
    }
    Ok(file.rows())
}

fn cut<'a>(
    files: &'a [PathBuf],
    row_counts: &[usize],
    width: usize,
    mut features: &'a mut [f32],
    mut labels: &'a mut [f32],
    mut times: &'a mut [i64],
) -> Vec<Mutex<Part<'a>>> {
    let mut parts = Vec::with_capacity(files.len());
    for (path, &rows) in files.iter().zip(row_counts) {
        let (these_features, rest) = features.split_at_mut(rows * width);
        features = rest;
        let (these_labels, rest) = labels.split_at_mut(rows);
        labels = rest;
        let (these_times, rest) = times.split_at_mut(if times.is_empty() { 0 } else { rows });
        times = rest;
        parts.push(Mutex::new(Part {
            path,
            rows,
            features: these_features,
            labels: these_labels,
            times: these_times,
        }));
    }
    parts
}

fn read_part(part: &mut Part<'_>, plan: &Plan, infinite_is_missing: bool) -> Result<()> {
    let file = ParquetFile::open(part.path)?;
    if file.rows() != part.rows {
        return Err(DataError::Corrupt {
            path: part.path.to_owned(),
            format: "Parquet",
            reason: "it was replaced while it was read".into(),
        });
    }
    let width = plan.features.len();
    for (index, name) in plan.features.iter().enumerate() {
        file.read_f32(file.column(name)?, part.features, index, width)?;
    }
    if plan.labelled {
        file.read_f32(file.column(&plan.label)?, part.labels, 0, 1)?;
    } else {
        part.labels.fill(f32::NAN);
    }
    let not_finite = |place: usize, features: &[f32]| DataError::NotFinite {
        path: part.path.to_owned(),
        row: (place / width) as u64 + 1,
        column: plan.features[place % width].clone(),
        value: features[place].to_string(),
    };
    let infinite = part.features.iter().position(|value| value.is_infinite());
    if let Some(place) = infinite.filter(|_| !infinite_is_missing) {
        return Err(not_finite(place, part.features));
    }
    missing::fill_columns(part.features, &plan.missing)
        .map_err(|(row, column)| not_finite(row * width + column, part.features))?;
    if let Some(time) = &plan.time {
        file.read_time_us(file.column(time)?, part.times)?;
        if let Some(row) = part.times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(DataError::Unordered {
                path: part.path.to_owned(),
                row: row as u64 + 2,
                column: time.clone(),
            });
        }
    }
    Ok(())
}

fn entities(files: &[PathBuf], row_counts: &[usize]) -> Vec<Entity> {
    let mut start = 0u32;
    paths::entity_names(files)
        .into_iter()
        .zip(row_counts)
        .map(|(name, &rows)| {
            let entity = Entity {
                name,
                rows: start..start + rows as u32,
            };
            start = entity.rows.end;
            entity
        })
        .collect()
}
