//! The tools, one file each: what a call may say, what it does, what the answer has. A new one is a file and a line in [`TOOLS`].

mod account;
mod apply;
mod brief;
mod compare;
mod diagnose;
mod explain;
mod job;
mod lint;
mod report;
mod run;
mod runs;
mod tune;

use crate::fit::{self, DEFAULT_BYTES, FEWEST_BYTES, MOST_BYTES};
use crate::jobs::Jobs;
use crate::paths::Root;
use crate::server::Host;
use flatout_core::{Failure, Message, Result, message};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::atomic::AtomicBool;

/// What a tool is called with beside its arguments.
pub struct Call<'a> {
    pub(crate) host: &'a Host,
    pub(crate) root: &'a Root,
    pub(crate) jobs: &'a Jobs,
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) progress: &'a dyn Fn(f64, &str),
}

impl Call<'_> {
    fn say<'m>(&self, message: &'m Message) -> &'m str {
        message.get(self.host.language)
    }

    /// Whether a call that asks for it may change files.
    fn may_write(&self) -> Result<()> {
        if self.host.read_only {
            return Err(Failure::new(
                message!(en: "this server is read-only and writes nothing", zh: "此服务器为只读，不写入任何内容"),
            )
            .with_hint(message!(en: "start it without --read-only", zh: "请不加 --read-only 启动")));
        }
        Ok(())
    }
}

pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    /// Properties of the arguments, as JSON Schema.
    properties: fn() -> Value,
    required: &'static [&'static str],
    /// Properties that every answer has, as JSON Schema.
    answer_properties: fn() -> Value,
    answer_required: &'static [&'static str],
    /// Lists of the answer that may be shortened, the least important first.
    lists: &'static [&'static str],
    /// It starts programs of the user.
    pub starts_programs: bool,
    /// It can change files when the call asks for it.
    pub writes: bool,
    call: fn(&Call<'_>, Value) -> Result<Value>,
}

pub const TOOLS: &[Tool] = &[
    run::TOOL,
    job::TOOL,
    runs::TOOL,
    diagnose::TOOL,
    account::TOOL,
    explain::TOOL,
    lint::TOOL,
    apply::TOOL,
    compare::TOOL,
    tune::TOOL,
    report::TOOL,
];

impl Tool {
    /// The entry of `tools/list`.
    pub fn described(&self) -> Value {
        let mut properties = (self.properties)();
        properties["max_bytes"] = json!({
            "type": "integer", "minimum": FEWEST_BYTES, "maximum": MOST_BYTES, "default": DEFAULT_BYTES,
            "description": "Longest answer",
        });
        let changes = self.starts_programs || self.writes;
        let mut annotations = json!({"readOnlyHint": !changes, "openWorldHint": self.starts_programs});
        if changes {
            annotations["destructiveHint"] = json!(true);
            annotations["idempotentHint"] = json!(false);
        }
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": self.required,
                "additionalProperties": false,
            },
            "outputSchema": {
                "type": "object",
                "properties": (self.answer_properties)(),
                "required": self.answer_required,
            },
            "annotations": annotations,
        })
    }

    /// Calls it, and makes the answer fit.
    pub fn answer(&self, call: &Call<'_>, mut arguments: Map<String, Value>) -> Result<Value> {
        let most = match arguments.remove("max_bytes") {
            None | Some(Value::Null) => DEFAULT_BYTES,
            Some(value) => {
                let asked = value.as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                asked
                    .filter(|bytes| (FEWEST_BYTES..=MOST_BYTES).contains(bytes))
                    .ok_or_else(|| {
                        Failure::new(message!(
                            en: "`max_bytes` must be an integer from {FEWEST_BYTES} to {MOST_BYTES}",
                            zh: "`max_bytes` 必须是 {FEWEST_BYTES} 到 {MOST_BYTES} 的整数"
                        ))
                    })?
            }
        };
        // `null` for an optional argument means the default.
        arguments.retain(|_, value| !value.is_null());
        let answer = (self.call)(call, Value::Object(arguments))?;
        Ok(fit::fit(answer, most, self.lists))
    }
}

/// The arguments as a tool's own type.
fn arguments<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        Failure::new(message!(en: "invalid arguments: {error}", zh: "参数无效：{error}")).with_hint(
            message!(en: "tools/list returns the schema of each tool", zh: "tools/list 给出每个工具的参数格式"),
        )
    })
}

/// Four significant digits: an agent needs no more, and digits cost context.
fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.clamp(-300, 300));
    let rounded = (value * scale).round() / scale;
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}

/// A library's own JSON with fewer digits, and sentences in one language.
fn plain(call: &Call<'_>, value: Value) -> Value {
    match value {
        Value::Number(given) => given
            .as_f64()
            .filter(|_| given.is_f64())
            .map_or(json!(given), number),
        Value::Array(entries) => entries.into_iter().map(|entry| plain(call, entry)).collect(),
        Value::Object(fields) => match serde_json::from_value::<Message>(Value::Object(fields.clone())) {
            Ok(message) if fields.len() == 2 => json!(call.say(&message)),
            _ => Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, plain(call, value)))
                    .collect(),
            ),
        },
        other => other,
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "default": false, "description": description})
}

fn list() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

/// How long `run`, `tune` and `job` may wait.
const LONGEST_WAIT_S: f64 = 3600.0;

/// How long `run` and `tune` wait unless told: clients usually give a call up after 60 s, and the answer needs some time as well.
const WAIT_S: f64 = 40.0;

fn wait_schema(default_s: f64) -> Value {
    json!({
        "type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S, "default": default_s,
        "description": "Seconds to wait for the end; after that the program goes on and `job` asks again. Many clients give up after 60 s",
    })
}

fn wait(asked: Option<f64>, default_s: f64) -> Result<std::time::Duration> {
    let seconds = asked.unwrap_or(default_s);
    if !(0.0..=LONGEST_WAIT_S).contains(&seconds) {
        return Err(Failure::new(
            message!(en: "`wait_s` must be from 0 to {LONGEST_WAIT_S}", zh: "`wait_s` 必须在 0 到 {LONGEST_WAIT_S} 之间"),
        ));
    }
    Ok(std::time::Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let cases = [
            (0.123456, "0.1235"),
            (1234567.0, "1235000"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (f64::NAN, "null"),
        ];
        for (value, shown) in cases {
            assert_eq!(number(value).to_string(), shown);
        }
        assert!(number(1e-320).is_number() && number(1e300).is_number());
    }

    #[test]
    fn tools_are_described_briefly() {
        let all: Vec<Value> = TOOLS.iter().map(Tool::described).collect();
        for tool in &all {
            let size = fit::size(tool);
            assert!(size < 2500, "{} has {size} bytes", tool["name"]);
        }
        assert!(fit::size(&json!(all)) < 16_000, "{}", fit::size(&json!(all)));
    }
}
