//! Pictures as one block of bytes: decoded once, a quarter of the size of floats, normalised where they are used.

use super::{Preparation, Shape, TrainingData, cached, label_of, label_table, split_rule, weights};
use crate::augment::{Augmenter, Changes, Points};
use crate::target::{RealLabels, Target, of_classes};
use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::dataset::images::{never_learnt, single_pictures};
use flatout_data::load::images::list_images;
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
        channels: settings.channels,
        targets: columns.map(|names| {
            let names = names.split(',').map(|name| name.trim().to_owned());
            names.chain(settings.sample_weight.clone()).collect()
        }),
        limit: settings.limit,
        validation: settings.validation_data.clone(),
        test: settings.test_data.clone(),
        encoding: settings.policies.encoding,
        skip_bad: settings.policies.bad_rows == BadRows::Skip,
        ..ImageOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_images(path, &options);
    let elsewhere = settings.validation_data.is_some() || settings.test_data.is_some();
    // What is kept is told apart by the files in one folder.
    let images: Images = match elsewhere {
        true => load()?,
        false => cached(settings, &mut notes, load, |cache| cache.images(path, &options))?,
    };
    notes.extend(said(&images, settings));
    let splits = images.split(&split_rule(settings))?;
    let (scale, shift) = normalisation(&images, &splits.train);
    let targets = &images.targets;
    notes.extend(single_pictures(&targets.counts(None)));
    notes.extend(never_learnt(&targets.counts(Some(&splits.train))));
    let bytes = images.size_bytes();
    let mut images = images;
    let mut sample_weights = None;
    let mut label = settings.label.clone();
    let (mut target, labels) = match std::mem::take(&mut images.targets) {
        ImageTargets::Class { classes, names } => of_classes(
            classes.into_vec(),
            names,
            label.as_deref().unwrap_or_default(),
            settings,
        ),
        ImageTargets::Real { values, mut names } => {
            let (mut values, mut classes) = (values.into_vec(), std::mem::take(&mut images.label_classes));
            if settings.sample_weight.is_some() {
                sample_weights = weights::split_off(&mut values, &mut names);
                classes.truncate(names.len());
            }
            label.get_or_insert_with(|| names.join(","));
            let labels = RealLabels {
                values,
                names,
                classes,
                training: &splits.train,
            };
            labels.decide(settings)
        }
    }?;
    let weights = weights::of(&mut target, &labels, sample_weights, &splits.train, settings)?;
    let preparation = Preparation {
        shape: Shape::Pictures {
            height: images.height,
            width: images.width,
            channels: images.channels,
            scale,
            shift,
        },
        label: label.unwrap_or_else(|| target.names.join(",")),
        features: Vec::new(),
        mean: Vec::new(),
        std: Vec::new(),
        categories: Vec::new(),
        entities: Vec::new(),
        target,
    };
    let changes = Changes::of(settings);
    let points = match changes.moves() && preparation.target.has_numbers() {
        true => points(path, &options, &images, &preparation.target, &changes)?,
        false => Points::default(),
    };
    let (height, width, channels) = (images.height, images.width, images.channels);
    let pixels = Table::U8(Arc::new(Pixels(images)));
    let augmenter = changes.on_host(&preparation.target).then(|| Augmenter {
        changes,
        seed: settings.seed,
        pixels: pixels.clone(),
        height,
        width,
        channels,
        blank: (-shift / scale).round().clamp(0.0, 255.0) as u8,
        train: splits.train.clone(),
        target: preparation.target.clone(),
        labels: labels.clone(),
        weights: weights.clone(),
        points,
    });
    Ok(TrainingData {
        tables: vec![
            ("features".to_owned(), pixels),
            (
                "labels".to_owned(),
                label_table(&preparation.target, &labels, weights.as_deref()),
            ),
        ],
        preparation,
        train: splits.train,
        validation: splits.validation,
        test: splits.test,
        labels,
        entity_of_row: Arc::default(),
        trained: Arc::default(),
        label_offset: 0,
        last_offset: 0,
        bytes,
        notes,
        panel: None,
        augmenter: augmenter.map(Arc::new),
    })
}

