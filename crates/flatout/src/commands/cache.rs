//! `flatout cache list|clean`

use crate::context::Context;
use clap::{Args, Subcommand};
use flatout_core::{Message, Result, message, units};
use flatout_data::Cache;
use flatout_data::cache::Entry;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout cache list
  flatout cache clean                  delete all prepared datasets
  flatout cache clean --older-than 30  only those not used for 30 days";

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// Folder of the cache [default: $FLATOUT_CACHE, else ~/.cache/flatout/prepared]
    #[arg(long, global = true, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the prepared datasets
    List,
    /// Delete prepared datasets; they are rebuilt when needed
    Clean {
        /// Only those not used for this many days
        #[arg(long, value_name = "DAYS", default_value_t = 0)]
        older_than: u64,
    },
}

pub fn about() -> Message {
    message!(en: "List or delete prepared datasets", zh: "列出或删除已预处理的数据集缓存")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let cache = Cache::new(arguments.folder.unwrap_or_else(Cache::default_folder));
    let (entries, title) = match arguments.action {
        Action::List => {
            let entries = cache.list()?;
            let (count, folder) = (entries.len(), cache.folder().display());
            let title = message!(en: "prepared datasets in {folder}: {count}", zh: "{folder} 中有 {count} 个已预处理的数据集");
            (entries, title)
        }
        Action::Clean { older_than } => {
            let entries = cache.clean(older_than * 86_400)?;
            let count = entries.len();
            let size = units::bytes(entries.iter().map(|entry| entry.size_bytes).sum::<u64>() as f64);
            let title = message!(en: "deleted {count} prepared datasets, {size}", zh: "已删除 {count} 个已预处理的数据集，共 {size}");
            (entries, title)
        }
    };
    if arguments.json {
        let value = serde_json::json!({ "schema_version": 1, "folder": cache.folder(), "entries": entries });
        crate::output::write_stdout(format!("{value:#}\n").as_bytes());
    } else {
        let mut text = format!("{}\n", context.say(&title));
        entries.iter().for_each(|entry| text += &line(entry, context));
        crate::output::write_stdout(text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

fn line(entry: &Entry, context: &Context) -> String {
    let size = units::bytes(entry.size_bytes as f64);
    let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
    if !entry.intact {
        let damaged = message!(en: "damaged, or written by another version", zh: "已损坏或版本不符");
        return format!("  {name}  {size:>9}  {}\n", context.say(&damaged));
    }
    let (rows, kind, source) = (entry.rows, &entry.kind, &entry.source);
    let age = entry
        .age_seconds
        .map_or_else(|| "?".into(), |seconds| units::duration(seconds as f64));
    let used = message!(en: "{rows} rows, last used {age} ago", zh: "{rows} 行，{age} 前使用");
    format!(
        "  {name}  {size:>9}  {kind:<8}  {}  {source}\n",
        context.say(&used)
    )
}
