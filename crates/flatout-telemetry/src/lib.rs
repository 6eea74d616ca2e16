//! What the GPU, the host and the training program do.
//!
//! - [`doctor`]: what this machine has and lacks.
//! - [`sources`]: where samples come from; [`scope`]: which GPUs.
//! - [`sampler`]: reads all sources on a schedule.
//! - [`prometheus`]: the latest sample as a page for Prometheus.
//!
//! Sources make the samples of a run record (`flatout-record`). Nothing here judges.

pub mod doctor;
pub mod prometheus;
pub mod sampler;
pub mod scope;
pub mod sources;

pub use sampler::{Sampler, SamplerOptions, Tick};
pub use scope::GpuScope;
