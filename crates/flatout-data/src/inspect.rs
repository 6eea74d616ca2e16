//! What the engine sees at a path: files, schema, rows, missing values, splits, memory. For people and for programs.

mod tables;

use crate::formats::image::ImageDecoder;
use crate::formats::npy::NpyFile;
use crate::load::images::{ImageOptions, holds_pictures, list_images};
use crate::load::join::JoinRecipe;
use crate::split::{SplitRule, Splits, split_rows};
use crate::table::{Array, BadRow, ColumnType};
use crate::table_source::TableSource;
use crate::{DataError, ImageTargets, Policies, Result, parallel};
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
    /// Rows that cannot be read; they are an error, or left out with `skip`.
    pub bad_rows: u64,
    /// What becomes of them: `error` or `skip`.
    pub bad_rows_policy: &'static str,
    /// Rows with missing values in columns whose policy is to drop them.
    pub rows_to_drop: u64,
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
    /// What becomes of missing values; a category's are a value of their own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_policy: Option<&'static str>,
    /// Different values of a category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
}

/// Looks at a path and reads it once, as the policies say but without stopping: what would be an error is counted.
pub fn inspect(path: &Path, limit: Option<usize>, policies: &Policies) -> Result<Inspection> {
    if let Some(recipe) = JoinRecipe::find(path)? {
        return tables::joined(path, &recipe, limit, policies);
    }
    // A folder of pictures with a table of labels is one of pictures; other folders may have a table of that name, too.
    if path.is_dir() && path.join("labels.csv").is_file() && holds_pictures(path) {
        return inspect_images(path, limit);
    }
    if let Some(array) = picture_array(path)? {
        return inspect_picture_array(path, array);
    }
    match TableSource::open_as(path, limit, None, policies.encoding) {
        Ok(source) => tables::table(&source, policies),
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
        bad_rows_policy: "error",
        bad_examples: Vec::new(),
        rows_to_drop: 0,
        split: sizes(&split),
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

fn inspect_images(path: &Path, limit: Option<usize>) -> Result<Inspection> {
    let options = ImageOptions {
        limit,
        ..ImageOptions::default()
    };
    let list = list_images(path, &options)?;
    // A file that is missing or damaged is found now, as training would.
    let threads = parallel::threads(None);
    let ranges = parallel::ranges(list.files.len(), threads * 8);
    parallel::for_each(ranges.len(), threads, |index| {
        let (mut decoder, mut pixels) = (ImageDecoder::default(), vec![0; list.shape.size_bytes()]);
        for file in &list.files[ranges[index].clone()] {
            let bytes = std::fs::read(file).map_err(|error| DataError::reading(file, error))?;
            decoder.decode(&bytes, list.shape, file, &mut pixels)?;
        }
        Ok::<_, DataError>(())
    })?;
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
        bad_rows_policy: "error",
        bad_examples: Vec::new(),
        rows_to_drop: 0,
        split: sizes(&split),
        memory_bytes: (list.shape.size_bytes() * list.files.len()) as u64,
        image_shape: Some([list.shape.height, list.shape.width, list.shape.channels]),
        classes,
    })
}

fn sizes(split: &Splits) -> [u64; 3] {
    [&split.train, &split.validation, &split.test].map(|part| part.len() as u64)
}

/// Pictures of each class, or the columns of targets.
fn describe_targets(targets: &ImageTargets) -> (Vec<(String, u64)>, Vec<ColumnInfo>) {
    let classes = targets.counts(None);
    let columns = match targets {
        ImageTargets::Class { .. } => Vec::new(),
        ImageTargets::Real { values, names } => names
            .iter()
            .enumerate()
            .map(|(column, name)| {
                let values: Vec<f32> = values.iter().skip(column).step_by(names.len()).copied().collect();
                tables::describe(name, ColumnType::Real, &Array::Real(values), 0)
            })
            .collect(),
    };
    (classes, columns)
}
