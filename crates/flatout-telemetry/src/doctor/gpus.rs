//! The driver and each GPU: what it is, how it is set, who else is on it.

use super::{Area, Check, Health};
use crate::scope::{GpuScope, SCOPE_VARIABLES};
use crate::sources::accelerators::{self, AcceleratorProblem, Vendor};
use crate::sources::nvml::{self, NvmlProblem};
use crate::sources::process_tree::member;
use flatout_core::{Explain, Message, message, units};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::{Device, Nvml};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Begins to ask the driver, in a thread of its own: it may take long, or never answer.
pub fn begin() -> Receiver<Vec<Check>> {
    let (send, receive) = channel();
    let asked = std::thread::Builder::new()
        .name("flatout-doctor".into())
        .spawn(move || {
            let _ = send.send(ask());
        });
    if let Err(error) = asked {
        log::warn!("the driver is not asked: {error}");
    }
    receive
}

/// What the driver said within `patience`.
pub fn finish(answer: Receiver<Vec<Check>>, patience: Duration) -> Vec<Check> {
    let mut checks = answer.recv_timeout(patience).unwrap_or_else(|_| {
        let seconds = patience.as_secs_f64();
        let slow = Check::new(
            "driver",
            Area::Gpu,
            Health::Problem,
            message!(en: "the GPU driver did not respond within {seconds} s", zh: "GPU 驱动在 {seconds} 秒内没有响应"),
        )
        .cost(message!(en: "every program that opens the GPU waits that long", zh: "每个打开 GPU 的程序都要等这么久"));
        vec![match accelerators::vendor() {
            Vendor::Nvidia => slow
                .remedy(message!(en: "enable persistence mode: sudo nvidia-smi -pm 1", zh: "打开持久模式：sudo nvidia-smi -pm 1")),
            _ => slow,
        }]
    });
    checks.extend(scope());
    checks
}

fn ask() -> Vec<Check> {
    let vendor = accelerators::vendor();
    if vendor != Vendor::Nvidia {
        return other_vendor(vendor);
    }
    let nvml = match nvml::open() {
        Ok(nvml) => nvml,
        Err(problem) => return vec![driver_problem(&problem)],
    };
    let versions = nvml::versions(&nvml);
    let version = |name: &str| versions.get(name).map_or("?", String::as_str);
    let (driver, cuda) = (version("driver"), version("cuda"));
    let mut checks = vec![
        Check::new(
            "driver",
            Area::Gpu,
            Health::Good,
            message!(en: "driver {driver}, NVML open, CUDA up to {cuda}", zh: "驱动 {driver}，NVML 可用，最高支持 CUDA {cuda}"),
        )
        .with("driver", driver)
        .with("cuda", cuda),
    ];
    match nvml.device_count() {
        Ok(0) | Err(_) => checks.push(driver_problem(&NvmlProblem::NoGpus)),
        Ok(count) => {
            for index in 0..count {
                gpu(&nvml, index, &mut checks);
            }
        }
    }
    checks
}

/// AMD's or Huawei's devices.
fn other_vendor(vendor: Vendor) -> Vec<Check> {
    let (library, devices) = match accelerators::list(vendor) {
        Ok(found) => found,
        Err(problem) => {
            let health = match problem {
                AcceleratorProblem::NoLibrary { .. } | AcceleratorProblem::NoDevices { .. } => {
                    Health::Missing
                }
                _ => Health::Problem,
            };
            let mut check = Check::new("driver", Area::Gpu, health, problem.message()).cost(nothing_seen());
            check.remedy = problem.hint();
            if let AcceleratorProblem::NoLibrary { detail, .. } = problem {
                check = check.with("detail", detail);
            }
            return vec![check];
        }
    };
    let driver = Check::new(
        "driver",
        Area::Gpu,
        Health::Note,
        message!(
            en: "{library} open; not run on hardware yet: compare its values with the vendor's own tool",
            zh: "{library} 可用；尚未在真实硬件上运行过：请与厂商自带工具的数值对照"
        ),
    )
    .with("library", library);
    let devices = devices.into_iter().map(|device| {
        let (index, info) = (device.index, device.info);
        let name = info.name.unwrap_or_else(|| "?".into());
        let memory = info.mem_total_bytes;
        let shown = memory.map_or("?".into(), |bytes| units::bytes(bytes as f64));
        Check::new(
            format!("gpu.{index}"),
            Area::Gpu,
            Health::Good,
            message!(en: "GPU {index}: {name}, memory {shown}", zh: "GPU {index}：{name}，显存 {shown}"),
        )
        .with("index", index)
        .with("name", name)
        .with("uuid", info.uuid)
        .with("mem_total_bytes", memory)
    });
    std::iter::once(driver).chain(devices).collect()
}

