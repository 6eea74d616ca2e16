//! Where things lie in a ring file: the same numbers as in python/_flatout_probe/ring.py (a test compares them).

use super::map::Map;

pub const SIZE: usize = 128 * 1024;
pub const DATA_AT: usize = 32 * 1024;
pub const CAPACITY: u64 = (SIZE - DATA_AT) as u64;
pub const MAGIC: u64 = u64::from_le_bytes(*b"FLATOUT1");
pub const SKIP: u32 = u32::MAX;

/// Indices of 64-bit words.
pub const MAGIC_AT: usize = 0;
pub const VERSION_AT: usize = 1;
pub const PID_AT: usize = 2;
pub const CREATED_AT: usize = 3;
pub const HEAD_AT: usize = 4;
pub const TAIL_AT: usize = 5;
pub(super) const DROPPED_AT: usize = 6;
pub(super) const CLOSED_AT: usize = 7;
pub(super) const PHASE_AT: usize = 8;
pub(super) const SINCE_AT: usize = 9;
pub const STEPS_AT: usize = 10;
pub(super) const BATCHES_AT: usize = 11;
pub(super) const SAMPLES_AT: usize = 12;
pub(super) const LOSS_AT: usize = 13;
pub(super) const LOSSES_AT: usize = 14;
pub(super) const BUSY_AT: usize = 15;
pub(super) const BUSY_STEPS_AT: usize = 16;
pub(super) const COLLECTIONS_AT: usize = 17;
pub(super) const COLLECTIONS_NS_AT: usize = 18;
pub(super) const EVAL_BATCHES_AT: usize = 19;
pub(super) const LIVE_AT: usize = 20;
pub(super) const WITHIN_AT: usize = 21;
pub const GPU_UTILIZATION_AT: usize = 24;
pub const WINDOW_AT: usize = 25;
pub(super) const COLLECTIVES_AT: usize = 26;
pub(super) const COLLECTIVE_NS_AT: usize = 27;
pub(super) const IN_COLLECTIVE_AT: usize = 28;
pub(super) const IN_SINCE_AT: usize = 29;
pub(super) const SUMS_AT: usize = 32;
pub(super) const HISTOGRAMS_AT: usize = 40;
pub const BUCKETS: usize = 384;
pub const PHASES: usize = 7;
pub(super) const LOADERS_AT: usize = HISTOGRAMS_AT + (PHASES + 1) * BUCKETS;
pub(super) const LOADER_SLOTS: usize = 16;
pub(super) const LOADER_WORDS: usize = 8;
pub(super) const SLOTS_AT: usize = LOADERS_AT + LOADER_SLOTS * LOADER_WORDS;
pub const SLOTS: u64 = 192;
pub(super) const SLOT_WORDS: usize = 4;

/// All counters at one moment. They only grow, but for corrections of the phases' sums.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub dropped: u64,
    pub closed: bool,
    pub phase: usize,
    pub since_ns: u64,
    pub steps: u64,
    pub batches: u64,
    pub samples: u64,
    pub loss: Option<f64>,
    pub losses: u64,
    pub busy_ns: u64,
    pub busy_steps: u64,
    pub collections: u64,
    pub collections_ns: u64,
    pub eval_batches: u64,
    pub sums_ns: [u64; PHASES],
    /// The phases', then the whole step's.
    pub histograms: Vec<Vec<u64>>,
    pub loaders: Vec<LoaderCounters>,
    /// Collectives of the default process group that ended.
    pub collectives: u64,
    /// Host time in all collectives.
    pub collective_ns: u64,
}

/// One collective of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// From 1 on; the same on every rank.
    pub number: u64,
    /// The line that called it, by the number that the process gave it.
    pub site: u64,
    pub arrived_ns: u64,
    pub left_ns: u64,
}

/// What one loader cost: preparing its batches, and waiting for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoaderCounters {
    pub loader: Option<u64>,
    pub fetch_ns: u64,
    pub collate_ns: u64,
    pub prepared: u64,
    pub batches: u64,
    pub wait_ns: u64,
    pub eval_batches: u64,
    pub eval_wait_ns: u64,
}

