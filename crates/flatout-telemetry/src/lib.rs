//! What the GPU, the host and the training program do.
//!
//! - [`sample`]: what one tick holds; every value optional, because unknown is never 0.
//! - [`doctor`]: what this machine has and lacks.
//! - [`import`]: logs of other tools as samples.
//! - [`log_csv`]: samples as CSV, for other tools.
//! - [`sources`]: where samples come from; [`scope`]: which GPUs.
//! - [`sampler`]: reads all sources on a schedule.
//! - [`prometheus`]: the latest sample as a page for Prometheus.
//! - [`slurm`]: what Slurm knows of a job.
//! - [`training_log`]: epoch times and errors out of what a training program printed.
//! - [`record`]: the run record on disk: types, writer, reader.
//!
//! One direction: sources make samples, samples go into a record, others read the record. Nothing here judges.

pub mod doctor;
pub mod import;
pub mod log_csv;
pub mod prometheus;
pub mod record;
pub mod sample;
pub mod sampler;
pub mod scope;
pub mod slurm;
pub mod sources;
pub mod training_log;

pub use record::{
    Event, EventKind, Fact, Phase, PhaseTime, Record, RecordWriter, RunInfo, StackTick, StepTick,
};
pub use sample::{GpuSample, HostSample, ProcessSample, Sample};
pub use sampler::{Sampler, SamplerOptions, Tick};
pub use scope::GpuScope;
