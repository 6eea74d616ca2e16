//! One `.jsonl` file of a record: appending lines so that a kill or a full disk tears at most the last one, compressing old
//! parts, and reading all parts back in order.

use flatout_core::files::private;
use flatout_core::leftover;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A part is closed and compressed at this size. Small enough that a reader of the newest part is quick,
/// large enough that zstd finds its repetitions.
const PART_BYTES: u64 = 8 << 20;

pub struct LineWriter {
    folder: PathBuf,
    name: &'static str,
    file: File,
    good_bytes: u64,
    next_part: u32,
    part_bytes: u64,
    compressing: Vec<JoinHandle<()>>,
}

impl LineWriter {
    pub fn create(folder: &Path, name: &'static str) -> io::Result<Self> {
        let file = open(folder, name)?;
        let good_bytes = whole_lines(&file)?;
        // What a writer before this one compressed stays.
        let is_free = |part: &u32| stored(folder, name, *part).is_none();
        let next_part = (0..u32::MAX).find(is_free).unwrap_or(u32::MAX);
        Ok(Self {
            folder: folder.to_owned(),
            name,
            file,
            good_bytes,
            next_part,
            part_bytes: PART_BYTES,
            compressing: Vec::new(),
        })
    }

    /// The folder has another name now.
    pub fn moved(&mut self, folder: &Path) {
        folder.clone_into(&mut self.folder);
    }

    #[cfg(test)]
    pub fn with_part_bytes(mut self, part_bytes: u64) -> Self {
        self.part_bytes = part_bytes;
        self
    }

    /// Appends one line; on failure what was written of it is taken back, so that the file stays whole.
    /// Says whether a new part begins with the next line.
    pub fn write(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.push(b'\n');
        if let Err(error) = self.file.write_all(line) {
            let _ = self.file.set_len(self.good_bytes);
            return Err(error);
        }
        self.good_bytes += line.len() as u64;
        if self.good_bytes < self.part_bytes {
            return Ok(false);
        }
        self.close_part()?;
        Ok(true)
    }

    fn close_part(&mut self) -> io::Result<()> {
        let part = self
            .folder
            .join(format!("{}.{:04}.jsonl", self.name, self.next_part));
        fs::rename(self.folder.join(format!("{}.jsonl", self.name)), &part)?;
        self.file = open(&self.folder, self.name)?;
        self.good_bytes = 0;
        self.next_part += 1;
        self.compressing.retain(|thread| !thread.is_finished());
        self.compressing.push(std::thread::spawn(move || {
            if let Err(error) = compress(&part) {
                log::warn!(
                    "could not compress {}: {error}; it stays as it is",
                    part.display()
                );
            }
        }));
        Ok(())
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        for thread in self.compressing.drain(..) {
            let _ = thread.join();
        }
    }
}

fn open(folder: &Path, name: &str) -> io::Result<File> {
    private()
        .append(true)
        .read(true)
        .open(folder.join(format!("{name}.jsonl")))
}

/// The length of a file without a last line that was torn, which goes: the next line would become a part of it.
fn whole_lines(file: &File) -> io::Result<u64> {
    const BLOCK: u64 = 1 << 16;
    let length = file.metadata()?.len();
    let mut end = length;
    let mut block = vec![0; BLOCK.min(length) as usize];
    while end > 0 {
        let begin = end.saturating_sub(BLOCK);
        let block = &mut block[..(end - begin) as usize];
        file.read_exact_at(block, begin)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            end = begin + at as u64 + 1;
            break;
        }
        end = begin;
    }
    if end < length {
        file.set_len(end)?;
    }
    Ok(end)
}