fn nothing_seen() -> Message {
    message!(
        en: "GPU metrics are unavailable; host metrics still work",
        zh: "看不到任何 GPU 信息；仍可查看主机"
    )
}

fn driver_problem(problem: &NvmlProblem) -> Check {
    let health = match problem {
        NvmlProblem::NoLibrary { .. } | NvmlProblem::NoGpus => Health::Missing,
        _ => Health::Problem,
    };
    let mut check = Check::new("driver", Area::Gpu, health, problem.message()).cost(nothing_seen());
    check.remedy = problem.hint();
    if let NvmlProblem::NoLibrary { detail, .. } = problem {
        check = check.with("detail", detail);
    }
    check
}

fn gpu(nvml: &Nvml, index: u32, checks: &mut Vec<Check>) {
    let device = match nvml.device_by_index(index) {
        Ok(device) => device,
        Err(error) => {
            let text =
                message!(en: "GPU {index} cannot be opened: {error}", zh: "GPU {index} 无法打开：{error}");
            checks.push(Check::new(
                format!("gpu.{index}"),
                Area::Gpu,
                Health::Problem,
                text,
            ));
            return;
        }
    };
    checks.push(identity(&device, index));
    checks.extend(gpm(&device, index));
    checks.extend(settings(&device, index));
    checks.extend(link(&device, index));
    checks.extend(others(nvml, &device, index));
}

fn identity(device: &Device<'_>, index: u32) -> Check {
    let name = device.name().unwrap_or_else(|_| "?".into());
    let memory = device.memory_info().ok().map(|memory| memory.total);
    let capability = device.cuda_compute_capability().ok();
    let shown_memory = memory.map_or("?".into(), |bytes| units::bytes(bytes as f64));
    let shown = capability
        .as_ref()
        .map_or("?".into(), |it| format!("{}.{}", it.major, it.minor));
    Check::new(
        format!("gpu.{index}"),
        Area::Gpu,
        Health::Good,
        message!(
            en: "GPU {index}: {name}, {shown_memory}, compute capability {shown}",
            zh: "GPU {index}：{name}，{shown_memory}，计算能力 {shown}"
        ),
    )
    .with("index", index)
    .with("name", name)
    .with("uuid", device.uuid().ok())
    .with("mem_total_bytes", memory)
    .with("compute_capability", capability.map(|it| (it.major, it.minor)))
}

fn gpm(device: &Device<'_>, index: u32) -> Option<Check> {
    let id = format!("gpu.{index}.gpm");
    let supported = device.gpm_support();
    if matches!(supported, Ok(true)) {
        let text = message!(en: "GPU {index}: GPM available (SM, tensor core and memory activity)", zh: "GPU \
        {index}：支持 GPM，可获知 SM、张量核心与显存活动");
        return Some(Check::new(id, Area::Gpu, Health::Good, text).with("gpm", true));
    }
    Some(
        Check::new(
            id,
            Area::Gpu,
            Health::Missing,
            message!(en: "GPU {index}: no GPM (it needs Hopper or newer)", zh: "GPU {index}：不支持 GPM（需要 Hopper 或更新架构）"),
        )
        .cost(message!(
            en: "\"utilization 100%\" may hide idle SMs, and nothing here can detect that",
            zh: "“利用率 100%”可能掩盖空闲的 SM，且无从得知"
        ))
        .with("gpm", false),
    )
}

