//! `flatout notebook --pid PID`: the other end of `%%flatout`

use crate::context::Context;
use crate::linted;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_record::{Record, SourceLine, argument_for};
use flatout_report::digest::Digest;
use flatout_report::{page, text, tracking};
use flatout_run::session::cell;
use serde_json::json;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

pub const EXAMPLES: &str = "In a notebook:
  %load_ext flatout
  %%flatout                             first line of a cell that trains";

/// As wide as a notebook shows text.
const WIDTH: usize = 100;
/// Rows of the text where no HTML is shown.
const ROWS: u16 = 40;

#[derive(Args)]
pub struct Arguments {
    /// Process id of the kernel
    #[arg(long)]
    pid: u32,
    /// Name of the run
    #[arg(long, default_value = "cell")]
    name: String,
}

pub fn about() -> Message {
    message!(en: "Record one notebook cell; %%flatout starts this command", zh: "记录 notebook 的一个单元格；由 %%flatout 自动启动")
}

/// Speaks JSON lines: where the probe is, then, after the line that tells how the cell ended, what was found.
pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let line = |value: serde_json::Value| write_stdout(format!("{value}\n").as_bytes());
    let end: Arc<OnceLock<bool>> = Arc::default();
    let told = Arc::clone(&end);
    let ready = |probe: &cell::Probe| {
        line(json!({ "python": probe.python, "rings": probe.rings }));
        std::thread::spawn(move || {
            let mut answer = String::new();
            // A kernel that is gone has closed this end.
            let _ = std::io::stdin().lock().read_line(&mut answer);
            let _ = told.set(answer.trim() != "done");
        });
    };
    let outcome = cell::cell(arguments.pid, &arguments.name, ready, || end.get().copied())?;
    let folder: PathBuf = outcome.folder.unwrap_or_default();
    let record = Record::open(&folder)?;
    let mut digest = Digest::read(&record);
    let lines: Vec<SourceLine> = record.lines().collect();
    linted::annotate(&mut digest.diagnosis, &lines);
    let plain = text::summary(
        &digest.diagnosis,
        &argument_for(&folder),
        context.language,
        WIDTH,
        Some(ROWS),
        false,
    );
    line(json!({
        "record": folder,
        "steps": outcome.progress.steps,
        "html": page::fragment(&digest, context.language),
        "text": plain,
        "tracking": tracking::export(&digest, &folder, context.language),
    }));
    Ok(ExitCode::SUCCESS)
}