/// The positions among the labels, for images that move.
fn points(
    path: &Path,
    options: &ImageOptions,
    images: &Images,
    target: &Target,
    changes: &Changes,
) -> Result<Points, TrainError> {
    let of_files = ImageOptions {
        width: None,
        height: None,
        ..options.clone()
    };
    let (mut width, mut height) = (images.width, images.height);
    if path.extension().is_none_or(|ending| ending != "npy") {
        let list = list_images(path, &of_files)?;
        if let Some([narrow, low, wide, high]) = list.sizes {
            return Err(refuse(
                changes,
                message!(
                    en: "the labels are positions in pixels, and the images have several sizes ({narrow}×{low} to {wide}×{high}); resize the files first",
                    zh: "标签是以像素为单位的位置，而图像大小不一（{narrow}×{low} 到 {wide}×{high}）；请先统一文件尺寸"
                ),
            ));
        }
        (width, height) = (list.shape.width, list.shape.height);
    }
    let unit = (
        images.width as f32 / width.max(1) as f32,
        images.height as f32 / height.max(1) as f32,
    );
    let points = Points::of(target, unit, (images.width, images.height)).map_err(|column| {
        refuse(
            changes,
            message!(
                en: "`{column}` is a number that would no longer match the transformed image; only positions in pixels (columns named like x, y, gap_x, gap_y) are transformed with it",
                zh: "`{column}` 是数值，与变换后的图像不再对应；只有以像素为单位的位置（列名如 x、y、gap_x、gap_y）会随图像变换"
            ),
        )
    })?;
    match points.half(target).filter(|_| changes.rotate > 0.0) {
        Some(column) => Err(TrainError::Value {
            setting: "rotate".to_owned(),
            value: changes.rotate.to_string(),
            expected: message!(en: "0, since `{column}` is only one of two coordinates", zh: "0，因为 `{column}` 只是两个坐标之一"),
        }),
        None => Ok(points),
    }
}

/// Names the first change that moves images.
fn refuse(changes: &Changes, reason: Message) -> TrainError {
    let setting = match changes {
        Changes { flip: true, .. } => "flip",
        Changes { shift: 1.., .. } => "crop_padding",
        Changes { rotate, .. } if *rotate > 0.0 => "rotate",
        _ => "zoom",
    };
    TrainError::DoesNotApply {
        setting: setting.to_owned(),
        reason,
    }
}

/// What was done to images that are not all alike.
fn said(images: &Images, settings: &Settings) -> Vec<Message> {
    let mut notes = Vec::new();
    let (width, height, skipped) = (images.width, images.height, images.skipped);
    if let Some([narrow, low, wide, high]) = images.sizes {
        notes.push(message!(
            en: "the images vary in size, from {narrow}×{low} to {wide}×{high}; all are resized to \
            {width}×{height}, the median (set another size with --input-size W,H)",
            zh: "图像大小不一（{narrow}×{low} 到 {wide}×{high}）；全部缩放到中位数 {width}×{height}（可用 --input-size 宽,高 指定）"
        ));
    }
    if images.mixed_colors {
        notes.push(message!(
            en: "some images are in color, others grayscale; all are read in color (--channels 1 reads them \
            as grayscale)",
            zh: "部分图像为彩色，部分为灰度；全部按彩色读取（--channels 1 可按灰度读取）"
        ));
    } else if images.channels == 3 && settings.channels.is_none() {
        notes.push(message!(
            en: "the images are in color: 3 channels (--channels 1 reads them as grayscale)",
            zh: "图像为彩色：3 通道（--channels 1 可按灰度读取）"
        ));
    }
    if let (Some([train, validation, test]), None, None) =
        (images.parts, &settings.validation_data, &settings.test_data)
    {
        notes.push(message!(
            en: "folders of their own: {train} images to train on, {validation} to validate on, {test} to test on",
            zh: "数据自带划分：{train} 张用于训练，{validation} 张用于验证，{test} 张用于测试"
        ));
    }
    if skipped > 0 {
        notes.push(message!(en: "skipped {skipped} images that cannot be read", zh: "{skipped} 张图像无法读取，已跳过"));
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
