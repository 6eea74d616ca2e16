//! What interrupts the steps: evaluations, checkpoints, garbage collections.

use flatout_core::Place;
use flatout_record::{EventKind, RunData};

/// Every event of one kind within the window.
#[derive(Clone, Debug, Default)]
pub struct Span {
    pub count: u64,
    pub seconds: f64,
    pub place: Option<Place>,
    pub bytes: u64,
    pub times_s: Vec<f64>,
}

impl Span {
    fn add(&mut self, t: f64, duration_ms: f64, place: Option<&Place>) {
        self.count += 1;
        self.seconds += duration_ms / 1e3;
        self.times_s.push(t);
        if let Some(place) = place {
            self.place = Some(place.clone());
        }
    }

    pub fn mean_s(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.seconds / self.count as f64
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Spans {
    pub eval: Span,
    pub checkpoint: Span,
    pub collection: Span,
    pub epochs: Vec<f64>,
}

impl Spans {
    pub fn new(data: &RunData, (start_s, end_s): (f64, f64)) -> Self {
        let mut spans = Self::default();
        for event in data
            .events
            .iter()
            .filter(|event| event.t > start_s && event.t <= end_s)
        {
            match &event.kind {
                EventKind::Eval {
                    duration_ms, place, ..
                } => spans.eval.add(event.t, *duration_ms, place.as_ref()),
                EventKind::Checkpoint {
                    duration_ms,
                    bytes,
                    place,
                } => {
                    spans.checkpoint.add(event.t, *duration_ms, place.as_ref());
                    spans.checkpoint.bytes += bytes.unwrap_or(0);
                }
                EventKind::GarbageCollection { count, duration_ms } => {
                    spans.collection.add(event.t, *duration_ms, None);
                    spans.collection.count += count.saturating_sub(1);
                }
                EventKind::Epoch { .. } => spans.epochs.push(event.t),
                _ => {}
            }
        }
        spans
    }
}
