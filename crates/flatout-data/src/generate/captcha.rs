//! Slider captchas: an RGB picture of 320×160 with a darkened gap in the shape of a puzzle piece, and the piece itself at the left edge;
//! `labels.csv` has the centres of both.
//!
//! Each position in the table is off by up to a pixel, evenly drawn: that is the error no model can avoid.

use super::score::{BestScore, RegressionSums};
use super::{Generated, Recipe};
use crate::formats::image::{ImageShape, write_png};
use crate::random::Stream;
use crate::split::{SplitRule, split_rows};
use crate::{DataError, Result, parallel};
use flatout_core::files::write_atomically;
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const WIDTH: usize = 320;
pub const HEIGHT: usize = 160;
pub const TARGETS: [&str; 4] = ["gap_x", "gap_y", "slider_x", "slider_y"];
/// Half the side of the piece.
const HALF: i64 = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Captcha {
    pub images: usize,
    pub seed: u64,
}

impl Default for Captcha {
    fn default() -> Self {
        Self { images: 500, seed: 0 }
    }
}

struct Drawn {
    /// True centres: gap x, gap y, slider x, slider y.
    centres: [f64; 4],
    labels: [f64; 4],
}

impl Captcha {
    /// Whether there is anything to make of it.
    pub(super) fn check(&self) -> Result<()> {
        if self.images == 0 {
            return Err(DataError::Setting(
                message!(en: "needs at least 1 image", zh: "至少需要 1 张图像"),
            ));
        }
        Ok(())
    }

    pub(super) fn generate(&self, folder: &Path, threads: usize) -> Result<Generated> {
        let shape = ImageShape {
            height: HEIGHT,
            width: WIDTH,
            channels: 3,
        };
        let drawn = parallel::map(self.images, threads, |index| {
            let mut stream = Stream::new(self.seed, &[31, index as u64]);
            let (pixels, drawn) = draw(&mut stream);
            write_png(&folder.join(name(index)), &pixels, shape)?;
            Ok::<_, DataError>(drawn)
        })?;
        let mut table = format!("file,{}\n", TARGETS.join(","));
        for (index, drawn) in drawn.iter().enumerate() {
            let [gap_x, gap_y, slider_x, slider_y] = drawn.labels;
            table += &format!(
                "{},{gap_x:.2},{gap_y:.2},{slider_x:.2},{slider_y:.2}\n",
                name(index)
            );
        }
        write_atomically(&folder.join("labels.csv"), table.as_bytes())?;
        let sums = |samples: &[u32]| {
            let mut sums = RegressionSums::default();
            for &sample in samples {
                let drawn = &drawn[sample as usize];
                drawn
                    .labels
                    .iter()
                    .zip(drawn.centres)
                    .for_each(|(label, centre)| sums.push(*label, centre));
            }
            sums.finish()
        };
        let all: Vec<u32> = (0..drawn.len() as u32).collect();
        let split = split_rows(drawn.len(), None, &SplitRule::default())?;
        let best = BestScore::Regression {
            all: sums(&all),
            validation: sums(&split.validation),
        };
        let recipe = Recipe::Captcha(self.clone());
        Ok(Generated::new(
            recipe,
            self.images + 1,
            self.images as u64,
            &TARGETS.join(","),
            best,
        ))
    }
}

fn name(index: usize) -> String {
    format!("{index:06}.png")
}

fn draw(stream: &mut Stream) -> (Vec<u8>, Drawn) {
    let background = Background::new(stream);
    let gap_x = 100 + stream.below(190) as i64;
    let gap_y = 30 + stream.below(100) as i64;
    let (slider_x, slider_y) = (30, gap_y);
    let mut pixels = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for y in 0..HEIGHT as i64 {
        for x in 0..WIDTH as i64 {
            let (in_gap, in_slider) = (piece(x - gap_x, y - gap_y), piece(x - slider_x, y - slider_y));
            let colour = if in_slider {
                let edge = !piece(x - slider_x - 2, y - slider_y) || !piece(x - slider_x + 2, y - slider_y);
                let cut = background.colour(x - slider_x + gap_x, y);
                if edge { [255; 3] } else { cut }
            } else {
                background.colour(x, y)
            };
            let shade = if in_gap { 2 } else { 5 };
            pixels.extend(colour.map(|value| (i64::from(value) * shade / 5) as u8));
        }
    }
    let centres = [gap_x, gap_y, slider_x, slider_y].map(|centre| centre as f64);
    let mut off = || ((stream.uniform() * 2.0 - 1.0) * 100.0).round() / 100.0;
    let labels = centres.map(|centre| centre + off());
    (pixels, Drawn { centres, labels })
}

/// A square with a knob on its right and a notch at its bottom.
fn piece(dx: i64, dy: i64) -> bool {
    let knob = (dx - HALF) * (dx - HALF) + dy * dy <= 36;
    let notch = dx * dx + (dy - HALF) * (dy - HALF) <= 36;
    (dx.abs() <= HALF && dy.abs() <= HALF && !notch) || knob
}

/// Two colours that run into each other, with a few rectangles on top: busy enough to hide a gap from a threshold.
struct Background {
    from: [i64; 3],
    to: [i64; 3],
    patches: Vec<([i64; 4], [i64; 3])>,
}

impl Background {
    fn new(stream: &mut Stream) -> Self {
        let colour = |stream: &mut Stream| [0; 3].map(|_: i64| 60 + stream.below(180) as i64);
        let (from, to) = (colour(stream), colour(stream));
        let patches = (0..12)
            .map(|_| {
                let (x, y) = (
                    stream.below(WIDTH as u64) as i64,
                    stream.below(HEIGHT as u64) as i64,
                );
                let (w, h) = (10 + stream.below(60) as i64, 10 + stream.below(40) as i64);
                ([x, y, x + w, y + h], colour(stream))
            })
            .collect();
        Self { from, to, patches }
    }

    fn colour(&self, x: i64, y: i64) -> [u8; 3] {
        let patch = self.patches.iter().rev().find(|([left, top, right, bottom], _)| {
            (*left..*right).contains(&x) && (*top..*bottom).contains(&y)
        });
        let share = (x + y).clamp(0, 480);
        let ground = [0, 1, 2]
            .map(|channel| self.from[channel] + (self.to[channel] - self.from[channel]) * share / 480);
        let mixed = match patch {
            None => ground,
            Some((_, colour)) => [0, 1, 2].map(|channel| (ground[channel] + colour[channel]) / 2),
        };
        mixed.map(|value| value.clamp(0, 255) as u8)
    }
}
