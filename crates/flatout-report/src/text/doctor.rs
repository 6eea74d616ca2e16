//! What `flatout doctor` found: a line a thing, under its heading, with the cost of what is missing and what to do.

use super::width::{pad, printable, width, wrap};
use super::{Paint, Tone};
use flatout_core::{Language, Message, message};
use flatout_telemetry::doctor::{Check, Health};
use serde_json::{Value, json};

/// The version of the JSON form.
const SCHEMA: u32 = 1;

pub fn doctor(checks: &[Check], language: Language, columns: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let mut text = String::new();
    let label_width = [Health::Good, Health::Note, Health::Missing, Health::Problem]
        .map(|health| width(label(health).0.get(language)))
        .into_iter()
        .max()
        .unwrap_or(0);
    let mut area = None;
    for check in checks {
        if area != Some(check.area) {
            if area.is_some() {
                text.push('\n');
            }
            text += &paint.tone(Tone::Strong, check.area.title().get(language));
            text.push('\n');
            area = Some(check.area);
        }
        let (word, tone) = label(check.health);
        let mark = paint.tone(tone, &pad(word.get(language), label_width));
        let indent = label_width + 4;
        let mut first = true;
        let mut add = |line: String| {
            let start = if std::mem::take(&mut first) {
                format!("  {mark}  ")
            } else {
                " ".repeat(indent)
            };
            text.push_str(&start);
            text.push_str(&line);
            text.push('\n');
        };
        let room = columns.saturating_sub(indent).max(20);
        let shown = printable(check.text.get(language));
        // A path is there to be copied: better too long a line than a broken one.
        if shown.contains('/') {
            add(shown);
        } else {
            wrap(&shown, room).into_iter().for_each(&mut add);
        }
        for (name, message) in [
            (message!(en: "impact: ", zh: "影响："), &check.cost),
            (message!(en: "fix: ", zh: "处理："), &check.remedy),
        ] {
            if let Some(message) = message {
                let line = format!("{}{}", name.get(language), printable(message.get(language)));
                wrap(&line, room)
                    .into_iter()
                    .for_each(|line| add(paint.tone(Tone::Quiet, &line)));
            }
        }
    }
    text
}

fn label(health: Health) -> (Message, Tone) {
    match health {
        Health::Good => (message!(en: "ok", zh: "正常"), Tone::Good),
        Health::Note => (message!(en: "note", zh: "注意"), Tone::Name),
        Health::Missing => (message!(en: "missing", zh: "缺少"), Tone::Warning),
        Health::Problem => (message!(en: "problem", zh: "问题"), Tone::Bad),
    }
}

pub fn doctor_json(checks: &[Check], language: Language) -> String {
    let say = |message: &Option<Message>| message.as_ref().map(|message| message.get(language).to_owned());
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            let mut value = json!({
                "id": check.id,
                "area": check.area,
                "health": check.health,
                "text": check.text.get(language),
            });
            for (name, text) in [("cost", say(&check.cost)), ("do", say(&check.remedy))] {
                if let Some(text) = text {
                    value[name] = text.into();
                }
            }
            if !check.data.is_empty() {
                value["data"] = Value::Object(check.data.clone());
            }
            value
        })
        .collect();
    let whole = json!({ "schema": SCHEMA, "checks": checks });
    format!("{}\n", serde_json::to_string_pretty(&whole).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::doctor::Area;
    use serde_json::Map;

    fn check(area: Area, health: Health, cost: Option<&str>) -> Check {
        Check {
            id: "driver".into(),
            area,
            health,
            text: Message::verbatim("driver 580"),
            cost: cost.map(Message::verbatim),
            remedy: cost.map(|_| Message::verbatim("modprobe nvidia")),
            data: Map::new(),
        }
    }

    #[test]
    fn shows_impact_and_fix_below_what_is_missing() {
        let checks = [
            check(Area::Gpu, Health::Good, None),
            check(Area::Gpu, Health::Missing, Some("no GPU")),
            check(Area::Host, Health::Note, None),
        ];
        assert_eq!(
            doctor(&checks, Language::English, 80, false),
            "GPU and driver\n  ok       driver 580\n  missing  driver 580\n           impact: no GPU\n           fix: modprobe nvidia\n\nThis machine\n  note     driver 580\n"
        );
        let chinese = doctor(&checks, Language::Chinese, 80, false);
        assert!(
            chinese.contains("  缺少  driver 580\n        影响：no GPU\n"),
            "{chinese}"
        );
    }

    #[test]
    fn programs_get_the_same() {
        let text = doctor_json(
            &[check(Area::Gpu, Health::Problem, Some("no GPU"))],
            Language::English,
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["checks"][0]["health"], "problem");
        assert_eq!(value["checks"][0]["cost"], "no GPU");
    }
}
