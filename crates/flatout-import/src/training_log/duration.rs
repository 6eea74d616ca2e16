//! Durations in free text: `25.3s`, `1m 23s`, `0:01:23`, `25.3 seconds`, `25 秒`, and what the words before one say it is.

use crate::number;

/// A duration in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub start: usize,
    pub end: usize,
    pub seconds: f64,
    /// Whether a unit or a clock's colons stand there; a bare number is a duration only behind a word such as `time`.
    pub has_unit: bool,
}

/// Longest first, so that `ms` is not taken for `m`.
const UNITS: &[(&str, f64)] = &[
    ("seconds", 1.0),
    ("minutes", 60.0),
    ("second", 1.0),
    ("minute", 60.0),
    ("hours", 3600.0),
    ("小时", 3600.0),
    ("分钟", 60.0),
    ("毫秒", 1e-3),
    ("hour", 3600.0),
    ("secs", 1.0),
    ("mins", 60.0),
    ("sec", 1.0),
    ("min", 60.0),
    ("秒", 1.0),
    ("分", 60.0),
    ("ms", 1e-3),
    ("hr", 3600.0),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// The next number at or behind `from` that can be a duration.
pub fn next(line: &[u8], from: usize) -> Option<Found> {
    let mut at = from;
    while let Some(start) = next_number(line, at) {
        if let Some(found) = read(line, start) {
            return Some(found);
        }
        at = number_end(line, start);
    }
    None
}

/// Where the next number begins that is no part of a word or of a longer number: not in `v2`, `e-05`, `3/30`.
pub fn next_number(line: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += line.get(at..)?.iter().position(u8::is_ascii_digit)?;
        if at == 0 || !is_glue(line[at - 1]) {
            return Some(at);
        }
        at = number_end(line, at);
    }
}

fn is_glue(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/')
}

pub fn number_end(line: &[u8], from: usize) -> usize {
    let rest = &line[from..];
    let inside = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    from + rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len())
}

/// The duration that begins exactly here.
pub fn read(line: &[u8], start: usize) -> Option<Found> {
    if let Some(found) = clock(line, start) {
        return Some(found);
    }
    let (mut seconds, mut end, mut has_unit) = (0.0, start, false);
    // `1h 2m 3s`: parts of falling size.
    let mut smallest = f64::INFINITY;
    let mut at = start;
    while line.get(at).is_some_and(u8::is_ascii_digit) {
        let stop = number_end(line, at);
        let value = value(&line[at..stop])?;
        match unit(&line[stop..]) {
            Some((scale, bytes)) if scale < smallest => {
                seconds += value * scale;
                smallest = scale;
                has_unit = true;
                end = stop + bytes;
            }
            _ if has_unit => break,
            _ => {
                let next = line.get(stop).copied().unwrap_or(b' ');
                if next.is_ascii_alphanumeric() || matches!(next, b'/' | b'%' | b'_' | b':') {
                    return None;
                }
                return Some(Found {
                    start,
                    end: stop,
                    seconds: value,
                    has_unit: false,
                });
            }
        }
        at = end + line[end..].iter().take_while(|byte| **byte == b' ').count();
    }
    (has_unit && seconds.is_finite()).then_some(Found {
        start,
        end,
        seconds,
        has_unit,
    })
}

/// The value of digits and points; a point that ends a sentence is passed over.
fn value(text: &[u8]) -> Option<f64> {
    if let Some(value) = number::decimal(text) {
        return Some(value);
    }
    std::str::from_utf8(text).ok()?.trim_end_matches('.').parse().ok()
}

