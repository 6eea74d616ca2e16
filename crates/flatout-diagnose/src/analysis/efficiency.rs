//! Model FLOPs utilization: the arithmetic that the model needs per second, compared with what the GPU can do.

use super::{Analysis, Device};
use serde::Serialize;

/// What the steps compute, and the GPU's peaks in the same precision.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Efficiency {
    /// Floating-point operations per second over the steady part, forward and backward; recomputation does not count.
    pub flops_per_s: f64,
    /// Some operators could not be counted: the figure is a lower bound.
    pub at_least: bool,
    /// `bf16`, `f16`, `tf32` or `f32`: what most of the arithmetic runs in.
    pub precision: String,
    /// The vendor's peak in TFLOP/s, and the share of it that the steps reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Peak>,
    /// The same, of the peak that `flatout bench` measured on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Peak>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Peak {
    pub tflops: f64,
    pub share: f64,
}

impl Efficiency {
    /// `None` where the arithmetic is not known, or without a GPU.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let window = analysis.window.as_ref().filter(|window| window.steps > 0)?;
        if analysis.device() != Device::Cuda {
            return None;
        }
        let facts = &analysis.facts;
        let whole = facts.number("step.flops");
        let flops = whole.or_else(|| facts.number("step.flops_at_least"))?;
        let flops_per_s = flops * window.steps as f64 / window.wall_s();
        let precision = precision(analysis);
        let gpus = facts
            .number("parallel.devices")
            .filter(|count| *count >= 1.0)
            .unwrap_or(1.0);
        let peak = |source: &str| {
            let tflops = facts.number(&format!("peak.{source}.{precision}"))?;
            (tflops > 0.0).then(|| Peak {
                tflops,
                share: flops_per_s / (tflops * 1e12 * gpus),
            })
        };
        let (vendor, measured) = (peak("vendor"), peak("measured"));
        // More than the peak cannot be: the steps were counted wrongly, and nothing is told.
        let possible = |peak: &Option<Peak>| peak.is_none_or(|peak| peak.share <= 1.05);
        (flops_per_s.is_finite() && flops_per_s > 0.0 && possible(&vendor)).then(|| Self {
            flops_per_s,
            at_least: whole.is_none(),
            precision: precision.to_owned(),
            measured,
            vendor,
        })
    }

    /// The share of the vendor's peak, else of the measured one.
    pub fn share(&self) -> Option<f64> {
        self.vendor.or(self.measured).map(|peak| peak.share)
    }
}

fn precision(analysis: &Analysis) -> &'static str {
    let facts = &analysis.facts;
    match facts.text("step.flops_dtype").as_deref() {
        Some("bfloat16") => "bf16",
        Some("float16") => "f16",
        _ if facts.switch("tf32.matmul") == Some(true) => "tf32",
        // Convolutions have a switch of their own, which is on unless someone turned it off.
        _ if facts.switch("model.has_conv") == Some(true) && facts.switch("tf32.cudnn") == Some(true) => {
            "tf32"
        }
        _ => "f32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_record::RunData;

    fn counted(dtype: &str) -> Build {
        // 100 steps per second.
        Build::steady(20)
            .gpu(|gpu| gpu.util = Some(0.9))
            .fact("step.flops", 2e12)
            .fact("step.flops_dtype", dtype)
            .fact("peak.vendor.bf16", 989.0)
            .fact("peak.vendor.f32", 67.0)
            .fact("peak.measured.bf16", 800.0)
    }

    fn of(data: &RunData) -> Option<Efficiency> {
        Efficiency::of(&Analysis::new(data))
    }

    #[test]
    fn compares_with_the_peak_of_the_same_precision() {
        let found = of(&counted("bfloat16").done()).unwrap();
        assert_eq!((found.precision.as_str(), found.at_least), ("bf16", false));
        let near = |a: f64, b: f64| (a - b).abs() < 0.02 * b;
        assert!(near(found.vendor.unwrap().share, 200.0 / 989.0), "{found:?}");
        assert!(near(found.measured.unwrap().share, 200.0 / 800.0), "{found:?}");
    }

    #[test]
    fn unknown_stays_unknown() {
        assert!(of(&Build::steady(20).gpu(|gpu| gpu.util = Some(0.9)).done()).is_none());
        // Three times the FP32 peak: something was counted wrongly.
        assert!(of(&counted("float32").done()).is_none());
        let partly = Build::steady(20)
            .gpu(|gpu| gpu.util = Some(0.9))
            .fact("step.flops_at_least", 1e10)
            .done();
        let found = of(&partly).unwrap();
        assert!(found.at_least && found.vendor.is_none() && found.share().is_none());
    }
}
