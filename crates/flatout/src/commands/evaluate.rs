//! `flatout evaluate CHECKPOINT DATA`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Failure, Message, Result, message};
use flatout_report::text::{self, Align, Paint};
use flatout_train::metrics::{self, ClassReport};
use flatout_train::predict;
use flatout_train::settings::Values;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout evaluate out/stocks data/stocks-2025
  flatout evaluate out/clicks/last.safetensors test.csv --json";

/// Classes whose confusion matrix fits on a terminal.
const MOST_COLUMNS: usize = 12;

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
    let Some(scores) = predictions.scores else {
        return Err(without_labels(&arguments.data, predictions.no_labels));
    };
    for note in &predictions.notes {
        eprintln!("{}", note.get(context.language));
    }
    if arguments.json {
        let mut all = serde_json::to_value(scores).unwrap_or_default();
        if !predictions.targets.is_empty() {
            let each = predictions.targets.iter().cloned();
            all["targets"] = serde_json::to_value(each.collect::<BTreeMap<_, _>>()).unwrap_or_default();
        }
        metrics::add_reports(&mut all, &predictions.classes);
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
    for (label, report) in &predictions.classes {
        text += &classes_text(label.as_deref(), report, context);
    }
    write_stdout(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// The scores of each class, and how often each was taken for each.
fn classes_text(label: Option<&str>, report: &ClassReport, context: &Context) -> String {
    let (class, samples) = (
        message!(en: "class", zh: "类别"),
        message!(en: "samples", zh: "样本数"),
    );
    let mut text = String::new();
    let mut each = text::Table::new(&[
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ]);
    each.row([
        context.say(&class),
        "precision",
        "recall",
        "f1",
        context.say(&samples),
    ]);
    for of in &report.classes {
        let share = |value: f64| format!("{value:.4}");
        each.row([
            &of.class,
            &share(of.precision),
            &share(of.recall),
            &share(of.f1),
            &of.samples.to_string(),
        ]);
    }
    let heading = label.map(|label| format!(" ({label})")).unwrap_or_default();
    text += &format!(
        "\n{}{heading}\n",
        context.say(&message!(en: "classes", zh: "各类别"))
    );
    text += &each.render(Paint { colour: false });
    let count = report.confusion.len();
    let title = match count > MOST_COLUMNS {
        true => {
            message!(en: "confusion matrix of {count} classes: too wide for a terminal, see --json", zh: "{count} 个类别的混淆矩阵：终端放不下，见 --json")
        }
        false => {
            message!(en: "confusion matrix (rows: true class, columns: predicted class)", zh: "混淆矩阵（行：真实类别，列：预测类别）")
        }
    };
    text += &format!("\n{}{heading}\n", context.say(&title));
    if count > MOST_COLUMNS {
        return text;
    }
    let mut aligned = vec![Align::Right; count + 1];
    aligned[0] = Align::Left;
    let mut matrix = text::Table::new(&aligned);
    let names = report.classes.iter().map(|of| of.class.clone());
    matrix.toned_cells(
        std::iter::once(String::new())
            .chain(names)
            .map(|cell| (cell, None)),
    );
    for (of, row) in report.classes.iter().zip(&report.confusion) {
        let cells = row.iter().map(u64::to_string);
        matrix.toned_cells(
            std::iter::once(of.class.clone())
                .chain(cells)
                .map(|cell| (cell, None)),
        );
    }
    text + &matrix.render(Paint { colour: false })
}

/// There is nothing to compare with: no labels, or none that can be read.
fn without_labels(data: &Path, why: Option<Message>) -> Failure {
    let data = data.display();
    let mut text = message!(en: "`{data}` has no labels to evaluate this model against", zh: "`{data}` 中没有可用于评估此模型的标签");
    if let Some(why) = why {
        text.en += &format!(": {}", why.en);
        text.zh += &format!("：{}", why.zh);
    }
    Failure::new(text)
}
