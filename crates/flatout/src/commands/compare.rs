//! `flatout compare A B [C…]`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::files::write_atomically;
use flatout_core::{Message, Result, message};
use flatout_report::compare::limit::Limit;
use flatout_report::compare::{Comparison, html, markdown, text};
use flatout_report::digest::Digest;
use flatout_report::page;
use flatout_report::text::readable_width;
use flatout_telemetry::record;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout compare out/before out/after
  flatout compare baseline last --fail-if slower=3%    exit 1 when it became slower
  flatout compare a b c --md                           for a pull request
  flatout compare a b --html compare.html";

#[derive(Args)]
pub struct Arguments {
    /// The runs, the one to compare against first: names, ids, folders, or `last`
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    runs: Vec<String>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    md: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 1 when a run lost more throughput than this against the first, beyond noise: slower=3%
    #[arg(long, value_name = "LIMIT")]
    fail_if: Option<String>,
}

pub fn about() -> Message {
    message!(en: "Before and after: what changed, and whether it is more than noise", zh: "前后对比：变了什么，是否超出噪声")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let limit = arguments.fail_if.as_deref().map(Limit::parse).transpose()?;
    let mut digests = Vec::new();
    for run in &arguments.runs {
        digests.push(Digest::read(&record::find(run)?));
    }
    let comparison = Comparison::of(&digests);
    let shown = if arguments.json {
        serde_json::to_string_pretty(&comparison).unwrap_or_default() + "\n"
    } else if arguments.md {
        markdown::markdown(&comparison, context.language)
    } else {
        text::text(
            &comparison,
            context.language,
            readable_width(None),
            context.colour_on_stdout(),
        )
    };
    write_stdout(shown.as_bytes());
    if let Some(path) = &arguments.html {
        let options = page::Options {
            language: context.language,
            pdf_ready: false,
        };
        write_atomically(path, html::html(&comparison, &digests, options).as_bytes())?;
        let path = path.display();
        eprintln!(
            "{}",
            context.say(&message!(en: "page written to {path}", zh: "页面已写入 {path}"))
        );
    }
    let broken = limit
        .map(|limit| limit.broken_by(&comparison))
        .transpose()?
        .unwrap_or_default();
    for (run, change) in &broken {
        let lost = (1.0 - change.factor.unwrap_or(1.0)) * 100.0;
        eprintln!(
            "{}",
            context.say(&message!(en: "{run} is {lost:.1}% slower than A", zh: "{run} 比 A 慢 {lost:.1}%"))
        );
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
