//! Settings in force, by key and scope: the last fact of a key and scope counts.

use flatout_core::Place;
use flatout_record::Fact;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Facts {
    by_key: BTreeMap<(String, Option<String>), Fact>,
}

impl Facts {
    pub fn new(facts: &[Fact]) -> Self {
        let by_key = facts
            .iter()
            .map(|fact| ((fact.key.clone(), fact.scope.clone()), fact.clone()))
            .collect();
        Self { by_key }
    }

    /// The fact of the key without a scope, else that of the first scope.
    pub fn get(&self, key: &str) -> Option<&Fact> {
        self.by_key
            .range((key.to_owned(), None)..)
            .next()
            .filter(|((found, _), _)| found == key)
            .map(|(_, fact)| fact)
    }

    pub fn scoped(&self, key: &str, scope: &str) -> Option<&Fact> {
        self.by_key.get(&(key.to_owned(), Some(scope.to_owned())))
    }

    /// Every fact of one key, over all scopes.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Fact> {
        self.by_key
            .iter()
            .filter(move |((found, _), _)| found == key)
            .map(|(_, fact)| fact)
    }

    /// The scopes that begin with `prefix`: `loader.0`, `loader.1` …, with their facts.
    pub fn scopes(&self, prefix: &str) -> BTreeMap<&str, Vec<&Fact>> {
        let mut scopes: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
        for fact in self.by_key.values() {
            if let Some(scope) = fact.scope.as_deref().filter(|scope| scope.starts_with(prefix)) {
                scopes.entry(scope).or_default().push(fact);
            }
        }
        scopes
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|fact| as_text(&fact.value))
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(|fact| fact.value.as_f64())
    }

    /// `true`, `"on"`, `"true"`, 1 …; `None` when unknown.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(|fact| as_switch(&fact.value))
    }

    /// Whether flatout has put this setting in force.
    pub fn is_applied(&self, setting: &str) -> bool {
        self.switch(&format!("apply.{setting}")) == Some(true)
    }

    pub fn place(&self, key: &str) -> Option<Place> {
        self.get(key).and_then(|fact| fact.place.clone())
    }
}

pub fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

pub fn as_switch(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(on) => Some(*on),
        Value::Number(number) => Some(number.as_f64()? != 0.0),
        Value::String(text) => match text.as_str() {
            "on" | "true" | "True" | "yes" => Some(true),
            "off" | "false" | "False" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fact(key: &str, scope: Option<&str>, value: Value) -> Fact {
        Fact {
            t: 0.0,
            key: key.into(),
            value,
            scope: scope.map(Into::into),
            place: None,
        }
    }

    #[test]
    fn the_last_of_a_key_and_scope_counts() {
        let facts = Facts::new(&[
            fact("amp.dtype", None, json!("off")),
            fact("amp.dtype", None, json!("bf16")),
            fact("loader.num_workers", Some("loader.1"), json!(4)),
        ]);
        assert_eq!(facts.text("amp.dtype").as_deref(), Some("bf16"));
        assert_eq!(facts.number("loader.num_workers"), Some(4.0));
        assert_eq!(facts.text("amp"), None);
        assert_eq!(facts.scopes("loader.").len(), 1);
    }

    #[test]
    fn unknown_is_not_off() {
        assert_eq!(as_switch(&Value::Null), None);
        assert_eq!(as_switch(&json!("off")), Some(false));
    }
}
