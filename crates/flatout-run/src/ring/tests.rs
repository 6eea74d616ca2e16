use super::*;
use proptest::prelude::*;

/// A ring file as the probe would write it.
struct Written {
    bytes: Vec<u8>,
    head: u64,
    sequence: u32,
}

impl Written {
    fn new() -> Self {
        let mut written = Self {
            bytes: vec![0; layout::SIZE],
            head: 0,
            sequence: 0,
        };
        written.word(layout::MAGIC_AT, layout::MAGIC);
        written.word(layout::VERSION_AT, 1);
        written
    }

    fn word(&mut self, index: usize, value: u64) {
        self.bytes[index * 8..index * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn push(&mut self, text: &str) {
        let need = (8 + text.len() as u64 + 7) & !7;
        let mut at = self.head % layout::CAPACITY;
        if at + need > layout::CAPACITY {
            let place = layout::DATA_AT + at as usize;
            self.bytes[place..place + 4].copy_from_slice(&layout::SKIP.to_le_bytes());
            self.head += layout::CAPACITY - at;
            at = 0;
        }
        let place = layout::DATA_AT + at as usize;
        self.bytes[place..place + 4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes[place + 4..place + 8].copy_from_slice(&self.sequence.to_le_bytes());
        self.bytes[place + 8..place + 8 + text.len()].copy_from_slice(text.as_bytes());
        self.sequence += 1;
        self.head += need;
        self.word(layout::HEAD_AT, self.head);
    }
}

fn open(bytes: &[u8]) -> (tempfile::TempDir, Option<Ring>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1-1.ring");
    std::fs::write(&path, bytes).unwrap();
    let ring = Ring::open(&path);
    (folder, ring)
}

#[test]
fn messages_come_once_and_in_order() {
    let mut written = Written::new();
    written.push(r#"{"hello":{"pid":7,"parent":1,"rank":3,"world":8}}"#);
    written.push(r#"{"at":5,"event":{"kind":"epoch","number":2}}"#);
    let (_folder, ring) = open(&written.bytes);
    let mut ring = ring.unwrap();
    let messages = ring.drain();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].hello.as_ref().unwrap().rank, Some(3));
    assert!(messages[1].event.is_some() && messages[1].at == 5);
    assert!(ring.drain().is_empty());
    assert_eq!(ring.lost, 0);
}

#[test]
fn refuses_files_that_are_not_rings() {
    assert!(open(b"").1.is_none());
    assert!(open(&vec![0; layout::SIZE]).1.is_none());
    assert!(open(&vec![0xff; layout::SIZE + 8]).1.is_none());
}

/// Python's name of a number and ours.
const SHARED: &[(&str, u64)] = &[
    ("SIZE", layout::SIZE as u64),
    ("DATA_AT", layout::DATA_AT as u64),
    ("CAPACITY", layout::CAPACITY),
    ("MAGIC", layout::MAGIC),
    ("SKIP", layout::SKIP as u64),
    ("W_MAGIC", layout::MAGIC_AT as u64),
    ("W_VERSION", layout::VERSION_AT as u64),
    ("W_PID", layout::PID_AT as u64),
    ("W_CREATED", layout::CREATED_AT as u64),
    ("W_HEAD", layout::HEAD_AT as u64),
    ("W_TAIL", layout::TAIL_AT as u64),
    ("W_DROPPED", layout::DROPPED_AT as u64),
    ("W_CLOSED", layout::CLOSED_AT as u64),
    ("W_PHASE", layout::PHASE_AT as u64),
    ("W_SINCE", layout::SINCE_AT as u64),
    ("W_STEPS", layout::STEPS_AT as u64),
    ("W_BATCHES", layout::BATCHES_AT as u64),
    ("W_SAMPLES", layout::SAMPLES_AT as u64),
    ("W_LOSS", layout::LOSS_AT as u64),
    ("W_LOSSES", layout::LOSSES_AT as u64),
    ("W_BUSY", layout::BUSY_AT as u64),
    ("W_BUSY_STEPS", layout::BUSY_STEPS_AT as u64),
    ("W_GC", layout::COLLECTIONS_AT as u64),
    ("W_GC_NS", layout::COLLECTIONS_NS_AT as u64),
    ("W_EVAL_BATCHES", layout::EVAL_BATCHES_AT as u64),
    ("W_LIVE", layout::LIVE_AT as u64),
    ("W_WITHIN", layout::WITHIN_AT as u64),
    ("W_GPU_UTIL", layout::GPU_UTILIZATION_AT as u64),
    ("W_WINDOW", layout::WINDOW_AT as u64),
    ("W_COLLECTIVES", layout::COLLECTIVES_AT as u64),
    ("W_COLLECTIVE_NS", layout::COLLECTIVE_NS_AT as u64),
    ("W_IN_COLLECTIVE", layout::IN_COLLECTIVE_AT as u64),
    ("W_IN_SINCE", layout::IN_SINCE_AT as u64),
    ("W_SUMS", layout::SUMS_AT as u64),
    ("W_HIST", layout::HISTOGRAMS_AT as u64),
    ("BUCKETS", layout::BUCKETS as u64),
    ("STEP_HIST", layout::PHASES as u64),
    ("W_LOADERS", layout::LOADERS_AT as u64),
    ("LOADER_SLOTS", layout::LOADER_SLOTS as u64),
    ("LOADER_WORDS", layout::LOADER_WORDS as u64),
    ("W_SLOTS", layout::SLOTS_AT as u64),
    ("SLOTS", layout::SLOTS),
    ("SLOT_WORDS", layout::SLOT_WORDS as u64),
    // A loader's words, as `layout::loader` reads them.
    ("L_FETCH", 0),
    ("L_COLLATE", 1),
    ("L_PREPARED", 2),
    ("L_NUMBER", 3),
    ("L_BATCHES", 4),
    ("L_WAIT", 5),
    ("L_EVAL_BATCHES", 6),
    ("L_EVAL_WAIT", 7),
];

/// The numbers of `ring.py` that the reader does not need.
const OF_THE_PROBE: &[&str] = &["WORDS", "LONGEST"];

#[test]
fn the_layout_is_the_probes() {
    let Some(python) = flatout_testing::python() else {
        return;
    };
    let ring = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/_flatout_probe/ring.py");
    let code = "import json, runpy, sys; known = runpy.run_path(sys.argv[1]); \
                print(json.dumps({k: v for k, v in known.items() if k.isupper() and isinstance(v, int)}))";
    let output = std::process::Command::new(python)
        .args(["-c", code, ring])
        .output()
        .unwrap();
    let probe: std::collections::BTreeMap<String, u64> = serde_json::from_slice(&output.stdout).unwrap();
    let shared = probe
        .into_iter()
        .filter(|(name, _)| !OF_THE_PROBE.contains(&name.as_str()));
    let ours = SHARED.iter().map(|(name, value)| ((*name).to_owned(), *value));
    assert_eq!(shared.collect::<Vec<_>>(), {
        let mut ours: Vec<_> = ours.collect();
        ours.sort();
        ours
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_are_survived(noise in prop::collection::vec(any::<u8>(), 64..4096), head in any::<u64>(), tail in any::<u64>()) {
        let mut written = Written::new();
        for (index, byte) in noise.iter().enumerate() {
            written.bytes[layout::DATA_AT + index] = *byte;
        }
        written.word(layout::HEAD_AT, head);
        written.word(layout::TAIL_AT, tail);
        let (_folder, ring) = open(&written.bytes);
        let mut ring = ring.unwrap();
        ring.drain();
        ring.counters();
        ring.stamps(1);
        ring.in_collective();
        prop_assert!(ring.drain().is_empty());
    }

    #[test]
    fn the_ring_wraps(lengths in prop::collection::vec(1usize..3000, 1..120)) {
        let mut written = Written::new();
        let mut got = 0;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1-1.ring");
        std::fs::write(&path, &written.bytes).unwrap();
        let mut ring = Ring::open(&path).unwrap();
        for length in &lengths {
            let text = format!("{{\"event\":{{\"kind\":\"note\",\"source\":\"t\",\"text\":\"{}\"}}}}", "x".repeat(*length));
            written.push(&text);
            let tail = ring.map.load(layout::TAIL_AT);
            written.word(layout::TAIL_AT, tail);
            // In place, as the probe writes: the map sees it.
            use std::io::{Seek, SeekFrom, Write};
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            file.write_all(&written.bytes).unwrap();
            got += ring.drain().len();
        }
        prop_assert_eq!(got, lengths.len());
        prop_assert_eq!(ring.lost, 0);
    }
}
