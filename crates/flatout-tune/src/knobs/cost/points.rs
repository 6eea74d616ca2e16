//! The sizes that trials have measured, and what they say of other sizes.

use super::curve::{Curve, Line};
use super::{BATCH, STARVED};
use crate::knobs::{Done, FREEZE, Situation};
use crate::trial::Settings;

/// One measured size: samples, a step's own seconds where nothing hides a part of them, memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub batch: f64,
    pub own_s: Option<f64>,
    pub memory: Option<f64>,
}

/// How making a batch grows with its samples, from the two sizes that were made with nobody beside; the latest trial that did.
pub fn loading(situation: &Situation) -> Option<Line> {
    situation.measured_with(|_| true).find_map(|measured| {
        let mut made: Vec<(f64, f64)> = measured
            .sizes
            .iter()
            .filter_map(|size| Some((size.samples as f64, size.wait_s?)))
            .collect();
        made.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [small, .., large] = made.as_slice() else {
            return None;
        };
        Line::through(*small, *large)
    })
}

/// All sizes measured with what the best has, whatever the loader; the last measurement of each, by size.
pub fn points(situation: &Situation) -> Vec<Point> {
    points_with(situation, &computing(situation.settings))
}

/// Settings that change what a step computes; the loader and its workers only feed it, and threads only share the work.
pub fn computing(settings: &Settings) -> Settings {
    let mut left = settings.clone();
    left.0
        .retain(|key, _| !key.starts_with("loader.") && key != "threads.torch" && key != FREEZE);
    left
}

fn points_with(situation: &Situation, others: &Settings) -> Vec<Point> {
    let same = |done: &&Done| computing(&done.settings) == *others;
    let trials = || situation.trials.iter().rev().filter(same);
    // Those taken for their own sake first: nothing disturbed them but chance.
    let all = trials()
        .flat_map(taken)
        .chain(trials().filter_map(|done| whole(done, situation.on_gpu())));
    let mut kept: Vec<Point> = Vec::new();
    for point in all {
        let near = |known: &Point| (known.batch / point.batch - 1.0).abs() < 0.02;
        if !kept.iter().any(near) {
            kept.push(point);
        }
    }
    kept.sort_by(|a, b| a.batch.total_cmp(&b.batch));
    kept
}

/// The sizes that a trial took for their own sake.
fn taken(done: &Done) -> Vec<Point> {
    let Some(measured) = done.outcome.measured() else {
        return Vec::new();
    };
    // The plain size is taken before and among the others: the latter stands in proportion to them.
    let points = measured.sizes.iter().rev().map(|size| Point {
        batch: size.samples.max(1) as f64,
        own_s: Some(size.own_s),
        memory: size.memory_bytes.map(|bytes| bytes as f64),
    });
    points.collect()
}

/// A trial's batch itself.
fn whole(done: &Done, on_gpu: bool) -> Option<Point> {
    let measured = done.outcome.measured()?;
    let asked = done
        .settings
        .get(BATCH)
        .and_then(|value| value.parse::<f64>().ok());
    let wait_s = measured.wait_s.unwrap_or(0.0);
    let hidden = on_gpu && wait_s > STARVED * measured.seconds;
    let own_s = (measured.seconds - wait_s - measured.aside_s.unwrap_or(0.0)) / measured.steps.max(1) as f64;
    let batch = measured.samples_a_step().or(asked).filter(|_| !measured.cut)?;
    Some(Point {
        batch,
        own_s: (!hidden).then_some(own_s),
        memory: measured.memory_bytes.map(|bytes| bytes as f64),
    })
}

/// Through the sizes measured with what the best has, and `true`; without two, with what any earlier trial had: the shape is much
/// the same, and the best gives the height.
pub fn curve(situation: &Situation) -> Option<(Curve, bool)> {
    let through = |others: &Settings| {
        let points = points_with(situation, others);
        Curve::through(
            points
                .iter()
                .filter_map(|point| Some((point.batch, point.own_s?))),
        )
    };
    let best = computing(situation.settings);
    let mut earlier = situation
        .trials
        .iter()
        .rev()
        .map(|done| computing(&done.settings));
    let own = through(&best).map(|curve| (curve, true));
    own.or_else(|| earlier.find_map(|others| Some((through(&others)?, false))))
}
