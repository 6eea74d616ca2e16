//! Pictures of a block in memory: bytes as they are, or normalised floats, with random flips and crops that depend on
//! (seed, epoch, sample) alone.

use crate::Result;
use crate::batch::{BatchSlices, Draw, FillTime, SampleShape, SampleSource};
use crate::dataset::images::PixelStatistics;
use crate::dataset::{ImageTargets, Images};
use crate::random::Stream;
use crate::source::gather_rows;
use std::sync::Arc;
use std::time::Instant;

/// What the batch gets.
#[derive(Debug, Clone, PartialEq)]
pub enum PixelFormat {
    /// `u8 [height, width, channels]` into `pixels`: a quarter of the bytes; the trainer normalises.
    Bytes,
    /// `f32 [channels, height, width]` into `inputs`, `(pixel / 255 − mean) / std`.
    Normalised(PixelStatistics),
}

/// Random changes of training pictures. They are for classes only: targets such as key points do not move along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Augment {
    pub flip: bool,
    /// Shift by up to this many pixels in each direction, edges repeated: a random crop of the padded picture.
    pub crop_padding: usize,
}

#[derive(Debug, Clone)]
pub struct ImageSource {
    pub images: Arc<Images>,
    pub format: PixelFormat,
    pub augment: Augment,
}

/// How one picture is moved.
#[derive(Clone, Copy)]
struct Move {
    flip: bool,
    right: isize,
    down: isize,
}

impl ImageSource {
    fn draw_move(&self, sample: u32, draw: Draw) -> Move {
        let mut stream = Stream::new(draw.seed, &[draw.epoch, u64::from(sample), 0x1A6E]);
        let padding = self.augment.crop_padding as u64;
        let shift = |stream: &mut Stream| stream.below(2 * padding + 1) as isize - padding as isize;
        Move {
            flip: self.augment.flip && stream.next_u64() & 1 == 1,
            right: if padding > 0 { shift(&mut stream) } else { 0 },
            down: if padding > 0 { shift(&mut stream) } else { 0 },
        }
    }

    /// The place in the source of every pixel of one output row.
    fn source_column(&self, step: Move, column: usize) -> usize {
        let last = self.images.width as isize - 1;
        let column = (column as isize + step.right).clamp(0, last);
        (if step.flip { last - column } else { column }) as usize
    }

    fn write(&self, image: &[u8], step: Move, index: usize, into: &mut BatchSlices<'_>) {
        let (height, width, channels) = (self.images.height, self.images.width, self.images.channels);
        let still = !step.flip && step.right == 0 && step.down == 0;
        let size = image.len();
        for row in 0..height {
            let source_row = (row as isize + step.down).clamp(0, height as isize - 1) as usize;
            let line = &image[source_row * width * channels..][..width * channels];
            match &self.format {
                PixelFormat::Bytes => {
                    let target =
                        &mut into.pixels[index * size + row * width * channels..][..width * channels];
                    if still {
                        target.copy_from_slice(line);
                    } else {
                        for column in 0..width {
                            let source = self.source_column(step, column) * channels;
                            target[column * channels..][..channels]
                                .copy_from_slice(&line[source..source + channels]);
                        }
                    }
                }
                PixelFormat::Normalised(statistics) => {
                    for channel in 0..channels {
                        let scale = 1.0 / (255.0 * statistics.std[channel]);
                        let offset = statistics.mean[channel] / statistics.std[channel];
                        let start = index * size + channel * height * width + row * width;
                        for (column, value) in into.inputs[start..start + width].iter_mut().enumerate() {
                            let source = if still {
                                column
                            } else {
                                self.source_column(step, column)
                            };
                            *value = f32::from(line[source * channels + channel]) * scale - offset;
                        }
                    }
                }
            }
        }
    }
}

impl SampleSource for ImageSource {
    fn shape(&self) -> SampleShape {
        let size = self.images.pixels_per_image();
        let (inputs, pixels) = match self.format {
            PixelFormat::Bytes => (0, size),
            PixelFormat::Normalised(_) => (size, 0),
        };
        let (targets, classes) = match &self.images.targets {
            ImageTargets::Class { .. } => (0, 1),
            ImageTargets::Real { names, .. } => (names.len(), 0),
        };
        SampleShape {
            inputs,
            codes: 0,
            pixels,
            targets,
            classes,
        }
    }

    fn fill(&self, samples: &[u32], draw: Draw, mut into: BatchSlices<'_>) -> Result<FillTime> {
        let start = Instant::now();
        let size = self.images.pixels_per_image();
        for (index, &sample) in samples.iter().enumerate() {
            let image = &self.images.pixels[sample as usize * size..][..size];
            self.write(image, self.draw_move(sample, draw), index, &mut into);
        }
        match &self.images.targets {
            ImageTargets::Class { classes, .. } => gather_rows(classes, 1, samples, into.classes),
            ImageTargets::Real { values, names } => gather_rows(values, names.len(), samples, into.targets),
        }
        Ok(FillTime {
            fetch_ns: 0,
            prepare_ns: start.elapsed().as_nanos() as u64,
        })
    }
}