impl Counters {
    pub(super) fn read(map: &Map) -> Self {
        let word = |index| map.load(index);
        let losses = word(LOSSES_AT);
        let (phase, since_ns) = under_way(map);
        let loss = f64::from_bits(word(LOSS_AT));
        Self {
            dropped: word(DROPPED_AT),
            closed: word(CLOSED_AT) != 0,
            phase: (phase as usize).min(PHASES - 1),
            since_ns,
            steps: word(STEPS_AT),
            batches: word(BATCHES_AT),
            samples: word(SAMPLES_AT),
            loss: (losses > 0 && loss.is_finite()).then_some(loss),
            losses,
            busy_ns: word(BUSY_AT),
            busy_steps: word(BUSY_STEPS_AT),
            collections: word(COLLECTIONS_AT),
            collections_ns: word(COLLECTIONS_NS_AT),
            eval_batches: word(EVAL_BATCHES_AT),
            sums_ns: std::array::from_fn(|index| word(SUMS_AT + index)),
            histograms: (0..=PHASES)
                .map(|row| {
                    (0..BUCKETS)
                        .map(|bucket| word(HISTOGRAMS_AT + row * BUCKETS + bucket))
                        .collect()
                })
                .collect(),
            loaders: (0..LOADER_SLOTS).map(|slot| loader(map, slot)).collect(),
            collectives: word(COLLECTIVES_AT),
            collective_ns: word(COLLECTIVE_NS_AT),
        }
    }
}

impl Counters {
    /// Grows with every step, batch and collective, and with what loaders prepare.
    pub fn progress(&self) -> u64 {
        let counts = [
            self.steps,
            self.batches,
            self.samples,
            self.losses,
            self.eval_batches,
            self.collectives,
        ];
        let loaders = self
            .loaders
            .iter()
            .flat_map(|loader| [loader.prepared, loader.batches, loader.eval_batches]);
        counts
            .into_iter()
            .chain(loaders)
            .fold(0, |sum, count| sum.wrapping_add(count))
    }
}

/// Collectives that ended so far.
pub(super) fn collectives(map: &Map) -> u64 {
    map.load(COLLECTIVES_AT)
}

/// The collective of this number, while its slot holds it.
pub(super) fn stamp(map: &Map, number: u64) -> Option<Stamp> {
    let at = SLOTS_AT + ((number - 1) % SLOTS) as usize * SLOT_WORDS;
    let before = map.load(at);
    let stamp = Stamp {
        number,
        site: map.load(at + 1),
        arrived_ns: map.load(at + 2),
        left_ns: map.load(at + 3),
    };
    (before == number && map.load(at) == number && stamp.arrived_ns <= stamp.left_ns).then_some(stamp)
}

/// The line of the collective under way, and since when.
pub(super) fn in_collective(map: &Map) -> Option<(u64, u64)> {
    let site = map.load(IN_COLLECTIVE_AT);
    (site > 0).then(|| (site, map.load(IN_SINCE_AT)))
}

/// The phase under way and when it began. A steady loop writes both as one word, and what came before is in the sums a little
/// later.
pub(super) fn under_way(map: &Map) -> (u64, u64) {
    match map.load(LIVE_AT) {
        0 => (map.load(PHASE_AT), map.load(SINCE_AT)),
        live => (live & 7, live >> 3),
    }
}

/// The phase that the present moment will be charged to. Reads of the device, copies and presumed evaluations are charged when they
/// end, so until then only this word names them.
pub(super) fn phase_now(map: &Map) -> u64 {
    match map.load(WITHIN_AT) {
        0 => under_way(map).0,
        within => within - 1,
    }
}

fn loader(map: &Map, slot: usize) -> LoaderCounters {
    let word = |index| map.load(LOADERS_AT + slot * LOADER_WORDS + index);
    LoaderCounters {
        loader: word(3).checked_sub(1),
        fetch_ns: word(0),
        collate_ns: word(1),
        prepared: word(2),
        batches: word(4),
        wait_ns: word(5),
        eval_batches: word(6),
        eval_wait_ns: word(7),
    }
}
