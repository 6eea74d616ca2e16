//! Finding and opening the driver's library, and saying plainly why it did not work.

use crate::scope::GpuName;
use flatout_core::{Explain, Message, explained, message};
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use std::ffi::{OsStr, OsString};

/// Names another library to load: the stand-in without a GPU, or a driver in an unusual place.
const LIBRARY_VARIABLE: &str = "FLATOUT_NVML_LIB";
/// The driver installs the first; the second comes with development packages only.
const LIBRARY_NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// Why there are no GPU values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NvmlProblem {
    /// No `libnvidia-ml.so.1`: no NVIDIA driver here, or a container without it.
    NoLibrary {
        tried: String,
        detail: String,
    },
    /// The library is there, the kernel module is not loaded.
    NoDriver,
    /// The library and the loaded kernel module are of different versions: the driver was updated without a restart.
    VersionMismatch {
        kernel: Option<String>,
    },
    NoPermission,
    /// The driver works and sees no GPU.
    NoGpus,
    /// `--gpu` names one that is not there.
    GpuNotThere {
        name: GpuName,
        count: u32,
    },
    Failed {
        detail: String,
    },
}

impl Explain for NvmlProblem {
    fn message(&self) -> Message {
        match self {
            Self::NoLibrary { tried, .. } => {
                message!(en: "no NVIDIA driver library was found ({tried})", zh: "找不到 NVIDIA 驱动库（{tried}）")
            }
            Self::NoDriver => message!(en: "the NVIDIA driver is not loaded", zh: "NVIDIA 驱动未加载"),
            Self::VersionMismatch { kernel: Some(kernel) } => message!(
                en: "the NVIDIA library does not match the loaded kernel module ({kernel})",
                zh: "NVIDIA 驱动库与已加载的内核模块（{kernel}）版本不一致"
            ),
            Self::VersionMismatch { kernel: None } => message!(
                en: "the NVIDIA library does not match the loaded kernel module",
                zh: "NVIDIA 驱动库与已加载的内核模块版本不一致"
            ),
            Self::NoPermission => {
                message!(en: "no permission to use the NVIDIA driver", zh: "没有访问 NVIDIA 驱动的权限")
            }
            Self::NoGpus => message!(en: "the NVIDIA driver reports no GPU", zh: "NVIDIA 驱动没有发现 GPU"),
            Self::GpuNotThere { name, count } => {
                message!(en: "there is no GPU {name}; the driver reports {count} GPUs", zh: "没有 GPU {name}；驱动共发现 {count} 块 GPU")
            }
            Self::Failed { detail } => {
                message!(en: "the NVIDIA driver failed: {detail}", zh: "NVIDIA 驱动出错：{detail}")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::NoLibrary { .. } => message!(
                en: "install the driver; in a container, start it with --gpus all; or set the path of the \
                library in {LIBRARY_VARIABLE}",
                zh: "请安装驱动；在容器中请用 --gpus all 启动；也可用 {LIBRARY_VARIABLE} 指定库文件"
            ),
            Self::NoDriver => {
                message!(en: "load it: sudo modprobe nvidia", zh: "加载驱动：sudo modprobe nvidia")
            }
            Self::VersionMismatch { .. } => message!(
                en: "the driver was updated while loaded: restart the machine, or reload the nvidia kernel \
                modules",
                zh: "驱动升级后尚未重启：请重启机器，或重新加载 nvidia 内核模块"
            ),
            Self::NoPermission => {
                message!(en: "check the permissions of /dev/nvidia*: ls -l /dev/nvidia*", zh: "请检查 /dev/nvidia* 的权限：ls -l /dev/nvidia*")
            }
            Self::NoGpus => {
                message!(en: "check the PCI bus: lspci | grep -i nvidia", zh: "查看 PCI 总线：lspci | grep -i nvidia")
            }
            Self::GpuNotThere { .. } => {
                message!(en: "list the GPUs: flatout doctor", zh: "列出 GPU：flatout doctor")
            }
            Self::Failed { .. } => {
                message!(en: "check whether nvidia-smi works", zh: "检查 nvidia-smi 能否正常运行")
            }
        })
    }
}
explained!(NvmlProblem);

/// The library named by `FLATOUT_NVML_LIB`, if one is.
pub fn library_path() -> Option<OsString> {
    std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty())
}

/// Opens the driver. Takes milliseconds with persistence mode, a second and more without.
pub fn open() -> Result<Nvml, NvmlProblem> {
    match library_path() {
        Some(path) => load(&path).map_err(|error| problem(error, &path.to_string_lossy())),
        None => LIBRARY_NAMES
            .iter()
            .map(|name| load(OsStr::new(name)))
            .reduce(|first, second| match first {
                Err(NvmlError::LibloadingError(_)) => second,
                decided => decided,
            })
            .unwrap_or(Err(NvmlError::LibraryNotFound))
            .map_err(|error| problem(error, LIBRARY_NAMES[0])),
    }
}

fn load(path: &OsStr) -> Result<Nvml, NvmlError> {
    Nvml::builder().lib_path(path).init()
}

fn problem(error: NvmlError, tried: &str) -> NvmlProblem {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::FailedToLoadSymbol(_) => {
            NvmlProblem::NoLibrary {
                tried: tried.to_owned(),
                detail: error.to_string(),
            }
        }
        NvmlError::DriverNotLoaded => NvmlProblem::NoDriver,
        NvmlError::LibRmVersionMismatch => NvmlProblem::VersionMismatch {
            kernel: kernel_module_version(),
        },
        NvmlError::NoPermission => NvmlProblem::NoPermission,
        NvmlError::NotFound => NvmlProblem::NoGpus,
        other => NvmlProblem::Failed {
            detail: other.to_string(),
        },
    }
}

/// `570.86.10`, from the loaded kernel module.
pub fn kernel_module_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let looks_right =
        |word: &&str| word.split('.').count() >= 2 && word.starts_with(|c: char| c.is_ascii_digit());
    text.lines()
        .next()?
        .split_whitespace()
        .find(looks_right)
        .map(str::to_owned)
}
