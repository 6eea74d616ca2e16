//! The norm, the clip and the rule over all parameters at once: they lie in one stretch.

use super::Rule;
use crate::cuda::{Argument, Block, CudaError, Machine, Memory, Precision};
use crate::plan::Plan;

/// Sums of squares that the norm is made of, one a block.
pub(crate) const NORM_PARTS: usize = 512;

pub(crate) const KERNELS: &str = include_str!("optimizer.cu");

/// Puts one update into the queue.
pub(crate) fn enqueue(
    plan: &Plan,
    machine: &Machine,
    memory: &Memory,
    parts: &Block,
) -> Result<(), CudaError> {
    let optimizer = plan.optimizer();
    // Without a clip or a scale nobody needs the norm in every step.
    if optimizer.clip_norm.is_some() || machine.precision == Precision::F16 {
        enqueue_norm(plan, machine, memory, parts)?;
    }
    let count = Argument::Long(memory.trained_values as i64);
    let (parameters, gradients) = (memory.parameters.address(), memory.gradients.address());
    let results = Argument::Address(memory.results.address());
    let computing = Argument::Address(memory.computing.as_ref().map_or(0, Block::address));
    let control = Argument::Address(memory.inputs.address());
    let moment = |index: usize| Argument::Address(memory.moments.get(index).map_or(0, Block::address));
    let decay = optimizer.weight_decay as f32;
    if optimizer.rule == Rule::Sgd {
        let arguments = [
            Argument::Address(parameters),
            Argument::Address(gradients),
            moment(0),
            computing,
            count,
            Argument::Float(optimizer.beta1 as f32),
            Argument::Float(decay),
            control,
            results,
        ];
        machine.each("descend", memory.trained_values, &arguments)?;
        return enqueue_average(plan, machine, memory);
    }
    let decoupled = optimizer.rule == Rule::AdamW;
    let arguments = [
        Argument::Address(parameters),
        Argument::Address(gradients),
        moment(0),
        moment(1),
        computing,
        count,
        Argument::Float(optimizer.beta1 as f32),
        Argument::Float(optimizer.beta2 as f32),
        Argument::Float(optimizer.epsilon as f32),
        Argument::Float(if decoupled { 0.0 } else { decay }),
        Argument::Word(i32::from(decoupled)),
        control,
        results,
    ];
    machine.each("adam", memory.trained_values / 4, &arguments)?;
    enqueue_average(plan, machine, memory)
}

/// The averages follow the parameters, where there are any.
fn enqueue_average(plan: &Plan, machine: &Machine, memory: &Memory) -> Result<(), CudaError> {
    let (Some(decay), Some(average)) = (plan.optimizer().average, memory.moments.last()) else {
        return Ok(());
    };
    let arguments = [
        Argument::Address(memory.parameters.address()),
        Argument::Address(average.address()),
        Argument::Long(memory.trained_values as i64),
        Argument::Float((1.0 - decay) as f32),
        Argument::Address(memory.results.address()),
    ];
    machine.each("follow_average", memory.trained_values, &arguments)
}

/// Puts parameters and averages into each other's place.
pub(crate) fn enqueue_exchange(plan: &Plan, machine: &Machine, memory: &Memory) -> Result<(), CudaError> {
    let (Some(_), Some(average)) = (plan.optimizer().average, memory.moments.last()) else {
        return Ok(());
    };
    let arguments = [
        Argument::Address(memory.parameters.address()),
        Argument::Address(average.address()),
        Argument::Address(memory.computing.as_ref().map_or(0, Block::address)),
        Argument::Long(memory.trained_values as i64),
    ];
    machine.each("exchange_average", memory.trained_values, &arguments)
}

/// The norm of all gradients, and the factor that the clip makes of it.
pub(crate) fn enqueue_norm(
    plan: &Plan,
    machine: &Machine,
    memory: &Memory,
    parts: &Block,
) -> Result<(), CudaError> {
    let arguments = [
        Argument::Address(memory.gradients.address()),
        Argument::Long(memory.trained_values as i64),
        Argument::Address(parts.address()),
    ];
    machine.blocks("norm_parts", (NORM_PARTS, 1), 256, &arguments)?;
    let limit = plan.optimizer().clip_norm.map_or(0.0, |limit| limit as f32);
    let arguments = [
        Argument::Address(parts.address()),
        Argument::Word(NORM_PARTS as i32),
        Argument::Float(limit),
        Argument::Word(i32::from(machine.precision == Precision::F16)),
        Argument::Address(memory.results.address()),
    ];
    machine.blocks("norm_whole", (1, 1), 512, &arguments)
}
