//! AMD GPUs and Huawei Ascend NPUs, each through its vendor's library, opened at run time. Neither source has been run on
//! hardware: structures and signatures follow the vendors' public headers, and tests run against libraries that answer like them.
//!
//! A record has the devices of one vendor: NVIDIA's where its driver is loaded, else AMD's, else Huawei's.

use super::fields::Trouble;
use super::gpus::GpuSource;
use crate::scope::{GpuName, GpuScope};
use flatout_core::{Explain, Message, explained, message};
use std::ffi::OsString;
use std::path::Path;

pub mod amd;
pub mod ascend;

/// Above these a value is the driver's error, not a measurement.
const MOST_WATTS: f64 = 20_000.0;
const MOST_DEGREES: f64 = 250.0;
const MOST_MEGAHERTZ: f64 = 100_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
    Ascend,
}

/// Whose devices this machine has. A variable that names a library decides; then a driver that is loaded.
pub fn vendor() -> Vendor {
    let named = |variable: &str| std::env::var_os(variable).is_some_and(|path| !path.is_empty());
    let found = |paths: &[&str]| paths.iter().any(|path| Path::new(path).exists());
    if super::nvml::library_path().is_some() {
        Vendor::Nvidia
    } else if named(amd::LIBRARY_VARIABLE) {
        Vendor::Amd
    } else if named(ascend::LIBRARY_VARIABLE) {
        Vendor::Ascend
    } else if found(&["/dev/nvidiactl", "/proc/driver/nvidia"]) {
        Vendor::Nvidia
    } else if found(&["/dev/kfd"]) {
        Vendor::Amd
    } else if found(&["/dev/davinci_manager"]) {
        Vendor::Ascend
    } else {
        Vendor::Nvidia
    }
}

impl Vendor {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Ascend => "Ascend",
        }
    }

    /// The source of this vendor's devices. `scope` is what `--gpu` or NVIDIA's variables say.
    pub fn start(self, scope: GpuScope, interval: std::time::Duration) -> GpuSource {
        let own = |variables: fn() -> GpuScope| {
            if scope.is_explicit() {
                scope.clone()
            } else {
                variables()
            }
        };
        match self {
            Self::Nvidia => super::nvml::start(scope, interval),
            Self::Amd => amd::start(own(amd::scope)),
            Self::Ascend => ascend::start(own(ascend::scope)),
        }
    }
}

/// Why there are no values of these devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceleratorProblem {
    NoLibrary {
        vendor: Vendor,
        tried: String,
        detail: String,
    },
    NoDevices {
        vendor: Vendor,
    },
    NotThere {
        vendor: Vendor,
        name: GpuName,
        count: usize,
    },
    Failed {
        vendor: Vendor,
        detail: String,
    },
}

