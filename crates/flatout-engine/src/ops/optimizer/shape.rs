//! The optimizers, with PyTorch's defaults and PyTorch's arithmetic.

/// How a parameter moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rule {
    /// Adam with the decay applied to the parameter itself.
    #[default]
    AdamW,
    /// Adam with the decay added to the gradient.
    Adam,
    /// Gradient descent with momentum (`beta1`; 0 for none), the decay added to the gradient.
    Sgd,
}

/// `clip`, then the rule, with a learning rate given at each update.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    pub rule: Rule,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    /// Limit of the gradients' global norm.
    pub clip_norm: Option<f64>,
    /// Decay of a running average of every parameter: `average += (1 − decay) · (parameter − average)` after each update.
    pub average: Option<f64>,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            rule: Rule::AdamW,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            clip_norm: None,
            average: None,
        }
    }
}

impl Optimizer {
    /// What is kept for each parameter, under PyTorch's names; the average is the last.
    pub fn moment_names(&self) -> &'static [&'static str] {
        match (self.rule, self.average.is_some()) {
            (Rule::AdamW | Rule::Adam, false) => &["exp_avg", "exp_avg_sq"],
            (Rule::AdamW | Rule::Adam, true) => &["exp_avg", "exp_avg_sq", "average"],
            (Rule::Sgd, false) => &["momentum_buffer"],
            (Rule::Sgd, true) => &["momentum_buffer", "average"],
        }
    }
}
