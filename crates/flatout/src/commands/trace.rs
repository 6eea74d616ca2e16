//! `flatout trace export RUN`

use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, Subcommand};
use flatout_core::files::write_atomically;
use flatout_core::{Message, Result, message};
use flatout_record as record;
use flatout_report::trace;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout trace export last                     trace.json here, for https://ui.perfetto.dev
  flatout trace export last --out step.json
  flatout trace export last --out - | gzip > step.json.gz";

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write a run as trace-event JSON for Perfetto and Chrome
    Export {
        /// The run: `last`, its name or id, or its folder
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// Output file; - for stdout
        #[arg(long, value_name = "FILE", default_value = "trace.json")]
        out: PathBuf,
    },
}

pub fn about() -> Message {
    message!(en: "Export a run for a trace viewer (Perfetto, Chrome)", zh: "把一次运行导出到 trace 查看器（Perfetto、Chrome）")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let Action::Export { run, out } = arguments.action;
    let record = record::find(&run)?;
    let text = serde_json::to_string(&trace::export(&record)).unwrap_or_default() + "\n";
    if out.as_os_str() == "-" {
        write_stdout(text.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    write_atomically(&out, text.as_bytes())?;
    if record.timelines().next().is_none() {
        let bare = message!(
            en: "the record contains no step in full detail (the run was too short, or its flatout too old): \
            the trace has counters and events only",
            zh: "记录中没有逐事件的步骤（运行太短，或由旧版 flatout 记录）：trace 中只有计数器和事件"
        );
        eprintln!("{}", context.say(&bare));
    }
    let path = out.display();
    let written = message!(
        en: "trace written to {path}; open it at https://ui.perfetto.dev",
        zh: "trace 已写入 {path}；可用 https://ui.perfetto.dev 打开"
    );
    eprintln!("{}", context.say(&written));
    Ok(ExitCode::SUCCESS)
}
