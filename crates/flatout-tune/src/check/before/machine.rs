//! The machine now: GPUs free and cool, disk space.

use super::super::{Item, Limits, Status, status};
use super::{Before, no_gpu};
use crate::disk::free_bytes;
use flatout_core::{message, units};

pub(super) fn gpus(known: &Before, limits: &Limits) -> Vec<Item> {
    let free = message!(en: "GPU memory used by other processes", zh: "被其他进程占用的显存");
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

pub(super) fn disk(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "disk space", zh: "磁盘空间");
    let Some(bytes) = free_bytes(known.folder) else {
        return Item::skipped("disk", what, message!(en: "failed to read it", zh: "无法读取"));
    };
    let least = limits.disk_free_gib_min;
    let gigabytes = bytes as f64 / f64::from(1 << 30);
    Item::new("disk", what, status(gigabytes >= least, Status::Fail))
        .found(units::bytes(bytes as f64), format!("≥ {least} GiB"))
}
