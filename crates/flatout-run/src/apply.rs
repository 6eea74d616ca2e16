//! `--apply` before the program starts: the names that the probe knows, under any of their usual spellings, and values they can have. An
//! hour of training is too late to learn of a misspelt one.

use crate::RunError;
use flatout_tune::settings;

/// Whole numbers, with the least that makes sense.
const COUNTS: [(&str, u64); 5] = [
    ("loader.num_workers", 0),
    ("loader.batch_size", 1),
    ("loader.prefetch_factor", 1),
    ("step.accumulation", 1),
    ("threads.torch", 1),
];
const SWITCHES: [&str; 10] = [
    "loader.pin_memory",
    "loader.persistent_workers",
    "tf32",
    "cudnn.benchmark",
    "gc.freeze",
    "malloc.keep",
    "optimizer.fused",
    "optimizer.foreach",
    "zero_grad.set_to_none",
    "channels_last",
];
/// Their values are judged where they are applied.
const OTHERS: [&str; 4] = ["amp", "compile", "matmul.precision", "optimizer.lr_scale"];

/// The settings under the probe's own names.
pub fn checked(asked: &[String]) -> Result<Vec<String>, RunError> {
    asked
        .iter()
        .filter(|one| !one.trim().is_empty())
        .map(|one| check(one))
        .collect()
}

fn check(asked: &str) -> Result<String, RunError> {
    let (name, value) = asked.split_once('=').unwrap_or((asked, ""));
    let (name, value) = (name.trim(), value.trim());
    let key = known()
        .find(|key| *key == name)
        .or_else(|| settings::find(name).and_then(|setting| known().find(|key| *key == setting.key)))
        .ok_or_else(|| RunError::Setting {
            name: name.to_owned(),
        })?;
    let wrong = |expected: String| RunError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    };
    if let Some((_, least)) = COUNTS.iter().find(|(known, _)| *known == key) {
        let fits = value.parse::<u64>().is_ok_and(|count| count >= *least);
        return if fits {
            Ok(format!("{key}={value}"))
        } else {
            Err(wrong(format!("{least}, {}, …", least + 1)))
        };
    }
    let is_switch = SWITCHES.contains(&key);
    if value.is_empty() || (is_switch && !matches!(settings::normal(value).as_str(), "on" | "off")) {
        return Err(wrong(if is_switch {
            "on / off".to_owned()
        } else {
            format!("{key}=VALUE")
        }));
    }
    Ok(format!("{key}={value}"))
}

/// Every name there is.
pub fn known() -> impl Iterator<Item = &'static str> {
    COUNTS.iter().map(|(key, _)| *key).chain(SWITCHES).chain(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &[&str]) -> Result<Vec<String>, RunError> {
        checked(&asked.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn usual_names_become_the_probes_own() {
        let asked = [
            "num_workers=8",
            " loader.pin_memory = true",
            "amp=bf16",
            "optimizer.lr_scale=2.5",
        ];
        let expected = [
            "loader.num_workers=8",
            "loader.pin_memory=true",
            "amp=bf16",
            "optimizer.lr_scale=2.5",
        ];
        assert_eq!(check(&asked).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_is_said_before_the_start() {
        for asked in [
            "foo=1",
            "hidden_size=4",
            "loader.num_workers=abc",
            "loader.batch_size=0",
            "tf32=maybe",
            "amp",
            "loader.num_workers=-1",
        ] {
            assert!(check(&[asked]).is_err(), "{asked}");
        }
    }

    #[test]
    fn the_probe_knows_all_of_them() {
        let probe = include_str!("../../../python/_flatout_probe/settings.py");
        for key in known() {
            let name = key.strip_prefix("loader.").unwrap_or(key);
            assert!(probe.contains(&format!("\"{name}\"")), "{key}");
        }
    }
}
