//! What a session records once and then repeats: the walk over the plan, and the graphs made of it.

use super::CudaSession;
use super::streaming::Streaming;
use crate::EngineError;
use crate::cuda::control::Control;
use crate::cuda::driver::Argument;
use crate::cuda::io::{Io, Site};
use crate::cuda::recording_lock::exclusive;
use crate::ops::optimizer;
use crate::plan::BufferId;

/// Steps below this are sent several at a time: starting one costs some hundredths of a millisecond.
const SHORT_MS: f64 = 0.5;

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
    /// As many steps as are sent together.
    Steps,
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
            streamed: self
                .streaming
                .as_ref()
                .and_then(|streaming| streaming.rows_of(index)),
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
        if work == Work::Steps {
            return self.enqueue_many();
        }
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
            Work::Update | Work::Steps => {}
        }
        if matches!(work, Work::Step | Work::Update) {
            optimizer::enqueue(&self.plan, &self.machine, &self.memory, &self.norm_parts)?;
        }
        Ok(())
    }

    /// Records the work where that is still to do, and runs it with the batch that was filled. Steps that are short are held
    /// until there are several of them, as long as the card has enough to do.
    pub(super) fn run(&mut self, work: Work, weight: f64, rate: f64) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.check_ready()?;
        if work != Work::Step {
            self.flush()?;
        }
        self.fill_control(work, weight, rate);
        if !self.rehearsed {
            // Kernels are loaded when they are started first.
            exclusive(|| {
                self.bring_rows(self.slots.held(), 1)?;
                self.rehearse(work)
            })?;
        }
        self.slots.hold();
        if work == Work::Step && self.steps_are_short() {
            if self.slots.held() < self.slots.together() && self.busy.is_working() {
                return Ok(());
            }
            return self.flush();
        }
        self.launch(work)
    }

    /// Runs the steps that are held.
    pub(super) fn flush(&mut self) -> Result<(), EngineError> {
        if self.slots.held() == 0 {
            return Ok(());
        }
        self.machine.device.bind()?;
        self.launch(Work::Step)
    }

    /// Runs recorded work once for each batch that is held.
    fn launch(&mut self, work: Work) -> Result<(), EngineError> {
        let held = self.slots.held();
        if work != Work::Update {
            self.bring_rows(0, held)?;
        }
        let all = held > 1 && held == self.slots.together();
        let stage = self.streaming.as_ref().map_or(0, Streaming::stage);
        let work = if all { Work::Steps } else { work };
        if !self.graphs.contains_key(&(work, stage)) {
            let graph = self.machine.stream.capture(|| self.enqueue(work))?;
            self.graphs.insert((work, stage), graph);
        }
        let Some(graph) = self.graphs.get(&(work, stage)) else {
            return Ok(());
        };
        let (stream, slots) = (&self.machine.stream, &mut self.slots);
        let streaming = self.streaming.as_ref().filter(|_| work != Work::Update);
        let (inputs, bytes) = (self.memory.inputs.address(), slots.bytes());
        let measured = self.busy.around(stream, held, || {
            if let Some(streaming) = streaming {
                slots.go_on()?;
                for number in 0..if all { 0 } else { held } {
                    streaming.bring_forward(number, stream)?;
                    stream.copy(inputs, streaming.part(0), bytes)?;
                    graph.launch(stream)?;
                }
                if all {
                    graph.launch(stream)?;
                }
                return streaming.consumed(stream);
            }
            slots.send(stream, inputs)?;
            if all || held == 1 {
                return graph.launch(stream);
            }
            for number in 0..held {
                stream.copy(inputs, slots.staged(number), bytes)?;
                graph.launch(stream)?;
            }
            Ok(())
        });
        Ok(measured?)
    }

    /// As many steps as are sent together, each with its own batch.
    fn enqueue_many(&self) -> Result<(), EngineError> {
        let inputs = self.memory.inputs.address();
        for number in 0..self.slots.together() {
            let batch = match &self.streaming {
                Some(streaming) => {
                    streaming.record_part(number);
                    streaming.part(number)
                }
                None => self.slots.staged(number),
            };
            self.machine.stream.copy(inputs, batch, self.slots.bytes())?;
            self.enqueue(Work::Step)?;
        }
        self.streaming
            .iter()
            .for_each(|streaming| streaming.record_part(0));
        Ok(())
    }

    fn steps_are_short(&self) -> bool {
        let room = self
            .streaming
            .as_ref()
            .is_none_or(|streaming| streaming.parts() == self.slots.together());
        room && self.busy.mean_ms().is_some_and(|time| time < SHORT_MS)
    }

    /// One pass whose results are thrown away: it chooses the algorithms of the products, which a recording must not do.
    fn rehearse(&mut self, work: Work) -> Result<(), EngineError> {
        let work = match work {
            Work::Evaluate => Work::Evaluate,
            _ => Work::Accumulate { first: true },
        };
        let (results, states) = (self.results()?, self.states()?);
        let inputs = self.memory.inputs.address();
        self.machine.stream.write(inputs, &*self.slots.filling())?;
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

    /// The step's own numbers, in front of the batch.
    fn fill_control(&mut self, work: Work, weight: f64, rate: f64) {
        // A step has counted itself already; a micro-batch belongs to the update that follows.
        let updating = matches!(work, Work::Step | Work::Update);
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
            update: self.position.updates + u64::from(!updating),
            epoch: self.epoch,
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
