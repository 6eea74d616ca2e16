//! Text to numbers. Exact: the same `f32` as reading an `f64` and rounding it.

/// Digits that fit a `u64` without overflow.
const MAXIMUM_DIGITS: usize = 19;

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Reads a whole field as a number; `None` when it is anything else. `inf` and `nan` are not numbers here.
#[inline]
pub fn parse_f32(text: &[u8]) -> Option<f32> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut mantissa, mut used, mut at) = (0u64, 0usize, 0usize);
    while let Some(digit) = digit_at(digits, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    used += at;
    let mut exponent = 0i32;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        let first = at;
        while let Some(word) = eight_digits(digits, at) {
            mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(word);
            at += 8;
        }
        while let Some(digit) = digit_at(digits, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        used += at - first;
        exponent = -((at - first) as i32);
    }
    if used == 0 {
        return None;
    }
    if at != digits.len() {
        exponent += parse_exponent(&digits[at..])?;
    }
    if used > MAXIMUM_DIGITS || !(-22..=22).contains(&exponent) {
        return exact(text);
    }
    let power = POWERS[exponent.unsigned_abs() as usize];
    let magnitude = if exponent < 0 {
        mantissa as f64 / power
    } else {
        mantissa as f64 * power
    };
    // Two roundings happened at most: the f64 is off by less than two units in the last place. That matters only when it lies at
    // the boundary between two f32.
    if mantissa >> 53 != 0 {
        let tail = magnitude.to_bits() & 0x1FFF_FFFF;
        if tail.abs_diff(0x1000_0000) <= 4 {
            return exact(text);
        }
    }
    let value = magnitude as f32;
    Some(if negative { -value } else { value })
}

/// Reads a whole field as an integer.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || digits.len() > MAXIMUM_DIGITS {
        return None;
    }
    let (mut value, mut at) = (0u64, 0);
    while let Some(word) = eight_digits(digits, at) {
        value = value * 100_000_000 + word;
        at += 8;
    }
    while let Some(digit) = digit_at(digits, at) {
        value = value * 10 + digit;
        at += 1;
    }
    if at != digits.len() {
        return None;
    }
    if negative {
        0i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}

#[cold]
fn exact(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text)
        .ok()?
        .parse::<f64>()
        .ok()
        .map(|value| value as f32)
}

fn parse_exponent(text: &[u8]) -> Option<i32> {
    let [b'e' | b'E', rest @ ..] = text else {
        return None;
    };
    let value = parse_i64(rest)?;
    // Far outside anything finite, in a range where sums cannot overflow.
    Some(value.clamp(-100_000, 100_000) as i32)
}

#[inline(always)]
fn digit_at(text: &[u8], at: usize) -> Option<u64> {
    let digit = text.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// The value of the eight bytes at `at` if all are digits: three multiplications instead of eight.
#[inline(always)]
fn eight_digits(text: &[u8], at: usize) -> Option<u64> {
    let bytes: [u8; 8] = text.get(at..at + 8)?.try_into().ok()?;
    let word = u64::from_le_bytes(bytes);
    let low = word.wrapping_sub(0x3030_3030_3030_3030);
    let high = word.wrapping_add(0x4646_4646_4646_4646);
    if (low | high) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = low.wrapping_mul(10) + (low >> 8);
    let left = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let right = ((pairs >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    Some(left.wrapping_add(right) >> 32)
}

/// Whether a field means "no value".
#[inline]
pub fn is_missing(text: &[u8]) -> bool {
    match text.len() {
        0 => true,
        1 => text == b"-",
        2 => text == b"NA",
        3 => text.eq_ignore_ascii_case(b"nan") || text == b"N/A",
        4 => text.eq_ignore_ascii_case(b"null") || text.eq_ignore_ascii_case(b"none"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_of_numbers() {
        for (text, value) in [
            ("1", 1.0),
            ("-0.5", -0.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("+2.5E-1", 0.25),
        ] {
            assert_eq!(parse_f32(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "", "-", ".", "e5", "1e", "1.2.3", "abc", "1 ", "0x1", "inf", "nan", "--1", "1e+",
        ] {
            assert_eq!(parse_f32(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_f32(b"1e400"), Some(f32::INFINITY));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"12345678901234567"), Some(12_345_678_901_234_567));
        assert_eq!(parse_i64(b"1234567x"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_exact_reader(value: f64, digits in 0usize..20) {
            for text in [format!("{value}"), format!("{value:e}"), format!("{:.digits$}", value % 1e6)] {
                let expected = text.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value as f32);
                if let Some(expected) = expected {
                    prop_assert_eq!(parse_f32(text.as_bytes()), Some(expected), "{}", text);
                }
            }
        }

        #[test]
        fn agrees_on_short_floats(value: f32, integer: i64) {
            if value.is_finite() {
                prop_assert_eq!(parse_f32(value.to_string().as_bytes()), Some(value.to_string().parse::<f64>().unwrap() as f32));
            }
            prop_assert_eq!(parse_i64(integer.to_string().as_bytes()), Some(integer));
        }

        #[test]
        fn never_panics(text: Vec<u8>) {
            let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<i64>().ok());
            prop_assert_eq!(parse_i64(&text).is_some(), number.is_some());
            let _ = parse_f32(&text);
        }
    }
}
