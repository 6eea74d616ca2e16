//! The summary that jobstats leaves in a job's `AdminComment`: `JS1:` and the base64 of gzipped JSON, with the mean utilization of every
//! GPU on every node. Anyone with the right to comment can write there: nothing in it is trusted.

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::io::Read;

const PREFIX: &str = "JS1:";
/// A summary of a thousand nodes has some 500 kB; a compressed one could have any size.
const MOST_BYTES: u64 = 8 << 20;

/// Mean utilization of each GPU, 0 to 1, over the whole job. `None` for a comment that is none of jobstats, or of a job without GPUs.
pub fn jobstats_gpus(comment: &str) -> Option<Vec<f64>> {
    let packed = base64(comment.trim().strip_prefix(PREFIX)?.as_bytes())?;
    let mut text = Vec::new();
    let mut unpacked = MultiGzDecoder::new(packed.as_slice()).take(MOST_BYTES);
    unpacked.read_to_end(&mut text).ok()?;
    let value: Value = serde_json::from_slice(&text).ok()?;
    let nodes = value.get("nodes")?.as_object()?;
    let gpus = nodes
        .values()
        .filter_map(|node| node.get("gpu_utilization")?.as_object())
        .flat_map(|gpus| gpus.values());
    let shares: Vec<f64> = gpus
        .filter_map(Value::as_f64)
        .map(|percent| (percent / 100.0).clamp(0.0, 1.0))
        .collect();
    (!shares.is_empty()).then_some(shares)
}

/// The bytes behind a text of the standard alphabet; its padding may be missing.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.trim_ascii_end();
    let digits = digits
        .strip_suffix(b"==")
        .or_else(|| digits.strip_suffix(b"="))
        .unwrap_or(digits);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0u32, 0u32);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `printf '{"nodes":{"n1":{"cpus":8,"gpu_utilization":{"0":98.6,"1":0}}},"gpus":2}' | gzip -n | base64 -w0`
    const COMMENT: &str = "JS1:H4sIAAAAAAAAA6tWystPSS1WsqpWyjMEkckFpUCehY5SekFpfGlJZk5mVWJJZn4eSM5AycrSQs9MRwmo0qC2thasCKjaqBYANl1sGkcAAAA=";

    #[test]
    fn reads_the_mean_of_every_gpu() {
        assert_eq!(jobstats_gpus(COMMENT), Some(vec![0.986, 0.0]));
    }

    #[test]
    fn other_comments_are_none() {
        for comment in [
            "",
            "JS1:",
            "JS1:Short",
            "JS1:None",
            "hello",
            "JS1:!!!!",
            "JS2:H4sI",
        ] {
            assert_eq!(jobstats_gpus(comment), None, "{comment}");
        }
    }

    #[test]
    fn base64_of_every_length() {
        for (text, bytes) in [
            ("", ""),
            ("YQ==", "a"),
            ("YWI=", "ab"),
            ("YWI", "ab"),
            ("YWJj", "abc"),
        ] {
            assert_eq!(
                base64(text.as_bytes()).as_deref(),
                Some(bytes.as_bytes()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_comment_is_fine(text in "(JS1:)?[A-Za-z0-9+/=]{0,200}") {
            let _ = jobstats_gpus(&text);
        }
    }
}
