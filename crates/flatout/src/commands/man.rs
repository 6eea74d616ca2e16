//! `flatout man [COMMAND]…`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use clap_mangen::Man;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Failure, Message, Result, message};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout man run | man -l -                   show the manual page of a command
  flatout man --out ~/.local/share/man/man1    write one page per command";

#[derive(Args)]
pub struct Arguments {
    /// The command, such as `run` or `slurm submit` [default: flatout itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub fn about() -> Message {
    message!(en: "Print one manual page, or write all of them", zh: "输出手册页，或写出全部手册页")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    // Written for a file, not for this terminal.
    let mut tree = crate::command_of_width(context.language, PAGE_WIDTH);
    tree.build();
    match &arguments.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
            let pages = write_all(&tree, folder)?;
            let folder = folder.display();
            let written =
                message!(en: "wrote {pages} pages to {folder}", zh: "已向 {folder} 写入 {pages} 页");
            eprintln!("{}", context.say(&written));
        }
        None => {
            let mut command = &tree;
            for name in &arguments.command {
                let found = command.find_subcommand(name);
                command = found.ok_or_else(|| {
                    Failure::new(message!(en: "unknown command: `{name}`", zh: "没有命令 `{name}`")).with_hint(
                        message!(en: "`flatout --help` lists all commands", zh: "`flatout --help` 列出全部命令"),
                    )
                })?;
            }
            write_stdout(&page(command));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Pages are read at 80 columns, seven of which are the indentation.
const PAGE_WIDTH: usize = 73;

fn write_all(command: &clap::Command, folder: &Path) -> Result<usize> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    write_atomically(&folder.join(format!("{name}.1")), &page(command))?;
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    below
        .map(|sub| write_all(sub, folder))
        .try_fold(1, |pages, more| Ok(pages + more?))
}

/// A page in roff. clap_mangen fills lines up, so the examples are a section of our own.
fn page(command: &clap::Command) -> Vec<u8> {
    let examples = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone().after_help(None))
        .title(name)
        .source(format!("flatout {}", env!("FLATOUT_VERSION")))
        .manual("flatout");
    let mut roff = Vec::new();
    // Writing to memory does not fail.
    let _ = man.render(&mut roff);
    if !examples.is_empty() {
        let (heading, rest) = examples.split_once('\n').unwrap_or(("", &examples));
        let escaped = rest
            .replace('\\', "\\e")
            .replace('-', "\\-")
            .lines()
            .map(|line| format!("\\&{line}\n"))
            .collect::<String>();
        let heading = heading.trim_end_matches([':', '：']).to_uppercase();
        let _ = write!(roff, ".SH {heading}\n.nf\n{escaped}.fi\n");
    }
    roff
}
