//! Pictures as one block of bytes: decoded once, a quarter of the size of floats, normalised where they are used.

use super::{Preparation, Shape, TrainingData, cached, label_of, label_table, split_rule};
use crate::target::{RealLabels, Task, decide_classes};
use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::dataset::images::{never_learnt, single_pictures};
use flatout_data::table::BadRows;
use flatout_data::{ImageOptions, ImageTargets, Images, load_images};
use flatout_engine::Table;
use std::path::Path;
use std::sync::Arc;

/// Pixels of pictures that stay where they are.
struct Pixels(Images);

impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        &self.0.pixels
    }
}

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    // The label of a folder of classes is the folder; columns are named only where there is a table of them.
    let columns = match path.join("labels.csv").is_file() {
        true => label_of(path, settings)?,
        false => None,
    };
    let options = ImageOptions {
        width: settings.input_size.map(|(width, _)| width),
        height: settings.input_size.map(|(_, height)| height),
        channels: Some(settings.channels),
        targets: columns.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()),
        limit: settings.limit,
        skip_bad: settings.policies.bad_rows == BadRows::Skip,
        ..ImageOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_images(path, &options);
    let images: Images = cached(settings, &mut notes, load, |cache| cache.images(path, &options))?;
    notes.extend(said(&images));
    let splits = images.split(&split_rule(settings))?;
    let (scale, shift) = normalisation(&images, &splits.train);
    let targets = &images.targets;
    notes.extend(single_pictures(&targets.counts(None)));
    notes.extend(never_learnt(&targets.counts(Some(&splits.train))));
    let bytes = images.size_bytes();
    let mut images = images;
    let (target, labels) = match std::mem::take(&mut images.targets) {
        ImageTargets::Class { classes, names } => decide_classes(classes.into_vec(), names, &settings.task),
        ImageTargets::Real { values, names } => RealLabels {
            values: values.into_vec(),
            names,
            training: &mut splits.train.iter().copied(),
        }
        .decide(&settings.task),
    }?;
    let preparation = Preparation {
        shape: Shape::Pictures {
            height: images.height,
            width: images.width,
            channels: images.channels,
            scale,
            shift,
        },
        label: settings.label.clone().unwrap_or_else(|| target.names.join(",")),
        features: Vec::new(),
        mean: Vec::new(),
        std: Vec::new(),
        categories: Vec::new(),
        entities: Vec::new(),
        target,
    };
    if (settings.flip || settings.crop_padding > 0) && preparation.target.task == Task::Regression {
        return Err(TrainError::Value {
            setting: if settings.flip { "flip" } else { "crop_padding" }.to_owned(),
            value: if settings.flip {
                "true".to_owned()
            } else {
                settings.crop_padding.to_string()
            },
            expected: message!(en: "nothing for these pictures: positions do not move along with them", zh: "不用于这些图像：位置标签不会随图像变换"),
        });
    }
    let pixels = Table::U8(Arc::new(Pixels(images)));
    Ok(TrainingData {
        tables: vec![
            ("features".to_owned(), pixels),
            ("labels".to_owned(), label_table(&preparation.target, &labels)),
        ],
        preparation,
        train: splits.train,
        validation: splits.validation,
        labels,
        entity_of_row: Arc::default(),
        trained: Arc::default(),
        label_offset: 0,
        last_offset: 0,
        bytes,
        notes,
        panel: None,
    })
}

/// What was done to images that are not all alike.
fn said(images: &Images) -> Vec<Message> {
    let mut notes = Vec::new();
    let (width, height, skipped) = (images.width, images.height, images.skipped);
    if let Some([narrow, low, wide, high]) = images.sizes {
        notes.push(message!(
            en: "the images are of several sizes, from {narrow}×{low} to {wide}×{high}; all are resized to {width}×{height}, the median (--input-size W,H takes another size)",
            zh: "图像大小不一（{narrow}×{low} 到 {wide}×{high}）；全部缩放到中位数 {width}×{height}（可用 --input-size 宽,高 指定）"
        ));
    }
    if skipped > 0 {
        notes.push(message!(en: "{skipped} images cannot be read and are left out", zh: "{skipped} 张图像无法读取，已跳过"));
    }
    notes
}

/// Mean 0 and deviation 1 over all channels together, on the training pictures: `byte · scale + shift`.
fn normalisation(images: &Images, training: &[u32]) -> (f64, f64) {
    let statistics = images.statistics(training);
    let channels = statistics.mean.len().max(1) as f64;
    let mean = statistics.mean.iter().map(|&mean| f64::from(mean)).sum::<f64>() / channels;
    let squares = statistics.mean.iter().zip(&statistics.std);
    let squares = squares.map(|(&mean, &std)| f64::from(mean).powi(2) + f64::from(std).powi(2));
    let std = (squares.sum::<f64>() / channels - mean * mean).max(1e-12).sqrt();
    (1.0 / (255.0 * std), -mean / std)
}
