//! A YAML, JSON or TOML file as values with their places, so that one value can be replaced and everything else, comments
//! included, stays as it was.

use crate::TuneError;
use flatout_config::{Format, Lines};
use flatout_core::files::read_text;
use std::ops::Range;
use std::path::Path;

/// A single value, by the keys that lead to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// `train.batch_size`.
    pub path: String,
    pub text: String,
    /// Its bytes in the file.
    pub bytes: Range<usize>,
    /// Line, from 1.
    pub line: u32,
}

impl Value {
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
pub struct ConfigFile {
    pub text: String,
    pub values: Vec<Value>,
}

/// Everything that is written in the file, or the line of the first mistake and what it is.
fn values(text: &str, format: Format) -> Result<Vec<Value>, String> {
    let (items, problem) = flatout_config::read(text, format);
    let lines = Lines::of(text);
    if let Some(problem) = problem {
        return Err(format!("{}: {}", lines.at(problem.at.start), problem.text));
    }
    let written = items.into_iter().filter(flatout_config::Item::is_written);
    let value = |item: flatout_config::Item| Value {
        path: item.path.join("."),
        text: item.text,
        line: lines.at(item.bytes.start) as u32,
        bytes: item.bytes,
    };
    Ok(written.map(value).collect())
}

impl ConfigFile {
    /// Whether one is meant, though it may not be there.
    pub fn is_meant_by(path: &Path) -> bool {
        path.is_file() || (Format::of(path).is_some() && !path.is_dir())
    }

    pub fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path)?;
        let format = || TuneError::Format {
            path: path.to_owned(),
        };
        let values =
            values(&text, Format::of(path).ok_or_else(format)?).map_err(|text| TuneError::Syntax {
                path: path.to_owned(),
                text,
            })?;
        Ok(Self { text, values })
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        self.values.iter().find(|value| value.path == path)
    }

    /// The text with these values in the place of the old ones; paths that the file does not have change nothing.
    pub fn with(&self, changes: &[(String, String)]) -> String {
        let mut places: Vec<(&Value, &str)> = changes
            .iter()
            .filter_map(|(path, to)| Some((self.get(path)?, to.as_str())))
            .collect();
        places.sort_by_key(|(value, _)| std::cmp::Reverse(value.bytes.start));
        let mut text = self.text.clone();
        for (value, to) in places {
            if text.get(value.bytes.clone()).is_some() {
                text.replace_range(value.bytes.clone(), to);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(name: &str, text: &str) -> Result<ConfigFile, TuneError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(&path)
    }

    #[test]
    fn deep_nesting_is_refused_at_once() {
        for text in ["- ".repeat(100_000) + "a", "[".repeat(100_000)] {
            assert!(file("a.yaml", &text).is_err());
        }
        assert!(file("a.yaml", &("- ".repeat(100) + "a")).is_ok());
    }

    #[test]
    fn one_value_changes_and_comments_stay() {
        let yaml = file(
            "a.yaml",
            "# 训练\ntrain:\n  batch_size: 64  # small\n  lr: 1e-3\nlist: [1, 2]\n",
        )
        .unwrap();
        assert_eq!(
            yaml.get("train.batch_size")
                .map(|value| (value.text.as_str(), value.line)),
            Some(("64", 3))
        );
        assert_eq!(yaml.get("list.1").unwrap().text, "2");
        let changed = yaml.with(&[
            ("train.batch_size".into(), "512".into()),
            ("no.such".into(), "1".into()),
        ]);
        assert_eq!(
            changed,
            "# 训练\ntrain:\n  batch_size: 512  # small\n  lr: 1e-3\nlist: [1, 2]\n"
        );
        let json = file("a.json", "{\"train\": {\"amp\": true, \"batch_size\": 8}}").unwrap();
        assert_eq!(
            json.with(&[("train.batch_size".into(), "16".into())]),
            "{\"train\": {\"amp\": true, \"batch_size\": 16}}"
        );
        let toml = file("a.toml", "[train]\nbatch_size = 8 # c\n").unwrap();
        assert_eq!(
            toml.with(&[("train.batch_size".into(), "16".into())]),
            "[train]\nbatch_size = 16 # c\n"
        );
    }

    #[test]
    fn refuses_files_that_are_not_configurations() {
        assert!(matches!(file("a.txt", "x"), Err(TuneError::Format { .. })));
        assert!(matches!(file("a.yaml", "a: [1,"), Err(TuneError::Syntax { .. })));
        assert!(matches!(file("a.toml", "= 1"), Err(TuneError::Syntax { .. })));
        assert!(matches!(
            ConfigFile::read(Path::new("/no/such.yaml")),
            Err(TuneError::File(_))
        ));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\\n训:\\-\\[\\]{}]{0,80}") {
            for format in [Format::Yaml, Format::Json, Format::Toml] {
                if let Ok(values) = values(&text, format) {
                    let file = ConfigFile { text: text.clone(), values };
                    for value in &file.values {
                        let _ = file.with(&[(value.path.clone(), "x".into())]);
                    }
                }
            }
        }
    }
}
