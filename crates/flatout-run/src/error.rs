//! Why a run could not be started.

use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message};

#[derive(Debug)]
pub enum RunError {
    NoCommand,
    /// The program could not be started at all: not found, not executable.
    Start {
        program: String,
        source: std::io::Error,
    },
    Record(FileError),
    /// No folder for the probe's files.
    Runtime(std::io::Error),
    Wait(std::io::Error),
    /// A setting of `--apply` that there is not.
    Setting {
        name: String,
    },
    Value {
        name: String,
        value: String,
        expected: String,
    },
    /// A kind of `--allow` that there is not.
    Allow {
        name: String,
    },
    /// No process of this number to attach to.
    NoProcess(u32),
}

impl Explain for RunError {
    fn message(&self) -> Message {
        match self {
            Self::NoCommand => message!(en: "no command to run", zh: "没有给出要运行的命令"),
            Self::Start { program, .. } => {
                message!(en: "failed to start `{program}`", zh: "无法启动 `{program}`")
            }
            Self::Setting { name } => {
                message!(en: "unknown setting for --apply: `{name}`", zh: "--apply 不支持设置项 `{name}`")
            }
            Self::Value {
                name,
                value,
                expected,
            } => {
                message!(en: "`{value}` is not a valid value for {name}; expected {expected}", zh: "`{value}` 不是 {name} 的取值；应为 {expected}")
            }
            Self::Allow { name } => {
                message!(en: "unknown value for --allow: `{name}`", zh: "--allow 不支持 `{name}`")
            }
            Self::Record(error) => error.message(),
            Self::Runtime(_) => {
                message!(en: "failed to create a folder for the probe", zh: "无法为探针创建目录")
            }
            Self::NoProcess(pid) => message!(en: "there is no process {pid}", zh: "没有进程 {pid}"),
            Self::Wait(_) => message!(en: "failed to wait for the program", zh: "无法等待程序结束"),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::NoCommand => {
                Some(message!(en: "flatout run -- python train.py", zh: "flatout run -- python train.py"))
            }
            Self::Start { .. } => Some(
                message!(en: "write the command as you would type it: flatout run -- python train.py", zh: "请像平时一样写出命令：flatout run -- python train.py"),
            ),
            Self::Record(_) => Some(
                message!(en: "set FLATOUT_HOME to a writable folder", zh: "请把 FLATOUT_HOME 设为一个可写的目录"),
            ),
            Self::Runtime(_) => {
                Some(message!(en: "set TMPDIR to a writable folder", zh: "请把 TMPDIR 设为一个可写的目录"))
            }
            Self::Setting { .. } => {
                let known = crate::apply::known().collect::<Vec<_>>().join(", ");
                Some(message!(en: "available settings: {known}", zh: "设置项有：{known}"))
            }
            Self::Allow { .. } => {
                let known = crate::auto::KINDS.join(", ");
                Some(message!(en: "choose from: {known}", zh: "可选：{known}"))
            }
            Self::Value { .. } | Self::Wait(_) => None,
            Self::NoProcess(_) => Some(
                message!(en: "find the process id with: ps aux | grep python", zh: "可以这样查找：ps aux | grep python"),
            ),
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoCommand
            | Self::NoProcess(_)
            | Self::Setting { .. }
            | Self::Value { .. }
            | Self::Allow { .. } => None,
            Self::Start { source, .. } | Self::Runtime(source) | Self::Wait(source) => Some(source),
            Self::Record(error) => Some(&error.source),
        }
    }
}
explained!(RunError);
