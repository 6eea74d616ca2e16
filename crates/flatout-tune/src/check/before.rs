//! Before the start: what the configuration or the command asks for, on this machine as it is now.

use super::{Item, Limits, Status, status};
use crate::advise::Given;
use crate::machine::Machine;
use crate::settings::normal;
use flatout_core::{Finding, Message, message, units};
use flatout_telemetry::Sample;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// All that is known before a start.
pub struct Before<'a> {
    pub given: &'a Given,
    pub machine: &'a Machine,
    /// The GPUs now.
    pub sample: &'a Sample,
    /// What the source says of its own settings (`flatout lint`).
    pub source: &'a [Finding],
    /// Data the program will read, where it is known.
    pub data: Option<&'a Path>,
    /// Where it will write.
    pub folder: &'a Path,
}

pub fn before(known: &Before, limits: &Limits) -> Vec<Item> {
    let mut items = vec![
        precision(known),
        workers(known, limits),
        batch(known, limits),
        pinning(known),
    ];
    items.extend(unread(known));
    items.extend(data(known, limits));
    items.extend(gpus(known, limits));
    items.push(disk(known, limits));
    items
}

fn not_given() -> Message {
    message!(en: "neither the configuration nor the command says", zh: "配置和命令中都没有给出")
}

fn no_gpu() -> Message {
    message!(en: "there is no GPU here", zh: "本机没有 GPU")
}

fn precision(known: &Before) -> Item {
    let what = message!(en: "mixed precision", zh: "混合精度");
    if known.machine.gpus.is_empty() {
        return Item::skipped("amp", what, no_gpu());
    }
    let Some(value) = known.given.value("amp") else {
        return Item::skipped("amp", what, not_given());
    };
    let on = !matches!(normal(&value).as_str(), "off" | "fp32" | "0");
    Item::new("amp", what, status(on, Status::Fail)).found(value, "bf16 / fp16")
}

/// Settings that are written down but that the code never reads as they are written.
fn unread(known: &Before) -> Vec<Item> {
    const RULES: [&str; 4] = [
        "config-value-never-matches",
        "config-key-never-read",
        "option-never-used",
        "optimization-never-called",
    ];
    let findings = known
        .source
        .iter()
        .filter(|finding| RULES.contains(&finding.rule.as_str()));
    let items = findings.map(|finding| {
        let place = finding
            .places
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        let what = message!(en: "settings that the code reads", zh: "代码确实读取的设置");
        Item::new("settings-read", what, Status::Fail)
            .found(place, "")
            .because(finding.title.clone())
    });
    items.collect()
}

fn workers(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "loader workers", zh: "DataLoader worker 数");
    let Some(count) = known
        .given
        .value("loader.num_workers")
        .and_then(|value| value.parse::<f64>().ok())
    else {
        return Item::skipped("workers", what, not_given());
    };
    let usable = known.machine.cpus.count();
    let most = (usable as f64 * limits.workers_per_cpu).floor();
    let (low, high) = (count < 1.0 && usable > 1, count > most);
    let state = match (low, high) {
        (_, true) => Status::Fail,
        (true, _) => Status::Warn,
        _ => Status::Pass,
    };
    let item = Item::new("workers", what, state).found(
        units::significant(count),
        format!("1–{}", units::significant(most)),
    );
    match (low, high) {
        (_, true) => item.because(message!(en: "only {usable} CPUs are usable: workers would fight for them", zh: "可用 CPU 只有 {usable} 个：worker 会互相抢占")),
        (true, _) => item.because(message!(en: "batches are made between the steps", zh: "batch 在两步之间准备，无法重叠")),
        _ => item,
    }
}

fn batch(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "batch size", zh: "batch 大小");
    if known.machine.gpus.is_empty() {
        return Item::skipped("batch", what, no_gpu());
    }
    let Some(batch) = known
        .given
        .value("loader.batch_size")
        .and_then(|value| value.parse::<f64>().ok())
    else {
        return Item::skipped("batch", what, not_given());
    };
    let least = units::significant(limits.batch_min);
    Item::new("batch", what, status(batch >= limits.batch_min, Status::Warn))
        .found(units::significant(batch), format!("≥ {least}"))
}

