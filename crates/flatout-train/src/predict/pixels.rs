//! Pictures for a prediction: files that are decoded to the model's size, or the pixels of an `.npy`, which must have it.

use super::{Column, samples::Samples};
use crate::{Settings, TrainError};
use flatout_core::error::FileError;
use flatout_core::message;
use flatout_data::formats::image::{IMAGE_ENDINGS, ImageDecoder, ImageShape};
use flatout_data::formats::npy::{NpyArray, NpyValues};
use flatout_data::{parallel, paths};
use flatout_engine::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn load(path: &Path, shape: ImageShape, settings: &Settings) -> Result<Samples, TrainError> {
    if path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
    {
        return from_array(path, shape, settings);
    }
    let mut files = files(path)?;
    files.truncate(settings.limit.unwrap_or(usize::MAX));
    let decoded = parallel::map(files.len(), parallel::threads(None), |index| {
        let file = &files[index];
        let bytes =
            std::fs::read(file).map_err(|source| TrainError::from(FileError::reading(file, source)))?;
        let mut pixels = vec![0u8; shape.size_bytes()];
        ImageDecoder::default().decode(&bytes, shape, file, &mut pixels)?;
        Ok::<_, TrainError>(pixels)
    })?;
    let names = files.iter().map(|file| {
        let short = file.strip_prefix(path).unwrap_or(file);
        short.display().to_string()
    });
    let names = Column::Text(names.collect());
    Ok(samples(decoded.concat(), files.len(), ("file", names)))
}

/// `u8 [count, height, width]` or `[count, height, width, channels]`.
fn from_array(path: &Path, shape: ImageShape, settings: &Settings) -> Result<Samples, TrainError> {
    let ImageShape {
        height,
        width,
        channels,
    } = shape;
    let array = NpyArray::read(path)?;
    let count = match array.shape[..] {
        [count, h, w] if (h, w, 1) == (height, width, channels) => Some(count),
        [count, h, w, c] if (h, w, c) == (height, width, channels) => Some(count),
        _ => None,
    };
    let (Some(count), NpyValues::Byte(mut pixels)) = (count, array.values) else {
        let found = array.shape.iter().map(ToString::to_string).collect::<Vec<_>>();
        let found = found.join(", ");
        return Err(TrainError::OtherData {
            path: path.to_owned(),
            reason: message!(en: "the model takes u8 [count, {height}, {width}, {channels}], and this is an array of [{found}]", zh: "模型需要 u8 [数量, {height}, {width}, {channels}]，而这个数组是 [{found}]"),
        });
    };
    let count = count.min(settings.limit.unwrap_or(count));
    pixels.truncate(count * shape.size_bytes());
    let numbers = (0..count).map(|number| i32::try_from(number).unwrap_or(i32::MAX));
    let numbers = Column::Whole(numbers.collect());
    Ok(samples(pixels, count, ("picture", numbers)))
}

fn samples(pixels: Vec<u8>, count: usize, (name, column): (&str, Column)) -> Samples {
    Samples {
        starts: (0..count as u32).collect(),
        columns: vec![(name.to_owned(), column)],
        tables: vec![("features".to_owned(), Table::U8(Arc::new(pixels)))],
        entities: Vec::new(),
        last_offset: 0,
        labels: None,
        times_us: Vec::new(),
        notes: Vec::new(),
    }
}

/// One picture, those of a folder, or those of its sub-folders.
fn files(path: &Path) -> Result<Vec<PathBuf>, TrainError> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let picture = |name: &str| {
        let name = name.to_ascii_lowercase();
        IMAGE_ENDINGS
            .iter()
            .any(|ending| name.ends_with(&format!(".{ending}")))
    };
    let mut files = paths::list_folder(path, picture)?;
    let entries = std::fs::read_dir(path).map_err(|source| FileError::reading(path, source))?;
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        files.extend(paths::list_folder(&folder, picture)?);
    }
    Ok(files)
}
