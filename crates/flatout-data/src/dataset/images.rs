//! Decoded pictures of one size in one block of bytes, with a class or with regression targets (key points).

use crate::Result;
use crate::block::Block;
use crate::split::{SplitRule, Splits, split_rows};

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

    pub fn split(&self, rule: &SplitRule) -> Result<Splits> {
        split_rows(self.count, None, rule)
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
