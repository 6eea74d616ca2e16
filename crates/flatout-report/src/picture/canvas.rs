//! Points of colour: rectangles, smooth lines, letters; and the PNG file of them. Drawing outside is no fault, it is not seen.

use super::font;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

pub const PAPER: Colour = Colour(255, 255, 255);
/// Each point of a letter is so many points of the picture.
const LETTER_SCALE: i64 = 2;
/// From the start of a letter to the start of the next.
pub const LETTER_STEP: i64 = (font::WIDTH as i64 + 1) * LETTER_SCALE;
pub const LETTER_HEIGHT: i64 = font::HEIGHT as i64 * LETTER_SCALE;

pub struct Canvas {
    width: usize,
    height: usize,
    points: Vec<u8>,
}

impl Canvas {
    pub fn new(width: usize, height: usize) -> Self {
        let points = [PAPER.0, PAPER.1, PAPER.2].repeat(width * height);
        Self {
            width,
            height,
            points,
        }
    }

    /// Lays a colour over a point; `cover` from 0 (nothing) to 1 (all of it).
    pub fn point(&mut self, x: i64, y: i64, colour: Colour, cover: f64) {
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|at| *at < size);
        let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) else {
            return;
        };
        let start = (y * self.width + x) * 3;
        for (point, new) in self.points[start..start + 3]
            .iter_mut()
            .zip([colour.0, colour.1, colour.2])
        {
            let mixed = f64::from(*point) + (f64::from(new) - f64::from(*point)) * cover.clamp(0.0, 1.0);
            *point = mixed.round() as u8;
        }
    }

    /// From the upper left corner up to, without, the lower right one.
    pub fn rectangle(
        &mut self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        colour: Colour,
        cover: f64,
    ) {
        let edge = |at: f64, size: usize| at.round().clamp(0.0, size as f64) as i64;
        for y in edge(top, self.height)..edge(bottom, self.height) {
            for x in edge(left, self.width)..edge(right, self.width) {
                self.point(x, y, colour, cover);
            }
        }
    }

    /// A line two points wide with smooth edges.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour) {
        const HALF: f64 = 1.0;
        if ![from.0, from.1, to.0, to.1].iter().all(|value| value.is_finite()) {
            return;
        }
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length_2 = (dx * dx + dy * dy).max(1e-12);
        let span = |a: f64, b: f64, size: usize| {
            let edge = |at: f64| at.clamp(-2.0, size as f64 + 1.0) as i64;
            edge(a.min(b) - HALF - 1.0)..=edge(a.max(b) + HALF + 1.0)
        };
        for y in span(from.1, to.1, self.height) {
            for x in span(from.0, to.0, self.width) {
                let (px, py) = (x as f64 + 0.5 - from.0, y as f64 + 0.5 - from.1);
                let along = ((px * dx + py * dy) / length_2).clamp(0.0, 1.0);
                let distance = (px - along * dx).hypot(py - along * dy);
                self.point(x, y, colour, HALF + 0.5 - distance);
            }
        }
    }

    pub fn text(&mut self, left: i64, top: i64, text: &str, colour: Colour) {
        for (index, character) in text.chars().enumerate() {
            let start = left + index as i64 * LETTER_STEP;
            for (row, bits) in (0i64..).zip(font::glyph(character)) {
                for column in 0..font::WIDTH as i64 {
                    if bits & (1 << (font::WIDTH as i64 - 1 - column)) == 0 {
                        continue;
                    }
                    for (x, y) in (0..LETTER_SCALE).flat_map(|y| (0..LETTER_SCALE).map(move |x| (x, y))) {
                        self.point(
                            start + column * LETTER_SCALE + x,
                            top + row * LETTER_SCALE + y,
                            colour,
                            1.0,
                        );
                    }
                }
            }
        }
    }

    pub fn png(&self) -> io::Result<Vec<u8>> {
        let size = |size: usize| u32::try_from(size).map_err(io::Error::other);
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, size(self.width)?, size(self.height)?);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.points)?;
        writer.finish()?;
        Ok(file)
    }
}

pub fn text_width(text: &str) -> i64 {
    text.chars().count() as i64 * LETTER_STEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INK: Colour = Colour(0, 0, 0);

    fn dark(canvas: &Canvas) -> usize {
        canvas.points.chunks(3).filter(|point| point[0] < 128).count()
    }

    #[test]
    fn what_is_drawn_is_in_the_file() {
        let mut canvas = Canvas::new(40, 20);
        canvas.rectangle((2.0, 3.0), (6.0, 5.0), INK, 1.0);
        assert_eq!(dark(&canvas), 8);
        canvas.line((10.0, 10.0), (20.0, 10.0), INK);
        assert!((28..=40).contains(&dark(&canvas)), "{}", dark(&canvas));
        canvas.text(24, 2, "1", INK);
        let drawn = dark(&canvas);
        let file = canvas.png().unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().unwrap();
        let mut points = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut points).unwrap();
        assert_eq!(points.chunks(3).filter(|point| point[0] < 128).count(), drawn);
    }

    proptest! {
        #[test]
        fn outside_is_not_seen_and_breaks_nothing(
            x in prop::num::f64::ANY, y in prop::num::f64::ANY, to in prop::num::f64::ANY, text in any::<String>(),
        ) {
            let mut canvas = Canvas::new(12, 9);
            canvas.line((x, y), (to, 4.0), INK);
            canvas.rectangle((x, y), (to, y), INK, to);
            canvas.text(-3, 5, &text, INK);
            prop_assert!(canvas.png().is_ok());
        }
    }
}
