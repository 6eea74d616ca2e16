//! `flatout doctor`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_report::text;
use flatout_telemetry::doctor::{self, Health};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout doctor          what this machine has, what is missing, and its impact
  flatout doctor --json   the same for programs

Exits 1 if something is broken or misconfigured, 0 otherwise.";

#[derive(Args)]
pub struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Check the driver, GPUs, libraries, Python and limits", zh: "检查驱动、GPU、库、Python 与限制")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let checks = doctor::examine();
    let shown = if arguments.json {
        text::doctor_json(&checks, context.language)
    } else {
        let width = text::readable_width(text::terminal_columns(&std::io::stdout()));
        text::doctor(&checks, context.language, width, context.colour_on_stdout())
    };
    write_stdout(shown.as_bytes());
    let broken = checks.iter().any(|check| check.health == Health::Problem);
    Ok(ExitCode::from(u8::from(broken)))
}
