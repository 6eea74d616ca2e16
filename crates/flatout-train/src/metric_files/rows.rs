//! Epochs as rows: one JSON object a line, and the same flat in CSV.

use serde_json::{Map, Value};
use std::path::Path;

/// What every row has, and a reader looks for first.
const FIRST: &[&str] = &["phase", "epoch", "step", "loss", "rate", "samples_s", "seconds"];

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    line: String,
    /// The scores are an object inside.
    whole: Map<String, Value>,
}

impl Row {
    /// `None` for a line that is no JSON object.
    pub fn parse(line: &str) -> Option<Self> {
        let whole = serde_json::from_str(line).ok()?;
        Some(Self {
            line: line.to_owned(),
            whole,
        })
    }

    pub fn step(&self) -> u64 {
        self.whole.get("step").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Columns and values, the scores as `validation_…`; what says nothing is left out.
    fn columns(&self) -> Vec<(String, &Value)> {
        let mut columns = Vec::new();
        for (name, value) in &self.whole {
            match value {
                Value::Null => {}
                Value::String(_) if name == "event" => {}
                Value::Object(targets) if name == "targets" => {
                    for (target, scores) in targets {
                        let scores = scores.as_object().into_iter().flatten();
                        let scores = scores.filter(|(score, _)| *score != "samples");
                        columns.extend(
                            scores.map(|(score, value)| (format!("validation_{score}_{target}"), value)),
                        );
                    }
                }
                Value::Object(scores) => {
                    let scores = scores.iter().filter(|(_, value)| !value.is_null());
                    columns.extend(scores.map(|(score, value)| (format!("validation_{score}"), value)));
                }
                value => columns.push((name.clone(), value)),
            }
        }
        columns
    }

    pub fn numbers(&self) -> Vec<(String, f64)> {
        let columns = self.columns().into_iter();
        columns
            .filter_map(|(name, value)| Some((name, value.as_f64()?)))
            .collect()
    }
}

/// The rows of an earlier part of the training, up to a step. A line that is none is left out.
pub fn read(path: &Path, last_step: u64) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(Row::parse);
    rows.filter(|row| row.step() <= last_step).collect()
}

pub fn jsonl(rows: &[Row]) -> String {
    rows.iter().map(|row| row.line.clone() + "\n").collect()
}

/// The first columns, then all others in the order in which they came; a row leaves empty what it does not have.
pub fn csv(rows: &[Row]) -> String {
    let flat: Vec<_> = rows.iter().map(Row::columns).collect();
    let mut header = FIRST.to_vec();
    for (name, _) in flat.iter().flatten() {
        if !header.contains(&name.as_str()) {
            header.push(name);
        }
    }
    let mut text = header.join(",") + "\n";
    for row in &flat {
        let cell = |column: &&str| {
            let found = row.iter().find(|(name, _)| name == column);
            found.map(|(_, value)| cell(value)).unwrap_or_default()
        };
        text += &header.iter().map(cell).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        Row::parse(text).unwrap()
    }

    #[test]
    fn scores_that_come_later_get_columns_and_lines_after_the_step_go() {
        let rows = [
            row(r#"{"event":"epoch","phase":"a,b","epoch":1,"step":10,"loss":0.5,"scores":null}"#),
            row(
                r#"{"event":"epoch","phase":"c","epoch":2,"step":20,"loss":0.25,"scores":{"mae":1.5,"ic":null}}"#,
            ),
        ];
        assert_eq!(
            csv(&rows),
            "phase,epoch,step,loss,rate,samples_s,seconds,validation_mae\n\"a,b\",1,10,0.5,,,,\nc,2,20,0.25,,,,1.5\n"
        );
        assert!(rows[1].numbers().contains(&("validation_mae".to_owned(), 1.5)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        std::fs::write(&path, jsonl(&rows) + "{torn").unwrap();
        assert_eq!(read(&path, 10), rows[..1]);
        assert_eq!(read(&path, 20), rows);
        assert!(read(&folder.path().join("none"), 20).is_empty());
    }
}
