//! `flatout analyze --job-id N | RUN… | LOG…`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::files::write_atomically;
use flatout_core::{Failure, Message, Result, message};
use flatout_import::ImportOptions;
use flatout_report::analyze::{self, Analysis, Options, Read};
use flatout_report::digest::Digest;
use flatout_report::{page, text};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout analyze --job-id 52098                      a Slurm job: its records, its logs, and sacct data
  flatout analyze last                                the newest run
  flatout analyze gpu_utilization_52098.log train.log  logs from other tools
  flatout analyze gpu.csv --columns timestamp,index,utilization.gpu
  flatout analyze gpu.csv train.log --html job.html --png job.png";

/// Samples of a log that go into a page: half a day at one a second.
const SAMPLES_OF_A_PAGE: usize = 40_000;

#[derive(Args)]
pub struct Arguments {
    /// Runs (`last`, a name, an id, a folder) and logs: nvidia-smi, dmon, gpustat, flatout's CSV, or the output of a program
    #[arg(value_name = "RUN|LOG")]
    named: Vec<String>,
    /// A Slurm job: 52098, or 52098_3 for one task of an array
    #[arg(long, value_name = "ID", conflicts_with = "named")]
    job_id: Option<String>,
    /// Columns of a GPU log without a header, as in nvidia-smi --query-gpu=
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
    /// Seconds between rows, for logs without timestamps
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Also write an HTML page, with the charts of the first run or GPU log
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also draw the charts and the epochs as a PNG image
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Show statistics, times, errors and charts of a job, a run or any log", zh: "分析作业、运行记录或任意日志：统计、耗时、错误与图表")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let options = Options {
        import: ImportOptions {
            columns: arguments.columns.clone(),
            interval_s: arguments.interval,
        },
        keep_samples: if arguments.html.is_some() || arguments.png.is_some() {
            SAMPLES_OF_A_PAGE
        } else {
            0
        },
        progress: std::io::stderr().is_terminal(),
    };
    let (mut analysis, mut reads, failed) = gather(&arguments, &options, context)?;
    let digest = (options.keep_samples > 0).then(|| digest(&mut reads)).flatten();
    analysis.sections = reads.into_iter().map(|read| read.section).collect();
    if let Some(path) = &arguments.html {
        let options = page::Options {
            language: context.language,
            pdf_ready: false,
        };
        write_atomically(
            path,
            analyze::page::html(&analysis, digest.as_ref(), options).as_bytes(),
        )?;
        let path = path.display();
        eprintln!(
            "{}",
            context.say(&message!(en: "page written to {path}", zh: "页面已写入 {path}"))
        );
    }
    if let Some(path) = &arguments.png {
        draw(path, &analysis, digest.as_ref(), context)?;
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&analysis).unwrap_or_default() + "\n"
    } else {
        let width = text::readable_width(text::terminal_columns(&std::io::stdout()));
        analyze::text::analysis(&analysis, context.language, width, context.colour_on_stdout())
    };
    write_stdout(text.as_bytes());
    for failure in &failed {
        eprint!("{}", failure.render(context.language));
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// One log that cannot be read does not hide the others; none at all is a failure.
fn gather(
    arguments: &Arguments,
    options: &Options,
    context: &Context,
) -> Result<(Analysis, Vec<Read>, Vec<Failure>)> {
    if let Some(job_id) = &arguments.job_id {
        let (analysis, reads) = analyze::job::analyze(job_id, options)?;
        return Ok((analysis, reads, Vec::new()));
    }
    let last = ["last".to_owned()];
    let names = if arguments.named.is_empty() {
        &last[..]
    } else {
        &arguments.named
    };
    let (mut reads, mut failed) = (Vec::new(), Vec::new());
    for name in names {
        match analyze::named(name, options) {
            Ok(read) => reads.push(read),
            Err(failure) => failed.push(failure),
        }
    }
    if reads.is_empty()
        && let Some(failure) = failed.pop()
    {
        for other in &failed {
            eprint!("{}", other.render(context.language));
        }
        return Err(failure);
    }
    let analysis = Analysis {
        schema: analyze::SCHEMA,
        jobs: Vec::new(),
        ranks: Vec::new(),
        sections: Vec::new(),
        notes: Vec::new(),
    };
    Ok((analysis, reads, failed))
}

/// Of the first run or GPU log. Of a long log only some samples are drawn; the figures are those of all.
fn digest(reads: &mut [Read]) -> Option<Digest> {
    let read = reads.iter_mut().find(|read| read.data.is_some())?;
    let mut digest = Digest::of(read.data.take()?);
    if let Some(verdict) = &read.section.verdict {
        digest.verdict = verdict.clone();
    }
    Some(digest)
}

fn draw(path: &Path, analysis: &Analysis, digest: Option<&Digest>, context: &Context) -> Result<()> {
    let picture = analyze::picture::of(analysis, digest);
    if picture.is_empty() {
        return Err(Failure::new(message!(en: "nothing to draw: no samples, and no epoch with a time", zh: "没有可绘制的内容：既无采样，也没有带时间的 epoch"))
            .with_hint(message!(en: "give a run, a GPU log, or a training log that reports epoch times", zh: "请给出运行记录、GPU 日志，或带有 epoch 时间的训练日志")));
    }
    let png = picture.png().map_err(|error| {
        Failure::new(message!(en: "failed to write the image", zh: "无法生成图片")).caused_by(&error)
    })?;
    write_atomically(path, &png)?;
    let path = path.display();
    eprintln!(
        "{}",
        context.say(&message!(en: "image written to {path}", zh: "图片已写入 {path}"))
    );
    Ok(())
}
