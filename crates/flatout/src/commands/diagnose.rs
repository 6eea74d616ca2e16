//! `flatout diagnose RUN`

use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::{Failure, Message, Result, message};
use flatout_diagnose::Diagnosis;
use flatout_record::{self as record, Record, RunData};
use flatout_report::{ranks, text};
use serde::Serialize;
use std::collections::BTreeSet;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout diagnose last
  flatout diagnose .flatout/runs/20261115-031200-train
  flatout diagnose last --rank 3
  flatout diagnose last --json";

#[derive(Args)]
pub struct Arguments {
    /// The run: `last`, its name or id, or its folder
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Findings and account of this rank [default: the rank that the others wait for]
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
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

/// In the record itself, or in that of another task of the same job.
fn of_rank(record: &Record, rank: u32) -> Result<(Record, RunData, Diagnosis)> {
    let record = match ranks::record_of(record, rank) {
        Ok(record) => record,
        Err(known) => return Err(no_rank(rank, &known)),
    };
    let data = record.load();
    let diagnosis = flatout_diagnose::ranks::diagnose_rank(&data, rank);
    // A program that never joined a process group is numbered by its job alone.
    let diagnosis = diagnosis.unwrap_or_else(|| flatout_diagnose::diagnose(&data));
    Ok((record, data, diagnosis))
}

fn no_rank(rank: u32, known: &BTreeSet<u32>) -> Failure {
    let known: Vec<String> = known.iter().map(u32::to_string).collect();
    let known = known.join(", ");
    Failure::new(message!(en: "the run has no rank {rank}", zh: "这次运行没有 rank {rank}"))
        .with_hint(message!(en: "its ranks: {known}", zh: "它的 rank：{known}"))
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let record = record::find(&arguments.run)?;
    let (record, data, mut diagnosis) = match arguments.rank {
        Some(rank) => of_rank(&record, rank)?,
        None => {
            let data = record.load();
            let diagnosis = flatout_diagnose::diagnose(&data);
            (record, data, diagnosis)
        }
    };
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
