//! Asking one GPU for one value after the other: what it cannot do is remembered and not asked again, what is out of range is
//! clamped and counted.

use flatout_record::EventKind;
use std::collections::BTreeMap;

/// An error that may pass (no data yet, a timeout) is taken for lasting after this many in a row.
const PATIENCE: u32 = 20;

/// Why a driver gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The GPU is gone: nothing more is asked.
    Lost(String),
    /// It will not answer this later either.
    Never(String),
    /// Nothing to tell now, which is not a failure.
    Nothing,
    /// It may answer the next time.
    Passing(String),
}

impl Trouble {
    pub fn not_supported() -> Self {
        Self::Never("not supported by this GPU".into())
    }

    pub fn not_in_driver() -> Self {
        Self::Never("not in this driver".into())
    }

    pub fn not_permitted() -> Self {
        Self::Never("not permitted for this user".into())
    }
}

pub struct Fields {
    gpu: u32,
    /// Values that are not asked for any more, with the reason.
    unknown: BTreeMap<&'static str, String>,
    failures: BTreeMap<&'static str, u32>,
    clamped: BTreeMap<&'static str, u64>,
    /// The GPU has fallen off the bus, in the driver's words.
    lost: Option<String>,
    loss_told: bool,
    news: bool,
}

impl Fields {
    pub fn new(gpu: u32) -> Self {
        Self {
            gpu,
            unknown: BTreeMap::new(),
            failures: BTreeMap::new(),
            clamped: BTreeMap::new(),
            lost: None,
            loss_told: false,
            news: false,
        }
    }

    /// Asks, unless it is known to be of no use.
    pub fn ask<T, E: Into<Trouble>>(
        &mut self,
        name: &'static str,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        if self.lost.is_some() || self.is_off(name) {
            return None;
        }
        match call() {
            Ok(value) => {
                if !self.failures.is_empty() {
                    self.failures.remove(name);
                }
                Some(value)
            }
            Err(error) => {
                self.note(name, error.into());
                None
            }
        }
    }

    /// Whether the value is known to be unreadable.
    pub fn is_off(&self, name: &'static str) -> bool {
        !self.unknown.is_empty() && self.unknown.contains_key(name)
    }

    fn note(&mut self, name: &'static str, trouble: Trouble) {
        match trouble {
            Trouble::Lost(message) => self.lost = Some(message),
            Trouble::Never(reason) => self.give_up(name, reason),
            Trouble::Nothing => {}
            Trouble::Passing(reason) => {
                let failures = self.failures.entry(name).or_default();
                *failures += 1;
                if *failures >= PATIENCE {
                    self.give_up(name, reason);
                }
            }
        }
    }

    pub fn give_up(&mut self, name: &'static str, reason: String) {
        self.unknown.insert(name, reason);
        self.news = true;
    }

    /// A share given in per cent, as 0 to 1. Drivers have been seen to say 37100%.
    pub fn share(&mut self, name: &'static str, percent: f64) -> Option<f64> {
        if !percent.is_finite() {
            return None;
        }
        let clamped = percent.clamp(0.0, 100.0);
        if clamped != percent {
            self.count_clamped(name);
        }
        // The driver's own precision is whole per cents, GPM's a little more: four digits keep it all.
        Some((clamped * 100.0).round() / 10_000.0)
    }

    /// A quantity that cannot be negative or above `most`; beyond that it is nonsense, and unknown.
    pub fn within(&mut self, name: &'static str, value: f64, most: f64) -> Option<f64> {
        if (0.0..=most).contains(&value) {
            return Some(value);
        }
        self.count_clamped(name);
        None
    }

    fn count_clamped(&mut self, name: &'static str) {
        let count = self.clamped.entry(name).or_default();
        *count += 1;
        // Told when it begins and then ever more rarely: the record's description is rewritten for it.
        self.news |= count.is_power_of_two();
    }

    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The event of the loss, once.
    pub fn take_loss(&mut self) -> Option<EventKind> {
        let message = self.lost.clone().filter(|_| !self.loss_told)?;
        self.loss_told = true;
        Some(EventKind::GpuLost {
            gpu: self.gpu,
            message,
        })
    }

    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// `gpu 0 gpm: not supported by this GPU`.
    pub fn unknown(&self) -> impl Iterator<Item = String> + '_ {
        let gpu = self.gpu;
        self.unknown
            .iter()
            .map(move |(name, reason)| format!("gpu {gpu} {name}: {reason}"))
    }

    /// `gpu 0 util` and how often it was out of range.
    pub fn clamped(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let gpu = self.gpu;
        self.clamped
            .iter()
            .map(move |(name, count)| (format!("gpu {gpu} {name}"), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_supported_is_asked_once() {
        let mut fields = Fields::new(3);
        let mut asked = 0;
        for _ in 0..5 {
            let value: Option<u32> = fields.ask("power", || {
                asked += 1;
                Err(Trouble::not_supported())
            });
            assert_eq!(value, None);
        }
        assert_eq!(asked, 1);
        assert_eq!(
            fields.unknown().collect::<Vec<_>>(),
            ["gpu 3 power: not supported by this GPU"]
        );
        assert!(fields.take_news() && !fields.take_news());
    }

    #[test]
    fn what_may_pass_is_asked_again() {
        let mut fields = Fields::new(0);
        for _ in 0..PATIENCE - 1 {
            fields.ask("clock", || Err::<u32, _>(Trouble::Passing("a timeout".into())));
        }
        assert_eq!(fields.ask("clock", || Ok::<_, Trouble>(5)), Some(5));
        for _ in 0..PATIENCE {
            fields.ask("clock", || Err::<u32, _>(Trouble::Passing("a timeout".into())));
        }
        assert_eq!(fields.ask("clock", || Ok::<_, Trouble>(5)), None);
    }

    #[test]
    fn absurd_values_are_clamped_and_counted() {
        let mut fields = Fields::new(0);
        assert_eq!(fields.share("util", 37_100.0), Some(1.0));
        assert_eq!(fields.share("util", 45.0), Some(0.45));
        assert_eq!(fields.share("util", f64::NAN), None);
        assert_eq!(fields.within("power", 4e9, 10_000.0), None);
        let clamped: Vec<_> = fields.clamped().collect();
        assert_eq!(clamped, [("gpu 0 power".into(), 1), ("gpu 0 util".into(), 1)]);
    }

    #[test]
    fn a_lost_gpu_is_not_asked_again() {
        let mut fields = Fields::new(0);
        fields.ask("util", || Err::<u32, _>(Trouble::Lost("gone".into())));
        assert!(fields.lost().is_some());
        assert!(fields.take_loss().is_some() && fields.take_loss().is_none());
        assert_eq!(fields.ask("power", || Ok::<_, Trouble>(1)), None);
    }
}
