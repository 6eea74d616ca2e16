//! The operations, one folder each: `shape.rs` is what the plan knows (sizes, shape rule, the method of
//! [`Model`](crate::Model) that adds it), `cpu.rs` how the CPU does it. A new operation is one folder and one line in the list.

use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

pub mod clip;
pub mod optimizer;

/// What the plan knows of every operation.
pub trait Operation {
    /// `linear`, as errors and listings name it.
    fn name(&self) -> &'static str;

    /// Arithmetic of forward, a multiply-add counting two; matrix products and convolutions only.
    fn forward_flops(&self) -> f64 {
        0.0
    }
}

macro_rules! operations {
    ($($module:ident::$operation:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// An operation of a plan.
        #[derive(Clone, Debug)]
        pub enum Op {
            $($operation($module::$operation)),*
        }

        $(impl From<$module::$operation> for Op {
            fn from(operation: $module::$operation) -> Self {
                Self::$operation(operation)
            }
        })*

        impl Op {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$operation(operation) => operation.name()),*
                }
            }

            pub fn forward_flops(&self) -> f64 {
                match self {
                    $(Self::$operation(operation) => operation.forward_flops()),*
                }
            }

            pub(crate) fn cpu_scratch<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
                match self {
                    $(Self::$operation(operation) => CpuOperation::<T>::scratch(operation, gemm, workers)),*
                }
            }

            pub(crate) fn cpu_forward<T: Real>(&self, io: &Io<T>) -> Result<(), EngineError> {
                match self {
                    $(Self::$operation(operation) => operation.forward(io)),*
                }
            }

            pub(crate) fn cpu_backward<T: Real>(&self, io: &Io<T>) {
                match self {
                    $(Self::$operation(operation) => operation.backward(io)),*
                }
            }
        }
    };
}

operations!(
    concat::Concat,
    embedding::Embedding,
    gather::Gather,
    linear::Linear,
    lstm::Lstm,
    mse::Mse,
);
