//! Numbers of a log's fields, quickly: `45`, `45 %`, `72.50 W`, `1234MiB`; anything else (`[N/A]`, `-`, `ERR!`) is unknown.

const POWERS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19,
];

/// The number at the start of a field, blanks before it and a unit behind it passed over.
pub fn parse(field: &[u8]) -> Option<f64> {
    let field = field.trim_ascii_start();
    let (negative, digits) = match field.first()? {
        b'-' => (true, &field[1..]),
        b'+' => (false, &field[1..]),
        _ => (false, field),
    };
    let mut mantissa = 0u64;
    let mut seen = 0usize;
    let mut decimals = None;
    let mut at = 0;
    while let Some(byte) = digits.get(at) {
        match byte {
            b'0'..=b'9' => {
                seen += 1;
                // Nineteen digits fit; a log's numbers have fewer, and what has more is read the careful way.
                if seen > 19 {
                    return careful(field);
                }
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                if let Some(decimals) = decimals.as_mut() {
                    *decimals += 1;
                }
            }
            b'.' if decimals.is_none() => decimals = Some(0usize),
            b'e' | b'E' => return careful(field),
            _ => break,
        }
        at += 1;
    }
    if seen == 0 || !unit_follows(&digits[at..]) {
        return None;
    }
    // Exact while the mantissa fits into 53 bits and the power is exact, which is what logs hold.
    let value = mantissa as f64 / POWERS[decimals.unwrap_or(0)];
    Some(if negative { -value } else { value })
}

/// The number of the field that begins at `from` in a line of comma-separated ones, and where the field ends; `None` where it is not
/// of the plain sort (`45`, `45 %`, `72.50 W`), which [`parse`] reads. Looks at each byte once.
pub fn field(line: &[u8], from: usize) -> Option<(f64, usize)> {
    let mut at = from;
    while line.get(at) == Some(&b' ') {
        at += 1;
    }
    let first = at;
    let mut mantissa = 0u64;
    let mut point = None;
    while let Some(byte) = line.get(at) {
        match byte {
            b'0'..=b'9' => mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' if point.is_none() => point = Some(at),
            _ => break,
        }
        at += 1;
    }
    let digits = at - first - usize::from(point.is_some());
    if !(1..=15).contains(&digits) {
        return None;
    }
    let value = mantissa as f64 / POWERS[point.map_or(0, |point| at - point - 1)];
    match line.get(at) {
        None | Some(b',') => return Some((value, at)),
        Some(b' ') => at += 1,
        Some(_) => return None,
    }
    // A unit, of letters alone.
    at += usize::from(line.get(at) == Some(&b'%'));
    while line.get(at).is_some_and(u8::is_ascii_alphabetic) {
        at += 1;
    }
    matches!(line.get(at), None | Some(b',')).then_some((value, at))
}

/// The number of the word that begins at `from` in a line of words set with blanks, and where it ends; `None` where it is not of the
/// plain sort (`45`, `72.5`).
pub fn word(line: &[u8], from: usize) -> Option<(f64, usize)> {
    let mut mantissa = 0u64;
    let mut point = None;
    let mut at = from;
    while let Some(byte) = line.get(at) {
        match byte {
            b'0'..=b'9' => mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' if point.is_none() => point = Some(at),
            _ if byte.is_ascii_whitespace() => break,
            _ => return None,
        }
        at += 1;
    }
    let digits = at - from - usize::from(point.is_some());
    let value = mantissa as f64 / POWERS[point.map_or(0, |point| at - point - 1).min(15)];
    (1..=15).contains(&digits).then_some((value, at))
}

/// A whole text of few digits with at most one point among them, such as `25.3`; exact, since its digits fit into 53 bits.
pub fn decimal(text: &[u8]) -> Option<f64> {
    if text.len() > 15 || !text.last()?.is_ascii_digit() {
        return None;
    }
    let mut mantissa = 0u64;
    let mut decimals = None;
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                decimals = decimals.map(|count| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0usize),
            _ => return None,
        }
    }
    Some(mantissa as f64 / POWERS[decimals.unwrap_or(0)])
}