fn pinning(known: &Before) -> Item {
    let what = message!(en: "pinned memory", zh: "锁页内存");
    if known.machine.gpus.is_empty() {
        return Item::skipped("pinning", what, no_gpu());
    }
    let Some(value) = known.given.value("loader.pin_memory") else {
        return Item::skipped("pinning", what, not_given());
    };
    Item::new("pinning", what, status(normal(&value) == "on", Status::Warn)).found(value, "on")
}

fn data(known: &Before, limits: &Limits) -> Vec<Item> {
    let what = message!(en: "the data", zh: "数据");
    let Some(path) = known.data else {
        return vec![Item::skipped("data", what, not_given())];
    };
    let shown = path.display().to_string();
    if !path.exists() {
        let why = message!(en: "it is not there", zh: "不存在");
        return vec![
            Item::new("data", what, Status::Fail)
                .found(shown, "")
                .because(why),
        ];
    }
    let mut items = vec![Item::new("data", what, Status::Pass).found(shown, "")];
    let cached = message!(en: "the data in the page cache", zh: "数据在页缓存中的比例");
    items.push(match cached_share(path) {
        Some(share) => {
            let least = units::percent(limits.data_cached_min);
            let item = Item::new(
                "data-cached",
                cached,
                status(share >= limits.data_cached_min, Status::Warn),
            );
            let item = item.found(units::percent(share), format!("≥ {least}"));
            if share < limits.data_cached_min {
                item.because(message!(en: "the first epoch reads from the disk", zh: "第一轮将从磁盘读取"))
            } else {
                item
            }
        }
        None => Item::skipped(
            "data-cached",
            cached,
            message!(en: "nothing to look at", zh: "没有可检查的文件"),
        ),
    });
    items
}

/// The share of the first files' pages that the kernel holds.
fn cached_share(path: &Path) -> Option<f64> {
    const MOST: usize = 200;
    let mut waiting = vec![path.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(next) = waiting.pop() {
        if next.is_dir() {
            waiting.extend(std::fs::read_dir(&next).ok()?.flatten().map(|entry| entry.path()));
        } else if next.is_file() {
            files.push(next);
        }
        if files.len() >= MOST {
            break;
        }
    }
    let (held, all) = files
        .iter()
        .filter_map(|file| pages(file))
        .fold((0, 0), |sum, (held, all)| (sum.0 + held, sum.1 + all));
    (all > 0).then(|| held as f64 / all as f64)
}

/// Pages of a file in the cache, and all of them.
fn pages(path: &Path) -> Option<(usize, usize)> {
    const PAGE: usize = 4096;
    let file = File::open(path).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len())
        .ok()
        .filter(|length| *length > 0)?;
    let mut seen = vec![0u8; length.div_ceil(PAGE)];
    // SAFETY: maps a file that is open, without touching its pages; the vector has a byte for each page; unmapped again.
    let known = unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if map == libc::MAP_FAILED {
            return None;
        }
        let known = libc::mincore(map, length, seen.as_mut_ptr()) == 0;
        libc::munmap(map, length);
        known
    };
    known.then(|| (seen.iter().filter(|page| **page & 1 == 1).count(), seen.len()))
}

