//! Opening a log with a word on how far it is read; and a record's own errors.

use flatout_core::error::FileError;
use flatout_core::{Failure, Result, message};
use flatout_import::training_log::{Problem, ProblemKind, Problems};
use flatout_record::{EventKind, RunData};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Smaller files are read before anybody wonders.
const LARGE_BYTES: u64 = 100 << 20;
const TELL_EVERY: Duration = Duration::from_millis(250);

pub fn open(path: &Path, progress: bool) -> Result<Box<dyn Read + Send>> {
    let file = File::open(path).map_err(|source| FileError::reading(path, source))?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if !progress || length < LARGE_BYTES {
        return Ok(Box::new(file));
    }
    Ok(Box::new(Counted {
        file,
        length,
        read: 0,
        told: Instant::now(),
    }))
}

struct Counted {
    file: File,
    length: u64,
    read: u64,
    told: Instant,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.read += count as u64;
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            let percent = (self.read * 100 / self.length.max(1)).min(100);
            let _ = write!(io::stderr(), "\r{percent:3}%");
        }
        Ok(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = write!(io::stderr(), "\r    \r");
    }
}

pub fn packed(path: &Path, unpack: &str) -> Failure {
    let name = path.display();
    Failure::new(message!(en: "`{name}` is compressed", zh: "`{name}` 是压缩文件")).with_hint(message!(
        en: "decompress it: {unpack} {name} | flatout analyze -",
        zh: "请边解压边读取：{unpack} {name} | flatout analyze -"
    ))
}

pub fn not_text(path: &Path) -> Failure {
    let name = path.display();
    Failure::new(message!(en: "`{name}` is not a text file", zh: "`{name}` 不是文本文件，不是日志"))
        .with_hint(message!(
            en: "give a text file, such as the output of the program or of nvidia-smi",
            zh: "请给出程序或 nvidia-smi 输出到的文件"
        ))
}

/// A file with nothing in it has nothing to say.
pub fn empty(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(message!(en: "`{path}` is empty", zh: "`{path}` 是空文件"))
        .with_hint(message!(en: "give a log that is not empty", zh: "请给出有内容的日志"))
}

/// What went wrong by the record's events, in the form of a log's problems.
pub fn problems_of(data: &RunData) -> Problems {
    let mut known: BTreeMap<(ProblemKind, String, Option<String>), u64> = BTreeMap::new();
    for event in &data.events {
        let (kind, text, place, count) = match &event.kind {
            EventKind::OutOfMemory { message, place } => {
                (ProblemKind::OutOfMemory, message.clone(), place.as_ref(), 1)
            }
            EventKind::GpuLost { gpu, message } => {
                (ProblemKind::Error, format!("GPU {gpu}: {message}"), None, 1)
            }
            EventKind::Compile {
                what,
                count,
                message,
                place,
                ..
            } if what == "error" => (
                ProblemKind::Error,
                message.clone().unwrap_or_else(|| "torch.compile".into()),
                place.as_ref(),
                *count,
            ),
            _ => continue,
        };
        let text = crate::text::width::printable(&text);
        *known
            .entry((kind, text, place.map(ToString::to_string)))
            .or_default() += count;
    }
    let list = known
        .into_iter()
        .map(|((kind, text, place), count)| Problem {
            kind,
            text,
            place,
            count,
            first_line: 0,
            last_line: 0,
        })
        .collect();
    Problems { list, left_out: 0 }
}
