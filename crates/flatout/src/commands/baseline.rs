//! `flatout baseline save NAME`, `list` and `delete`

use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, Subcommand};
use flatout_core::{Message, Result, message, units};
use flatout_record as record;
use flatout_report::text::{Align, Paint, Table, width};
use serde_json::json;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout baseline save main                             save the last run as `main`
  flatout baseline save main out/run --replace
  flatout baseline list                                  list the saved baselines
  flatout compare --baseline main --fail-if slower=5%    exit 1 if the last run is slower";

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Save a run as a baseline: a copy of its record
    Save {
        /// Name of the baseline
        #[arg(value_name = "NAME")]
        name: String,
        /// The run: `last`, its name or id, or its folder
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// Replace an existing baseline of this name
        #[arg(long)]
        replace: bool,
    },
    /// List the baselines
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a baseline; the runs stay
    Delete {
        /// Name of the baseline
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub fn about() -> Message {
    message!(en: "Save a run under a name, to compare later runs with", zh: "用名字保存一次运行，供之后的运行对比")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let folder = record::baselines_folder();
    match arguments.action {
        Action::Save { name, run, replace } => {
            let found = record::find(&run)?;
            let saved = record::save_baseline(&folder, &name, &found, replace)?;
            let (id, path) = (&found.info.id, saved.display());
            let size = units::bytes(record::size_bytes(&saved) as f64);
            let said = message!(
                en: "baseline {name} is run {id}: {path}, {size}",
                zh: "基线 {name} 为运行 {id}：{path}，{size}"
            );
            eprintln!("{}", context.say(&said));
        }
        Action::List { json } => list(&folder, json, context),
        Action::Delete { name } => {
            record::delete_baseline(&folder, &name)?;
            eprintln!(
                "{}",
                context.say(&message!(en: "deleted baseline {name}", zh: "已删除基线 {name}"))
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(folder: &std::path::Path, as_json: bool, context: &Context) {
    let all = record::baselines(folder);
    if as_json {
        let rows: Vec<_> = all
            .iter()
            .map(|(name, entry)| {
                json!({"name": name, "run": entry.info.id, "started_unix_ms": entry.info.started_unix_ms,
                    "command": entry.info.command, "folder": entry.folder})
            })
            .collect();
        let whole = json!({"schema": 1, "baselines": rows});
        write_stdout((serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n").as_bytes());
        return;
    }
    if all.is_empty() {
        let folder = folder.display();
        let none = message!(
            en: "no baselines in {folder}\nhint: save one with: flatout baseline save main",
            zh: "{folder} 中没有基线\n提示：用 flatout baseline save main 保存一个"
        );
        eprintln!("{}", context.say(&none));
        return;
    }
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Left]);
    for (name, entry) in &all {
        let info = &entry.info;
        let cells = [
            name.clone(),
            record::utc(info.started_unix_ms / 1000),
            info.id.clone(),
            flatout_core::shell::line(&info.command),
        ]
        .map(|cell| width::printable(&cell));
        table.row([0, 1, 2, 3].map(|index: usize| cells[index].as_str()));
    }
    let paint = Paint {
        colour: context.colour_on_stdout(),
    };
    write_stdout(table.render(paint).as_bytes());
}
