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
    own: Own,
    /// Lane 0 is the record itself.
    writers: BTreeMap<u32, RecordWriter>,
}

/// Which rank the record itself is of, where one flatout is started per rank or per node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// `RANK` and `LOCAL_RANK` of flatout itself.
    rank: Option<u32>,
    local: Option<u32>,
    /// `SLURM_PROCID` and `SLURM_LOCALID`, where a step has several tasks.
    task: Option<u32>,
    task_local: Option<u32>,
}

impl Own {
    pub fn from_environment() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let several = number("SLURM_NTASKS").is_some_and(|tasks| tasks > 1);
        Self {
            rank: number("RANK"),
            local: number("LOCAL_RANK"),
            task: number("SLURM_PROCID").filter(|_| several),
            task_local: number("SLURM_LOCALID"),
        }
    }

    fn is(self, rank: Rank) -> bool {
        if rank.from_launcher && self.rank.is_some() && rank.local == self.local {
            // Inherited: one flatout was started per rank.
            return Some(rank.number) == self.rank;
        }
        let local_of_task = rank.local.is_none() || rank.local == self.task_local;
        let of_task = Some(rank.number) == self.task && local_of_task;
        // A launcher below this flatout numbers its workers itself. A task's number is then a node's, as `RANK` may be, and the
        // record is of the node's first worker.
        of_task || rank.from_launcher && rank.local == Some(0)
    }
}

/// The rank of a process.
#[derive(Clone, Copy, Debug)]
pub struct Rank {
    pub number: u32,
    /// `LOCAL_RANK`.
    pub local: Option<u32>,
    /// Whether `RANK` was in its environment; else the program chose it.
    pub from_launcher: bool,
}

impl Lanes {
    pub fn of_task(own: Own) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// The lane of a process that trains: its rank, else the first free one.
    pub fn of(&mut self, ring: &Path, rank: Option<Rank>) -> u32 {
        if let Some(lane) = self.of_ring.get(ring) {
            return *lane;
        }
        let free = (0..).find(|lane| !self.taken.contains(lane)).unwrap_or(0);
        let own = self.own;
        let rank = rank.map(|rank| if own.is(rank) { 0 } else { rank.number });
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

    fn own(variables: &[(&str, &str)]) -> Own {
        Own::of(|name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// Started by a launcher.
    fn worker(number: u32, local: u32) -> Option<Rank> {
        Some(Rank {
            number,
            local: Some(local),
            from_launcher: true,
        })
    }

    fn chosen(number: u32) -> Option<Rank> {
        Some(Rank {
            number,
            local: None,
            from_launcher: false,
        })
    }

    #[test]
    fn the_rank_of_a_task_is_the_record_itself() {
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")];
        let mut lanes = Lanes::of_task(own(&slurm));
        assert_eq!(lanes.of(Path::new("a"), chosen(3)), 0);
        assert_eq!(lanes.of(Path::new("b"), chosen(4)), 4);
        // With RANK from the batch script: that counts, whatever the task's number is.
        let mut lanes = Lanes::of_task(own(&[("RANK", "5"), ("LOCAL_RANK", "1"), slurm[0], slurm[1]]));
        assert_eq!(lanes.of(Path::new("a"), worker(5, 1)), 0);
        // The program copies them from Slurm's.
        let mut lanes = Lanes::of_task(own(&[slurm[0], slurm[1], ("SLURM_LOCALID", "1")]));
        assert_eq!(lanes.of(Path::new("a"), worker(3, 1)), 0);
    }

    #[test]
    fn a_nodes_task_number_is_not_a_workers_rank() {
        // One torchrun per node: the second task, whose workers the rendezvous may give any ranks.
        let slurm = [
            ("SLURM_PROCID", "1"),
            ("SLURM_LOCALID", "0"),
            ("SLURM_NTASKS", "2"),
        ];
        let mut first = Lanes::of_task(own(&slurm));
        assert_eq!(first.of(Path::new("a"), worker(1, 1)), 1);
        assert_eq!(first.of(Path::new("b"), worker(0, 0)), 0);
        let mut second = Lanes::of_task(own(&slurm));
        assert_eq!(second.of(Path::new("a"), worker(5, 1)), 5);
        assert_eq!(second.of(Path::new("b"), worker(4, 0)), 0);
        // On other clusters RANK is a node's number for torchrun.
        let mut node = Lanes::of_task(own(&[("RANK", "1")]));
        assert_eq!(node.of(Path::new("a"), worker(1, 1)), 1);
        assert_eq!(node.of(Path::new("b"), worker(0, 0)), 0);
        // The batch script itself is task 0 of one.
        let mut script = Lanes::of_task(own(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]));
        assert_eq!(script.of(Path::new("a"), worker(2, 2)), 2);
        assert_eq!(script.of(Path::new("b"), worker(0, 0)), 0);
    }

    #[test]
    fn ranks_keep_their_number_and_others_take_the_first_free_lane() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.of(Path::new("a"), None), 0);
        assert_eq!(lanes.of(Path::new("b"), None), 1);
        assert_eq!(lanes.of(Path::new("c"), chosen(7)), 7);
        assert_eq!(lanes.of(Path::new("a"), None), 0);
        lanes.leave(Path::new("a"));
        assert_eq!(
            lanes.of(Path::new("d"), None),
            0,
            "one after the other share a lane"
        );
    }
}
