//! A file of /proc or /sys that is read again and again: kept open, read into one buffer that is never given back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub struct ProcFile {
    file: Option<File>,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// A file that cannot be opened reads as nothing, always.
    pub fn open(path: impl AsRef<Path>) -> Self {
        Self {
            file: File::open(path).ok(),
            buffer: Vec::new(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// The file's contents now.
    pub fn read(&mut self) -> Option<&[u8]> {
        let file = self.file.as_ref()?;
        match read_all(file, &mut self.buffer) {
            Ok(length) => self.buffer.get(..length),
            Err(_) => None,
        }
    }
}

/// Reads a whole file from its start into the buffer, which grows as needed and keeps its size.
pub fn read_all(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    let mut length = 0;
    loop {
        let read = match file.read_at(&mut buffer[length..], length as u64) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            return Ok(length);
        }
        length += read;
        if length == buffer.len() {
            buffer.resize(length * 2, 0);
        }
    }
}

/// The next number in the text, and what follows it. `None` when there is none.
pub fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let start = text.iter().position(u8::is_ascii_digit)?;
    let mut value = 0u64;
    let mut end = start;
    while let Some(digit) = text.get(end).filter(|byte| byte.is_ascii_digit()) {
        value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        end += 1;
    }
    Some((value, &text[end..]))
}

/// The number behind a key that begins a line: `MemTotal:   16 kB`, `ctxt 12`.
pub fn field(text: &[u8], key: &[u8]) -> Option<u64> {
    text.split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(key))
        .and_then(number)
        .map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_longer_than_the_buffer_are_read_whole_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        std::fs::write(&path, vec![b'7'; 10_000]).unwrap();
        let mut file = ProcFile::open(&path);
        assert_eq!(file.read().unwrap().len(), 10_000);
        assert_eq!(file.read().unwrap().len(), 10_000);
        assert!(ProcFile::open(folder.path().join("none")).read().is_none());
    }

    #[test]
    fn numbers_and_fields() {
        assert_eq!(number(b"  12 34"), Some((12, b" 34".as_slice())));
        assert_eq!(number(b"none"), None);
        assert_eq!(
            number(b"99999999999999999999999"),
            Some((u64::MAX, b"".as_slice()))
        );
        let text = b"MemTotal:   16 kB\nMemFree: 3 kB\nctxt 99\n";
        assert_eq!(field(text, b"MemFree:"), Some(3));
        assert_eq!(field(text, b"ctxt "), Some(99));
        assert_eq!(field(text, b"Mem"), Some(16));
        assert_eq!(field(text, b"Swap"), None);
    }
}
