//! `flatout mcp`

use crate::commands::explain;
use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::{Failure, Message, Result, message};
use flatout_diagnose::Diagnosis;
use flatout_mcp::Host;
use flatout_record::RunData;
use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout mcp                                      usually started by a coding agent
  claude mcp add flatout -- flatout mcp            register it with Claude Code
  flatout mcp --folder ~/project --read-only       diagnosis, lint and comparison only";

#[derive(Args)]
pub struct Arguments {
    /// The only folder that calls can access [default: this one]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Disable all tools that run a program or write a file
    #[arg(long)]
    read_only: bool,
}

pub fn about() -> Message {
    message!(
        en: "Serve flatout's commands to coding agents (Model Context Protocol over stdio)",
        zh: "通过 stdio 向编程 agent 提供 flatout 的命令（Model Context Protocol）"
    )
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(folder) = &arguments.folder {
        std::env::set_current_dir(folder).map_err(|error| cannot_enter(folder, &error))?;
    }
    let folder = std::env::current_dir().map_err(|error| cannot_enter(".".as_ref(), &error))?;
    let flatout = std::env::current_exe().map_err(|error| {
        Failure::new(
            message!(en: "the path of the flatout executable is unknown", zh: "无法得知本程序的路径"),
        )
        .caused_by(&error)
    })?;
    if std::io::stdin().is_terminal() {
        let waiting = message!(
            en: "waiting for Model Context Protocol messages on stdin; press Ctrl-D to stop. Coding agents \
            start this command: see `flatout mcp --help`",
            zh: "正在 stdin 上等待 Model Context Protocol 消息；Ctrl-D 结束。此命令由 agent 启动：见 `flatout mcp --help`"
        );
        eprintln!("{}", context.say(&waiting));
    }
    let host = Host {
        version: env!("FLATOUT_VERSION"),
        language: context.language,
        flatout,
        folder,
        read_only: arguments.read_only,
        diagnose,
        rules: explain::rules(),
    };
    let served = flatout_mcp::serve(host, BufReader::new(std::io::stdin()), std::io::stdout());
    served.map_err(|error| {
        Failure::new(message!(en: "failed to read the client's messages", zh: "无法读取客户端的消息"))
            .caused_by(&error)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_enter(folder: &std::path::Path, error: &std::io::Error) -> Failure {
    let folder = folder.display();
    Failure::new(
        message!(en: "`{folder}` cannot be used as the working folder", zh: "无法使用目录 `{folder}`"),
    )
    .caused_by(error)
}

fn diagnose(data: &RunData) -> Diagnosis {
    let mut diagnosis = flatout_diagnose::diagnose(data);
    linted::annotate(&mut diagnosis, &data.lines);
    diagnosis
}
