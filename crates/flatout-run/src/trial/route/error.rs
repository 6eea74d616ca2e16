//! What can be wrong with a command that is to be tuned.

use flatout_core::{Explain, Message, explained, message};
use flatout_tune::TuneError;
use flatout_vocabulary::settings;
use std::path::PathBuf;

#[derive(Debug)]
pub enum RouteError {
    /// `{colour}` is nothing that can be tuned.
    Placeholder {
        name: String,
    },
    /// `--set` names a value that the file does not have, or that is no setting.
    NoValue {
        path: PathBuf,
        key: String,
        known: String,
    },
    /// The command does not name the configuration file.
    NotNamed {
        path: PathBuf,
    },
    /// `--set` without `--config`.
    NoFile,
    Config(TuneError),
}

impl Explain for RouteError {
    fn message(&self) -> Message {
        match self {
            Self::Placeholder { name } => {
                message!(en: "`{{{name}}}` is no setting that can be tuned", zh: "`{{{name}}}` 不是可调的设置")
            }
            Self::NoValue { path, key, .. } => {
                let path = path.display();
                message!(en: "`{path}` has no setting `{key}`", zh: "`{path}` 中没有设置 `{key}`")
            }
            Self::NotNamed { path } => {
                let path = path.display();
                message!(en: "the command does not name `{path}`", zh: "命令中没有出现 `{path}`")
            }
            Self::NoFile => {
                message!(en: "--set needs the file: --config FILE", zh: "--set 需要配置文件：--config FILE")
            }
            Self::Config(error) => error.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::Placeholder { .. } => {
                let known = settings::SETTINGS
                    .iter()
                    .map(|setting| setting.name)
                    .collect::<Vec<_>>()
                    .join(", ");
                Some(
                    message!(en: "placeholders are: {known}; write {{{{ for a brace of the program's own", zh: "占位符有：{known}；程序自身的花括号请写成 {{{{"),
                )
            }
            Self::NoValue { known, .. } => Some(message!(en: "it has: {known}", zh: "文件中有：{known}")),
            Self::NotNamed { .. } => Some(
                message!(en: "put the file, as given to --config, or {{config}} into the command", zh: "请在命令中写上 --config 给出的文件，或 {{config}}"),
            ),
            Self::Config(error) => error.hint(),
            Self::NoFile => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(RouteError);
