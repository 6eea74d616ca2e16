//! The `generate:` heading of a configuration: data that a training makes once by itself.
//!
//! ```yaml
//! data: data/stocks
//! generate:
//!   kind: stocks
//!   stocks: 60
//! ```

use crate::TrainError;
use flatout_core::message;
use flatout_core::spelling::distance;
use flatout_data::generate::{Recipe, captcha, images, interactions, stocks};
use serde_json::Value;

/// One line under the heading.
pub struct Line {
    pub key: String,
    pub text: String,
    /// `file:line`
    pub place: String,
}

/// The recipe of these lines; what they leave out has the generator's default.
pub fn read(lines: &[Line]) -> Result<Option<Recipe>, TrainError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let find = |key: &str| lines.iter().find(|line| line.key == key);
    let kind = find("kind").map_or("", |line| line.text.as_str());
    let mut recipe = match kind {
        "stocks" => Recipe::Stocks(stocks::Stocks::default()),
        "images" => Recipe::Images(images::ImageClasses::default()),
        "captcha" => Recipe::Captcha(captcha::Captcha::default()),
        // Users and videos follow the number of interactions unless they are given.
        "interactions" => {
            let size = find("interactions").and_then(|line| line.text.replace('_', "").parse().ok());
            let default = interactions::Interactions::default();
            let size = size.unwrap_or(default.interactions);
            Recipe::Interactions(interactions::Interactions::of_size(size, default.seed))
        }
        _ => {
            return Err(TrainError::Value {
                setting: "generate.kind".to_owned(),
                value: kind.to_owned(),
                expected: message!(en: "stocks, interactions, images or captcha", zh: "stocks、interactions、images 或 captcha"),
            });
        }
    };
    for line in lines.iter().filter(|line| line.key != "kind") {
        recipe = with(recipe, line)?;
    }
    Ok(Some(recipe))
}

/// The recipe with one value replaced: its fields are those that it is stored with.
fn with(recipe: Recipe, line: &Line) -> Result<Recipe, TrainError> {
    let mut fields = serde_json::to_value(&recipe).unwrap_or_default();
    let known: Vec<String> = fields
        .as_object()
        .map(|map| map.keys().cloned().collect())
        .unwrap_or_default();
    let Some(field) = fields.get_mut(&line.key) else {
        let nearest = known.into_iter().min_by_key(|name| distance(&line.key, name));
        return Err(TrainError::UnknownKey {
            key: format!("generate.{}", line.key),
            place: line.place.clone(),
            nearest,
        });
    };
    let text = line.text.replace('_', "");
    let number: Option<Value> = match field.is_f64() {
        true => text.parse::<f64>().ok().map(Value::from),
        false => text.parse::<u64>().ok().map(Value::from),
    };
    let wrong = || TrainError::Value {
        setting: format!("generate.{}", line.key),
        value: line.text.clone(),
        expected: message!(en: "a number, 0 or more", zh: "一个非负数"),
    };
    *field = number.ok_or_else(wrong)?;
    serde_json::from_value(fields).map_err(|_| wrong())
}

/// The lines of a recipe, for the configuration as resolved.
pub fn lines(recipe: &Recipe) -> Vec<(String, String)> {
    let fields = serde_json::to_value(recipe).unwrap_or_default();
    let map = fields.as_object().cloned().unwrap_or_default();
    map.into_iter()
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (key, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(lines: &[(&str, &str)]) -> Result<Option<Recipe>, TrainError> {
        let line = |(key, text): &(&str, &str)| Line {
            key: (*key).to_owned(),
            text: (*text).to_owned(),
            place: "a.yaml:3".to_owned(),
        };
        read(&lines.iter().map(line).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        assert!(recipe(&[]).unwrap().is_none());
        let found = recipe(&[("kind", "stocks"), ("days", "99"), ("signal", "1")]).unwrap();
        let wanted = stocks::Stocks {
            days: 99,
            signal: 1.0,
            ..Default::default()
        };
        assert_eq!(found, Some(Recipe::Stocks(wanted)));
        let found = recipe(&[("kind", "interactions"), ("interactions", "20_000")]).unwrap();
        let wanted = interactions::Interactions::of_size(20_000, 0);
        assert_eq!(found, Some(Recipe::Interactions(wanted)));
    }

    #[test]
    fn wrong_lines_are_named() {
        let message = |lines: &[(&str, &str)]| recipe(lines).unwrap_err().to_string();
        assert!(message(&[("days", "3")]).contains("generate.kind"));
        assert!(message(&[("kind", "stocks"), ("dayz", "3")]).contains("a.yaml:3"));
        assert!(message(&[("kind", "stocks"), ("days", "-3")]).contains("generate.days"));
        assert!(message(&[("kind", "captcha"), ("images", "many")]).contains("many"));
    }
}