/// The unit at the beginning of `text`, with how many bytes it takes; none when it goes on as a rate or a word.
fn unit(text: &[u8]) -> Option<(f64, usize)> {
    let blanks = usize::from(text.first() == Some(&b' '));
    let rest = &text[blanks..];
    let first = rest.first()?.to_ascii_lowercase();
    let (word, scale) = UNITS.iter().find(|(word, _)| {
        let word = word.as_bytes();
        word[0] == first
            && rest
                .get(..word.len())
                .is_some_and(|text| text.eq_ignore_ascii_case(word))
    })?;
    let next = rest.get(word.len()).copied().unwrap_or(b' ');
    // `1m23s` goes on with a digit.
    let ends = !(next.is_ascii_alphabetic() || matches!(next, b'/' | b'_'));
    ends.then_some((*scale, blanks + word.len()))
}

/// `0:01:23`, `01:23`, `1:02:03.5`.
pub fn clock(line: &[u8], start: usize) -> Option<Found> {
    let mut parts = [0f64; 3];
    let mut count = 0;
    let mut at = start;
    if line.get(number_end(line, start)) != Some(&b':') {
        return None;
    }
    loop {
        let stop = number_end(line, at);
        let text = std::str::from_utf8(line.get(at..stop)?).ok()?;
        *parts.get_mut(count)? = text.parse().ok()?;
        count += 1;
        at = stop;
        if line.get(at) != Some(&b':') || !line.get(at + 1).is_some_and(u8::is_ascii_digit) {
            break;
        }
        at += 1;
    }
    let seconds = match count {
        2 => parts[0] * 60.0 + parts[1],
        3 => parts[0] * 3600.0 + parts[1] * 60.0 + parts[2],
        _ => return None,
    };
    Some(Found {
        start,
        end: at,
        seconds,
        has_unit: true,
    })
}

/// The words directly before a position, nearest first, in lower case; at most `N`. Numbers count as words.
pub fn words_before<const N: usize>(line: &[u8], position: usize) -> [&[u8]; N] {
    let mut words = [&line[..0]; N];
    let mut end = position;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    for slot in &mut words {
        let Some(last) = line[..end].iter().rposition(is_word) else {
            break;
        };
        let start = line[..last]
            .iter()
            .rposition(|byte| !is_word(byte))
            .map_or(0, |at| at + 1);
        *slot = &line[start..=last];
        end = start;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(line: &str) -> Option<f64> {
        next(line.as_bytes(), 0)
            .filter(|found| found.has_unit)
            .map(|found| found.seconds)
    }

    #[test]
    fn the_ways_people_write_a_duration() {
        for (line, seconds) in [
            ("25.3s", 25.3),
            ("took 25 seconds.", 25.0),
            ("1m 23s", 83.0),
            ("1h2m3s", 3723.0),
            ("0:01:23", 83.0),
            ("01:23", 83.0),
            ("耗时25.5秒", 25.5),
            ("用时 2分30秒", 150.0),
            ("450ms", 0.45),
            ("(3 min)", 180.0),
        ] {
            assert_eq!(first(line), Some(seconds), "{line}");
        }
        for none in [
            "39.8it/s",
            "2ms/step",
            "0.2 s/it",
            "samples",
            "v2s",
            "3/30",
            "1e-05",
            "12%",
            "3 samples",
        ] {
            assert_eq!(first(none), None, "{none}");
        }
    }

    #[test]
    fn words_before_a_number() {
        let line = b"Validation finished in 3.2s";
        assert_eq!(
            words_before::<3>(line, 23),
            [&b"in"[..], b"finished", b"Validation"]
        );
        assert_eq!(words_before::<2>(b"7", 0), [&b""[..], b""]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_fine_and_progress_is_made(bytes in prop::collection::vec(any::<u8>(), 0..80), from in 0usize..90) {
            let mut at = from;
            while let Some(found) = next(&bytes, at) {
                prop_assert!(found.end > at && found.end <= bytes.len() && found.seconds >= 0.0);
                let _ = words_before::<3>(&bytes, found.start);
                at = found.end;
            }
        }

        #[test]
        fn what_is_written_is_read(seconds in 0.0f64..1e6) {
            prop_assert_eq!(first(&format!("took {seconds:.3}s")), Some((format!("{seconds:.3}")).parse::<f64>().unwrap()));
        }
    }
}
