//! `flatout runs` and `flatout runs prune`

use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, Subcommand};
use flatout_core::{Failure, Message, Result, message, units};
use flatout_record::{self as record, PruneOptions};
use flatout_report::text;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

pub const EXAMPLES: &str = "Examples:
  flatout runs                               all records, oldest first
  flatout runs --json
  flatout runs prune --older-than 30         list what would be deleted
  flatout runs prune --older-than 30 --yes   delete it
  flatout runs prune --keep 20 --yes";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Delete old records; without --yes, only list them
    Prune(Prune),
}

#[derive(Args)]
struct Prune {
    /// Delete records older than this many days
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    older_than: Option<f64>,
    /// Keep this many of the newest records
    #[arg(long, value_name = "COUNT")]
    keep: Option<usize>,
    /// Confirm the deletion
    #[arg(long)]
    yes: bool,
}

pub fn about() -> Message {
    message!(en: "List run records, or delete old ones", zh: "列出运行记录，或删除旧记录")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let folder = record::runs_folder();
    let entries = record::list(&folder);
    match arguments.action {
        Some(Action::Prune(prune)) => return delete(&prune, &entries, context),
        None if arguments.json => write_stdout(text::runs_json(&entries).as_bytes()),
        None if entries.is_empty() => {
            let folder = folder.display();
            let none = message!(en: "no run records in {folder}\nhint: create one with: flatout run -- \
            python train.py", zh: "{folder} \
            中没有运行记录\n提示：用 flatout run -- python train.py 生成一个");
            eprintln!("{}", context.say(&none));
        }
        None => write_stdout(text::runs(&entries, context.language, context.colour_on_stdout()).as_bytes()),
    }
    Ok(ExitCode::SUCCESS)
}

fn delete(prune: &Prune, entries: &[record::RunEntry], context: &Context) -> Result<ExitCode> {
    if prune.older_than.is_none() && prune.keep.is_none() {
        return Err(Failure::new(message!(en: "specify which records are old", zh: "没有说明哪些记录算旧"))
            .with_hint(message!(en: "use --older-than DAYS or --keep N: flatout runs prune --older-than 30", zh: "请使用 \
            --older-than 天数 或 --keep N：flatout runs prune --older-than 30")));
    }
    let older_than = prune.older_than.map(days).transpose()?;
    let chosen = record::prunable(
        entries,
        PruneOptions {
            older_than,
            keep: prune.keep,
        },
        SystemTime::now(),
    );
    let mut freed = 0;
    for entry in &chosen {
        freed += record::size_bytes(&entry.folder);
        if prune.yes {
            record::delete(entry)?;
        }
        write_stdout(format!("{}\n", entry.folder.display()).as_bytes());
    }
    let (count, freed) = (chosen.len(), units::bytes(freed as f64));
    let said = if prune.yes {
        message!(en: "deleted {count} records, {freed}", zh: "已删除 {count} 个记录，共 {freed}")
    } else {
        message!(en: "would delete {count} records, {freed}; confirm with --yes", zh: "将删除 {count} 个记录，共 {freed}；加 --yes 执行")
    };
    eprintln!("{}", context.say(&said));
    Ok(ExitCode::SUCCESS)
}

fn days(days: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(days * 86_400.0).map_err(|_| {
        Failure::new(message!(en: "{days} is not a valid number of days", zh: "{days} 天不是有效的时长"))
            .with_hint(message!(en: "use 0 or more days: --older-than 30", zh: "请给出不小于 0 的天数，例如 --older-than 30"))
    })
}