/// MIG, ECC and persistence.
fn settings(device: &Device<'_>, index: u32) -> Option<Check> {
    let mig = device.mig_mode().ok().map(|mode| mode.current == 1);
    let ecc = device.is_ecc_enabled().ok().map(|state| state.currently_enabled);
    let persistence = device.is_in_persistent_mode().ok();
    let word = |state: Option<bool>| match state {
        Some(true) => message!(en: "on", zh: "开"),
        Some(false) => message!(en: "off", zh: "关"),
        None => message!(en: "unknown", zh: "未知"),
    };
    let (mig_word, ecc_word, persistence_word) = (word(mig), word(ecc), word(persistence));
    let text = Message {
        en: format!(
            "GPU {index}: MIG {}, ECC {}, persistence {}",
            mig_word.en, ecc_word.en, persistence_word.en
        ),
        zh: format!(
            "GPU {index}：MIG {}，ECC {}，持久模式 {}",
            mig_word.zh, ecc_word.zh, persistence_word.zh
        ),
    };
    let health = if persistence == Some(false) {
        Health::Note
    } else {
        Health::Good
    };
    let mut check = Check::new(format!("gpu.{index}.settings"), Area::Gpu, health, text)
        .with("mig", mig)
        .with("ecc", ecc)
        .with("persistence", persistence);
    if persistence == Some(false) {
        check = check
            .cost(message!(en: "the first program on an idle GPU waits a second or more for the driver", zh: "空闲 GPU 上的第一个程序要多等一秒以上"))
            .remedy(Message::verbatim("sudo nvidia-smi -pm 1"));
    }
    Some(check)
}

/// A link that is narrower than the board can do. Its generation drops when idle, so only the width tells.
fn link(device: &Device<'_>, index: u32) -> Option<Check> {
    let (width, most) = (
        device.current_pcie_link_width().ok()?,
        device.max_pcie_link_width().ok()?,
    );
    let generation = device.max_pcie_link_gen().ok()?;
    let narrow = width < most;
    let health = if narrow { Health::Problem } else { Health::Good };
    let text = message!(
        en: "GPU {index}: PCIe {generation}.0 with {width} of {most} lanes",
        zh: "GPU {index}：PCIe {generation}.0，{width}/{most} 通道"
    );
    let check = Check::new(format!("gpu.{index}.link"), Area::Gpu, health, text)
        .with("pcie_width", width)
        .with("pcie_width_max", most);
    Some(if narrow {
        check
            .cost(message!(en: "copies to the GPU are proportionally slower", zh: "主机到 GPU 的拷贝按同样比例变慢"))
            .remedy(message!(en: "reseat the GPU, or use another slot", zh: "重新插卡，或更换插槽"))
    } else {
        check
    })
}

fn others(nvml: &Nvml, device: &Device<'_>, index: u32) -> Option<Check> {
    let processes = device.running_compute_processes().ok()?;
    let own = std::process::id();
    let list: Vec<String> = processes
        .iter()
        .filter(|process| process.pid != own)
        .map(|process| {
            let pid = process.pid;
            let command = member::command(pid)
                .or_else(|| nvml.sys_process_name(pid, 256).ok())
                .unwrap_or_default();
            let short: String = command.chars().take(60).collect();
            match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => format!("{pid} {short} ({})", units::bytes(bytes as f64)),
                UsedGpuMemory::Unavailable => format!("{pid} {short}"),
            }
        })
        .collect();
    if list.is_empty() {
        return None;
    }
    let (count, shown) = (list.len(), list.join("; "));
    Some(
        Check::new(
            format!("gpu.{index}.processes"),
            Area::Gpu,
            Health::Note,
            message!(en: "GPU {index}: {count} other processes: {shown}", zh: "GPU {index}：有 {count} 个其他进程：{shown}"),
        )
        .cost(message!(en: "they share the GPU's time and memory with your program", zh: "它们会与你的程序争用时间和显存"))
        .with("processes", list),
    )
}

/// What the environment hides.
fn scope() -> Option<Check> {
    let scope = match accelerators::vendor() {
        Vendor::Nvidia => GpuScope::from_environment(),
        Vendor::Amd => accelerators::amd::scope(),
        Vendor::Ascend => accelerators::ascend::scope(),
    };
    let origin = scope.origin?;
    let value = std::env::var(origin).unwrap_or_default();
    let all: Vec<&str> = SCOPE_VARIABLES
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some())
        .collect();
    let hidden = scope.wanted.as_ref().is_some_and(Vec::is_empty);
    let health = if hidden { Health::Problem } else { Health::Note };
    let text = message!(
        en: "{origin}={value} selects the GPUs that flatout sees",
        zh: "{origin}={value} 决定查看哪些 GPU"
    );
    let mut check = Check::new("scope", Area::Gpu, health, text).with("variables", all);
    if hidden {
        check = check
            .cost(message!(en: "it hides every GPU from CUDA and from flatout", zh: "它对 CUDA 和 flatout 隐藏了所有 GPU"))
            .remedy(Message::verbatim(format!("unset {origin}")));
    }
    Some(check)
}
