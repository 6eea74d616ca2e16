//! The engine: a model is compiled once into a fixed list of operations over buffers allocated once, the **plan**; a
//! **session** runs the plan on a device. Nothing is allocated inside a step, nothing depends on timing.
//!
//! ```
//! use flatout_engine::{Activation, CpuSession, DataType, EngineError, Model, Optimizer, Recurrent, Role};
//! use flatout_engine::{SequenceOutput, Session, Table};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), EngineError> {
//! // 1. Describe the model for one batch size. Sequences are time-major: [steps, batch, width].
//! let mut model = Model::new(4);
//! let prices = model.table("prices", DataType::Real, &[3])?;      // any number of rows of 3 values
//! let labels = model.table("labels", DataType::Real, &[1])?;
//! let start = model.index_input("start")?;                        // first row of each window
//! let end = model.index_input("end")?;                            // row of each label
//! let stock = model.index_input("stock")?;
//! let window = model.gather_windows(prices, start, 5)?;           // [5, 4, 3]
//! let target = model.gather_rows(labels, end)?;                   // [4, 1]
//! let entity = model.embedding("embedding", stock, 10, 2)?;       // [4, 2]
//! let stack = Recurrent { hidden: 8, layers: 2, dropout: 0.1, output: SequenceOutput::Last };
//! let state = model.lstm("lstm", window, Some(entity), stack)?;   // [4, 8]
//! let prediction = model.linear("head", state, 1, Activation::None)?;
//! model.name(prediction, "prediction")?;
//! let loss = model.mse(prediction, target)?;
//! let plan = model.compile(loss, Optimizer { clip_norm: Some(1.0), ..Optimizer::default() })?;
//!
//! // 2. Put it on a device.
//! let mut session = CpuSession::<f32>::new(plan, 2, 42)?;         // threads, seed
//! session.attach("prices", Table::F32(Arc::new(vec![0.5f32; 300])))?;
//! session.attach("labels", Table::F32(Arc::new(vec![1.0f32; 100])))?;
//!
//! // 3. Train: name the samples, step, and ask for the loss when it is to be shown.
//! for _ in 0..3 {
//!     session.set_indices("start", &[0, 7, 21, 42])?;
//!     session.set_indices("end", &[4, 11, 25, 46])?;
//!     session.set_indices("stock", &[0, 1, 2, 3])?;
//!     session.step(1e-3)?;                                        // learning rate of this step
//! }
//! let mean_loss = session.take_loss();
//!
//! // 4. Evaluate: forward only. The last, smaller batch: fill the rest with any valid index and say how many count.
//! session.set_valid_rows(3);
//! session.evaluate()?;
//! let mut values = vec![0f32; 4];
//! session.read("prediction", &mut values)?;
//! session.set_valid_rows(4);
//!
//! // 5. Checkpoint: parameters, optimizer moments and running statistics by name, and the position.
//! let names: Vec<String> = session.plan().names(Role::Parameter).map(str::to_owned).collect();
//! assert_eq!(names[1], "lstm.weight_ih_l0");                      // PyTorch's state_dict names
//! let mut bias = vec![0f32; 1];
//! session.read("head.bias", &mut bias)?;
//! session.write("head.bias", &bias)?;
//! assert!(session.plan().names(Role::State).any(|name| name == "optimizer.exp_avg.head.bias"));
//! let position = session.position();
//! session.set_position(position);
//! # assert!(mean_loss.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! Gradient accumulation: `accumulate(1.0 / n)` for each of n micro-batches, then `update(rate)`; `step(rate)` is both.
//!
//! The map: [`model`] describes, [`compile`](Model::compile) decides gradients and their order, [`plan`] is the result as
//! data, `ops/<op>/{shape, cpu, cuda}` is each operation, [`cpu`] and [`cuda`] walk the plan. The plan knows no device.
//! [`ceilings`] measures what the machine can do at most.

pub mod activation;
pub mod ceilings;
mod compile;
pub mod cpu;
pub mod cuda;
mod error;
pub mod initialise;
pub mod model;
pub mod ops;
pub mod plan;
pub mod random;
pub mod session;

pub use activation::Activation;
pub use cpu::CpuSession;
pub use error::EngineError;
pub use initialise::Initialiser;
pub use model::{Model, Tensor};
pub use ops::conv1d::Causal;
pub use ops::conv2d::Window;
pub use ops::gather::Augment;
pub use ops::optimizer::{Optimizer, Rule};
pub use ops::recurrent::{Recurrent, SequenceOutput};
pub use ops::terms::{Term, TermLoss};
pub use plan::{BufferId, DataType, Plan, Role};
pub use session::{KeptTensor, Loss, Position, Readback, Ready, Session, Snapshot, Table};
