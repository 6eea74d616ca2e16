//! Charts as a PNG picture, without a browser. Its few words (GPU, epoch, units) are the same in every language we speak.

mod canvas;
mod font;

use crate::analyze::Epochs;
use crate::digest::charts::{Chart, Curve, Scale};
use canvas::{Canvas, Colour, LETTER_HEIGHT, text_width};
use flatout_core::units;
use std::io;

const INK: Colour = Colour(27, 31, 36);
const SOFT: Colour = Colour(92, 102, 114);
const GRID: Colour = Colour(226, 229, 234);
const CURVES: [Colour; 4] = [
    Colour(29, 95, 209),
    Colour(217, 115, 13),
    Colour(15, 138, 126),
    Colour(139, 63, 192),
];

const WIDTH: usize = 1200;
/// Of one chart, with its title above and its axis below.
const HEIGHT: usize = 250;
const LEFT: f64 = 110.0;
const RIGHT: f64 = WIDTH as f64 - 24.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT as f64 - 40.0;
/// More bars than this cannot be told apart.
const MOST_BARS: usize = 250;

/// What a picture is made of.
pub struct Picture<'a> {
    pub title: String,
    pub charts: &'a [Chart],
    /// How long the curves are, in seconds.
    pub length_s: f64,
    /// Epochs of logs, each with the log's name.
    pub epochs: Vec<(String, &'a Epochs)>,
}

impl Picture<'_> {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.charts.is_empty() && self.epochs.is_empty()
    }

    pub fn png(&self) -> io::Result<Vec<u8>> {
        let count = self.charts.len() + self.epochs.len();
        let mut canvas = Canvas::new(WIDTH, count * HEIGHT + 40);
        canvas.text(24, 16, &shortened(&self.title), INK);
        let mut frames = (0..count).map(|index| (index * HEIGHT + 40) as f64);
        for (chart, offset) in self.charts.iter().zip(&mut frames) {
            Frame {
                canvas: &mut canvas,
                offset,
            }
            .curves(chart, self.length_s);
        }
        for ((name, epochs), offset) in self.epochs.iter().zip(&mut frames) {
            Frame {
                canvas: &mut canvas,
                offset,
            }
            .bars(name, epochs);
        }
        canvas.png()
    }
}

/// The place of one chart.
struct Frame<'a> {
    canvas: &'a mut Canvas,
    offset: f64,
}

