//! exp and tanh in f32 as straight-line arithmetic without branches or calls, so that the compiler turns loops over them
//! into vector code of whatever width the caller was compiled for.

use super::real::Real;
use std::f32::consts::LOG2_E;

/// ln 2 in two parts: the first has few enough bits that `n · LN_2_HIGH` is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Adding 1.5 · 2²³ leaves the nearest integer in the low bits of the mantissa.
const ROUND: f32 = 12_582_912.0;

/// `x = n ln 2 + r` with |r| ≤ ln 2 / 2; gives 2ⁿ and eʳ − 1.
#[inline(always)]
fn split<const FUSED: bool>(x: f32) -> (f32, f32) {
    let shifted = x.multiply_add::<FUSED>(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = (-n).multiply_add::<FUSED>(LN_2_LOW, (-n).multiply_add::<FUSED>(LN_2_HIGH, x));
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    // Taylor to r⁷: the first dropped term is below 6e-9 for |r| ≤ 0.347, a twentieth of an ulp of 1.
    let p = r.multiply_add::<FUSED>(1.0 / 5040.0, 1.0 / 720.0);
    let p = r.multiply_add::<FUSED>(p, 1.0 / 120.0);
    let p = r.multiply_add::<FUSED>(p, 1.0 / 24.0);
    let p = r.multiply_add::<FUSED>(p, 1.0 / 6.0);
    let p = r.multiply_add::<FUSED>(p, 0.5);
    (power, (r * r).multiply_add::<FUSED>(p, r))
}

/// eˣ, for x from −87 to 88; beyond that it stays at the end's value, and NaN stays NaN.
#[inline(always)]
pub fn exponential<const FUSED: bool>(x: f32) -> f32 {
    let clamped = clamp(x, -87.0, 88.0);
    let (power, fraction) = split::<FUSED>(clamped);
    power.multiply_add::<FUSED>(fraction, power)
}

/// tanh x = (e²ˣ − 1) / (e²ˣ + 1), the difference taken before rounding, so that small x keep all their digits.
#[inline(always)]
pub fn tanh<const FUSED: bool>(x: f32) -> f32 {
    let clamped = clamp(x, -9.1, 9.1);
    let (power, fraction) = split::<FUSED>(2.0 * clamped);
    let less_one = power.multiply_add::<FUSED>(fraction, power - 1.0);
    less_one / (less_one + 2.0)
}

/// erf x = 1 − (a₁t + … + a₅t⁵) · e^(−x²) with t = 1 / (1 + 0.3275911 x) for x ≥ 0 (Abramowitz and Stegun 7.1.26), odd; the
/// formula is within 1.5e-7 of erf.
#[inline(always)]
pub fn error_function<const FUSED: bool>(x: f32) -> f32 {
    let positive = x.abs();
    let t = 1.0 / positive.multiply_add::<FUSED>(0.327_591_1, 1.0);
    let p = t.multiply_add::<FUSED>(1.061_405_4, -1.453_152);
    let p = t.multiply_add::<FUSED>(p, 1.421_413_7);
    let p = t.multiply_add::<FUSED>(p, -0.284_496_74);
    let p = t.multiply_add::<FUSED>(p, 0.254_829_6);
    let result = 1.0 - t * p * exponential::<FUSED>(-positive * positive);
    if x < 0.0 { -result } else { result }
}

/// erf x = 2/√π · e^(−x²) · Σ 2ⁿ x²ⁿ⁺¹ / (2n+1)!!: all terms have one sign, so nothing cancels. For checks, not for speed.
pub fn exact_error_function(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// Keeps NaN, which `min` and `max` would swallow: a diverged model must not look healthy.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(function: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, range: f32) -> f64 {
        let points = (-200_000..=200_000).map(|i| i as f32 / 200_000.0 * range);
        let error = |x: f32| {
            let exact = exact(x.into());
            (f64::from(function(x)) - exact).abs() / exact.abs().max(1e-30)
        };
        points.map(error).fold(0.0, f64::max)
    }

    #[test]
    fn within_a_few_ulp_of_the_exact_values() {
        assert!(worst(exponential::<true>, f64::exp, 80.0) < 2.5e-7);
        assert!(worst(exponential::<false>, f64::exp, 80.0) < 2.5e-7);
        assert!(worst(tanh::<true>, f64::tanh, 12.0) < 5e-7);
        assert!(worst(tanh::<false>, f64::tanh, 12.0) < 5e-7);
        assert!(worst(tanh::<true>, f64::tanh, 1e-3) < 5e-7);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(<f32 as Real>::sigmoid::<true>, sigmoid, 80.0) < 5e-7);
    }

    #[test]
    fn error_functions_agree_with_known_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, known) in [
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
        ] {
            assert!((exact_error_function(x) - known).abs() < 1e-10);
            assert!((exact_error_function(-x) + known).abs() < 1e-10);
        }
        let points = (-100_000..=100_000).map(|i| i as f32 / 15_000.0);
        let apart = |x: f32| (f64::from(error_function::<true>(x)) - exact_error_function(x.into())).abs();
        assert!(points.map(apart).fold(0.0, f64::max) < 6e-7);
        assert!(error_function::<true>(f32::NAN).is_nan() && exact_error_function(f64::NAN).is_nan());
    }

    #[test]
    fn ends_and_nan() {
        assert_eq!(tanh::<true>(1e30), 1.0);
        assert_eq!(tanh::<true>(-1e30), -1.0);
        assert_eq!(tanh::<true>(0.0), 0.0);
        assert!(tanh::<true>(f32::NAN).is_nan() && exponential::<true>(f32::NAN).is_nan());
        assert!(exponential::<true>(-1e30) < 1e-37);
    }
}
