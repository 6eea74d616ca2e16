//! A change in words and numbers.

use crate::digest::figures::{Figure, Unit};
use flatout_compare::{Change, Scale};

pub fn between(first: &Figure, second: &Figure) -> Change {
    let scale = if first.unit == Unit::Share {
        Scale::Difference
    } else {
        Scale::Ratio
    };
    Change::between(first.estimate(), second.estimate(), scale, first.higher_is_better)
}

/// `4.9×`, `+3.2%`, `+41 pp`.
pub fn show(change: &Change, unit: Unit) -> String {
    if unit == Unit::Share {
        return format!("{:+.1} pp", change.difference * 100.0);
    }
    change.factor.map_or_else(
        || {
            let sign = if change.difference < 0.0 { "−" } else { "+" };
            format!("{sign}{}", unit.show(change.difference.abs()))
        },
        |factor| shown(factor, is_small(factor)),
    )
}

/// In the form of the change itself, percent or factor.
pub fn show_interval(change: &Change, unit: Unit) -> Option<String> {
    if unit == Unit::Share {
        let (low, high) = change.difference_interval?;
        return Some(format!("{:+.1} – {:+.1}", low * 100.0, high * 100.0));
    }
    let (low, high) = change.factor_interval?;
    let percent = change.factor.is_some_and(is_small);
    Some(format!("{} – {}", shown(low, percent), shown(high, percent)))
}

/// Small changes are told in percent, large ones as a factor.
fn is_small(factor: f64) -> bool {
    (0.5..2.0).contains(&factor)
}

fn shown(factor: f64, percent: bool) -> String {
    if percent {
        format!("{:+.1}%", (factor - 1.0) * 100.0)
    } else if factor >= 100.0 {
        format!("{factor:.0}×")
    } else {
        format!("{factor:.2}×")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Message;

    fn figure(mean: f64, half: Option<f64>) -> Figure {
        Figure {
            key: "samples_per_s",
            name: Message::verbatim("x"),
            unit: Unit::PerSecond,
            mean,
            interval: half.map(|half| (mean - half, mean + half)),
            std: None,
            higher_is_better: Some(true),
        }
    }

    #[test]
    fn factors_and_percents() {
        let change = between(&figure(100.0, Some(1.0)), &figure(490.0, Some(10.0)));
        assert_eq!(show(&change, Unit::PerSecond), "4.90×");
        // Both ends as the change, though one of them alone would be a factor.
        let halved = between(&figure(100.0, Some(2.0)), &figure(52.0, Some(5.0)));
        assert!(halved.factor_interval.unwrap().0 < 0.5);
        let interval = show_interval(&halved, Unit::PerSecond).unwrap();
        assert!(!interval.contains('×'), "{interval}");
        let bare = between(&figure(100.0, None), &figure(97.0, None));
        assert_eq!(show(&bare, Unit::PerSecond), "-3.0%");
        let from_nothing = between(&figure(0.0, None), &figure(0.004, None));
        assert_eq!(show(&from_nothing, Unit::Seconds), "+4 ms");
    }
}