impl Frame<'_> {
    fn curves(&mut self, chart: &Chart, length_s: f64) {
        self.title(title(chart));
        let (low, high) = range(chart);
        self.values(low, high, |value| show(chart.scale, value));
        self.times(length_s);
        let mut left = RIGHT;
        for (curve, colour) in chart.curves.iter().zip(CURVES).rev() {
            // What a curve is called stands in its colour at the right, in English: it is what the tools call it.
            let name = curve.name.en.as_str();
            left -= (text_width(name) + 24) as f64;
            self.canvas
                .text(left as i64 + 24, self.y(10.0) as i64, name, colour);
            self.curve(curve, colour, (low, high), length_s);
        }
    }

    fn curve(&mut self, curve: &Curve, colour: Colour, (low, high): (f64, f64), length_s: f64) {
        let width_s = curve.series.width_s();
        let y = |value: f64| self.offset + BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP);
        let x = |t: f64| LEFT + (t / length_s).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let mut before: Option<(usize, (f64, f64))> = None;
        for (index, bucket) in curve.series.buckets().iter().enumerate() {
            let Some(mean) = bucket.mean() else { continue };
            let at = (x((index as f64 + 0.5) * width_s), y(mean));
            let (top, bottom) = (y(bucket.max), y(bucket.min));
            if bottom - top > 2.0 {
                self.canvas.rectangle(
                    (x(index as f64 * width_s), top),
                    (x((index + 1) as f64 * width_s), bottom),
                    colour,
                    0.15,
                );
            }
            // Over a gap of more than three stretches nothing is known, so nothing is drawn.
            match before {
                Some((last, point)) if index - last <= 3 || curve.limit => {
                    self.canvas.line(point, at, colour)
                }
                _ => self.canvas.line(at, at, colour),
            }
            before = Some((index, at));
        }
    }

    /// Seconds of each epoch; of many, the longest of each group.
    fn bars(&mut self, name: &str, epochs: &Epochs) {
        self.title(&format!("epoch, s  {}", shortened(name)));
        let high = epochs.seconds.max.max(1e-9) * 1.06;
        self.values(0.0, high, units::duration);
        let group = epochs.all.len().div_ceil(MOST_BARS).max(1);
        let groups: Vec<_> = epochs.all.chunks(group).collect();
        let step = (RIGHT - LEFT) / groups.len().max(1) as f64;
        let mut labelled = f64::NEG_INFINITY;
        for (index, group) in groups.iter().enumerate() {
            let longest = group.iter().map(|epoch| epoch.seconds).fold(0.0, f64::max);
            let left = LEFT + index as f64 * step;
            let top = self.y(BOTTOM - longest / high * (BOTTOM - TOP));
            self.canvas.rectangle(
                (left + 0.5, top),
                ((left + step * 0.85).max(left + 1.5), self.offset + BOTTOM),
                CURVES[0],
                0.9,
            );
            let number = group.first().map_or(0, |epoch| epoch.number).to_string();
            let middle = left + step * 0.42;
            let half = text_width(&number) as f64 / 2.0;
            if middle - half > labelled + 14.0 && middle + half < WIDTH as f64 {
                self.canvas.text(
                    (middle - half) as i64,
                    self.y(BOTTOM + 10.0) as i64,
                    &number,
                    SOFT,
                );
                labelled = middle + half;
            }
        }
    }

    fn y(&self, within: f64) -> f64 {
        self.offset + within
    }

    fn title(&mut self, title: &str) {
        self.canvas.text(24, self.y(10.0) as i64, title, INK);
    }

    /// Lines across with their values, at whole steps.
    fn values(&mut self, low: f64, high: f64, show: impl Fn(f64) -> String) {
        let step = whole_step((high - low) / 4.0);
        let mut value = (low / step).ceil() * step;
        while value <= high + step * 1e-6 {
            let y = self.y(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP));
            self.canvas.rectangle((LEFT, y), (RIGHT, y + 1.0), GRID, 1.0);
            let text = show(if value.abs() < step * 1e-6 { 0.0 } else { value });
            self.canvas.text(
                LEFT as i64 - 10 - text_width(&text),
                y as i64 - LETTER_HEIGHT / 2,
                &text,
                SOFT,
            );
            value += step;
        }
    }

    fn times(&mut self, length_s: f64) {
        for part in 0..=4 {
            let share = f64::from(part) / 4.0;
            let text = if part == 0 {
                "0".to_owned()
            } else {
                units::duration(length_s * share)
            };
            let middle = LEFT + share * (RIGHT - LEFT) - text_width(&text) as f64 / 2.0;
            let left = middle.min(RIGHT - text_width(&text) as f64);
            self.canvas
                .text(left as i64, self.y(BOTTOM + 10.0) as i64, &text, SOFT);
        }
    }
}

fn title(chart: &Chart) -> &'static str {
    match chart.key {
        "busy" => "GPU, %",
        "rate" => "samples/s",
        "wait" => "batch, ms",
        "loss" => "loss",
        "memory" => "GPU memory",
        "power" => "GPU, W",
        "temperature" => "GPU, °C",
        "clocks" => "GPU, MHz",
        "cpu" => "CPU, %",
        other => other,
    }
}

fn show(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Percent => format!("{value:.0}%"),
        Scale::Bytes => units::bytes(value),
        Scale::Watts => format!("{value:.0} W"),
        Scale::Celsius => format!("{value:.0} °C"),
        Scale::Megahertz => format!("{value:.0}"),
        Scale::Milliseconds => units::duration(value / 1e3),
        Scale::Count => units::count(value),
        Scale::Free => units::significant(value),
    }
}

/// From 0 where that means something, else from the least value.
fn range(chart: &Chart) -> (f64, f64) {
    if chart.scale == Scale::Percent {
        return (0.0, 100.0);
    }
    let buckets = chart.curves.iter().flat_map(|curve| curve.series.buckets());
    let known = buckets.filter(|bucket| bucket.weight > 0.0);
    let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), bucket| {
        (low.min(bucket.min), high.max(bucket.max))
    });
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    let room = (high - low).max(high.abs() * 0.02).max(1e-9) * 0.06;
    match chart.scale {
        Scale::Free => (low - room, high + room),
        _ => (0.0, (high * 1.06).max(1e-9)),
    }
}

/// 1, 2 or 5 times a power of ten, not below `raw`.
fn whole_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.max(1e-300).log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

/// As much of a name as fits above a chart.
fn shortened(name: &str) -> String {
    const MOST: usize = 70;
    let count = name.chars().count();
    if count <= MOST {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - (MOST - 3)).collect();
    format!("...{end}")
}

#[cfg(test)]
mod tests;
