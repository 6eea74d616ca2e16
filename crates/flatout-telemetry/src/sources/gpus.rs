//! What the sources of GPUs share: a thread of their own that reads all GPUs whenever asked, because a driver call may take
//! seconds and the host, the screen and the schedule do not wait for it.
//!
//! Every value is optional. What a GPU does not support is asked once, and the reason is kept for `run.json`.

use super::accelerators::AcceleratorProblem;
use super::background::{Background, Port, Reading};
use super::fields::Fields;
use super::nvml::NvmlProblem;
use super::{Source, TickTime};
use flatout_core::{Explain, Message, explained};
use flatout_record::{EventKind, GpuInfo, GpuSample, RunInfo, Sample};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known of the GPUs.
#[derive(Clone, Debug)]
pub enum GpuState {
    /// The sampler was told to leave GPUs alone.
    NotAsked,
    /// The driver is still being opened.
    Starting,
    /// The GPUs in scope, by index; empty when the environment hides them all.
    Ready(Vec<u32>),
    Unavailable(GpuProblem),
}

/// Why there are no GPU values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuProblem {
    Nvml(NvmlProblem),
    Accelerator(AcceleratorProblem),
}

impl Explain for GpuProblem {
    fn message(&self) -> Message {
        match self {
            Self::Nvml(problem) => problem.message(),
            Self::Accelerator(problem) => problem.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::Nvml(problem) => problem.hint(),
            Self::Accelerator(problem) => problem.hint(),
        }
    }
}
explained!(GpuProblem);

/// One GPU, as the thread of its source reads it.
pub trait Gpu {
    fn index(&self) -> u32;
    /// What does not change.
    fn details(&mut self) -> GpuInfo;
    /// `None` when the GPU is lost.
    fn read(&mut self, now: Instant, events: &mut Vec<EventKind>) -> Option<GpuSample>;
    fn fields(&mut self) -> &mut Fields;
}

/// What does not change from tick to tick.
#[derive(Default)]
pub struct Table {
    state: Option<GpuState>,
    gpus: BTreeMap<u32, GpuInfo>,
    versions: BTreeMap<String, String>,
    unknown: Vec<String>,
    clamped: BTreeMap<String, u64>,
    revision: u64,
}

impl Table {
    /// There are no GPUs to read.
    pub fn give_up(&mut self, problem: GpuProblem) {
        self.unknown.push(format!("gpu: {problem}"));
        self.state = Some(GpuState::Unavailable(problem));
        self.revision += 1;
    }

    /// A reason that does not belong to one value.
    pub fn note(&mut self, notes: Vec<String>) {
        self.unknown.extend(notes);
    }
}

#[derive(Default)]
pub struct GpuReading {
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

pub struct GpuSource {
    background: Option<Background<GpuReading>>,
    table: Arc<Mutex<Table>>,
    last: Option<(BTreeMap<u32, GpuSample>, Instant)>,
}

impl GpuSource {
    /// Starts the thread, which opens the driver and then serves; returns at once.
    pub fn start(name: &str, body: impl FnOnce(Port<GpuReading>, &Mutex<Table>) + Send + 'static) -> Self {
        let table = Arc::new(Mutex::new(Table::default()));
        let theirs = Arc::clone(&table);
        let background = Background::start(name, move |port| body(port, &theirs));
        if let Err(error) = &background {
            let detail = error.to_string();
            lock(&table).state = Some(GpuState::Unavailable(GpuProblem::Nvml(NvmlProblem::Failed {
                detail,
            })));
        }
        Self {
            background: background.ok(),
            table,
            last: None,
        }
    }
}

pub fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source for GpuSource {
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

/// The thread's loop, once the driver is open: reads all GPUs whenever asked.
pub fn serve<G: Gpu>(
    mut gpus: Vec<G>,
    versions: BTreeMap<String, String>,
    mut port: Port<GpuReading>,
    table: &Mutex<Table>,
) {
    {
        let details = gpus.iter_mut().map(|gpu| (gpu.index(), gpu.details())).collect();
        let mut table = lock(table);
        table.versions = versions;
        table.gpus = details;
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
        let mut news = false;
        for gpu in &mut gpus {
            news |= gpu.fields().take_news();
        }
        if news {
            let mut table = lock(table);
            table.unknown.retain(|reason| !reason.starts_with("gpu "));
            for gpu in &mut gpus {
                table.unknown.extend(gpu.fields().unknown());
            }
            table.clamped = gpus
                .iter_mut()
                .flat_map(|gpu| gpu.fields().clamped().collect::<Vec<_>>())
                .collect();
            table.revision += 1;
        }
        port.publish(reading);
    }
}
