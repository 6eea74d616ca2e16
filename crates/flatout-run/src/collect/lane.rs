//! Which process writes where: the record itself, or `ranks/N` inside it.

use flatout_core::error::FileError;
use flatout_record::{RecordWriter, RunInfo};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Default)]
pub struct Lanes {
    of_ring: BTreeMap<PathBuf, u32>,
    taken: BTreeSet<u32>,
    /// The rank that this very record is of, when a batch system starts one flatout a rank.
    own_rank: Option<u32>,
    /// Lane 0 is the record itself.
    writers: BTreeMap<u32, RecordWriter>,
}

impl Lanes {
    pub fn of_task(own_rank: Option<u32>) -> Self {
        Self {
            own_rank,
            ..Self::default()
        }
    }

    /// The lane of a process that trains: its rank, else the first free one.
    pub fn of(&mut self, ring: &Path, rank: Option<u32>) -> u32 {
        if let Some(lane) = self.of_ring.get(ring) {
            return *lane;
        }
        let free = (0..).find(|lane| !self.taken.contains(lane)).unwrap_or(0);
        let rank = rank.map(|rank| if Some(rank) == self.own_rank { 0 } else { rank });
        let lane = rank.filter(|rank| *rank < MOST_RANKS).unwrap_or(free);
        self.taken.insert(lane);
        self.of_ring.insert(ring.to_owned(), lane);
        lane
    }

    /// Whether a process writes in this lane now.
    pub fn has(&self, lane: u32) -> bool {
        self.taken.contains(&lane)
    }

    pub fn known(&self, ring: &Path) -> Option<u32> {
        self.of_ring.get(ring).copied()
    }

    /// A process ended: the next one that trains may go on in its lane.
    pub fn leave(&mut self, ring: &Path) {
        if let Some(lane) = self.of_ring.remove(ring) {
            self.taken.remove(&lane);
        }
    }

    /// The writer of a lane; the record itself when its folder cannot be made.
    pub fn writer<'a>(&'a mut self, lane: u32, record: &'a mut RecordWriter) -> &'a mut RecordWriter {
        if lane == 0 {
            return record;
        }
        match self.writers.entry(lane) {
            Entry::Occupied(writer) => writer.into_mut(),
            Entry::Vacant(free) => match create(lane, record) {
                Ok(writer) => free.insert(writer),
                Err(error) => {
                    log::warn!("rank {lane} has no folder of its own: {error}");
                    record
                }
            },
        }
    }

    pub fn finish(&mut self) {
        self.writers.clear();
    }
}

fn create(lane: u32, record: &RecordWriter) -> Result<RecordWriter, FileError> {
    let folder = record.folder().join("ranks").join(lane.to_string());
    let info = RunInfo {
        name: format!("{}/{lane}", record.info().name),
        ..record.info().clone()
    };
    RecordWriter::create(&folder, info)
}

/// A rank beyond this is nonsense in the environment.
const MOST_RANKS: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_a_task_is_the_record_itself() {
        let mut lanes = Lanes::of_task(Some(3));
        assert_eq!(lanes.of(Path::new("a"), Some(3)), 0);
        assert_eq!(lanes.of(Path::new("b"), Some(4)), 4);
    }

    #[test]
    fn ranks_keep_their_number_and_others_take_the_first_free_lane() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.of(Path::new("a"), None), 0);
        assert_eq!(lanes.of(Path::new("b"), None), 1);
        assert_eq!(lanes.of(Path::new("c"), Some(7)), 7);
        assert_eq!(lanes.of(Path::new("a"), None), 0);
        lanes.leave(Path::new("a"));
        assert_eq!(
            lanes.of(Path::new("d"), None),
            0,
            "one after the other share a lane"
        );
    }
}
