//! The GPU's computing time, by kind of kernel and by the line that launched it.

use super::activity::Activity;
use super::frame::Frame;
use super::{Row, Span};
use crate::analysis::kernels::Kernels;
use flatout_core::Place;
use flatout_record::{GpuState, KernelKind, KindTime, LaunchStack, Phase, RunData};
use serde::Serialize;
use std::collections::BTreeMap;

/// Kernels of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GpuKind {
    pub kind: KernelKind,
    /// Of the wall time.
    pub share: f64,
    pub per_step: f64,
    /// Of `per_step`, those shorter than 5 µs.
    pub tiny_per_step: f64,
}

/// Every kind, the largest first; empty where the GPU was not traced.
pub fn kinds(data: &RunData) -> Vec<GpuKind> {
    let Some(kernels) = Kernels::of(data) else {
        return Vec::new();
    };
    let steps = kernels.steps.max(1) as f64;
    let one = |(time, share): (&KindTime, f64)| GpuKind {
        kind: time.kind,
        share,
        per_step: time.count as f64 / steps,
        tiny_per_step: time.tiny as f64 / steps,
    };
    kernels.shares().into_iter().map(one).collect()
}

/// While the GPU computes, the host may be anywhere: where launches were recorded, that time belongs to the stacks that launched the
/// kernels.
pub fn credit_launches(data: &RunData, spans: &mut Vec<Span>) {
    let stacks: Vec<&LaunchStack> = data
        .windows
        .iter()
        .flat_map(|window| &window.launches)
        .filter(|stack| kernel_ms(stack) > 0.0)
        .collect();
    let computes = |span: &Span| span.activity == Activity::GpuComputing;
    let computing: f64 = spans
        .iter()
        .filter(|span| computes(span))
        .map(|span| span.seconds)
        .sum();
    let all: f64 = stacks.iter().map(|stack| kernel_ms(stack)).sum();
    if all <= 0.0 || computing <= 0.0 {
        return;
    }
    spans.retain(|span| !computes(span));
    spans.extend(stacks.into_iter().map(|stack| {
        Span {
            activity: Activity::GpuComputing,
            phase: Some(Phase::Compute),
            gpu: Some(GpuState::Computing),
            gil: false,
            seconds: computing * kernel_ms(stack) / all,
            frames: stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect(),
        }
    }));
}

/// Tells each row in which the GPU computes what kind of kernel takes most of it.
pub fn name_kernels(data: &RunData, rows: &mut [Row]) {
    let mut lines: BTreeMap<Option<Place>, LaunchStack> = BTreeMap::new();
    for stack in data.windows.iter().flat_map(|window| &window.launches) {
        let mut frames = stack.frames.iter().filter_map(|text| Frame::parse(text));
        let place = frames.rfind(Frame::is_users).map(|frame| frame.place());
        lines.entry(place).or_default().merge(stack);
    }
    for row in rows
        .iter_mut()
        .filter(|row| row.activity == Activity::GpuComputing)
    {
        let kinds = lines.get(&row.place).map(|stack| stack.kinds.as_slice());
        let largest = kinds
            .unwrap_or_default()
            .iter()
            .max_by(|a, b| a.ms.total_cmp(&b.ms));
        row.kernel = largest.map(|time| time.kind);
    }
}

fn kernel_ms(stack: &LaunchStack) -> f64 {
    stack.kinds.iter().map(|kind| kind.ms).sum()
}
