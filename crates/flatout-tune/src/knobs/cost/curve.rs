//! Seconds over batch sizes, as measured: straight between the sizes, and beyond them as between the nearest two.

/// A size that took so many times as long as a larger one was disturbed.
const DISTURBED: f64 = 1.15;

/// Of a step, what is left at least without a part of it.
const LEAST_LEFT: f64 = 0.5;

/// `value = fixed + slope × batch`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub fixed: f64,
    pub slope: f64,
}

impl Line {
    pub fn through(a: (f64, f64), b: (f64, f64)) -> Option<Self> {
        let slope = (b.1 - a.1) / (b.0 - a.0);
        slope.is_finite().then(|| {
            // Faster with more samples cannot be, nor less than nothing for none: noise, then.
            let slope = slope.clamp(0.0, b.1 / b.0);
            Self {
                fixed: b.1 - slope * b.0,
                slope,
            }
        })
    }

    #[cfg(test)]
    pub const fn flat(value: f64) -> Self {
        Self {
            fixed: value,
            slope: 0.0,
        }
    }

    pub fn at(self, batch: f64) -> f64 {
        self.fixed + self.slope * batch
    }

    /// Stretched so that it meets a measured point.
    pub fn meeting(self, batch: f64, value: f64) -> Self {
        let factor = value / self.at(batch).max(f64::MIN_POSITIVE);
        Self {
            fixed: self.fixed * factor,
            slope: self.slope * factor,
        }
    }
}

/// At least two sizes, the smallest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// `points` by size. `None` for fewer than two.
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let points: Vec<(f64, f64)> = points.into_iter().collect();
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for (size, value) in points.into_iter().rev() {
            // Fewer samples take no longer: what took clearly longer was disturbed, and says nothing.
            match kept.last() {
                Some((_, larger)) if value > larger * DISTURBED => {}
                Some((_, larger)) => kept.push((size, value.min(*larger))),
                None => kept.push((size, value)),
            }
        }
        kept.reverse();
        (kept.len() > 1).then_some(Self(kept))
    }

    pub fn straight(line: Line, batch: f64) -> Self {
        Self([batch / 2.0, batch].map(|size| (size, line.at(size))).to_vec())
    }

    /// The largest size that was measured.
    pub fn largest(&self) -> f64 {
        self.0.last().map_or(0.0, |(size, _)| *size)
    }

    pub fn at(&self, batch: f64) -> f64 {
        let above = self.0.partition_point(|(size, _)| *size < batch);
        let (a, b) = self.around(above);
        if above == 0 || above == self.0.len() {
            return Line::through(a, b).map_or(b.1, |line| line.at(batch));
        }
        a.1 + (b.1 - a.1) * (batch - a.0) / (b.0 - a.0)
    }

    /// What would be left of a step without samples, by the sizes around this one.
    pub fn fixed_near(&self, batch: f64) -> f64 {
        let (a, b) = self.around(self.0.partition_point(|(size, _)| *size < batch));
        Line::through(a, b).map_or(0.0, |line| line.fixed)
    }

    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        self.0.iter_mut().for_each(|(_, value)| *value *= factor);
        self
    }

    /// Without so much of each step, as far as it took that.
    #[must_use]
    pub fn less(mut self, seconds: f64) -> Self {
        self.0
            .iter_mut()
            .for_each(|(_, value)| *value = (*value - seconds).max(*value * LEAST_LEFT));
        self
    }

    fn around(&self, above: usize) -> ((f64, f64), (f64, f64)) {
        let above = above.clamp(1, self.0.len() - 1);
        (self.0[above - 1], self.0[above])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_give_both_parts() {
        let line = Line::through((64.0, 0.012), (256.0, 0.018)).unwrap();
        assert!((line.fixed - 0.010).abs() < 1e-12 && (line.at(1024.0) - 0.042).abs() < 1e-12);
        // Faster with more samples cannot be: noise, then, and no slope.
        assert_eq!(Line::through((64.0, 0.02), (128.0, 0.01)).unwrap().slope, 0.0);
        assert!(Line::through((64.0, 0.02), (64.0, 0.01)).is_none());
        // Nor is there less than nothing to do for no sample.
        assert_eq!(Line::through((64.0, 0.01), (128.0, 0.04)).unwrap().fixed, 0.0);
        assert!((line.meeting(256.0, 0.036).fixed - 0.020).abs() < 1e-12);
    }

    /// The images' CNN on an H200: up to 64 samples the launches take as long as the device; then the device decides.
    #[test]
    fn a_device_that_fills_up_bends_the_curve() {
        let sizes = [
            (16.0, 0.0041),
            (64.0, 0.0046),
            (128.0, 0.0061),
            (256.0, 0.0115),
            (512.0, 0.0228),
        ];
        let curve = Curve::through(sizes).unwrap();
        assert!((curve.at(512.0) - 0.0228).abs() < 1e-12 && (curve.at(32.0) - 0.00427).abs() < 1e-5);
        assert!((curve.at(1024.0) - 0.0454).abs() < 1e-9);
        assert!(curve.fixed_near(64.0) > 0.003 && curve.fixed_near(512.0) < 0.0005);
        assert!((curve.clone().scaled(0.5).at(512.0) - 0.0114).abs() < 1e-12);
        assert!((curve.clone().less(0.001).at(512.0) - 0.0218).abs() < 1e-12);
        assert!((curve.clone().less(1.0).at(512.0) - 0.0114).abs() < 1e-12);
        // By the two smallest alone it would have been less than half.
        assert!(Curve::through(sizes[..2].to_vec()).unwrap().at(512.0) < 0.0114);
    }

    #[test]
    fn a_disturbed_size_takes_no_longer_than_a_larger_one() {
        let curve = Curve::through([(8.0, 0.005), (16.0, 0.002), (32.0, 0.003)]).unwrap();
        assert!((curve.at(32.0) - 0.003).abs() < 1e-12 && (curve.at(8.0) - 0.0015).abs() < 1e-12);
        let flat = Curve::through([(8.0, 0.0021), (16.0, 0.002)]).unwrap();
        assert!((flat.at(8.0) - 0.002).abs() < 1e-12);
        // Of two sizes that contradict each other nothing is left to go by.
        assert!(Curve::through([(16.0, 0.49), (64.0, 0.38)]).is_none());
        assert!(Curve::through([(8.0, 0.005)]).is_none());
        let straight = Curve::straight(
            Line {
                fixed: 1.0,
                slope: 0.5,
            },
            8.0,
        );
        assert!((straight.at(64.0) - 33.0).abs() < 1e-12 && (straight.at(2.0) - 2.0).abs() < 1e-12);
    }
}
