//! Times as logs write them: `2024/05/21 10:11:12.123`, `20240521 10:11:12`, `2024-05-21T10:11:12.123456+08:00`. Logs do not
//! say their time zone, so it is taken for UTC: differences are right, which is what counts.

use flatout_core::calendar::days_from_date;

/// Milliseconds since 1970.
pub fn parse(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    let (days, rest) = date(text)?;
    let rest = match rest.first()? {
        b' ' | b'T' => rest[1..].trim_ascii_start(),
        _ => return None,
    };
    Some(days as f64 * 86_400_000.0 + clock(rest)?)
}

/// Milliseconds from 1970 to the beginning of the day that a text begins with.
pub fn day_ms(text: &[u8]) -> Option<f64> {
    date(text).map(|(days, _)| days as f64 * 86_400_000.0)
}

/// Days since 1970, and what follows the date.
fn date(text: &[u8]) -> Option<(i64, &[u8])> {
    let year = digits(text.get(..4)?)?;
    let (month, day, rest) = match text.get(4)? {
        b'/' | b'-' if text.get(7) == text.get(4) => (
            digits(text.get(5..7)?)?,
            digits(text.get(8..10)?)?,
            text.get(10..)?,
        ),
        byte if byte.is_ascii_digit() => (digits(text.get(4..6)?)?, digits(text.get(6..8)?)?, text.get(8..)?),
        _ => return None,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    Some((days_from_date(i64::from(year), month, day), rest))
}

/// Milliseconds since midnight; what follows the seconds (a zone) does not matter.
pub fn clock(text: &[u8]) -> Option<f64> {
    let hour = digits(text.get(..2)?)?;
    let minute = digits(text.get(3..5)?)?;
    let second = digits(text.get(6..8)?)?;
    if text[2] != b':' || text[5] != b':' || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut fraction_ms = 0.0;
    // Python's logging writes a comma.
    if matches!(text.get(8), Some(b'.' | b',')) {
        fraction_ms = milliseconds(&text[9..]);
    }
    Some(f64::from(hour * 3600 + minute * 60 + second) * 1000.0 + fraction_ms)
}

/// What the digits behind the seconds' point say. Three of them are the rule, and whole numbers are quicker.
fn milliseconds(text: &[u8]) -> f64 {
    if let [a, b, c, rest @ ..] = text
        && [a, b, c].into_iter().all(u8::is_ascii_digit)
        && !rest.first().is_some_and(u8::is_ascii_digit)
    {
        return f64::from(u32::from(a - b'0') * 100 + u32::from(b - b'0') * 10 + u32::from(c - b'0'));
    }
    let mut scale = 100.0;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0.0, |sum, byte| {
        let value = sum + f64::from(byte - b'0') * scale;
        scale /= 10.0;
        value
    })
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0u32, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ways_logs_write_a_time() {
        let expected = Some(1_716_286_272_123.0);
        assert_eq!(parse(b"2024/05/21 10:11:12.123"), expected);
        assert_eq!(parse(b" 2024-05-21T10:11:12.123+08:00"), expected);
        assert_eq!(parse(b"20240521  10:11:12"), Some(1_716_286_272_000.0));
        assert_eq!(parse(b"1970/01/01 00:00:00"), Some(0.0));
        for wrong in [
            "",
            "2024",
            "2024/05/21",
            "2024/13/01 00:00:00",
            "2024/05/21 25:00:00",
            "10:11:12",
            "yesterday at noon",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&bytes);
            let _ = clock(&bytes);
        }
    }
}
