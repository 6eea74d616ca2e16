//! A bounded part of a long record for the rules: one sample of every few, and steps summed up. A day would not fit into
//! memory, and means over every n-th sample are the same means.

use flatout_record::{Sample, StepTick};

/// So many ticks are kept at least, twice as many at most: an hour at one a second is kept whole.
const KEPT: usize = 2500;

/// Samples, one of every `every`.
#[derive(Debug)]
pub struct Samples {
    pub kept: Vec<Sample>,
    pub every: usize,
    seen: usize,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            every: 1,
            seen: 0,
        }
    }
}

impl Samples {
    pub fn push(&mut self, sample: Sample) {
        if self.seen.is_multiple_of(self.every) {
            self.kept.push(sample);
        }
        self.seen += 1;
        if self.kept.len() >= 2 * KEPT {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }
}

/// Step lines, `every` of them added up into one: sums and histograms lose nothing by it.
#[derive(Debug)]
pub struct Steps {
    kept: Vec<StepTick>,
    open: Option<(StepTick, usize)>,
    every: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            open: None,
            every: 1,
        }
    }
}

impl Steps {
    pub fn push(&mut self, tick: StepTick) {
        let (sum, count) = match self.open.take() {
            None => (tick, 1),
            Some((mut sum, count)) => {
                add(&mut sum, &tick);
                (sum, count + 1)
            }
        };
        if count < self.every {
            self.open = Some((sum, count));
            return;
        }
        self.kept.push(sum);
        if self.kept.len() >= 2 * KEPT {
            let pairs = self.kept.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|tick| add(&mut sum, tick));
                sum
            });
            self.kept = pairs.collect();
            self.every *= 2;
        }
    }

    pub fn done(mut self) -> Vec<StepTick> {
        self.kept.extend(self.open.map(|(sum, _)| sum));
        self.kept
    }
}

fn add(sum: &mut StepTick, tick: &StepTick) {
    sum.t = tick.t;
    sum.dt += tick.dt;
    sum.steps += tick.steps;
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b).or(a).or(b);
    sum.samples = match (sum.samples, tick.samples) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    sum.busy_ms = both(sum.busy_ms, tick.busy_ms);
    for (phase, time) in &tick.phases {
        let known = sum.phases.entry(*phase).or_default();
        known.ms += time.ms;
        known.hist.merge(&time.hist);
    }
    sum.step_hist.merge(&tick.step_hist);
    sum.loss = tick.loss.or(sum.loss);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn steps_lose_nothing() {
        let data = testing::training(20_000, 0.25);
        let mut steps = Steps::default();
        data.steps.iter().cloned().for_each(|tick| steps.push(tick));
        let kept = steps.done();
        assert!((KEPT..2 * KEPT).contains(&kept.len()), "{}", kept.len());
        let count: u64 = kept.iter().map(|tick| tick.steps).sum();
        let seconds: f64 = kept.iter().map(|tick| tick.dt).sum();
        assert_eq!(count, 200_000);
        assert!((seconds - 20_000.0).abs() < 1e-6);
    }

    #[test]
    fn an_hour_is_kept_whole() {
        let mut samples = Samples::default();
        for second in 0..3600 {
            samples.push(Sample {
                t: f64::from(second),
                ..Sample::default()
            });
        }
        assert_eq!((samples.kept.len(), samples.every), (3600, 1));
        for second in 3600..86_400 {
            samples.push(Sample {
                t: f64::from(second),
                ..Sample::default()
            });
        }
        assert!(samples.kept.len() < 2 * KEPT && samples.every == 32);
        let apart = samples
            .kept
            .windows(2)
            .all(|pair| (pair[1].t - pair[0].t - 32.0).abs() < 1e-9);
        assert!(apart);
    }
}
