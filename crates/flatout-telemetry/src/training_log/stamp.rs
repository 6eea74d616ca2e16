//! Time stamps at the beginning of lines: `2024-05-21 10:11:12,123 INFO …`, `[2024-05-21 10:11:12] …`, `[rank0]: …`.

use crate::import::time;

#[derive(Clone, Debug, Default)]
pub struct Stamps {
    first_ms: Option<f64>,
    last_ms: Option<f64>,
    /// Time that passed, jumps back left out.
    passed_ms: f64,
    pub backward_steps: u64,
    /// The date of the last stamp and its milliseconds: most lines have the same.
    date: [u8; 10],
    date_ms: f64,
}

/// The longest prefix that is looked at.
const DATE_BYTES: usize = 10;

impl Stamps {
    /// Takes the line's time stamp, if there is one. Where the text behind it begins.
    pub fn see(&mut self, line: &[u8]) -> usize {
        let open = usize::from(line.first() == Some(&b'['));
        let Some(text) = line.get(open..).filter(|text| text.len() >= 19) else {
            return 0;
        };
        // Cheap first: four digits and a separator.
        if !(text[0].is_ascii_digit() && text[3].is_ascii_digit() && matches!(text[4], b'-' | b'/')) {
            return 0;
        }
        let Some(clock_ms) = time::clock(&text[DATE_BYTES + 1..]) else {
            return 0;
        };
        if text[..DATE_BYTES] != self.date {
            let Some(at_ms) = time::parse(text) else { return 0 };
            self.date.copy_from_slice(&text[..DATE_BYTES]);
            self.date_ms = at_ms - clock_ms;
        }
        self.tell(self.date_ms + clock_ms);
        // Behind the seconds: a fraction, a zone, a closing bracket.
        let rest = &text[19..];
        let skipped = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b',' | b'Z' | b']' | b' '))
            .unwrap_or(rest.len());
        open + 19 + skipped
    }

    fn tell(&mut self, at_ms: f64) {
        self.first_ms.get_or_insert(at_ms);
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
        let mut stamps = Stamps::default();
        for line in [
            "2024-05-21 10:11:12,123 INFO Epoch 1",
            "[2024-05-21 10:11:13] Epoch 1",
            "2024-05-21T10:11:14.5Z Epoch 1",
            "2024/05/21 10:11:15 Epoch 1",
        ] {
            let start = stamps.see(line.as_bytes());
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
        ] {
            assert_eq!(stamps.see(none.as_bytes()), 0, "{none}");
        }
    }

    #[test]
    fn a_clock_that_jumps_back_loses_no_time() {
        let mut stamps = Stamps::default();
        for line in [
            "2024-05-21 10:00:00 a",
            "2024-05-21 10:00:10 a",
            "2024-05-21 09:00:00 a",
            "2024-05-21 09:00:05 a",
        ] {
            stamps.see(line.as_bytes());
        }
        assert_eq!((stamps.backward_steps, stamps.span_s()), (1, Some(15.0)));
    }
}
