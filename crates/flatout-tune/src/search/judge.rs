//! Better, worse, or not to be told apart.

use crate::trial::Rate;
use flatout_core::{Message, message, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Better,
    Worse,
    Unclear,
}

/// Compares intervals. `least`: the factor below which better is not better enough.
pub fn compare(score: Rate, best: Rate, least: f64) -> Compared {
    if score.low > best.high && score.mean >= best.mean * least {
        Compared::Better
    } else if score.high < best.low || (score.low > best.high && score.mean < best.mean * least) {
        Compared::Worse
    } else {
        Compared::Unclear
    }
}

/// After the best was measured again: its interval now holds what lies between two runs of the same. A score above all of it is
/// better; so is one whose own interval begins above its middle.
pub fn after_repeat(score: Rate, best: Rate) -> bool {
    score.mean > best.high || score.low > best.mean
}

pub fn slower(score: Rate, best: Rate) -> Message {
    let change = units::percent((score.mean / best.mean - 1.0).abs());
    if score.high < best.low {
        message!(en: "{change} slower than the best so far", zh: "比目前最好的慢 {change}")
    } else if score.mean < best.mean {
        message!(en: "{change} slower, within the noise", zh: "慢 {change}，在波动范围内")
    } else {
        message!(en: "{change} faster, within the noise", zh: "快 {change}，在波动范围内")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mean: f64, half: f64) -> Rate {
        Rate {
            mean,
            low: mean - half,
            high: mean + half,
        }
    }

    #[test]
    fn only_what_lies_apart_is_told_apart() {
        assert_eq!(compare(rate(120.0, 5.0), rate(100.0, 5.0), 1.0), Compared::Better);
        assert_eq!(compare(rate(80.0, 5.0), rate(100.0, 5.0), 1.0), Compared::Worse);
        assert_eq!(
            compare(rate(104.0, 5.0), rate(100.0, 5.0), 1.0),
            Compared::Unclear
        );
        assert_eq!(compare(rate(101.0, 0.1), rate(100.0, 0.1), 1.02), Compared::Worse);
    }

    #[test]
    fn a_repeat_settles_it() {
        assert!(after_repeat(rate(110.0, 12.0), rate(100.0, 6.0)));
        assert!(!after_repeat(rate(102.0, 6.0), rate(100.0, 6.0)));
    }
}
