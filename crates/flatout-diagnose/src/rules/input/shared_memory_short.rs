//! # shared-memory-short
//!
//! ## What it detects
//! `/dev/shm`, through which workers pass their batches, is almost full.
//!
//! ## Why it is slow
//! When `/dev/shm` is full, a worker dies with a bus error. Close to the limit, fewer batches can be in flight.
//!
//! ## Example
//! ```sh
//! docker run image python train.py
//! ```
//!
//! ## Use instead
//! ```sh
//! docker run --shm-size=8g image python train.py
//! ```
//!
//! ## Evidence
//! The highest usage of `/dev/shm` in the steady part, and its size.
//!
//! ## Fix
//! Enlarge it (`docker run --shm-size=8g`), use fewer workers, or lower `prefetch_factor`.
//!
//! ## When it is wrong
//! Files of another program fill it.
//!
//! ## References
//! PyTorch's README on `--shm-size`. The threshold is 90%, as usual for memory that must not run out.
//! <https://github.com/pytorch/pytorch#docker-image>
//!
//! ---
//! ## 检测什么
//! worker 交付 batch 所用的 `/dev/shm` 快满了。
//! ## 为什么慢
//! `/dev/shm` 满了，worker 会因 bus error 而退出；接近上限时，能同时准备的 batch 更少。
//! ## 证据
//! 稳定阶段中 `/dev/shm` 的最大使用率及其大小。
//! ## 怎么改
//! 加大它（`docker run --shm-size=8g`）、减少 worker，或减小 `prefetch_factor`。
//! ## 何时不成立
//! 其他程序的文件放在那里。
//! ## 参考
//! PyTorch README 中关于 `--shm-size` 的说明。90%：对不可超出的内存的常用界限。
//! <https://github.com/pytorch/pytorch#docker-image>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Evidence, Fix, Severity, message, units};

pub const ID: &str = "shared-memory-short";
pub const WORST: Severity = Severity::Warning;

const USED: f64 = 0.9;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let used = analysis.host.shm_used_share.filter(|used| *used >= USED)?;
    let size = units::bytes(analysis.host.shm_total_bytes? as f64);
    let shown = units::percent(used);
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(en: "/dev/shm ({size}) is {shown} full", zh: "/dev/shm（{size}）已用 {shown}"),
        )
        .detail(message!(
            en: "Workers pass batches through /dev/shm; when it is full, a worker dies with a bus error.",
            zh: "worker 通过 /dev/shm 传递 batch；用满时 worker 会因 bus error 退出。"
        ))
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "/dev/shm in use", zh: "/dev/shm 使用率"),
                    used * 100.0,
                    "%",
                )
                .against(USED * 100.0),
            ),
        )
        .fix(Fix::Command {
            command: "docker run --shm-size=8g …".into(),
            say: message!(en: "give the container more shared memory", zh: "给容器更大的共享内存"),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn shm(used: u64) -> Build {
        Build::steady(20).host(|host| {
            host.shm_total_bytes = Some(64 << 20);
            host.shm_used_bytes = Some(used << 20);
        })
    }

    #[test]
    fn fires() {
        assert!(run(check, shm(62)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, shm(10)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
