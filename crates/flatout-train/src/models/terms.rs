//! The loss of a target as terms of the engine: one for each label, with its share of the whole.

use crate::target::{Objective, Target, Task};
use flatout_engine::{Term, TermLoss};

/// The mean over all label columns, each times its weight.
pub fn of(target: &Target) -> Vec<Term> {
    let (mut terms, mut first, mut column) = (Vec::new(), 0, 0);
    for head in target.heads() {
        add(
            head,
            (first, column),
            head.weight / target.columns() as f64,
            &mut terms,
        );
        (first, column) = (first + head.outputs(), column + head.columns());
    }
    terms
}

fn add(head: &Target, (first, column): (usize, usize), share: f64, terms: &mut Vec<Term>) {
    let gamma = match head.objective {
        Objective::Focal { gamma } => gamma,
        _ => 0.0,
    };
    let loss = match (head.task, head.objective) {
        (Task::Classes, objective) => TermLoss::Classes {
            smoothing: match objective {
                Objective::Smoothed { smoothing } => smoothing,
                _ => 0.0,
            },
            gamma,
        },
        (Task::Binary | Task::Labels, _) => TermLoss::Binary { gamma },
        (_, Objective::Absolute) => TermLoss::Absolute,
        (_, Objective::Huber { delta }) => TermLoss::Huber { delta },
        _ => TermLoss::Squared,
    };
    let term = Term {
        loss,
        first,
        count: head.columns(),
        classes: if head.task == Task::Classes {
            head.outputs()
        } else {
            1
        },
        column,
        share,
    };
    if head.objective != Objective::Quantile {
        terms.push(term);
        return;
    }
    let count = head.quantiles.len();
    for place in 0..head.columns() {
        for (number, &quantile) in head.quantiles.iter().enumerate() {
            terms.push(Term {
                loss: TermLoss::Quantile { quantile },
                first: first + place * count + number,
                count: 1,
                column: column + place,
                share: share / count as f64,
                ..term
            });
        }
    }
}
