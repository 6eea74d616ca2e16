//! The learning rate over time: rising through the warm-up, then constant or falling to nothing at the end.

#[derive(Clone, Debug)]
pub struct Schedule {
    pub peak: f64,
    pub warmup_steps: u64,
    pub total_steps: u64,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Constant,
    Cosine,
    Linear,
}

impl Shape {
    pub fn named(name: &str) -> Self {
        match name {
            "cosine" => Self::Cosine,
            "linear" => Self::Linear,
            _ => Self::Constant,
        }
    }
}

impl Schedule {
    /// The rate of a step, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup_steps {
            return self.peak * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let left = self.total_steps.saturating_sub(self.warmup_steps).max(1);
        let share = ((step - self.warmup_steps) as f64 / left as f64).min(1.0);
        match self.shape {
            Shape::Constant => self.peak,
            Shape::Cosine => self.peak * 0.5 * (1.0 + (std::f64::consts::PI * share).cos()),
            Shape::Linear => self.peak * (1.0 - share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_then_falls() {
        let of = |shape| Schedule {
            peak: 1.0,
            warmup_steps: 10,
            total_steps: 110,
            shape,
        };
        let cosine = of(Shape::Cosine);
        assert!((cosine.rate(0) - 0.1).abs() < 1e-12 && (cosine.rate(9) - 1.0).abs() < 1e-12);
        assert!(
            (cosine.rate(60) - 0.5).abs() < 1e-12 && cosine.rate(110) < 1e-12 && cosine.rate(500) < 1e-12
        );
        assert!((of(Shape::Linear).rate(35) - 0.75).abs() < 1e-12);
        assert!((of(Shape::Constant).rate(400) - 1.0).abs() < 1e-12);
    }
}
