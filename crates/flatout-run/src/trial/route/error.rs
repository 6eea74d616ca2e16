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
                message!(en: "`{{{name}}}` is not a setting that can be tuned", zh: "`{{{name}}}` 不是可调的设置")
            }
            Self::NoValue { path, key, .. } => {
                let path = path.display();
                message!(en: "`{path}` does not contain the setting `{key}`", zh: "`{path}` 中没有设置 `{key}`")
            }
            Self::NotNamed { path } => {
                let path = path.display();
                message!(en: "the command does not mention `{path}`", zh: "命令中没有出现 `{path}`")
            }
            Self::NoFile => {
                message!(en: "--set needs a configuration file: --config FILE", zh: "--set 需要配置文件：--config FILE")
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
                    message!(en: "placeholders are: {known}; write {{{{ for a literal brace", zh: "占位符有：{known}；程序自身的花括号请写成 {{{{"),
                )
            }
            Self::NoValue { known, .. } => {
                Some(message!(en: "it contains: {known}", zh: "文件中有：{known}"))
            }
            Self::NotNamed { .. } => Some(
                message!(en: "use the path given to --config, or {{config}}, in the command", zh: "请在命令中写上 --config 给出的文件，或 {{config}}"),
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
