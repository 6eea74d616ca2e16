//! Digests of the runs that somebody looks at. A finished run is read once; a running one again and again, but never for more than
//! a small share of a core: how long reading took decides how long the next reading waits.

use super::index::{Headline, Key, State};
use crate::digest::Digest;
use crate::words;
use flatout_core::{Message, Severity, message, units};
use flatout_diagnose::Diagnosis;
use flatout_record::{Record, SourceLine};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Adds what other parts of the program know to the findings.
pub type Annotate = fn(&mut Diagnosis, &[SourceLine]);

/// Digests kept; each is a megabyte or a few.
const KEPT: usize = 12;
/// A running job is read at most this often.
const SHORTEST: Duration = Duration::from_secs(2);
/// Reading takes this share of the time at most: with the two threads of a reading below 0.5% of a core.
const SHARE: f64 = 0.002;

#[derive(Clone, Debug)]
pub struct Kept {
    pub digest: Arc<Digest>,
    /// Another one for every reading.
    pub version: u64,
    stamp: u64,
    made: Instant,
    cost: Duration,
    used: Instant,
}

impl Kept {
    /// Whether a running job may be read again.
    fn is_due(&self) -> bool {
        let wait = self.cost.div_f64(SHARE).max(SHORTEST);
        self.made.elapsed() >= wait
    }

    pub fn age(&self) -> Duration {
        self.made.elapsed()
    }
}

pub struct Digests {
    annotate: Annotate,
    kept: Mutex<HashMap<Key, Kept>>,
    /// One reading at a time: two browsers cost no more than one.
    reading: Mutex<u64>,
}

impl Digests {
    pub fn new(annotate: Annotate) -> Self {
        Self {
            annotate,
            kept: Mutex::default(),
            reading: Mutex::new(0),
        }
    }

    /// The digest of a run: the one that is kept where nothing changed, or where it is too early to read a running job again.
    pub fn get(&self, key: &str, folder: &Path, state: State) -> Result<Kept, Message> {
        if let Some(kept) = self.usable(key, folder, state) {
            return Ok(kept);
        }
        let mut version = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have read it meanwhile.
        if let Some(kept) = self.usable(key, folder, state) {
            return Ok(kept);
        }
        let stamp = stamp(folder);
        let began = Instant::now();
        let mut digest = self.read(folder)?;
        if state == State::Running {
            digest.mark_running();
        }
        *version += 1;
        let kept = Kept {
            digest: Arc::new(digest),
            version: *version,
            stamp,
            made: Instant::now(),
            cost: began.elapsed(),
            used: Instant::now(),
        };
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key.to_owned(), kept.clone());
        while all.len() > KEPT {
            let oldest = all
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            all.remove(&oldest);
        }
        Ok(kept)
    }

    fn usable(&self, key: &str, folder: &Path, state: State) -> Option<Kept> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.get_mut(key)?;
        let early = state == State::Running && !kept.is_due();
        if !early && kept.stamp != stamp(folder) {
            return None;
        }
        kept.used = Instant::now();
        Some(kept.clone())
    }

    /// Reads a record. No record may end the server, whatever is in it.
    pub fn read(&self, folder: &Path) -> Result<Digest, Message> {
        let record = Record::open(folder).map_err(|error| flatout_core::Explain::message(&error))?;
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut digest = Digest::read(&record);
            let lines: Vec<SourceLine> = record.lines().collect();
            (self.annotate)(&mut digest.diagnosis, &lines);
            digest
        }));
        read.map_err(|_| {
            log::error!("reading {} failed", folder.display());
            message!(en: "this record cannot be shown", zh: "无法显示该记录")
        })
    }
}

/// Changes when a file of the record does.
fn stamp(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    add(folder, 2, &mut hasher);
    hasher.finish()
}

fn add(folder: &Path, depth: usize, hasher: &mut DefaultHasher) {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?)))
        // Written by `flatout report`, which reads only.
        .filter(|(name, _)| name != "report.html")
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, metadata) in files {
        if metadata.is_dir() {
            if depth > 0 && name == "ranks" || depth == 1 {
                add(&folder.join(name), depth - 1, hasher);
            }
            continue;
        }
        (name, metadata.len(), metadata.mtime(), metadata.mtime_nsec()).hash(hasher);
    }
}

/// The few words of a digest that the list shows.
pub fn headline(digest: &Digest) -> Headline {
    let shown = |key: &str| digest.figure(key).map(|figure| figure.unit.show(figure.mean));
    let rate = match (shown("samples_per_s"), shown("steps_per_s")) {
        (Some(rate), _) => Some(message!(en: "{rate} samples/s", zh: "{rate} 样本/秒")),
        (None, Some(rate)) => Some(message!(en: "{rate} steps/s", zh: "{rate} 步/秒")),
        (None, None) => None,
    };
    // A monitored machine has no steps: what its rules say is about the missing training, not about the machine.
    let finding = match digest.diagnosis.monitor {
        Some(_) => None,
        None => digest.diagnosis.findings.first(),
    };
    Headline {
        gpu_busy: digest.figure("gpu_busy").map(|figure| figure.mean),
        rate,
        finding: finding.map(|finding| (severity(finding.severity), finding.title.clone())),
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "k-critical",
        Severity::Warning => "k-warning",
        Severity::Information => "k-information",
    }
}

/// How old what is shown is.
pub fn age(kept: &Kept) -> Message {
    let age = units::duration(kept.age().as_secs() as f64);
    if kept.age() < SHORTEST {
        return message!(en: "analysis: just now", zh: "分析：刚刚");
    }
    message!(en: "analysis: {age} ago", zh: "分析：{age}前")
}

/// The run's name, or its id.
pub fn name(digest: &Digest) -> &str {
    words::run_name(&digest.info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests() -> Digests {
        Digests::new(|_, _| {})
    }

    fn recording() -> std::path::PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.join("faults/gpu_waits_for_python_items/record")
    }

    #[test]
    fn a_finished_run_is_read_once() {
        let digests = digests();
        let first = digests.get("a", &recording(), State::Done).unwrap();
        let second = digests.get("a", &recording(), State::Done).unwrap();
        assert_eq!(first.version, second.version);
        let headline = headline(&first.digest);
        assert!(
            headline.finding.is_some() && headline.rate.is_some(),
            "{headline:?}"
        );
    }

    #[test]
    fn a_running_job_is_not_read_again_at_once_and_its_end_is() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path();
        for entry in std::fs::read_dir(recording()).unwrap().flatten() {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        let digests = digests();
        let first = digests.get("a", copy, State::Running).unwrap();
        std::fs::write(copy.join("events.jsonl"), "").unwrap();
        let second = digests.get("a", copy, State::Running).unwrap();
        assert_eq!(first.version, second.version);
        let ended = digests.get("a", copy, State::Done).unwrap();
        assert!(ended.version > first.version);
    }

    #[test]
    fn what_is_not_a_record_is_a_message() {
        let folder = tempfile::tempdir().unwrap();
        assert!(digests().get("a", folder.path(), State::Done).is_err());
    }
}
