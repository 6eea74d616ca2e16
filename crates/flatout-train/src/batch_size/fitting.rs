//! A session that fits: where the batch does not, half as many samples go through the model at once and twice as many parts make
//! an update. The samples of an update stay the same.

use super::Batch;
use crate::data::TrainingData;
use crate::device::{self, Opened};
use crate::{Settings, TrainError, models};
use flatout_core::{Message, message, units};
use flatout_engine::EngineError;

/// A session for micro-batches of this size, its tables attached.
pub fn open_once(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    let plan = || models::plan(settings, &data.preparation, micro);
    let mut opened = device::open(settings, plan)?;
    for (name, table) in &data.tables {
        opened.session.attach(name, table.clone())?;
    }
    Ok(opened)
}

/// Opens a session for micro-batches of a size: [`open_once`], but for tests.
pub type Opener = fn(&Settings, &TrainingData, usize) -> Result<Opened, TrainError>;

/// The same with the largest micro-batch that fits, which `batch` then has.
pub fn open(
    opener: Opener,
    settings: &Settings,
    data: &TrainingData,
    batch: &mut Batch,
    say: &mut dyn FnMut(Message),
) -> Result<Opened, TrainError> {
    let (first, mut refused) = (*batch, None);
    loop {
        match opener(settings, data, batch.micro) {
            Err(TrainError::Engine(EngineError::OutOfMemory { wanted_bytes })) => {
                refused.get_or_insert(wanted_bytes);
                *batch = halved(settings, data, *batch, wanted_bytes)?;
            }
            opened => {
                // Once, whatever it took to find the size.
                if let (Ok(_), Some(wanted_bytes)) = (&opened, refused) {
                    say(in_parts(first, *batch, wanted_bytes));
                }
                return opened;
            }
        }
    }
}

/// Halves the micro-batch and says so; an error that names the model that would fit when there is nothing left to halve.
pub fn make_smaller(
    settings: &Settings,
    data: &TrainingData,
    batch: Batch,
    wanted_bytes: u64,
    say: &mut dyn FnMut(Message),
) -> Result<Batch, TrainError> {
    let smaller = halved(settings, data, batch, wanted_bytes)?;
    say(in_parts(batch, smaller, wanted_bytes));
    Ok(smaller)
}

fn halved(
    settings: &Settings,
    data: &TrainingData,
    batch: Batch,
    wanted_bytes: u64,
) -> Result<Batch, TrainError> {
    batch.halved().ok_or_else(|| TrainError::DoesNotFit {
        wanted_bytes,
        smaller: smaller_model(settings, data),
    })
}

fn in_parts(before: Batch, now: Batch, wanted_bytes: u64) -> Message {
    let (effective, parts, wanted) = (before.effective, now.parts(), units::bytes(wanted_bytes as f64));
    let (before, now) = (before.micro, now.micro);
    message!(
        en: "{before} samples at once do not fit in memory ({wanted} needed): continuing with {now} at once, \
        accumulated {parts} times per update; each update still uses {effective} samples",
        zh: "一次 {before} 个样本放不下（需要 {wanted}）：改为一次 {now} 个、每次更新累积 {parts} 次；每次更新仍为 {effective} 个样本"
    )
}

/// A model of the same kind that fits with one sample at a time: narrower by halves, then with a single layer.
fn smaller_model(settings: &Settings, data: &TrainingData) -> Option<String> {
    let widths = || std::iter::successors(Some(settings.hidden_size / 2), |width| Some(width / 2));
    for layers in [settings.num_layers, Some(1)] {
        for hidden_size in widths().take_while(|width| *width > 0) {
            let smaller = Settings {
                hidden_size,
                num_layers: layers,
                ..settings.clone()
            };
            if open_once(&smaller, data, 1).is_err() {
                continue;
            }
            let mut flags = format!("--hidden-size {hidden_size}");
            if layers != settings.num_layers {
                flags += " --num-layers 1";
            }
            return Some(flags);
        }
    }
    None
}
