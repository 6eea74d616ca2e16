//! `flatout attach PID`

use crate::commands::diagnose;
use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::{Message, Result, message};
use flatout_record::{self as record, Record, RunData};
use flatout_report::text;
use flatout_run::session::{Access, Attach, access, attach};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout attach 12345
  flatout attach 12345 --seconds 60
  flatout attach 12345 --probe                   also steps and waits, on Python 3.14
  sudo flatout attach 12345";

#[derive(Args)]
pub struct Arguments {
    /// Process id of the training program, not of its launcher
    #[arg(value_name = "PID")]
    pid: u32,
    /// How many seconds to watch; Ctrl-C stops earlier
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    seconds: u64,
    /// Load the probe into the program for that time (Python 3.14 or later): steps, waits for batches, findings
    #[arg(long)]
    probe: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(
        en: "Inspect a running program: its processes, its GPU, and where its Python code is",
        zh: "查看已经在运行的程序：进程、GPU、Python 代码停在哪里"
    )
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let allowed = access(arguments.pid)?;
    if let Access::Denied { ptrace_scope } = allowed {
        eprintln!("{}", context.say(&denied(arguments.pid, ptrace_scope)));
    }
    let seconds = arguments.seconds;
    let say = message!(en: "watching for {seconds} s …", zh: "观察 {seconds} 秒……");
    eprintln!("{}", context.say(&say));
    let duration = Duration::from_secs(seconds);
    let wanted = Attach {
        pid: arguments.pid,
        duration,
        runs: &record::runs_folder(),
        stacks: allowed == Access::Allowed,
        probe: arguments.probe,
    };
    let outcome = attach(&wanted, &mut |why| {
        let why = context.say(&why);
        let say = message!(en: "continuing without the probe: {why}", zh: "不使用探针继续：{why}");
        eprintln!("{}", context.say(&say));
    })?;
    let folder = outcome.folder.unwrap_or_default();
    let data = Record::open(&folder)?.load();
    let shown = if outcome.progress.steps > 0 {
        diagnosed(&data, &folder, arguments.json, context)
    } else {
        let seen = flatout_diagnose::seen::look(&data);
        match arguments.json {
            true => serde_json::to_string_pretty(&seen).unwrap_or_default() + "\n",
            false => text::seen(&seen, context.language, context.colour_on_stdout()),
        }
    };
    crate::output::write_stdout(shown.as_bytes());
    let folder = folder.display();
    let say = message!(en: "record in {folder}", zh: "记录保存在 {folder}");
    eprintln!("{}", context.say(&say));
    Ok(ExitCode::SUCCESS)
}

/// With steps, there is as much to report as for a run.
fn diagnosed(data: &RunData, folder: &Path, as_json: bool, context: &Context) -> String {
    let mut diagnosis = flatout_diagnose::diagnose(data);
    linted::annotate(&mut diagnosis, &data.lines);
    if as_json {
        let output = diagnose::Output {
            run: &data.info.id,
            diagnosis: &diagnosis,
        };
        return serde_json::to_string_pretty(&output).unwrap_or_default() + "\n";
    }
    let rows = text::terminal_rows(&std::io::stdout());
    let width = text::readable_width(None);
    text::summary(
        &diagnosis,
        &record::argument_for(folder),
        context.language,
        width,
        rows,
        context.colour_on_stdout(),
    )
}

/// Reading another process's memory is forbidden: by whom, and what to do.
fn denied(pid: u32, ptrace_scope: Option<u32>) -> Message {
    match ptrace_scope {
        Some(scope @ 1..=2) => message!(
            en: "no Python lines: kernel.yama.ptrace_scope is {scope}, so only its parent or root can \
            inspect a process; run `sudo flatout attach {pid}` or `sudo sysctl kernel.yama.ptrace_scope=0`, \
            or start the program with `flatout run`",
            zh: "看不到 Python 行：kernel.yama.ptrace_scope 为 {scope}，只有父进程或 root 可以读取；请运行 `sudo flatout attach {pid}`，或 `sudo sysctl kernel.yama.ptrace_scope=0`，或用 `flatout run` 启动程序"
        ),
        Some(scope) => message!(
            en: "no Python lines: kernel.yama.ptrace_scope is {scope}, so nobody can inspect a process until \
            the next boot; start the program with `flatout run` (process {pid} is watched without Python \
            lines)",
            zh: "看不到 Python 行：kernel.yama.ptrace_scope 为 {scope}，重启之前任何人都不允许读取；请用 `flatout run` 启动程序（进程 {pid} 仍会被观察，但没有代码行）"
        ),
        None => message!(
            en: "no Python lines: process {pid} belongs to another user, or its container forbids inspecting \
            it; run `sudo flatout attach {pid}`",
            zh: "看不到 Python 行：进程 {pid} 属于其他用户，或容器不允许读取；请运行 `sudo flatout attach {pid}`"
        ),
    }
}
