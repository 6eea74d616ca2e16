//! Makes an answer fit the reader's context: lists lose their last entries first, then long texts are cut, and the answer names what was
//! left out.

use flatout_core::text::{shortened, visible};
use serde_json::{Map, Value, json};

/// Answers are at most this long unless the call asks for more.
pub const DEFAULT_BYTES: usize = 4000;
pub const FEWEST_BYTES: usize = 1000;
pub const MOST_BYTES: usize = 64_000;

/// Shorter texts stay whole.
const SHORTEST_CUT: usize = 60;
/// Keys that name things to ask about next: an id that was cut names nothing.
const WHOLE: [&str; 6] = ["id", "run", "job", "rule", "where", "settings"];

/// Shortens `answer` to `most` bytes of JSON. `lists` are JSON pointers to arrays, the least important first.
pub fn fit(mut answer: Value, most: usize, lists: &[&str]) -> Value {
    printable(&mut answer);
    let mut left_out: Map<String, Value> = Map::new();
    while size(&answer) > most {
        let Some(list) = lists.iter().find(|list| length(&answer, list) > 1) else {
            break;
        };
        let had = length(&answer, list);
        // Long lists are halved, so that a large project is not serialized a thousand times.
        let keep = if had > 64 { had / 2 } else { had - 1 };
        if let Some(Value::Array(entries)) = answer.pointer_mut(list) {
            entries.truncate(keep);
        }
        let name = list.trim_start_matches('/').replace('/', ".");
        let before = left_out.get(&name).and_then(Value::as_u64).unwrap_or(0);
        left_out.insert(name, json!(before + (had - keep) as u64));
        if let Value::Object(fields) = &mut answer {
            fields.insert("left_out".into(), Value::Object(left_out.clone()));
        }
    }
    let mut longest = 4000;
    while size(&answer) > most && longest >= SHORTEST_CUT {
        if cut(&mut answer, longest)
            && let Value::Object(fields) = &mut answer
        {
            fields.insert("texts_cut".into(), json!(true));
        }
        longest = longest * 3 / 4;
    }
    while size(&answer) > most
        && let Some(name) = largest_object(&answer)
        && let Value::Object(fields) = &mut answer
    {
        fields.remove(&name);
        left_out.insert(name, json!(1));
        fields.insert("left_out".into(), Value::Object(left_out.clone()));
    }
    answer
}

/// A part that is neither a list nor a text cannot be shortened, only left out.
fn largest_object(answer: &Value) -> Option<String> {
    let parts = answer.as_object()?.iter();
    let objects = parts.filter(|(name, value)| value.is_object() && *name != "left_out");
    let (name, _) = objects.max_by_key(|(_, value)| size(value))?;
    Some(name.clone())
}

pub fn size(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

fn length(answer: &Value, list: &str) -> usize {
    answer.pointer(list).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Records and source come from anywhere: control characters are shown, not sent.
fn printable(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(printable),
        Value::Object(fields) => fields.values_mut().for_each(printable),
        _ => {}
    }
}

/// Whether a text was cut.
fn cut(value: &mut Value, longest: usize) -> bool {
    match value {
        Value::String(text) if text.len() > longest => {
            *text = shortened(text, longest);
            true
        }
        Value::Array(entries) => entries
            .iter_mut()
            .fold(false, |any, entry| cut(entry, longest) | any),
        Value::Object(fields) => {
            let parts = fields
                .iter_mut()
                .filter(|(key, _)| !WHOLE.contains(&key.as_str()));
            parts.fold(false, |any, (_, value)| cut(value, longest) | any)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_shortened_from_the_end_and_counted() {
        let entries: Vec<String> = (0..500).map(|index| format!("entry {index}")).collect();
        let answer = fit(json!({"rows": entries, "keep": "this"}), 1000, &["/rows"]);
        assert!(size(&answer) <= 1000);
        let kept = answer["rows"].as_array().unwrap().len();
        assert_eq!(answer["left_out"]["rows"], 500 - kept);
        assert_eq!(answer["rows"][0], "entry 0");
    }

    #[test]
    fn texts_are_cut_where_lists_do_not_suffice() {
        let answer = json!({"page": "words ".repeat(3000), "id": "f1", "list": [{"say": "x".repeat(9000)}]});
        let answer = fit(answer, 1000, &["/list"]);
        assert!(size(&answer) <= 1000, "{}", size(&answer));
        assert_eq!(
            (&answer["id"], &answer["texts_cut"]),
            (&json!("f1"), &json!(true))
        );
    }

    #[test]
    fn what_cannot_be_shortened_is_left_out() {
        let many: Map<String, Value> = (0..900)
            .map(|index| (format!("key{index}"), json!(index)))
            .collect();
        let answer = fit(json!({"run": "a", "many": many, "few": {"x": 1}}), 1000, &[]);
        assert_eq!(
            answer,
            json!({"run": "a", "few": {"x": 1}, "left_out": {"many": 1}})
        );
    }

    #[test]
    fn small_answers_stay_as_they_are() {
        let answer = json!({"rows": [1, 2, 3]});
        assert_eq!(fit(answer.clone(), 4000, &["/rows"]), answer);
    }

    #[test]
    fn escape_sequences_are_shown() {
        let answer = fit(json!({"name": "a\u{1b}[31mb\u{202e}c\u{7}"}), 4000, &[]);
        assert_eq!(answer["name"], "a\\x1b[31mb\\u202ec\\x07");
    }
}
