//! Activations whose derivative follows from their result, so that they can be fused behind a matrix product.

use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activation {
    #[default]
    None,
    Relu,
    Tanh,
    Sigmoid,
}

vectorised! {
    pub(crate) fn relu<T>(values: &mut [T]) {
        for value in values {
            // Written so that NaN stays NaN, as in PyTorch.
            *value = if *value < T::ZERO { T::ZERO } else { *value };
        }
    }
}

vectorised! {
    pub(crate) fn tanh<T>(values: &mut [T]) {
        for value in values {
            *value = value.tanh::<FUSED>();
        }
    }
}

vectorised! {
    pub(crate) fn sigmoid<T>(values: &mut [T]) {
        for value in values {
            *value = value.sigmoid::<FUSED>();
        }
    }
}

vectorised! {
    fn relu_gradient<T>(target: &mut [T], gradient: &[T], result: &[T]) {
        for ((target, &gradient), &result) in target.iter_mut().zip(gradient).zip(result) {
            *target = if result > T::ZERO { gradient } else { T::ZERO };
        }
    }
}

vectorised! {
    fn tanh_gradient<T>(target: &mut [T], gradient: &[T], result: &[T]) {
        for ((target, &gradient), &result) in target.iter_mut().zip(gradient).zip(result) {
            *target = gradient * (T::ONE - result * result);
        }
    }
}

vectorised! {
    fn sigmoid_gradient<T>(target: &mut [T], gradient: &[T], result: &[T]) {
        for ((target, &gradient), &result) in target.iter_mut().zip(gradient).zip(result) {
            *target = gradient * (result * (T::ONE - result));
        }
    }
}

impl Activation {
    /// Its number in the kernels.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Relu => 1,
            Self::Tanh => 2,
            Self::Sigmoid => 3,
        }
    }

    pub(crate) fn apply<T: Real>(self, values: &mut [T]) {
        match self {
            Self::None => {}
            Self::Relu => relu(values),
            Self::Tanh => tanh(values),
            Self::Sigmoid => sigmoid(values),
        }
    }

    /// `target = gradient · f′`, f′ out of the activation's result.
    pub(crate) fn gradient<T: Real>(self, target: &mut [T], gradient: &[T], result: &[T]) {
        match self {
            Self::None => target.copy_from_slice(gradient),
            Self::Relu => relu_gradient(target, gradient, result),
            Self::Tanh => tanh_gradient(target, gradient, result),
            Self::Sigmoid => sigmoid_gradient(target, gradient, result),
        }
    }
}
