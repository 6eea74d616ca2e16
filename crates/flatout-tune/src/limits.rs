//! Which knobs may be turned, and how far: `--knobs batch_size=32..4096,num_workers,amp`.

use crate::TuneError;
use crate::knobs::KNOBS;
use flatout_vocabulary::settings;
use std::collections::BTreeMap;

/// Values beyond which nothing sensible lies.
const MOST: u64 = 1 << 24;

#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Keys that may change; empty means all.
    allowed: Vec<&'static str>,
    ranges: BTreeMap<&'static str, (u64, u64)>,
}

impl Limits {
    pub fn parse(words: &[String]) -> Result<Self, TuneError> {
        let mut limits = Self::default();
        for word in words.iter().filter(|word| !word.trim().is_empty()) {
            let (name, range) = word
                .split_once('=')
                .map_or((word.as_str(), None), |(name, range)| (name, Some(range)));
            let name = name.trim();
            let setting = settings::find(name)
                .filter(|setting| KNOBS.iter().any(|knob| knob.keys.contains(&setting.key)))
                .ok_or_else(|| TuneError::UnknownKnob {
                    name: name.to_owned(),
                })?;
            limits.allowed.push(setting.key);
            if let Some(range) = range {
                let wrong = || TuneError::Range {
                    knob: name.to_owned(),
                    range: range.to_owned(),
                };
                let (low, high) = range.split_once("..").unwrap_or((range, range));
                let (low, high) = (
                    low.trim().parse().map_err(|_| wrong())?,
                    high.trim().parse().map_err(|_| wrong())?,
                );
                if low > high || high > MOST || (low == 0 && setting.key == "loader.batch_size") {
                    return Err(wrong());
                }
                limits.ranges.insert(setting.key, (low, high));
            }
        }
        Ok(limits)
    }

    pub fn allows(&self, key: &str) -> bool {
        self.allowed.is_empty() || self.allowed.contains(&key)
    }

    /// Asked for by name, not only left over from "all".
    pub fn asked(&self, key: &str) -> bool {
        self.allowed.contains(&key)
    }

    pub fn within(&self, key: &str, value: u64) -> bool {
        self.ranges
            .get(key)
            .is_none_or(|(low, high)| (low..=high).contains(&&value))
    }

    pub fn highest(&self, key: &str) -> Option<u64> {
        self.ranges.get(key).map(|(_, high)| *high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Limits, TuneError> {
        Limits::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_and_ranges() {
        let limits = parse(&["batch_size=32..256", "workers"]).unwrap();
        assert!(limits.allows("loader.num_workers") && !limits.allows("amp"));
        assert!(limits.within("loader.batch_size", 64) && !limits.within("loader.batch_size", 512));
        assert!(parse(&[]).unwrap().allows("amp"));
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            ["batch_size=-5"],
            ["batch_size=0"],
            ["batch_size=9..3"],
            ["batch_size=1..99999999999"],
            ["num_workers=many"],
        ] {
            assert!(matches!(parse(&words), Err(TuneError::Range { .. })), "{words:?}");
        }
        assert!(matches!(parse(&["colour"]), Err(TuneError::UnknownKnob { .. })));
        assert!(matches!(
            parse(&["eval_interval"]),
            Err(TuneError::UnknownKnob { .. })
        ));
    }
}
