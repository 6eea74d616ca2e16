//! # checkpoint-too-often
//!
//! ## What it detects
//! Saving checkpoints takes a large share of the time.
//!
//! ## Why it is slow
//! `torch.save` copies every tensor to the CPU and writes the file in the training process, while the GPU waits.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     torch.save(model.state_dict(), f"epoch{epoch}.pt")
//! ```
//!
//! ## Use instead
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     if epoch % 5 == 0 or epoch == epochs - 1:
//!         torch.save(model.state_dict(), f"epoch{epoch}.pt")
//! ```
//!
//! ## Evidence
//! The share of the steady part spent saving, how often, how long each save takes, and how many bytes it writes.
//!
//! ## Fix
//! Save so rarely that it takes at most 5% of the time, or copy the state to the CPU and write it in a background thread.
//!
//! ## When it is wrong
//! The machine may be preempted at any moment: the cost of a crash then decides the interval, not the share alone.
//!
//! ## References
//! Typical configurations save every 5 epochs. nsys-ai treats differences below 5% as noise.
//! <https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html>
//!
//! ---
//! ## 检测什么
//! 保存 checkpoint 占用大量时间。
//! ## 为什么慢
//! `torch.save` 在训练进程中把每个张量拷到主机并写文件，其间设备在等。
//! ## 证据
//! 稳定阶段中保存的时间、次数、每次多久、多少字节。
//! ## 怎么改
//! 降低保存频率，使其只占二十分之一的时间；或把状态拷到主机后在线程中写盘。
//! ## 何时不成立
//! 机器随时可能被收回：间隔由崩溃的损失决定，而不只看占比。
//! ## 参考
//! 常见配置每 5 个 epoch 保存一次。nsys-ai 把 5% 以下的差异视为噪声。
//! <https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "checkpoint-too-often";
pub const WORST: Severity = Severity::Critical;

/// Once is no habit.
const TIMES: u64 = 2;
/// What saving may cost after the fix.
const GOAL: f64 = 0.05;

/// Steps between two checkpoints after the fix.
pub fn wanted_steps(analysis: &Analysis) -> Option<u64> {
    let window = analysis.window.as_ref()?;
    let times = analysis.spans.checkpoint.count.max(1);
    let every = (window.steps / times).max(1);
    Some(every * rarer(window.share(Phase::Checkpoint)) as u64)
}

/// How many times less often: e/k of the other time should be GOAL, k = e (1 − GOAL) / ((1 − e) GOAL).
fn rarer(share: f64) -> f64 {
    (share * (1.0 - GOAL) / ((1.0 - share).max(0.01) * GOAL))
        .ceil()
        .max(1.0)
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let (share, spans) = (window.share(Phase::Checkpoint), &analysis.spans.checkpoint);
    if share < WARNING_SHARE || spans.count < TIMES {
        return None;
    }
    let (times, each, shown) = (
        spans.count,
        units::duration(spans.mean_s()),
        units::percent(share),
    );
    let rarer = rarer(share);
    let every = (window.steps / times.max(1)).max(1);
    let seconds = window.seconds(Phase::Checkpoint);
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Checkpoints take {shown} of the time: {times} × {each}, about every {every} steps",
            zh: "保存 checkpoint 占 {shown} 的时间：共 {times} 次，每次 {each}，约每 {every} 步一次"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Checkpoint, WARNING_SHARE))
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "checkpoints", zh: "checkpoint 次数"),
                times as f64,
                "",
            )
            .against(TIMES as f64),
        ),
    )
    .place(set_at(analysis).as_ref())
    .place(spans.place.as_ref())
    .claims(
        Stretch::Checkpoint,
        Reach::Measured,
        seconds * (1.0 - 1.0 / rarer),
        seconds,
    )
    .up_to(saving_s(analysis));
    // Our own trainer has a setting for it.
    candidate = if let Some(now) = analysis.facts.number("checkpoint.interval") {
        let to = now * rarer;
        let say = message!(en: "--checkpoint-interval {to}: save every {to} epochs", zh: "--checkpoint-interval {to}：每 {to} 个 epoch 保存一次");
        candidate.setting("checkpoint.interval", Some(now.to_string()), to, say)
    } else {
        candidate.code(
            spans.place.as_ref(),
            message!(
                en: "Save {rarer} times less often (about every {} steps), or write the file in a background \
                thread",
                zh: "把保存频率降到原来的 1/{rarer}（约每 {} 步一次），或在线程中写文件",
                every * rarer as u64
            ),
        )
    };
    if spans.bytes > 0 {
        let what = message!(en: "written per checkpoint", zh: "每次写入");
        let megabytes = spans.bytes as f64 / times as f64 / 1e6;
        candidate = candidate.evidence(Evidence::new(what, megabytes, "MB"));
    }
    Some(candidate)
}

/// Time in which a sample shows a checkpoint being written, also by a framework's own code around it.
fn saving_s(analysis: &Analysis) -> f64 {
    let account = analysis.account.as_ref();
    account.map_or(0.0, |account| {
        account.seconds(crate::account::activity::Activity::Saving)
    })
}

/// Where the user sets how often a framework should save.
fn set_at(analysis: &Analysis) -> Option<flatout_core::Place> {
    analysis.mention(&["save_steps", "every_n_train_steps", "ModelCheckpoint("])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::EventKind;

    fn saving(share: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Checkpoint, share)
            .phase(Phase::Compute, 1.0 - share)
            .each_second(move || EventKind::Checkpoint {
                duration_ms: share * 1e3,
                bytes: Some(1 << 20),
                place: None,
            })
    }

    #[test]
    fn fires() {
        assert_eq!(run(check, saving(0.4)).unwrap().severity, Severity::Critical);
        assert_eq!(causes(saving(0.4)), [ID]);
    }

    #[test]
    fn our_own_trainer_has_a_setting_for_it() {
        let finding = run(check, saving(0.4).fact("checkpoint.interval", 1)).unwrap();
        let [
            flatout_core::Fix::Setting {
                setting, from, to, ..
            },
        ] = &finding.fixes[..]
        else {
            panic!("{:?}", finding.fixes);
        };
        assert_eq!(
            (setting.as_str(), from.as_deref()),
            ("checkpoint.interval", Some("1"))
        );
        assert!(to.parse::<u64>().unwrap() > 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, saving(0.02)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
