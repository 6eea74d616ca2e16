//! # data-read-again
//!
//! ## What it detects
//! The dataset does not stay in memory: every epoch reads it from disk again, and training waits for it.
//!
//! ## Why it is slow
//! Linux keeps files that were read in the page cache, so the second epoch usually comes from memory. If the dataset is larger than
//! free memory, or a container limits it, pages are dropped before they are needed again, and each epoch waits for the disk.
//!
//! ## Example
//! ```python
//! np.save("images.npy", images.astype(np.float32))  # 120 GB, 64 GB of memory
//! ```
//!
//! ## Use instead
//! ```python
//! np.save("images.npy", images.astype(np.uint8))  # 30 GB
//! ```
//!
//! ## Evidence
//! Bytes that the program's processes read from disk in the first and in later epochs, and the time spent waiting for batches.
//!
//! ## Fix
//! Make the data smaller (uint8 instead of float32, a compressed or columnar format, smaller images) or the memory larger (`--mem` of
//! the job, fewer copies of the dataset in workers). Read it in large blocks, in the order in which it is stored on disk.
//!
//! ## When it is wrong
//! Each epoch reads different files on purpose, such as an endless stream.
//!
//! ## References
//! `read_bytes` in `/proc/PID/io`: the bytes actually fetched from storage.
//! <https://man7.org/linux/man-pages/man5/proc_pid_io.5.html>
//!
//! ---
//! ## 检测什么
//! 数据集留不住在内存里：每个 epoch 都要重新从磁盘读取，训练在等它。
//! ## 为什么慢
//! Linux 会把读过的文件留在页缓存里，第二个 epoch 通常直接来自内存。若数据集大于空闲内存，或容器限制了内存，页面在再次用到之前就被丢弃，每个 epoch 都要等磁盘。
//! ## 证据
//! 程序的进程在第一个 epoch 和之后各 epoch 从磁盘读取的字节数，以及等待 batch 的时间。
//! ## 怎么改
//! 让数据更小（用 uint8 代替 float32、压缩或列式格式、更小的图像），或让内存更大（作业的 `--mem`、worker 中更少的数据集副本）；按磁盘上的顺序成块读取。
//! ## 何时不成立
//! 每个 epoch 有意读取不同的文件（没有尽头的流）。
//! ## 参考
//! `/proc/PID/io` 的 `read_bytes`：真正从存储层取来的数据。
//! <https://man7.org/linux/man-pages/man5/proc_pid_io.5.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::{EventKind, Phase, RunData};

pub const ID: &str = "data-read-again";
pub const WORST: Severity = Severity::Critical;

/// Less than this is not the data set.
const BYTES: f64 = 256e6;
/// A later epoch reads this part of what the first one did.
const AGAIN: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let share = window.share(Phase::Data);
    if share < WARNING_SHARE {
        return None;
    }
    let epochs = bytes_per_epoch(analysis.data);
    let (first, later) = epochs.split_first().filter(|(_, later)| !later.is_empty())?;
    let each = later.iter().sum::<f64>() / later.len() as f64;
    if each < BYTES || each < first * AGAIN {
        return None;
    }
    let (shown, count) = (units::bytes(each), epochs.len());
    let place = analysis.train_loader().and_then(|loader| loader.place.clone());
    let possible_s = window.seconds(Phase::Data);
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Every epoch reads {shown} from disk again: the dataset is not cached",
                zh: "每个 epoch 都重新从磁盘读取 {shown}：数据集留不住在内存里"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            Evidence::new(
                message!(en: "read per epoch after the first", zh: "之后每个 epoch 的读取量"),
                each / 1e6,
                "MB",
            )
            .against(BYTES / 1e6),
        )
        .evidence(Evidence::new(
            message!(en: "read in the first epoch", zh: "第一个 epoch 的读取量"),
            first / 1e6,
            "MB",
        ))
        .evidence(Evidence::new(
            message!(en: "epochs", zh: "epoch 数"),
            count as f64,
            "",
        ))
        .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
        .place(place.as_ref())
        .claims(Stretch::Data, Reach::Likely, possible_s * 0.2, possible_s)
        .code(
            place.as_ref(),
            message!(
                en: "Store the data in less space (uint8, compression, smaller images) or give the job more \
                memory, so that it stays in the page cache",
                zh: "把数据存得更小（uint8、压缩、更小的图像），或给作业更多内存，使其留在页缓存中"
            ),
        ),
    )
}

/// What all processes of the run read from disk in each epoch.
fn bytes_per_epoch(data: &RunData) -> Vec<f64> {
    let ends = data.events.iter().filter_map(|event| match event.kind {
        EventKind::Epoch {
            duration_ms: Some(ms),
            ..
        } => Some((event.t - ms / 1e3, event.t)),
        _ => None,
    });
    ends.map(|(begin, end)| read_within(data, begin, end)).collect()
}

fn read_within(data: &RunData, begin: f64, end: f64) -> f64 {
    let pairs = data.samples.windows(2);
    let inside = pairs.filter(|pair| pair[1].t > begin && pair[1].t <= end);
    inside
        .map(|pair| {
            let rates = pair[1]
                .processes
                .values()
                .filter_map(|process| process.read_bytes_s);
            rates.sum::<f64>() * (pair[1].t - pair[0].t)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Finding;

    /// Two epochs of ten seconds that read at these rates.
    fn reading(first: f64, second: f64) -> Option<Finding> {
        let epoch = |number: u64| EventKind::Epoch {
            number,
            duration_ms: Some(10_000.0),
        };
        let mut data = Build::steady(20)
            .phase(Phase::Data, 0.5)
            .phase(Phase::Compute, 0.5)
            .workers(2, 0.2, 1 << 20)
            .event(12.0, epoch(1))
            .event(22.0, epoch(2))
            .done();
        for sample in &mut data.samples {
            let rate = if sample.t <= 12.0 { first } else { second };
            for process in sample.processes.values_mut() {
                process.read_bytes_s = Some(rate / 3.0);
            }
        }
        check(&Analysis::new(&data)).map(|candidate| candidate.finding)
    }

    #[test]
    fn fires() {
        let finding = reading(100e6, 90e6).unwrap();
        assert!(
            (finding.evidence[0].value - 900.0).abs() < 1.0,
            "{:?}",
            finding.evidence[0]
        );
    }

    #[test]
    fn quiet() {
        assert!(
            reading(100e6, 0.0).is_none(),
            "the second epoch comes out of memory"
        );
        assert!(reading(1e6, 1e6).is_none());
        assert!(run(check, Build::steady(20).phase(Phase::Data, 0.5)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