impl Explain for AcceleratorProblem {
    fn message(&self) -> Message {
        match self {
            Self::NoLibrary { vendor, tried, .. } => {
                let vendor = vendor.name();
                message!(en: "the {vendor} driver is loaded, but its library was not found ({tried})", zh: "{vendor} 驱动已加载，但找不到它的库（{tried}）")
            }
            Self::NoDevices { vendor } => {
                let vendor = vendor.name();
                message!(en: "the {vendor} driver sees no device", zh: "{vendor} 驱动没有发现设备")
            }
            Self::NotThere { vendor, name, count } => {
                let vendor = vendor.name();
                message!(en: "there is no GPU {name}; the {vendor} driver sees {count}", zh: "没有 GPU {name}；{vendor} 驱动共发现 {count} 块")
            }
            Self::Failed { vendor, detail } => {
                let vendor = vendor.name();
                message!(en: "the {vendor} library failed: {detail}", zh: "{vendor} 库出错：{detail}")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        let vendor = match self {
            Self::NoLibrary { vendor, .. }
            | Self::NoDevices { vendor }
            | Self::NotThere { vendor, .. }
            | Self::Failed { vendor, .. } => *vendor,
        };
        let (tool, variable, package) = match vendor {
            Vendor::Ascend => ("npu-smi info", ascend::LIBRARY_VARIABLE, "Ascend HDK"),
            _ => ("amd-smi list", amd::LIBRARY_VARIABLE, "amd-smi-lib"),
        };
        Some(match self {
            Self::NoLibrary { .. } => message!(
                en: "install {package}, or name the library in {variable}",
                zh: "请安装 {package}，或用 {variable} 指定库文件"
            ),
            Self::NotThere { .. } => {
                message!(en: "list the GPUs: flatout doctor", zh: "列出 GPU：flatout doctor")
            }
            _ => {
                message!(en: "check what the driver itself reports: {tool}", zh: "查看驱动自身的信息：{tool}")
            }
        })
    }
}
explained!(AcceleratorProblem);

/// A vendor's library. It stays loaded until the process ends: such libraries start threads and register exit handlers.
struct Library(std::mem::ManuallyDrop<libloading::Library>);

impl Library {
    /// The one that `variable` names, else the first of `names` that opens.
    fn open(vendor: Vendor, variable: &str, names: &[&str]) -> Result<Self, AcceleratorProblem> {
        let named = std::env::var_os(variable).filter(|path| !path.is_empty());
        let candidates: Vec<OsString> =
            named.map_or_else(|| names.iter().map(OsString::from).collect(), |path| vec![path]);
        let mut detail = String::new();
        for candidate in &candidates {
            // SAFETY: the vendor's own library, whose initializers the vendor's tools run as well.
            match unsafe { libloading::Library::new(candidate) } {
                Ok(library) => return Ok(Self(std::mem::ManuallyDrop::new(library))),
                // What dlopen says about the first name is what helps.
                Err(error) if detail.is_empty() => detail = error.to_string(),
                Err(_) => {}
            }
        }
        Err(AcceleratorProblem::NoLibrary {
            vendor,
            tried: candidates
                .first()
                .map_or(String::new(), |name| name.to_string_lossy().into_owned()),
            detail,
        })
    }

    /// A function of the library, or why it cannot be called.
    ///
    /// # Safety
    /// `F` is the function's type in the vendor's header.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Trouble> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.0.get::<F>(name.as_bytes()) }
            .map(|symbol| *symbol)
            .map_err(|_| Trouble::not_in_driver())
    }
}

/// Which of the devices are in scope, by position, and what the scope names in vain.
fn pick(
    vendor: Vendor,
    scope: &GpuScope,
    uuids: &[Option<String>],
) -> Result<(Vec<usize>, Vec<String>), AcceleratorProblem> {
    let count = uuids.len();
    if count == 0 {
        return Err(AcceleratorProblem::NoDevices { vendor });
    }
    let everything = || (0..count).collect::<Vec<_>>();
    let Some(wanted) = scope.wanted.as_deref() else {
        return Ok((everything(), Vec::new()));
    };
    // The batch system and the container runtime use the host's numbers, while the driver may show only the job's devices.
    let hosts_numbers = scope
        .origin
        .is_some_and(|origin| origin.starts_with("SLURM_") || origin == "ASCEND_VISIBLE_DEVICES");
    if hosts_numbers && wanted.len() == count {
        return Ok((everything(), Vec::new()));
    }
    let (mut picked, mut notes) = (Vec::new(), Vec::new());
    for name in wanted {
        let position = match name {
            GpuName::Index(index) => usize::try_from(*index).ok().filter(|index| *index < count),
            GpuName::Uuid(beginning) | GpuName::Mig(beginning) => {
                let bare = beginning.trim_start_matches("GPU-");
                uuids
                    .iter()
                    .position(|uuid| uuid.as_ref().is_some_and(|uuid| uuid.starts_with(bare)))
            }
        };
        match position {
            Some(position) if picked.contains(&position) => {}
            Some(position) => picked.push(position),
            None if scope.is_explicit() => {
                return Err(AcceleratorProblem::NotThere {
                    vendor,
                    name: name.clone(),
                    count,
                });
            }
            None => {
                let origin = scope.origin.unwrap_or_default();
                notes.push(format!(
                    "gpu: {origin} names {name}, which the driver does not show"
                ));
            }
        }
    }
    if picked.is_empty() && hosts_numbers {
        return Ok((everything(), notes));
    }
    Ok((picked, notes))
}

/// What is said once in every record that such a source writes.
fn not_run_on_hardware(library: &str) -> String {
    format!("gpu: read through {library}; this source has not been run on hardware")
}

/// A text that C ended with a zero.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A device for `flatout doctor`.
pub struct Listed {
    pub index: u32,
    pub info: flatout_record::GpuInfo,
}

/// What the library shows: its name with version, and the devices.
pub fn list(vendor: Vendor) -> Result<(String, Vec<Listed>), AcceleratorProblem> {
    match vendor {
        Vendor::Nvidia => Err(AcceleratorProblem::NoDevices { vendor }),
        Vendor::Amd => amd::list(),
        Vendor::Ascend => ascend::list(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(scope: &GpuScope, count: usize) -> Result<Vec<usize>, AcceleratorProblem> {
        let uuids: Vec<_> = (0..count).map(|index| Some(format!("{index}aff-1"))).collect();
        pick(Vendor::Amd, scope, &uuids).map(|(picked, _)| picked)
    }

    #[test]
    fn a_scope_picks_devices() {
        let scope = |text: &str| GpuScope::parse(text).unwrap();
        assert_eq!(picked(&GpuScope::all(), 3), Ok(vec![0, 1, 2]));
        assert_eq!(picked(&scope("2,0,2"), 3), Ok(vec![2, 0]));
        assert_eq!(picked(&scope("GPU-1aff"), 3), Ok(vec![1]));
        assert!(matches!(
            picked(&scope("3"), 3),
            Err(AcceleratorProblem::NotThere { count: 3, .. })
        ));
        assert!(matches!(
            picked(&GpuScope::all(), 0),
            Err(AcceleratorProblem::NoDevices { .. })
        ));
    }

    #[test]
    fn numbers_of_the_host_do_not_hide_the_devices_of_a_job() {
        let slurm = GpuScope {
            wanted: Some(vec![GpuName::Index(6), GpuName::Index(7)]),
            origin: Some("SLURM_JOB_GPUS"),
        };
        assert_eq!(picked(&slurm, 2), Ok(vec![0, 1]));
        let own = GpuScope {
            origin: Some("HIP_VISIBLE_DEVICES"),
            ..slurm
        };
        assert_eq!(picked(&own, 2), Ok(vec![]));
    }
}
