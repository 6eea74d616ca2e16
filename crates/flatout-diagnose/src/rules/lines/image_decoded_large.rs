//! # image-decoded-large
//!
//! ## What it detects
//! Decoding and transforming images with PIL or OpenCV takes a large share of the time.
//!
//! ## Why it is slow
//! An image is decoded and transformed at full size and then shrunk. The cost grows with the pixels that are discarded.
//!
//! ## Example
//! ```python
//! image = Image.open(path).convert("RGB").resize((224, 224))
//! ```
//!
//! ## Use instead
//! ```python
//! image = Image.open(path)
//! image.draft("RGB", (448, 448))
//! image = image.convert("RGB").resize((224, 224))
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Decode at the size you need (`Image.draft`, reduced-size JPEG decoding), or store smaller images once. Decode in workers.
//!
//! ## When it is wrong
//! The images already have the size that the model needs: use more workers instead.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.Image.draft>
//!
//! ---
//! ## 检测什么
//! 用 PIL 或 OpenCV 解码、变换图像占用大量时间。
//! ## 为什么慢
//! 图像按原尺寸解码、变换，然后才缩小；成本随被丢弃的像素增长。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 按所需尺寸解码（`Image.draft`、缩小的 JPEG 解码），或预先存成小图。在 worker 中解码。
//! ## 何时不成立
//! 图像本来就是模型所需的尺寸：应增加 worker。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.Image.draft>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "image-decoded-large";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::ImageDecodedLarge, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new(
            "__getitem__ (t.py:12)",
            r#"image = Image.open(path).convert('RGB')"#,
        )
        .calls("convert (/v/lib/python3.11/site-packages/PIL/Image.py:9)")
        .in_batches(share)
    }

    #[test]
    fn fires() {
        let finding = run(check, costly(0.4).build()).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places[0].line, 12);
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, costly(0.05).build()).is_none());
        let other = CostlyLine::new("other (t.py:12)", "x = self.rows[index] + 1").between_steps(0.05);
        assert!(run(check, other.build()).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
