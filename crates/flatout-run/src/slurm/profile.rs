//! `[slurm]` of the nearest `flatout.toml`: what the options of `slurm`, `grid --slurm` and others are where they are not given.

use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message};
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub gpus: Option<u32>,
    pub cpus_per_gpu: Option<u64>,
    pub mem: Option<String>,
    pub time: Option<String>,
    /// Tasks of an array at once.
    pub max_running: Option<u32>,
    /// Further options of sbatch: `constraint=a100`.
    pub sbatch: Vec<String>,
}

#[derive(Debug)]
pub enum ProfileError {
    File(FileError),
    Syntax {
        path: PathBuf,
        reason: String,
    },
    /// A key that there is not.
    Key {
        path: PathBuf,
        key: String,
    },
    /// A value of another kind.
    Value {
        path: PathBuf,
        key: String,
        expected: Message,
    },
}

impl Explain for ProfileError {
    fn message(&self) -> Message {
        match self {
            Self::File(error) => error.message(),
            Self::Syntax { path, reason } => {
                let path = path.display();
                message!(en: "{path}: {reason}", zh: "{path}：{reason}")
            }
            Self::Key { path, key } => {
                let path = path.display();
                message!(en: "{path}: [slurm] has no key `{key}`", zh: "{path}：[slurm] 中没有名为 `{key}` 的键")
            }
            Self::Value { path, key, expected } => {
                let path = path.display();
                let mut words =
                    message!(en: "{path}: slurm.{key}: expected ", zh: "{path}：slurm.{key}：应为");
                words.en += &expected.en;
                words.zh += &expected.zh;
                words
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::File(error) => error.hint(),
            Self::Key { .. } => {
                let keys = Profile::KEYS.join(", ");
                Some(message!(en: "its keys are {keys}", zh: "可用的键：{keys}"))
            }
            _ => None,
        }
    }
}
explained!(ProfileError);

impl Profile {
    pub const KEYS: &'static [&'static str] = &[
        "partition",
        "account",
        "qos",
        "gpus",
        "cpus-per-gpu",
        "mem",
        "time",
        "max-running",
        "sbatch",
    ];

    /// From the nearest `flatout.toml` at or above a folder; empty without one.
    pub fn discover(folder: &Path) -> Result<Self, ProfileError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let found = folder
            .ancestors()
            .map(|above| above.join("flatout.toml"))
            .find(|path| path.is_file());
        found.map_or(Ok(Self::default()), |path| Self::read(&path))
    }

    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileError::File(FileError::reading(path, source)))?;
        let document = Document::parse(text.as_str()).map_err(|error| ProfileError::Syntax {
            path: path.to_owned(),
            reason: error.message().to_owned(),
        })?;
        let mut profile = Self::default();
        let Some(section) = document.get("slurm") else {
            return Ok(profile);
        };
        let wrong = |key: &str, expected: Message| ProfileError::Value {
            path: path.to_owned(),
            key: key.to_owned(),
            expected,
        };
        let Some(table) = section.as_table_like() else {
            return Err(wrong("", message!(en: "a table", zh: "一个表")));
        };
        for (key, item) in table.iter() {
            let text = || {
                item.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| wrong(key, message!(en: "a text in quotes", zh: "带引号的文本")))
            };
            match key {
                "partition" => profile.partition = Some(text()?),
                "account" => profile.account = Some(text()?),
                "qos" => profile.qos = Some(text()?),
                "mem" => profile.mem = Some(text()?),
                "time" => profile.time = Some(text()?),
                "gpus" => profile.gpus = Some(count(item, 0).ok_or_else(|| wrong(key, whole()))?),
                "cpus-per-gpu" => {
                    let cpus = count(item, 1).ok_or_else(|| wrong(key, whole()))?;
                    profile.cpus_per_gpu = Some(cpus.into());
                }
                "max-running" => {
                    profile.max_running = Some(count(item, 1).ok_or_else(|| wrong(key, whole()))?)
                }
                "sbatch" => {
                    let list = message!(en: "a list of texts", zh: "文本列表");
                    let values = item.as_array().ok_or_else(|| wrong(key, list.clone()))?;
                    let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                    profile.sbatch = texts.collect::<Option<_>>().ok_or_else(|| wrong(key, list))?;
                }
                _ => {
                    return Err(ProfileError::Key {
                        path: path.to_owned(),
                        key: key.to_owned(),
                    });
                }
            }
        }
        Ok(profile)
    }
}

fn whole() -> Message {
    message!(en: "a whole number", zh: "整数")
}

fn count(item: &Item, least: u32) -> Option<u32> {
    let value = u32::try_from(item.as_integer()?).ok()?;
    (least..=4096).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Profile, ProfileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flatout.toml");
        std::fs::write(&path, text).unwrap();
        Profile::read(&path)
    }

    #[test]
    fn a_section_of_its_own() {
        let text = "[lint]\nignore = []\n[slurm]\npartition = \"gpu\"\ngpus = 2\ntime = \"2:00:00\"\nmax-running = 8\nsbatch = [\"constraint=a100\"]\n";
        let profile = read(text).unwrap();
        assert_eq!(
            (profile.partition.as_deref(), profile.gpus, profile.max_running),
            (Some("gpu"), Some(2), Some(8))
        );
        assert_eq!(profile.sbatch, ["constraint=a100"]);
        assert_eq!(read("[check]\n").unwrap(), Profile::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("[slurm]\npartitoin = \"gpu\"\n", "partitoin"),
            ("[slurm]\ngpus = \"two\"\n", "slurm.gpus"),
            ("[slurm]\ngpus = -1\n", "slurm.gpus"),
            ("[slurm]\nmax-running = 0\n", "max-running"),
            ("[slurm]\nsbatch = \"a\"\n", "slurm.sbatch"),
            ("slurm = 3\n", "slurm"),
            ("[slurm\n", "flatout.toml"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}
