//! The rate of a recorded run.

use crate::Estimate;
use flatout_diagnose::Analysis;
use flatout_record::StepTick;

/// Samples per second, or steps per second where the samples are not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    pub rate: Estimate,
    pub of_samples: bool,
}

/// Over the steady steps; `None` where there are none.
pub fn throughput(analysis: &Analysis) -> Option<Throughput> {
    samples_per_s(analysis)
        .map(|rate| Throughput {
            rate,
            of_samples: true,
        })
        .or_else(|| {
            Some(Throughput {
                rate: steps_per_s(analysis)?,
                of_samples: false,
            })
        })
}

pub fn samples_per_s(analysis: &Analysis) -> Option<Estimate> {
    let window = analysis.window.as_ref()?;
    let samples = window.samples.filter(|samples| *samples > 0)? as f64;
    let pairs = pairs(analysis, |tick| (tick.samples.unwrap_or(0) as f64, tick.dt));
    Some(Estimate::of_quotient(samples / window.wall_s(), &pairs))
}

pub fn steps_per_s(analysis: &Analysis) -> Option<Estimate> {
    let window = analysis.window.as_ref()?;
    let pairs = pairs(analysis, |tick| (tick.steps as f64, tick.dt));
    Some(Estimate::of_quotient(
        window.steps as f64 / window.wall_s(),
        &pairs,
    ))
}

/// Two quantities of each tick of the steady steps.
pub fn pairs(analysis: &Analysis, of: impl Fn(&StepTick) -> (f64, f64)) -> Vec<(f64, f64)> {
    let Some(window) = &analysis.window else {
        return Vec::new();
    };
    let (start_s, end_s) = window.range();
    let steady = analysis
        .data
        .steps
        .iter()
        .filter(|tick| tick.t > start_s && tick.t <= end_s);
    steady.map(of).collect()
}
