//! Why advice, a check or a search could not be given.

use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message};
use std::path::PathBuf;

#[derive(Debug)]
pub enum TuneError {
    File(FileError),
    /// A configuration file that is not what its name says.
    Syntax {
        path: PathBuf,
        text: String,
    },
    /// Not a format that can be read.
    Format {
        path: PathBuf,
    },
    UnknownGpu {
        name: String,
        known: String,
    },
}

impl Explain for TuneError {
    fn message(&self) -> Message {
        match self {
            Self::File(error) => error.message(),
            Self::Syntax { path, text } => {
                let path = path.display();
                message!(en: "`{path}` cannot be read: {text}", zh: "无法解析 `{path}`：{text}")
            }
            Self::Format { path } => {
                let path = path.display();
                message!(en: "`{path}` is neither YAML, JSON nor TOML", zh: "`{path}` 不是 YAML、JSON 或 TOML")
            }
            Self::UnknownGpu { name, .. } => {
                message!(en: "no figures for a GPU called `{name}`", zh: "没有名为 `{name}` 的 GPU 的数据")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::UnknownGpu { known, .. } => {
                Some(message!(en: "known are: {known}", zh: "已知的有：{known}"))
            }
            Self::Format { .. } => Some(message!(
                en: "give a .yaml, .json or .toml file, or the name of a run (flatout runs)",
                zh: "请给出 .yaml、.json 或 .toml 文件，或运行记录的名字（flatout runs）"
            )),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(TuneError);

impl From<FileError> for TuneError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
