//! What a session records once and then repeats: the walk over the plan, and the graphs made of it.

use super::CudaSession;
use crate::EngineError;
use crate::cuda::control::Control;
use crate::cuda::driver::Argument;
use crate::cuda::io::{Io, Site};
use crate::ops::optimizer;
use crate::plan::BufferId;

/// Work that is recorded once and then repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// Clear the gradients, forward, backward, update.
    Step,
    /// Forward and backward; `first` clears the gradients before.
    Accumulate {
        first: bool,
    },
    Update,
    Evaluate,
}

impl CudaSession {
    pub(super) fn io(&self, index: usize, training: bool) -> Io<'_> {
        let node = &self.plan.nodes()[index];
        let pool = self.fusion.pool(&self.plan, index);
        Io {
            plan: &self.plan,
            machine: &self.machine,
            memory: &self.memory,
            node,
            site: Site { node, pool },
            scratch: &self.scratch[index],
            index,
            training,
        }
    }

    fn forward(&self, training: bool) -> Result<(), EngineError> {
        let nodes = 0..self.plan.nodes().len();
        for index in nodes.filter(|index| !self.fusion.is_done(*index)) {
            let io = self.io(index, training);
            io.node.op.cuda_forward(&io)?;
        }
        if let Some(loss) = self.plan.loss() {
            let arguments = [
                Argument::Address(self.memory.place(loss).address),
                Argument::Address(self.memory.inputs.address()),
                Argument::Address(self.memory.results.address()),
                Argument::Word(i32::from(!training)),
            ];
            self.machine.blocks("meter", (1, 1), 1, &arguments)?;
        }
        Ok(())
    }

    fn enqueue(&self, work: Work) -> Result<(), EngineError> {
        if matches!(work, Work::Step | Work::Accumulate { first: true }) {
            self.machine
                .stream
                .clear(self.memory.gradients.address(), self.memory.gradients.bytes())?;
        }
        match work {
            Work::Step | Work::Accumulate { .. } => {
                self.forward(true)?;
                let nodes = self.plan.backward().iter().copied();
                for index in nodes.filter(|index| !self.fusion.is_done(*index)) {
                    let io = self.io(index, true);
                    io.node.op.cuda_backward(&io)?;
                }
                self.machine.rejoin()?;
            }
            Work::Evaluate => self.forward(false)?,
            Work::Update => {}
        }
        if matches!(work, Work::Step | Work::Update) {
            optimizer::enqueue(&self.plan, &self.machine, &self.memory, &self.norm_parts)?;
        }
        Ok(())
    }

    /// Sends the batch and the step's numbers, then runs the recorded work, recording it first where that is still to do.
    pub(super) fn run(&mut self, work: Work, weight: f64, rate: f64) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.check_ready()?;
        if !self.rehearsed {
            self.send(weight, rate)?;
            self.rehearse(work)?;
        }
        if !self.graphs.contains_key(&work) {
            let graph = self.machine.stream.capture(|| self.enqueue(work))?;
            self.graphs.insert(work, graph);
        }
        self.fill_control(weight, rate);
        let (stream, slots) = (&self.machine.stream, &mut self.slots);
        let (graph, inputs) = (self.graphs.get(&work), self.memory.inputs.address());
        let measured = self.busy.around(stream, || {
            slots.send(stream, inputs)?;
            graph.map_or(Ok(()), |graph| graph.launch(stream))
        });
        Ok(measured?)
    }

    /// One pass whose results are thrown away: it chooses the algorithms of the products, which a recording must not do.
    fn rehearse(&mut self, work: Work) -> Result<(), EngineError> {
        let work = match work {
            Work::Evaluate => Work::Evaluate,
            _ => Work::Accumulate { first: true },
        };
        let (results, states) = (self.results()?, self.states()?);
        self.machine.tune(true);
        let done = self.enqueue(work);
        self.machine.tune(false);
        done?;
        // Sums that nobody has asked for yet stay as they were; gradients are cleared by the first real pass.
        self.machine
            .stream
            .write(self.memory.results.address(), &[results])?;
        for (id, values) in states {
            self.machine
                .stream
                .write(self.memory.place(id).address, &values)?;
        }
        self.rehearsed = work != Work::Evaluate;
        Ok(())
    }

    fn send(&mut self, weight: f64, rate: f64) -> Result<(), EngineError> {
        self.fill_control(weight, rate);
        Ok(self
            .slots
            .send(&self.machine.stream, self.memory.inputs.address())?)
    }

    /// The step's own numbers, in front of the batch.
    fn fill_control(&mut self, weight: f64, rate: f64) {
        let optimizer = self.plan.optimizer();
        let updates = i32::try_from(self.position.updates).unwrap_or(i32::MAX).max(1);
        let control = Control {
            valid_rows: self.valid_rows as i32,
            loss_weight: weight as f32,
            learning_rate: rate as f32,
            step_size: (rate / (1.0 - optimizer.beta1.powi(updates))) as f32,
            correction: (1.0 / (1.0 - optimizer.beta2.powi(updates)).sqrt()) as f32,
            keep: (1.0 - rate * optimizer.weight_decay) as f32,
            tick: self.position.micro_batches,
            seed: self.seed,
        };
        self.slots.filling()[..Control::BYTES].copy_from_slice(&control.bytes());
    }

    /// Running statistics, which the rehearsal must not move.
    fn states(&self) -> Result<Vec<(BufferId, Vec<f32>)>, EngineError> {
        let ids = self
            .plan
            .nodes()
            .iter()
            .flat_map(|node| node.states.iter().copied());
        let read = |id: BufferId| {
            let mut values = vec![0f32; self.plan.buffer(id).len()];
            self.machine
                .stream
                .download(&mut values, self.memory.place(id).address)?;
            Ok((id, values))
        };
        ids.map(read).collect()
    }
}
