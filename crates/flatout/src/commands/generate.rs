//! `flatout generate KIND --out DIR`

use crate::context::Context;
use clap::{Args, Subcommand};
use flatout_core::{Message, Result, message};
use flatout_data::generate::captcha::Captcha;
use flatout_data::generate::images::ImageClasses;
use flatout_data::generate::interactions::Interactions;
use flatout_data::generate::stocks::Stocks;
use flatout_data::generate::{Generated, Recipe};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout generate stocks --out data/stocks
  flatout generate stocks --out data/small --size 20 --days 300 --seed 7
  flatout generate interactions --out data/clicks --size 1000000
  flatout generate images --out data/shapes
  flatout generate captcha --out data/captcha --size 500 --json";

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// A panel of stocks, one Parquet file each, with a planted signal in the next day's return
    Stocks {
        #[command(flatten)]
        common: Common,
        /// Number of stocks
        #[arg(long, default_value_t = Stocks::default().stocks)]
        size: usize,
        /// Trading days
        #[arg(long, default_value_t = Stocks::default().days)]
        days: usize,
        /// Predictable share of the variance of returns
        #[arg(long, default_value_t = Stocks::default().signal)]
        signal: f64,
    },
    /// Logs of a short-video service in three CSV parts, joined with user and video tables
    Interactions {
        #[command(flatten)]
        common: Common,
        /// Number of interactions
        #[arg(long, default_value_t = Interactions::default().interactions)]
        size: usize,
    },
    /// Gray 128×128 images of eight shapes, one folder per class
    Images {
        #[command(flatten)]
        common: Common,
        /// Number of images
        #[arg(long, default_value_t = ImageClasses::default().images)]
        size: usize,
    },
    /// Slider captchas with the positions of gap and slider in labels.csv
    Captcha {
        #[command(flatten)]
        common: Common,
        /// Number of images
        #[arg(long, default_value_t = Captcha::default().images)]
        size: usize,
    },
}

#[derive(Args)]
struct Common {
    /// Output folder: new or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Random seed; equal seeds give identical files
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the recipe and the best score as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Generate sample data with a known best score", zh: "生成已知最佳分数的示例数据")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let (common, recipe) = match arguments.kind {
        Kind::Stocks {
            common,
            size,
            days,
            signal,
        } => {
            let seed = common.seed;
            (
                common,
                Recipe::Stocks(Stocks {
                    stocks: size,
                    days,
                    seed,
                    signal,
                }),
            )
        }
        Kind::Interactions { common, size } => {
            let recipe = Recipe::Interactions(Interactions::of_size(size, common.seed));
            (common, recipe)
        }
        Kind::Images { common, size } => {
            let seed = common.seed;
            (
                common,
                Recipe::Images(ImageClasses {
                    images: size,
                    seed,
                    ..ImageClasses::default()
                }),
            )
        }
        Kind::Captcha { common, size } => {
            let seed = common.seed;
            (common, Recipe::Captcha(Captcha { images: size, seed }))
        }
    };
    let generated = recipe.generate(&common.out, None)?;
    if common.json {
        let text = serde_json::to_string_pretty(&generated).unwrap_or_default();
        crate::output::write_stdout(format!("{text}\n").as_bytes());
    } else {
        crate::output::write_stdout(describe(&generated, &common, context).as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(generated: &Generated, common: &Common, context: &Context) -> String {
    let (out, files, rows, label) = (
        common.out.display(),
        generated.files,
        generated.rows,
        &generated.label,
    );
    let written = message!(
        en: "wrote {files} files with {rows} rows to {out}; the label is {label}",
        zh: "已向 {out} 写入 {files} 个文件，共 {rows} 行；标签为 {label}"
    );
    let mut text = format!("{}\n", context.say(&written));
    let title = message!(en: "best score that any model can reach:", zh: "任何模型可达到的最佳分数：");
    text += context.say(&title);
    text.push('\n');
    for (name, value) in generated.best.lines() {
        text += &format!("  {name:<34} {value:.4}\n");
    }
    text
}
