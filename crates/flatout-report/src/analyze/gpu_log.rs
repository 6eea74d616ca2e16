//! A GPU log of another tool: the importer's threads read it, this one counts, with memory that does not grow.

use super::timeline::Timeline;
use super::{Options, Read, Section};
use flatout_core::{Result, message};
use flatout_diagnose::verdict::Gatherer;
use flatout_import::{Importer, Report};
use flatout_record::{RunData, RunInfo, SCHEMA, Sample};
use std::io;
use std::path::Path;

pub fn read(reader: Box<dyn io::Read + Send>, path: &Path, options: &Options) -> Result<Read> {
    let importer = Importer::from_reader(reader, path, &options.import)?;
    let format = importer.format();
    let mut counted = Counted::new(options.keep_samples);
    let report = importer.each(|sample| counted.add(sample));
    let info = info(path, &report);
    let mut section = Section::new("gpu-log", path);
    section.format = Some(format.name());
    counted.gatherer.describe(&info);
    if report.samples > 0 {
        section.verdict = Some(counted.gatherer.verdict());
    }
    section.utilisation = counted.timeline;
    section.notes = notes(&report);
    let data = (options.keep_samples > 0).then(|| RunData {
        info,
        samples: counted.kept,
        ..RunData::default()
    });
    Ok(Read { section, data })
}

struct Counted {
    gatherer: Gatherer,
    timeline: Timeline,
    kept: Vec<Sample>,
    keep: usize,
    /// Every how many samples one is kept; doubled when there are too many.
    stride: u64,
    seen: u64,
}

impl Counted {
    fn new(keep: usize) -> Self {
        Self {
            gatherer: Gatherer::new(&RunInfo::default()),
            timeline: Timeline::default(),
            kept: Vec::new(),
            keep,
            stride: 1,
            seen: 0,
        }
    }

    fn add(&mut self, sample: &Sample) {
        self.gatherer.add(sample);
        self.timeline.add(sample);
        if self.keep > 0 && self.seen.is_multiple_of(self.stride) {
            self.kept.push(sample.clone());
            if self.kept.len() >= self.keep.max(2) {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.seen += 1;
    }
}

fn info(path: &Path, report: &Report) -> RunInfo {
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    RunInfo {
        schema: SCHEMA,
        id: name.clone(),
        name,
        kind: "import".into(),
        started_unix_ms: report.started_unix_ms.unwrap_or(0),
        gpus: report.gpus.clone(),
        versions: report.versions.clone(),
        ..RunInfo::default()
    }
}

fn notes(report: &Report) -> Vec<flatout_core::Message> {
    let mut notes = Vec::new();
    let (bad, back, clamped) = (report.bad_rows, report.backward_steps, report.clamped);
    if report.samples == 0 {
        notes.push(message!(en: "the file has a header but no rows", zh: "只有表头，没有数据行"));
    }
    if let Some((_, first)) = &report.first_bad {
        let mut note = message!(en: "skipped {bad} unreadable rows; the first: ", zh: "{bad} 行无法读取，已跳过；第一处：");
        note.en += &first.en;
        note.zh += &first.zh;
        notes.push(note);
    }
    if back > 0 {
        notes.push(message!(
            en: "the clock jumped back {back} times; time continues from each jump",
            zh: "时间戳有 {back} 次倒退；此后按采样间隔继续计时"
        ));
    }
    if clamped > 0 {
        notes.push(message!(en: "{clamped} values above 100% were treated as 100%", zh: "{clamped} 个超过 100% 的数值按 100% 处理"));
    }
    if !report.ignored_columns.is_empty() {
        let names = crate::text::width::printable(&report.ignored_columns.join(", "));
        notes.push(message!(en: "columns not used: {names}", zh: "未使用的列：{names}"));
    }
    notes
}
