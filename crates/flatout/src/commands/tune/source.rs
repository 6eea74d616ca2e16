//! The result as a patch to the program's source, by the machinery of `flatout lint --fix`.

use crate::context::Context;
use flatout_core::{Result, message};
use flatout_diagnose::Analysis;
use flatout_lint::patch::{self, Patch, Wanted};
use flatout_record::Record;
use flatout_report::text::width;
use flatout_run::trial::Route;
use flatout_tune::search::Found;
use std::fmt::Write;

/// The source changes for settings that neither the command nor a configuration file contains.
pub fn patch(found: &Found, route: &Route) -> Result<Patch> {
    let data = Record::open(&found.measured.record)?.load();
    let analysis = Analysis::new(&data);
    let loader = analysis.train_loader().and_then(|loader| loader.place.clone());
    let optimizer = analysis.facts.place("optimizer.class");
    let changes = found.changes();
    let wanted: Vec<Wanted> = changes
        .0
        .iter()
        .filter(|(key, _)| !route.carries(key))
        .map(|(key, value)| {
            let place = if key.starts_with("loader.") {
                loader.clone()
            } else {
                optimizer.clone()
            };
            Wanted {
                key: key.clone(),
                value: value.clone(),
                place,
            }
        })
        .collect();
    Ok(patch::patch(&wanted)?)
}

/// The difference, and every setting that is not in it.
pub fn text(patch: &Patch, context: &Context) -> String {
    let mut text = String::new();
    if !patch.files.is_empty() {
        text += "\n";
        text.extend(patch.diff.lines().map(|line| width::printable(line) + "\n"));
    }
    if !patch.left.is_empty() {
        text += "\n";
    }
    text + &left(patch, context)
}

/// A line for each setting that the source was not given, with the reason.
fn left(patch: &Patch, context: &Context) -> String {
    let mut text = String::new();
    for (key, why) in &patch.left {
        let why = context.say(why);
        let _ = writeln!(
            text,
            "{}",
            context.say(
                &message!(en: "not written to the source: {key} ({why})", zh: "未写入源码：{key}（{why}）")
            )
        );
    }
    text
}

/// Writes the files; the originals are kept as backups.
pub fn write(patch: &Patch, context: &Context) -> Result<()> {
    for (path, backup) in patch::write(patch)? {
        let (path, backup) = (path.display(), backup.display());
        eprintln!("{}", context.say(&message!(en: "wrote {path}; the original is saved as {backup}", zh: "已写入 {path}；原文件保存为 {backup}")));
    }
    eprint!("{}", left(patch, context));
    Ok(())
}
