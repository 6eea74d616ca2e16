//! What happens to one image. A pixel at column `x` and row `y` of the original is afterwards at
//! `center + shift + zoom · rotation · flip · ((x, y) − center)`; the pixels of the result are read back through the inverse, between
//! the nearest four, edges repeated. A flip and a shift by whole pixels move bytes as they are.

use super::Changes;
use flatout_data::random::Stream;

#[derive(Clone, Copy)]
pub struct Size {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Size {
    pub fn bytes(self) -> usize {
        self.height * self.width * self.channels
    }

    fn center(self) -> (f32, f32) {
        ((self.width as f32 - 1.0) / 2.0, (self.height as f32 - 1.0) / 2.0)
    }

    /// Whether a position is within the outermost pixels' centers, half a pixel more.
    pub fn contains(self, (x, y): (f32, f32)) -> bool {
        (-0.5..=self.width as f32 - 0.5).contains(&x) && (-0.5..=self.height as f32 - 0.5).contains(&y)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    flip: bool,
    shift: (i32, i32),
    /// Zoom times cosine and sine of the angle.
    turn: (f32, f32),
    plain: bool,
    /// Factors of brightness, contrast and saturation.
    color: Option<[f32; 3]>,
    /// The corner of the blank square, and its side.
    cutout: Option<(i32, i32, usize)>,
}

impl Change {
    pub fn draw(changes: &Changes, size: Size, stream: &mut Stream) -> Self {
        // Every number is drawn, whatever is asked for: one change does not alter the numbers of another.
        let mut between = |limit: f64| (2.0 * stream.uniform() - 1.0) * limit;
        let (turned, zoom) = (between(changes.rotate).to_radians(), 1.0 + between(changes.zoom));
        let color = [0; 3].map(|_| (1.0 + between(changes.color)) as f32);
        let mut whole = |limit: usize| stream.below(2 * limit as u64 + 1) as i32 - limit as i32;
        let shift = (whole(changes.shift), whole(changes.shift));
        let flip = stream.next_u64() & 1 == 1 && changes.flip;
        let corner =
            |side: usize, stream: &mut Stream| stream.below(side as u64) as i32 - (changes.cutout / 2) as i32;
        let (left, top) = (corner(size.width, stream), corner(size.height, stream));
        let (sine, cosine) = turned.sin_cos();
        Self {
            flip,
            shift,
            turn: ((zoom * cosine) as f32, (zoom * sine) as f32),
            plain: changes.rotate == 0.0 && changes.zoom == 0.0,
            color: (changes.color > 0.0).then_some(color),
            cutout: (changes.cutout > 0).then_some((left, top, changes.cutout)),
        }
    }

    /// The same without a movement.
    pub fn in_place(self) -> Self {
        Self {
            flip: false,
            shift: (0, 0),
            turn: (1.0, 0.0),
            plain: true,
            ..self
        }
    }

    /// Where a position of the original is afterwards.
    pub fn moved(&self, size: Size, (x, y): (f32, f32)) -> (f32, f32) {
        let (center_x, center_y) = size.center();
        let (mut x, y) = (x - center_x, y - center_y);
        if self.flip {
            x = -x;
        }
        let (cosine, sine) = self.turn;
        (
            center_x + self.shift.0 as f32 + cosine * x - sine * y,
            center_y + self.shift.1 as f32 + sine * x + cosine * y,
        )
    }

    /// The position of the original that is at `(x, y)` afterwards.
    fn source(&self, size: Size, (x, y): (f32, f32)) -> (f32, f32) {
        let (center_x, center_y) = size.center();
        let (x, y) = (
            x - center_x - self.shift.0 as f32,
            y - center_y - self.shift.1 as f32,
        );
        let (cosine, sine) = self.turn;
        let square = (cosine * cosine + sine * sine).max(1e-6);
        let mut back = ((cosine * x + sine * y) / square, (cosine * y - sine * x) / square);
        if self.flip {
            back.0 = -back.0;
        }
        (center_x + back.0, center_y + back.1)
    }

