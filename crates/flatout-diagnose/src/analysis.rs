//! What rules look at: a record digested once. Pure: built from [`RunData`] alone.
//!
//! - [`window`]: the steady part of the run and its totals per phase
//! - [`time`]: where every second of the whole run went
//! - [`collectives`]: what the ranks wait for each other, by source line
//! - [`copies`]: copies to the device that wait for it
//! - [`efficiency`]: the model's arithmetic compared with the GPU's peak
//! - [`facts`]: settings in force, by key and scope
//! - [`kernels`]: what the GPU computes, by kind and by line
//! - [`loaders`]: each `DataLoader`, its settings, its workers and what they cost
//! - [`workers`]: the loaders' worker processes
//! - [`syncs`]: blocking reads of the device by source line
//! - [`host`], [`gpus`]: the machine's averages over the window
//! - [`pages`]: memory that the training process gives back and takes again
//! - [`stacks`]: which of the user's lines the main thread stood in
//! - [`compiles`]: what `torch.compile` did
//! - [`spans`]: evaluations, checkpoints, garbage collections

pub mod collectives;
pub mod compiles;
mod copies;
pub mod efficiency;
pub mod facts;
pub mod gpus;
pub mod host;
pub mod kernels;
pub mod loaders;
pub mod pages;
pub mod spans;
pub mod stacks;
pub mod syncs;
pub mod time;
pub mod window;
pub mod workers;

use crate::account::{Account, gpu_idle_share};
use crate::candidate::WARNING_SHARE;
use crate::lines::Lines;
use crate::ranks::Ranks;
use collectives::Collectives;
use facts::Facts;
use flatout_core::{Evidence, Message, Place, message};
use flatout_record::{Fact, Phase, RunData};
use gpus::Gpu;
use host::Host;
use kernels::Kernels;
use loaders::Loader;
use pages::Pages;
use spans::Spans;
use syncs::SyncSite;
use time::TimeTable;
pub use window::Window;
use workers::Workers;

/// A run, digested. What could not be measured is `None`: a rule then stays quiet.
#[derive(Debug)]
pub struct Analysis<'a> {
    pub data: &'a RunData,
    /// The steady part; `None` before enough steps ran.
    pub window: Option<Window>,
    pub time: TimeTable,
    /// Where the steady part went, line by line; `None` without samples.
    pub account: Option<Account>,
    /// The costly lines of the account.
    pub lines: Lines,
    pub facts: Facts,
    pub loaders: Vec<Loader>,
    pub syncs: Vec<SyncSite>,
    pub host: Host,
    pub workers: Workers,
    /// `None` where the record does not tell.
    pub pages: Option<Pages>,
    pub gpus: Vec<Gpu>,
    /// `None` where the GPU was not traced.
    pub kernels: Option<Kernels>,
    pub spans: Spans,
    /// `None` without several ranks.
    pub collectives: Option<Collectives>,
    /// The ranks side by side; `None` where this record knows of one only.
    pub ranks: Option<Ranks>,
}

/// What the steps compute on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda,
    Unknown,
}

/// See [`Starved::overloaded`].
pub const OVERLOAD: f64 = 0.8;
/// Share of a GPU's processors below which a kernel is over before most of them had anything to do.
pub const FEW_PROCESSORS: f64 = 0.25;

/// A training that waits for loader workers.
pub struct Starved<'a> {
    pub window: &'a Window,
    pub loader: &'a Loader,
    pub workers: u64,
    pub share: f64,
}

impl Starved<'_> {
    /// Whether the workers' work, spread over them, would fit into the time the steps leave: above 1 it does not.
    pub fn load(&self) -> Option<f64> {
        let rest_ms = self.window.step_ms() - self.window.ms_per_step(Phase::Data);
        Some(self.loader.prepare_ms()? / self.workers as f64 / rest_ms.max(1e-3))
    }

    /// The workers' average work does not fit into the time the steps leave: a fifth is kept for what is uneven.
    pub fn overloaded(&self) -> Option<bool> {
        Some(self.load()? >= OVERLOAD)
    }
}

impl<'a> Analysis<'a> {
    pub fn new(data: &'a RunData) -> Self {
        let stepped = data.steps.iter().any(|tick| tick.steps > 0);
        let window = match Window::find(data) {
            None if !stepped => Window::without_steps(data),
            found => found,
        };
        Self::over(data, window)
    }

    /// Of a run that was measured on purpose: so many steady seconds are enough.
    pub fn lasting(data: &'a RunData, least_s: f64) -> Self {
        Self::over(data, Window::lasting(data, least_s))
    }

