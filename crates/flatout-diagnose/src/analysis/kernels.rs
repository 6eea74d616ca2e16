//! What the GPU computes, by kind of kernel and by the line that launched it, from the windows that traced it.

use crate::account::frame::Frame;
use flatout_core::{Message, Place, message};
use flatout_record::{KernelKind, KindTime, LaunchStack, RunData};
use std::collections::BTreeMap;

/// Kernels that move memory and compute little.
pub const MEMORY_BOUND: [KernelKind; 3] = [
    KernelKind::Elementwise,
    KernelKind::Reduction,
    KernelKind::Softmax,
];

/// Kernels of all windows together.
#[derive(Clone, Debug)]
pub struct Kernels {
    pub steps: u64,
    wall_ms: f64,
    kinds: Vec<KindTime>,
    /// Of `wall_ms`, what one millisecond of kernels stands for: kernels may overlap.
    scale: f64,
    launches: Vec<LaunchStack>,
}

/// A line of the user's code that launches kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchLine {
    pub frame: Frame,
    /// Of the milliseconds that were asked for, the line's part.
    pub share: f64,
}

impl LaunchLine {
    pub fn place(&self) -> Place {
        self.frame.place()
    }
}

impl Kernels {
    /// `None` where no window traced a kernel.
    pub fn of(data: &RunData) -> Option<Self> {
        let sum = |value: fn(&flatout_record::GpuWindow) -> f64| data.windows.iter().map(value).sum::<f64>();
        let wall_ms = sum(|window| window.wall_ms);
        let working_ms = sum(|window| window.computing_ms + window.communicating_ms);
        let mut all = LaunchStack::default();
        let mut launches: Vec<LaunchStack> = Vec::new();
        for window in &data.windows {
            all.merge(&LaunchStack {
                kinds: window.kinds.clone(),
                copies: window.copies.clone(),
                ..LaunchStack::default()
            });
            for stack in &window.launches {
                match launches.iter_mut().find(|known| known.frames == stack.frames) {
                    Some(known) => known.merge(stack),
                    None => launches.push(stack.clone()),
                }
            }
        }
        let kernel_ms: f64 = all.kinds.iter().map(|kind| kind.ms).sum();
        let known = wall_ms > 0.0 && kernel_ms > 0.0 && working_ms > 0.0;
        known.then(|| Self {
            steps: data.windows.iter().map(|window| window.steps).sum(),
            wall_ms,
            kinds: all.kinds,
            scale: working_ms / kernel_ms,
            launches,
        })
    }

    /// The share of the wall time in kernels of these kinds.
    pub fn share(&self, kinds: &[KernelKind]) -> f64 {
        let found = self.kinds.iter().filter(|kind| kinds.contains(&kind.kind));
        (found.map(|kind| kind.ms).sum::<f64>() * self.scale / self.wall_ms).min(1.0)
    }

    /// Every kind with its share of the wall time, the largest first.
    pub fn shares(&self) -> Vec<(&KindTime, f64)> {
        let mut shares: Vec<(&KindTime, f64)> = self
            .kinds
            .iter()
            .map(|kind| (kind, self.share(&[kind.kind])))
            .collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }

    /// Kernels per step, and their mean length in microseconds; `None` where a window saw no whole step.
    pub fn per_step(&self) -> Option<(f64, f64)> {
        let count: u64 = self.kinds.iter().map(|kind| kind.count).sum();
        let ms: f64 = self.kinds.iter().map(|kind| kind.ms).sum();
        (self.steps > 0 && count > 0).then(|| (count as f64 / self.steps as f64, ms * 1e3 / count as f64))
    }

