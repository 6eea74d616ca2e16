//! The operations, one folder each: `shape.rs` is what the plan knows (sizes, shape rule, the method of
//! [`Model`](crate::Model) that adds it), `cpu.rs` how the CPU does it, `cuda.rs` (with its kernels in a `.cu`
//! beside it) how the card does. A new operation is one folder and one line in the list.

use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;
use crate::cuda::io::{CudaOperation, Io as CudaIo, Site};
use crate::cuda::{CudaError, Machine};

pub mod clip;
pub mod optimizer;
pub mod recurrent;

/// What the plan knows of every operation.
pub trait Operation {
    /// `linear`, as errors and listings name it.
    fn name(&self) -> &'static str;

    /// Arithmetic of forward, a multiply-add counting two; matrix products and convolutions only.
    fn forward_flops(&self) -> f64 {
        0.0
    }

    /// Whether the gradient of each input is that of the output as it is. Nothing is copied then where an input has no other reader.
    fn passes_gradient(&self) -> bool {
        false
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

            pub(crate) fn passes_gradient(&self) -> bool {
                match self {
                    $(Self::$operation(operation) => operation.passes_gradient()),*
                }
            }

            pub(crate) fn cpu_scratch<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
                match self {
                    $(Self::$operation(operation) => CpuOperation::<T>::scratch(operation, gemm, workers)),*
                }
            }

            pub(crate) fn cpu_forward<T: Real>(&self, io: &Io<T>) -> Result<(), EngineError> {
                match self {
                    $(Self::$operation(operation) => CpuOperation::forward(operation, io)),*
                }
            }

            pub(crate) fn cpu_backward<T: Real>(&self, io: &Io<T>) {
                match self {
                    $(Self::$operation(operation) => CpuOperation::backward(operation, io)),*
                }
            }

            pub(crate) fn cuda_scratch(&self, machine: &Machine, site: &Site) -> Result<Vec<usize>, CudaError> {
                match self {
                    $(Self::$operation(operation) => CudaOperation::scratch(operation, machine, site)),*
                }
            }

            pub(crate) fn cuda_forward(&self, io: &CudaIo) -> Result<(), CudaError> {
                match self {
                    $(Self::$operation(operation) => CudaOperation::forward(operation, io)),*
                }
            }

            pub(crate) fn cuda_backward(&self, io: &CudaIo) -> Result<(), CudaError> {
                match self {
                    $(Self::$operation(operation) => CudaOperation::backward(operation, io)),*
                }
            }
        }

        /// The CUDA kernels of all operations.
        pub(crate) fn cuda_kernels() -> Vec<&'static str> {
            vec![optimizer::KERNELS, $(<$module::$operation as CudaOperation>::kernels()),*]
        }
    };
}

operations!(
    activate::Activate,
    attention::Attention,
    average_pool::AveragePool,
    batch_norm::BatchNorm,
    bce::Bce,
    concat::Concat,
    conv1d::Conv1d,
    conv2d::Conv2d,
    cross_entropy::CrossEntropy,
    dropout::Dropout,
    embedding::Embedding,
    flatten::Flatten,
    gather::Gather,
    gelu::Gelu,
    gru::Gru,
    huber::Huber,
    layer_norm::LayerNorm,
    linear::Linear,
    lstm::Lstm,
    max_pool::MaxPool,
    mse::Mse,
    positions::Positions,
    residual::Residual,
    select_steps::SelectSteps,
    soft_argmax::SoftArgmax,
    steps::Steps,
    terms::Terms,
    tokens::Tokens,
    upsample::Upsample,
);
