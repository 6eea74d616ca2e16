//! Where the plan runs. The CPU is offered when CUDA cannot be used, never taken silently.

use crate::settings::{Amp, Settings};
use crate::{TrainError, memory};
use flatout_core::cpus::UsableCpus;
use flatout_core::memory::UsableMemory;
use flatout_core::{Message, message};
use flatout_engine::cuda::{CudaSession, Found, Precision};
use flatout_engine::{CpuSession, EngineError, Plan, Session};

/// A session, and what there is to say about the choice.
pub struct Opened {
    pub session: Box<dyn Session>,
    /// `cpu` or `cuda`, as the record names it.
    pub device: &'static str,
    /// What `--device` would have to say to get the same one.
    pub name: String,
    /// What products are made in.
    pub precision: &'static str,
    pub notes: Vec<Message>,
}

/// `auto`, `cpu`, `cuda` or `cuda:N`.
pub fn open(settings: &Settings, plan: impl Fn() -> Result<Plan, TrainError>) -> Result<Opened, TrainError> {
    let wrong = || TrainError::Value {
        setting: "device".to_owned(),
        value: settings.device.clone(),
        expected: message!(en: "auto, cpu, cuda or cuda:N", zh: "auto、cpu、cuda 或 cuda:N"),
    };
    let (kind, number) = match settings.device.split_once(':') {
        Some((kind, number)) => (kind, number.parse().map_err(|_| wrong())?),
        None => (settings.device.as_str(), 0),
    };
    match kind {
        "cpu" => cpu(settings, plan()?, Vec::new()),
        "cuda" | "gpu" => Ok(cuda(settings, plan()?, number)?),
        "auto" => match cuda(settings, plan()?, number) {
            Ok(opened) => Ok(opened),
            // There is a card; what does not fit is made smaller, not sent elsewhere.
            Err(error @ EngineError::OutOfMemory { .. }) => Err(error.into()),
            Err(error) => {
                let reason = flatout_core::Explain::message(&error);
                let note = Message {
                    en: format!("training on the CPU: {}", reason.en),
                    zh: format!("在 CPU 上训练：{}", reason.zh),
                };
                cpu(settings, plan()?, vec![note])
            }
        },
        _ => Err(wrong()),
    }
}

fn cuda(settings: &Settings, plan: Plan, ordinal: usize) -> Result<Opened, EngineError> {
    let precision = precision(settings.amp);
    let session = CudaSession::new(plan, ordinal, precision, settings.seed)?;
    within_limit(settings.memory_limit, session.memory_bytes())?;
    let libraries = taken(session.libraries());
    Ok(Opened {
        session: Box::new(session),
        device: "cuda",
        name: format!("cuda:{ordinal}"),
        precision: precision.name(),
        notes: vec![libraries],
    })
}

/// Which of CUDA's libraries are used: a machine may have several.
fn taken(libraries: &[Found]) -> Message {
    let place = |found: &Found| match &found.path {
        Some(path) => path.display().to_string(),
        None => found.name.to_owned(),
    };
    let files = libraries.iter().map(place).collect::<Vec<_>>().join(", ");
    message!(en: "CUDA: {files}", zh: "CUDA 库：{files}")
}

fn precision(amp: Amp) -> Precision {
    match amp {
        Amp::Off => Precision::F32,
        Amp::Tf32 => Precision::Tf32,
        Amp::Bf16 => Precision::Bf16,
        Amp::Fp16 => Precision::F16,
    }
}

fn cpu(settings: &Settings, plan: Plan, notes: Vec<Message>) -> Result<Opened, TrainError> {
    // Linux promises memory it does not have and kills whoever uses it: what is free is asked for before it is taken.
    let free =
        || UsableMemory::here().map(|room| (room.free_bytes as f64 * (1.0 - memory::FREE_RATIO)) as u64);
    let limit = settings.memory_limit.or_else(free);
    within_limit(limit, memory::plan_bytes(&plan))?;
    let session = CpuSession::<f32>::new(plan, threads(settings), settings.seed)?;
    within_limit(limit, session.memory_bytes())?;
    Ok(Opened {
        session: Box::new(session),
        device: "cpu",
        name: "cpu".to_owned(),
        precision: "f32",
        notes,
    })
}

fn within_limit(limit: Option<u64>, wanted_bytes: u64) -> Result<(), EngineError> {
    match limit {
        Some(limit) if wanted_bytes > limit => Err(EngineError::OutOfMemory { wanted_bytes }),
        _ => Ok(()),
    }
}

/// The CPUs that this program may use.
pub fn usable_threads() -> usize {
    UsableCpus::here().count()
}

/// Those that a session of these settings has.
pub fn threads(settings: &Settings) -> usize {
    match settings.threads {
        _ if settings.naive => 1,
        Some(threads) => threads.min(usable_threads()),
        None => usable_threads(),
    }
}
