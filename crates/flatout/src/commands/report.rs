//! `flatout report RUN`

use crate::context::Context;
use crate::linted;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::files::{write_atomically, write_inside};
use flatout_core::{Message, Result, message};
use flatout_record::{self as record, SourceLine};
use flatout_report::analyze::job;
use flatout_report::digest::Digest;
use flatout_report::{json, markdown, page, text};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout report last                          report.html next to the record, a summary here
  flatout report last --html train.html
  flatout report out/stocks --md > report.md   for an issue or a pull request
  flatout report last --json > report.json
  flatout report --job-id 52098                a Slurm job with several ranks
  flatout report last --pdf-ready --html train.html && chromium --headless --print-to-pdf=train.pdf train.html";

#[derive(Args)]
pub struct Arguments {
    /// The run: `last`, its name or id, or its folder
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// The first rank of a Slurm job: 52098, or 52098_3 for one task of an array
    #[arg(long, value_name = "ID", conflicts_with = "run")]
    job_id: Option<String>,
    /// Where to write the page [default: report.html in the record's folder]; - for stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print Markdown; an HTML page is then written only with --html
    #[arg(long)]
    md: bool,
    /// Print JSON; an HTML page is then written only with --html
    #[arg(long, conflicts_with = "md")]
    json: bool,
    /// Format the page for printing: light, everything expanded, no buttons
    #[arg(long)]
    pdf_ready: bool,
}

pub fn about() -> Message {
    message!(en: "Render a run as one self-contained page", zh: "把一次运行生成为单个独立页面")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let record = match &arguments.job_id {
        Some(job_id) => job::first_rank(job_id)?,
        None => record::find(&arguments.run)?,
    };
    let mut digest = Digest::read(&record);
    let lines: Vec<SourceLine> = record.lines().collect();
    linted::annotate(&mut digest.diagnosis, &lines);
    let options = page::Options {
        language: context.language,
        pdf_ready: arguments.pdf_ready,
    };
    let to_stdout = arguments
        .html
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    if to_stdout {
        write_stdout(page::html(&digest, options).as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.json {
        write_stdout((json::report(&digest).unwrap_or_default() + "\n").as_bytes());
    } else if arguments.md {
        write_stdout(markdown::report(&digest, context.language).as_bytes());
    } else {
        let width = text::readable_width(None);
        write_stdout(text::headline(&digest, context.language, width, context.colour_on_stdout()).as_bytes());
    }
    if arguments.html.is_some() || !(arguments.md || arguments.json) {
        let html = page::html(&digest, options);
        let path = match arguments.html {
            Some(path) => {
                write_atomically(&path, html.as_bytes())?;
                path
            }
            // A record may come from somebody else.
            None => {
                let path = record.folder().join("report.html");
                write_inside(&path, html.as_bytes())?;
                path
            }
        };
        let path = path.display();
        eprintln!(
            "{}",
            context.say(&message!(en: "page written to {path}", zh: "页面已写入 {path}"))
        );
    }
    Ok(ExitCode::SUCCESS)
}
