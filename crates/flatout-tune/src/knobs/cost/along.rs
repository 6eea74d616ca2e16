//! What goes along with workers, and what it saves: they stay between epochs, and their batches are pinned.

use crate::knobs::{Situation, loader};

/// Of the copying, what pinned memory saves.
pub const COPIED: f64 = 0.5;
/// Of a start, what is saved at least: its first batch has to be made in any case.
const LEAST_OF_START: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default)]
pub struct Along {
    /// What starting workers anew each epoch costs a sample now, and whether they could stay.
    pub restart_s: f64,
    pub stays: bool,
    /// What pinned memory would save of a step's copying: most of that is no matter of its samples. `None` where it is not in question.
    pub copying_s: Option<f64>,
}

impl Along {
    pub fn of(situation: &Situation) -> Self {
        let turned = loader::together(situation);
        let pins = turned.get(loader::PINNED).is_some();
        Self {
            restart_s: restart_s(situation).unwrap_or(0.0),
            stays: turned.get(loader::PERSISTENT).is_some(),
            copying_s: pins.then(|| COPIED * copying_s(situation)),
        }
    }
}

fn restart_s(situation: &Situation) -> Option<f64> {
    let analysis = situation.analysis;
    let loader = analysis.train_loader().filter(|loader| loader.starts > 0)?;
    let length = loader
        .length
        .filter(|length| *length > 0 && situation.workers() > 0)?;
    let (least_s, most_s) = analysis.restart_s(loader.start_s);
    let each_s = (least_s + most_s) / 2.0 / loader.starts as f64;
    let first_s = loader.prepare_ms().unwrap_or(0.0) / 1e3;
    Some((each_s - first_s).max(each_s * LEAST_OF_START) / length as f64)
}

fn copying_s(situation: &Situation) -> f64 {
    let analysis = situation.analysis;
    let step_s = analysis
        .window
        .as_ref()
        .map_or(0.0, |window| window.step_ms() / 1e3);
    analysis.copying_share() * step_s
}
