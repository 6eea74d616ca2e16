//! The run record: a folder, append-only, crash-safe.
//!
//! | file | a line is |
//! | --- | --- |
//! | `run.json` | the run: command, host, GPUs, versions, exit ([`RunInfo`]) |
//! | `facts.jsonl` | a setting really in force, or a place in the source ([`Fact`]) |
//! | `samples.jsonl` | a tick of measurement, as a merge patch on the line before ([`Sample`]) |
//! | `steps.jsonl` | the training steps of a tick ([`StepTick`]) |
//! | `events.jsonl` | something that happened ([`Event`]) |
//! | `stacks.jsonl` | where the main thread was, counts per stack ([`StackTick`]) |
//! | `lines.jsonl` | a line of the user's source that samples fell on ([`SourceLine`]) |
//! | `windows.jsonl` | what the GPU did in a short window, with the host's samples ([`GpuWindow`]) |
//! | `timeline.jsonl` | a step event by event, at most two of them ([`StepTimeline`]) |
//! | `profile.json` | what a few steps under PyTorch's profiler showed ([`Profile`]); only where it was asked for |
//! | `trace.json` | its trace, for a viewer; only where it was asked for |
//!
//! A line is written with one call, so a killed writer leaves at most one torn last line. Older parts of a file are
//! compressed as `samples.0000.jsonl.zst`. Several ranks: `ranks/N/` with files of their own. A reader never fails on a
//! torn or foreign line: it skips it and says so.

mod baseline;
mod delta;
mod epochs;
mod event;
mod fact;
mod follow;
mod gpu_window;
mod home;
mod lines;
mod profile;
mod prune;
mod reader;
mod run_info;
mod sample;
mod stalled;
mod steps;
mod throttle;
mod timeline;
mod writer;

pub use baseline::{
    BaselineError, baselines, baselines_folder, delete_baseline, find_baseline, save_baseline,
};
pub use epochs::{EpochTime, steady_epochs};
pub use event::{Event, EventKind};
pub use fact::{Blocked, Fact, GpuState, SourceLine, SourceLoop, StackCount, StackTick};
pub use follow::Follow;
pub use gpu_window::{GpuWindow, KernelKind, KindTime, LaunchStack, SyncStack};
pub use home::{
    RunEntry, argument_for, find, folder_name, hide_from_git, list, put_on_list, runs_folder, utc,
};
pub use profile::{Copy, DeviceProfile, Idle, NamedTime, Profile};
pub use prune::{PruneOptions, delete, prunable, size_bytes};
pub use reader::{Items, ReadError, Record, RunData, Skipped};
pub use run_info::{ExitInfo, GpuInfo, HostInfo, JobInfo, PageInfo, RunInfo, SCHEMA};
pub use sample::{GpuProcess, GpuSample, HostSample, ProcessSample, Sample};
pub use stalled::{InsideCollective, StalledRank, ThreadStack};
pub use steps::{Phase, PhaseTime, StepTick};
pub use throttle::{bits as throttle_bits, names as throttle_names};
pub use timeline::{GpuSlice, HostSlice, StepTimeline};
pub use writer::{Lost, RecordWriter};
