//! The one state behind all functions: the trace, the faults, and when it began.

use crate::fault::{Faults, Field, StartFault};
use crate::trace::{Frame, GpuTrace, Trace, built_in, recording};
use nvml_wrapper_sys::bindings::*;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

pub type Code = nvmlReturn_t;
pub const SUCCESS: Code = nvmlReturn_enum_NVML_SUCCESS;
pub const UNINITIALIZED: Code = nvmlReturn_enum_NVML_ERROR_UNINITIALIZED;
pub const INVALID_ARGUMENT: Code = nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
pub const NOT_SUPPORTED: Code = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
pub const NOT_FOUND: Code = nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
pub const INSUFFICIENT_SIZE: Code = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
pub const GPU_IS_LOST: Code = nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
pub const NO_DATA: Code = nvmlReturn_enum_NVML_ERROR_NO_DATA;

pub struct World {
    pub trace: Trace,
    pub faults: Faults,
    began: Instant,
    began_unix: Duration,
}

static WORLD: OnceLock<Result<World, Code>> = OnceLock::new();
static USERS: AtomicU32 = AtomicU32::new(0);
/// Held while a slow call sleeps, as the driver holds its own lock: other calls wait behind it.
static DRIVER_LOCK: RwLock<()> = RwLock::new(());

pub fn start() -> Code {
    match WORLD.get_or_init(World::load) {
        Ok(_) => {
            USERS.fetch_add(1, Ordering::SeqCst);
            SUCCESS
        }
        Err(code) => *code,
    }
}

pub fn stop() -> Code {
    let left = USERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |users| users.checked_sub(1));
    if left.is_ok() { SUCCESS } else { UNINITIALIZED }
}

/// The world, once started.
pub fn world() -> Result<&'static World, Code> {
    match WORLD.get() {
        Some(Ok(world)) if USERS.load(Ordering::SeqCst) > 0 => Ok(world),
        _ => Err(UNINITIALIZED),
    }
}

impl World {
    fn load() -> Result<Self, Code> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        // A mistake in the set-up must not look like a driver that works.
        let refuse = |what: String| {
            eprintln!("flatout's stand-in for NVML: {what}");
            nvmlReturn_enum_NVML_ERROR_UNKNOWN
        };
        let faults = Faults::parse(&variable("FLATOUT_FAKE_NVML_FAULT").unwrap_or_default())
            .map_err(|word| refuse(format!("`{word}` is no fault")))?;
        match faults.start {
            Some(StartFault::Mismatch) => return Err(nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH),
            Some(StartFault::NoDriver) => return Err(nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED),
            Some(StartFault::NoPermission) => return Err(nvmlReturn_enum_NVML_ERROR_NO_PERMISSION),
            None => {}
        }
        let mut trace = match variable("FLATOUT_FAKE_NVML") {
            Some(folder) => recording::load(Path::new(&folder)).map_err(refuse)?,
            None => built_in::trace(),
        };
        if let Some(count) = variable("FLATOUT_FAKE_NVML_GPUS") {
            let count = count.parse().ok().filter(|count| (1..=64).contains(count));
            trace = trace.with_gpus(count.ok_or_else(|| refuse("give 1 to 64 GPUs".into()))?);
        }
        if faults.no_gpus {
            trace.gpus.clear();
        }
        Ok(Self {
            trace,
            faults,
            began: Instant::now(),
            began_unix: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        })
    }

    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// The wall clock in microseconds, as the driver stamps its readings.
    pub fn unix_us(&self, seconds: f64) -> u64 {
        let since = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        u64::try_from((self.began_unix + since).as_micros()).unwrap_or(u64::MAX)
    }

    /// Seconds since the start at a time of the wall clock; negative before it.
    pub fn seconds_at(&self, unix_us: u64) -> f64 {
        (unix_us as f64 - self.began_unix.as_micros() as f64) / 1e6
    }

    /// Waits where a fault says that this call is slow, or behind one that is.
    pub fn delay(&self, field: Field) {
        match self.faults.slow {
            Some((seconds, from)) if field == Field::Util && self.seconds() >= from => {
                let _held = DRIVER_LOCK.write().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(Duration::from_secs_f64(seconds));
            }
            _ => drop(DRIVER_LOCK.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// A GPU now.
pub struct Now<'a> {
    pub world: &'a World,
    pub gpu: &'a GpuTrace,
    pub index: u32,
    pub seconds: f64,
}

impl Now<'_> {
    pub fn frame(&self) -> Option<&Frame> {
        self.frame_at(self.seconds)
    }

    pub fn frame_at(&self, seconds: f64) -> Option<&Frame> {
        let duration_s = self.world.trace.duration_s.max(1e-3);
        self.gpu.at((seconds + self.gpu.shift_s).rem_euclid(duration_s))
    }

    /// How often the trace was played to its end.
    pub fn rounds(&self) -> f64 {
        ((self.seconds + self.gpu.shift_s) / self.world.trace.duration_s.max(1e-3)).floor()
    }
}

/// The GPU behind a handle, if it is there and can tell `field`.
pub fn now(device: nvmlDevice_t, field: Field) -> Result<Now<'static>, Code> {
    let world = world()?;
    let index = (device as usize).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    let gpu = world.trace.gpus.get(index).ok_or(INVALID_ARGUMENT)?;
    let index = u32::try_from(index).map_err(|_| INVALID_ARGUMENT)?;
    world.delay(field);
    let seconds = world.seconds();
    let lost = |(gpu, from): &(u32, f64)| *gpu == index && seconds >= *from;
    if world.faults.lost.iter().any(lost) {
        return Err(GPU_IS_LOST);
    }
    if world.faults.not_supported.contains(&field) || !gpu.tells(field) {
        return Err(NOT_SUPPORTED);
    }
    Ok(Now {
        world,
        gpu,
        index,
        seconds,
    })
}

/// The handle of a GPU: its number from 1, so that it is never null.
pub fn handle(index: usize) -> nvmlDevice_t {
    std::ptr::without_provenance_mut(index + 1)
}
