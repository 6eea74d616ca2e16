//! Time stamps at the beginning of lines: `2024-05-21 10:11:12,123 INFO …`, `[2024-05-21 10:11:12] …`, `[rank0]: …`.

use crate::time;

/// The longest prefix that is looked at.
const DATE_BYTES: usize = 10;
const STAMP_BYTES: usize = 19;

/// Reads stamps; most lines have the date of the line before.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    date: [u8; DATE_BYTES],
    date_ms: f64,
}

impl Reader {
    /// The line's time stamp in milliseconds since 1970, if there is one, and where the text behind it begins.
    pub fn read(&mut self, line: &[u8]) -> Option<(f64, usize)> {
        let open = usize::from(line.first() == Some(&b'['));
        let text = line.get(open..).filter(|text| text.len() >= STAMP_BYTES)?;
        // Cheap first: four digits and a separator.
        if !(text[0].is_ascii_digit() && text[3].is_ascii_digit() && matches!(text[4], b'-' | b'/')) {
            return None;
        }
        if !matches!(text[DATE_BYTES], b' ' | b'T') {
            return None;
        }
        let clock_ms = time::clock(&text[DATE_BYTES + 1..])?;
        if text[..DATE_BYTES] != self.date {
            self.date_ms = time::day_ms(text)?;
            self.date.copy_from_slice(&text[..DATE_BYTES]);
        }
        // Behind the seconds: a fraction, a zone, a closing bracket.
        let rest = &text[STAMP_BYTES..];
        let skipped = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b',' | b'Z' | b']' | b' '))
            .unwrap_or(rest.len());
        Some((self.date_ms + clock_ms, open + STAMP_BYTES + skipped))
    }
}

/// The time that passed by a log's stamps.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    last_ms: Option<f64>,
    /// Time that passed, jumps back left out.
    passed_ms: f64,
    pub backward_steps: u64,
}

impl Stamps {
    pub fn tell(&mut self, at_ms: f64) {
        if let Some(last_ms) = self.last_ms {
            if at_ms < last_ms {
                self.backward_steps += 1;
            } else {
                self.passed_ms += at_ms - last_ms;
            }
        }
        self.last_ms = Some(at_ms);
    }

    /// Seconds that passed up to the newest stamp, and how often the clock had jumped by then.
    pub fn now(&self) -> Option<(f64, u64)> {
        self.last_ms
            .map(|_| (self.passed_ms / 1000.0, self.backward_steps))
    }

    pub fn span_s(&self) -> Option<f64> {
        self.last_ms.map(|_| self.passed_ms / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_in_the_usual_dress() {
        let (mut reader, mut stamps) = (Reader::default(), Stamps::default());
        for line in [
            "2024-05-21 10:11:12,123 INFO Epoch 1",
            "[2024-05-21 10:11:13] Epoch 1",
            "2024-05-21T10:11:14.5Z Epoch 1",
            "2024/05/21 10:11:15 Epoch 1",
        ] {
            let (at_ms, start) = reader.read(line.as_bytes()).unwrap();
            stamps.tell(at_ms);
            assert!(matches!(&line[start..], "INFO Epoch 1" | "Epoch 1"), "{line}");
        }
        assert_eq!(stamps.backward_steps, 0);
        assert!(
            (stamps.span_s().unwrap() - 2.877).abs() < 1e-6,
            "{:?}",
            stamps.span_s()
        );
        for none in [
            "",
            "Epoch 1/30 took 25 s exactly",
            "12345678901234567890",
            "2024-05-21",
            "2024-05-21_10:11:12 is the name of a folder",
        ] {
            assert_eq!(reader.read(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_clock_that_jumps_back_loses_no_time() {
        let (mut reader, mut stamps) = (Reader::default(), Stamps::default());
        for line in [
            "2024-05-21 10:00:00 a",
            "2024-05-21 10:00:10 a",
            "2024-05-21 09:00:00 a",
            "2024-05-21 09:00:05 a",
        ] {
            stamps.tell(reader.read(line.as_bytes()).unwrap().0);
        }
        assert_eq!((stamps.backward_steps, stamps.span_s()), (1, Some(15.0)));
    }
}
