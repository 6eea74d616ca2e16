//! Dates and times as microseconds since 1970 (UTC when the text names no zone).

pub use flatout_core::calendar::{date_from_days, days_from_date};

pub const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
pub const MICROSECONDS_PER_DAY: i64 = 86_400 * MICROSECONDS_PER_SECOND;

/// `2024-03-01` or `2024-03-01 09:30:00`.
pub fn format_us(time_us: i64) -> String {
    let (year, month, day) = date_from_days(time_us.div_euclid(MICROSECONDS_PER_DAY));
    let second = time_us.rem_euclid(MICROSECONDS_PER_DAY) / MICROSECONDS_PER_SECOND;
    let date = format!("{year:04}-{month:02}-{day:02}");
    if second == 0 {
        return date;
    }
    format!(
        "{date} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Reads `2024-03-01`, `2024/3/1`, `20240301`, each with an optional time (`T` or a space, `HH:MM[:SS[.fraction]]`, `Z` or `±HH:MM`).
pub fn parse_us(text: &[u8]) -> Option<i64> {
    let (year, month, day, rest) = parse_date(text)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > longest {
        return None;
    }
    let date_us = days_from_date(year, month, day) * MICROSECONDS_PER_DAY;
    match rest {
        [] => Some(date_us),
        [b' ' | b'T' | b't', time @ ..] => Some(date_us + parse_clock(time)?),
        _ => None,
    }
}

/// [`parse_us`], or a number: `20240301` as a date, 10 digits as seconds, 13 as milliseconds, 16 as microseconds.
pub fn parse_any_us(text: &[u8]) -> Option<i64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    if !digits || text.len() == 8 {
        return parse_us(text);
    }
    let scale = match text.len() {
        10 => MICROSECONDS_PER_SECOND,
        13 => 1000,
        16 => 1,
        _ => return None,
    };
    let value = text
        .iter()
        .fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(value * scale)
}

fn parse_date(text: &[u8]) -> Option<(i64, u32, u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 8 {
        let year = number(&text[..4])?;
        return Some((
            year,
            number(&text[4..6])? as u32,
            number(&text[6..8])? as u32,
            &text[8..],
        ));
    }
    if digits != 4 || text.len() < 8 {
        return None;
    }
    let separator = *text.get(4)?;
    if separator != b'-' && separator != b'/' {
        return None;
    }
    let rest = &text[5..];
    let (month, rest) = short_number(rest)?;
    let rest = rest.strip_prefix(&[separator])?;
    let (day, rest) = short_number(rest)?;
    Some((number(&text[..4])?, month, day, rest))
}

fn parse_clock(text: &[u8]) -> Option<i64> {
    let (hour, rest) = short_number(text)?;
    let (minute, mut rest) = short_number(rest.strip_prefix(b":")?)?;
    let mut us = i64::from(hour * 60 + minute) * 60 * MICROSECONDS_PER_SECOND;
    if hour > 23 || minute > 59 {
        return None;
    }
    if let Some(tail) = rest.strip_prefix(b":") {
        let (second, tail) = short_number(tail)?;
        if second > 60 {
            return None;
        }
        us += i64::from(second) * MICROSECONDS_PER_SECOND;
        rest = tail;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let mut scale = MICROSECONDS_PER_SECOND;
            for &digit in &fraction[..digits.min(6)] {
                scale /= 10;
                us += i64::from(digit - b'0') * scale;
            }
            rest = &fraction[digits..];
        }
    }
    match rest {
        [] | [b'Z' | b'z'] => Some(us),
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let (hours, tail) = short_number(zone)?;
            let minutes = match tail.strip_prefix(b":").unwrap_or(tail) {
                [] => 0,
                digits => number(digits)?,
            };
            let offset = (i64::from(hours) * 60 + minutes) * 60 * MICROSECONDS_PER_SECOND;
            Some(if *sign == b'+' { us - offset } else { us + offset })
        }
        _ => None,
    }
}

/// One or two digits.
fn short_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text
        .iter()
        .take(2)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    Some((number(&text[..digits])? as u32, &text[digits..]))
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0')),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_ways_to_write_a_date() {
        let day = days_from_date(2024, 2, 29) * MICROSECONDS_PER_DAY;
        for text in [
            "2024-02-29",
            "2024/2/29",
            "20240229",
            "2024-02-29T00:00:00Z",
            "2024-02-29 08:00:00+08:00",
        ] {
            assert_eq!(parse_us(text.as_bytes()), Some(day), "{text}");
        }
        assert_eq!(parse_us(b"1970-01-01 00:00:01.5"), Some(1_500_000));
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-1",
            "abc",
            "",
            "2024-02-29x",
            "20240229 25:00",
            "2024-02/29",
        ] {
            assert_eq!(parse_us(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            format_us(day + 34_200 * MICROSECONDS_PER_SECOND),
            "2024-02-29 09:30:00"
        );
    }

    proptest! {
        #[test]
        fn dates_go_round(days in -200_000i64..200_000) {
            let (year, month, day) = date_from_days(days);
            prop_assert_eq!(days_from_date(year, month, day), days);
            if year >= 1000 {
                prop_assert_eq!(parse_us(format_us(days * MICROSECONDS_PER_DAY).as_bytes()), Some(days * MICROSECONDS_PER_DAY));
            }
        }

        #[test]
        fn nothing_panics(text: Vec<u8>) {
            let _ = parse_us(&text);
        }
    }
}
