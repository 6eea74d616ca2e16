//! One JSON object a line: `run` first and whenever more is known of it, `sample` a tick, `event` as they happen, `verdict` last.

use super::Format;
use crate::watch::Moment;
use flatout_diagnose::verdict::Verdict;
use serde::Serialize;

/// The version of these lines.
pub const SCHEMA: u32 = 1;

#[derive(Default)]
pub struct Json;

#[derive(Serialize)]
struct Line<'a, T> {
    schema: u32,
    kind: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

/// An event has a `kind` of its own, so it stands inside.
#[derive(Serialize)]
struct EventLine<'a, T> {
    schema: u32,
    kind: &'static str,
    event: &'a T,
}

#[derive(Serialize)]
struct RunLine<'a, T> {
    schema: u32,
    kind: &'static str,
    run: &'a T,
}

#[derive(Serialize)]
struct VerdictLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .map(|text| text + "\n")
        .unwrap_or_default()
}

impl Format for Json {
    fn tick(&mut self, moment: &Moment) -> String {
        let mut text = String::new();
        if moment.tick.described {
            text += &line(&RunLine {
                schema: SCHEMA,
                kind: "run",
                run: moment.info,
            });
        }
        for event in &moment.tick.events {
            text += &line(&EventLine {
                schema: SCHEMA,
                kind: "event",
                event,
            });
        }
        text + &line(&Line {
            schema: SCHEMA,
            kind: "sample",
            value: &moment.tick.sample,
        })
    }
}

/// The last line. The verdict brings its own schema version.
pub fn verdict_line(verdict: &Verdict) -> String {
    line(&VerdictLine {
        kind: "verdict",
        verdict,
    })
}