/// `12:30` and `2024/05/21` are no numbers with a unit, nor is a UUID that begins with a digit.
fn unit_follows(rest: &[u8]) -> bool {
    match rest.trim_ascii_start().first() {
        None | Some(b'%' | b'[') => true,
        Some(byte) => {
            byte.is_ascii_alphabetic() && !rest.iter().any(|byte| byte.is_ascii_digit() || *byte == b'-')
        }
    }
}

fn careful(field: &[u8]) -> Option<f64> {
    let end = field
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || b"+-.eE".contains(byte)))
        .unwrap_or(field.len());
    let value: f64 = std::str::from_utf8(&field[..end]).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// A whole number without a sign, the whole field.
pub fn whole(field: &[u8]) -> Option<u32> {
    let field = field.trim_ascii();
    if (1..=9).contains(&field.len()) && field.iter().all(u8::is_ascii_digit) {
        return Some(
            field
                .iter()
                .fold(0, |value, byte| value * 10 + u32::from(byte - b'0')),
        );
    }
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// `0x0000000000000004`.
pub fn hexadecimal(field: &[u8]) -> Option<u64> {
    let digits = field.trim_ascii().strip_prefix(b"0x")?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_as_logs_have_them() {
        for (text, value) in [
            ("45", 45.0),
            (" 45 %", 45.0),
            ("72.50 W", 72.5),
            ("1234MiB", 1234.0),
            (" 0.05", 0.05),
            ("-3", -3.0),
            ("1.5e3", 1500.0),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            " ",
            "-",
            "[N/A]",
            "N/A",
            "[Not Supported]",
            "ERR!",
            ".",
            "12:30",
            "2024/05/21",
            "8932f937-aa",
            "1e999",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(hexadecimal(b" 0x0000000000000004"), Some(4));
        assert_eq!(hexadecimal(b"4"), None);
    }

    proptest! {
        #[test]
        fn the_same_as_the_careful_way(value in -1e9f64..1e9, decimals in 0usize..6) {
            let text = format!("{value:.decimals$}");
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(parse(text.as_bytes()), Some(expected));
            if let Some(value) = decimal(text.as_bytes()) {
                prop_assert_eq!(value, expected);
            }
        }

        #[test]
        fn fields_in_one_sweep_are_what_the_slow_way_reads(text in "[ 0-9.,%+eMiBWHz\\[\\]/:-]{0,24}", from in 0usize..8) {
            let line = text.as_bytes();
            let from = from.min(line.len());
            if let Some((value, end)) = field(line, from) {
                let expected = line[from..].iter().position(|byte| *byte == b',').map_or(line.len(), |at| from + at);
                prop_assert_eq!((Some(value), end), (parse(&line[from..expected]), expected));
            }
        }

        #[test]
        fn words_are_what_the_slow_way_reads(text in "[ 0-9.%+e:-]{0,24}", from in 0usize..8) {
            let line = text.as_bytes();
            let from = from.min(line.len());
            if let Some((value, end)) = word(line, from) {
                let expected = line[from..].iter().position(u8::is_ascii_whitespace).map_or(line.len(), |at| from + at);
                prop_assert_eq!((Some(value), end), (parse(&line[from..expected]), expected));
            }
        }

        #[test]
        fn plain_fields_take_the_quick_way(value in 0.0f64..1e6, decimals in 0usize..4, unit in 0usize..5) {
            let text = format!("x, {value:.decimals$}{}, y", ["", " %", " MiB", " W", " MHz"][unit]);
            let expected = format!("{value:.decimals$}").parse().unwrap();
            prop_assert_eq!(field(text.as_bytes(), 2), Some((expected, text.len() - 3)));
        }

        #[test]
        fn integers_parse_like_the_standard_library(text in "[+-]?[0-9]{0,12}") {
            prop_assert_eq!(whole(text.as_bytes()), text.parse().ok());
        }

        #[test]
        fn digits_and_points_are_read_exactly(text in "[0-9]{0,8}[.]?[0-9]{0,9}[.]?") {
            if let Some(value) = decimal(text.as_bytes()) {
                prop_assert_eq!(value, text.parse::<f64>().unwrap());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&bytes);
            let _ = (whole(&bytes), hexadecimal(&bytes));
        }
    }
}
