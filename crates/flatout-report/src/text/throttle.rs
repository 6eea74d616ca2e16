//! Why a GPU's clocks are down, in words. The record keeps the short names.

use flatout_core::{Message, message};

/// A reason that this flatout does not know is shown by its own name.
pub fn throttle_name(reason: &str) -> Message {
    match reason {
        "idle" => message!(en: "idle", zh: "空闲"),
        "power-cap" => message!(en: "power cap", zh: "功耗上限"),
        "power-brake" => message!(en: "power brake", zh: "外部功耗制动"),
        "thermal-hw" => message!(en: "heat (hardware)", zh: "过热（硬件）"),
        "thermal-sw" => message!(en: "heat (driver)", zh: "过热（驱动）"),
        "hw-slowdown" => message!(en: "hardware slowdown", zh: "硬件降速"),
        "applications-clocks" => message!(en: "application clocks", zh: "手动设定时钟"),
        "display-clocks" => message!(en: "display", zh: "显示时钟"),
        "sync-boost" => message!(en: "sync boost", zh: "同步加速"),
        other => Message::verbatim(super::width::printable(other)),
    }
}
