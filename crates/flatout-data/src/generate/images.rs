//! Grey pictures of 128×128 in eight classes of shapes, at random places, sizes and brightness, with noise; one PNG each in the
//! folder of its class.
//!
//! A share of the pictures lies in the folder of another class, drawn at random: no model can know them, so the best accuracy is the
//! share of pictures whose folder is the shape's own.

use super::score::{Accuracy, BestScore};
use super::{Generated, Recipe};
use crate::formats::image::{ImageShape, write_png};
use crate::random::Stream;
use crate::split::{SplitRule, split_rows};
use crate::{DataError, Result, parallel};
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const SIDE: usize = 128;
pub const CLASSES: [&str; 8] = [
    "disc", "ring", "square", "frame", "cross", "bars", "columns", "checks",
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageClasses {
    pub images: usize,
    pub seed: u64,
    /// Share of the pictures that lie in a random folder.
    pub wrong_label_share: f64,
}

impl Default for ImageClasses {
    fn default() -> Self {
        Self {
            images: 2000,
            seed: 0,
            wrong_label_share: 0.05,
        }
    }
}

impl ImageClasses {
    /// Whether there is anything to make of it.
    pub(super) fn check(&self) -> Result<()> {
        if self.images < CLASSES.len() || !(0.0..=1.0).contains(&self.wrong_label_share) {
            return Err(DataError::Setting(message!(
                en: "needs at least 8 images and a share of wrong labels between 0 and 1",
                zh: "至少需要 8 张图像，错误标签比例须在 0 到 1 之间"
            )));
        }
        Ok(())
    }

    pub(super) fn generate(&self, folder: &Path, threads: usize) -> Result<Generated> {
        for class in CLASSES {
            let path = folder.join(class);
            std::fs::create_dir_all(&path).map_err(|source| DataError::writing(&path, source))?;
        }
        let drawn = parallel::map(self.images, threads, |index| {
            let mut stream = Stream::new(self.seed, &[21, index as u64]);
            let shape_class = index % CLASSES.len();
            let wrong = stream.uniform() < self.wrong_label_share;
            let folder_class = if wrong {
                stream.below(CLASSES.len() as u64) as usize
            } else {
                shape_class
            };
            let pixels = draw(shape_class, &mut stream);
            let shape = ImageShape {
                height: SIDE,
                width: SIDE,
                channels: 1,
            };
            write_png(
                &folder.join(CLASSES[folder_class]).join(format!("{index:06}.png")),
                &pixels,
                shape,
            )?;
            Ok::<_, DataError>((folder_class, shape_class))
        })?;
        let best = score(&drawn)?;
        let recipe = Recipe::Images(self.clone());
        Ok(Generated::new(
            recipe,
            self.images,
            self.images as u64,
            "class",
            best,
        ))
    }
}

/// In the order in which the folders are read, so that the default split validates on the same pictures.
fn score(drawn: &[(usize, usize)]) -> Result<BestScore> {
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    let mut folders: Vec<usize> = (0..CLASSES.len()).collect();
    folders.sort_by(|&left, &right| crate::paths::natural_order(CLASSES[left], CLASSES[right]));
    let place = |class: usize| folders.iter().position(|&folder| folder == class);
    order.sort_by_key(|&index| (place(drawn[index].0), index));
    let accuracy = |samples: &[u32]| Accuracy {
        accuracy: samples
            .iter()
            .filter(|&&sample| {
                let (folder, shape) = drawn[order[sample as usize]];
                folder == shape
            })
            .count() as f64
            / samples.len().max(1) as f64,
        samples: samples.len() as u64,
    };
    let split = split_rows(drawn.len(), None, &SplitRule::default())?;
    let all: Vec<u32> = (0..drawn.len() as u32).collect();
    Ok(BestScore::Classes {
        all: accuracy(&all),
        validation: accuracy(&split.validation),
    })
}

fn draw(class: usize, stream: &mut Stream) -> Vec<u8> {
    let radius = 22 + stream.below(22) as i64;
    let free = SIDE as i64 - 2 * radius - 8;
    let centre_x = radius + 4 + stream.below(free as u64) as i64;
    let centre_y = radius + 4 + stream.below(free as u64) as i64;
    let dark = 30 + stream.below(60) as i64;
    let bright = dark + 60 + stream.below(80) as i64;
    let period = 6 + stream.below(6) as i64;
    let mut pixels = Vec::with_capacity(SIDE * SIDE);
    for y in 0..SIDE as i64 {
        for x in 0..SIDE as i64 {
            let (dx, dy) = (x - centre_x, y - centre_y);
            let level = if inside(class, dx, dy, radius, period) {
                bright
            } else {
                dark
            };
            let noise = stream.below(41) as i64 - 20;
            pixels.push((level + noise).clamp(0, 255) as u8);
        }
    }
    pixels
}

fn inside(class: usize, dx: i64, dy: i64, radius: i64, period: i64) -> bool {
    let (square, distance) = (dx.abs().max(dy.abs()) <= radius, dx * dx + dy * dy);
    let thick = radius / 3;
    match class {
        0 => distance <= radius * radius,
        1 => distance <= radius * radius && distance >= (radius - thick) * (radius - thick),
        2 => square,
        3 => square && dx.abs().max(dy.abs()) >= radius - thick,
        4 => square && dx.abs().min(dy.abs()) <= thick / 2,
        5 => square && dy.rem_euclid(period) < period / 2,
        6 => square && dx.rem_euclid(period) < period / 2,
        _ => square && (dx.div_euclid(period) + dy.div_euclid(period)).rem_euclid(2) == 0,
    }
}
