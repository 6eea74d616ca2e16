//! `flatout run -- COMMAND…`

use crate::context::Context;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_run::{Ended, Options, Outcome, program};
use std::ffi::OsString;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout run -- python train.py --epochs 3
  flatout run --name baseline -- torchrun --nproc_per_node 2 train.py
  flatout run --apply loader.num_workers=8,amp=bf16 --steps 200 -- python train.py";

#[derive(Args)]
pub struct Arguments {
    /// Name of the run [default: the script's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Settings to put in force without an edit: loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    apply: Vec<String>,
    /// Stop the program after this many optimizer steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Say nothing at the end
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments, as you would type them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn about() -> Message {
    message!(
        en: "Run a training program unchanged and say why its GPU idled",
        zh: "原样运行训练程序，并说明 GPU 为什么空闲"
    )
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let options = Options {
        name: arguments.name,
        apply: arguments.apply,
        steps: arguments.steps,
        ..Options::new(arguments.command)
    };
    let outcome = flatout_run::run(&options)?;
    if !arguments.quiet {
        eprintln!("{}", context.say(&place(&outcome)));
    }
    Ok(match outcome.ended {
        Ended::Code(code) => ExitCode::from(code as u8),
        Ended::Signal(signal) => ExitCode::from(program::die_of(signal)),
    })
}

fn place(outcome: &Outcome) -> Message {
    let (folder, seconds, steps) = (outcome.folder.display(), outcome.duration_s, outcome.progress.steps);
    message!(
        en: "flatout: {steps} steps in {seconds:.1} s; record in {folder}",
        zh: "flatout：{seconds:.1} 秒内共 {steps} 步；记录保存在 {folder}"
    )
}
