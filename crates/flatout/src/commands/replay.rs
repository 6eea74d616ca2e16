//! `flatout replay RECORD`

use crate::context::Context;
use crate::watching::{self, Shape};
use clap::Args;
use flatout_core::{Failure, Message, Result, message};
use flatout_diagnose::verdict::Aspect;
use flatout_record as record;
use flatout_tui::watch::{Replay, Speed, watch};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout replay last                  the newest run, ten times as fast
  flatout replay runs/evaluation --speed 1
  flatout replay last --plain          plain lines, then the verdict";

/// On the screen; in a pipe nobody wants to wait.
const SPEED_ON_SCREEN: f64 = 10.0;

#[derive(Args)]
pub struct Arguments {
    /// The run: `last`, its name or id, or the folder of its record
    record: String,
    /// Replay speed as a multiple of real time; 0 is as fast as possible [default: 10 on the screen, else 0]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    speed: Option<f64>,
    #[command(flatten)]
    shape: Shape,
    /// Exit with 1 if the verdict has one of these faults
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = watching::fault_parser())]
    fail_on: Vec<Aspect>,
}

pub fn about() -> Message {
    message!(en: "Replay the record of a run, with the same verdict", zh: "回放一次运行的记录，给出同样的结论")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let default = if arguments.shape.is_screen() {
        SPEED_ON_SCREEN
    } else {
        0.0
    };
    let speed = match arguments.speed.unwrap_or(default) {
        0.0 => Speed::Fastest,
        factor if factor.is_finite() && factor > 0.0 => Speed::Times(factor),
        factor => {
            return Err(Failure::new(message!(en: "{factor} is not a valid speed", zh: "速度不能是 {factor}"))
                .with_hint(message!(en: "use a factor above 0, or 0 for as fast as possible: --speed 10", zh: "请给出大于 0 的倍数，或用 0 表示最快，例如 --speed 10")));
        }
    };
    let record = record::find(&arguments.record)?;
    let mut feed = Replay::new(&record, speed);
    let mut view = arguments.shape.view("replay", context)?;
    let outcome = watch(&mut feed, view.as_mut(), &mut [], None);
    drop(view);
    arguments.shape.end(&outcome.verdict, context);
    watching::say_skipped(feed.skipped(), context);
    Ok(watching::exit_code(&outcome.verdict, &arguments.fail_on, context))
}
