//! Two-byte numbers on the host, where a value has to be shown or handed over.

use super::blas::Number;
use half::{bf16, f16};

pub fn to_f32(bits: u16, number: Number) -> f32 {
    if number == Number::Bf16 {
        bf16::from_bits(bits).to_f32()
    } else {
        f16::from_bits(bits).to_f32()
    }
}

/// Rounds to the nearest, ties to even.
pub fn from_f32(value: f32, number: Number) -> u16 {
    if number == Number::Bf16 {
        bf16::from_f32(value).to_bits()
    } else {
        f16::from_f32(value).to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for number in [Number::Bf16, Number::F16] {
            for bits in 0..=u16::MAX {
                let value = to_f32(bits, number);
                if !value.is_nan() {
                    assert_eq!(from_f32(value, number), bits, "{number:?} {bits:#x} {value}");
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        assert_eq!(
            from_f32(1.0 + 1.0 / 256.0, Number::Bf16),
            from_f32(1.0, Number::Bf16)
        );
        assert_eq!(
            from_f32(1.0 + 3.0 / 256.0, Number::Bf16),
            from_f32(1.0 + 4.0 / 256.0, Number::Bf16)
        );
        assert_eq!(to_f32(from_f32(1e6, Number::F16), Number::F16), f32::INFINITY);
        assert!(to_f32(from_f32(f32::NAN, Number::F16), Number::F16).is_nan());
    }
}
