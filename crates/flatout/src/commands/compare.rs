//! `flatout compare A B [C…]`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_compare::{Limit, Ratio};
use flatout_core::files::write_atomically;
use flatout_core::{Message, Result, message};
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
  flatout compare before last --fail-unless faster=25%  exit 1 unless it became faster
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
    /// Exit with 1 unless every run gained this much throughput over the first, beyond noise: faster=25%
    #[arg(long, value_name = "LIMIT")]
    fail_unless: Option<String>,
}

pub fn about() -> Message {
    message!(en: "Before and after: what changed, and whether it is more than noise", zh: "前后对比：变了什么，是否超出噪声")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let lost = arguments.fail_if.as_deref().map(Limit::slower).transpose()?;
    let gained = arguments.fail_unless.as_deref().map(Limit::faster).transpose()?;
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
    let mut failed = false;
    for limit in [lost, gained].into_iter().flatten() {
        for (run, ratio) in comparison.broken(limit)? {
            failed = true;
            eprintln!("{}", context.say(&broken(&run, &ratio, limit)));
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn broken(run: &str, ratio: &Ratio, limit: Limit) -> Message {
    let percent = (ratio.factor - 1.0) * 100.0;
    let interval = ratio.interval.map_or_else(Message::default, |(low, high)| {
        let (low, high) = ((low - 1.0) * 100.0, (high - 1.0) * 100.0);
        message!(en: ", interval {low:+.1}% to {high:+.1}%", zh: "，区间 {low:+.1}% 至 {high:+.1}%")
    });
    let (en, zh) = (&interval.en, &interval.zh);
    match limit {
        Limit::Slower(_) => {
            let lost = -percent;
            Message {
                en: format!("{run} is {lost:.1}% slower than A{en}"),
                zh: format!("{run} 比 A 慢 {lost:.1}%{zh}"),
            }
        }
        Limit::Faster(share) => {
            let wanted = share * 100.0;
            Message {
                en: format!("{run} is not {wanted:.0}% faster than A: {percent:+.1}%{en}"),
                zh: format!("{run} 没有比 A 快 {wanted:.0}%：{percent:+.1}%{zh}"),
            }
        }
    }
}
