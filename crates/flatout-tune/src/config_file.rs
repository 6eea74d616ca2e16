//! A YAML, JSON or TOML file as values with their places, so that one value can be replaced and everything else, comments
//! included, stays as it was. JSON is read as YAML, of which it is a part.

use crate::TuneError;
use flatout_core::files::read_text;
use saphyr_parser::{Event, Parser};
use std::ops::Range;
use std::path::Path;
use toml_edit::{Document, TableLike};

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

type Reader = fn(&str) -> Result<Vec<Value>, String>;

/// How to read a file, by its name.
fn reader(path: &Path) -> Option<Reader> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "yaml" | "yml" | "json" => Some(yaml),
        "toml" => Some(toml),
        _ => None,
    }
}

impl ConfigFile {
    /// Whether one is meant, though it may not be there.
    pub fn is_meant_by(path: &Path) -> bool {
        path.is_file() || (reader(path).is_some() && !path.is_dir())
    }

    pub fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path)?;
        let format = || TuneError::Format {
            path: path.to_owned(),
        };
        let values = reader(path).ok_or_else(format)?(&text).map_err(|text| TuneError::Syntax {
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

/// Reading takes the square of the nesting; no configuration has more levels than this.
const DEEPEST: usize = 200;

enum Frame {
    Mapping { path: String, key: Option<String> },
    Sequence { path: String, next: usize },
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn yaml(text: &str) -> Result<Vec<Value>, String> {
    // The parser counts characters; the file is cut by bytes.
    let offsets: Vec<usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect();
    let byte = |index: usize| offsets.get(index).copied().unwrap_or(text.len());
    let mut stack: Vec<Frame> = Vec::new();
    let mut values = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, at) = event.map_err(|error| format!("{}: {}", error.marker().line(), error.info()))?;
        if stack.len() > DEEPEST {
            let line = at.start.line();
            return Err(format!("{line}: nested more than {DEEPEST} levels deep"));
        }
        match event {
            Event::Scalar(scalar, ..) => {
                if let Some(Frame::Mapping { key: key @ None, .. }) = stack.last_mut() {
                    *key = Some(scalar.into_owned());
                } else {
                    let path = place(&mut stack);
                    let bytes = byte(at.start.index())..byte(at.end.index());
                    let line = at.start.line() as u32;
                    values.push(Value {
                        path,
                        text: scalar.into_owned(),
                        bytes,
                        line,
                    });
                }
            }
            Event::Alias(_) => match stack.last_mut() {
                Some(Frame::Mapping { key: key @ None, .. }) => *key = Some(String::new()),
                _ => drop(place(&mut stack)),
            },
            Event::MappingStart(..) => {
                let path = place(&mut stack);
                stack.push(Frame::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = place(&mut stack);
                stack.push(Frame::Sequence { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => drop(stack.pop()),
            _ => {}
        }
    }
    Ok(values)
}

/// The path of the value that begins now.
fn place(stack: &mut [Frame]) -> String {
    match stack.last_mut() {
        Some(Frame::Mapping { path, key }) => match key.take() {
            Some(name) => joined(path, &name),
            None => {
                // A mapping as a key: it has no name that a person could give.
                *key = Some(String::new());
                path.clone()
            }
        },
        Some(Frame::Sequence { path, next }) => {
            *next += 1;
            joined(path, &(*next - 1).to_string())
        }
        None => String::new(),
    }
}

fn toml(text: &str) -> Result<Vec<Value>, String> {
    let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
    let mut values = Vec::new();
    table(document.as_table(), "", text, &mut values);
    Ok(values)
}

fn table(table_like: &dyn TableLike, above: &str, text: &str, values: &mut Vec<Value>) {
    for (name, item) in table_like.iter() {
        let path = joined(above, name);
        if let Some(inner) = item.as_table_like() {
            table(inner, &path, text, values);
        } else if let (Some(bytes), true) = (item.span(), item.is_value()) {
            let line = 1 + text[..bytes.start.min(text.len())].matches('\n').count() as u32;
            let shown = text.get(bytes.clone()).unwrap_or_default().trim();
            let shown = item.as_str().unwrap_or(shown).to_owned();
            values.push(Value {
                path,
                text: shown,
                bytes,
                line,
            });
        }
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
            for read in [yaml, toml] {
                if let Ok(values) = read(&text) {
                    let file = ConfigFile { text: text.clone(), values };
                    for value in &file.values {
                        let _ = file.with(&[(value.path.clone(), "x".into())]);
                    }
                }
            }
        }
    }
}
