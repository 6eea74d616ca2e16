//! What the engine sees at a path: files, schema, rows, missing values, splits, memory. For people and for programs.

use crate::formats::image::ImageDecoder;
use crate::formats::npy::NpyFile;
use crate::formats::npy_table;
use crate::load::images::{ImageOptions, list_images};
use crate::load::join::JoinRecipe;
use crate::split::{SplitRule, split_rows};
use crate::table::{Array, BadRow, BadRows, ColumnType, Layout, MISSING};
use crate::table_source::{ReadOptions, TableSource};
use crate::{DataError, ImageTargets, Result, TabularOptions, load_tabular};
use serde::Serialize;
use std::path::Path;

#[derive(Debug, Serialize)]
pub struct Inspection {
    pub schema_version: u32,
    /// `panel`, `table`, `joined tables` or `images`.
    pub kind: &'static str,
    pub format: String,
    pub files: Vec<FileInfo>,
    pub rows: u64,
    pub columns: Vec<ColumnInfo>,
    /// Rows that cannot be read; they would be an error, or be left out with `skip`.
    pub bad_rows: u64,
    #[serde(skip)]
    pub bad_examples: Vec<BadRow>,
    /// Rows (or pictures) of training, validation and test under the default split.
    pub split: [u64; 3],
    /// Bytes of the data in memory as a trainer would hold them.
    pub memory_bytes: u64,
    /// Height, width and channels of pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_shape: Option<[usize; 3]>,
    /// Pictures of each class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<(String, u64)>,
}

