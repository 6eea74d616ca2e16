//! The learning rate over time, with the arithmetic of PyTorch's schedulers: rising through the warm-up, then as the schedule says.
//! What a plateau does to it is not known beforehand: it multiplies from outside.

/// For `--lr-schedule`.
pub const NAMES: &[&str] = &["constant", "cosine", "linear", "onecycle", "step", "plateau"];

/// `OneCycleLR`: share of the steps that rise, peak over first rate, first over last rate.
const RISING_SHARE: f64 = 0.3;
const FIRST_DIVISOR: f64 = 25.0;
const LAST_DIVISOR: f64 = 1e4;

#[derive(Clone, Debug)]
pub struct Schedule {
    pub peak: f64,
    pub warmup_steps: u64,
    pub total_steps: u64,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Constant,
    Cosine,
    Linear,
    /// Rises from a 25th to the peak and falls to nearly nothing, as a cosine; the warm-up is its own.
    OneCycle,
    /// Times `gamma` every so many steps.
    Step {
        every: u64,
        gamma: f64,
    },
}

impl Schedule {
    /// The rate of a step, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        if self.shape == Shape::OneCycle {
            return self.one_cycle(step);
        }
        if step < self.warmup_steps {
            return self.peak * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let left = self.total_steps.saturating_sub(self.warmup_steps).max(1);
        let share = ((step - self.warmup_steps) as f64 / left as f64).min(1.0);
        match self.shape {
            Shape::Constant | Shape::OneCycle => self.peak,
            Shape::Cosine => self.peak * 0.5 * (1.0 + (std::f64::consts::PI * share).cos()),
            Shape::Linear => self.peak * (1.0 - share),
            Shape::Step { every, gamma } => self.peak * gamma.powi((step / every.max(1)).min(1 << 20) as i32),
        }
    }

    fn one_cycle(&self, step: u64) -> f64 {
        let first = self.peak / FIRST_DIVISOR;
        let last_step = self.total_steps.saturating_sub(1) as f64;
        let top = (RISING_SHARE * self.total_steps as f64 - 1.0).max(0.0);
        let step = (step as f64).min(last_step);
        let cosine = |from: f64, to: f64, share: f64| {
            to + (from - to) / 2.0 * (1.0 + (std::f64::consts::PI * share).cos())
        };
        if step <= top && top > 0.0 {
            return cosine(first, self.peak, step / top);
        }
        cosine(
            self.peak,
            first / LAST_DIVISOR,
            (step - top) / (last_step - top).max(1.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shape: Shape) -> Schedule {
        Schedule {
            peak: 1.0,
            warmup_steps: 10,
            total_steps: 110,
            shape,
        }
    }

    #[test]
    fn rises_then_falls() {
        let cosine = of(Shape::Cosine);
        assert!((cosine.rate(0) - 0.1).abs() < 1e-12 && (cosine.rate(9) - 1.0).abs() < 1e-12);
        assert!(
            (cosine.rate(60) - 0.5).abs() < 1e-12 && cosine.rate(110) < 1e-12 && cosine.rate(500) < 1e-12
        );
        assert!((of(Shape::Linear).rate(35) - 0.75).abs() < 1e-12);
        assert!((of(Shape::Constant).rate(400) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_rates_of_pytorch() {
        // torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=20)
        let cycle = Schedule {
            peak: 0.5,
            warmup_steps: 0,
            total_steps: 20,
            shape: Shape::OneCycle,
        };
        for (step, wanted) in ONE_CYCLE.iter().enumerate() {
            let found = cycle.rate(step as u64);
            assert!(
                (found - wanted).abs() < 1e-7,
                "step {step}: {found}, not {wanted}"
            );
        }
        // torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
        let step = Schedule {
            warmup_steps: 0,
            ..of(Shape::Step { every: 3, gamma: 0.5 })
        };
        let found: Vec<f64> = (0..8).map(|index| step.rate(index)).collect();
        assert_eq!(found, STEP);
    }

    const ONE_CYCLE: [f64; 20] = [
        0.02,
        0.0658359214,
        0.1858359214,
        0.3341640786,
        0.4541640786,
        0.5,
        0.4937320031,
        0.475242316,
        0.4454580888,
        0.405872827,
        0.3584715009,
        0.305631011,
        0.250001,
        0.194370989,
        0.1415304991,
        0.094129173,
        0.0545439112,
        0.024759684,
        0.0062699969,
        2e-06,
    ];
    const STEP: [f64; 8] = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25];
}
