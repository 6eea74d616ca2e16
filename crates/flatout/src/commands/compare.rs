//! `flatout compare A B [C…]`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_compare::{Limit, Ratio};
use flatout_core::files::write_atomically;
use flatout_core::{Failure, Message, Result, message};
use flatout_record as record;
use flatout_report::compare::{Comparison, annotations, html, markdown, text};
use flatout_report::digest::Digest;
use flatout_report::page;
use flatout_report::text::readable_width;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout compare out/baseline out/candidate
  flatout compare baseline last --fail-if slower=3%    exit 1 if it became slower
  flatout compare baseline last --fail-unless faster=25%  exit 1 unless it became faster
  flatout compare --baseline main --fail-if slower=5%  the last run against a saved baseline
  flatout compare a b c --md                           for a pull request
  flatout compare a b --html compare.html";

#[derive(Args)]
pub struct Arguments {
    /// The runs, baseline first: names, ids, folders, or `last`
    #[arg(value_name = "RUN", num_args = 0..)]
    runs: Vec<String>,
    /// Compare with this saved baseline; without RUN, the last run is compared
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    md: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also print GitHub annotations: violated limits, and new findings at their lines
    #[arg(long, conflicts_with = "json")]
    annotate: bool,
    /// Exit with 1 if a run lost more throughput than this, beyond noise: slower=3%
    #[arg(long, value_name = "LIMIT")]
    fail_if: Option<String>,
    /// Exit with 1 unless every run gained this much throughput, beyond noise: faster=25%
    #[arg(long, value_name = "LIMIT")]
    fail_unless: Option<String>,
}

pub fn about() -> Message {
    message!(en: "Compare runs: what changed, and whether it is more than noise", zh: "对比运行：变了什么，是否超出噪声")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let lost = arguments.fail_if.as_deref().map(Limit::slower).transpose()?;
    let gained = arguments.fail_unless.as_deref().map(Limit::faster).transpose()?;
    let digests = digests(&arguments)?;
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
    let mut failures = Vec::new();
    for limit in [lost, gained].into_iter().flatten() {
        for (run, ratio) in comparison.broken(limit)? {
            let failure = broken(&run, &ratio, limit);
            eprintln!("{}", context.say(&failure));
            failures.push(failure);
        }
    }
    if arguments.annotate {
        write_stdout(annotations::github(&comparison, &digests, &failures, context.language).as_bytes());
    }
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

/// The baseline first, then the runs.
fn digests(arguments: &Arguments) -> Result<Vec<Digest>> {
    let mut digests = Vec::new();
    let mut runs: Vec<&str> = arguments.runs.iter().map(String::as_str).collect();
    if let Some(name) = &arguments.baseline {
        digests.push(Digest::read(&record::find_baseline(
            &record::baselines_folder(),
            name,
        )?));
        if runs.is_empty() {
            runs.push("last");
        }
    } else if runs.len() < 2 {
        return Err(Failure::new(
            message!(en: "a comparison needs two runs, or --baseline NAME", zh: "对比需要两个运行，或 --baseline NAME"),
        )
        .with_hint(message!(
            en: "flatout compare BASELINE CANDIDATE; list what exists with `flatout runs` and `flatout \
            baseline list`",
            zh: "flatout compare 基线 对比；`flatout runs` 和 `flatout baseline list` 列出已有的"
        )));
    }
    for run in runs {
        digests.push(Digest::read(&record::find(run)?));
    }
    Ok(digests)
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
