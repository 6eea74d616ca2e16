//! `flatout demo`

use crate::context::Context;
use crate::demo;
use clap::Args;
use flatout_core::{Message, Result, message};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout demo
  flatout demo --out /tmp/flatout-demo --lang zh-CN";

#[derive(Args)]
pub struct Arguments {
    /// Folder for data, runs and pages: new, empty, or from an earlier demo
    #[arg(long, value_name = "FOLDER", default_value = "flatout-demo")]
    out: PathBuf,
    /// Use flatout's own trainer even if PyTorch is installed
    #[arg(long)]
    built_in: bool,
}

pub fn about() -> Message {
    message!(en: "Watch a slow training get diagnosed and fixed, in one minute", zh: "一分钟看完：缓慢的训练、原因、改进和验证")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    Ok(if demo::run(&arguments.out, arguments.built_in, context)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(130)
    })
}
