//! Two-byte numbers on the host, where a value has to be shown or handed over.

use super::blas::Number;

pub fn to_f32(bits: u16, number: Number) -> f32 {
    if number == Number::Bf16 {
        return f32::from_bits(u32::from(bits) << 16);
    }
    let (sign, exponent, fraction) = (
        u32::from(bits >> 15) << 31,
        (bits >> 10) & 31,
        u32::from(bits & 1023),
    );
    match exponent {
        // Subnormal: the fraction counts steps of 2⁻²⁴.
        0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (u32::from(exponent) + 112) << 23 | fraction << 13),
    }
}

/// Rounds to the nearest, ties to even.
pub fn from_f32(value: f32, number: Number) -> u16 {
    let bits = value.to_bits();
    if number == Number::Bf16 {
        if value.is_nan() {
            return (bits >> 16) as u16 | 64;
        }
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    }
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    if magnitude < 6.103_515_6e-5 {
        // f32's own rounding of the count of steps is to nearest even.
        return sign | (magnitude * 16_777_216.0).round_ties_even() as u16;
    }
    let rest = magnitude.to_bits() - (112 << 23);
    sign | ((rest + 0x0fff + (rest >> 13 & 1)) >> 13) as u16
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
