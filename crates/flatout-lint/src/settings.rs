//! Which rules run and what is known of the machine: `[lint]` of a `flatout.toml`, or `[tool.flatout.lint]` of a `pyproject.toml`.

use crate::project::Facts;
use crate::rules::RULES;
use flatout_core::error::FileError;
use flatout_core::files::read_text;
use flatout_core::{Explain, Message, RuleInfo, explained, message};
use flatout_vocabulary::canonical_id;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item};

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Rule ids or domains; empty means all.
    pub select: Vec<String>,
    pub ignore: Vec<String>,
    /// Folder or file names, or ends of paths, that are left out.
    pub exclude: Vec<String>,
    pub facts: Facts,
}

#[derive(Debug)]
pub enum SettingsError {
    Read(FileError),
    Syntax {
        path: PathBuf,
        text: String,
    },
    Key {
        path: PathBuf,
        key: String,
    },
    Value {
        path: PathBuf,
        key: &'static str,
        wanted: Message,
    },
    UnknownRule {
        name: String,
    },
}

impl Explain for SettingsError {
    fn message(&self) -> Message {
        match self {
            Self::Read(error) => error.message(),
            Self::Syntax { path, text } => {
                let path = path.display();
                message!(en: "`{path}` is not valid TOML: {text}", zh: "`{path}` 不是有效的 TOML：{text}")
            }
            Self::Key { path, key } => {
                let path = path.display();
                message!(en: "`{path}`: unknown lint setting `{key}`", zh: "`{path}`：lint 一节没有设置项 `{key}`")
            }
            Self::Value { path, key, wanted } => {
                let path = path.display();
                Message {
                    en: format!("`{path}`: `{key}` must be {}", wanted.en),
                    zh: format!("`{path}`：`{key}` 必须是{}", wanted.zh),
                }
            }
            Self::UnknownRule { name } => {
                message!(en: "no rule or domain is named `{name}`", zh: "没有名为 `{name}` 的规则或领域")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::UnknownRule { .. } => Some(message!(
                en: "`flatout explain --list` shows all rules",
                zh: "`flatout explain --list` 列出全部规则"
            )),
            Self::Key { .. } => Some(message!(
                en: "known settings: select, ignore, exclude, cpus, gpu-memory-gib",
                zh: "可用的设置项：select、ignore、exclude、cpus、gpu-memory-gib"
            )),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(SettingsError);

impl Settings {
    /// The settings for paths: from the nearest `flatout.toml` or `pyproject.toml` with such a section, at or above the first path.
    pub fn discover(start: &Path) -> Result<Self, SettingsError> {
        let start = std::path::absolute(start).unwrap_or_else(|_| start.to_path_buf());
        for folder in start.ancestors() {
            for name in ["flatout.toml", "pyproject.toml"] {
                let path = folder.join(name);
                if path.is_file()
                    && let Some(settings) = Self::read(&path)?
                {
                    return Ok(settings);
                }
            }
        }
        Ok(Self::default())
    }

    /// The settings of one file; `None` when it has no section for us.
    pub fn read(path: &Path) -> Result<Option<Self>, SettingsError> {
        let text = read_text(path).map_err(SettingsError::Read)?;
        let document = Document::parse(text.as_str()).map_err(|error| SettingsError::Syntax {
            path: path.to_owned(),
            text: error.message().to_owned(),
        })?;
        let top = document.as_item();
        let is_pyproject = path.file_name().is_some_and(|name| name == "pyproject.toml");
        let section = if is_pyproject {
            top.get("tool")
                .and_then(|tool| tool.get("flatout"))
                .and_then(|ours| ours.get("lint"))
        } else {
            top.get("lint")
        };
        section
            .map(|section| Self::from_section(path, section))
            .transpose()
    }

    fn from_section(path: &Path, section: &Item) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let wrong = |key, wanted| SettingsError::Value {
            path: path.to_owned(),
            key,
            wanted,
        };
        let list = |item: &Item, key| {
            strings(item).ok_or_else(|| wrong(key, message!(en: "a list of strings", zh: "字符串列表")))
        };
        let number = |item: &Item, key| {
            let value = item.as_integer().and_then(|value| u32::try_from(value).ok());
            value.ok_or_else(|| wrong(key, message!(en: "a whole number", zh: "非负整数")))
        };
        for (key, item) in section.as_table_like().into_iter().flat_map(|table| table.iter()) {
            match key {
                "select" => settings.select = list(item, "select")?,
                "ignore" => settings.ignore = list(item, "ignore")?,
                "exclude" => settings.exclude = list(item, "exclude")?,
                "cpus" => settings.facts.cpus = Some(number(item, "cpus")?),
                "gpu-memory-gib" => settings.facts.gpu_memory_gib = Some(number(item, "gpu-memory-gib")?),
                other => {
                    return Err(SettingsError::Key {
                        path: path.to_owned(),
                        key: other.to_owned(),
                    });
                }
            }
        }
        settings.check()?;
        Ok(settings)
    }

    /// Every rule named must exist: a typing error must not silently switch nothing off. Former ids become the present ones.
    pub fn check(&mut self) -> Result<(), SettingsError> {
        for name in self.select.iter_mut().chain(&mut self.ignore) {
            let id = canonical_id(name);
            let known = RULES
                .iter()
                .any(|rule| rule.info.id == id || rule.info.domain == id);
            if !known {
                return Err(SettingsError::UnknownRule { name: name.clone() });
            }
            *name = id;
        }
        Ok(())
    }

    pub fn selects(&self, rule: &RuleInfo) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == rule.id || name == rule.domain);
        let by_id = |list: &[String]| list.iter().any(|name| name == rule.id);
        let wanted = self.select.is_empty() || named(&self.select);
        // A rule selected by its own id wins over its ignored domain.
        wanted && (!named(&self.ignore) || (by_id(&self.select) && !by_id(&self.ignore)))
    }

    pub fn excludes(&self, path: &Path) -> bool {
        self.exclude.iter().any(|pattern| {
            let pattern = Path::new(pattern);
            path.ends_with(pattern) || path.starts_with(pattern)
        })
    }
}

fn strings(item: &Item) -> Option<Vec<String>> {
    item.as_array()?
        .iter()
        .map(|value| value.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Option<Settings>, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Settings::read(&path)
    }

    #[test]
    fn both_files_are_understood() {
        let settings = read(
            "flatout.toml",
            "[lint]\nignore = [\"sync\"]\nselect = [\"item-in-step\"]\ncpus = 8\n",
        );
        let settings = settings.unwrap().unwrap();
        assert!(settings.selects(&crate::rules::find("item-in-step").unwrap().info));
        assert_eq!(settings.facts.cpus, Some(8));
        let text = "[project]\nname = \"x\"\n[tool.flatout.lint]\nexclude = [\"old\"]\n";
        assert!(
            read("pyproject.toml", text)
                .unwrap()
                .unwrap()
                .excludes(Path::new("a/old"))
        );
        assert!(
            read("pyproject.toml", "[project]\nname = \"x\"\n")
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn former_ids_and_other_spellings_select_rules() {
        let text = "[lint]\nselect = [\"tf32-not-enabled\", \"Item_In_Step\"]\n";
        let settings = read("flatout.toml", text).unwrap().unwrap();
        assert_eq!(settings.select, ["tf32-off", "item-in-step"]);
    }

    #[test]
    fn reports_mistakes() {
        for text in [
            "[lint]\nselekt = []\n",
            "[lint]\nselect = [\"no-such\"]\n",
            "[lint]\ncpus = \"many\"\n",
            "[lint\n",
        ] {
            assert!(read("flatout.toml", text).is_err(), "{text}");
        }
    }
}
