//! A score beside the best so far, by the one definition of faster.

use crate::trial::Rate;
use flatout_compare::Ratio;
use flatout_core::{Message, message, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Better,
    Worse,
    Unclear,
}

/// `least`: the factor below which faster is not fast enough.
pub fn compare(score: Rate, best: Rate, least: f64) -> Compared {
    let Some(ratio) = Ratio::between(best, score) else {
        return Compared::Unclear;
    };
    if ratio.is_faster_by(least) {
        Compared::Better
    } else if ratio.is_slower() || ratio.is_faster() {
        Compared::Worse
    } else {
        Compared::Unclear
    }
}

pub fn slower(score: Rate, best: Rate) -> Message {
    let change = units::percent((score.mean / best.mean - 1.0).abs());
    let beyond_noise = compare(score, best, 1.0) != Compared::Unclear;
    match (score.mean < best.mean, beyond_noise) {
        (true, true) => message!(en: "{change} slower than the best so far", zh: "比目前最好的慢 {change}"),
        (true, false) => message!(en: "{change} slower, within the noise", zh: "慢 {change}，在波动范围内"),
        (false, true) => message!(en: "only {change} faster", zh: "只快 {change}"),
        (false, false) => message!(en: "{change} faster, within the noise", zh: "快 {change}，在波动范围内"),
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
    fn noise_is_neither_better_nor_worse() {
        assert_eq!(compare(rate(120.0, 5.0), rate(100.0, 5.0), 1.0), Compared::Better);
        assert_eq!(compare(rate(80.0, 5.0), rate(100.0, 5.0), 1.0), Compared::Worse);
        assert_eq!(
            compare(rate(104.0, 5.0), rate(100.0, 5.0), 1.0),
            Compared::Unclear
        );
    }

    #[test]
    fn a_gain_below_the_least_is_not_kept() {
        let (score, best) = (rate(101.0, 0.1), rate(100.0, 0.1));
        assert_eq!(compare(score, best, 1.02), Compared::Worse);
        assert_eq!(slower(score, best).en, "only 1% faster");
    }

    #[test]
    fn noisy_repeats_hide_a_small_gain() {
        let best = Rate::pooled(&[rate(100.0, 1.0), rate(110.0, 1.0)]).unwrap_or_default();
        assert_eq!(compare(rate(109.0, 2.0), best, 1.0), Compared::Unclear);
        assert_eq!(compare(rate(130.0, 2.0), best, 1.0), Compared::Better);
    }
}
