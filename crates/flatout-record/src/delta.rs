//! Samples are written as JSON merge patches (RFC 7386): a line holds what changed since the line before, `null` what became
//! unknown. Most of a tick does not change, so a day stays small.

use serde_json::{Map, Value};

/// The patch that turns `old` into `new`. Neither may hold `null`: unknown values are left out.
pub fn diff(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let inner = diff(old, new);
                if !inner.is_empty() {
                    patch.insert(key.clone(), Value::Object(inner));
                }
            }
            (Some(old), new) if old == new => {}
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

/// Applies a patch in place.
pub fn apply(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(inner) => {
                let slot = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(object) = slot {
                    apply(object, inner);
                }
            }
            other => {
                target.insert(key, other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_map("[a-c]{1,2}", value(), 0..5).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn applying_the_difference_gives_the_new_value(old in object(), new in object()) {
            let mut target = old.clone();
            apply(&mut target, diff(&old, &new));
            prop_assert_eq!(target, new);
        }

        #[test]
        fn nothing_changed_is_an_empty_patch(same in object()) {
            prop_assert!(diff(&same, &same).is_empty());
        }
    }
}
