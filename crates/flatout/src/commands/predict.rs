//! `flatout predict CHECKPOINT DATA`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_train::predict;
use flatout_train::settings::Values;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout predict out/stocks data/stocks --out predictions.parquet
  flatout predict out/stocks/last.safetensors data/new > predictions.csv
  flatout predict out/shapes images/ --device cpu";

#[derive(Args)]
pub struct Arguments {
    /// A checkpoint, or an output folder (its best checkpoint)
    checkpoint: PathBuf,
    /// Data like the training data; labels are not needed
    data: PathBuf,
    /// Output file: .parquet, or any other name for CSV [default: CSV on stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Column with the entity (stock) of each row, for a table with several entities [default: as in training]
    #[arg(long, value_name = "COLUMN")]
    entity: Option<String>,
    /// How to fill missing values: mean, zero, forward, or COLUMN=POLICY for one column; can be repeated [default: as in training]
    #[arg(long, value_name = "[COLUMN=]POLICY")]
    missing: Vec<String>,
    /// auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Only the first N entities, files or images
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub fn about() -> Message {
    message!(en: "Run a trained model on other data", zh: "用训练好的模型对其他数据做预测")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let mut flags: Values = [("device", arguments.device)].into();
    flags.insert("limit", arguments.limit.unwrap_or(0).to_string());
    flags.extend(arguments.entity.map(|column| ("entity", column)));
    if !arguments.missing.is_empty() {
        flags.insert("missing", arguments.missing.join(","));
    }
    let predictions = predict::predict(&arguments.checkpoint, &arguments.data, &flags)?;
    for note in &predictions.notes {
        eprintln!("{}", note.get(context.language));
    }
    if let Some(scores) = &predictions.scores {
        let (text, samples) = (scores.text(), scores.samples);
        let line = Message {
            en: format!(
                "evaluated on {samples} labeled samples: {}",
                text.en.replace("validation loss", "loss")
            ),
            zh: format!(
                "在 {samples} 个有标签的样本上评分：{}",
                text.zh.replace("验证损失", "损失")
            ),
        };
        eprintln!("{}", line.get(context.language));
    }
    let Some(path) = arguments.out else {
        write_stdout(predictions.csv().as_bytes());
        return Ok(ExitCode::SUCCESS);
    };
    predictions.write(&path)?;
    let (rows, path) = (predictions.rows(), path.display());
    let text = message!(en: "wrote {rows} predictions to {path}", zh: "已向 {path} 写入 {rows} 条预测");
    eprintln!("{}", text.get(context.language));
    Ok(ExitCode::SUCCESS)
}
