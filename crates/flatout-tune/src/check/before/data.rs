//! The data: there, and in the page cache.

use super::super::{Item, Limits, Status, status};
use super::{Before, not_given};
use crate::disk::cached_share;
use flatout_core::{message, units};

pub(super) fn data(known: &Before, limits: &Limits) -> Vec<Item> {
    let what = message!(en: "the data", zh: "数据");
    let Some(path) = known.data else {
        return vec![Item::skipped("data", what, not_given())];
    };
    let shown = path.display().to_string();
    if !path.exists() {
        let why = message!(en: "not found", zh: "不存在");
        return vec![
            Item::new("data", what, Status::Fail)
                .found(shown, "")
                .because(why),
        ];
    }
    let mut items = vec![Item::new("data", what, Status::Pass).found(shown, "")];
    let cached = message!(en: "data in the page cache", zh: "数据在页缓存中的比例");
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
                item.because(message!(en: "the first epoch will read from disk", zh: "第一轮将从磁盘读取"))
            } else {
                item
            }
        }
        None => Item::skipped(
            "data-cached",
            cached,
            message!(en: "no files to check", zh: "没有可检查的文件"),
        ),
    });
    items
}
