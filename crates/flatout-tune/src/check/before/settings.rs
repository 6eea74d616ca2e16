//! What the configuration or the command asks for, and whether the code reads it so.

use super::super::{Item, Limits, Status, status};
use super::{Before, no_gpu, not_given, not_written};
use flatout_core::{Finding, message, units};
use flatout_vocabulary::settings::{self, normal};

pub(super) fn precision(known: &Before) -> Item {
    let what = message!(en: "mixed precision", zh: "混合精度");
    if known.machine.gpus.is_empty() {
        return Item::skipped("amp", what, no_gpu());
    }
    let Some(value) = known.given.value("amp") else {
        return Item::skipped("amp", what, not_given());
    };
    let on = !matches!(normal(&value).as_str(), "off" | "fp32" | "0");
    let unread = findings(known).find(|finding| concerns(finding, "amp"));
    let item =
        Item::new("amp", what, status(on && unread.is_none(), Status::Fail)).found(value, "bf16 / fp16");
    match unread {
        Some(finding) => item.because(finding.title.clone()),
        None => item,
    }
}

/// Lint's findings about settings that are written down but never take effect.
const UNREAD: [&str; 4] = [
    "config-value-never-matches",
    "config-key-never-read",
    "option-never-used",
    "optimization-never-called",
];

fn findings<'k>(known: &'k Before) -> impl Iterator<Item = &'k Finding> {
    known
        .source
        .iter()
        .filter(|finding| UNREAD.contains(&finding.rule.as_str()))
}

/// The setting stands in the title between backticks, by its path or as a flag.
fn concerns(finding: &Finding, key: &str) -> bool {
    let named = finding.title.en.split('`').nth(1).unwrap_or_default();
    let last = named
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .trim_start_matches('-');
    settings::find(last).is_some_and(|setting| setting.key == key)
}

/// Settings that are written down but that the code never reads as they are written.
pub(super) fn unread(known: &Before) -> Vec<Item> {
    let items = findings(known).map(|finding| {
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

pub(super) fn workers(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "DataLoader workers", zh: "DataLoader worker 数");
    let Some(count) = known
        .given
        .value("loader.num_workers")
        .and_then(|value| value.parse::<f64>().ok())
    else {
        return Item::skipped("workers", what, not_written(known));
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
        (_, true) => item.because(
            message!(en: "only {usable} CPUs are usable: the workers would compete for \
        them", zh: "可用 CPU 只有 {usable} 个：worker 会互相抢占"),
        ),
        (true, _) => item.because(
            message!(en: "batches are prepared between steps, in the training process", zh: "batch \
        在两步之间由训练进程准备，无法重叠"),
        ),
        _ => item,
    }
}

pub(super) fn batch(known: &Before, limits: &Limits) -> Item {
    let what = message!(en: "batch size", zh: "batch 大小");
    if known.machine.gpus.is_empty() {
        return Item::skipped("batch", what, no_gpu());
    }
    let Some(batch) = known
        .given
        .value("loader.batch_size")
        .and_then(|value| value.parse::<f64>().ok())
    else {
        return Item::skipped("batch", what, not_written(known));
    };
    let least = units::significant(limits.batch_min);
    Item::new("batch", what, status(batch >= limits.batch_min, Status::Warn))
        .found(units::significant(batch), format!("≥ {least}"))
}

pub(super) fn pinning(known: &Before) -> Item {
    let what = message!(en: "pinned memory", zh: "锁页内存");
    if known.machine.gpus.is_empty() {
        return Item::skipped("pinning", what, no_gpu());
    }
    let Some(value) = known.given.value("loader.pin_memory") else {
        return Item::skipped("pinning", what, not_written(known));
    };
    Item::new("pinning", what, status(normal(&value) == "on", Status::Warn)).found(value, "on")
}