    fn over(data: &'a RunData, window: Option<Window>) -> Self {
        let range = window.as_ref().map_or((0.0, f64::INFINITY), Window::range);
        let facts = Facts::new(&data.facts);
        let mut analysis = Self {
            data,
            time: TimeTable::default(),
            account: None,
            lines: Lines::default(),
            loaders: loaders::digest(data, &facts, range),
            syncs: syncs::digest(data, range),
            host: Host::new(data, range),
            workers: Workers::new(data, range),
            pages: Pages::new(data, range),
            gpus: gpus::digest(data, range),
            kernels: Kernels::of(data),
            spans: Spans::new(data, range),
            collectives: Collectives::new(data, range),
            ranks: None,
            facts,
            window,
        };
        analysis.account = analysis
            .window
            .as_ref()
            .and_then(|window| Account::new(data, window));
        analysis.lines = Lines::of(data, analysis.account.as_ref(), range);
        analysis.time = TimeTable::new(data, analysis.waiting_in_copies());
        analysis
    }

    /// Made without looking into a program: by `flatout monitor`, or out of another tool's log.
    pub fn is_from_outside(&self) -> bool {
        let outside = matches!(self.data.info.kind.as_str(), "monitor" | "import");
        outside && self.account.is_none() && !self.data.steps.iter().any(|tick| tick.steps > 0)
    }

    /// The window's wall time; 0 without a window.
    pub fn wall_s(&self) -> f64 {
        self.window.as_ref().map_or(0.0, Window::wall_s)
    }

    /// The share of the window's wall time in a phase; 0 without a window.
    pub fn share(&self, phase: Phase) -> f64 {
        self.window.as_ref().map_or(0.0, |window| window.share(phase))
    }

    /// The share of the time in copies to the device that waits for the device.
    pub fn waiting_in_copies(&self) -> f64 {
        copies::waiting_share(self)
    }

    /// The share of the wall time that copies, without waiting for the device.
    pub fn copying_share(&self) -> f64 {
        self.share(Phase::Transfer) * (1.0 - self.waiting_in_copies())
    }

    /// The share of the wall time that computes, launches work or waits for the device.
    pub fn computing_share(&self) -> f64 {
        let waiting = self.share(Phase::Transfer) * self.waiting_in_copies();
        self.share(Phase::Compute) + self.share(Phase::Sync) + waiting
    }

    /// A fact of the training's batches.
    pub fn of_the_input(&self, key: &str) -> Option<&Fact> {
        let own = self
            .train_loader()
            .and_then(|loader| self.facts.scoped(key, &format!("loader.{}", loader.id)));
        own.or_else(|| self.facts.get(key))
    }

    /// Where the model lies; CUDA may be initialised in a program whose model never left the CPU.
    pub fn device(&self) -> Device {
        let model = self.facts.text("model.device").filter(|name| name != "meta");
        match model.or_else(|| self.facts.text("device")).as_deref() {
            Some("cpu") => Device::Cpu,
            Some(name) if name.starts_with("cuda") => Device::Cuda,
            _ => Device::Unknown,
        }
    }

    /// The loader that feeds the steps: the one most time was spent on outside of evaluation.
    pub fn train_loader(&self) -> Option<&Loader> {
        self.loaders.iter().find(|loader| loader.feeds_training)
    }