fn compress(part: &Path) -> io::Result<()> {
    let whole = part.with_extension("jsonl.zst");
    // A name that is swept when this process is killed.
    let temporary = whole.with_file_name(leftover::name(whole.file_name().unwrap_or_default()));
    let result = (|| {
        zstd::stream::copy_encode(File::open(part)?, private().truncate(true).open(&temporary)?, 3)?;
        fs::rename(&temporary, &whole)?;
        fs::remove_file(part)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// A part that was closed.
fn stored(folder: &Path, name: &str, index: u32) -> Option<PathBuf> {
    let plain = folder.join(format!("{name}.{index:04}.jsonl"));
    let packed = plain.with_extension("jsonl.zst");
    [packed, plain].into_iter().find(|path| path.is_file())
}

/// The parts of a file in order; a compressed part stands for its plain twin. Only regular files: opening a named pipe of a
/// hostile record would never return.
fn parts(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = (0..).map_while(|index| stored(folder, name, index)).collect();
    let current = folder.join(format!("{name}.jsonl"));
    if current.is_file() {
        parts.push(current);
    }
    parts
}

/// All lines of a file, part after part, with the part's name and the line's number.
pub struct Lines {
    parts: std::vec::IntoIter<PathBuf>,
    current: Option<(Box<dyn BufRead>, String, u64)>,
    buffer: Vec<u8>,
}

pub struct Line<'a> {
    pub text: &'a [u8],
    pub part: &'a str,
    pub number: u64,
    /// The line has no newline behind it: its writer was killed, or is writing it now.
    pub torn: bool,
}

/// A line longer than this is not ours; reading stops there rather than filling the memory.
const LONGEST_LINE: u64 = 64 << 20;

impl Lines {
    pub fn open(folder: &Path, name: &str) -> Self {
        Self {
            parts: parts(folder, name).into_iter(),
            current: None,
            buffer: Vec::new(),
        }
    }

    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if self.current.is_none() {
                let Some(path) = self.parts.next() else {
                    return Ok(None);
                };
                let file = File::open(&path)?;
                let reader: Box<dyn BufRead> = if path.extension().is_some_and(|end| end == "zst") {
                    Box::new(BufReader::with_capacity(1 << 16, zstd::Decoder::new(file)?))
                } else {
                    Box::new(BufReader::with_capacity(1 << 16, file))
                };
                let part = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                self.current = Some((reader, part, 0));
            }
            let Some((reader, _, number)) = self.current.as_mut() else {
                continue;
            };
            self.buffer.clear();
            let read = io::Read::take(&mut **reader, LONGEST_LINE).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                self.current = None;
                continue;
            }
            *number += 1;
            break;
        }
        let torn = self.buffer.last() != Some(&b'\n');
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        Ok(self.current.as_ref().map(|(_, part, number)| Line {
            text,
            part,
            number: *number,
            torn,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(folder: &Path) -> Vec<(String, bool)> {
        let mut lines = Lines::open(folder, "samples");
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((String::from_utf8_lossy(line.text).into_owned(), line.torn));
        }
        all
    }

    #[test]
    fn parts_are_compressed_and_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = LineWriter::create(folder.path(), "samples")
            .unwrap()
            .with_part_bytes(100);
        for index in 0..200 {
            writer
                .write(&mut format!("{{\"line\":{index}}}").into_bytes())
                .unwrap();
        }
        drop(writer);
        assert!(folder.path().join("samples.0003.jsonl.zst").exists());
        let lines = read_all(folder.path());
        assert_eq!(lines.len(), 200);
        assert!(
            lines
                .iter()
                .enumerate()
                .all(|(index, (text, torn))| *text == format!("{{\"line\":{index}}}") && !torn)
        );
    }

    #[test]
    fn lines_are_added_to_those_of_a_killed_writer() {
        let folder = tempfile::tempdir().unwrap();
        let create = || {
            LineWriter::create(folder.path(), "samples")
                .unwrap()
                .with_part_bytes(100)
        };
        let mut expected = Vec::new();
        for round in 0..3 {
            let mut writer = create();
            for index in 0..40 {
                let line = format!("{{\"line\":{}}}", round * 40 + index);
                writer.write(&mut line.clone().into_bytes()).unwrap();
                expected.push((line, false));
            }
            drop(writer);
            // Longer than a block is read at once.
            let torn = format!("{{\"line\":{}", " ".repeat(70_000 * round));
            let mut file = open(folder.path(), "samples").unwrap();
            file.write_all(torn.as_bytes()).unwrap();
        }
        drop(create());
        assert_eq!(read_all(folder.path()), expected);
        let names = fs::read_dir(folder.path()).unwrap().flatten();
        assert!(
            names
                .map(|entry| entry.file_name())
                .all(|name| !leftover::is_temporary(&name))
        );
    }

    #[test]
    fn a_torn_last_line_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("samples.jsonl"), "{\"t\":1}\n{\"t\":").unwrap();
        assert_eq!(
            read_all(folder.path()),
            [("{\"t\":1}".to_owned(), false), ("{\"t\":".to_owned(), true)]
        );
        assert!(read_all(Path::new("/nonexistent")).is_empty());
    }
}
