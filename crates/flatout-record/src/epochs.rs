//! How long epochs took: the one definition that every command prints.

use super::{EventKind, RunData};

/// One epoch that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochTime {
    pub number: u64,
    pub seconds: f64,
    /// Measured by the program; otherwise the time since the end of the epoch before.
    pub measured: bool,
}

impl RunData {
    /// The epochs whose length is known, in order.
    pub fn epoch_times(&self) -> Vec<EpochTime> {
        let mut previous_end: Option<f64> = None;
        let mut all = Vec::new();
        for event in &self.events {
            let EventKind::Epoch { number, duration_ms } = event.kind else {
                continue;
            };
            let since = previous_end.map(|end| event.t - end);
            if let Some(seconds) = duration_ms
                .map(|ms| ms / 1e3)
                .or(since)
                .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
            {
                all.push(EpochTime {
                    number,
                    seconds,
                    measured: duration_ms.is_some(),
                });
            }
            previous_end = Some(event.t);
        }
        all
    }
}

/// The epochs that the time per epoch is the mean of: all after the first, which includes the warm-up, or the first where it is the only one.
pub fn steady_epochs(seconds: &[f64]) -> &[f64] {
    match seconds {
        [_, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    #[test]
    fn epochs_are_measured_or_from_end_to_end() {
        let epoch = |t: f64, number: u64, duration_ms: Option<f64>| Event {
            t,
            kind: EventKind::Epoch { number, duration_ms },
        };
        let data = RunData {
            events: vec![
                epoch(9.0, 1, None),
                epoch(12.0, 2, None),
                epoch(15.5, 3, Some(2500.0)),
                epoch(15.5, 4, Some(f64::NAN)),
            ],
            ..RunData::default()
        };
        let all = data.epoch_times();
        let seen: Vec<(u64, f64, bool)> = all.iter().map(|e| (e.number, e.seconds, e.measured)).collect();
        assert_eq!(seen, [(2, 3.0, false), (3, 2.5, true)]);
    }

    #[test]
    fn the_first_epoch_only_counts_alone() {
        assert_eq!(steady_epochs(&[9.0, 4.0, 5.0]), [4.0, 5.0]);
        assert_eq!(steady_epochs(&[9.0]), [9.0]);
        assert!(steady_epochs(&[]).is_empty());
    }
}
