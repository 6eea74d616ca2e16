//! Epochs, evaluations and checkpoints, to be marked on the charts.

use flatout_record::{Event, EventKind};

/// A stretch of time that ended at `end_s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub start_s: f64,
    pub end_s: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// When each epoch ended, with its number.
    pub epochs: Vec<(f64, u64)>,
    pub evals: Vec<Span>,
    pub checkpoints: Vec<Span>,
    /// How many there were in all: epochs, evaluations, checkpoints.
    pub counts: (usize, usize, usize),
}

/// More marks than this would be a grey wall: every n-th is drawn, and the count says how many there were.
const MOST: usize = 250;

impl Marks {
    pub fn of(events: &[Event]) -> Self {
        let mut marks = Self::default();
        for event in events {
            match event.kind {
                EventKind::Epoch { number, .. } => marks.epochs.push((event.t, number)),
                EventKind::Eval { duration_ms, .. } => marks.evals.push(span(event.t, duration_ms)),
                EventKind::Checkpoint { duration_ms, .. } => {
                    marks.checkpoints.push(span(event.t, duration_ms))
                }
                _ => {}
            }
        }
        marks.counts = (marks.epochs.len(), marks.evals.len(), marks.checkpoints.len());
        thin(&mut marks.epochs);
        thin(&mut marks.evals);
        thin(&mut marks.checkpoints);
        marks
    }

    pub fn is_empty(&self) -> bool {
        self.counts == (0, 0, 0)
    }
}

fn span(end_s: f64, duration_ms: f64) -> Span {
    let seconds = if duration_ms.is_finite() {
        duration_ms.max(0.0) / 1e3
    } else {
        0.0
    };
    Span {
        start_s: (end_s - seconds).max(0.0),
        end_s,
    }
}

fn thin<T: Copy>(all: &mut Vec<T>) {
    let step = all.len().div_ceil(MOST).max(1);
    *all = all.iter().copied().step_by(step).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_thinned_but_counted() {
        let events: Vec<Event> = (0..10_000)
            .map(|number| Event {
                t: number as f64,
                kind: EventKind::Eval {
                    duration_ms: 400.0,
                    batches: None,
                    place: None,
                },
            })
            .collect();
        let marks = Marks::of(&events);
        assert!(marks.evals.len() <= MOST && marks.counts.1 == 10_000);
        assert!((marks.evals[1].end_s - marks.evals[1].start_s - 0.4).abs() < 1e-9);
    }
}
