//! Which values of a setting a grid tries. A comma separates values, unless it belongs to one value: then `|` does, or a list of lists
//! in YAML.

use crate::settings::{self, Kind};
use flatout_data::load::policies;

/// Settings whose one value is made of several, and is no list of words about columns.
const WITH_COMMAS: &[&str] = &["input_size", "betas", "quantiles"];
/// Names of columns and files are taken as they are.
const NEVER: &[&str] = &[
    "data",
    "label",
    "validation_data",
    "test_data",
    "init",
    "output_dir",
    "resume",
];

/// The values to try; a single one for a setting that has one.
pub fn of(name: &str, value: &str) -> Vec<String> {
    if NEVER.contains(&name) {
        return vec![value.to_owned()];
    }
    let is_list = settings::find(name).is_some_and(|setting| matches!(setting.kind, Kind::List(_)));
    if !is_list && !WITH_COMMAS.contains(&name) {
        return value.split(',').map(|one| one.trim().to_owned()).collect();
    }
    let alternatives = policies::split(value, '|');
    // Two words for all columns contradict each other, so they are alternatives; words for single columns belong together.
    if let ([one], true) = (alternatives.as_slice(), is_list) {
        let words = policies::words(one);
        if words.iter().all(|word| !word.contains('=')) {
            return words.into_iter().map(str::to_owned).collect();
        }
    }
    alternatives.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_one_value_make_no_alternatives() {
        for (name, value) in [
            ("quantiles", "0.1,0.5,0.9"),
            ("betas", "0.9,0.99"),
            ("class_weight", "balanced,1=5"),
            ("label_weight", "like=3,share=10"),
            ("task", "click=binary,watch=regression"),
            ("loss", "mse,click=focal"),
            ("missing", "mean,\"a|b\"=zero"),
            ("label", "click,like"),
            ("hidden_size", "64"),
        ] {
            assert_eq!(of(name, value), [value], "{name}");
        }
    }

    #[test]
    fn bars_and_words_for_all_columns_are_alternatives() {
        for (name, value, expected) in [
            ("hidden_size", "64, 128", ["64", "128"]),
            ("quantiles", "0.1,0.9|0.5", ["0.1,0.9", "0.5"]),
            ("loss", "mse,huber", ["mse", "huber"]),
            (
                "loss",
                "click=bce,watch=mse | click=focal,watch=huber",
                ["click=bce,watch=mse", "click=focal,watch=huber"],
            ),
            ("class_weight", "none,balanced", ["none", "balanced"]),
            ("class_weight", "balanced|a=1,b=5", ["balanced", "a=1,b=5"]),
            ("min_count", "2,20", ["2", "20"]),
            ("betas", "0.9,0.99|0.8,0.9", ["0.9,0.99", "0.8,0.9"]),
        ] {
            assert_eq!(of(name, value), expected, "{name}");
        }
    }
}
