//! Decoded pictures of one size in one block of bytes, with a class or with regression targets (key points).

use crate::Result;
use crate::block::Block;
use crate::split::{SplitRule, Splits, split_rows};
use flatout_core::{Message, message};

#[derive(Debug, Default)]
pub struct Images {
    /// `[count, height, width, channels]`
    pub pixels: Block<u8>,
    pub count: usize,
    pub height: usize,
    pub width: usize,
    /// 1 (grey) or 3 (RGB).
    pub channels: usize,
    pub targets: ImageTargets,
    /// Where several labels are read: the classes of each, none for numbers. Their values are class numbers.
    pub label_classes: Vec<Vec<String>>,
    /// Where validation or test pictures are in folders of their own: how many there are to train, validate and test on, one behind the other.
    pub parts: Option<[usize; 3]>,
    /// Where the files are of several sizes: their widths and heights, smallest and largest.
    pub sizes: Option<[usize; 4]>,
    /// Some of the files are in color, others grey.
    pub mixed_colors: bool,
    /// Files that could not be read and were left out.
    pub skipped: usize,
}

#[derive(Debug)]
pub enum ImageTargets {
    /// `[count]`, each below `names.len()`.
    Class { classes: Block<i32>, names: Vec<String> },
    /// `[count, names.len()]`
    Real { values: Block<f32>, names: Vec<String> },
}

impl Default for ImageTargets {
    fn default() -> Self {
        Self::Class {
            classes: Block::default(),
            names: Vec::new(),
        }
    }
}

impl ImageTargets {
    /// Keeps the targets of these images, ascending.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        match self {
            Self::Class { classes, .. } => {
                let left: Vec<i32> = kept.iter().map(|&index| classes[index]).collect();
                *classes = left.into();
            }
            Self::Real { values, names } => {
                let width = names.len();
                let rows = kept
                    .iter()
                    .map(|&index| &values[index * width..(index + 1) * width]);
                let left: Vec<f32> = rows.flatten().copied().collect();
                *values = left.into();
            }
        }
    }

    /// Pictures of each class, of all of them or of those that `samples` names; nothing where there are no classes.
    pub fn counts(&self, samples: Option<&[u32]>) -> Vec<(String, u64)> {
        let Self::Class { classes, names } = self else {
            return Vec::new();
        };
        let mut counts = vec![0u64; names.len()];
        let mut count = |class: Option<&i32>| {
            let slot = class.and_then(|&class| counts.get_mut(usize::try_from(class).ok()?));
            slot.into_iter().for_each(|count| *count += 1);
        };
        match samples {
            None => classes.iter().for_each(|class| count(Some(class))),
            Some(samples) => samples
                .iter()
                .for_each(|&sample| count(classes.get(sample as usize))),
        }
        names.iter().cloned().zip(counts).collect()
    }
}

/// What a person should know of classes with a single picture.
pub fn single_pictures(counts: &[(String, u64)]) -> Option<Message> {
    let list = listed(counts, 1)?;
    Some(message!(
        en: "only one image in: {list}; it cannot be used for both training and validation",
        zh: "以下类别只有一张图像：{list}；它无法既用于训练又用于验证"
    ))
}

/// What a person should know of classes that the training part has no picture of.
pub fn never_learnt(training: &[(String, u64)]) -> Option<Message> {
    let list = listed(training, 0)?;
    Some(message!(
        en: "classes without an image in the training split, which the model cannot learn: {list}",
        zh: "训练部分中没有以下类别的图像，因此不会被学到：{list}"
    ))
}

/// The classes with so many pictures, the first ones by name.
fn listed(counts: &[(String, u64)], wanted: u64) -> Option<String> {
    const SHOWN: usize = 5;
    let found: Vec<&str> = counts
        .iter()
        .filter(|(_, count)| *count == wanted)
        .map(|(name, _)| name.as_str())
        .collect();
    let more = found.len().saturating_sub(SHOWN);
    let list = found[..found.len() - more].join(", ");
    match (found.len(), more) {
        (0, _) => None,
        (_, 0) => Some(list),
        (_, more) => Some(format!("{list} (+{more})")),
    }
}

/// Mean and standard deviation of the pixels of each channel, on the scale 0…1.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelStatistics {
    pub mean: Vec<f32>,
    pub std: Vec<f32>,
}

impl Images {
    pub fn pixels_per_image(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Parts of their own stay parts; what they leave open is drawn from the pictures to train on.
    pub fn split(&self, rule: &SplitRule) -> Result<Splits> {
        let Some([train, validation, test]) = self.parts else {
            return split_rows(self.count, None, rule);
        };
        let rule = match *rule {
            SplitRule::Ratio {
                validation: share,
                train: trained,
                shuffle_seed,
            } => {
                let tested = (1.0 - trained - share).max(0.0);
                let share = if validation > 0 { 0.0 } else { share };
                let tested = if test > 0 { 0.0 } else { tested };
                SplitRule::Ratio {
                    train: 1.0 - share - tested,
                    validation: share,
                    shuffle_seed,
                }
            }
            SplitRule::Time { .. } => rule.clone(),
        };
        let range = |start: usize, count: usize| (count > 0).then_some(start as u32..(start + count) as u32);
        let own = split_rows(train, None, &rule)?;
        Ok(own.with(range(train, validation), range(train + validation, test)))
    }

    /// Computed from the training pictures only.
    pub fn statistics(&self, training: &[u32]) -> PixelStatistics {
        let size = self.pixels_per_image();
        let mut sums = vec![(0u64, 0u64); self.channels];
        for &sample in training {
            let image = &self.pixels[sample as usize * size..][..size];
            for pixel in image.chunks_exact(self.channels.max(1)) {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    sum.0 += u64::from(value);
                    sum.1 += u64::from(value) * u64::from(value);
                }
            }
        }
        let count = (training.len() * self.height * self.width).max(1) as f64;
        let moments = |&(sum, squares): &(u64, u64)| {
            let mean = sum as f64 / count;
            let variance = (squares as f64 / count - mean * mean).max(0.0);
            let std = variance.sqrt() / 255.0;
            ((mean / 255.0) as f32, if std > 1e-6 { std as f32 } else { 1.0 })
        };
        let (mean, std) = sums.iter().map(moments).unzip();
        PixelStatistics { mean, std }
    }

    pub fn size_bytes(&self) -> usize {
        let targets = match &self.targets {
            ImageTargets::Class { classes, .. } => classes.size_bytes(),
            ImageTargets::Real { values, .. } => values.size_bytes(),
        };
        self.pixels.size_bytes() + targets
    }
}