#[derive(Debug, Serialize)]
pub struct FileInfo {
    pub path: String,
    pub size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct ColumnInfo {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub missing: u64,
    /// Different values of a category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
}

/// Looks at a path and reads it once, leaving bad rows out.
pub fn inspect(path: &Path, limit: Option<usize>) -> Result<Inspection> {
    if let Some(recipe) = JoinRecipe::find(path)? {
        return inspect_joined(path, &recipe, limit);
    }
    // A folder of pictures with a table of labels is one of pictures.
    if path.is_dir()
        && path.join("labels.csv").is_file()
        && let Ok(images) = inspect_images(path, limit)
    {
        return Ok(images);
    }
    if let Some(array) = picture_array(path)? {
        return inspect_picture_array(path, array);
    }
    match TableSource::open(path, limit, None) {
        Ok(source) => inspect_table(&source),
        Err(DataError::NoFiles { .. }) if path.is_dir() => inspect_images(path, limit),
        Err(error) => Err(error),
    }
}

/// An `.npy` of bytes with three or four axes is one of pictures.
fn picture_array(path: &Path) -> Result<Option<NpyFile>> {
    if path.extension().is_none_or(|ending| ending != "npy") {
        return Ok(None);
    }
    let array = NpyFile::open(path)?;
    Ok(Some(array).filter(NpyFile::holds_pictures))
}

fn inspect_picture_array(path: &Path, array: NpyFile) -> Result<Inspection> {
    let images = crate::load_images(path, &ImageOptions::default())?;
    let split = split_rows(images.count, None, &SplitRule::default())?;
    let (classes, columns) = describe_targets(&images.targets);
    Ok(Inspection {
        schema_version: 1,
        kind: "images",
        format: "NumPy".into(),
        files: vec![
            file_info(path, Some(array.shape[0] as u64)),
            file_info(&path.with_file_name("labels.npy"), None),
        ],
        rows: images.count as u64,
        columns,
        bad_rows: 0,
        bad_examples: Vec::new(),
        split: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        memory_bytes: images.pixels.size_bytes() as u64,
        image_shape: Some([images.height, images.width, images.channels]),
        classes,
    })
}

fn file_info(path: &Path, rows: Option<u64>) -> FileInfo {
    FileInfo {
        path: path.display().to_string(),
        size_bytes: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
        rows,
    }
}

fn inspect_table(source: &TableSource) -> Result<Inspection> {
    let kinds: Vec<Option<ColumnType>> = source.types.iter().map(|kind| Some(*kind)).collect();
    let options = ReadOptions {
        bad_rows: BadRows::Skip,
        allow_infinite: true,
        threads: None,
    };
    let read = source.read(&Layout::columns(&kinds), &options)?;
    let columns: Vec<ColumnInfo> = read
        .arrays
        .arrays
        .iter()
        .enumerate()
        .map(|(index, array)| {
            describe(
                &source.names[index],
                source.types[index],
                array,
                read.arrays.dictionaries[index].len(),
            )
        })
        .collect();
    let rows = read.arrays.rows;
    let times = source.types.iter().position(|kind| *kind == ColumnType::Time);
    // One file an entity: several Parquet files with a time that are not parts of one name.
    let files = source.format_name() == "Parquet"
        && times.is_some()
        && source.files.len() > 1
        && !source.files[0].to_string_lossy().contains("_part");
    let panel = files || (source.format_name() == "NumPy" && source.names[0] == npy_table::ENTITY);
    let timestamps = match times.map(|column| &read.arrays.arrays[column]) {
        Some(Array::Integer(times)) if panel => Some(&times[..]),
        _ => None,
    };
    let split = split_rows(rows, timestamps, &SplitRule::default())?;
    Ok(Inspection {
        schema_version: 1,
        kind: if panel { "panel" } else { "table" },
        format: source.format_name().into(),
        files: source
            .files
            .iter()
            .zip(&read.rows_per_file)
            .map(|(path, rows)| file_info(path, Some(*rows as u64)))
            .collect(),
        rows: rows as u64,
        memory_bytes: source
            .types
            .iter()
            .map(|kind| (kind.value_bytes() * rows) as u64)
            .sum(),
        columns,
        bad_rows: read.skipped.count,
        bad_examples: read.skipped.examples,
        split: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        image_shape: None,
        classes: Vec::new(),
    })
}

fn describe(name: &str, kind: ColumnType, array: &Array, distinct: usize) -> ColumnInfo {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (missing, range) = match array {
        Array::Real(values) => (
            values.iter().filter(|value| !value.is_finite()).count(),
            range(
                &mut values
                    .iter()
                    .filter(|value| value.is_finite())
                    .map(|&value| f64::from(value)),
            ),
        ),
        Array::Integer(values) => (
            values.iter().filter(|value| **value == MISSING).count(),
            range(
                &mut values
                    .iter()
                    .filter(|value| **value != MISSING)
                    .map(|&value| value as f64),
            ),
        ),
        Array::Code(values) => (values.iter().filter(|code| **code == 0).count(), None),
    };
    ColumnInfo {
        name: name.to_owned(),
        kind: kind.name(),
        missing: missing as u64,
        distinct: (kind == ColumnType::Category).then_some(distinct as u64),
        minimum: range.map(|(low, _)| low),
        maximum: range.map(|(_, high)| high),
    }
}

fn inspect_joined(path: &Path, recipe: &JoinRecipe, limit: Option<usize>) -> Result<Inspection> {
    let options = TabularOptions {
        bad_rows: BadRows::Skip,
        missing: crate::Missing::Mean,
        limit,
        ..TabularOptions::default()
    };
    let table = load_tabular(path, &options)?;
    let split = table.split(&SplitRule::default())?;
    let width = table.feature_names.len();
    let features = table.feature_names.iter().enumerate().map(|(column, name)| {
        let values: Vec<f32> = table
            .features
            .iter()
            .skip(column)
            .step_by(width)
            .copied()
            .collect();
        describe(name, ColumnType::Real, &Array::Real(values), 0)
    });
    let categories = table.categories.iter().enumerate().map(|(column, category)| {
        let codes: Vec<i32> = table
            .codes
            .iter()
            .skip(column)
            .step_by(table.categories.len())
            .copied()
            .collect();
        describe(
            &category.name,
            ColumnType::Category,
            &Array::Code(codes),
            category.values.len(),
        )
    });
    let folder = if path.join("data").is_dir() {
        path.join("data")
    } else {
        path.to_owned()
    };
    let files = recipe.files(&folder)?;
    Ok(Inspection {
        schema_version: 1,
        kind: "joined tables",
        format: recipe.name.clone(),
        files: files.iter().map(|path| file_info(path, None)).collect(),
        rows: table.rows as u64,
        columns: features.chain(categories).collect(),
        bad_rows: table.skipped.count,
        bad_examples: table.skipped.examples.clone(),
        split: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        memory_bytes: table.size_bytes() as u64,
        image_shape: None,
        classes: Vec::new(),
    })
}

fn inspect_images(path: &Path, limit: Option<usize>) -> Result<Inspection> {
    let options = ImageOptions {
        limit,
        ..ImageOptions::default()
    };
    let list = list_images(path, &options)?;
    // A missing file or a broken header is found now, not at the tenth epoch.
    for file in &list.files {
        let bytes = std::fs::read(file).map_err(|error| DataError::reading(file, error))?;
        ImageDecoder::size(&bytes, file)?;
    }
    let split = split_rows(list.files.len(), None, &SplitRule::default())?;
    let (classes, columns) = describe_targets(&list.targets);
    Ok(Inspection {
        schema_version: 1,
        kind: "images",
        format: "PNG, JPEG".into(),
        files: list.files.iter().map(|path| file_info(path, None)).collect(),
        rows: list.files.len() as u64,
        columns,
        bad_rows: 0,
        bad_examples: Vec::new(),
        split: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        memory_bytes: (list.shape.size_bytes() * list.files.len()) as u64,
        image_shape: Some([list.shape.height, list.shape.width, list.shape.channels]),
        classes,
    })
}

/// Pictures of each class, or the columns of targets.
fn describe_targets(targets: &ImageTargets) -> (Vec<(String, u64)>, Vec<ColumnInfo>) {
    let classes = match targets {
        ImageTargets::Class { classes, names } => names
            .iter()
            .enumerate()
            .map(|(index, name)| {
                (
                    name.clone(),
                    classes.iter().filter(|class| **class == index as i32).count() as u64,
                )
            })
            .collect(),
        ImageTargets::Real { .. } => Vec::new(),
    };
    let columns = match targets {
        ImageTargets::Class { .. } => Vec::new(),
        ImageTargets::Real { values, names } => names
            .iter()
            .enumerate()
            .map(|(column, name)| {
                let values: Vec<f32> = values.iter().skip(column).step_by(names.len()).copied().collect();
                describe(name, ColumnType::Real, &Array::Real(values), 0)
            })
            .collect(),
    };
    (classes, columns)
}
