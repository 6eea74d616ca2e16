//! Where a step's time goes: each part alone, recorded several times over and run as one graph, so that nothing but the card
//! is timed. What runs beside other things in a real step is counted in full here.

use super::CudaSession;
use crate::EngineError;
use crate::ops::optimizer;

/// How many times a part is recorded in its graph.
const REPEATS: usize = 8;

impl CudaSession {
    /// Milliseconds of each part of a step. Call it between steps; gradients and sums are worth nothing afterwards.
    pub fn profile(&mut self) -> Result<Vec<(String, f64)>, EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        let mut parts = Vec::new();
        for (index, node) in self.plan.nodes().iter().enumerate() {
            if self.fusion.is_done(index) {
                continue;
            }
            let io = self.io(index, true);
            let name = |way: &str| format!("{index} {} {way}", node.op.name());
            parts.push((name("forward"), self.time(|| Ok(node.op.cuda_forward(&io)?))?));
            if self.plan.backward().contains(&index) {
                parts.push((
                    name("backward"),
                    self.time(|| {
                        node.op.cuda_backward(&io)?;
                        Ok(self.machine.rejoin()?)
                    })?,
                ));
            }
        }
        let update = || {
            Ok(optimizer::enqueue(
                &self.plan,
                &self.machine,
                &self.memory,
                &self.norm_parts,
            )?)
        };
        parts.push(("update".to_owned(), self.time(update)?));
        let gradients = &self.memory.gradients;
        let clear = || {
            Ok(self
                .machine
                .stream
                .clear(gradients.address(), gradients.bytes())?)
        };
        parts.push(("clear gradients".to_owned(), self.time(clear)?));
        Ok(parts)
    }

    fn time(&self, work: impl Fn() -> Result<(), EngineError>) -> Result<f64, EngineError> {
        self.machine.time(REPEATS, work)
    }
}