    /// The user's line that launches most of what `weight` measures, outside of backward; `None` where launches were not recorded.
    pub fn line(&self, weight: impl Fn(&LaunchStack) -> f64) -> Option<LaunchLine> {
        let mut lines: BTreeMap<Place, (Frame, f64)> = BTreeMap::new();
        let mut all = 0.0;
        for stack in &self.launches {
            let ms = weight(stack);
            let frames: Vec<Frame> = stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect();
            if ms <= 0.0 || frames.iter().any(Frame::is_backward) {
                continue;
            }
            all += ms;
            if let Some(frame) = frames.into_iter().rfind(Frame::is_users) {
                lines.entry(frame.place()).or_insert((frame, 0.0)).1 += ms;
            }
        }
        let (frame, ms) = lines.into_values().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(LaunchLine {
            frame,
            share: ms / all,
        })
    }

    /// As `line`, of kernels of these kinds.
    pub fn line_of(&self, kinds: &[KernelKind]) -> Option<LaunchLine> {
        self.line(|stack| ms_of(stack, kinds))
    }
}

/// Milliseconds in kernels of these kinds.
pub fn ms_of(stack: &LaunchStack, kinds: &[KernelKind]) -> f64 {
    let found = stack.kinds.iter().filter(|kind| kinds.contains(&kind.kind));
    found.map(|kind| kind.ms).sum()
}

/// What kernels of a kind do.
pub fn kind_name(kind: KernelKind) -> Message {
    match kind {
        KernelKind::TensorCore => message!(en: "matmul on tensor cores", zh: "Tensor Core 矩阵乘法"),
        KernelKind::MatrixFp32 => message!(en: "matmul in FP32", zh: "FP32 矩阵乘法"),
        KernelKind::MatrixFp64 => message!(en: "matmul in FP64", zh: "FP64 矩阵乘法"),
        KernelKind::FusedAttention => message!(en: "fused attention", zh: "融合的 attention"),
        KernelKind::Softmax => message!(en: "softmax", zh: "softmax"),
        KernelKind::Recurrent => message!(en: "recurrent layers", zh: "循环层"),
        KernelKind::Elementwise => message!(en: "elementwise", zh: "逐元素算子"),
        KernelKind::Layout => message!(en: "layout conversion", zh: "布局转换"),
        KernelKind::Reduction => message!(en: "reductions and norms", zh: "归约与归一化"),
        KernelKind::Optimizer => message!(en: "optimizer", zh: "优化器"),
        KernelKind::Communication => message!(en: "communication", zh: "通信"),
        KernelKind::Other => message!(en: "other kernels", zh: "其他 kernel"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    #[test]
    fn shares_add_up_to_the_computing_time() {
        let data = Build::steady(20)
            .kernels(&[(KernelKind::MatrixFp32, 500.0), (KernelKind::Elementwise, 300.0)])
            .done();
        let kernels = Kernels::of(&data).unwrap();
        assert!((kernels.share(&[KernelKind::MatrixFp32]) - 0.5).abs() < 1e-9);
        let all: f64 = kernels.shares().iter().map(|(_, share)| share).sum();
        assert!((all - 0.8).abs() < 1e-9);
        assert_eq!(kernels.per_step(), Some((20.0, 4000.0)));
    }

    #[test]
    fn kernels_that_overlap_count_once() {
        let mut data = Build::steady(20).kernels(&[(KernelKind::Other, 1000.0)]).done();
        data.windows[0].computing_ms = 500.0;
        assert!((Kernels::of(&data).unwrap().share(&[KernelKind::Other]) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_line_is_one_of_forward() {
        let backward = "backward (/v/lib/python3.11/site-packages/torch/autograd/__init__.py:600)";
        let data = Build::steady(20)
            .kernels(&[(KernelKind::Softmax, 100.0)])
            .launch(&["main (t.py:9)", backward], KernelKind::Softmax, 70.0)
            .launch(&["main (t.py:8)", "attend (t.py:3)"], KernelKind::Softmax, 30.0)
            .done();
        let line = Kernels::of(&data)
            .unwrap()
            .line_of(&[KernelKind::Softmax])
            .unwrap();
        assert_eq!(line.place(), Place::new("t.py", 3));
        assert!((line.share - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_windows_nothing_is_known() {
        assert!(Kernels::of(&RunData::default()).is_none());
        assert!(Kernels::of(&Build::steady(20).done()).is_none());
    }
}
