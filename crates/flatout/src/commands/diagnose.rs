//! `flatout diagnose RUN`

use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_diagnose::Diagnosis;
use flatout_record as record;
use flatout_report::text;
use serde::Serialize;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout diagnose last
  flatout diagnose .flatout/runs/20261115-031200-train
  flatout diagnose last --json";

#[derive(Args)]
pub struct Arguments {
    /// The run: `last`, its name or id, or its folder
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Explain why the GPU was idle during a run, and what to do", zh: "说明一次运行中 GPU 为何空闲，以及该怎么办")
}

/// The diagnosis with the run it is of.
#[derive(Serialize)]
pub struct Output<'a> {
    pub run: &'a str,
    #[serde(flatten)]
    pub diagnosis: &'a Diagnosis,
}

/// The command to type next, as the last line.
fn next(diagnosis: &Diagnosis, run: &str, context: &Context) -> String {
    if diagnosis.monitor.is_some() {
        return String::new();
    }
    format!("\n{}\n", context.say(&text::next_command(diagnosis, run)))
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let record = record::find(&arguments.run)?;
    let data = record.load();
    let mut diagnosis = flatout_diagnose::diagnose(&data);
    linted::annotate(&mut diagnosis, &data.lines);
    let text = if arguments.json {
        let output = Output {
            run: &record.info.id,
            diagnosis: &diagnosis,
        };
        serde_json::to_string_pretty(&output).unwrap_or_default() + "\n"
    } else {
        text::diagnosis(
            &diagnosis,
            context.language,
            text::readable_width(None),
            context.colour_on_stdout(),
        ) + &next(&diagnosis, &record::argument_for(record.folder()), context)
    };
    crate::output::write_stdout(text.as_bytes());
    let lost = data.skipped.iter().filter(|skipped| !skipped.torn).count();
    if lost > 0 {
        let say =
            message!(en: "{lost} lines of the record could not be read", zh: "记录中有 {lost} 行无法读取");
        eprintln!("{}", context.say(&say));
    }
    Ok(ExitCode::SUCCESS)
}
