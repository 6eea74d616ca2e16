//! Text in other encodings than UTF-8, decoded while it is read.

use encoding_rs::{CoderResult, Decoder, Encoding as Known, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{self, Read};

/// The encoding of text files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static Known);

impl Default for Encoding {
    fn default() -> Self {
        Self(UTF_8)
    }
}

impl Encoding {
    /// By a name of the WHATWG's list (`gbk`, `gb18030`, `big5`, `shift_jis`, `latin1`), or Python's for it.
    pub fn named(name: &str) -> Option<Self> {
        let plain = name.trim().to_ascii_lowercase().replace('_', "-");
        let windows = plain.replace("cp125", "windows-125");
        let known = match plain.as_str() {
            "cp936" | "ms936" => "gbk",
            "cp932" | "shift-jis" => "shift_jis",
            "cp949" => "euc-kr",
            "cp950" => "big5",
            "utf-8-sig" => "utf-8",
            "latin-1" => "latin1",
            _ => &windows,
        };
        Known::for_label(known.as_bytes()).map(Self)
    }

    /// The text as UTF-8, and whether it was in another encoding. `first`: its first bytes, which `input` still gives. The mark of UTF-16
    /// counts, whatever else is asked for.
    pub fn decode(self, first: &[u8], input: Box<dyn Read + Send>) -> (Box<dyn Read + Send>, bool) {
        let encoding = match first {
            [0xFF, 0xFE, ..] => UTF_16LE,
            [0xFE, 0xFF, ..] => UTF_16BE,
            _ => self.0,
        };
        if encoding == UTF_8 {
            return (input, false);
        }
        let decoding = Decoding {
            input,
            decoder: encoding.new_decoder(),
            raw: vec![0; RAW_BYTES],
            text: Vec::new(),
            given: 0,
            finished: false,
        };
        (Box::new(decoding), true)
    }
}

const RAW_BYTES: usize = 1 << 16;

struct Decoding {
    input: Box<dyn Read + Send>,
    decoder: Decoder,
    raw: Vec<u8>,
    text: Vec<u8>,
    given: usize,
    finished: bool,
}

impl Decoding {
    /// Decodes the next piece; bytes that are no text become U+FFFD.
    fn next_piece(&mut self) -> io::Result<()> {
        let count = loop {
            match self.input.read(&mut self.raw) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.finished = count == 0;
        let room = self
            .decoder
            .max_utf8_buffer_length(count)
            .unwrap_or(4 * RAW_BYTES);
        self.text.resize(room, 0);
        let (result, _, written, _) =
            self.decoder
                .decode_to_utf8(&self.raw[..count], &mut self.text, self.finished);
        debug_assert_eq!(result, CoderResult::InputEmpty);
        self.text.truncate(written);
        self.given = 0;
        Ok(())
    }
}

impl Read for Decoding {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.finished {
            self.next_piece()?;
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(name: &str, bytes: &'static [u8]) -> String {
        let encoding = Encoding::named(name).unwrap();
        let (mut input, _) = encoding.decode(bytes, Box::new(bytes));
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn texts_of_other_encodings_become_utf_8() {
        let gbk: &[u8] = b"\xB9\xC9\xC6\xB1,\xCA\xD5\xC5\xCC\xBC\xDB\n";
        for name in ["gbk", "GB18030", "cp936", "gb2312"] {
            assert_eq!(decoded(name, gbk), "股票,收盘价\n", "{name}");
        }
        assert_eq!(decoded("latin-1", b"caf\xE9"), "café");
        assert_eq!(decoded("utf8", b"\xFF\xFEa\0,\0b\0\n\0"), "a,b\n");
        assert_eq!(decoded("utf-8", "é".as_bytes()), "é");
        assert!(Encoding::named("klingon").is_none());
    }
}
