//! NVIDIA GPUs, through the driver's own library. It runs in a thread of its own: a driver call may take seconds, and the
//! host, the screen and the schedule do not wait for it.
//!
//! Every value is optional. What a GPU does not support is asked once, and the reason is kept for `run.json`.

mod details;
mod fields;
mod gpm;
mod gpu;
mod library;
mod pcie;
mod processes;
mod select;
mod throttle;

use super::background::{Background, Port, Reading};
use super::{Source, TickTime};
use crate::record::{EventKind, GpuInfo, RunInfo};
use crate::sample::{GpuSample, Sample};
use crate::scope::GpuScope;
use gpu::Gpu;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use details::versions;
pub use library::{NvmlProblem, library_path, open};
pub use throttle::{bits as throttle_bits, names as throttle_names};

/// What is known of the GPUs.
#[derive(Clone, Debug)]
pub enum GpuState {
    /// The sampler was told to leave GPUs alone.
    NotAsked,
    /// The driver is still being opened.
    Starting,
    /// The GPUs in scope, by index; empty when the environment hides them all.
    Ready(Vec<u32>),
    Unavailable(NvmlProblem),
}

/// What does not change from tick to tick.
#[derive(Default)]
struct Table {
    state: Option<GpuState>,
    gpus: BTreeMap<u32, GpuInfo>,
    versions: BTreeMap<String, String>,
    unknown: Vec<String>,
    clamped: BTreeMap<String, u64>,
    revision: u64,
}

#[derive(Default)]
struct GpuReading {
    gpus: BTreeMap<u32, GpuSample>,
    events: Vec<EventKind>,
}

impl Reading for GpuReading {
    /// The newer values, but all of the driver's buffered readings and all events.
    fn absorb(&mut self, newer: Self) {
        self.events.extend(newer.events);
        let older = std::mem::replace(&mut self.gpus, newer.gpus);
        for (index, mut old) in older {
            if let (Some(fine), Some(gpu)) = (old.util_fine.take(), self.gpus.get_mut(&index)) {
                let newer = gpu.util_fine.get_or_insert_default();
                newer.splice(0..0, fine);
            }
        }
    }
}

/// Values older than this many intervals (and older than [`STALE`]) are not shown as if they were now.
const STALE_INTERVALS: u32 = 3;
const STALE: Duration = Duration::from_secs(3);

pub struct NvmlSource {
    background: Option<Background<GpuReading>>,
    table: Arc<Mutex<Table>>,
    last: Option<(BTreeMap<u32, GpuSample>, Instant)>,
}

impl NvmlSource {
    /// Begins to open the driver and returns at once.
    pub fn start(scope: GpuScope, interval: Duration) -> Self {
        let table = Arc::new(Mutex::new(Table::default()));
        let theirs = Arc::clone(&table);
        let background = Background::start("nvml", move |port| serve(&scope, interval, port, &theirs));
        if let Err(error) = &background {
            let detail = error.to_string();
            lock(&table).state = Some(GpuState::Unavailable(NvmlProblem::Failed { detail }));
        }
        Self {
            background: background.ok(),
            table,
            last: None,
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source for NvmlSource {
    fn begin(&mut self) {
        if let Some(background) = &self.background {
            background.ask();
        }
    }

    fn read(&mut self, tick: &TickTime, sample: &mut Sample, events: &mut Vec<EventKind>) {
        let answer = self
            .background
            .as_ref()
            .and_then(|background| background.take(tick.patience));
        let fresh = answer.is_some();
        if let Some((reading, at)) = answer {
            events.extend(reading.events);
            self.last = Some((reading.gpus, at));
        }
        let Some((gpus, at)) = self.last.as_mut() else {
            return;
        };
        if fresh {
            sample.gpus.clone_from(gpus);
            // The buffered readings belong to one tick only.
            gpus.values_mut().for_each(|gpu| gpu.util_fine = None);
            return;
        }
        let age = tick.now.saturating_duration_since(*at);
        let stale = age > STALE.max(tick.interval * STALE_INTERVALS);
        for (index, gpu) in gpus.iter() {
            let mut gpu = if stale { GpuSample::default() } else { gpu.clone() };
            gpu.age_s = Some((age.as_secs_f64() * 1000.0).round() / 1000.0);
            sample.gpus.insert(*index, gpu);
        }
    }

    fn describe(&self, info: &mut RunInfo) {
        let table = lock(&self.table);
        info.gpus.clone_from(&table.gpus);
        info.versions.extend(table.versions.clone());
        info.clamped.extend(table.clamped.clone());
        for reason in &table.unknown {
            if !info.unknown.contains(reason) {
                info.unknown.push(reason.clone());
            }
        }
    }

    fn revision(&self) -> u64 {
        lock(&self.table).revision
    }

    fn gpus(&self) -> Option<GpuState> {
        Some(lock(&self.table).state.clone().unwrap_or(GpuState::Starting))
    }
}

/// The thread: opens the driver, then reads all GPUs whenever asked.
fn serve(scope: &GpuScope, interval: Duration, mut port: Port<GpuReading>, table: &Mutex<Table>) {
    let give_up = |problem: NvmlProblem| {
        let mut table = lock(table);
        table.unknown.push(format!("gpu: {problem}"));
        table.state = Some(GpuState::Unavailable(problem));
        table.revision += 1;
    };
    let nvml = match open() {
        Ok(nvml) => nvml,
        Err(problem) => return give_up(problem),
    };
    let mut gpus = match select::select(&nvml, scope) {
        Ok(selection) => {
            lock(table).unknown.extend(selection.notes);
            selection.devices
        }
        Err(problem) => return give_up(problem),
    }
    .into_iter()
    .map(|chosen| Gpu::new(chosen, interval))
    .collect::<Vec<_>>();
    {
        let mut table = lock(table);
        table.versions = details::versions(&nvml);
        table.gpus = gpus.iter_mut().map(|gpu| (gpu.index(), gpu.details())).collect();
        table.state = Some(GpuState::Ready(gpus.iter().map(Gpu::index).collect()));
        table.revision += 1;
    }
    while port.wait() {
        let now = Instant::now();
        let mut reading = GpuReading::default();
        for gpu in &mut gpus {
            if let Some(values) = gpu.read(now, &mut reading.events) {
                reading.gpus.insert(gpu.index(), values);
            }
        }
        let news = gpus
            .iter_mut()
            .filter_map(|gpu| gpu.take_news().then_some(()))
            .count();
        if news > 0 {
            let mut table = lock(table);
            table.unknown.retain(|reason| !reason.starts_with("gpu "));
            table.unknown.extend(gpus.iter().flat_map(Gpu::unknown));
            table.clamped = gpus.iter().flat_map(Gpu::clamped).collect();
            table.revision += 1;
        }
        port.publish(reading);
    }
}
