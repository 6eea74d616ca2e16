//! Pictures for a prediction: files that are decoded to the model's size, or the pixels of an `.npy`, which must have it.

use super::{Column, samples::Samples};
use crate::data::Preparation;
use crate::target::{Labels, Target, Task};
use crate::{Settings, TrainError};
use flatout_core::error::FileError;
use flatout_core::{Explain, message};
use flatout_data::formats::image::{IMAGE_ENDINGS, ImageDecoder, ImageShape};
use flatout_data::formats::npy::{NpyArray, NpyValues};
use flatout_data::load::images::list_images;
use flatout_data::{DataError, ImageOptions, ImageTargets, parallel, paths};
use flatout_engine::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn load(
    path: &Path,
    shape: ImageShape,
    preparation: &Preparation,
    settings: &Settings,
) -> Result<Samples, TrainError> {
    if path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
    {
        return from_array(path, shape, settings);
    }
    let mut files = files(path)?;
    files.truncate(settings.limit.unwrap_or(usize::MAX));
    // Labels are taken along where they are.
    let (labels, no_labels) = match labeled(path, shape, preparation) {
        Ok(Some((listed, labels))) if listed.len() == files.len() => {
            files = listed;
            (Some(labels), None)
        }
        Ok(_) => (None, None),
        Err(error) => (None, Some(error.message())),
    };
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
        let whole = short.as_os_str().is_empty();
        let short = if whole {
            file.file_name().map(Path::new)
        } else {
            Some(short)
        };
        short.unwrap_or(file).display().to_string()
    });
    let names = Column::Text(names.collect());
    Ok(Samples {
        labels,
        no_labels,
        ..samples(decoded.concat(), files.len(), ("file", names))
    })
}

/// The files of a folder with their labels, as the training saw them: by the folders of classes, or by a `labels.csv`.
fn labeled(
    path: &Path,
    shape: ImageShape,
    preparation: &Preparation,
) -> Result<Option<(Vec<PathBuf>, Labels)>, DataError> {
    let target = &preparation.target;
    let table = path.join("labels.csv").is_file();
    let options = ImageOptions {
        width: Some(shape.width),
        height: Some(shape.height),
        channels: Some(shape.channels),
        targets: table.then(|| {
            preparation
                .label
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect()
        }),
        ..ImageOptions::default()
    };
    let list = list_images(path, &options)?;
    let place = |head: &Target, name: &String| head.names.iter().position(|known| known == name);
    let labels = match list.targets {
        ImageTargets::Class { classes, names } => {
            let known: Vec<Option<usize>> = names.iter().map(|name| place(target, name)).collect();
            let each = classes
                .iter()
                .map(|&class| known.get(class as usize).copied().flatten());
            match target.task {
                Task::Classes => {
                    let classes = each.map(|class| class.map_or(-1, |class| class as i32));
                    Labels::Class(Arc::new(classes.collect()))
                }
                Task::Binary => {
                    let values = each.map(|class| class.map_or(f32::NAN, |class| class as f32));
                    Labels::Real {
                        values: Arc::new(values.collect()),
                        columns: 1,
                    }
                }
                _ => return Ok(None),
            }
        }
        ImageTargets::Real { values, .. } if target.task == Task::Classes => {
            Labels::Class(Arc::new(values.iter().map(|value| *value as i32).collect()))
        }
        ImageTargets::Real { values, names } => {
            let columns = target.columns();
            if names.len() != columns {
                return Ok(None);
            }
            let mut values = values.to_vec();
            for (column, texts) in list
                .label_classes
                .iter()
                .enumerate()
                .filter(|(_, texts)| !texts.is_empty())
            {
                let Some(head) = target.heads.get(column) else {
                    return Ok(None);
                };
                let known: Vec<Option<usize>> = texts.iter().map(|name| place(head, name)).collect();
                for value in values.iter_mut().skip(column).step_by(columns) {
                    let class = known.get(*value as usize).copied().flatten();
                    *value = class.map_or(f32::NAN, |class| class as f32);
                }
            }
            Labels::Real {
                values: Arc::new(values),
                columns,
            }
        }
    };
    Ok(Some((list.files, labels)))
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
            reason: message!(en: "the model expects u8 [count, {height}, {width}, {channels}], but this \
            array is [{found}]", zh: "模型需要 u8 [数量, {height}, {width}, {channels}]，而这个数组是 [{found}]"),
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
        no_labels: None,
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
