//! Sending a command to Slurm: a batch script that records itself, and `sbatch`. Nothing a person typed reaches a shell
//! unquoted, and no value can begin a line of its own.

mod array;
mod grid;
mod node;
mod profile;
mod prolog;
mod quote;
mod script;
mod submit;

pub use array::{ArrayError, ArrayFailure, ArrayRequest, Arrays, TaskState, time_limit};
pub use grid::Grid;
pub use node::NodeShape;
pub use profile::{Profile, ProfileError};
pub use prolog::prolog;
pub use quote::{quoted, word};
pub use script::{Request, ScriptError, script, uses_first_node_only};
pub use submit::{Submitted, make_log_folder, submit};
