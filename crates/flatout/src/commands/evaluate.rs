//! `flatout evaluate CHECKPOINT DATA`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Failure, Message, Result, message};
use flatout_train::predict;
use flatout_train::settings::Values;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout evaluate out/stocks data/stocks-2025
  flatout evaluate out/clicks/last.safetensors test.csv --json";

#[derive(Args)]
pub struct Arguments {
    /// A checkpoint, or an output folder (its best checkpoint)
    checkpoint: PathBuf,
    /// Data like the training data, with labels
    data: PathBuf,
    /// Column with the entity (stock) of each row, for a table with several entities [default: as in training]
    #[arg(long, value_name = "COLUMN")]
    entity: Option<String>,
    /// auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Only the first N entities, files or images
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Evaluate a trained model on other data", zh: "在其他数据上评估训练好的模型")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let mut flags: Values = [("device", arguments.device)].into();
    flags.insert("limit", arguments.limit.unwrap_or(0).to_string());
    flags.extend(arguments.entity.map(|column| ("entity", column)));
    let predictions = predict::predict(&arguments.checkpoint, &arguments.data, &flags)?;
    for note in &predictions.notes {
        eprintln!("{}", note.get(context.language));
    }
    let data = arguments.data.display();
    let scores = predictions.scores.ok_or_else(|| {
        Failure::new(message!(en: "`{data}` has no labels to evaluate this model against", zh: "`{data}` 中没有可用于评估此模型的标签"))
    })?;
    if arguments.json {
        let mut all = serde_json::to_value(scores).unwrap_or_default();
        if !predictions.targets.is_empty() {
            let each = predictions.targets.iter().cloned();
            all["targets"] = serde_json::to_value(each.collect::<BTreeMap<_, _>>()).unwrap_or_default();
        }
        write_stdout((serde_json::to_string_pretty(&all).unwrap_or_default() + "\n").as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let samples = message!(en: "samples", zh: "样本数");
    let mut text = format!("{:<22} {}\n", context.say(&samples), scores.samples);
    for (name, value) in scores.figures() {
        text += &format!("{name:<22} {value:.6}\n");
    }
    for (label, scores) in &predictions.targets {
        text += &format!("\n{label}\n");
        for (name, value) in scores.figures() {
            text += &format!("  {name:<20} {value:.6}\n");
        }
    }
    write_stdout(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
