//! The new lines of a record that is being written, without reading the old ones again.

use super::{StepTick, delta};
use crate::Sample;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Read at one time; a writer that is further ahead is caught up with the next call.
const MOST_BYTES: u64 = 16 << 20;

/// Follows the newest part of one file. A part begins with a whole sample, so that older parts are not needed.
pub struct Follow<T> {
    path: PathBuf,
    /// The file that was read last, and how far.
    inode: u64,
    offset: u64,
    patched: Option<Value>,
    value: PhantomData<T>,
}

impl Follow<Sample> {
    pub fn samples(folder: &Path) -> Self {
        Self::new(folder.join("samples.jsonl"), Some(Value::Object(Map::new())))
    }
}

impl Follow<StepTick> {
    pub fn steps(folder: &Path) -> Self {
        Self::new(folder.join("steps.jsonl"), None)
    }
}

impl<T: DeserializeOwned> Follow<T> {
    fn new(path: PathBuf, patched: Option<Value>) -> Self {
        Self {
            path,
            inode: 0,
            offset: 0,
            patched,
            value: PhantomData,
        }
    }

    /// The lines that were completed since the last call. What cannot be read is skipped.
    pub fn new_items(&mut self) -> Vec<T> {
        let bytes = self.new_bytes().unwrap_or_default();
        // The last line may still be in the making: it is read again when it is whole.
        let end = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.offset += end as u64;
        bytes[..end]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| self.parse(line))
            .collect()
    }

    fn new_bytes(&mut self) -> std::io::Result<Vec<u8>> {
        // A named pipe would block the reader.
        if !std::fs::metadata(&self.path)?.is_file() {
            return Ok(Vec::new());
        }
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        if metadata.ino() != self.inode || metadata.len() < self.offset {
            self.inode = metadata.ino();
            self.offset = 0;
            if let Some(state) = &mut self.patched {
                *state = Value::Object(Map::new());
            }
        }
        if metadata.len() == self.offset {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn parse(&mut self, line: &[u8]) -> Option<T> {
        let Some(state) = &mut self.patched else {
            return serde_json::from_slice(line).ok();
        };
        let patch = serde_json::from_slice(line).ok()?;
        if let Value::Object(state) = state {
            delta::apply(state, patch);
        }
        T::deserialize(&*state).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    #[test]
    fn gives_each_completed_line_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let mut follow = Follow::samples(folder.path());
        assert!(follow.new_items().is_empty());
        fs::write(&path, "{\"t\":1,\"host\":{\"cpu_util\":0.5}}\n{\"t\":2").unwrap();
        let first = follow.new_items();
        assert_eq!(first.len(), 1);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"}\nnot json\n{\"t\":3,\"host\":{\"cpu_util\":0.25}}\n")
            .unwrap();
        let rest = follow.new_items();
        let seen: Vec<(f64, Option<f64>)> = rest.iter().map(|item| (item.t, item.host.cpu_util)).collect();
        assert_eq!(seen, [(2.0, Some(0.5)), (3.0, Some(0.25))]);
        assert!(follow.new_items().is_empty());
    }

    #[test]
    fn begins_again_with_a_new_part_and_after_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.jsonl");
        let line = "{\"t\":1,\"dt\":1,\"steps\":4}\n";
        fs::write(&path, line.repeat(3)).unwrap();
        let mut follow = Follow::steps(folder.path());
        assert_eq!(follow.new_items().len(), 3);
        fs::rename(&path, folder.path().join("steps.0000.jsonl")).unwrap();
        fs::write(&path, line).unwrap();
        assert_eq!(follow.new_items().len(), 1);
        fs::write(&path, "").unwrap();
        assert!(follow.new_items().is_empty());
        fs::write(&path, line).unwrap();
        assert_eq!(follow.new_items().len(), 1);
    }

    #[test]
    fn does_not_wait_for_a_named_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.jsonl");
        let status = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(status.unwrap().success());
        assert!(Follow::steps(folder.path()).new_items().is_empty());
    }
}
