//! `flatout data inspect PATH`

use crate::context::Context;
use clap::{Args, Subcommand};
use flatout_core::{Explain, Message, Result, message, units};
use flatout_data::inspect::{ColumnInfo, Inspection, inspect};
use flatout_data::load::policies::in_flag;
use flatout_data::{DataError, Policies, Written};
use flatout_tune::machine::Machine;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout data inspect data/stocks
  flatout data inspect logs/click.csv --gpu-memory 24
  flatout data inspect logs/click.csv --missing mean --bad-rows skip --column-type hour=category
  flatout data inspect data/shapes --json";

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show files, shards, schema, rows, missing values, splits and memory
    Inspect {
        /// A file, a folder or a quoted glob
        path: PathBuf,
        /// Only read the first N files (or images per class)
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Memory of another GPU in GiB, to check whether the data fits [default: this machine's]
        #[arg(long, value_name = "GIB")]
        gpu_memory: Option<f64>,
        #[command(flatten)]
        policies: PolicyArguments,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The same words as `flatout train` takes.
#[derive(Args)]
struct PolicyArguments {
    /// How to fill missing values of numeric columns: error, mean, zero, forward or drop, or COLUMN=POLICY for one column; can be repeated [default: error]
    #[arg(long, value_name = "[COLUMN=]POLICY")]
    missing: Vec<String>,
    /// What to do with rows that cannot be read: stop with an error, or skip them [default: error]
    #[arg(
        long,
        value_name = "error|skip",
        default_value = "",
        hide_default_value = true
    )]
    bad_rows: String,
    /// Whether an infinite value is an error or counts as missing [default: error]
    #[arg(
        long,
        value_name = "error|missing",
        default_value = "",
        hide_default_value = true
    )]
    infinite: String,
    /// Read a column as real, integer, category or time, or ignore it; can be repeated [default: inferred from all files]
    #[arg(long, alias = "column", value_name = "COLUMN=TYPE")]
    column_type: Vec<String>,
    /// Encoding of text files, such as gbk, gb18030, big5 or latin1 [default: utf-8]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    encoding: String,
}

impl PolicyArguments {
    fn read(&self) -> flatout_data::Result<Policies> {
        Policies::of(&Written {
            missing: &self.missing.join(","),
            bad_rows: &self.bad_rows,
            infinite: &self.infinite,
            column_type: &self.column_type.join(","),
            encoding: &self.encoding,
        })
    }
}

/// Files named in full; of more, the first ones.
const FILES_SHOWN: usize = 8;
/// What the model, its optimizer and the batch need in addition to the data, as a share of the GPU.
const SHARE_FOR_DATA: f64 = 0.7;

