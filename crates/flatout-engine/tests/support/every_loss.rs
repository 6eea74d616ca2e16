//! The terms that the tests of the losses share.

use flatout_engine::{Term, TermLoss};

/// Each loss of a term once, over 13 outputs and 8 labels.
pub fn every_loss() -> Vec<Term> {
    let one = |loss, first, column, share| Term {
        loss,
        first,
        count: 1,
        classes: 1,
        column,
        share,
    };
    let three = |loss, first, column, share| Term {
        classes: 3,
        ..one(loss, first, column, share)
    };
    let (smoothing, gamma) = (0.1, 1.5);
    vec![
        Term {
            count: 2,
            ..one(TermLoss::Squared, 0, 0, 0.5)
        },
        one(TermLoss::Absolute, 2, 2, 0.7),
        one(TermLoss::Huber { delta: 0.7 }, 3, 3, 0.6),
        one(TermLoss::Quantile { quantile: 0.1 }, 4, 4, 0.3),
        one(TermLoss::Quantile { quantile: 0.9 }, 5, 4, 0.3),
        one(TermLoss::Binary { gamma: 2.0 }, 6, 5, 0.9),
        three(
            TermLoss::Classes {
                smoothing,
                gamma: 0.0,
            },
            7,
            6,
            0.8,
        ),
        three(
            TermLoss::Classes {
                smoothing: 0.0,
                gamma,
            },
            10,
            7,
            1.1,
        ),
    ]
}
