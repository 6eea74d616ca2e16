//! The file through which a probe speaks: counters that it adds to in place, then a ring of messages.
//!
//! One file a process, one writer, one reader. The writer may die at any moment and may write anything: nothing read here is
//! trusted, and no read can fail the run.

pub mod layout;
mod map;
mod messages;

pub use layout::{Counters, Stamp};
pub use messages::{CollectiveMessage, FactMessage, GroupMessage, Hello, Message, WindowMessage};

use flatout_record::Phase;
use map::Map;
use std::path::{Path, PathBuf};

pub struct Ring {
    path: PathBuf,
    map: Map,
    sequence: u32,
    /// Messages that the writer could not place, or that made no sense.
    pub lost: u64,
}

impl Ring {
    /// Maps a ring file; `None` when it is not one.
    pub fn open(path: &Path) -> Option<Self> {
        let map = Map::open(path, layout::SIZE).ok()?;
        let known = map.load(layout::MAGIC_AT) == layout::MAGIC && map.load(layout::VERSION_AT) == 1;
        known.then(|| Self {
            path: path.to_owned(),
            map,
            sequence: 0,
            lost: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn pid(&self) -> u32 {
        self.map.load(layout::PID_AT) as u32
    }

    /// When the file was made, in nanoseconds of the monotonic clock.
    pub fn created_ns(&self) -> u64 {
        self.map.load(layout::CREATED_AT)
    }

    /// The phase under way.
    pub fn phase(&self) -> Option<Phase> {
        let index = usize::try_from(layout::phase_now(&self.map)).ok()?;
        Phase::ALL.get(index).copied()
    }

    pub fn counters(&self) -> Counters {
        Counters::read(&self.map)
    }

    /// Tells the program how busy the GPU is, for `flatout.gpu_utilization()`.
    pub fn tell_gpu_utilization(&self, ratio: Option<f64>) {
        let value = ratio.map_or(0, |ratio| (ratio.clamp(0.0, 1.0) * 1e6) as u64 + 1);
        self.map.store(layout::GPU_UTILIZATION_AT, value);
    }

    /// Asks the program to open the GPU window of this number, or with 0 to close it.
    pub fn request_window(&self, number: u64) {
        self.map.store(layout::WINDOW_AT, number);
    }

    /// Optimizer steps so far.
    pub fn steps(&self) -> u64 {
        self.map.load(layout::STEPS_AT)
    }

    /// Collectives of the default process group that ended so far.
    pub fn collectives(&self) -> u64 {
        layout::collectives(&self.map)
    }

    /// The collectives from this number on that are still there.
    pub fn stamps(&self, from: u64) -> Vec<Stamp> {
        let last = self.collectives();
        let first = from.max(last.saturating_sub(layout::SLOTS) + 1).max(1);
        (first..=last)
            .filter_map(|number| layout::stamp(&self.map, number))
            .collect()
    }

    /// The line of the collective under way, by its number in this process, and since when.
    pub fn in_collective(&self) -> Option<(u64, u64)> {
        layout::in_collective(&self.map)
    }

    /// The messages since the last call.
    pub fn drain(&mut self) -> Vec<Message> {
        let head = self.map.load(layout::HEAD_AT);
        let mut tail = self.map.load(layout::TAIL_AT);
        let mut found = Vec::new();
        if head.wrapping_sub(tail) > layout::CAPACITY {
            // Nonsense, or a writer that does not honour the reader's place: begin anew.
            self.lost += 1;
            tail = head;
        }
        while tail < head {
            let Some((length, text)) = self.entry(tail, head) else {
                self.lost += 1;
                tail = head;
                break;
            };
            if let Some(text) = text {
                match serde_json::from_slice(&text) {
                    Ok(message) => found.push(message),
                    Err(error) => {
                        log::debug!("a message of the probe was not understood: {error}");
                        self.lost += 1;
                    }
                }
            }
            tail += length;
        }
        self.map.store(layout::TAIL_AT, tail);
        found
    }

    /// The entry at `tail`: its whole length, and its text unless it only fills the end of the ring.
    fn entry(&mut self, tail: u64, head: u64) -> Option<(u64, Option<Vec<u8>>)> {
        let at = tail % layout::CAPACITY;
        let header = self.map.copy(layout::DATA_AT + at as usize, 8)?;
        let length = u32::from_le_bytes(header[..4].try_into().ok()?);
        let sequence = u32::from_le_bytes(header[4..].try_into().ok()?);
        if length == layout::SKIP {
            let rest = layout::CAPACITY - at;
            return (rest <= head - tail).then_some((rest, None));
        }
        let whole = (8 + u64::from(length) + 7) & !7;
        if sequence != self.sequence || at + whole > layout::CAPACITY || whole > head - tail {
            return None;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let text = self
            .map
            .copy(layout::DATA_AT + at as usize + 8, length as usize)?;
        Some((whole, Some(text)))
    }
}

#[cfg(test)]
mod tests;