fn gpus(known: &Before, limits: &Limits) -> Vec<Item> {
    let free = message!(en: "GPU memory that others hold", zh: "被其他进程占用的显存");
    let cool = message!(en: "GPU temperature", zh: "GPU 温度");
    if known.sample.gpus.is_empty() {
        return vec![
            Item::skipped("gpu-free", free, no_gpu()),
            Item::skipped("gpu-cool", cool, no_gpu()),
        ];
    }
    let mut items = Vec::new();
    for gpu in known.sample.gpus.values() {
        if let (Some(used), Some(left)) = (gpu.mem_used_bytes, gpu.mem_free_bytes) {
            let share = used as f64 / (used + left).max(1) as f64;
            let most = units::percent(limits.gpu_memory_taken_max);
            items.push(
                Item::new(
                    "gpu-free",
                    free.clone(),
                    status(share <= limits.gpu_memory_taken_max, Status::Fail),
                )
                .found(units::percent(share), format!("≤ {most}")),
            );
        }
        if let Some(degrees) = gpu.temp_c {
            let most = limits.gpu_temperature_max;
            items.push(
                Item::new("gpu-cool", cool.clone(), status(degrees < most, Status::Fail))
                    .found(format!("{degrees:.0} °C"), format!("< {most:.0} °C")),
            );
        }
    }
    items
}

fn disk(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "disk space", zh: "磁盘空间");
    let Some(bytes) = free_bytes(known.folder) else {
        return Item::skipped("disk", what, message!(en: "it cannot be read", zh: "无法读取"));
    };
    let least = limits.disk_free_gib_min;
    let gigabytes = bytes as f64 / f64::from(1 << 30);
    Item::new("disk", what, status(gigabytes >= least, Status::Fail))
        .found(units::bytes(bytes as f64), format!("≥ {least} GiB"))
}

fn free_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: the kernel fills the structure; the path is a zero-terminated text.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut about) == 0).then(|| about.f_bavail * about.f_frsize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::GpuSample;

    fn run(given: &[(&str, &str)], gpu: Option<GpuSample>) -> Vec<Item> {
        let machine = Machine::here().with_gpu("A100", 1).unwrap().with_cpus(8);
        let sample = Sample {
            gpus: gpu.map(|gpu| (0, gpu)).into_iter().collect(),
            ..Sample::default()
        };
        let known = Before {
            given: &Given::from_pairs(given),
            machine: &machine,
            sample: &sample,
            source: &[],
            data: None,
            folder: Path::new("/"),
        };
        before(
            &known,
            &Limits {
                disk_free_gib_min: 0.0,
                ..Limits::default()
            },
        )
    }

    fn state(items: &[Item], id: &str) -> Status {
        items
            .iter()
            .find(|item| item.id == id)
            .map(|item| item.status)
            .unwrap()
    }

    #[test]
    fn the_seeds_checklist() {
        let bad = run(
            &[
                ("num_workers", "40"),
                ("batch_size", "16"),
                ("amp", "false"),
                ("pin_memory", "false"),
            ],
            None,
        );
        assert_eq!(state(&bad, "workers"), Status::Fail);
        assert_eq!(state(&bad, "amp"), Status::Fail);
        assert_eq!(
            (state(&bad, "batch"), state(&bad, "pinning")),
            (Status::Warn, Status::Warn)
        );
        assert_eq!(state(&bad, "gpu-free"), Status::Skipped);
        let good = run(
            &[
                ("num_workers", "8"),
                ("batch_size", "512"),
                ("amp", "bf16"),
                ("pin_memory", "true"),
            ],
            None,
        );
        assert!(
            good.iter()
                .all(|item| matches!(item.status, Status::Pass | Status::Skipped)),
            "{good:?}"
        );
    }

    #[test]
    fn a_full_or_hot_gpu_fails() {
        let gpu = GpuSample {
            mem_used_bytes: Some(30 << 30),
            mem_free_bytes: Some(10 << 30),
            temp_c: Some(91.0),
            ..GpuSample::default()
        };
        let items = run(&[], Some(gpu));
        assert_eq!(
            (state(&items, "gpu-free"), state(&items, "gpu-cool")),
            (Status::Fail, Status::Fail)
        );
        assert_eq!(state(&items, "workers"), Status::Skipped);
    }

    #[test]
    fn what_was_just_written_is_cached() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1u8; 100_000]).unwrap();
        assert!(cached_share(folder.path()).unwrap() > 0.9);
        assert!(cached_share(Path::new("/no/such")).is_none());
    }
}
