//! Utilisation over time in a fixed number of buckets, whatever the length: when it runs over, neighbours are joined.

use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::Sample;
use serde::Serialize;
use serde::ser::Serializer;
use std::collections::BTreeMap;

const BUCKETS: usize = 256;
/// As short as the shortest interval of a sampler.
const FIRST_WIDTH_S: f64 = 0.05;

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    width_s: f64,
    gpus: BTreeMap<u32, Vec<(f64, u32)>>,
    last_s: f64,
}

impl Timeline {
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }

    pub fn add(&mut self, sample: &Sample) {
        if self.width_s == 0.0 {
            self.width_s = FIRST_WIDTH_S;
        }
        if !sample.t.is_finite() || sample.t < 0.0 {
            return;
        }
        while sample.t >= self.width_s * BUCKETS as f64 {
            self.widen();
        }
        let index = (sample.t / self.width_s) as usize;
        self.last_s = self.last_s.max(sample.t);
        for (gpu, values) in &sample.gpus {
            let Some(value) = utilisation_of_tick(values) else {
                continue;
            };
            let buckets = self.gpus.entry(*gpu).or_insert_with(|| vec![(0.0, 0); BUCKETS]);
            if let Some((sum, count)) = buckets.get_mut(index) {
                *sum += value;
                *count += 1;
            }
        }
    }

    fn widen(&mut self) {
        self.width_s *= 2.0;
        for buckets in self.gpus.values_mut() {
            for index in 0..BUCKETS {
                let pair = buckets
                    .get(2 * index..2 * index + 2)
                    .map(|pair| (pair[0].0 + pair[1].0, pair[0].1 + pair[1].1));
                buckets[index] = pair.unwrap_or((0.0, 0));
            }
        }
    }

    pub fn length_s(&self) -> f64 {
        self.last_s
    }

    /// The means of a GPU in so many columns at most; `None` where nothing was seen.
    pub fn columns(&self, gpu: u32, most: usize) -> Vec<Option<f64>> {
        let Some(buckets) = self.gpus.get(&gpu) else {
            return Vec::new();
        };
        let used = ((self.last_s / self.width_s) as usize + 1).min(BUCKETS);
        let columns = used.min(most.max(1));
        let mut all: Vec<Option<f64>> = (0..columns)
            .map(|column| {
                let (from, to) = (column * used / columns, ((column + 1) * used / columns).max(1));
                let part = &buckets[from..to];
                let (sum, count) = part.iter().fold((0.0, 0), |(sum, count), bucket| {
                    (sum + bucket.0, count + bucket.1)
                });
                (count > 0).then(|| sum / f64::from(count))
            })
            .collect();
        fill_between(&mut all);
        all
    }

    pub fn gpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.gpus.keys().copied()
    }
}

/// A sampler slower than a bucket leaves every other one empty: that is no gap. Three in a row are one.
fn fill_between(columns: &mut [Option<f64>]) {
    const GAP: usize = 3;
    let mut at = 0;
    while at < columns.len() {
        let empty = columns[at..].iter().take_while(|value| value.is_none()).count();
        if empty > 0 && empty < GAP && at > 0 && at + empty < columns.len() {
            let before = columns[at - 1];
            columns[at..at + empty].fill(before);
        }
        at += empty.max(1);
    }
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Plain {
            length_s: f64,
            gpus: BTreeMap<u32, Vec<Option<f64>>>,
        }
        let gpus = self.gpus().map(|gpu| (gpu, self.columns(gpu, BUCKETS))).collect();
        Plain {
            length_s: self.last_s,
            gpus,
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::GpuSample;

    #[test]
    fn any_length_fits_and_the_mean_is_kept() {
        let mut timeline = Timeline::default();
        for second in 0..100_000 {
            let gpu = GpuSample {
                util: Some(if second < 50_000 { 0.2 } else { 0.8 }),
                ..GpuSample::default()
            };
            timeline.add(&Sample {
                t: f64::from(second),
                gpus: [(0, gpu)].into(),
                ..Sample::default()
            });
        }
        let columns = timeline.columns(0, 60);
        assert_eq!(columns.len(), 60);
        assert!((columns[5].unwrap() - 0.2).abs() < 1e-9 && (columns[55].unwrap() - 0.8).abs() < 1e-9);
        let mean = columns.iter().flatten().sum::<f64>() / 60.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_eq!(timeline.columns(7, 60), []);
    }
}
