//! `--apply` before the program starts: the names that the probe knows, under any of their usual spellings, and values they can have. An
//! hour of training is too late to learn of a misspelt one.

use crate::RunError;
use flatout_vocabulary::settings::{self, applied};

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
    let setting = applied()
        .find(|setting| setting.key == name)
        .or_else(|| settings::find(name).filter(|setting| setting.applies))
        .ok_or_else(|| RunError::Setting {
            name: name.to_owned(),
        })?;
    match setting.check(value) {
        Ok(()) => Ok(format!("{}={value}", setting.key)),
        Err(expected) => Err(RunError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            expected,
        }),
    }
}

/// Every name there is.
pub fn known() -> impl Iterator<Item = &'static str> {
    applied().map(|setting| setting.key)
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
    fn reports_invalid_settings_before_the_start() {
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
}