    pub fn apply(&self, size: Size, blank: u8, from: &[u8], into: &mut [u8]) {
        let (line, channels) = (size.width * size.channels, size.channels.max(1));
        for (row, pixels) in into.chunks_exact_mut(line.max(1)).enumerate() {
            for (column, pixel) in pixels.chunks_exact_mut(channels).enumerate() {
                let (x, y) = self.source(size, (column as f32, row as f32));
                if self.plain {
                    let at = |value: f32, side: usize| (value.round().max(0.0) as usize).min(side - 1);
                    let place = at(y, size.height) * line + at(x, size.width) * channels;
                    pixel.copy_from_slice(&from[place..place + channels]);
                    continue;
                }
                let x = x.clamp(0.0, size.width as f32 - 1.0);
                let y = y.clamp(0.0, size.height as f32 - 1.0);
                let (left, top) = (x as usize, y as usize);
                let (right, below) = ((left + 1).min(size.width - 1), (top + 1).min(size.height - 1));
                let (over, down) = (x - left as f32, y - top as f32);
                for (channel, value) in pixel.iter_mut().enumerate() {
                    let at =
                        |row: usize, column: usize| f32::from(from[row * line + column * channels + channel]);
                    let above = at(top, left) * (1.0 - over) + at(top, right) * over;
                    let under = at(below, left) * (1.0 - over) + at(below, right) * over;
                    *value = (above * (1.0 - down) + under * down).round() as u8;
                }
            }
        }
        if let Some(factors) = self.color {
            recolor(factors, channels, into);
        }
        if let Some((left, top, side)) = self.cutout {
            let range = |start: i32, limit: usize| {
                let clip = |value: i32| (value.max(0) as usize).min(limit);
                clip(start)..clip(start.saturating_add(side as i32))
            };
            for row in range(top, size.height) {
                let columns = range(left, size.width);
                into[row * line + columns.start * channels..row * line + columns.end * channels].fill(blank);
            }
        }
    }
}

/// Brightness, then contrast around the image's mean, then saturation around each pixel's gray.
fn recolor([brightness, contrast, saturation]: [f32; 3], channels: usize, pixels: &mut [u8]) {
    let sum: u64 = pixels.iter().map(|&byte| u64::from(byte)).sum();
    let mean = sum as f32 / pixels.len().max(1) as f32 * brightness;
    for pixel in pixels.chunks_exact_mut(channels) {
        let mut values = [0f32; 3];
        for (value, &byte) in values.iter_mut().zip(&*pixel) {
            *value = (f32::from(byte) * brightness - mean) * contrast + mean;
        }
        if channels == 3 {
            let gray = 0.299 * values[0] + 0.587 * values[1] + 0.114 * values[2];
            for value in &mut values {
                *value = gray + (*value - gray) * saturation;
            }
        }
        for (byte, value) in pixel.iter_mut().zip(values) {
            *byte = value.round().clamp(0.0, 255.0) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        height: 24,
        width: 32,
        channels: 1,
    };

    /// An image that is black but for a soft spot.
    fn spot((x, y): (f32, f32)) -> Vec<u8> {
        let near = |place: usize| {
            let (row, column) = ((place / SIZE.width) as f32, (place % SIZE.width) as f32);
            let square = (row - y).powi(2) + (column - x).powi(2);
            (255.0 * (-square / 4.0).exp()).round() as u8
        };
        (0..SIZE.bytes()).map(near).collect()
    }

    fn found(pixels: &[u8]) -> (f32, f32) {
        let sum: f32 = pixels.iter().map(|&byte| f32::from(byte)).sum();
        let mean = |of: fn(usize) -> usize| {
            let weighted = pixels
                .iter()
                .enumerate()
                .map(|(place, &byte)| of(place) as f32 * f32::from(byte));
            weighted.sum::<f32>() / sum
        };
        (mean(|place| place % SIZE.width), mean(|place| place / SIZE.width))
    }

    #[test]
    fn a_position_moves_with_what_is_there() {
        let point = (14.0, 11.0);
        let image = spot(point);
        for changes in [
            Changes {
                flip: true,
                shift: 3,
                ..Changes::default()
            },
            Changes {
                flip: true,
                shift: 2,
                rotate: 20.0,
                zoom: 0.2,
                ..Changes::default()
            },
        ] {
            let mut flips = 0;
            for seed in 0..50 {
                let change = Change::draw(&changes, SIZE, &mut Stream::new(seed, &[]));
                let mut changed = vec![0; image.len()];
                change.apply(SIZE, 0, &image, &mut changed);
                let (wanted, at) = (change.moved(SIZE, point), found(&changed));
                let far = (wanted.0 - at.0).hypot(wanted.1 - at.1);
                assert!(far < 0.1, "{change:?}: {at:?}, not {wanted:?}");
                let back = change.source(SIZE, wanted);
                assert!((back.0 - point.0).hypot(back.1 - point.1) < 1e-3);
                flips += u32::from(change.flip);
            }
            assert!((10..40).contains(&flips));
        }
    }

    #[test]
    fn no_change_gives_the_same_bytes() {
        let image = spot((3.0, 4.0));
        let change = Change::draw(&Changes::default(), SIZE, &mut Stream::new(1, &[]));
        let mut changed = vec![0; image.len()];
        change.apply(SIZE, 0, &image, &mut changed);
        assert_eq!(image, changed);
    }

    #[test]
    fn colors_change_and_a_square_is_blank() {
        let size = Size { channels: 3, ..SIZE };
        let image: Vec<u8> = (0..size.bytes()).map(|place| (place % 200) as u8).collect();
        let changes = Changes {
            color: 0.3,
            cutout: 8,
            ..Changes::default()
        };
        let mut changed = vec![0; image.len()];
        Change::draw(&changes, size, &mut Stream::new(5, &[])).apply(size, 7, &image, &mut changed);
        let blank = changed.chunks_exact(3).filter(|pixel| **pixel == [7; 3]).count();
        assert!((16..=64).contains(&blank), "{blank}");
        assert_ne!(image, changed);
    }
}
