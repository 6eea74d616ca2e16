//! Which engine a convolution takes: the one that was fastest here before, else the fastest of the proposals now.

use super::graph::{Graph, Plan};
use super::{Dnn, Key, Tensors};
use crate::cuda::compiler;
use crate::cuda::driver::{Event, Stream};
use crate::cuda::error::CudaError;

/// Proposals that are timed; they come in the order of what the library expects of them.
const TIMED: usize = 8;

impl Dnn {
    pub(super) fn choose(&self, stream: &Stream, key: &Key, tensors: Tensors) -> Result<Plan, CudaError> {
        let graph = Graph::new(&self.api, &self.handle, key)?;
        let proposals = graph.proposals(&self.api, key)?;
        let usable = |position: usize| {
            let plan = Plan::new(&self.api, &self.handle, proposals.get(position)?).ok()?;
            (plan.workspace_bytes <= self.workspace.bytes()).then_some(plan)
        };
        let name = format!(
            "{} cudnn {} {key:?} of {}",
            self.card,
            self.api.version(),
            proposals.len()
        );
        let kept = compiler::kept_choice("convolution", &name);
        if let Some(plan) = kept.and_then(usable) {
            return Ok(plan);
        }
        let mut best: Option<(f64, usize, Plan)> = None;
        let mut timed = 0;
        for position in 0..proposals.len() {
            let Some(plan) = usable(position) else { continue };
            if !self.tuning.get() {
                return Ok(plan);
            }
            if let Ok(time) = self.time(stream, &plan, tensors) {
                log::debug!("{key:?}: proposal {position} takes {:.1} µs", time * 1e3);
                timed += 1;
                if best.as_ref().is_none_or(|(fastest, ..)| time < *fastest) {
                    best = Some((time, position, plan));
                }
            }
            if timed == TIMED {
                break;
            }
        }
        let Some((_, position, plan)) = best else {
            return Err(CudaError::Call {
                call: "cudnnBackendFinalize",
                reason: format!("no engine for {key:?}"),
            });
        };
        compiler::keep_choice("convolution", &name, position);
        Ok(plan)
    }

    /// The best of three timings of two runs each, in milliseconds.
    fn time(&self, stream: &Stream, plan: &Plan, tensors: Tensors) -> Result<f64, CudaError> {
        let (start, end) = (Event::new()?, Event::new()?);
        self.execute(plan, tensors)?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            start.record(stream)?;
            self.execute(plan, tensors)?;
            self.execute(plan, tensors)?;
            end.record(stream)?;
            end.wait()?;
            best = best.min(end.since(&start)? / 2.0);
        }
        Ok(best)
    }
}
