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

#[test]
fn the_layout_is_the_probes() {
    let python = include_str!("../../../../python/_flatout_probe/ring.py");
    for line in [
        "SIZE, DATA_AT = 128 * 1024, 32 * 1024",
        "W_LIVE = 20",
        "W_WITHIN = 21",
        "W_GPU_UTIL = 24",
        "W_WINDOW = 25",
        "W_SUMS = 32",
        "W_HIST = 40",
        "BUCKETS = 384",
        "LOADER_SLOTS, LOADER_WORDS = 16, 8",
        "W_COLLECTIVES, W_COLLECTIVE_NS, W_IN_COLLECTIVE, W_IN_SINCE = 26, 27, 28, 29",
        "SLOTS, SLOT_WORDS = 192, 4",
        "(W_MAGIC, W_VERSION, W_PID, W_CREATED, W_HEAD, W_TAIL, W_DROPPED, W_CLOSED, W_PHASE, W_SINCE) = range(10)",
        "(W_STEPS, W_BATCHES, W_SAMPLES, W_LOSS, W_LOSSES, W_BUSY, W_BUSY_STEPS, W_GC, W_GC_NS, W_EVAL_BATCHES) = range(10, 20)",
        "L_FETCH, L_COLLATE, L_PREPARED, L_NUMBER, L_BATCHES, L_WAIT, L_EVAL_BATCHES, L_EVAL_WAIT = range(8)",
    ] {
        assert!(python.contains(line), "{line}");
    }
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
