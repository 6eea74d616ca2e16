//! Every combination of the lists in a configuration, each a training of its own, over data that are loaded once. What is done stays
//! done: a second call goes on where the first was killed.

mod axes;
mod point;
mod runner;
mod seeds;
mod side_by_side;
mod table;
mod tasks;

pub use axes::Grid;
pub use point::{Point, PointResult};
pub use runner::{GridReport, run};
pub use seeds::{Group, over_seeds};
pub use side_by_side::SideBySide;
pub use table::write_csv;
pub use tasks::{LocalTasks, TaskState, Tasks, TasksError, run_by_tasks, run_one};