    /// The window, the training loader, its workers and the share of time they are waited for, when there are workers
    /// and the wait is worth a warning.
    pub fn starved_by_workers(&self) -> Option<Starved<'_>> {
        let (window, loader) = (self.window.as_ref()?, self.train_loader()?);
        let share = window.share(Phase::Data);
        let workers = loader.num_workers.filter(|workers| *workers > 0)?;
        (share >= WARNING_SHARE).then_some(Starved {
            window,
            loader,
            workers,
            share,
        })
    }

    /// Seconds that starting and ending workers took from the steps, at least and at most, given those until the first
    /// batches. Making an iterator and ending its workers is waiting for data but in no batch's wait; waiting for a first
    /// batch is in both.
    pub fn restart_s(&self, start_s: f64) -> (f64, f64) {
        let data_s = self
            .window
            .as_ref()
            .map_or(0.0, |window| window.seconds(Phase::Data));
        let counted = self.loaders.iter().any(|loader| loader.batches > 0);
        let in_batches: f64 = self.loaders.iter().map(|loader| loader.wait_s).sum();
        let outside_s = if counted && start_s > 0.0 {
            (data_s - in_batches).max(0.0)
        } else {
            0.0
        };
        (
            start_s.max(outside_s).min(data_s),
            (start_s + outside_s).min(data_s),
        )
    }

    /// CPUs that nobody uses, of those the program may use.
    pub fn free_cpus(&self) -> Option<f64> {
        Some(self.usable_cpus()? as f64 * (1.0 - self.host.cpu_util?).max(0.0))
    }

    /// Whether another worker would find a CPU: half of one on a small machine, a tenth of a large one.
    pub fn room_for_workers(&self) -> Option<bool> {
        Some(self.free_cpus()? >= (self.usable_cpus()? as f64 * 0.1).max(0.5))
    }

    /// Ranks that this record has, on one machine.
    pub fn local_ranks(&self) -> u64 {
        self.ranks
            .as_ref()
            .map_or(1, |ranks| ranks.rows.len().max(1) as u64)
    }

    /// CPUs the program may use, from the record.
    pub fn usable_cpus(&self) -> Option<usize> {
        self.data.info.host.as_ref().map(|host| host.cpus.count())
    }

    /// Share of the window in which the device computed: the smaller of what events around the steps and what the
    /// driver's utilisation say, since the first counts gaps between kernels as busy. `None` without either.
    pub fn device_busy_share(&self) -> Option<f64> {
        if let Some(traced) = self.traced_busy_share() {
            return Some(traced);
        }
        if self.device() != Device::Cuda {
            return None;
        }
        let events = self.window.as_ref().and_then(Window::busy_share);
        let driver = self.busiest_gpu().and_then(|gpu| gpu.util);
        match (events, driver) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Share of the time in which the GPU computed or communicated, from traces of it; `None` without traces. A GPU that only copies
    /// waits for its input, whatever the driver's utilization says.
    pub fn traced_busy_share(&self) -> Option<f64> {
        gpu_idle_share(self.data).map(|idle| (1.0 - idle - self.traced_copying_share()).max(0.0))
    }

    /// Share of the traced time in which the GPU copied and did nothing else.
    pub fn traced_copying_share(&self) -> f64 {
        let windows = &self.data.windows;
        let wall: f64 = windows.iter().map(|window| window.wall_ms).sum();
        let copying: f64 = windows.iter().map(|window| window.copying_ms).sum();
        if wall > 0.0 { copying / wall } else { 0.0 }
    }

    /// Share of the GPU's processors that work while it reads busy: some kernel runs, on how much of the chip? `None` where
    /// the card does not tell.
    pub fn processors_at_work(&self) -> Option<f64> {
        let busy = self.device_busy_share().filter(|busy| *busy > 0.0)?;
        Some(self.busiest_gpu()?.sm_activity? / busy)
    }

    /// Seconds in which the device waited for the host to launch work: its idle time less the phases that explain it.
    /// `None` on the CPU, and where the busy share is unknown.
    pub fn dispatch_idle_s(&self) -> Option<f64> {
        let window = self.window.as_ref()?;
        let idle_s = window.wall_s() * (1.0 - self.device_busy_share()?);
        let explained_s: f64 = [
            Phase::Data,
            Phase::Transfer,
            Phase::Eval,
            Phase::Checkpoint,
            Phase::Other,
        ]
        .iter()
        .map(|phase| window.seconds(*phase))
        .sum::<f64>()
            + window.unexplained_s();
        Some((idle_s - explained_s).clamp(0.0, window.seconds(Phase::Compute)))
    }

    /// The GPU the run worked on, or the one that worked most.
    pub fn busiest_gpu(&self) -> Option<&Gpu> {
        self.gpus
            .iter()
            .max_by(|a, b| a.util.unwrap_or(-1.0).total_cmp(&b.util.unwrap_or(-1.0)))
    }

    /// "time waiting for the batch: 61% (limit 10%)".
    pub fn phase_evidence(&self, phase: Phase, threshold: f64) -> Evidence {
        let evidence =
            Evidence::new(phase_name(phase), self.share(phase) * 100.0, "%").against(threshold * 100.0);
        self.in_window(evidence)
    }

    /// Notes on an evidence that it was taken over the whole run: compiling and running out of memory are no matter of the
    /// steady window.
    pub fn in_run(&self, evidence: Evidence) -> Evidence {
        evidence.over(0.0, self.time.total_s)
    }

    /// The user's line that mentions one of these, the first text first: where something is set up.
    pub fn mention(&self, texts: &[&str]) -> Option<Place> {
        let lines = &self.data.lines;
        let found = texts
            .iter()
            .find_map(|text| lines.iter().find(|line| line.text.contains(text)))?;
        Some(Place::new(found.file.clone(), found.line))
    }

    /// A line of the training loop, as far as one is known: where gradients are zeroed.
    pub fn loop_place(&self) -> Option<Place> {
        self.facts.place("zero_grad.set_to_none")
    }

    /// Notes on an evidence that it was taken over the steady window.
    pub fn in_window(&self, evidence: Evidence) -> Evidence {
        match &self.window {
            Some(window) => evidence.over(window.start_s, window.end_s),
            None => evidence,
        }
    }
}

/// What the main thread does in a phase, in words.
pub fn phase_name(phase: Phase) -> Message {
    match phase {
        Phase::Data => message!(en: "time waiting for batches", zh: "等待 batch 的时间"),
        Phase::Transfer => message!(en: "time copying to the GPU", zh: "拷贝到设备的时间"),
        Phase::Compute => message!(en: "time computing or launching work", zh: "计算或下发计算的时间"),
        Phase::Sync => message!(en: "time blocked on the GPU", zh: "阻塞等待设备的时间"),
        Phase::Eval => message!(en: "time in evaluation", zh: "评估的时间"),
        Phase::Checkpoint => message!(en: "time saving checkpoints", zh: "保存 checkpoint 的时间"),
        Phase::Other => {
            message!(en: "time in the program's own Python code", zh: "程序自身 Python 代码的时间")
        }
    }
}
