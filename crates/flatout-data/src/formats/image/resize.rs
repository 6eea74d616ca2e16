//! Resizing: the mean of the covered pixels when the ratio is whole, a triangle filter over the covered width otherwise (the
//! way other libraries' antialiased "bilinear" works).

use super::ImageShape;

/// Grey by the weights of BT.601, in integers.
#[inline]
pub fn to_grey(red: u8, green: u8, blue: u8) -> u8 {
    ((19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue) + 32768) >> 16) as u8
}

/// Weights of one axis for one pair of sizes.
#[derive(Debug, Default, PartialEq)]
struct Axis {
    from: usize,
    to: usize,
    /// First source pixel and the range of weights, for each target pixel.
    spans: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<i32>,
}

const WEIGHT_BITS: u32 = 14;

impl Axis {
    fn prepare(&mut self, from: usize, to: usize) {
        if (self.from, self.to) == (from, to) {
            return;
        }
        (self.from, self.to) = (from, to);
        self.spans.clear();
        self.weights.clear();
        let scale = from as f64 / to as f64;
        let support = scale.max(1.0);
        for target in 0..to {
            let centre = (target as f64 + 0.5) * scale;
            let first = (centre - support).floor().max(0.0) as usize;
            let last = ((centre + support).ceil() as usize).min(from);
            let raw: Vec<f64> = (first..last)
                .map(|at| (1.0 - ((at as f64 + 0.5 - centre) / support).abs()).max(0.0))
                .collect();
            let sum: f64 = raw.iter().sum();
            let start = self.weights.len();
            self.weights.extend(
                raw.iter()
                    .map(|weight| (weight / sum * f64::from(1 << WEIGHT_BITS)).round() as i32),
            );
            self.spans.push((first, start..self.weights.len()));
        }
    }
}

#[derive(Debug, Default)]
pub struct Resizer {
    horizontal: Axis,
    vertical: Axis,
    middle: Vec<u8>,
}

impl Resizer {
    /// Resizes `[from_height, from_width, channels]` to the shape.
    pub fn resize(&mut self, pixels: &[u8], from: [usize; 2], shape: ImageShape, into: &mut [u8]) {
        let [height, width] = from;
        if height == 0 || width == 0 {
            into.fill(0);
        } else if (height, width) == (shape.height, shape.width) {
            into.copy_from_slice(&pixels[..into.len()]);
        } else if height % shape.height == 0 && width % shape.width == 0 {
            box_mean(
                pixels,
                width,
                [height / shape.height, width / shape.width],
                shape,
                into,
            );
        } else {
            self.filter(pixels, from, shape, into);
        }
    }

    fn filter(&mut self, pixels: &[u8], [height, width]: [usize; 2], shape: ImageShape, into: &mut [u8]) {
        let channels = shape.channels;
        self.horizontal.prepare(width, shape.width);
        self.vertical.prepare(height, shape.height);
        let line = shape.width * channels;
        self.middle.resize(height * line, 0);
        for (source, target) in pixels
            .chunks_exact(width * channels)
            .zip(self.middle.chunks_exact_mut(line))
        {
            for (column, (first, weights)) in self.horizontal.spans.iter().enumerate() {
                for channel in 0..channels {
                    let values = source[first * channels + channel..].iter().step_by(channels);
                    target[column * channels + channel] =
                        weigh(&self.horizontal.weights[weights.clone()], values);
                }
            }
        }
        for (row, (first, weights)) in self.vertical.spans.iter().enumerate() {
            for column in 0..line {
                let values = self.middle[first * line + column..].iter().step_by(line);
                into[row * line + column] = weigh(&self.vertical.weights[weights.clone()], values);
            }
        }
    }
}

fn weigh<'a>(weights: &[i32], values: impl Iterator<Item = &'a u8>) -> u8 {
    let sum: i32 = weights
        .iter()
        .zip(values)
        .map(|(weight, value)| weight * i32::from(*value))
        .sum();
    ((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS).clamp(0, 255) as u8
}

fn box_mean(pixels: &[u8], width: usize, [down, across]: [usize; 2], shape: ImageShape, into: &mut [u8]) {
    let channels = shape.channels;
    let area = (down * across) as u32;
    let mut sums = vec![0u32; shape.width * channels];
    for (row, target) in into.chunks_exact_mut(shape.width * channels).enumerate() {
        sums.fill(0);
        for line in pixels.chunks_exact(width * channels).skip(row * down).take(down) {
            if channels == 1 {
                for (sum, run) in sums.iter_mut().zip(line.chunks_exact(across)) {
                    *sum += run.iter().map(|&value| u32::from(value)).sum::<u32>();
                }
            } else {
                for (index, &value) in line.iter().enumerate() {
                    sums[index / channels / across * channels + index % channels] += u32::from(value);
                }
            }
        }
        for (value, sum) in target.iter_mut().zip(&sums) {
            *value = ((sum + area / 2) / area) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
        ImageShape {
            height,
            width,
            channels,
        }
    }

    #[test]
    fn whole_ratios_are_means() {
        let pixels = [0, 10, 20, 30, 40, 50, 60, 70];
        let mut into = [0; 2];
        Resizer::default().resize(&pixels, [2, 4], shape(1, 2, 1), &mut into);
        assert_eq!(into, [25, 45]);
        let colour = [0, 100, 200, 2, 102, 202];
        let mut into = [0; 3];
        Resizer::default().resize(&colour, [1, 2], shape(1, 1, 3), &mut into);
        assert_eq!(into, [1, 101, 201]);
    }

    #[test]
    fn resizing_keeps_a_flat_image_flat() {
        for (height, width) in [(7, 13), (200, 300), (3, 3), (1, 1), (129, 127)] {
            let mut into = vec![0; 128 * 128 * 3];
            Resizer::default().resize(
                &vec![200; height * width * 3],
                [height, width],
                shape(128, 128, 3),
                &mut into,
            );
            assert!(into.iter().all(|&value| value == 200), "{height}×{width}");
        }
    }

    #[test]
    fn enlarging_interpolates() {
        let mut into = [0; 4];
        Resizer::default().resize(&[0, 100], [1, 2], shape(1, 4, 1), &mut into);
        assert_eq!(into, [0, 25, 75, 100]);
    }
}
