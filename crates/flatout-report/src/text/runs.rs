//! The list of run records.

use super::width::{cut, printable};
use super::{Align, Paint, Table, Tone};
use crate::words;
use flatout_core::{Language, message, units};
use flatout_record::{RunEntry, RunInfo};
use serde::Serialize;

/// The version of the list's JSON form.
const SCHEMA: u32 = 1;

pub fn runs(entries: &[RunEntry], language: Language, colour: bool) -> String {
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Right, Align::Left, Align::Left]);
    let head = [
        message!(en: "RUN", zh: "运行"),
        message!(en: "KIND", zh: "类型"),
        message!(en: "DURATION", zh: "时长"),
        message!(en: "OUTCOME", zh: "结果"),
        message!(en: "GPUS", zh: "GPU 数"),
    ];
    table.toned_row(
        head.each_ref()
            .map(|title| (title.get(language), Some(Tone::Quiet))),
    );
    for entry in entries {
        let info = &entry.info;
        let id = entry.folder.file_name().unwrap_or_default().to_string_lossy();
        let lasted = info
            .exit
            .map_or_else(|| "–".to_owned(), |exit| units::duration(exit.t));
        let (end, well) = words::ending(info);
        let tone = match (well, info.exit) {
            (true, _) => None,
            (false, None) => Some(Tone::Warning),
            (false, Some(_)) => Some(Tone::Bad),
        };
        table.toned_row([
            (&printable(&id), Some(Tone::Name)),
            (&printable(&info.kind), None),
            (&lasted, None),
            (end.get(language), tone),
            (&gpus(info), None),
        ]);
    }
    table.render(Paint { colour })
}

/// `8× H200`.
fn gpus(info: &RunInfo) -> String {
    let name = info
        .gpus
        .values()
        .find_map(|gpu| gpu.name.as_deref())
        .unwrap_or("");
    match info.gpus.len() {
        0 => "–".to_owned(),
        count => cut(
            &printable(&format!("{count}× {}", name.trim_start_matches("NVIDIA "))),
            24,
        ),
    }
}

#[derive(Serialize)]
struct List<'a> {
    schema: u32,
    runs: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    record: &'a std::path::Path,
    #[serde(flatten)]
    info: &'a RunInfo,
}

pub fn runs_json(entries: &[RunEntry]) -> String {
    let list = List {
        schema: SCHEMA,
        runs: entries
            .iter()
            .map(|entry| Item {
                record: &entry.folder,
                info: &entry.info,
            })
            .collect(),
    };
    serde_json::to_string_pretty(&list)
        .map(|text| text + "\n")
        .unwrap_or_default()
}
