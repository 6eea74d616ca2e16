//! Spans of time that do not overlap, in order.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Spans in any order; those that overlap or touch become one.
    pub fn new(spans: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut spans: Vec<(u64, u64)> = spans.filter(|(start, end)| end > start).collect();
        spans.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in spans {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    pub fn contains(&self, at: u64) -> bool {
        let next = self.0.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1)
            .and_then(|index| self.0.get(index))
            .is_some_and(|(_, end)| at < *end)
    }

    /// The length of what lies between two instants.
    pub fn length_within(&self, from: u64, to: u64) -> u64 {
        let inside = self.0.iter().map(|(start, end)| {
            let (start, end) = ((*start).max(from), (*end).min(to));
            end.saturating_sub(start)
        });
        inside.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_count_once() {
        let spans = Intervals::new([(10, 20), (15, 30), (40, 50), (50, 60), (5, 5)].into_iter());
        assert_eq!(spans, Intervals(vec![(10, 30), (40, 60)]));
        assert_eq!(spans.length_within(0, 100), 40);
        assert_eq!(spans.length_within(15, 45), 20);
        assert!(spans.contains(10) && spans.contains(29) && !spans.contains(30) && !spans.contains(9));
    }
}