pub fn about() -> Message {
    message!(en: "Show how flatout reads your data files", zh: "查看 flatout 从数据文件中读到了什么")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let Action::Inspect {
        path,
        limit,
        gpu_memory,
        policies,
        json,
    } = arguments.action;
    let inspection = inspect(&path, limit, &policies.read()?)?;
    let gpu = gpu_memory
        .map(|gib| (gib * 1024f64.powi(3)) as u64)
        .or_else(smallest_gpu);
    let text = if json {
        let mut answer = serde_json::to_value(&inspection).unwrap_or_default();
        answer["gpu_memory_bytes"] = gpu.into();
        answer["fits_gpu"] = gpu.map(|gpu| fits(&inspection, gpu)).into();
        serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n"
    } else {
        describe(&inspection, gpu, context)
    };
    crate::output::write_stdout(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn describe(inspection: &Inspection, gpu: Option<u64>, context: &Context) -> String {
    let mut text = String::new();
    let mut say = |message: Message| text += &format!("{}\n", context.say(&message));
    let (kind, format, rows, files) = (
        inspection.kind,
        &inspection.format,
        inspection.rows,
        inspection.files.len(),
    );
    let size = units::bytes(inspection.files.iter().map(|file| file.size_bytes as f64).sum());
    say(message!(
        en: "{kind} ({format}): {rows} rows in {files} files, {size} on disk",
        zh: "{kind}（{format}）：{files} 个文件共 {rows} 行，磁盘占用 {size}"
    ));
    for file in inspection.files.iter().take(FILES_SHOWN) {
        let size = units::bytes(file.size_bytes as f64);
        let path = &file.path;
        match file.rows {
            Some(rows) => {
                say(message!(en: "  {path}  {size}, {rows} rows", zh: "  {path}  {size}，{rows} 行"))
            }
            None => say(message!(en: "  {path}  {size}", zh: "  {path}  {size}")),
        }
    }
    if files > FILES_SHOWN {
        let more = files - FILES_SHOWN;
        say(message!(en: "  … and {more} more", zh: "  …… 另有 {more} 个"));
    }
    if let Some([height, width, channels]) = inspection.image_shape {
        say(
            message!(en: "images: {width} wide × {height} high, {channels} channel(s)", zh: "图像：宽 {width} × 高 {height}，{channels} 通道"),
        );
    }
    for (name, count) in &inspection.classes {
        say(message!(en: "  class {name}: {count}", zh: "  类别 {name}：{count}"));
    }
    flatout_data::dataset::images::single_pictures(&inspection.classes)
        .into_iter()
        .for_each(&mut say);
    columns(inspection, &mut say);
    let [train, validation, test] = inspection.split;
    say(message!(
        en: "default split: {train} training, {validation} validation, {test} test",
        zh: "默认划分：训练 {train}，验证 {validation}，测试 {test}"
    ));
    if inspection.bad_rows > 0 {
        let count = inspection.bad_rows;
        say(match inspection.bad_rows_policy {
            "skip" => {
                message!(en: "skipped {count} rows that cannot be read:", zh: "有 {count} 行无法读取，将跳过：")
            }
            _ => {
                message!(en: "{count} rows cannot be read; training stops at the first one unless you pass \
                --bad-rows skip:", zh: "有 {count} 行无法读取；训练会在第一处停止，除非使用 --bad-rows skip：")
            }
        });
        for row in &inspection.bad_examples {
            let message = DataError::BadRow(row.clone()).message();
            say(Message {
                en: format!("  {}", message.en),
                zh: format!("  {}", message.zh),
            });
        }
    }
    if inspection.rows_to_drop > 0 {
        let count = inspection.rows_to_drop;
        say(message!(en: "dropped {count} rows with missing values", zh: "{count} 行因缺失值将被丢弃"));
    }
    let stops = |column: &&ColumnInfo| column.missing > 0 && column.missing_policy == Some("error");
    if let Some(column) = inspection.columns.iter().find(stops) {
        let mean = in_flag(&column.name, "mean");
        say(message!(
            en: "training stops at missing feature values unless you choose a policy: --missing {mean} (or \
            zero, forward, drop), or --missing mean for all columns",
            zh: "特征列有缺失值时训练会停止，除非说明处理方式：--missing {mean}（或 zero、forward、drop），--missing mean 对所有列生效"
        ));
    }
    memory(inspection, gpu, &mut say);
    text
}

fn columns(inspection: &Inspection, say: &mut impl FnMut(Message)) {
    if inspection.columns.is_empty() {
        return;
    }
    let count = inspection.columns.len();
    say(message!(en: "{count} columns:", zh: "{count} 列："));
    let width = inspection
        .columns
        .iter()
        .map(|column| column.name.chars().count())
        .max()
        .unwrap_or(0);
    for column in &inspection.columns {
        let (name, kind, missing) = (&column.name, column.kind, column.missing);
        let detail = match (column.distinct, column.minimum, column.maximum) {
            (Some(distinct), _, _) => message!(en: "{distinct} values", zh: "{distinct} 种取值"),
            (None, Some(low), Some(high)) if kind == "time" => Message::verbatim(format!(
                "{} … {}",
                flatout_data::time::format_us(low as i64),
                flatout_data::time::format_us(high as i64)
            )),
            (None, Some(low), Some(high)) => Message::verbatim(format!(
                "{} … {}",
                units::significant(low),
                units::significant(high)
            )),
            _ => message!(en: "no values", zh: "没有值"),
        };
        let gaps = match (missing, column.missing_policy) {
            (0, _) => Message::default(),
            (_, None) => message!(en: ", {missing} missing", zh: "，缺失 {missing}"),
            (_, Some(policy)) => {
                message!(en: ", {missing} missing ({policy})", zh: "，缺失 {missing}（{policy}）")
            }
        };
        say(Message {
            en: format!("  {name:<width$}  {kind:<8}  {}{}", detail.en, gaps.en),
            zh: format!("  {name:<width$}  {kind:<8}  {}{}", detail.zh, gaps.zh),
        });
    }
}

/// Memory of this machine's smallest GPU: what fits it fits all.
fn smallest_gpu() -> Option<u64> {
    Machine::here()
        .gpus
        .iter()
        .filter_map(|gpu| gpu.mem_total_bytes)
        .min()
}

fn fits(inspection: &Inspection, gpu: u64) -> bool {
    inspection.memory_bytes as f64 <= gpu as f64 * SHARE_FOR_DATA
}

fn memory(inspection: &Inspection, gpu: Option<u64>, say: &mut impl FnMut(Message)) {
    let size = units::bytes(inspection.memory_bytes as f64);
    say(message!(en: "memory: {size} in one block", zh: "内存：整块占用 {size}"));
    let Some(bytes) = gpu else {
        say(message!(
            en: "no GPU here; --gpu-memory 24 checks whether the data fits on a 24 GiB GPU",
            zh: "本机没有 GPU；用 --gpu-memory 24 可查看数据能否放入 24 GiB 的 GPU"
        ));
        return;
    };
    let (gpu, share) = (
        units::bytes(bytes as f64),
        units::percent(inspection.memory_bytes as f64 / bytes as f64),
    );
    if fits(inspection, bytes) {
        say(message!(
            en: "fits on a {gpu} GPU ({share} of it): keep the data on the GPU during training",
            zh: "可以放入 {gpu} 的 GPU（占 {share}）：训练时数据可常驻 GPU"
        ));
    } else {
        say(message!(
            en: "does not fit on a {gpu} GPU next to a model ({share} of it): it will be streamed",
            zh: "放不进 {gpu} 的 GPU（占 {share}，还要留出模型空间）：将以流式方式供给"
        ));
    }
}
